package form

import (
	"math"

	"github.com/akin-search/akin/expand/query"
	"github.com/akin-search/akin/expand/terms"
)

// The linear form adds one flat clause for each term to the original, and one
// for each alternative:
//
//	in    {"match":{"f":"a b"}}, c for a
//	out   {"bool":{"should":[the original,{"term":{"f":{"value":"c",…}}}]}}
//	in    with the operator "and" or minimum_should_match
//	out   {"bool":{"filter":[the original or enough words],
//	      "should":[the original,c]}}
//	in    the same, behind the hits of the original
//	out   {"bool":{"should":[a or c, b],"minimum_should_match":…}}
//	in    only what the original matches may match
//	out   {"bool":{"must":[the original],"should":[c]}}
//
// The boosts are λ v_j / w_j².

// linearLambda is the λ of the linear form with the strength 1.
const linearLambda = 0.2

func (w *builder) linear() *query.Query {
	c, q := w.c, w.Bool()
	switch {
	case c.SameMatches():
		q.Must(w.original())
	case w.behind && w.scoresWords():
		return q.Should(w.scoredWords()) // a bool, whose score the caller multiplies
	case c.Counted() && w.behind:
		q.Filter(w.countedWords(w.Bool()).Simple())
	case c.Counted():
		q.Filter(w.countedWords(w.Bool().Should(w.original()))).Should(w.original())
	default:
		q.Should(w.original())
	}
	if c.Parsed.TermCentric() {
		if w.behind {
			w.textWords(q, 0)
		}
		return w.termCentric(q)
	}
	several, fields := w.several(), 0
	more := func(f *Field) bool { return len(f.Added)+len(f.Alternatives) > 0 || w.behind && f.Terms != nil }
	for i := range c.Fields {
		if more(&c.Fields[i]) {
			fields++
		}
	}
	for i := range c.Fields {
		switch {
		case !more(&c.Fields[i]):
		case fields == 1:
			w.addedTo(q, i)
		default:
			several.Should(w.addedTo(w.Bool(), i))
		}
	}
	return q.Should(several.Simple())
}

// addedTo adds what is added to field i to a bool.
func (w *builder) addedTo(to *query.Query, i int) *query.Query {
	f, scored := &w.c.Fields[i], w.divided[i].scored
	if w.behind {
		w.textWords(to, i)
	}
	w.alternatives(to, i)
	for k := range scored {
		a := &scored[k]
		to.Should(w.added(f.Name, a.Term, w.c.Parsed.Boost*f.Boost*linearBoost(f, a, f.idf(a.DocFreq), w.lambda(i))))
	}
	return to.Should(w.set(i))
}

// scoresWords reports whether the words of the clause are counted by what
// scores them, so that the engine looks up each term once. Prefixes and
// alternatives have no score of a word, and words may be in several fields.
func (w *builder) scoresWords() bool {
	c := w.c
	return c.Counted() && !c.Parsed.TermCentric() && c.Parsed.Words == 0 && !c.HasAlternatives() && !c.Parsed.Prefix
}

// scoredWords returns documents with enough words of the text in one of the
// fields. A neighbor counts as its word.
func (w *builder) scoredWords() *query.Query {
	several := w.several()
	for i := range w.c.Fields {
		f := &w.c.Fields[i]
		if f.Analysis == nil {
			continue
		}
		words, times := f.words(), map[string]float64{}
		for _, word := range words {
			for _, term := range word {
				times[term]++
			}
		}
		all := w.Bool()
		for _, word := range words {
			group := w.Bool()
			for _, term := range word {
				w.wordAndAdded(group, i, term, times[term])
			}
			all.Should(group)
		}
		several.Should(all.Minimum(w.minimum(f)))
	}
	return several.Simple()
}

// wordAndAdded adds a term of the text in field i, and what is added for it. It
// is written times times; what is added for it scores once, all together.
func (w *builder) wordAndAdded(to *query.Query, i int, term string, times float64) {
	f, boost := &w.c.Fields[i], w.c.Parsed.Boost*w.c.Fields[i].Boost
	origin, word := f.Terms.Origins.Index(term), boost
	scored := func(a *terms.Candidate) float64 {
		return boost * linearBoost(f, a, f.idf(a.DocFreq), w.lambda(i)) / times
	}
	for k := range f.Added {
		if a := &f.Added[k]; a.Word && a.Term == term {
			word += scored(a)
		}
	}
	to.Should(w.Term(f.Name, term, word, ""))
	for k := range f.Added {
		if a := &f.Added[k]; a.CountsAs(origin) {
			to.Should(w.added(f.Name, a.Term, scored(a)))
		}
	}
}

