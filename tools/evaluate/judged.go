package evaluate

import (
	"maps"
	"slices"
)

// A Query is a text that somebody searched for.
type Query struct {
	ID   string `json:"id"`
	Text string `json:"text"`
	// Count is how often a log has the text; 0 where the query is of no log.
	Count int `json:"count,omitzero"`
	// Body is the search itself where the file has it, as a _rank_eval request does
	// in place of a text.
	Body []byte `json:"-"`
}

// A Set is judged queries.
type Set struct {
	// Queries are in the order of their file, each id once.
	Queries []Query
	// Grades are by query and document: above zero is relevant. What is not there
	// was not judged. It may have queries that Queries does not.
	Grades map[string]map[string]int
	// Ungraded is how many lines of a CSV file have no grade yet.
	Ungraded int
}

// Judged returns the queries that have grades.
func (s *Set) Judged() []Query {
	return slices.DeleteFunc(slices.Clone(s.Queries), func(q Query) bool { return len(s.Grades[q.ID]) == 0 })
}

// Unknown returns the ids of queries that have grades and no text, sorted.
func (s *Set) Unknown() []string {
	grades := maps.Clone(s.Grades)
	for _, q := range s.Queries {
		delete(grades, q.ID)
	}
	return slices.Sorted(maps.Keys(grades))
}

// Documents returns the ids of documents that have grades, sorted.
func (s *Set) Documents() []string {
	all := map[string]bool{}
	for _, grades := range s.Grades {
		for id := range grades {
			all[id] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}
