package form

import (
	"cmp"
	"math"
	"slices"

	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/expand/terms"
)

// docs/scoring.md says what engines do in a rescore, and when it is not
// possible.
const (
	// queryWeight is the factor of the query's score in a rescore. It is less than
	// the smallest rescore score, and enough to order hits without one.
	queryWeight = "0.000001"
)

const (
	// wholeShare is [Recipe.Share] if the saturated form is the query.
	wholeShare = 0.5
	// groupedShare is [Recipe.Share] in the grouped form.
	groupedShare = 0.4
	// A rescore scores only added terms that are in at least one of rareShare
	// documents. Others are seldom in the window.
	rareShare = 500
)

// A division says what the added terms of a field do.
type division struct {
	// The query scores the terms in scored one by one, and set only finds. A
	// document with any of set scores setWeight times the mean of their v_j.
	scored, set []terms.Candidate
	setWeight   float64
	// lambda is λ of a query that only finds.
	lambda float64
	// rescored are scored in the rescore. left are those of them that the query
	// lacks, if added terms have names.
	rescored, left []terms.Candidate
}

// divisions returns the divisions of the fields of a clause, in the given
// memory if there is room. all is the number of added terms in the whole
// search. All forms and phases find the same documents, unless the text itself
// finds many.
func (p *Plan) divisions(memory []division, c *Clause, all int) []division {
	for k := range c.Fields {
		memory = append(memory, p.divide(c, &c.Fields[k], all))
	}
	return memory
}

func (p *Plan) divide(c *Clause, f *Field, all int) division {
	r := p.Recipe
	switch {
	case p.FindOnly, c.Rescored:
		d := f.split(r.Find, all, 0)
		d.lambda = p.findLambda(f, &d)
		d.setWeight = r.Share * d.lambda
		d.rescored = f.Added
		switch {
		case c.Counted() && !c.AsTypedFirst: // whose words are counted with all terms
		case r.Order > 0:
			d.rescored = f.split(r.Order, all, 0).scored
		default:
			d.rescored, _ = f.common()
		}
		switch {
		case c.SameMatches(), c.Orders: // terms find nothing
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
	case c.AsTypedFirst && c.Scoring == Linear: // few documents are found, so that each term may score
		return division{scored: f.Added}
	case c.Scoring == Linear && r.Few > 0:
		return f.split(r.Find, all, r.Share*p.linearLambda())
	case c.Scoring == Grouped && r.Few > 0 && !c.Counted():
		return f.split(r.Find, all, groupedShare*p.Strength.Grouped)
	case c.Scoring != Saturated || c.ScoringReason == "" || c.Counted():
		return division{scored: f.Added}
	case c.ScoringReason == reason.Endpoint: // scores of one document or for ratings must be those of the rescore
		common, rare := f.common()
		return division{scored: common, set: rare}
	}
	return f.split(r.Whole, all, wholeShare*p.Strength.Saturated)
}

// findShare is how much added terms score together at most in a query that only
// finds, as a share of the largest possible score of the text. More would push
// the best hits of the text out of the window.
const findShare = 0.6

// findLambda returns λ of a query that only finds, so that λ·(Σ_j v_j of the
// terms in scored + Share · mean v_j of those in set) is at most findShare of
// the mass of the text. Nearest known words are words of the text.
func (p *Plan) findLambda(f *Field, d *division) float64 {
	most, sum := min(p.Recipe.FindFactor*p.Strength.Saturated, 1), 0.0
	for k := range d.scored {
		if a := &d.scored[k]; !a.Near {
			sum += a.V
		}
	}
	for k := range d.set {
		sum += p.Recipe.Share * d.set[k].V / float64(len(d.set))
	}
	if sum == 0 {
		return most
	}
	return min(most, findShare*f.mass()/sum)
}

// KeepFew returns the field's share of the terms that the recipe adds to a
// search with all terms in total, in their order. It keeps at least one.
func (r *Recipe) KeepFew(added []terms.Candidate, all int) []terms.Candidate {
	return keep(added, r.Few, all)
}

// LeaveOutSets leaves out terms that a query would only find by. The forms that
// score each term, or need it to order or to count, keep it.
func (p *Plan) LeaveOutSets() {
	all := p.added()
	for i := range p.Clauses {
		c := &p.Clauses[i]
		if c.Counted() || c.SameMatches() || c.Orders || c.Scoring != Linear || !p.FindOnly && p.Recipe.Few == 0 {
			continue
		}
		for k := range c.Fields {
			c.Fields[k].Added = keep(c.Fields[k].Added, p.Recipe.Find, all)
		}
	}
}

// keep returns the field's share of n terms out of all terms of the search, in
// their order, and at least one. An n of 0 is no limit.
func keep(added []terms.Candidate, n, all int) []terms.Candidate {
	if n == 0 || all <= n || len(added) == 0 {
		return added
	}
	few := (&Field{Added: added}).split(n, all, 0).scored
	return slices.DeleteFunc(slices.Clone(added), func(a terms.Candidate) bool {
		return !slices.ContainsFunc(few, func(f terms.Candidate) bool { return f.Term == a.Term })
	})
}

// split scores the field's share of n terms out of all terms of the search, and
// always the nearest known words, which replace words of the text, and words of
// the text itself, which find nothing. The other terms become the set, with the
// given weight.
func (f *Field) split(n, all int, weight float64) division {
	if all <= n {
		return division{scored: f.Added}
	}
	always := 0
	telling := func(a *terms.Candidate) float64 {
		if a.Near || a.Word {
			return math.Inf(1)
		}
		return a.V * math.Sqrt(float64(a.DocFreq))
	}
	for k := range f.Added {
		if f.Added[k].Near || f.Added[k].Word {
			always++
		}
	}
	n = max((len(f.Added)*n+all-1)/all, always)
	byFrequency := slices.Clone(f.Added)
	slices.SortStableFunc(byFrequency, func(a, b terms.Candidate) int { return cmp.Compare(telling(&b), telling(&a)) })
	return division{scored: byFrequency[:n], set: byFrequency[n:], setWeight: weight}
}

// common divides the added terms into those that a rescore should score,
// including nearest known words and words of the text, and the rare ones.
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
	return !a.Near && !a.Word && a.DocFreq*rareShare < f.Stats.DocCount
}

// FindsMany reports whether a term of the text is in as many documents of the
// field as engines by default count and page through.
func (f *Field) FindsMany() bool {
	const many = 10_000
	return len(f.Added) > 0 && f.Terms != nil && slices.ContainsFunc(f.Terms.Origins, func(o terms.Origin) bool { return o.IDF <= f.idf(many) })
}

// setScore returns the most that the set adds to the scores of the field, on
// the scale of v_j.
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
