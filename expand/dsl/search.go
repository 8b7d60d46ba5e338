// Package dsl reads what clients send: bodies, parameters and the lines of
// several searches. What it returns are values that nobody modifies.
package dsl

import (
	"bytes"
	"slices"
	"strings"

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
	// From, Size, SeqNo and Version are the values that say it.
	From, Size, SeqNo, Version jsonspan.Span
	None                       bool // the size is 0
	Bare                       bool // hits may come back without id, score or sequence number
	Ext                        bool // there is something for plugins, which may do the same
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

// String shows the search as tests and people read it: a line for each
// clause, and what else it says.
func (s *Search) String() string {
	var b strings.Builder
	for i := range s.Clauses {
		b.WriteString(s.Clauses[i].String() + "\n")
	}
	for _, flag := range []struct {
		on   bool
		name string
	}{
		{s.PIT.Has, "point in time"},
		{s.Scores.Min, "min_score"},
		{s.Scores.Sorted, "sorted"},
		{s.Scores.Tracked, "scores tracked"},
		{s.Scores.Aggregated, "scores aggregated"},
		{s.Scores.Others, "other scores"},
		{s.Scores.FirstOnly, "first matches only"},
		{s.Hits.None, "no hits"},
		{s.Hits.Bare || s.Hits.Ext, "bare hits"},
		{s.OwnRescore, "own rescore"},
		{s.KNN, "knn"},
		{s.NoRescore != "", "no rescore: " + string(s.NoRescore)},
	} {
		if flag.on {
			b.WriteString(flag.name + "\n")
		}
	}
	return b.String()
}
