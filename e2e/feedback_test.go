package e2e

import (
	"fmt"
	"slices"
	"testing"
)

// A feedbackTerm is what an explanation says of a term of the first hits.
type feedbackTerm struct {
	Term          string
	Documents     []string
	Weight, Boost float64
}

// explainedFeedback sends a search with one clause, and returns what its
// explanation says of feedback.
func explainedFeedback(t *testing.T, a *akin, r rawRequest) []feedbackTerm {
	t.Helper()
	r.header = append(r.header, "X-Akin: explain")
	shown := recordOf[struct {
		Clauses []struct{ Feedback []feedbackTerm }
	}](t, a, exchange(t, a.url, r))
	if len(shown.Clauses) != 1 {
		t.Fatalf("%+v", shown)
	}
	return shown.Clauses[0].Feedback
}

// TestFeedbackOrdersHits: "0" is the first of several with the same score, and
// with feedback "a", since most of the first hits speak of tariffs.
func TestFeedbackOrdersHits(t *testing.T) {
	const index, car = "akin-e2e-feedback", `{"query":{"match":{"body":"car"}}}`
	docs := []document{
		{"0", section{"body": "car blue"}},
		{"a", section{"body": "car tariff"}},
		{"b", section{"body": "car tariff"}},
		{"c", section{"body": "automobile tariff"}},
		{"sky", section{"body": "car sky"}},
		{"other", section{"body": "automobile sea"}},
	}
	for i := range 60 {
		docs = append(docs, document{fmt.Sprint("filler", i), section{"body": "filler of another kind"}})
	}
	eachEngine(t, func(t *testing.T, e *engine) {
		e.makeIndex(t, index, oneShard(`"body":{"type":"text","analyzer":"whitespace"}`))
		e.index(t, index, docs)
		a := setup(t, e, section{
			"expansion": section{"feedback": section{"documents": 6}},
			"profiles":  section{"without": section{"feedback": section{"documents": 0}}},
			"matrices":  matrices("m", build(t, "--from-tsv", requestFixture("matrix.tsv"))),
		})
		plain, with := a.find(t, index+"?akin_profile=without", car), a.find(t, index, car)
		if plain.ids()[0] != "0" || !slices.Equal(with.ids()[:2], []string{"a", "b"}) || !slices.Equal(plain.sorted(), with.sorted()) {
			t.Errorf("order %v, without feedback %v", with.ids(), plain.ids())
		}
		shown := explainedFeedback(t, a, post("/"+index+"/_search", car))
		if !slices.ContainsFunc(shown, func(f feedbackTerm) bool {
			return f.Term == "tariff" && slices.Contains(f.Documents, "a") && !slices.Contains(f.Documents, "0") && f.Weight > 0 && f.Weight < 1 && f.Boost > 0
		}) {
			t.Errorf("no tariff of a, and not of 0, in %+v", shown)
		}
		if n := a.metric(t, feedbackMetric, `result="used"`); n != 2 {
			t.Errorf("%v searches had feedback", n)
		}
	})
}
