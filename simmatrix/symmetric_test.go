package simmatrix

import (
	"math/rand/v2"
	"testing"
)

// slowlySymmetric looks every pair up.
func slowlySymmetric(e *Entries) bool {
	sims := map[[2]uint32]uint16{}
	for i := range len(e.Offsets) - 1 {
		cols, s := e.Row(i)
		for k, col := range cols {
			sims[[2]uint32{uint32(i), col}] = s[k]
		}
	}
	for at, sim := range sims {
		if sims[[2]uint32{at[1], at[0]}] != sim {
			return false
		}
	}
	return true
}

// mirrored returns random entries that are symmetric: each pair has one with
// the given chance, those of column 0 with the chance 1.
func mirrored(random *rand.Rand, n int, chance float64) Entries {
	rows := make([][]Entry, n)
	for i := range n {
		for j := range i {
			if j == 0 || random.Float64() < chance {
				sim := uint16(1 + random.IntN(3))
				rows[i] = append(rows[i], Entry{Col: uint32(j), Units: sim})
				rows[j] = append(rows[j], Entry{Col: uint32(i), Units: sim})
			}
		}
	}
	return asEntries(rows)
}

func asEntries(rows [][]Entry) Entries {
	e := NewEntries(len(rows), 0, false)
	for _, row := range rows {
		e.AppendRow(row)
	}
	return e
}

func TestSymmetricFindsEveryEntryWithoutItsMirror(t *testing.T) {
	random := rand.New(rand.NewPCG(31, 1))
	for _, n := range []int{0, 1, 2, 3, 17, 40} {
		e := mirrored(random, n, 0.3)
		if !e.symmetric() {
			t.Fatalf("%d rows: not symmetric", n)
		}
		for i := range n {
			for k := range e.Offsets[i+1] - e.Offsets[i] {
				for _, change := range []string{"similarity", "column", "left out"} {
					rows := make([][]Entry, n)
					for r := range n {
						cols, sims := e.Row(r)
						for c, col := range cols {
							rows[r] = append(rows[r], Entry{Col: col, Units: sims[c]})
						}
					}
					switch change {
					case "similarity":
						rows[i][k].Units += 7
					case "left out":
						rows[i] = append(rows[i][:k], rows[i][k+1:]...)
					case "column": // the next free one: the number of entries stays the same
						free := freeColumn(rows[i], i, n)
						if free < 0 {
							continue
						}
						rows[i][k].Col = uint32(free)
					}
					if changed := asEntries(rows); changed.symmetric() {
						t.Fatalf("%d rows, entry %d of row %d, %s changed: symmetric", n, k, i, change)
					}
				}
			}
		}
	}
}

// freeColumn returns a column that row i has no entry in, -1 where there is none.
func freeColumn(row []Entry, i, n int) int {
	taken := map[int]bool{i: true}
	for _, e := range row {
		taken[int(e.Col)] = true
	}
	for col := range n {
		if !taken[col] {
			return col
		}
	}
	return -1
}

func FuzzSymmetric(f *testing.F) {
	f.Add([]byte{0x01, 0x10, 0x23, 0x32}, uint8(16))
	f.Add([]byte{0x01, 0x11, 0x02, 0x20}, uint8(3))
	f.Fuzz(func(t *testing.T, content []byte, n uint8) {
		size := int(n)%16 + 1
		sims := make([]map[int]uint16, size)
		for at, b := range content {
			i, j := int(b>>4)%size, int(b&15)%size
			if sims[i] == nil {
				sims[i] = map[int]uint16{}
			}
			if i != j {
				sims[i][j] = uint16(1 + at%2)
			}
		}
		rows := make([][]Entry, size)
		for i := range rows {
			for j, sim := range sims[i] {
				rows[i] = append(rows[i], Entry{Col: uint32(j), Units: sim})
			}
		}
		e := asEntries(rows)
		if got, want := e.symmetric(), slowlySymmetric(&e); got != want {
			t.Errorf("%v, want %v: %v", got, want, rows)
		}
	})
}
