package judged

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Formats are the names of the formats that a set is written in:
//
//	csv                  query_id,query,document,grade, as [Read] takes it
//	quepid               query,docid,rating: the CSV that Quepid imports ratings from
//	                     (import_ratings and export/ratings_controller.rb of
//	                     github.com/o19s/quepid); queries without grades are there, too
//	workbench-judgments  the body of PUT _plugins/_search_relevance/judgments
//	workbench-queries    the body of PUT _plugins/_search_relevance/query_sets
//
// The last two are those of OpenSearch's Search Relevance Workbench, from
// version 3.1 (docs.opensearch.org, Search Relevance Workbench).
var Formats = []string{"csv", "quepid", "workbench-judgments", "workbench-queries"}

// Write writes a set in one of [Formats], and returns the queries that it
// has left out as the format does not take them: those without a text, and
// for a query set those that the workbench refuses.
func (s *Set) Write(w io.Writer, format string) (refused []Query, err error) {
	if !slices.Contains(Formats, format) {
		return nil, fmt.Errorf("no format %q; there are %s", format, strings.Join(Formats, ", "))
	}
	taken := &Set{Grades: s.Grades}
	for _, q := range s.Queries {
		if q.Text == "" || format == "workbench-queries" && (strings.ContainsAny(q.Text, workbenchRefused) || utf8.RuneCountInString(q.Text) > workbenchMaxText) {
			refused = append(refused, q)
		} else {
			taken.Queries = append(taken.Queries, q)
		}
	}
	switch format {
	case "csv":
		err = taken.table(w, []string{"query_id", "query", "document", "grade"}, func(q Query, document, grade string) []string {
			return []string{Cell(q.ID), Cell(q.Text), Cell(document), grade}
		})
	case "quepid":
		err = taken.table(w, []string{"query", "docid", "rating"}, func(q Query, document, grade string) []string {
			return []string{Cell(q.Text), document, grade}
		})
	default:
		err = taken.workbench(w, format == "workbench-judgments")
	}
	return refused, err
}

// The limits of a text in a query set (TextValidationUtil.java of
// github.com/opensearch-project/search-relevance).
const (
	workbenchMaxText = 2000
	workbenchRefused = "\"\\<>\n\r"
)

// Cell returns a text that spreadsheets show and do not compute: with a
// blank in front where it begins like a formula, which [Read] takes away
// again.
func Cell(text string) string {
	if text != "" && strings.ContainsAny(text[:1], "=+-@\t\r") {
		return " " + text
	}
	return text
}

// graded returns the ids of the documents of a query, the best grade first.
func (s *Set) graded(query string) []string {
	grades := s.Grades[query]
	return slices.SortedFunc(maps.Keys(grades), func(a, b string) int {
		return cmp.Or(cmp.Compare(grades[b], grades[a]), cmp.Compare(a, b))
	})
}

func (s *Set) table(w io.Writer, header []string, row func(q Query, document, grade string) []string) error {
	rows := [][]string{header}
	for _, q := range s.Queries {
		documents := s.graded(q.ID)
		for _, d := range documents {
			rows = append(rows, row(q, d, strconv.Itoa(s.Grades[q.ID][d])))
		}
		if len(documents) == 0 {
			rows = append(rows, row(q, "", ""))
		}
	}
	return csv.NewWriter(w).WriteAll(rows)
}

// workbench writes the judgments, or the queries without them.
func (s *Set) workbench(w io.Writer, judgments bool) error {
	const writtenBy = "Written by akin" // shown by the workbench; its users may rename it
	type rating struct {
		Document string `json:"docId"`
		Rating   string `json:"rating"` // the first versions take no number
	}
	type ratings struct {
		Query   string   `json:"query"`
		Ratings []rating `json:"ratings"`
	}
	file := struct {
		Name        string           `json:"name"`
		Description string           `json:"description"`
		Type        string           `json:"type,omitzero"`
		Ratings     []ratings        `json:"judgmentRatings,omitzero"`
		Sampling    string           `json:"sampling,omitzero"`
		Queries     []workbenchQuery `json:"querySetQueries,omitzero"`
	}{Name: writtenBy, Description: writtenBy}
	if judgments {
		file.Type, file.Ratings = "IMPORT_JUDGMENT", []ratings{}
		for _, q := range s.Judged() {
			r := ratings{Query: q.Text}
			for _, d := range s.graded(q.ID) {
				r.Ratings = append(r.Ratings, rating{d, strconv.Itoa(s.Grades[q.ID][d])})
			}
			file.Ratings = append(file.Ratings, r)
		}
	} else {
		file.Sampling, file.Queries = "manual", []workbenchQuery{}
		for _, q := range s.Queries {
			file.Queries = append(file.Queries, workbenchQuery{q.Text})
		}
	}
	return json.MarshalWrite(w, file, jsontext.WithIndent("  "))
}