// termCentric adds each added term once, scored by its best field.
func (w *builder) termCentric(to *query.Query) *query.Query {
	c := w.c
	lead := &w.divided[0]
	w.alternatives(to, 0)
	for k := range lead.scored {
		a, best := &lead.scored[k], w.several()
		for i := range c.Fields {
			if f := &c.Fields[i]; a.In(i) { // the engine multiplies by the idf of this field
				best.Should(w.added(f.Name, a.Term, c.Parsed.Boost*f.Boost*linearBoost(f, a, a.FieldIDFs[i], w.lambda(0))))
			}
		}
		to.Should(best.Simple())
	}
	sets := w.several()
	for i := range c.Fields {
		sets.Should(w.set(i))
	}
	return to.Should(sets.Simple())
}

// alternatives adds those of field i where scores are sums: for the same words
// the best of them, with β times the score of these words. To order hits, a
// document that has all of these words gets nothing more. Where words are
// counted, one that the original does not find gets the score of the words that
// it has. In a term-centric clause the best field counts.
func (w *builder) alternatives(to *query.Query, i int) {
	c := w.c
	f := &w.c.Fields[i]
	if f.Reason != "" || c.HasReadings() { // which are beside the original
		return
	}
	groups := f.hosted()
	for _, g := range groups {
		score := 0.0
		for _, o := range g.hosts {
			score += o.X * f.weight(o.IDF)
		}
		best := w.Best()
		for _, a := range g.by {
			best.Should(w.inFields(i, a.In, func(at int, boost, weight float64) *query.Query {
				return w.namedAlternative(at, a, boost*a.Similarity*score/weight)
			}))
		}
		if w.role == finding {
			to.Should(best.Simple())
			continue
		}
		words := w.Bool()
		for _, o := range g.hosts {
			word := w.several()
			for at := range c.Fields {
				if c.Fields[at].Analysis != nil { // others may be of numbers
					word.Should(w.Term(c.Fields[at].Name, o.Term, 1, ""))
				}
			}
			words.Filter(word.Simple())
		}
		to.Should(w.Bool().Must(best.Simple()).MustNot(words))
	}
	if w.role == finding || w.behind || !c.Counted() || len(groups) == 0 || len(groups) == 1 && len(groups[0].hosts) == len(f.Terms.Origins) {
		return
	}
	to.Should(w.textWords(w.Bool().MustNot(w.original()), i))
}

// textWords adds the words of the text in field i.
func (w *builder) textWords(to *query.Query, i int) *query.Query {
	f := &w.c.Fields[i]
	for k := range f.Terms.Origins {
		o := &f.Terms.Origins[k]
		to.Should(w.inFields(i, o.In, func(at int, boost, weight float64) *query.Query {
			return w.Term(w.c.Fields[at].Name, o.Term, boost*o.X*(f.weight(o.IDF)/weight), "")
		}))
	}
	return to
}

// inFields combines what write returns for field i or, in a term-centric
// clause, for each field where the idf is not 0.
func (w *builder) inFields(i int, idf func(at int) float64, write func(at int, boost, weight float64) *query.Query) *query.Query {
	best, f := w.several(), &w.c.Fields[i]
	end := i + 1
	if w.c.Parsed.TermCentric() {
		end = len(w.c.Fields)
	}
	for at := i; at < end; at++ {
		if idf(at) > 0 { // the engine multiplies by the idf of this field
			best.Should(write(at, w.c.Parsed.Boost*w.c.Fields[at].Boost, f.weight(idf(at))))
		}
	}
	return best.Simple()
}

// linearBoost returns the factor of an added term, for its idf.
func linearBoost(f *Field, a *terms.Candidate, idf, lambda float64) float64 {
	wj := f.Weighting().Of(idf)
	return a.Score(lambda) / (wj * wj)
}

func (p *Plan) linearLambda() float64 { return min(p.Recipe.LinearFactor*p.Strength.Linear, 1) }

// lambda returns λ of field i in the role of the clause.
func (w *builder) lambda(i int) float64 {
	if w.role == finding {
		return w.divided[i].lambda
	}
	return w.plan.linearLambda()
}

// linearBound returns Σ_j λ v_j + Σ_g max(0, β_g H_g - h_g), where β_g is the
// largest of alternatives for the same words, which have the mass H_g, the
// smallest of them h_g.
func (w *builder) linearBound(i int) float64 {
	f := &w.c.Fields[i]
	scored := w.divided[i].scored
	sum := 0.0
	for k := range scored {
		sum += scored[k].Score(w.lambda(i))
	}
	if w.c.HasReadings() {
		return sum
	}
	for _, g := range f.hosted() { // a document may have all of the words but one
		all := 0.0
		least := math.Inf(1)
		most := 0.0
		for _, o := range g.hosts {
			mass := o.X * o.W * o.W
			all += mass
			least = min(least, mass)
		}
		for _, a := range g.by {
			most = max(most, a.Similarity)
		}
		sum += max(0, most*all-least)
	}
	return sum
}
