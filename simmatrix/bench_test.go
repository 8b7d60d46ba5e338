package simmatrix

import (
	"fmt"
	"testing"
)

// benchMatrix has rows of 200 neighbors.
func benchMatrix(b *testing.B, terms int) *Matrix {
	b.Helper()
	rows := make([]TermRow, terms)
	for i := range rows {
		rows[i].Term, rows[i].DocFreq = fmt.Sprintf("term%06d", i), uint32(i)
	}
	for i := range rows {
		for k := 1; k <= 200; k++ {
			rows[i].Neighbors = append(rows[i].Neighbors, Neighbor{Term: rows[(i+k)%terms].Term, Similarity: 1 / float32(k)})
		}
	}
	return mustNew(b, Meta{}, rows)
}

// BenchmarkRowAll iterates over a row of 200 neighbors.
func BenchmarkRowAll(b *testing.B) {
	row := benchMatrix(b, 1000).Row("term000500")
	b.ReportAllocs()
	var docs uint64
	for b.Loop() {
		for n := range row.All() {
			docs += uint64(n.DocFreq)
		}
	}
}
