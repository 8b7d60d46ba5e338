package simmatrix

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/akin-search/akin/e2e/check"
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

func asEntries(rows [][]Entry) Entries {
	e := NewEntries(len(rows), 0, false)
	for _, row := range rows {
		e.AppendRow(row)
	}
	return e
}

// TestSymmetricFindsEveryEntryWithoutItsMirror changes one entry of a symmetric
// matrix, whose column 0 is full: its similarity, its column, or that it is there.
func TestSymmetricFindsEveryEntryWithoutItsMirror(t *testing.T) {
	random := rand.New(rand.NewPCG(31, 1))
	for run := range 4000 {
		n := run % 20
		rows := make([][]Entry, n)
		for i := range n {
			for j := range i {
				if j == 0 || random.IntN(3) == 0 {
					sim := uint16(1 + random.IntN(3))
					rows[i] = append(rows[i], Entry{Col: uint32(j), Units: sim})
					rows[j] = append(rows[j], Entry{Col: uint32(i), Units: sim})
				}
			}
		}
		e := asEntries(rows)
		check.Must(t, e.symmetric(), "not symmetric: %v", rows)
		if n < 2 {
			continue
		}
		i := random.IntN(n) // which has an entry, in column 0 or all over
		k := random.IntN(len(rows[i]))
		switch random.IntN(3) {
		case 0:
			rows[i][k].Units += 7
		case 1:
			rows[i] = append(rows[i][:k], rows[i][k+1:]...)
		default: // the number of entries stays the same
			free := uint32(random.IntN(n))
			if free == uint32(i) || slices.ContainsFunc(rows[i], func(e Entry) bool { return e.Col == free }) {
				continue
			}
			rows[i][k].Col = free
		}
		e = asEntries(rows)
		check.Must(t, !e.symmetric(), "entry %d of row %d changed: symmetric: %v", k, i, rows)
	}
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
		check.Equal(t, slowlySymmetric(&e), e.symmetric(), rows)
	})
}
