package learn

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/e2e/matrixtest"
	"github.com/akin-search/akin/simmatrix"
)

// zipfDocuments returns documents of words whose k-th has a frequency
// proportional to 1/(k+2.7) (Mandelbrot's form, which text follows), with a
// topic each that prefers some of the words.
func zipfDocuments(docs, length, words int) [][]string {
	random := rand.New(rand.NewPCG(2024, 12))
	bounds := make([]float64, words)
	total := 0.0
	for k := range bounds {
		total += 1 / (float64(k) + 2.7)
		bounds[k] = total
	}
	draw := func() int {
		x, lo, hi := random.Float64()*total, 0, words-1
		for lo < hi {
			if mid := (lo + hi) / 2; bounds[mid] < x {
				lo = mid + 1
			} else {
				hi = mid
			}
		}
		return lo
	}
	const topics = 50
	out := make([][]string, docs)
	for d := range out {
		topic := random.IntN(topics)
		for range length {
			k := draw()
			if k > 100 && random.IntN(2) == 0 {
				k = min(k-k%topics+topic, words-1)
			}
			out[d] = append(out[d], fmt.Sprintf("w%d", k))
		}
	}
	return out
}

// smallOptions are the default options at a size that suits a test.
func smallOptions() CorpusOptions {
	o := DefaultCorpusOptions()
	o.Dimensions, o.Neighbors = 30, 20
	return o
}

func TestCorpusCountsDocumentsAndVocabulary(t *testing.T) {
	c := corpusOf(
		[]string{"b", "a", "a", "2nd", "١st"},
		nil,
		[]string{"", "\xff", strings.Repeat("x", simmatrix.MaxTermBytes+1)},
		[]string{"a", "b", "2nd", "١st", ""},
		[]string{"a", "é"},
	)
	check.Equal(t, 3, c.docs)
	v := vocabularyOf(t, c, 2)
	// é is rare; the last two start with a digit and are contexts.
	diff := cmp.Diff([]string{"a", "b", "2nd", "١st"}, v.terms)
	check.That(t, diff == "" && v.rows == 2, "%d rows, terms\n%s", v.rows, diff)
	check.Equal(t, []uint32{3, 2, 2, 2}, v.docFreqs)
	const end = endOfDocument
	check.Equal(t, []int32{end, 0, end, 0, 1, 2, 3, end, 1, 0, 0, 2, 3, end}, v.sequence)
}

func TestFromCorpusRecordsItsSettings(t *testing.T) {
	o := smallOptions()
	o.Source, o.Seed = "index books", 42
	docs := zipfDocuments(300, 30, 200)
	c := corpusOf(docs...)
	stages := map[string]int{}
	var last string
	m := check.Got(FromCorpus(t.Context(), c, o, func(stage string, done, total int) {
		if stage != last {
			check.Equal(t, 0, done, stage)
			last = stage
		} else if done <= stages[stage] || done > total {
			t.Errorf("stage %q: %d of %d after %d", stage, done, total, stages[stage])
		}
		stages[stage] = done
	}))(t)
	n := m.Len()
	check.Equal(t, map[string]int{"co-occurrence": n, "co-occurrence vectors": Products, "document vectors": Products, "neighbors": n}, stages)
	meta := m.Meta()
	meta.NonZeros, meta.Symmetric, meta.Dominant = 0, false, false
	want := simmatrix.Meta{
		Source: "index books", Docs: 300, Terms: uint64(n), MaxNeighbors: 20,
		Params: map[string]string{
			"min_doc_freq": "3", "dimensions": "30", "window": "5", "context_power": "0.75", "neighbors": "20", "power": "3", "seed": "42",
			"crowding": "0.036",
		},
	}
	check.Equal(t, want, meta)
	docFreqs := map[string]uint32{}
	for _, d := range docs {
		slices.Sort(d)
		for _, w := range slices.Compact(d) {
			docFreqs[w]++
		}
	}
	for term, row := range m.Rows() {
		check.That(t, row.DocFreq() == docFreqs[term] && row.DocFreq() >= 3, "df of %q is %d, want %d", term, row.DocFreq(), docFreqs[term])
		for n := range row.All() {
			check.Equal(t, docFreqs[n.Term], n.DocFreq, n.Term)
		}
	}
}

