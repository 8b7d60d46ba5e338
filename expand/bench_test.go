package expand

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/expand/form"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/source"
)

// warmExpander answers for three terms with rows of 200 neighbors each.
func warmExpander(tb testing.TB, form form.Scoring) *Expander {
	tb.Helper()
	c := &fakeCluster{docCount: 100_000, docFreqs: map[string]int64{}, scale: 2.2, scripts: true}
	rows := map[string][]simmatrix.Neighbor{}
	for i, term := range []string{"boundary", "layer", "transition"} {
		c.docFreqs[term] = int64(100 * (i + 1))
		for k := range 200 {
			n := fmt.Sprintf("neighbor%d", (i*150+k)%420)
			c.docFreqs[n] = int64(5 + (k*37)%900)
			rows[term] = append(rows[term], simmatrix.Neighbor{Term: n, Similarity: 1 / float32(2+k)})
		}
	}
	m := matrixOf(tb, c, rows)
	m.power = 3
	return New(&cachedCluster{fakeCluster: c}, m, with(func(o *Profile) { o.Scoring, o.NoRescore = form, true }))
}

// cachedCluster answers Analyze from memory, as a warm cache does.
type cachedCluster struct {
	*fakeCluster

	analysis *esclient.Analysis
}

func (c *cachedCluster) Analyze(context.Context, esclient.Indices, string, string, string) (*esclient.Analysis, error) {
	if c.analysis == nil {
		c.analysis = &esclient.Analysis{Terms: []string{"boundary", "layer", "transition"}, Positions: []int{0, 1, 2}, Shards: 1}
	}
	return c.analysis, nil
}

const threeTerms = `{"size":10,"query":{"match":{"body":"boundary layer transition"}}}`

func BenchmarkExpand(b *testing.B) {
	for _, form := range []form.Scoring{form.Linear, form.Grouped, form.Saturated} {
		b.Run(form.String(), func(b *testing.B) {
			e := warmExpander(b, form)
			req := &Request{Index: "docs", Body: []byte(threeTerms)}
			b.ReportAllocs()
			for b.Loop() {
				r, err := e.Expand(b.Context(), req)
				if err != nil || r.AddedTerms() != 30 {
					b.Fatal(r, err)
				}
			}
		})
	}
}

// spelled looks for the nearest words by their spelling.
type spelled struct {
	*fakeMatrix
	words *source.Words
}

func (m spelled) Pin() Pinned { return m }

func (m spelled) For(context.Context, esclient.Indices, string) (Bound, error) {
	return Bound{Rows: m}, nil
}

func (m spelled) Nearest(word string) ([]string, float32) { return m.words.Nearest(word) }

// BenchmarkExpandUnknownWord compares a search with a misspelled word, looked
// up among 100,000, with the same search spelled right.
func BenchmarkExpandUnknownWord(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 2))
	words := []string{"boundary", "layer", "transition"}
	for len(words) < 100_000 {
		word := make([]byte, 5+random.IntN(8))
		for k := range word {
			word[k] = "etaoinshrdlucmfgy"[random.IntN(17)]
		}
		words = append(words, string(word))
	}
	slices.Sort(words)
	words = slices.Compact(words)
	known := source.NewWords(words, slices.Repeat([]uint32{1}, len(words)))
	for _, word := range []string{"transition", "transitoin"} {
		b.Run(word, func(b *testing.B) {
			e := warmExpander(b, form.Saturated)
			e.cluster.(*cachedCluster).analysis = &esclient.Analysis{Terms: []string{"boundary", "layer", word}, Positions: []int{0, 1, 2}, Shards: 1}
			e = e.WithMatrices(spelled{e.matrices.(*fakeMatrix), known})
			req := &Request{Index: "docs", Body: []byte(threeTerms)}
			b.ReportAllocs()
			for b.Loop() {
				r, err := e.Expand(b.Context(), req)
				if err != nil || r.AddedTerms() != 30 || (len(r.Clauses[0].Nearest) > 0) != (word == "transitoin") {
					b.Fatal(r, err)
				}
			}
		})
	}
}

func TestWarmExpansionAllocatesLittle(t *testing.T) {
	if raceEnabled {
		t.Skip("counts are those of a build without the race detector")
	}
	for _, form := range []form.Scoring{form.Linear, form.Grouped, form.Saturated} {
		e := warmExpander(t, form)
		req := &Request{Index: "docs", Body: []byte(threeTerms)}
		if n := testing.AllocsPerRun(100, func() { _, _ = e.Expand(t.Context(), req) }); n > 40 {
			t.Errorf("%s: %v allocations, want at most 40", form, n)
		}
	}
}
