package form

import "github.com/akin-search/akin/expand/terms"

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

// What a rescored search looks for, and what orders its best hits. Measured
// on five judged collections and 200,000 documents (docs/performance.md).
const (
	// FoundTerms is how many added terms such a search looks for. As many as
	// are looked for where the same search cannot be rescored, is only counted,
	// or reaches further down, so that totals agree.
	FoundTerms = 16
	// findRatio times λ of the saturated form, 0.8 for its default, is λ of
	// these terms in the query. It only chooses the hits that are ordered again.
	findRatio = 3.2
	// For a text of n terms, the rescore takes leastTerms + n·perTerm terms of
	// those that are there; of those not looked for, only terms in at least one
	// of rareShare documents: others are seldom in the window.
	leastTerms = 5
	perTerm    = 5
	rareShare  = 1000
)

// ShareFound shares the terms that a rescored search looks for between the
// fields, as they share all added terms.
func (p *Plan) ShareFound() {
	all := p.Added()
	for _, f := range Fields(p.Clauses) {
		f.Found = len(f.Added)
		if all > FoundTerms {
			f.Found = (f.Found*FoundTerms + all - 1) / all
		}
	}
}

// KeepFound takes back the terms that a rescored search would not look for.
func (c *Clause) KeepFound() {
	for k := range c.Fields {
		f := &c.Fields[k]
		f.Added = f.found()
	}
}

func (f *Field) found() []terms.Candidate { return f.Added[:min(f.Found, len(f.Added))] }

// DropRare drops the terms that are not worth their cost in a rescore.
func (c *Clause) DropRare() {
	for i := range c.Fields {
		f := &c.Fields[i]
		if f.Terms == nil {
			continue
		}
		kept, all := f.found(), f.Added
		most := min(leastTerms+perTerm*len(f.Terms.Origins), len(all))
		for k := f.Found; k < most; k++ {
			if all[k].DocFreq*rareShare >= f.Stats.DocCount {
				kept = append(kept, all[k])
			}
		}
		f.Added = kept
	}
}
