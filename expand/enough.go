package expand

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/akin-search/akin/expand/dsl"
	"github.com/akin-search/akin/expand/form"
	"github.com/akin-search/akin/expand/reason"
)

// How [Auto] works: a search is expanded so that related words only put its hits
// in order. If it finds fewer hits than its [Part.Enough] says, the caller expands
// it again with [Request.Again], and the client gets the answer to that: related
// words find documents, too. If the frequencies of its words tell that it cannot
// find enough, the first expansion is the wide one. What counts as much as a word
// of the text, an alternative of package terms, always finds. Where hits are not
// sorted by score, nothing else does, and nothing is put in order. Where words are
// counted, nothing is either: the hits of the search as typed keep their order, and
// come first if it is expanded again.

// What added words do in a search.
const (
	Ordered = "ordered" // related words only put the hits in order
	Widened = "widened" // related words find documents, too
	Exact   = "exact"   // there are only words and expressions that count as much as the text's
)

// An Enough says how many hits are enough.
type Enough struct {
	// Hits is the number: a search that finds fewer is expanded again. 0 is none.
	Hits int
	// Page is how many hits the answer has at least if there are more than it has.
	// It tells how much a search without a total finds. 0 if it does not.
	Page int
}

// ordering has the related words of clauses only put the hits in order, and
// leaves them out where nothing does, where the order stays, and where they
// would change which hits there are.
func (s *search) ordering(clauses []form.Clause) {
	for i := range clauses {
		c := &clauses[i]
		switch {
		case s.unscored, s.Scores.Sorted:
			c.DropAdded(reason.NoScores)
		case s.Scores.Min: // other scores reach it
			c.DropAdded(reason.MinScore)
		case s.asTyped(c):
			c.DropAdded(reason.AsTyped)
		case c.HasAlternatives() && !c.HasReadings():
			c.Orders = true
		default:
			c.Matches = max(c.Matches, dsl.Same)
		}
	}
}

// perWord is how many neighbors each word of a text gets of which all words,
// or some number of them, must match. It is fewPerWord with effort low, and
// where a field has manyDocs documents: each neighbor costs the engine a
// look-up in each segment, and more the more documents have it. Twelve for the
// whole text leave words without any, so that the search still finds nothing.
const (
	perWord, fewPerWord = 8, 4
	manyDocs            = 100_000
)

// asTyped reports whether the hits of a clause as typed keep their order,
// and come before those that related words find: where words are counted,
// and nothing but the engine's scores puts hits in order. Those of a
// more_like_this do not: it is a search for what is similar.
func (s *search) asTyped(c *form.Clause) bool {
	o := s.profile
	return c.Counted() && c.Parsed.Like == nil && o.Matching == Auto && s.mode == ModeBM25 && o.Feedback.documents(s.req.Feedback) == 0 && !s.Scores.Min
}

// how returns what the added words of a plan do.
func how(plan *form.Plan) string {
	ordered, exact := false, false
	for i := range plan.Clauses {
		c := &plan.Clauses[i]
		switch {
		case (c.Added() > 0 && !c.Orders || c.HasOptional() || len(c.Vectors) > 0) && !c.SameMatches():
			return Widened
		case c.Added() > 0, c.Exact, len(c.Vectors) > 0, c.HasBeside():
			ordered = true
		}
		exact = exact || c.HasAlternatives()
	}
	if exact && !ordered {
		return Exact
	}
	return Ordered
}

