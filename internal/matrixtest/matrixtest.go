// Package matrixtest makes and compares matrices in tests.
package matrixtest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

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

// Parse returns the matrix of lines "term/document frequency: neighbor
// similarity/origins ...", where what follows a slash may be missing.
func Parse(tb testing.TB, text string) *simmatrix.Matrix {
	tb.Helper()
	var rows []simmatrix.TermRow
	meta := simmatrix.Meta{Source: "by hand", Docs: 100}
	for line := range strings.Lines(text) {
		head, tail, _ := strings.Cut(strings.TrimSpace(line), ":")
		var row simmatrix.TermRow
		term, df, _ := strings.Cut(head, "/")
		row.Term = term
		_, _ = fmt.Sscan(df, &row.DocFreq) // 0 where there is none
		fields := strings.Fields(tail)
		for k := 0; k+1 < len(fields); k += 2 {
			n := simmatrix.Neighbor{Term: fields[k]}
			s, origins, _ := strings.Cut(fields[k+1], "/")
			_, _ = fmt.Sscan(s, &n.Similarity)
			if origins != "" {
				_, _ = fmt.Sscanf(origins, "%b", &n.Origins)
				meta.Origins = []string{"x", "y", "z"}
			}
			row.Neighbors = append(row.Neighbors, n)
		}
		rows = append(rows, row)
	}
	return New(tb, meta, rows)
}

// HandMade is a matrix for [Parse] with one-way pairs and unequal ones.
const HandMade = `a/9: b 0.80 c 0.60 d 0.20
b/3: a 0.90 c 0.50
c/5: d 0.70 a 0.60
d/0: c 0.30 e 0.10
e/4:`

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

// Vehicles are the rows of a small matrix, in no order.
func Vehicles() []simmatrix.TermRow {
	return []simmatrix.TermRow{
		{Term: "hire", DocFreq: 4, Neighbors: []simmatrix.Neighbor{{Term: "rental", Similarity: 0.9}}},
		{Term: "car", DocFreq: 12, Neighbors: []simmatrix.Neighbor{
			{Term: "lorry", Similarity: 0.25}, {Term: "automobile", Similarity: 0.5}, {Term: "bus", Similarity: 0.25},
		}},
		{Term: "automobile", DocFreq: 3, Neighbors: []simmatrix.Neighbor{{Term: "car", Similarity: 0.5}}},
		{Term: "lorry", DocFreq: 5},
		{Term: "bus", DocFreq: 6},
		{Term: "rental", DocFreq: 2},
	}
}

// Of returns the neighbors of a row.
func Of(r simmatrix.Row) []simmatrix.Neighbor { return slices.Collect(r.All()) }

// Neighbors returns the neighbors by term.
func Neighbors(m *simmatrix.Matrix) map[string][]simmatrix.Neighbor {
	rows := map[string][]simmatrix.Neighbor{}
	for term, row := range m.Rows() {
		rows[term] = Of(row)
	}
	return rows
}

// Encode returns the file of a matrix.
func Encode(tb testing.TB, m *simmatrix.Matrix) []byte {
	tb.Helper()
	var b bytes.Buffer
	if err := simmatrix.Encode(&b, m); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

// Diff describes what differs between two matrices, "" for nothing.
func Diff(a, b *simmatrix.Matrix) string {
	if a.Checksum() == b.Checksum() {
		return ""
	}
	return cmp.Diff(a.Table(), b.Table(), cmpopts.EquateEmpty())
}
