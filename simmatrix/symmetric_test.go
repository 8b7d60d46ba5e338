package simmatrix

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/akin-search/akin/e2e/check"
)

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