// enough returns how many hits are enough for a search that is ordered,
// given the clauses with all chosen terms, or that it must find fewer.
func (a *expansion) enough(clauses []form.Clause) (enough Enough, tooFew bool) {
	s, least := a.s, a.s.profile.Enough
	adds := false
	open, counted := false, false // some clause counts no words, and counts those of each hit
	for i := range clauses {
		c := &clauses[i]
		adds = adds || (c.Added() > 0 || len(c.Vectors) > 0 || c.HasOptional()) && matchesOf(c) < dsl.Same
		open = open || c.Reason == "" && !c.Counted()
		counted = counted || c.Reason == "" && c.Counted() && required(c.Parsed.Path)
	}
	if counted || !open {
		least = s.profile.EnoughAll
	}
	switch {
	case !adds, least == 0, s.Scores.Sorted, s.Hybrid, searchesVectors(s.Query.Of(s.Body)), s.KNN, s.Fused, s.Compound:
		return Enough{}, false // it finds by other means, or nothing more can be found
	case a.mostHits(clauses) < float64(least) && !s.nested:
		return Enough{}, true
	case s.parameters.Get("scroll") != "", s.Scores.FirstOnly, s.req.Fixed == reason.Endpoint,
		s.req.Endpoint != EndpointSearch && s.req.Endpoint != EndpointCount && s.req.Endpoint != EndpointMultiSearch:
		return Enough{}, false // no answer tells how much the search finds
	}
	enough.Hits = least
	whole := !s.Hits.After && !s.Hits.Collapsed && !s.Hits.Bare && !s.Hits.Ext // else a short page may not have all hits
	if page, ok := s.Page(&s.parameters); ok && page.From == 0 && whole {
		enough.Page = page.Size
	}
	return enough, false
}

// mostHits returns how many hits the search itself has at most, by the document
// frequencies in the rows of its words, or +Inf if these do not tell. It
// uses no live frequencies, so that all pages and proxies decide alike.
func (a *expansion) mostHits(clauses []form.Clause) float64 {
	most := math.Inf(1)
	for i := range clauses {
		if c := &clauses[i]; c.Reason == "" && !c.Parsed.Prefix && !c.Parsed.Fuzzy && !c.HasAlternatives() && required(c.Parsed.Path) {
			most = min(most, a.mostHitsOf(c))
		}
	}
	return most
}

// required reports whether each hit of the search matches the clause at a path.
func required(path string) bool {
	steps := strings.Split(path, ".")
	for k := 1; k+1 < len(steps); k++ {
		step, _, _ := strings.Cut(steps[k], "[")
		if !slices.Contains([]string{"bool", "must", "function_score", "script_score", "query"}, step) {
			return false
		}
	}
	return steps[0] == "query"
}

// mostHitsOf is mostHits for one clause: the sum over its fields.
func (a *expansion) mostHitsOf(c *form.Clause) float64 {
	if len(c.Parsed.Fields) == 0 || c.Parsed.TermCentric() { // the index has its own default fields
		return math.Inf(1)
	}
	most := 0.0
	for k := range c.Fields {
		f := &c.Fields[k]
		at := slices.IndexFunc(a.targets, func(t target) bool { return t.clause.Parsed == c.Parsed && t.Name == f.Name })
		if at < 0 || f.Terms == nil || f.Analysis.Spanned || len(f.Terms.Origins) == 0 || f.Stats.DocCount == 0 || a.targets[at].rows.Docs() == 0 {
			return math.Inf(1)
		}
		// The matrix may have been learned from a part of the documents.
		part := max(float64(f.Stats.DocCount)/float64(a.targets[at].rows.Docs()), 1)
		// Several fields may have each word in another one.
		all := c.Parsed.OperatorAnd && !f.Analysis.Graph && (len(c.Fields) == 1 || c.Parsed.Across == dsl.ByField)
		most += part * mostInField(f, all)
	}
	return most
}

// mostInField returns the sum of the frequencies of a field's words or, if all
// must match, that of the rarest. Any of the terms at a position is its word.
func mostInField(f *form.Field, all bool) float64 {
	sum, docs := 0.0, map[string]float64{}
	for i := range f.Terms.Origins {
		switch o := &f.Terms.Origins[i]; {
		case o.Nearest != nil: // in no document
			docs[o.Term] = 0
		case o.Row.IsZero():
			return math.Inf(1)
		default:
			docs[o.Term] = float64(o.Row.DocFreq())
			sum += docs[o.Term]
		}
	}
	if !all {
		return sum
	}
	words := map[int]float64{}
	for k, at := range f.Analysis.Positions {
		words[at] += docs[f.Analysis.Terms[k]]
	}
	return slices.Min(slices.Collect(maps.Values(words)))
}
