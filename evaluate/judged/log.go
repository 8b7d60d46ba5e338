package judged

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
)

// A LoggedQuery is a query and how often it was asked.
type LoggedQuery struct {
	Query
	Count int `json:"count"`
}

// A Log is what users asked.
type Log struct {
	// Queries are in the order of their first lines, each text once.
	Queries []LoggedQuery
	// Skipped is how many lines had no query that can be used.
	Skipped int
	// Causes say of the first of them which line it is and why.
	Causes []error
}

// Asked returns the queries without their counts.
func (l *Log) Asked() []Query {
	queries := make([]Query, len(l.Queries))
	for i, q := range l.Queries {
		queries[i] = q.Query
	}
	return queries
}

// maxText is how long a query may be, in bytes; engines refuse far shorter
// ones.
const maxText = 8 << 10

// ReadLog reads a log that has one query a line, all as text or all as JSON
// such as {"id":"17","query":"wind tunnel","count":3}, where id and count
// may be missing; or the queries of a file in JSON that [Read] takes, and of
// a query set of the Search Relevance Workbench. Empty lines do not count. A
// text that comes again adds to the count of the first, whose id it gets;
// without an id the text is the id. It fails where there is no query.
func ReadLog(f *File) (*Log, error) {
	r := newReader()
	log := &Log{}
	r.read(f, func(string) func(*bufio.Reader) {
		return func(in *bufio.Reader) { r.log(in, log) }
	})
	if len(log.Queries) == 0 {
		return nil, cmp.Or(r.failed(), fmt.Errorf("%s: no queries", f.Name))
	}
	log.Skipped, log.Causes = len(r.problems)+r.more, r.problems
	return log, nil
}

func (r *reader) log(in *bufio.Reader, log *Log) {
	data, err := io.ReadAll(in)
	if err != nil {
		r.fail(0, "%w", err)
		return
	}
	asJSON := bytes.HasPrefix(bytes.TrimSpace(data), []byte("{"))
	if asJSON {
		var file jsonFile
		if json.Unmarshal(data, &file) == nil && file.known() {
			r.add(&file, lineAt(data))
			for _, q := range r.set.Queries {
				log.Queries = append(log.Queries, LoggedQuery{q, 1})
			}
			return
		}
	}
	at := map[string]int{} // by text, the place in log.Queries
	number := 0
	for line := range bytes.Lines(data) {
		number++
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		q, err := parseLogged(line, asJSON)
		i, again := at[q.Text]
		switch {
		case err != nil:
			r.fail(number, "%w", err)
		case again:
			log.Queries[i].Count += q.Count
		default:
			if r.query(number, q.Query); len(r.set.Queries) > len(log.Queries) {
				at[q.Text] = len(log.Queries)
				log.Queries = append(log.Queries, q)
			}
		}
	}
}

// parseLogged reads the query of one line.
func parseLogged(line []byte, asJSON bool) (q LoggedQuery, err error) {
	entry := struct {
		ID    string `json:"id"`
		Query string `json:"query"`
		Count int32  `json:"count"`
	}{Query: string(line), Count: 1}
	if asJSON {
		entry.Query = ""
		if err := json.Unmarshal(line, &entry); err != nil {
			return q, err
		}
	}
	text := strings.TrimSpace(entry.Query)
	switch {
	case text == "":
		return q, errors.New(`no "query"`)
	case len(text) > maxText:
		return q, fmt.Errorf("%d bytes are too long for a query, at most %d", len(text), maxText)
	case !utf8.ValidString(text):
		return q, errors.New("not UTF-8")
	case entry.Count < 1:
		return q, fmt.Errorf("count %d is below 1", entry.Count)
	}
	return LoggedQuery{Query{ID: cmp.Or(entry.ID, text), Text: text}, int(entry.Count)}, nil
}
