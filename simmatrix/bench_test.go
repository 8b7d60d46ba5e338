package simmatrix

import (
	"bytes"
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

// BenchmarkMatrixRow looks a term up and packs its row of 200 neighbors.
func BenchmarkMatrixRow(b *testing.B) {
	m := benchMatrix(b, 10_000)
	b.ReportAllocs()
	for b.Loop() {
		if m.Row("term000500").IsZero() {
			b.Fatal("no row")
		}
	}
}

// BenchmarkDecode reads a matrix of 10,000 rows of 200 neighbors.
func BenchmarkDecode(b *testing.B) {
	file := encoded(b, benchMatrix(b, 10_000))
	b.SetBytes(int64(len(file)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Decode(bytes.NewReader(file)); err != nil {
			b.Fatal(err)
		}
	}
}