// plantedDocuments returns documents about one of several concepts each. Every
// concept has ten words of its own, and a name that is one of two synonyms,
// which never stand in the same document.
func plantedDocuments(concepts, docs int) [][]string {
	random := rand.New(rand.NewPCG(99, 1))
	out := make([][]string, docs)
	for d := range out {
		concept, name := random.IntN(concepts), random.IntN(2)
		for range 30 {
			switch p := random.Float64(); {
			case p < 0.2:
				out[d] = append(out[d], fmt.Sprintf("name%d%c", concept, 'a'+name))
			case p < 0.6:
				out[d] = append(out[d], fmt.Sprintf("about%dx%d", concept, random.IntN(10)))
			default:
				out[d] = append(out[d], fmt.Sprintf("common%d", random.IntN(300)))
			}
		}
	}
	return out
}

func TestFromCorpusOfSmallCorpora(t *testing.T) {
	o := DefaultCorpusOptions()
	o.MinDocFreq = 1
	for _, tt := range []struct {
		name string
		docs [][]string
		want map[string][]string // neighbors by term
	}{
		{"one term", [][]string{{"a"}}, map[string][]string{"a": nil}},
		{"terms that never meet", [][]string{{"a"}, {"b"}}, map[string][]string{"a": nil, "b": nil}},
		// In one document, of rank 1, the LSA cosine is 1.
		{"one document", [][]string{{"a", "b"}}, map[string][]string{"a": {"b"}, "b": {"a"}}},
		{"two subjects", [][]string{{"a", "b"}, {"b", "a"}, {"x", "y"}, {"y", "x"}}, map[string][]string{
			"a": {"b"}, "b": {"a"}, "x": {"y"}, "y": {"x"},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := mustLearn(t, corpusOf(tt.docs...), o)
			got := map[string][]string{}
			for term, row := range m.Rows() {
				got[term] = nil
				for n := range row.All() {
					got[term] = append(got[term], n.Term)
				}
			}
			check.Equal(t, tt.want, got)
		})
	}
}

// The mode soft weighs terms by the document frequencies of a matrix.
func TestContextsHaveRowsWithoutNeighbors(t *testing.T) {
	c := corpusOf([]string{"a", "the", "b", "2"}, []string{"b", "the", "2", "a"}, []string{"x", "y"})
	c.OnlyContexts(func(word string) bool { return word == "the" })
	o := DefaultCorpusOptions()
	o.MinDocFreq = 1
	got := map[string]string{}
	for term, row := range mustLearn(t, c, o).Rows() {
		got[term] = fmt.Sprint("in ", row.DocFreq())
		for n := range row.All() {
			got[term] += " " + n.Term
		}
	}
	check.Equal(t, map[string]string{"2": "in 2", "a": "in 2 b", "b": "in 2 a", "the": "in 2", "x": "in 1 y", "y": "in 1 x"}, got)
}

