package softcosine

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/combine"
	"github.com/akin-search/akin/simmatrix/learn"
)

// realTerms is the order of the S of BenchmarkBasis.
const realTerms = 20_000

// BenchmarkBasis makes the sparse change of basis for an S of 20,000 words,
// learned from the texts of the public collections in the folder AKIN_DATA
// and made symmetric and dominant with C = 100. Times are those of the clock
// and, with the prefix cpu-, of the processor, which other work on the machine
// disturbs less. In natural order it takes minutes and about 3 GB, so that it
// runs only where AKIN_BENCH_BASIS is set, as make bench-basis does.
func BenchmarkBasis(b *testing.B) {
	if os.Getenv("AKIN_BENCH_BASIS") == "" {
		b.Skip("takes minutes and about 3 GB; set AKIN_BENCH_BASIS=1, or make bench-basis")
	}
	_, s := FromMatrix(realMatrix(b))
	below := s.Len() + s.NonZeros()/2
	b.Logf("S: %d terms, %d pairs, %d entries of the lower triangle, density %.4g %%", s.Len(), s.NonZeros()/2, below, 100*s.Density())
	sp := mustSpace(b, ones(s.Len()), s)
	for ordering, of := range orders() {
		b.Run(ordering, func(b *testing.B) {
			for b.Loop() {
				var order []int32
				var st *structure
				var f *rowFactor
				var err error
				reportTimes(b, "s-order", func() { order = of(s) })
				reportTimes(b, "s-symbolic", func() { st = analyze(s, order) })
				reportTimes(b, "s-numeric", func() { f, err = factorize(s, st) })
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(st.nonZeros), "nnz(F)")
				b.ReportMetric(float64(st.nonZeros)/float64(below), "nnz(F)/nnz(S)")
				b.ReportMetric(imageTime(&Basis{space: sp, places: st.places, factor: f}).Seconds()*1000, "ms/image")
			}
		})
	}
}

// reportTimes reports the clock's and the processor's seconds for a step.
func reportTimes(b *testing.B, unit string, step func()) {
	b.Helper()
	start, before := time.Now(), processorTime(b)
	step()
	b.ReportMetric(time.Since(start).Seconds(), unit)
	b.ReportMetric((processorTime(b) - before).Seconds(), "cpu-"+unit)
}

// imageTime returns the least time of Φ1 for a text of 100 terms, of ten
// texts.
func imageTime(basis *Basis) time.Duration {
	random := rand.New(rand.NewPCG(1, 1))
	best := time.Duration(math.MaxInt64)
	for range 10 {
		values := map[int32]float64{}
		for len(values) < 100 {
			values[int32(random.IntN(basis.Len()))] = 1
		}
		x := NewVector(values)
		start := time.Now()
		basis.Coordinates(x)
		best = min(best, time.Since(start))
	}
	return best
}

// realMatrix learns the S of [BenchmarkBasis].
func realMatrix(b *testing.B) *simmatrix.Matrix {
	b.Helper()
	texts := realTexts(b)
	terms := make([][]string, len(texts.Words()))
	for i, word := range texts.Words() {
		if !unicode.IsDigit(rune(word[0])) {
			terms[i] = []string{word}
		}
	}
	opts := learn.DefaultCorpusOptions()
	opts.MinDocFreq, opts.MaxTerms, opts.Source = 1, realTerms, "public collections"
	m, err := learn.FromCorpus(b.Context(), texts.Corpus(terms), opts, nil)
	if err == nil {
		m, err = combine.Sparsify(m, combine.SparsifyOptions{Neighbors: 100, Symmetric: true, Dominant: true})
	}
	if err != nil {
		b.Fatal(err)
	}
	return m
}

// realTexts returns the texts of the collections in lower case.
func realTexts(b *testing.B) *learn.Texts {
	b.Helper()
	root := cmp.Or(os.Getenv("AKIN_DATA"), filepath.Join("..", "..", "..", "shared", "data"))
	texts := learn.NewTexts()
	for _, name := range []string{"cran", "med", "cisi", "npl", "scifact_train", "semeval_ql"} {
		file, err := os.Open(filepath.Join(root, name, "corpus.jsonl"))
		if err != nil {
			b.Skipf("needs the collection %s: %v\nname the folder that has it in AKIN_DATA", name, err)
		}
		for documents := json.NewDecoder(bufio.NewReader(file)); ; {
			var d struct{ Title, Text string }
			if err := documents.Decode(&d); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				b.Fatal(err)
			}
			texts.Add(strings.ToLower(d.Title), strings.ToLower(d.Text))
		}
		file.Close()
	}
	unlabelled, err := os.ReadFile(filepath.Join(root, "semeval_ql", "unlabelled.txt"))
	if err != nil {
		b.Skip(err)
	}
	for line := range strings.Lines(string(unlabelled)) {
		texts.Add(strings.ToLower(line))
	}
	return texts
}
