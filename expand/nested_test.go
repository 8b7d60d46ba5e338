package expand

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/expand/form"
	"github.com/akin-search/akin/expand/reason"
)

// bodySegments are those of body in the nested field segments.
func bodySegments(change func(s *form.Segments)) form.Segments {
	s := form.Segments{Field: "body", Path: "segments", Text: "segments.text", Position: "segments.position", Share: "segments.share", Godwin: "segments.godwin"}
	if change != nil {
		change(&s)
	}
	return s
}

// expandNested expands with segments of body and nothing to add.
func expandNested(t *testing.T, o Profile, body string, segments ...form.Segments) *Result {
	t.Helper()
	o.Segments = segments
	c, _ := rental(t)
	m := matrixOf(t, c, nil)
	r := expanded(t, New(c, m, o), &Request{Index: "docs", Body: []byte(body)})
	return r
}

func TestClauseGetsANestedOneForSegments(t *testing.T) {
	const original, copied = `{"match":{"body":"car rental"}}`, `{"match":{"segments.text":"car rental"}}`
	nested := func(mode, query string) string {
		return `{"nested":{"path":"segments","ignore_unmapped":true,"score_mode":"` + mode + `","query":` + query + `}}`
	}
	weighted := func(field, from, modifier string) string {
		return `{"function_score":{"query":` + copied + `,"functions":[{"filter":{"range":{"` + field + `":{` + from + `}}},"field_value_factor":{"field":"` +
			field + `"` + modifier + `,"missing":1}}]}}`
	}
	add := func(nested string) string { return `{"bool":{"must":[` + original + `],"should":[` + nested + `]}}` }
	replace := func(s *form.Segments) { s.Replace = true }
	for name, tt := range map[string]struct {
		change func(s *form.Segments)
		same   bool
		want   string
	}{
		"max":          {nil, false, add(nested("max", copied))},
		"avg":          {func(s *form.Segments) { s.Aggregate = form.Avg }, false, add(nested("avg", copied))},
		"sum":          {func(s *form.Segments) { s.Aggregate = form.Sum }, false, add(nested("sum", copied))},
		"first-heavy":  {func(s *form.Segments) { s.Aggregate = form.FirstHeavy }, false, add(nested("sum", weighted("segments.position", `"gte":1`, `,"modifier":"reciprocal"`)))},
		"length":       {func(s *form.Segments) { s.Aggregate = form.Length }, false, add(nested("sum", weighted("segments.share", `"gt":0`, ``)))},
		"godwin":       {func(s *form.Segments) { s.Aggregate = form.Godwin }, false, add(nested("sum", weighted("segments.godwin", `"gt":0`, ``)))},
		"replace":      {replace, false, `{"bool":{"should":[{"bool":{"filter":[` + original + `]}},` + nested("max", copied) + `]}}`},
		"replace same": {replace, true, `{"bool":{"filter":[` + original + `],"should":[` + nested("max", copied) + `]}}`},
		"inner hits":   {func(s *form.Segments) { s.InnerHits = 2 }, false, add(strings.TrimSuffix(nested("max", copied), "}}") + `,"inner_hits":{"size":2}}}`)},
	} {
		t.Run(name, func(t *testing.T) {
			o := with(func(o *Profile) { o.Matching = sameIf(tt.same) })
			r := expandNested(t, o, `{"size":3,"query":`+original+`}`, bodySegments(tt.change))
			diff := cmp.Diff(`{"size":3,"query":`+tt.want+`}`, string(r.Body))
			check.That(t, diff == "" && r.Rewritten, "body (-want +got):\n%s", diff)
		})
	}
}

