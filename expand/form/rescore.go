package form

import (
	"cmp"
	"math"
	"slices"

	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/expand/terms"
)

// docs/performance.md says what engines do in a rescore, and where it is not
// possible.
const (
	// RescoreWindow is how many of the best hits are ordered again, on every page
	// of them.
	RescoreWindow = 100
	// queryWeight is what the score of the query counts for: less than the
	// smallest score of the rescore, and enough to order what has none.
	queryWeight = "0.000001"
)

// What finds and what orders, measured on five judged collections and 200,000
// documents (docs/performance.md). A query that costs less than the whole form
// scores some of the added terms one by one, those with the largest v_j·√df_j.
// The others are a set that only finds: a document with any of them gets a
// constant, a share of what a middling one of them brings.
const (
	// Where a rescore orders the best hits: how many terms of the search are
	// scored, the share, and the factor of λ of the saturated form.
	findTerms = 6
	findShare = 0.7
	findRatio = 3.2
	// Where the form is the query because the hits cannot be rescored.
	aloneTerms = 12
	aloneShare = 0.5
	// Of the added terms only those in at least one of rareShare documents are
	// scored in a rescore: others are seldom in the window.
	rareShare = 500
)

// Division says what the added terms of a field do.
type Division struct {
	// Scored are scored one by one in the query, and Set only find. What a document
	// with any of Set scores is SetWeight times the mean of their v_j.
	Scored, Set []terms.Candidate
	SetWeight   float64
	// Rescored are scored in the rescore.
	Rescored []terms.Candidate
}

// Divide divides the added terms of each field into parts, for the forms and
// the phase of the plan. All forms and phases find the same documents, but
// where the text itself finds many.
func (p *Plan) Divide() {
	all := p.Added()
	for c, f := range Fields(p.Clauses) {
		f.Division = Division{Scored: f.Added}
		switch saturated := p.Strength.Saturated; {
		case p.FindOnly, c.Rescored:
			f.split(findTerms, all, findShare*p.lambda(true))
			if f.Rescored = f.Added; !c.Counted() { // which counts words by their terms
				f.Rescored, _ = f.common()
			}
			if p.FindsMany {
				f.Set = nil
			}
		case c.Scoring != Saturated || c.ScoringReason == "" || c.Counted():
		case c.ScoringReason == reason.Endpoint: // scores of one document or of ratings are those of the rescore
			f.Scored, f.Set = f.common()
		default:
			f.split(aloneTerms, all, aloneShare*saturated)
		}
	}
}

// split leaves n of all terms of a search to be scored, or the field's share of
// them.
func (f *FieldPlan) split(n, all int, weight float64) {
	if all <= n {
		return
	}
	n = (len(f.Added)*n + all - 1) / all
	byFrequency := slices.Clone(f.Added)
	telling := func(a *terms.Candidate) float64 { return a.V * math.Sqrt(float64(a.DocFreq)) }
	slices.SortStableFunc(byFrequency, func(a, b terms.Candidate) int { return cmp.Compare(telling(&b), telling(&a)) })
	f.Scored, f.Set, f.SetWeight = byFrequency[:n], byFrequency[n:], weight
}

// common returns the added terms that are worth their cost in a rescore, and
// the others.
func (f *FieldPlan) common() (common, rare []terms.Candidate) {
	for _, a := range f.Added {
		if a.DocFreq*rareShare >= f.Stats.DocCount {
			common = append(common, a)
		} else {
			rare = append(rare, a)
		}
	}
	return common, rare
}

// FindsMany reports whether a term of the text is in as many documents of the
// field as engines count hits, and page through them, by default.
func (f *FieldPlan) FindsMany() bool {
	const many = 10_000
	return len(f.Added) > 0 && f.Terms != nil && slices.ContainsFunc(f.Terms.Origins, func(o terms.Origin) bool { return o.IDF <= f.idf(many) })
}

// setScore is the most that the set adds to the scores of the field, as v_j is
// of a term.
func (f *FieldPlan) setScore() float64 {
	if len(f.Set) == 0 {
		return 0
	}
	sum := 0.0
	for i := range f.Set {
		sum += f.Set[i].V
	}
	return f.SetWeight * sum / float64(len(f.Set))
}
