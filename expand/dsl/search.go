// Package dsl parses clients' requests: bodies, parameters and lines of several
// searches. It returns values that nobody modifies.
package dsl

import (
	"bytes"
	"cmp"
	"regexp"
	"slices"

	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/internal/jsonspan"
)

const (
	// MaxFields limits the fields, over all clauses, of a search that is expanded.
	// To ask about more would exceed the budget.
	MaxFields = 64
	// maxDepth limits how deep akin reads: as deep as Elasticsearch accepts from
	// 8.1 on. What akin writes is nested less deep, see package form.
	maxDepth = 30
	// maxPhrases is how many phrases of a search get readings.
	maxPhrases = 8
	// maxNotes limits the recorded reasons why queries are left alone.
	maxNotes = 64
)

// A Search is what matters for expansion in a search body and its parameters.
type Search struct {
	// Body is the text that places refer to.
	Body []byte
	// Clauses are in body order.
	Clauses []Clause
	// Query is the value of "query", RuntimeMappings that of "runtime_mappings".
	Query, RuntimeMappings jsonspan.Span
	// Highlights are in body order.
	Highlights []Highlight
	PIT        PIT
	Hits       Hits
	Scores     Scores
	// NoRescore is why the hits cannot be rescored, or "". OwnRescore says that
	// the body has a rescore, even if NoRescore is another reason.
	NoRescore  reason.Reason
	OwnRescore bool
	// KNN says that vectors are searched beside the query. Elasticsearch then
	// scores by the statistics of all shards, and accepts no search_type.
	KNN bool
	// Hybrid says that the query is a hybrid one (OpenSearch), the scores of whose
	// sub-queries a search pipeline normalizes. SubQuery is the first of them that
	// has a clause to expand.
	Hybrid   bool
	SubQuery jsonspan.Span
	// Fused says that a retriever mixes the hits of several, Compound that it has
	// others inside: Elasticsearch searches for these without the search_type.
	Fused, Compound bool
	// Pipeline is the search pipeline that the body names or defines.
	Pipeline jsonspan.Span
	// ClauseCount estimates from above how many clauses the queries have that are
	// not in Clauses.
	ClauseCount int
}

// A PIT is a point in time: Has says that the body has one.
type PIT struct {
	Has bool
	ID  string
}

// Hits says which hits of a search come back, and with which parts.
type Hits struct {
	// From and Size are the places of the values.
	From, Size jsonspan.Span
	None       bool // the size is 0
	After      bool // they come after a hit of an earlier page
	Collapsed  bool // a hit stands for several
	Sliced     bool // they are of one slice
	Bare       bool // hits may come back without id or score
	Completed  bool // completions come back, too, with the parts of hits
	Ext        bool // there are plugin options, which may have the same effect
}

// Scores says what depends on scores.
type Scores struct {
	Min        bool // min_score cuts hits
	Sorted     bool // hits are sorted by something else than the highest score first
	Key        bool // the score is a further key of theirs
	Tracked    bool // scores are computed in any case
	Aggregated bool // aggregations may depend on scores
	Others     bool // queries other than for text score
	// FirstOnly says that only the first matches are read, in index order: more
	// matches could take their places.
	FirstOnly bool
}

// Computed reports whether the engine computes scores of hits.
func (s Scores) Computed() bool { return !s.Sorted || s.Key || s.Tracked }

// Expandable reports whether there is a clause other than notes.
func (s *Search) Expandable() bool {
	return slices.ContainsFunc(s.Clauses, func(c Clause) bool { return c.Role != Note })
}

// Redefines reports whether the request may define its own field of that name.
func (s *Search) Redefines(field string) bool {
	rm := s.RuntimeMappings
	return !rm.IsZero() && bytes.Contains(rm.Of(s.Body), []byte(`"`+field+`"`))
}

