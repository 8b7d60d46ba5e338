package e2e

import (
	"encoding/json"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// exactFormula are the settings with which the boosts are those of the formula
// (docs/scoring.md).
var exactFormula = section{
	"scoring": "linear", "fit": false, "strength": 5, "effort": "high", "max_added_terms": 200, "max_doc_share": 1, "expressions": false,
	"nearest_words": false,
}

// TestWithoutFitTheBoostsAreThoseOfTheFormula computes x' − x = W⁻¹(Wx)ᵀS − x
// for judged queries, from the exported S and the document frequencies that the
// engine counts, and compares it with the boosts of all terms that akin writes
// beside the original, those of the query among them.
func TestWithoutFitTheBoostsAreThoseOfTheFormula(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engine) {
		c := loadCollection(t, "med")
		index, _ := e.judged(t, c)
		matrix := e.learn(t, index+" of 15", func() []string { return []string{"--index", index, "--top", "15", "--language-model", "none"} })
		s := readPairs(t, mustAkin(t, "matrix", "export", "--out", "-", matrix))
		a := setupWide(t, e, section{"expansion": exactFormula, "matrices": matrices("s", matrix)})
		compared, terms, ofQuery := 0, 0, 0
		for _, q := range c.queries[:10] {
			x := e.counts(t, index, q.text)
			want := e.added(t, index, x, s)
			if len(want) > 200 {
				continue // more than akin adds
			}
			original := `{"match":{"body":` + quote(q.text) + `}}`
			got := boostsBeside(t, original, a.explain(t, index, `{"query":`+original+`}`).Body)
			for term := range maps.Keys(got) {
				if _, ok := want[term]; !ok {
					t.Errorf("%s: %s has the boost %v, but is no neighbor", q.id, term, got[term])
				}
			}
			for term, delta := range want {
				if math.Abs(got[term]-delta) > 1e-6*delta {
					t.Errorf("%s: %s has the boost %v, x' − x is %v", q.id, term, got[term], delta)
				}
				if x[term] > 0 {
					ofQuery++
				}
			}
			compared, terms = compared+1, terms+len(want)
		}
		if compared < 5 || ofQuery < 5 {
			t.Errorf("%d queries have few enough terms, and %d terms of queries are neighbors of others", compared, ofQuery)
		}
		t.Logf("%d boosts of %d queries, %d of their own terms", terms, compared, ofQuery)
		checkNoFallback(t, a)
	})
}

// readPairs reads an exported matrix: by term, the similarities of its
// neighbors. They are written with six decimals and stored in steps of 1/65535
// (docs/matrices.md).
func readPairs(t *testing.T, tsv string) map[string]map[string]float64 {
	t.Helper()
	s := map[string]map[string]float64{}
	for line := range strings.Lines(tsv) {
		columns := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(columns) != 3 {
			t.Fatalf("line %q", line)
		}
		v, err := strconv.ParseFloat(columns[2], 64)
		if err != nil {
			t.Fatal(err)
		}
		if s[columns[0]] == nil {
			s[columns[0]] = map[string]float64{}
		}
		s[columns[0]][columns[1]] = math.Round(v*65535) / 65535
	}
	return s
}

// counts returns x, how often the text has each term.
func (e *engine) counts(t *testing.T, index, text string) map[string]float64 {
	t.Helper()
	answer := ask[struct{ Tokens []struct{ Token string } }](t, e.cluster, http.MethodPost, "/"+index+"/_analyze",
		toJSON(t, section{"field": "body", "text": text}))
	x := map[string]float64{}
	for _, token := range answer.Tokens {
		x[token.Token]++
	}
	return x
}

// added returns Σ_i x_i w_i s_ij / w_j over the i that are not j, w = √idf, for
// each j of which it is not 0 and that a document has.
func (e *engine) added(t *testing.T, index string, x map[string]float64, s map[string]map[string]float64) map[string]float64 {
	t.Helper()
	filters := section{}
	for i := range x {
		filters[i] = section{"term": section{"body": i}}
		for j := range s[i] {
			filters[j] = section{"term": section{"body": j}}
		}
	}
	answer := ask[struct {
		Aggregations struct {
			All struct {
				Count float64 `json:"doc_count"`
				With  struct {
					Buckets map[string]struct {
						Count float64 `json:"doc_count"`
					}
				}
			}
		}
	}](t, e.cluster, http.MethodPost, "/"+index+"/_search", toJSON(t, section{"size": 0, "aggs": section{"all": section{
		"filter": section{"exists": section{"field": "body"}}, "aggs": section{"with": section{"filters": section{"filters": filters}}},
	}}})).Aggregations.All
	n := answer.Count
	w := func(term string) float64 {
		df := answer.With.Buckets[term].Count
		return math.Sqrt(math.Log(1 + (n-df+0.5)/(df+0.5)))
	}
	delta := map[string]float64{}
	for i, xi := range x {
		for j, sij := range s[i] {
			if answer.With.Buckets[j].Count > 0 && i != j {
				delta[j] += xi * w(i) * sij / w(j)
			}
		}
	}
	return delta
}

// boostsBeside returns the boosts of the term queries that stand beside the
// original, which comes first and is not changed.
func boostsBeside(t *testing.T, original string, body json.RawMessage) map[string]float64 {
	t.Helper()
	var written struct {
		Query struct {
			Bool struct{ Should []json.RawMessage }
		}
	}
	if err := json.Unmarshal(body, &written); err != nil || len(written.Query.Bool.Should) == 0 {
		t.Fatalf("%v: %s", err, body)
	}
	should := written.Query.Bool.Should
	if string(should[0]) != original {
		t.Errorf("the original became %s", should[0])
	}
	boosts := map[string]float64{}
	for _, q := range should[1:] {
		var added struct {
			Term struct {
				Body struct {
					Value string
					Boost float64
				}
			}
		}
		added.Term.Body.Boost = 1 // if it is not written
		if err := json.Unmarshal(q, &added); err != nil {
			t.Fatal(err)
		}
		boosts[added.Term.Body.Value] = added.Term.Body.Boost
	}
	if len(boosts) != len(should)-1 {
		t.Errorf("%d clauses for %d terms: %v", len(should)-1, len(boosts), slices.Sorted(maps.Keys(boosts)))
	}
	return boosts
}
