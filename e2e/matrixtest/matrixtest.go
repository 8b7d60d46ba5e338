// Package matrixtest makes matrices in tests.
package matrixtest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/akin-search/akin/simmatrix"
)

// New returns the matrix of rows that make one.
func New(tb testing.TB, meta simmatrix.Meta, rows []simmatrix.TermRow) *simmatrix.Matrix {
	tb.Helper()
	m, err := simmatrix.New(meta, rows)
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// Rows returns random rows: few similarities, so that there are ties.
func Rows(random *rand.Rand, terms int) []simmatrix.TermRow {
	rows := make([]simmatrix.TermRow, terms)
	for i := range rows {
		rows[i].Term, rows[i].DocFreq = fmt.Sprintf("t%d", i), random.Uint32N(1000)
	}
	for i := range rows {
		for _, j := range random.Perm(terms)[:random.IntN(terms)] {
			if j != i {
				s := float32(1+random.IntN(9)) / 9
				rows[i].Neighbors = append(rows[i].Neighbors, simmatrix.Neighbor{Term: rows[j].Term, Similarity: s})
			}
		}
	}
	random.Shuffle(terms, func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	return rows
}

// Random returns a matrix with random entries, ties, document frequencies that
// are unknown, and origins now and then.
func Random(tb testing.TB, random *rand.Rand, terms int) *simmatrix.Matrix {
	tb.Helper()
	meta := simmatrix.Meta{Source: "random", Docs: 1000}
	rows := Rows(random, terms)
	if random.IntN(2) == 0 {
		meta.Origins = []string{"x", "y", "z"}
	}
	for i := range rows {
		rows[i].DocFreq = random.Uint32N(5)
		keep := random.IntN(len(rows[i].Neighbors) + 1)
		rows[i].Neighbors = rows[i].Neighbors[:keep]
		for k := range rows[i].Neighbors {
			if meta.Origins != nil {
				rows[i].Neighbors[k].Origins = uint8(1 + random.UintN(7)) //nolint:gosec // at most 7
			}
			if random.IntN(3) == 0 {
				rows[i].Neighbors[k].Similarity = max(random.Float32()/4, 1e-6)
			}
		}
	}
	return New(tb, meta, rows)
}

// Of returns the neighbors of a row.
func Of(r simmatrix.Row) []simmatrix.Neighbor { return slices.Collect(r.All()) }

// ByTerm returns the neighbors of all rows by term.
func ByTerm(m *simmatrix.Matrix) map[string][]simmatrix.Neighbor {
	rows := map[string][]simmatrix.Neighbor{}
	for term, row := range m.Rows() {
		rows[term] = Of(row)
	}
	return rows
}