// A Clause is a query in the body that searches fields for a text.
type Clause struct {
	// At is the place of the whole query object, {"match": …}, and Path its path.
	// Depth is the number of enclosing queries.
	At    jsonspan.Span
	Path  string
	Depth int
	// Text is searched for. Analyzer is the named one, "" for the fields' own.
	Text, Analyzer string
	// Fields are in clause order.
	Fields []BoostedField
	// Boost multiplies the clause's score. TieBreaker combines fields: the best
	// field's score plus TieBreaker times the others'.
	Boost, TieBreaker float64
	// OperatorAnd says that every term of the text must match. MinimumShouldMatch
	// is the option's raw value.
	OperatorAnd        bool
	MinimumShouldMatch []byte
	// Words is how many words the text has at blanks, where the engine counts
	// these; else 0.
	Words int
	// Slop is how many places the words of a phrase may be apart. MaxExpansions is
	// how many terms a prefix at its end stands for, as a raw value.
	Slop          float64
	MaxExpansions []byte
	// Additive says that the score is the sum of the text's terms' scores, so that
	// the terms may be scored in another way.
	Additive bool
	Matches  Matches
	Across   Across
	Role     Role
	Prefix   bool // the last term of the text is a prefix
	Patterns bool // field names may be patterns
	Phrase   bool // it looks for a phrase
	Fuzzy    bool // the original also finds words spelled similarly
	// Like says which words of the text are searched for, nil for all.
	Like *Like
	// Reason is why the clause is left alone, or "".
	Reason reason.Reason
	// Left are parts of a text with operators, or options, because of which not all
	// of it is expanded.
	Left []string
	// Whole is the place of a client's query in At, where a query of its parts
	// stands beside it; zero for other clauses. The clauses of the parts follow.
	Whole jsonspan.Span
	Part  bool   // it is of a part
	parts string // the query of the parts, or ""
}

// Matches is what a clause may match when it is rewritten, in falling order.
type Matches uint8

// What a clause may match.
const (
	AlsoRelated Matches = iota // also what only related words find
	Same                       // what the original or a reading of its phrase matches
	Fixed                      // what the original matches
)

// Across is how a clause searches several fields.
type Across uint8

// How a clause searches several fields.
const (
	Apart Across = iota
	// ByField scores each field, and with one name in the member fields the query
	// is that field's.
	ByField
	ByTerm // each term in all fields together (cross_fields)
	AsOne  // like ByTerm, and scores the fields like one (combined_fields)
)

// A Role is what a clause is there for.
type Role uint8

// The roles.
const (
	Ranks        Role = iota
	OnlyReadings      // a phrase, to which only readings are added
	InFilter          // it scores nothing, and only alternatives are added
	InSegments        // written for segments, not by the client
	// Note has nothing to rewrite: the clause only records why a query of another
	// kind is left alone.
	Note
)

// Expanded reports whether the clause is a query string of which all parts have
// clauses of their own.
func (c *Clause) Expanded() bool { return !c.Whole.IsZero() && len(c.Left) == 0 }

// Unrelated is why related words are not added to the clause, "" if they are.
func (c *Clause) Unrelated() reason.Reason {
	switch c.Role {
	case OnlyReadings:
		return reason.Phrase
	case InFilter:
		return reason.NotScoring
	case Ranks, InSegments, Note:
	}
	return ""
}

// requiredPath is the path of a query that stands in nothing but musts.
var requiredPath = regexp.MustCompile(`^query\.(bool\.must(\[\d+\])?\.)*\w+$`)

// Required reports whether every hit of the search matches the clause as it was
// typed, or what is added to it.
func (c *Clause) Required() bool { return !c.Part && requiredPath.MatchString(c.Path) }

// TermCentric reports whether the clause searches each term in all fields
// together.
func (c *Clause) TermCentric() bool { return c.Across >= ByTerm }

// A BoostedField is a field of a clause with its boost, as in "title^3".
type BoostedField struct {
	Name  string
	Boost float64
}

// LeavePhrases leaves alone the clauses to which no related words would be
// added.
func (s *Search) LeavePhrases() {
	for i := range s.Clauses {
		c := &s.Clauses[i]
		c.Reason = cmp.Or(c.Reason, c.Unrelated())
	}
}

// FieldCount returns the number of fields in all clauses to expand; a clause
// without names counts as one.
func (s *Search) FieldCount() (n int) {
	for i := range s.Clauses {
		if c := &s.Clauses[i]; c.Reason == "" {
			n += max(len(c.Fields), 1)
		}
	}
	return n
}

// A Highlight is a place in the body that marks words without saying which.
type Highlight struct {
	// At is the place behind the object's "{". Empty says that it has no members.
	At    int
	Empty bool
	// Queries are those whose words are marked, in body order; nil while the body
	// is parsed and they are unknown.
	Queries []jsonspan.Span
	// Originals are the queries in the body that this one was made from, or nil.
	Originals [][]byte
}

// Query returns query i of body, or its original.
func (h *Highlight) Query(i int, body []byte) []byte {
	if h.Originals != nil {
		return h.Originals[i]
	}
	return h.Queries[i].Of(body)
}

// Replaced reports whether one of its queries differs from its original.
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

// Len returns the total length of the queries.
func (h *Highlight) Len() (n int) {
	for _, q := range h.Queries {
		n += q.Len()
	}
	return n
}
