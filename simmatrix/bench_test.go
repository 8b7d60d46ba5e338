package simmatrix

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
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

// scatteredMatrix has rows of an even number of neighbors, all over the matrix,
// as learned matrices do.
func scatteredMatrix(b *testing.B, terms, neighbors int, symmetric bool) *Matrix {
	b.Helper()
	around := rand.New(rand.NewPCG(1, 1)).Perm(terms) // the terms in a circle, where neighbors are near
	at := make([]int, terms)
	for k, term := range around {
		at[term] = k
	}
	built := &Table{Entries: NewEntries(terms, 0, false), DocFreqs: make([]uint32, terms)}
	for i := range terms {
		built.Terms = append(built.Terms, fmt.Sprintf("term%06d", i))
		row := make([]Entry, 0, neighbors)
		for k := 1; k <= neighbors/2; k++ {
			for _, j := range []int{around[(at[i]+k)%terms], around[(at[i]+terms-k)%terms]} {
				sim := (i ^ j) * 7919 % 60_000
				if !symmetric {
					sim = (3*i ^ j) * 7919 % 60_000
				}
				row = append(row, Entry{Col: uint32(j), Units: uint16(1 + sim)})
			}
		}
		built.AppendRow(row)
	}
	m, err := built.Matrix()
	if err != nil || m.Meta().Symmetric != symmetric {
		b.Fatal(err, m.Meta())
	}
	return m
}

// BenchmarkDecode200k reads a matrix of 200,000 rows of 100 neighbors and
// reports the memory that it takes for each entry: in use when it is read,
// garbage included, and afterwards.
func BenchmarkDecode200k(b *testing.B) {
	for _, symmetric := range []bool{true, false} {
		b.Run(fmt.Sprintf("symmetric=%v", symmetric), func(b *testing.B) {
			file := filepath.Join(b.TempDir(), "matrix")
			if err := os.WriteFile(file, encoded(b, scatteredMatrix(b, 200_000, 100, symmetric)), 0o600); err != nil {
				b.Fatal(err)
			}
			inUse := func() float64 {
				var stats runtime.MemStats
				runtime.ReadMemStats(&stats)
				return float64(stats.HeapInuse)
			}
			var with, without float64
			for b.Loop() {
				b.StopTimer()
				runtime.GC()
				before := inUse()
				b.StartTimer()
				f, err := os.Open(file)
				if err != nil {
					b.Fatal(err)
				}
				m, err := Decode(f)
				if err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				f.Close()
				nonZeros := float64(m.Meta().NonZeros)
				with = (inUse() - before) / nonZeros
				runtime.GC()
				without = (inUse() - before) / nonZeros
				runtime.KeepAlive(m)
				b.StartTimer()
			}
			b.ReportMetric(with, "B/entry-with-garbage")
			b.ReportMetric(without, "B/entry")
		})
	}
}
