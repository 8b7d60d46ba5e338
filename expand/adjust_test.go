package expand

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/expand/form"
	"github.com/akin-search/akin/expand/reason"
)

func boostsOf(r *Result) map[string]float64 {
	boosts := map[string]float64{}
	for i := range r.Clauses {
		for _, a := range r.Clauses[i].Added {
			boosts[a.Term] = a.Boost
		}
		for _, f := range r.Clauses[i].Feedback {
			boosts[f.Term] = f.Boost
		}
	}
	return boosts
}

func TestAdjustedTermsCountForMoreOrLess(t *testing.T) {
	for _, scoring := range []form.Scoring{form.Linear, form.Grouped, form.Saturated} {
		c, m := rental(t)
		e := New(c, m, with(func(o *Profile) { o.Scoring = scoring }))
		expanded := func(adjusted ...Adjustment) *Result {
			r := expanded(t, e, &Request{Index: "docs", Body: []byte(carRental), Changes: Changes{Adjusted: adjusted}})
			return r
		}
		before := boostsOf(expanded())
		changed := expanded(Adjustment{"automobile", 0}, Adjustment{"hire", 2}, Adjustment{"lease", 0.5}, Adjustment{"unknown", 2})
		after := boostsOf(changed)
		_, there := after["automobile"]
		check.That(t, !there && !strings.Contains(string(changed.Body), "automobile"), "%v: automobile is still there: %s", scoring, changed.Body)
		for term, factor := range map[string]float64{"hire": 2, "lease": 0.5} {
			got, want := after[term], factor*before[term]
			check.That(t, got >= want*0.999 && got <= want*1.001, "%v: the boost of %s is %v, want %v", scoring, term, got, want)
		}
		check.Equal(t, "hire", changed.Clauses[0].Added[0].Term, scoring)
		none := expanded(Adjustment{"automobile", 0}, Adjustment{"hire", 0}, Adjustment{"lease", 0})
		check.That(t, !none.Rewritten && none.Reason == reason.NoNeighbors, "%v: without all terms it is rewritten: %v, %s", scoring, none.Rewritten, none.Reason)
		again := boostsOf(expanded())
		check.That(t, again["automobile"] == before["automobile"], "%v: the next search is adjusted, too", scoring)
	}
}

func TestMatchingAndStrengthChangeForOneSearch(t *testing.T) {
	c, m := rental(t)
	e := New(c, m, with(func(o *Profile) { o.Matching, o.Scoring = Widen, form.Grouped }))
	ask := func(changes Changes) *Result {
		return expanded(t, e, &Request{Index: "docs", Body: []byte(carRental), Changes: changes})
	}
	same, double := Same, 2.0
	ordered, strong, after := ask(Changes{Matching: &same}), ask(Changes{Strength: &double}), ask(Changes{})
	check.That(t, ordered.Parts[0].How == Ordered && after.Parts[0].How == Widened, "the words do %q, and then %q", ordered.Parts[0].How, after.Parts[0].How)
	weak := boostsOf(after)["hire"]
	check.That(t, weak > 0 && boostsOf(strong)["hire"] > weak, "twice the strength gives %v, not more than %v", boostsOf(strong)["hire"], weak)
}

func TestAdjustedTermsOfTheFirstHits(t *testing.T) {
	body := []byte(`{"query":{"match":{"body":"car"}}}`)
	_, plain := expandTwice(t, &Request{Body: body})
	_, without := expandTwice(t, &Request{Body: body, Changes: Changes{Adjusted: []Adjustment{{"tariff", 0}}}})
	_, twice := expandTwice(t, &Request{Body: body, Changes: Changes{Adjusted: []Adjustment{{"tariff", 2}}}})
	before, after := boostsOf(plain)["tariff"], boostsOf(twice)["tariff"]
	check.That(t, before != 0 && after >= before*1.999 && after <= before*2.001, "the boost is %v, and doubled %v", before, after)
	_, there := boostsOf(without)["tariff"]
	check.That(t, !there && !strings.Contains(string(without.Body), "tariff"), "it is still there: %s", without.Body)
}

func TestAdjustedTermsOfTheModeHard(t *testing.T) {
	e := hardRental(t, nil)
	r, err := e.Expand(t.Context(), &Request{Index: "docs", Body: []byte(carRental), Changes: Changes{Adjusted: []Adjustment{{"lease", 0}}}})
	check.That(t, err == nil && r.Rewritten && !strings.Contains(string(r.Body), "lease") && slices.ContainsFunc(r.Clauses, func(c Explanation) bool { return c.Form == "hard" }), "%v, %+v", err, r)
}

// The first page of a point in time is kept for all who ask for the next ones.
func TestAdjustedPagesLeaveTheNextOnes(t *testing.T) {
	c, m := rental(t)
	e := New(c, m, widening())
	page := func(more string, adjusted ...Adjustment) map[string]float64 {
		r := expanded(t, e, &Request{Body: []byte(pitPage(0, `{"match":{"body":"car rental"}}`, more)), Changes: Changes{Adjusted: adjusted}})
		return boostsOf(r)
	}
	first := page("")
	page(secondPage, Adjustment{"automobile", 0}, Adjustment{"hire", 2})
	next := page(secondPage)
	check.That(t, len(first) != 0 && maps.Equal(next, first), "the first page adds %v, and one after an adjusted page %v", first, next)
}

// The terms of the first hits of an adjusted search are not those of other
// searches.
func TestAdjustedFirstPageOfAPointInTimeIsNotKept(t *testing.T) {
	c, m := rental(t)
	c.docFreqs["tariff"] = 7
	e := New(c, m, with(feedback))
	req := Request{Body: []byte(pitPage(0, `{"match":{"body":"car"}}`, "")), Changes: Changes{Adjusted: []Adjustment{{"automobile", 0}}}}
	withHits(t, e, expanded(t, e, &req), firstHits)
	r, err := e.Expand(t.Context(), &Request{Body: req.Body})
	check.That(t, err == nil && r.firstPass() != nil, "%v: the first page for others asks for no first hits of its own: %+v", err, r)
}
