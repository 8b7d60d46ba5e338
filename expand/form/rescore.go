package form

import (
	"cmp"
	"math"
	"slices"

	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/expand/terms"
)

// docs/scoring.md says what engines do in a rescore, and where it is not
// possible.
const (
	// queryWeight is what the score of the query counts for: less than the
	// smallest score of the rescore, and enough to order what has none.
	queryWeight = "0.000001"
)

const (
	// wholeShare is [Recipe.Share] where the saturated form is the query.
	wholeShare = 0.5
	// groupedShare is that in the grouped form.
	groupedShare = 0.4
	// Of the added terms only those in at least one of rareShare documents are
	// scored in a rescore: others are seldom in the window.
	rareShare = 500
)

// A division says what the added terms of a field do.
type division struct {
	// scored are scored one by one in the query, and set only find. What a document
	// with any of set scores is setWeight times the mean of their v_j.
	scored, set []terms.Candidate
	setWeight   float64
	// rescored are scored in the rescore, and left are those of them that are not in
	// the query, of a search with names.
	rescored, left []terms.Candidate
}

// divisions returns those of all fields of the plan. All forms and phases find
// the same documents, except where the text itself finds many.
func (p *Plan) divisions() []division {
	fields, added := 0, 0
	for i := range p.Clauses {
		fields += len(p.Clauses[i].Fields)
		added += p.Clauses[i].Added()
	}
	out := make([]division, 0, fields)
	for i := range p.Clauses {
		c := &p.Clauses[i]
		for k := range c.Fields {
			out = append(out, p.divide(c, &c.Fields[k], added))
		}
	}
	return out
}

// divide divides the added terms of a field; all is the number of those of all
// fields of the search.
func (p *Plan) divide(c *ClausePlan, f *Field, all int) division {
	r := p.Recipe
	switch {
	case p.FindOnly, c.Rescored:
		d := f.split(r.Find, all, r.Share*p.lambda(true))
		switch d.rescored = f.Added; {
		case r.Order > 0:
			d.rescored = f.split(r.Order, all, 0).scored
		case !c.Counted(): // which counts words by their terms
			d.rescored, _ = f.common()
		}
		switch {
		case c.SameMatches: // there is nothing to find
			if p.NameAdded {
				d.left = d.rescored
			}
			d.scored, d.set = nil, nil
		case p.FindsMany:
			if p.NameAdded {
				d.left = slices.DeleteFunc(d.set, f.isRare)
			}
			d.set = nil
		}
		return d
	case c.Scoring == Linear && r.Few > 0:
		return f.split(r.Find, all, r.Share*p.lambda(false))
	case c.Scoring == Grouped && r.Few > 0 && !c.Counted():
		return f.split(r.Find, all, groupedShare*p.Strength.Grouped)
	case c.Scoring != Saturated || c.ScoringReason == "" || c.Counted():
		return division{scored: f.Added}
	case c.ScoringReason == reason.Endpoint: // scores of one document or of ratings are those of the rescore
		common, rare := f.common()
		return division{scored: common, set: rare}
	}
	return f.split(r.Whole, all, wholeShare*p.Strength.Saturated)
}

// KeepFew returns those of the added terms that a search of all terms has room
// for, in their order, and at least one.
func (r *Recipe) KeepFew(added []terms.Candidate, all int) []terms.Candidate {
	if r.Few == 0 || all <= r.Few {
		return added
	}
	few := (&Field{Added: added}).split(r.Few, all, 0).scored
	return slices.DeleteFunc(slices.Clone(added), func(a terms.Candidate) bool {
		return !slices.ContainsFunc(few, func(f terms.Candidate) bool { return f.Term == a.Term })
	})
}

// split leaves n of all terms of a search to be scored, or the field's share of
// them, and nearest known words in any case: they are parts of the text.
func (f *Field) split(n, all int, weight float64) division {
	if all <= n {
		return division{scored: f.Added}
	}
	near := 0
	telling := func(a *terms.Candidate) float64 {
		if a.Near {
			return math.Inf(1)
		}
		return a.V * math.Sqrt(float64(a.DocFreq))
	}
	for k := range f.Added {
		if f.Added[k].Near {
			near++
		}
	}
	n = max((len(f.Added)*n+all-1)/all, near)
	byFrequency := slices.Clone(f.Added)
	slices.SortStableFunc(byFrequency, func(a, b terms.Candidate) int { return cmp.Compare(telling(&b), telling(&a)) })
	return division{scored: byFrequency[:n], set: byFrequency[n:], setWeight: weight}
}

// common divides the added terms into those that are worth their cost in a
// rescore, nearest known words among them, and the rare ones.
func (f *Field) common() (common, rare []terms.Candidate) {
	for _, a := range f.Added {
		if f.isRare(a) {
			rare = append(rare, a)
		} else {
			common = append(common, a)
		}
	}
	return common, rare
}

func (f *Field) isRare(a terms.Candidate) bool {
	return !a.Near && a.DocFreq*rareShare < f.Stats.DocCount
}

// FindsMany reports whether a term of the text is in as many documents of the
// field as engines count hits, and page through them, by default.
func (f *Field) FindsMany() bool {
	const many = 10_000
	return len(f.Added) > 0 && f.Terms != nil && slices.ContainsFunc(f.Terms.Origins, func(o terms.Origin) bool { return o.IDF <= f.idf(many) })
}

// setScore is the most that the set adds to the scores of the field, as v_j is
// of a term.
func (d *division) setScore() float64 {
	if len(d.set) == 0 {
		return 0
	}
	sum := 0.0
	for i := range d.set {
		sum += d.set[i].V
	}
	return d.setWeight * sum / float64(len(d.set))
}
