package expand

import (
	"fmt"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/expand/form"
	"github.com/akin-search/akin/simmatrix"
)

// twenty is a cluster and a matrix in which "car" has twenty neighbors.
func twenty(tb testing.TB) (*fakeCluster, *fakeMatrix) {
	tb.Helper()
	c := &fakeCluster{docCount: 1000, scale: 2.2, scripts: true, docFreqs: map[string]int64{"car": 50}}
	var row []simmatrix.Neighbor
	for k := range 20 {
		term := fmt.Sprintf("near%02d", k)
		c.docFreqs[term] = int64(10 + k)
		row = append(row, simmatrix.Neighbor{Term: term, Similarity: 0.9 - 0.01*float32(k)})
	}
	return c, matrixOf(tb, c, map[string][]simmatrix.Neighbor{"car": row})
}

func TestEffortFollowsTheRequestThenTheProfileThenTheMatrix(t *testing.T) {
	for _, tt := range []struct {
		mixed            bool
		profile, request form.Effort
		mode             Mode
		form             string
		added, window    int
	}{
		{false, form.ByMatrix, form.ByMatrix, ModeBM25, "saturated", 20, 100},
		{true, form.ByMatrix, form.ByMatrix, ModeBM25, "saturated", 12, 50},
		{true, form.High, form.ByMatrix, ModeBM25, "saturated", 20, 100},
		{false, form.Normal, form.ByMatrix, ModeBM25, "saturated", 12, 50},
		{false, form.Low, form.ByMatrix, ModeBM25, "linear", 12, 0},
		{true, form.Low, form.High, ModeBM25, "saturated", 20, 100},
		{true, form.High, form.Low, ModeBM25, "linear", 12, 0},
		{true, form.ByMatrix, form.ByMatrix, ModeSoft, "linear", 12, 0}, // which orders by all terms itself
		{false, form.ByMatrix, form.ByMatrix, ModeSoft, "linear", 20, 0},
		{true, form.Normal, form.High, ModeSoft, "linear", 20, 0},
		{true, form.Low, form.Low, ModeHard, "saturated", 20, 100}, // which has no weights here
	} {
		c, m := twenty(t)
		if tt.mixed {
			m.model = "tiny"
		}
		o := with(func(o *Profile) { o.Effort, o.Mode = tt.profile, tt.mode })
		r := expanded(t, New(c, m, o), &Request{Index: "docs", Body: []byte(`{"query":{"match":{"body":"car"}}}`), Effort: tt.request})
		got := r.Clauses[0]
		check.Equal(t, m.model, got.Model)
		windowed := tt.window == 0 && !strings.Contains(string(r.Body), "window_size") ||
			strings.Contains(string(r.Body), fmt.Sprintf(`"window_size":%d,`, tt.window))
		check.That(t, got.Form == tt.form && len(got.Added) == tt.added && windowed, "%+v: form %q, %d terms, in %s", tt, got.Form, len(got.Added), r.Body)
	}
}

func TestLowEffortScoresFourTermsAndFindsByTheOthers(t *testing.T) {
	c, m := twenty(t)
	r := expandIn(t, c, m, with(func(o *Profile) { o.Effort = form.Low }), `{"query":{"match":{"body":"car"}}}`)
	scored, set, found := strings.Cut(string(r.Body), `{"terms":`)
	check.That(t, found && strings.Count(scored, `"near`) == 4 && strings.Count(set, `"near`) == 8, "%s, want four terms scored and eight in a set", r.Body)
}
