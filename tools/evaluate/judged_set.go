package evaluate

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A Query is a text that somebody searched for.
type Query struct {
	ID   string `json:"id"`
	Text string `json:"text"`
	// Count is how often a log has the text; 0 without a log.
	Count int `json:"count,omitzero"`
	// Body is the search itself if the file has it instead of a text, like a
	// _rank_eval request.
	Body []byte `json:"-"`
}

// A Set has judged queries.
type Set struct {
	// Queries are in the order of the file, with unique ids.
	Queries []Query
	// Grades are by query and document. Above zero means relevant; a missing
	// document was not judged. Grades may have queries that Queries lacks.
	Grades map[string]map[string]float64
	// Ungraded is how many lines of a CSV file have no grade yet.
	Ungraded int
}

// Judged returns the queries that have grades.
func (s *Set) Judged() []Query {
	return slices.DeleteFunc(slices.Clone(s.Queries), func(q Query) bool { return len(s.Grades[q.ID]) == 0 })
}

// Unknown returns the sorted ids of queries with grades and without a text.
func (s *Set) Unknown() []string {
	grades := maps.Clone(s.Grades)
	for _, q := range s.Queries {
		delete(grades, q.ID)
	}
	return slices.Sorted(maps.Keys(grades))
}

// Documents returns the sorted ids of documents with grades.
func (s *Set) Documents() []string {
	all := map[string]bool{}
	for _, grades := range s.Grades {
		for id := range grades {
			all[id] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

const (
	maxLine     = 1 << 20 // bytes
	maxProblems = 20      // listed problems
)

// A reader collects a judged set, the places of its queries and grades, and
// problems.
type reader struct {
	set      Set
	file     string               // the current file
	given    bool                 // the queries have their own file
	queries  map[string]string    // place by id
	grades   map[[2]string]string // place by query and document
	problems []error
	more     int // problems not listed
}

func newReader() *reader {
	return &reader{
		set:     Set{Grades: map[string]map[string]float64{}},
		queries: map[string]string{}, grades: map[[2]string]string{},
	}
}

func (r *reader) failed() error {
	if r.more > 0 {
		r.problems = append(r.problems, fmt.Errorf("and %d more", r.more))
	}
	return errors.Join(r.problems...)
}

// place returns a line in the notation of editors, or the file for line 0.
func (r *reader) place(line int) string {
	if line == 0 {
		return r.file
	}
	return r.file + ":" + strconv.Itoa(line)
}

func (r *reader) fail(line int, format string, args ...any) {
	if len(r.problems) == maxProblems {
		r.more++
		return
	}
	r.problems = append(r.problems, fmt.Errorf("%s: %w", r.place(line), fmt.Errorf(format, args...)))
}

func (r *reader) lines(text []byte, f func(n int, line string)) {
	n := 0
	for line := range bytes.Lines(text) {
		n++
		line = bytes.TrimSpace(line)
		switch {
		case len(line) > maxLine:
			r.fail(n, "the line is longer than %d bytes", maxLine)
		case len(line) > 0:
			f(n, string(line))
		}
	}
}

// number parses a grade, such as 2, 2.0, or a model's 0.7.
func number(s string) (float64, error) {
	n, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err == nil && (math.IsNaN(n) || math.IsInf(n, 0)) {
		err = strconv.ErrRange
	}
	return n, err
}

func (r *reader) query(line int, q Query) {
	q.ID, q.Text = strings.TrimSpace(q.ID), strings.TrimSpace(q.Text)
	switch before, ok := r.queries[q.ID]; {
	case q.ID == "" || q.Text == "" && q.Body == nil:
		r.fail(line, "a query needs an id and a text")
	case ok:
		r.fail(line, "query %q is also in %s", q.ID, before)
	default:
		r.queries[q.ID] = r.place(line)
		r.set.Queries = append(r.set.Queries, q)
	}
}

// queryOnce adds a query unless it exists.
func (r *reader) queryOnce(line int, id, text string) {
	if id = strings.TrimSpace(id); r.queries[id] == "" {
		r.query(line, Query{ID: id, Text: text})
	}
}

// grade adds a judgment; the grade is "" if there is none yet.
func (r *reader) grade(line int, query, document, grade string) {
	query, document = strings.TrimSpace(query), strings.TrimSpace(document)
	n, err := number(grade)
	key := [2]string{query, document}
	before, twice := r.grades[key]
	switch {
	case strings.TrimSpace(grade) == "":
		r.set.Ungraded++
	case query == "" || document == "":
		r.fail(line, "a judgment needs a query and a document")
	case err != nil:
		r.fail(line, "the grade %q is no number", grade)
	case twice && r.set.Grades[query][document] != n:
		r.fail(line, "document %q of query %q has grade %v here and %v in %s", document, query, n, r.set.Grades[query][document], before)
	case !twice:
		r.grades[key] = r.place(line)
		if r.set.Grades[query] == nil {
			r.set.Grades[query] = map[string]float64{}
		}
		r.set.Grades[query][document] = n
	}
}

// lineAt returns a function that returns the line of an offset in text.
func lineAt(text []byte) func(offset int64) int {
	var ends []int64
	for i, c := range text {
		if c == '\n' {
			ends = append(ends, int64(i))
		}
	}
	return func(offset int64) int {
		before, _ := slices.BinarySearch(ends, offset)
		return before + 1
	}
}
