// Package dsl reads what clients send: bodies, parameters and the lines of
// several searches. What it returns are values that nobody modifies.
package dsl

import (
	"bytes"
	"slices"

	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/internal/jsonspan"
)

const (
	// MaxFields bounds the fields, over all clauses, of a search that is
	// expanded. Asking about more would cost more than the budget.
	MaxFields = 64
	// maxDepth is the deepest nesting of queries that is followed. The engines
	// refuse more than 30 (Elasticsearch) and 20 (OpenSearch) levels.
	maxDepth = 30
	// maxNotes bounds the queries of which a search notes why they are left
	// alone.
	maxNotes = 64
)

// A Search is what a search body and its parameters say that matters to its
// expansion.
type Search struct {
	// Body is what the places are in.
	Body []byte
	// Clauses are those found, in the order of the body.
	Clauses []Clause
	// Query is the value of "query", and RuntimeMappings that of
	// "runtime_mappings".
	Query, RuntimeMappings jsonspan.Span
	// Highlights are the places that have words marked, in the order of the body.
	Highlights []Highlight
	PIT        PIT
	Hits       Hits
	Scores     Scores
	// NoRescore is why the hits cannot be rescored, "" where they can; OwnRescore
	// says that the body has a rescore, whatever else speaks against another.
	NoRescore  reason.Reason
	OwnRescore bool
	// KNN says that vectors are searched beside the query. Elasticsearch then
	// scores by the statistics of all shards, and takes no search_type.
	KNN bool
	// Hybrid says that the query is a hybrid one (OpenSearch), the scores of whose
	// sub-queries a search pipeline normalizes. SubQuery is the first of them that
	// has a clause to expand.
	Hybrid   bool
	SubQuery jsonspan.Span
	// Fused says that a retriever mixes the hits of several.
	Fused bool
	// Pipeline is the search pipeline that the body names or defines.
	Pipeline jsonspan.Span
	// ClauseCount estimates from above how many clauses the queries have that are
	// not in Clauses.
	ClauseCount int
}

// A PIT is a point in time: Has says that the body names one, and ID which.
type PIT struct {
	Has bool
	ID  string
}

// Hits says which hits of a search come back, and with what.
type Hits struct {
	// From and Size are the values that say it.
	From, Size jsonspan.Span
	None       bool // the size is 0
	Bare       bool // hits may come back without id or score
	Ext        bool // there is something for plugins, which may do the same
}

// Scores says what depends on scores.
type Scores struct {
	Min        bool // hits are cut by a min_score
	Sorted     bool // hits are sorted by something else
	Tracked    bool // their scores are computed nevertheless
	Aggregated bool // aggregations may depend on scores
	Others     bool // queries score which are no texts to compare
	// FirstOnly says that only the first matches are looked at, in the order of
	// the index: more matches could take their places.
	FirstOnly bool
}

// Expandable reports whether there is a clause that is more than a note.
func (s *Search) Expandable() bool {
	return slices.ContainsFunc(s.Clauses, func(c Clause) bool { return !c.Note })
}

// Redefines reports whether the request may define a field of its own by
// that name.
func (s *Search) Redefines(field string) bool {
	rm := s.RuntimeMappings
	return !rm.IsZero() && bytes.Contains(rm.Of(s.Body), []byte(`"`+field+`"`))
}

// A Clause is one query of the body that looks for a text in fields.
type Clause struct {
	// At is where the whole query object stands, {"match": …}, and Path leads to
	// it. Depth is the number of queries that it stands in.
	At    jsonspan.Span
	Path  string
	Depth int
	// Text is what is looked for, and Analyzer the analyzer that is named, "" for
	// the fields' own.
	Text, Analyzer string
	// Fields are those named, in the order of the clause.
	Fields []BoostedField
	// Boost multiplies the score of the clause. TieBreaker combines the fields:
	// the best field's score plus TieBreaker times the others'.
	Boost, TieBreaker float64
	// OperatorAnd says that each term of the text has to match, and
	// MinimumShouldMatch is the value of the option as it stands in the body.
	OperatorAnd        bool
	MinimumShouldMatch []byte
	Traits
	// Reason says why the clause is left alone, "" where it is not.
	Reason reason.Reason
}

// Traits are what the kind of a clause and its options mean for its
// rewriting.
type Traits struct {
	// Additive says that the score is the sum of the scores of the text's terms,
	// so that another way of scoring the terms may take its place.
	Additive bool
	// SameMatches says that the clause has to match what the original matches.
	SameMatches bool
	// TermCentric says that the clause looks for each term in all fields together
	// (cross_fields, combined_fields).
	TermCentric bool
	// ByField says that the score combines those of the fields, and that with one
	// name in the member fields the query is the query for that field.
	ByField  bool
	Prefix   bool // the last term of the text is the beginning of one
	Patterns bool // names of fields may be patterns
	Phrase   bool // it looks for a phrase
	Fuzzy    bool // the original finds words that are spelled alike
	Segments bool // it is not the client's, but was written for segments
	// Note says that there is nothing to rewrite: the clause only says why a
	// query of another kind is left alone.
	Note bool
}

// A BoostedField is a field of a clause with its own factor, as in "title^3".
type BoostedField struct {
	Name  string
	Boost float64
}

// FieldCount returns the number of fields of all clauses to expand; one that
// names none has at least one.
func (s *Search) FieldCount() (n int) {
	for i := range s.Clauses {
		if c := &s.Clauses[i]; c.Reason == "" {
			n += max(len(c.Fields), 1)
		}
	}
	return n
}

// A Highlight is a place of the body that has words marked and does not say
// which.
type Highlight struct {
	// At is the place behind the "{" of the object, and Empty says that the
	// object has no members.
	At    int
	Empty bool
	// Queries are those whose words are marked, in the order of the body; while the
	// body is read nil where they are not known yet.
	Queries []jsonspan.Span
	// Originals are what they were in another body that this one was made of, nil
	// where there is none.
	Originals [][]byte
}

// Query returns query number i of body, or its original.
func (h *Highlight) Query(i int, body []byte) []byte {
	if h.Originals != nil {
		return h.Originals[i]
	}
	return h.Queries[i].Of(body)
}

// Replaced reports whether one of its queries is not its original.
func (h *Highlight) Replaced(body []byte) bool {
	for i := range h.Queries {
		if !bytes.Equal(h.Query(i, body), h.Queries[i].Of(body)) {
			return true
		}
	}
	return false
}

// Covers reports whether the place is in one of the queries.
func (h *Highlight) Covers(at jsonspan.Span) bool {
	last := len(h.Queries) - 1
	return last >= 0 && jsonspan.Span{Start: h.Queries[0].Start, End: h.Queries[last].End}.Holds(at)
}

// Len returns the length of the queries together.
func (h *Highlight) Len() (n int) {
	for _, q := range h.Queries {
		n += q.Len()
	}
	return n
}