// The copy keeps what it says about words, and counts none of them, because
// those of the text may be in several segments.
func TestClauseIsCopiedForSegments(t *testing.T) {
	for name, tt := range map[string]struct{ clause, want string }{
		"options": {
			`{"match":{"body":{"query":"car","operator":"and","boost":2,"fuzziness":"AUTO","_name":"a","minimum_should_match":"50%","zero_terms_query":"all"}}}`,
			`{"match":{"segments.text":{"query":"car","boost":2,"fuzziness":"AUTO"}}}`,
		},
		"prefix": {`{"match_bool_prefix":{"body":"car"}}`, `{"match_bool_prefix":{"segments.text":"car"}}`},
		"several fields": {
			`{"multi_match":{"fields":["title^4","body^3"],"query":"car","type":"most_fields","boost":2}}`,
			`{"multi_match":{"fields":["segments.text^3"],"query":"car","type":"most_fields","boost":2}}`,
		},
		"query_string":        {`{"query_string":{"default_field":"body","query":"car","default_operator":"AND"}}`, `{"query_string":{"fields":["segments.text^1"],"query":"car"}}`},
		"simple_query_string": {`{"simple_query_string":{"fields":["body"],"query":"car"}}`, `{"simple_query_string":{"fields":["segments.text^1"],"query":"car"}}`},
		"default field":       {`{"query_string":{"query":"car"}}`, `{"query_string":{"fields":["segments.text^1"],"query":"car"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			r := expandNested(t, with(func(o *Profile) { o.DefaultFields = []string{"title", "body"} }), `{"query":`+tt.clause+`}`, bodySegments(nil))
			want := `{"query":{"bool":{"must":[` + tt.clause + `],"should":[{"nested":{"path":"segments","ignore_unmapped":true,"score_mode":"max","query":` + tt.want + `}}]}}}`
			check.Equal(t, want, string(r.Body), "body")
		})
	}
}

func TestWhereThereAreNoNestedClauses(t *testing.T) {
	flat := bodySegments(func(s *form.Segments) { s.Text = "flat.text" })
	none := bodySegments(func(s *form.Segments) { s.Text = "sku" })
	for name, tt := range map[string]struct {
		body     string
		segments form.Segments
		want     reason.Reason // "" where it is not worth a word
	}{
		"not nested":         {carRental, flat, reason.NotNested},
		"not text":           {carRental, none, reason.NotText},
		"another field":      {`{"query":{"match":{"title":"car"}}}`, bodySegments(nil), ""},
		"in a filter":        {`{"query":{"bool":{"must":{"match":{"title":"car"}},"filter":{"match":{"body":"car"}}}}}`, bodySegments(nil), ""},
		"in nested queries":  {`{"query":{"nested":{"path":"a","query":{"match":{"body":"car"}}}}}`, bodySegments(nil), ""},
		"no scores":          {`{"size":0,"query":{"match":{"body":"car"}}}`, bodySegments(nil), ""},
		"sorted":             {`{"sort":"n","query":{"match":{"body":"car"}}}`, bodySegments(nil), ""},
		"with min_score":     {`{"min_score":1,"query":{"match":{"body":"car"}}}`, bodySegments(nil), reason.MinScore},
		"too deep":           {`{"query":` + nestedIn(17, `{"match":{"body":"car"}}`) + `}`, bodySegments(nil), reason.TooDeep},
		"a text left alone":  {`{"query":{"query_string":{"default_field":"body","query":"\"car rental\""}}}`, bodySegments(nil), ""},
		"a text of one MiB":  {`{"query":{"match":{"body":"` + strings.Repeat("car ", 1<<18) + `"}}}`, bodySegments(nil), reason.TooManyTerms},
		"a runtime field":    {`{"runtime_mappings":{"segments.text":{"type":"keyword"}},"query":{"match":{"body":"car"}}}`, bodySegments(nil), reason.RuntimeField},
		"fields of patterns": {`{"query":{"multi_match":{"fields":["bod*"],"query":"car"}}}`, bodySegments(nil), ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := with(func(o *Profile) { o.NormalizeScores = true })
			without, r := expandNested(t, o, tt.body), expandNested(t, o, tt.body, tt.segments)
			check.That(t, string(r.Body) == string(without.Body) && r.Rewritten == without.Rewritten, "%s, want %s", r.Body, without.Body)
			want := without.Clauses
			if tt.want != "" {
				want = append(want, Explanation{Path: r.Clauses[len(r.Clauses)-1].Path, Field: tt.segments.Text, Reason: tt.want})
			}
			check.Equal(t, want, r.Clauses, "clauses")
		})
	}
}

// The search is still expanded.
func TestTooManyFieldsLeaveOutTheSegmentsOnly(t *testing.T) {
	body := `{"query":{"bool":{"should":[` + strings.TrimSuffix(strings.Repeat(`{"match":{"body":"car"}},`, 40), ",") + `]}}}`
	o := widening()
	without := expandBody(t, o, body)
	o.Segments = []form.Segments{bodySegments(nil)}
	r := expandBody(t, o, body)
	check.That(t, string(r.Body) == string(without.Body) && r.Rewritten, "%s\nwant\n%s", r.Body, without.Body)
	last := r.Clauses[len(r.Clauses)-1]
	check.That(t, last.Reason == reason.TooManyClauses, "%+v", last)
}

// The engines refuse two of one name.
func TestInnerHitsHaveOneName(t *testing.T) {
	hits := bodySegments(func(s *form.Segments) { s.InnerHits = 1 })
	for name, tt := range map[string]struct {
		body string
		want int
	}{
		"two clauses": {`{"query":{"bool":{"should":[{"match":{"body":"car"}},{"match":{"body":"rental"}}]}}}`, 1},
		"a retriever": {`{"retriever":{"standard":{"query":{"match":{"body":"car"}}}}}`, 0},
		"the client's own": {
			`{"query":{"bool":{"must":{"match":{"body":"car"}},"should":{"nested":{"path":"segments","query":{"term":{"segments.text":"car"}},"inner_hits":{}}}}}}`, 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := expandNested(t, widening(), tt.body, hits)
			n := strings.Count(string(r.Body), "inner_hits")
			check.That(t, n == tt.want && strings.Contains(string(r.Body), `"ignore_unmapped"`), "%d inner hits in %s", n, r.Body)
		})
	}
}

// FuzzSegments holds any bytes, with any way to score segments, against the
// promise to change nothing but what stands around the clauses.
func FuzzSegments(f *testing.F) {
	for i, seed := range []string{
		carRental, `{"query":{"bool":{"must":[{"match":{"body":{"query":"car","operator":"and","_name":"x"}}},{"multi_match":{"query":"rental","fields":["a^2","body^3"]}}],"filter":{"match":{"body":"car"}}}},"highlight":{"fields":{}}}`,
		`{"highlight":{"order":"score"},"query":{"has_child":{"type":"c","score_mode":"avg","query":{"match":{"b\u006fdy":{"query":"car"}}},"inner_hits":{"highlight":{}}}}}`,
		`{"query":{"simple_query_string":{"query":"car rental"}},"sort":["_score"]}`, `{"query":{"match_phrase":{"body":{"query":"car rental","slop":2}}},"terminate_after":3}`,
		`{"highlight":{},"retriever":{"rrf":{"retrievers":[{"standard":{"query":{"match":{"body":"car"}}}},{"standard":{"query":{"query_string":{"query":"car","fields":["body^2","title"]}}}}]}}}`,
		`{"query":{"dis_max":{"queries":[{"combined_fields":{"query":"car","fields":["body","title"]}},{"match_bool_prefix":{"body":"car re"}}]}},"rescore":{"query":{"rescore_query":{"match":{"body":"car"}}}}}`,
	} {
		for k := range uint16(10) {
			f.Add([]byte(seed), uint16(i)+701*k, uint8(k))
		}
	}
	f.Fuzz(func(t *testing.T, body []byte, bits uint16, kind uint8) {
		o, change := fuzzOptions(bits &^ (1 << 12))
		o.Segments = []form.Segments{bodySegments(func(s *form.Segments) {
			s.Aggregate, s.Replace, s.InnerHits = form.Aggregate(kind%5), kind/5%2 == 1, int(kind/10%2)
		})}
		r := expandRequest(t, &Request{Body: body}, func(c *fakeCluster, p *Profile) {
			change(c)
			*p = o
		})
		if !r.Rewritten {
			return
		}
		check.Must(t, json.Valid(r.Body), "Expand(%q) = %q: not JSON", body, r.Body)
		err := strip(body, r.Body)
		check.That(t, err == nil, "Expand(%q) = %q: %v", body, r.Body, err)
	})
}

// Only what is written for segments gets terms besides those of the search.
func TestClientsNestedClausesShareWithItsOthers(t *testing.T) {
	o := with(func(o *Profile) { o.Scoring, o.MaxAddedTerms = form.Linear, 2 })
	const body = `{"query":{"bool":{"must":[{"match":{"body":"car rental"}},{"nested":{"path":"segments","score_mode":"max","query":{"match":{"segments.text":"car rental"}}}}]}}}`
	added := func() (counts []int) {
		for _, c := range expandBody(t, o, body).Clauses {
			counts = append(counts, len(c.Added))
		}
		return counts
	}
	check.Equal(t, []int{1, 1}, added(), "without segments")
	o.Segments = []form.Segments{bodySegments(nil)}
	check.Equal(t, []int{1, 2, 1}, added(), "with segments")
}

// Where segments find, too, they do so in what only counts.
func TestSearchesWithoutScoresFindTheSame(t *testing.T) {
	replace := bodySegments(func(s *form.Segments) { s.Replace, s.InnerHits = true, 1 })
	for _, body := range []string{`{"size":0,"query":{"match":{"body":"car"}}}`, `{"sort":"n","query":{"match":{"body":"car"}}}`} {
		r := expandNested(t, widening(), body, replace)
		check.That(t, strings.Contains(string(r.Body), `{"nested":{"path":"segments"`), "%s became %s", body, r.Body)
	}
}