// TestFromCorpusAgainstAnIndependentImplementation holds the whole recipe
// against values that were computed with NumPy: dense matrices, its full
// singular value decomposition, the same formulas.
func TestFromCorpusAgainstAnIndependentImplementation(t *testing.T) {
	c := newCorpus()
	for _, d := range []string{
		"car hire car insurance", "automobile hire insurance", "car rental insurance cheap",
		"automobile rental cheap", "bus ticket cheap", "bus hire ticket",
	} {
		c.addDocument(strings.Fields(d))
	}
	o := DefaultCorpusOptions()
	o.MinDocFreq, o.Neighbors = 1, 5
	m := mustLearn(t, c, o)
	for term, want := range map[string][]simmatrix.Neighbor{
		"car": {
			{Term: "insurance", Similarity: 0.08697, DocFreq: 3}, {Term: "hire", Similarity: 0.01987, DocFreq: 3}, {Term: "rental", Similarity: 0.01137, DocFreq: 2}, {Term: "cheap", Similarity: 0.00979, DocFreq: 3}, {Term: "automobile", Similarity: 0.00797, DocFreq: 2},
		},
		"cheap": {
			{Term: "rental", Similarity: 0.07504, DocFreq: 2}, {Term: "automobile", Similarity: 0.06747, DocFreq: 2}, {Term: "bus", Similarity: 0.04214, DocFreq: 2}, {Term: "car", Similarity: 0.00979, DocFreq: 2}, {Term: "ticket", Similarity: 0.00887, DocFreq: 2},
		},
		"ticket": {
			{Term: "bus", Similarity: 0.15960, DocFreq: 2}, {Term: "hire", Similarity: 0.02715, DocFreq: 3}, {Term: "cheap", Similarity: 0.00887, DocFreq: 3}, {Term: "automobile", Similarity: 0.00037, DocFreq: 2}, {Term: "rental", Similarity: 0.00026, DocFreq: 2},
		},
	} {
		check.Equal(t, want, matrixtest.Of(m.Row(term)), cmpopts.EquateApprox(0, 2e-5), term)
	}
}

func TestFromCorpusRefuses(t *testing.T) {
	rare := corpusOf([]string{"a", "1b"}, []string{"c", "1b"}, []string{"1b"})
	for name, c := range map[string]*Corpus{"empty": newCorpus(), "too rare or digits": rare} {
		check.Error(t, simmatrix.ErrNoVocabulary, check.ErrOf(FromCorpus(t.Context(), c, DefaultCorpusOptions(), nil)), name)
	}
	for _, tt := range []struct {
		message string
		set     func(*CorpusOptions)
	}{
		{"min doc freq: 0", func(o *CorpusOptions) { o.MinDocFreq = 0 }},
		{"dimensions: -1", func(o *CorpusOptions) { o.Dimensions = -1 }},
		{"dimensions: 1001", func(o *CorpusOptions) { o.Dimensions = 1001 }},
		{"window: 0", func(o *CorpusOptions) { o.Window = 0 }},
		{"window: 7", func(o *CorpusOptions) { o.Window = 7 }},
		{"neighbors: 0", func(o *CorpusOptions) { o.Neighbors = 0 }},
		{"neighbors: 10001", func(o *CorpusOptions) { o.Neighbors = simmatrix.MaxNeighbors + 1 }},
		{"power: 0", func(o *CorpusOptions) { o.Power = 0 }},
		{"power: NaN", func(o *CorpusOptions) { o.Power = math.NaN() }},
		{"power: +Inf", func(o *CorpusOptions) { o.Power = math.Inf(1) }},
	} {
		o := DefaultCorpusOptions()
		tt.set(&o)
		check.Message(t, tt.message, check.ErrOf(FromCorpus(t.Context(), rare, o, nil)))
	}
}

func TestFromCorpusHeedsTheContextInEveryStage(t *testing.T) {
	c := corpusOf(zipfDocuments(300, 30, 300)...)
	for _, at := range []string{"co-occurrence", "co-occurrence vectors", "document vectors", "neighbors"} {
		ctx, cancel := context.WithCancel(t.Context())
		var after []string
		m, err := FromCorpus(ctx, c, smallOptions(), func(stage string, done, _ int) {
			if ctx.Err() != nil && stage != at {
				after = append(after, stage)
			}
			if stage == at && done == 0 {
				cancel()
			}
		})
		check.That(t, errors.Is(err, context.Canceled) && m == nil && after == nil, "ended in stage %s: %v, later stages %q", at, err, after)
	}
}

func TestMeanLengthCountsTheTermsOfAllTexts(t *testing.T) {
	c := newCorpus()
	c.addDocument([]string{"a", "b"}, []string{"a"})
	c.addDocument([]string{"c", "c"})
	c.addDocument(nil) // no document
	check.Equal(t, 2.5, c.MeanLength())
}

// addDocument adds a document that is given by the terms of its texts.
func (c *Corpus) addDocument(texts ...[]string) {
	ids := make([][]int32, len(texts))
	for i, terms := range texts {
		ids[i] = c.termIDs(nil, terms)
	}
	c.add(ids)
}
