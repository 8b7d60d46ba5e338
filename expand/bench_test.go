package expand

import (
	"context"
	"fmt"
	"testing"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/expand/form"
	"github.com/akin-search/akin/simmatrix"
)

// warmExpander answers for three terms with rows of 200 neighbors each.
func warmExpander(tb testing.TB, scoring form.Scoring) *Expander {
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
	return New(&cachedCluster{fakeCluster: c}, m, with(func(o *Profile) { o.Scoring, o.NoRescore = scoring, true }))
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
	for _, scoring := range []form.Scoring{form.Linear, form.Grouped, form.Saturated} {
		b.Run(scoring.String(), func(b *testing.B) {
			e := warmExpander(b, scoring)
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

func TestWarmExpansionAllocatesLittle(t *testing.T) {
	if raceEnabled {
		t.Skip("counts are those of a build without the race detector")
	}
	for _, form := range []form.Scoring{form.Linear, form.Grouped, form.Saturated} {
		e := warmExpander(t, form)
		req := &Request{Index: "docs", Body: []byte(threeTerms)}
		if n := testing.AllocsPerRun(100, func() { _, _ = e.Expand(t.Context(), req) }); n > 51 {
			t.Errorf("%s: %v allocations, want at most 51", form, n)
		}
	}
}
