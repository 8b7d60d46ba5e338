package expand

import (
	"context"
	"slices"
	"strings"

	"github.com/akin-search/akin/expand/dsl"
	"github.com/akin-search/akin/expand/form"
	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/internal/jsonspan"
	"github.com/akin-search/akin/internal/recovery"
)

// How segments work: before the expansion, a clause on a field whose text
// documents also store in parts gets a nested clause for these parts (package
// form). The new body is parsed and expanded as if the client had sent it.

// A nestable is a clause on a field with segments.
type nestable struct {
	clause   *dsl.Clause
	boost    float64
	several  bool // it has other fields, too
	segments *form.Segments
	reason   reason.Reason // why it gets no nested clause
}

// nest gives the search nested clauses, and explains the clauses that get none
// although their fields have segments.
func (a *expansion) nest(ctx context.Context) error {
	s := a.s
	found := s.nestables()
	if err := recovery.InParallel(len(found), sideBySide, func(i int) error { return a.findSegments(ctx, &found[i]) }); err != nil {
		return failed(StageFields, err)
	}
	var edits []jsonspan.Edit
	named := namesQueries(s.Body) // names of inner hits must be unique
	for _, n := range found {
		if n.reason != "" {
			a.notNested = append(a.notNested, Explanation{Path: n.clause.Path, Field: n.segments.Text, Reason: n.reason})
			continue
		}
		how := form.Nesting{
			Boost: n.boost, Several: n.several, SameMatches: n.clause.Matches >= dsl.Same || s.order,
			InnerHits: n.segments.InnerHits > 0 && !named && !s.unscored && s.req.Endpoint == EndpointSearch && s.Query.Holds(n.clause.At),
		}
		named = named || how.InnerHits
		edits = append(edits, jsonspan.Edit{At: n.clause.At, Text: n.segments.Nest(n.clause, s.Body, how)})
	}
	if len(edits) == 0 {
		return nil
	}
	body, highlights := s.Body, s.Highlights // the parser reuses its memory
	var paths []string                       // of the clauses in the client's search; twice if a clause gets a nested one, which will follow it
	for i := range s.Clauses {
		c := &s.Clauses[i]
		paths = append(paths, c.Path)
		if slices.ContainsFunc(found, func(n nestable) bool { return n.clause == c && n.reason == "" }) {
			paths = append(paths, c.Path)
		}
	}
	nested := *s
	nested.nested = true
	a.s = &nested
	var why reason.Reason
	nested.Search, why = a.m.parser.Parse(jsonspan.AppendEdited(nil, body, 0, len(body), edits), &s.parameters)
	if why == "" && nested.FieldCount() <= dsl.MaxFields && !nested.Crowded() {
		nested.asBefore(body, highlights, paths)
		return nil
	}
	nested.nested = false
	nested.Search, _ = a.m.parser.Parse(body, &s.parameters) // it was parsed before
	for _, c := range nested.Clauses {
		if c.Role != dsl.Note {
			a.notNested = append(a.notNested, Explanation{Path: c.Path, Reason: reason.TooManyClauses})
		}
	}
	return nil
}

// asBefore restores what people see of the client's search: highlighters mark
// the words of its own queries, and clauses keep their paths.
func (s *search) asBefore(body []byte, highlights []dsl.Highlight, paths []string) {
	for i, h := range highlights {
		for _, q := range h.Queries {
			s.Highlights[i].Originals = append(s.Highlights[i].Originals, q.Of(body))
		}
	}
	for i := range s.Clauses {
		if len(paths) != len(s.Clauses) { // the parser dropped notes
			break
		}
		s.Clauses[i].Path = paths[i]
		if i > 0 && paths[i] == paths[i-1] {
			s.Clauses[i].Role = dsl.InSegments
		}
	}
}

// nestables returns the clauses on fields with segments.
func (s *search) nestables() (out []nestable) {
	why, unscored := reason.Reason(""), s.unscored || !s.Scores.Computed()
	switch {
	case s.PIT.Has: // all pages need the same scores, and the mapping may change between them
		why = reason.PointInTime
	case s.Scores.Min:
		why = reason.MinScore
	}
	for i := range s.Clauses {
		c := &s.Clauses[i]
		if c.Reason != "" || c.Unrelated() != "" || c.Like != nil || strings.Contains(c.Path, ".nested.") { // a field in nested documents has no segments
			continue
		}
		fields := c.Fields
		if len(fields) == 0 {
			for _, name := range s.profile.DefaultFields {
				fields = append(fields, dsl.BoostedField{Name: name, Boost: 1})
			}
		}
		for _, f := range fields {
			at := slices.IndexFunc(s.profile.Segments, func(b form.Segments) bool { return b.Field == f.Name })
			if at < 0 || unscored && !s.profile.Segments[at].Replace { // only the order would change
				continue
			}
			n := nestable{clause: c, boost: f.Boost, several: len(fields) > 1, segments: &s.profile.Segments[at], reason: why}
			if form.SegmentsTooDeep(c) {
				n.reason = reason.TooDeep
			}
			out = append(out, n)
			break // only the first of several fields with segments
		}
	}
	return out
}

// findSegments checks whether the indices store the segments as configured.
func (a *expansion) findSegments(ctx context.Context, n *nestable) error {
	text := n.clause.Text
	switch {
	case n.reason != "":
		return nil
	case len(text) > maxText:
		n.reason = reason.TooManyTerms
		return nil
	case a.s.Redefines(n.segments.Text):
		n.reason = reason.RuntimeField
		return nil
	}
	analysis, err := a.cluster.Analyze(ctx, a.s.indices, n.segments.Text, n.clause.Analyzer, text)
	if n.reason, err = reasonOf(err); n.reason == "" && err == nil && analysis.Nested != n.segments.Path {
		n.reason = reason.NotNested
	}
	return err
}
