package query

import (
	"encoding/json"
	"testing"
)

func TestQueriesAreWrittenWithTheirDepthAndLeaves(t *testing.T) {
	var q Tree
	original := func() *Query { return q.Raw([]byte(`{"match":{"f":"a b"}}`), 2) }
	many := make([]string, 17)
	for name, tt := range map[string]struct {
		q             *Query
		json          string
		depth, leaves int
	}{
		"term":         {q.Term("f", `a"`, 1, ""), `{"term":{"f":{"value":"a\""}}}`, 1, 1},
		"named":        {q.Term("f", "a", 0.5, "n"), `{"term":{"f":{"value":"a","boost":0.5,"_name":"n"}}}`, 1, 1},
		"few terms":    {q.Terms("f", []string{"a", "b"}, 2), `{"terms":{"f":["a","b"],"boost":2}}`, 1, 2},
		"many terms":   {q.Terms("f", many, 1), "", 1, 1},
		"phrase":       {q.Phrase("f", []string{"a", "b"}, 1, 2, ""), `{"match_phrase":{"f":{"query":"a b","analyzer":"whitespace","slop":1,"boost":2}}}`, 1, 2},
		"span":         {q.Span("f", []string{"a", "", "", "b"}, 0, 1, ""), `{"span_near":{"clauses":[{"span_term":{"f":"a"}},{"span_gap":{"f":2}},{"span_term":{"f":"b"}}],"slop":0,"in_order":true}}`, 2, 4},
		"of a client":  {original(), `{"match":{"f":"a b"}}`, 1, 2},
		"several":      {q.DisMax(0.3).Should(original()).Should(nil).Should(original()), `{"dis_max":{"tie_breaker":0.3,"queries":[{"match":{"f":"a b"}},{"match":{"f":"a b"}}]}}`, 2, 4},
		"one":          {q.DisMax(0.3).Should(original()).Simple(), `{"match":{"f":"a b"}}`, 1, 2},
		"bool":         {q.Bool().Must(q.Bool().Filter(original())).Should(original()).Should(original()).Minimum([]byte("1")).Times(2), `{"bool":{"must":[{"bool":{"filter":[{"match":{"f":"a b"}}]}}],"should":[{"match":{"f":"a b"}},{"match":{"f":"a b"}}],"minimum_should_match":1,"boost":2}}`, 3, 6},
		"bare":         {q.Bool().Must(original()).Filter(original()).Bare(), `{"bool":{"must":{"match":{"f":"a b"}},"filter":{"match":{"f":"a b"}}}}`, 2, 4},
		"script":       {q.Script(&Script{Source: "_score"}, original(), 2, 0), `{"script_score":{"query":{"match":{"f":"a b"}},"script":{"source":"_score","params":{"m":2}}}}`, 2, 2},
		"near":         {q.Near(false, "v", []float32{1, 0.5}, 3, 1, nil), `{"knn":{"field":"v","query_vector":[1,0.5],"k":3,"num_candidates":3,"boost":1}}`, 1, 1},
		"near, filter": {q.Near(true, "v", []float32{1}, 3, 1, q.Bool().Filter(original())), `{"knn":{"v":{"vector":[1],"k":3,"filter":{"bool":{"filter":[{"match":{"f":"a b"}}]}},"boost":1}}}`, 3, 3},
		"nested":       {q.Nested("n", "max", 2, q.Over("f", 1, original())), `{"nested":{"path":"n","ignore_unmapped":true,"score_mode":"max","query":{"function_score":{"query":{"match":{"f":"a b"}},"field_value_factor":{"field":"f","modifier":"reciprocal","missing":1},"boost_mode":"multiply"}},"inner_hits":{"size":2}}}`, 3, 2},
	} {
		written := string(tt.q.Append(nil))
		if !json.Valid([]byte(written)) || tt.json != "" && written != tt.json || tt.q.Depth() != tt.depth || tt.q.Leaves() != tt.leaves {
			t.Errorf("%s: %d levels, %d leaves, %s; want %d, %d, %s", name, tt.q.Depth(), tt.q.Leaves(), written, tt.depth, tt.leaves, tt.json)
		}
	}
}

func TestMemoryIsUsedAgain(t *testing.T) {
	var q Tree
	for range 3 {
		all := q.Bool()
		for range 3 * block {
			all.Should(q.Term("f", "a", 1, ""))
		}
		if n := all.Leaves(); n != 3*block || !json.Valid(all.Append(nil)) {
			t.Errorf("%d leaves: %s", n, all.Append(nil))
		}
		q.Reset()
	}
	if n := testing.AllocsPerRun(10, func() { q.Bool().Should(q.Term("f", "a", 1, "")); q.Reset() }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestNumbersFitInto32Bits(t *testing.T) {
	for _, v := range []float64{0, 1e300, 1e39, 5e-324, 0.1} {
		written := appendNumber(nil, v)
		var back float32
		if err := json.Unmarshal(written, &back); err != nil {
			t.Errorf("%v is written %s: %v", v, written, err)
		}
	}
}
