package dsl

import (
	"slices"

	"github.com/akin-search/akin/internal/jsonspan"
)

const (
	// maxHighlights limits the highlights of a search that is expanded.
	maxHighlights = 64
	// highlightRoom is how much longer than the body their queries may be in all.
	highlightRoom = 1 << 20
)

// highlight records a highlight object that needs a highlight_query.
func (p *Parser) highlight() error {
	if !p.isObject() {
		return p.json.Skip()
	}
	has, h := false, Highlight{Empty: true}
	err := p.json.Object(func(name []byte) error {
		if h.Empty {
			h.At = p.json.Name().Start
		}
		h.Empty = false
		has = has || string(name) == "highlight_query"
		return p.json.Skip()
	})
	if h.Empty {
		h.At = p.json.Offset() - 1
	}
	if s := &p.search; err == nil && !has && len(s.Highlights) <= maxHighlights { // one more indicates too many
		s.Highlights = append(s.Highlights, h)
	}
	return err
}

// hits reads the object of inner_hits or top_hits.
func (p *Parser) hits() error { return p.only("highlight", p.highlight) }

func (p *Parser) collapse() error {
	return p.only("inner_hits", func() error { return p.oneOrMore(p.hits) })
}

func (p *Parser) aggregations(depth int) error {
	if depth > maxDepth {
		return p.json.Skip()
	}
	return p.members(func([]byte) error {
		return p.members(func(name []byte) error {
			switch string(name) {
			case "aggs", "aggregations":
				return p.aggregations(depth + 1)
			case "top_hits":
				return p.hits()
			}
			return p.json.Skip()
		})
	})
}

// mark sets the query of the highlights from number first on that have none,
// and drops them if there is no query.
func (s *Search) mark(first int, query jsonspan.Span) {
	kept := s.Highlights[:first]
	for _, h := range s.Highlights[first:] {
		if h.Queries == nil && !query.IsZero() {
			h.Queries = []jsonspan.Span{query}
		}
		if h.Queries != nil {
			kept = append(kept, h)
		}
	}
	s.Highlights = kept
}

// markHits sets the queries of the highlights for the search's hits: the
// search's query, or those of its standard retrievers.
func (s *Search) markHits(standards []jsonspan.Span) {
	if len(s.Highlights) == 0 {
		return
	}
	queries := slices.Clone(standards)
	if !s.Query.IsZero() {
		queries = []jsonspan.Span{s.Query}
	}
	for i := range s.Highlights {
		if h := &s.Highlights[i]; h.Queries == nil {
			h.Queries = queries
		}
	}
}

// Crowded reports whether there are too many highlights, or their queries would
// take too much room in the body.
func (s *Search) Crowded() bool {
	n := 0
	for i := range s.Highlights {
		n += s.Highlights[i].Len()
	}
	return len(s.Highlights) > maxHighlights || n > len(s.Body)+highlightRoom
}
