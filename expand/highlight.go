package expand

// A highlighter marks the words of the query that found a hit, as it was
// rewritten. So that it marks those of the original, that goes in as the
// member highlight_query of
//
//   - "highlight" of the body: the query of the search;
//   - "highlight" of a top_hits and of the inner hits of a collapse: the same,
//     for the hits are those of the search;
//   - "highlight" of the inner hits of nested, has_child and has_parent: the
//     query that stands beside the inner hits.
//
// Beside a retriever the query of the search is that of its standard retriever,
// or any of them where there are several.

const (
	// maxHighlights bounds the highlights of a search that is expanded.
	maxHighlights = 64
	// highlightRoom is what their queries may take together beyond the length
	// of the body: those of one highlight never take more than that.
	highlightRoom = 1 << 20
)

// A highlight is a place of the body that has words marked and does not say
// which.
type highlight struct {
	// at is the place behind the "{" of the object, and empty says that the
	// object has no members.
	at    int
	empty bool
	// queries are those whose words are marked, in the order of the body. While
	// the body is read they are nil where they are not known yet.
	queries []span
}

// covers reports whether the clause stands in one of the queries.
func (h *highlight) covers(c *clause) bool {
	last := len(h.queries) - 1
	return last >= 0 && span{h.queries[0].start, h.queries[last].end}.holds(c.at)
}

// len returns the length of the queries together.
func (h *highlight) len() int {
	n := 0
	for _, q := range h.queries {
		n += q.len()
	}
	return n
}

// highlight reads a highlight object and notes it where it needs a
// highlight_query.
func (s *scanner) highlight() error {
	if s.dec.PeekKind() != '{' {
		return s.dec.SkipValue()
	}
	has, h := false, highlight{empty: true}
	err := s.object(func(name []byte) error {
		if h.empty {
			h.at = s.nameStart
		}
		h.empty = false
		has = has || string(name) == "highlight_query"
		return s.dec.SkipValue()
	})
	if err != nil || has {
		return err
	}
	if h.empty {
		h.at = int(s.dec.InputOffset()) - 1
	}
	if len(s.scan.highlights) <= maxHighlights { // one more tells that there are too many
		s.scan.highlights = append(s.scan.highlights, h)
	}
	return nil
}

// hits reads an object that says what is told of hits: that of inner_hits or of
// top_hits.
func (s *scanner) hits() error {
	if s.dec.PeekKind() != '{' {
		return s.dec.SkipValue()
	}
	return s.object(func(name []byte) error {
		if string(name) == "highlight" {
			return s.highlight()
		}
		return s.dec.SkipValue()
	})
}

// collapse reads the object that collapses hits.
func (s *scanner) collapse() error {
	if s.dec.PeekKind() != '{' {
		return s.dec.SkipValue()
	}
	return s.object(func(name []byte) error {
		if string(name) == "inner_hits" {
			return s.list(s.hits)
		}
		return s.dec.SkipValue()
	})
}

// aggregations reads an object of aggregations and those below them.
func (s *scanner) aggregations(depth int) error {
	if depth > maxQueryDepth || s.dec.PeekKind() != '{' {
		return s.dec.SkipValue()
	}
	return s.object(func([]byte) error {
		if s.dec.PeekKind() != '{' {
			return s.dec.SkipValue()
		}
		return s.object(func(name []byte) error {
			switch string(name) {
			case "aggs", "aggregations":
				return s.aggregations(depth + 1)
			case "top_hits":
				return s.hits()
			}
			return s.dec.SkipValue()
		})
	})
}

// mark sets the query of the highlights from number first on that have none,
// and drops them where there is no query.
func (s *scan) mark(first int, query span) {
	kept := s.highlights[:first]
	for _, h := range s.highlights[first:] {
		if h.queries == nil && query.isZero() {
			continue
		}
		if h.queries == nil {
			h.queries = []span{query}
		}
		kept = append(kept, h)
	}
	s.highlights = kept
}

// markHits sets the queries of the highlights that are of the search's hits.
func (s *scan) markHits() {
	if len(s.highlights) == 0 {
		return
	}
	queries := s.standards
	if !s.query.isZero() {
		queries = []span{s.query}
	}
	for i := range s.highlights {
		if h := &s.highlights[i]; h.queries == nil {
			h.queries = queries
		}
	}
}

// crowded reports whether there are too many highlights, or whether their
// queries would take too much room in a body of the length given.
func (s *scan) crowded(length int) bool {
	n := 0
	for i := range s.highlights {
		n += s.highlights[i].len()
	}
	return len(s.highlights) > maxHighlights || n > length+highlightRoom
}

// copyMarked copies the bytes of the body from start to end, in which no clause
// stands that is rewritten, with the highlight_query of each highlight in them.
func (j *job) copyMarked(w *writer, start, end int) {
	scan := &j.scanner.scan
	for i := range scan.highlights {
		h := &scan.highlights[i]
		if start >= h.at || h.at > end || !j.marks(h) {
			continue
		}
		j.copyEdited(w, start, h.at)
		start = h.at
		j.highlight(w, h)
	}
	j.copyEdited(w, start, end)
}

// marks reports whether the words to highlight have to be said: where the query
// that the highlighter sees was rewritten.
func (j *job) marks(h *highlight) bool {
	scan := &j.scanner.scan
	if scan.unscored {
		return false
	}
	related := j.options.Highlight == HighlightRelated
	for i := range scan.clauses {
		c := &scan.clauses[i]
		if !c.changed() || !h.covers(c) {
			continue
		}
		// A highlighter sees all terms of a query but those in script_score, and
		// those of a linear field it may take for another field's.
		if !related || c.form == FormSaturated && !j.rescore || c.form == FormHard {
			return true
		}
	}
	return false
}

// adds reports whether terms are added to the queries of h. The form hard
// changes a clause without any, too.
func (s *scan) adds(h *highlight) bool {
	for i := range s.clauses {
		if c := &s.clauses[i]; c.added() > 0 && h.covers(c) {
			return true
		}
	}
	return false
}

// highlight writes the highlight_query: the original query, or any of several,
// for [HighlightRelated] together with the added terms.
func (j *job) highlight(w *writer, h *highlight) {
	scan := &j.scanner.scan
	leaves, related := w.leaves, j.options.Highlight == HighlightRelated && scan.adds(h)
	several := related || len(h.queries) > 1
	w.raw(`"highlight_query":`)
	if several {
		w.raw(`{"bool":{"should":[`)
	}
	for i, q := range h.queries {
		if i > 0 {
			w.comma()
		}
		w.out = append(w.out, q.of(j.body)...)
	}
	for i := range scan.clauses {
		if c := &scan.clauses[i]; related && c.added() > 0 && h.covers(c) {
			w.terms(c)
		}
	}
	if several {
		w.raw(`]}}`)
	}
	w.leaves = leaves // it is no part of what the engine counts
	if !h.empty {
		w.raw(",")
	}
}
