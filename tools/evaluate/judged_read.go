package evaluate

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"io"
	"strings"

	"github.com/go-json-experiment/json"
)

const maxFile = 256 << 20 // bytes; MS MARCO's judgments are 10 MB

// A JudgedFile is the content of a file, and its name for errors.
type JudgedFile struct {
	Name    string
	Content io.Reader
}

// ReadJudged reads a judged set. It detects the formats by the first lines.
// judgments is one of
//
//	query-id TAB corpus-id TAB score     BEIR's qrels.tsv, with a header
//	query 0 document grade               TREC's qrels
//	query,document,grade                 CSV, with commas or semicolons; other columns are ignored
//	query,docid,rating                   the same with Quepid's names
//	{"requests": [{"id": …}]}            a _rank_eval request
//	{"judgmentRatings": […]}             a judgment list of the Search Relevance Workbench
//	{"queries": [{"ratings": …}]}        a case of Quepid, or its ratings
//
// and queries, nil for the last four, one of
//
//	{"_id": "1", "text": "…"}            BEIR's queries.jsonl
//	1 TAB text
//
// Without queries, a CSV file has the texts of queries instead of their ids,
// and a document without a grade is not judged. The error lists all problems
// with file and line, including an empty set, a grade that is not a number, and
// two grades of one document for one query.
func ReadJudged(queries, judgments *JudgedFile) (*Set, error) {
	r := newReader()
	if queries != nil {
		r.read(queries, r.queryFormat)
		r.given = true
	}
	if queries == nil || len(r.set.Queries) > 0 {
		r.read(judgments, r.gradeFormat)
	}
	if r.problems == nil && len(r.grades) == 0 {
		r.fail(0, "no judgments")
	}
	return &r.set, r.failed()
}

// A format reads the text of a file.
type format func(text []byte)

// read reads a file in the format that choose returns for its first line, or
// nil.
func (r *reader) read(f *JudgedFile, choose func(first string) format) {
	r.file = f.Name
	text, err := io.ReadAll(io.LimitReader(f.Content, maxFile+1))
	text = bytes.TrimPrefix(text, []byte("\ufeff")) // a byte order mark
	begin := bytes.TrimSpace(text)
	switch {
	case err != nil:
		r.fail(0, "%w", err)
		return
	case len(text) > maxFile:
		r.fail(0, "larger than %d MiB", maxFile>>20)
		return
	case len(begin) == 0:
		r.fail(0, "empty")
		return
	}
	line, _, _ := bytes.Cut(begin[:min(len(begin), 4096)], []byte("\n"))
	first := strings.TrimRight(string(line), "\r")
	if take := choose(first); take != nil {
		take(text)
		return
	}
	r.fail(0, "%.60q begins no format that is known", first)
}

func (r *reader) queryFormat(first string) format {
	switch {
	case strings.HasPrefix(first, "{"):
		return r.jsonLines
	case strings.Contains(first, "\t"):
		return r.tabs
	}
	return nil
}

func (r *reader) gradeFormat(first string) format {
	if strings.HasPrefix(first, "{") {
		return r.json
	}
	for _, separator := range ",;\t" { // spreadsheets write ; if numbers have commas
		if _, ok := columnsOf(strings.Split(first, string(separator))); ok {
			return func(text []byte) { r.table(text, separator) }
		}
	}
	if len(strings.Fields(first)) == 4 {
		return r.qrels
	}
	return nil
}

func (r *reader) jsonLines(text []byte) {
	r.lines(text, func(n int, line string) {
		var q struct {
			ID   string `json:"_id"`
			Text string `json:"text"`
		}
		if err := json.Unmarshal([]byte(line), &q); err != nil {
			r.fail(n, "%w", err)
			return
		}
		r.query(n, Query{ID: q.ID, Text: q.Text})
	})
}

func (r *reader) tabs(text []byte) {
	r.lines(text, func(n int, line string) {
		id, text, _ := strings.Cut(line, "\t")
		r.query(n, Query{ID: id, Text: text})
	})
}

func (r *reader) qrels(text []byte) {
	r.lines(text, func(n int, line string) {
		if fields := strings.Fields(line); len(fields) == 4 {
			r.grade(n, fields[0], fields[2], fields[3])
		} else {
			r.fail(n, "want query, 0, document and grade, separated by blanks")
		}
	})
}

// columns are the indices of a table's columns, −1 for none: the query's text
// and id, the document and its grade.
type columns struct{ text, id, document, grade int }

// columnsOf returns the columns that a header names, or false if one is
// missing.
func columnsOf(header []string) (columns, bool) {
	at := func(names ...string) int {
		for _, name := range names {
			for i, cell := range header {
				if strings.EqualFold(strings.Trim(cell, " \"\r"), name) {
					return i
				}
			}
		}
		return -1
	}
	c := columns{at("query"), at("query_id", "query-id"), at("document", "docid", "doc_id", "corpus-id"), at("grade", "rating", "score", "relevance")}
	return c, max(c.text, c.id) >= 0 && min(c.document, c.grade) >= 0
}

// table reads CSV, and BEIR's qrels.tsv, which has only the ids of queries.
func (r *reader) table(text []byte, separator rune) {
	rows := csv.NewReader(bytes.NewReader(text))
	rows.Comma, rows.LazyQuotes = separator, separator == '\t'
	header, err := rows.Read()
	at, ok := columnsOf(header)
	if err == nil && !ok { // the whole line is in quotes, or blanks come first
		r.fail(1, "the first line, %.60q, does not name query, document and grade", header)
		return
	}
	for err == nil {
		var row []string
		if row, err = rows.Read(); err != nil {
			break
		}
		line, _ := rows.FieldPos(0)
		query := ""
		if at.id >= 0 {
			query = row[at.id]
		}
		if at.text >= 0 {
			query = cmp.Or(query, row[at.text])
			if !r.given && strings.TrimSpace(query) != "" {
				r.queryOnce(line, query, row[at.text])
			}
		}
		r.grade(line, query, row[at.document], row[at.grade])
	}
	if bad, ok := errors.AsType[*csv.ParseError](err); ok {
		r.fail(bad.Line, "%w", bad.Err)
	}
}

// Cell returns a text that spreadsheets show and do not evaluate: with a
// leading blank if it looks like a formula. [ReadJudged] removes the blank.
func Cell(text string) string {
	if text != "" && strings.ContainsAny(text[:1], "=+-@\t\r") {
		return " " + text
	}
	return text
}
