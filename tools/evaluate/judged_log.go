package evaluate

import (
	"cmp"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
)

// A Log has the queries of users.
type Log struct {
	// Queries are in the order of their first lines, each text once, with its
	// count.
	Queries []Query
	// Skipped is how many lines have no usable query.
	Skipped int
	// Causes say where the first skipped lines are, and why.
	Causes []error
}

// maxText is the longest query in bytes. Engines reject far shorter ones.
const maxText = 8 << 10

// ReadLog reads a log with one query per line, all as text or all as JSON such
// as {"id":"17","query":"wind tunnel","count":3}, where id and count are
// optional. It also reads the queries of the JSON files of [ReadJudged], and a
// query set of the Search Relevance Workbench. It skips empty lines. A repeated
// text adds to the count of the first, and has its id; without an id the text
// is the id. A log without queries is an error.
func ReadLog(f *JudgedFile) (*Log, error) {
	r := newReader()
	r.read(f, func(first string) format {
		if strings.HasPrefix(first, "{") {
			return r.jsonLog
		}
		return func(text []byte) {
			r.log(text, func(line string) (asked, error) { return asked{Query: line, Count: 1}, nil })
		}
	})
	if len(r.set.Queries) == 0 {
		return nil, cmp.Or(r.failed(), fmt.Errorf("%s: no queries", f.Name))
	}
	return &Log{r.set.Queries, len(r.problems) + r.more, r.problems}, nil
}

type asked struct {
	ID    string `json:"id"`
	Query string `json:"query"`
	Count int32  `json:"count"`
}

func (r *reader) jsonLog(text []byte) {
	var file jsonFile
	if json.Unmarshal(text, &file) != nil || !file.known() {
		r.log(text, func(line string) (asked, error) {
			q := asked{Count: 1}
			err := json.Unmarshal([]byte(line), &q)
			return q, err
		})
		return
	}
	r.add(&file, lineAt(text))
	for i := range r.set.Queries {
		r.set.Queries[i].Count = 1
	}
}

func (r *reader) log(text []byte, parse func(line string) (asked, error)) {
	at := map[string]int{} // index in r.set.Queries by text
	r.lines(text, func(n int, line string) {
		q, err := parse(line)
		q.Query = strings.TrimSpace(q.Query)
		i, again := at[q.Query]
		switch {
		case err != nil:
			r.fail(n, "%w", err)
		case q.Query == "":
			r.fail(n, `no "query"`)
		case len(q.Query) > maxText:
			r.fail(n, "a query of %d bytes is too long: at most %d", len(q.Query), maxText)
		case !utf8.ValidString(q.Query):
			r.fail(n, "not UTF-8")
		case q.Count < 1:
			r.fail(n, "count %d is below 1", q.Count)
		case again:
			r.set.Queries[i].Count += int(q.Count)
		default:
			before := len(r.set.Queries)
			r.query(n, Query{ID: cmp.Or(q.ID, q.Query), Text: q.Query, Count: int(q.Count)})
			if len(r.set.Queries) > before {
				at[q.Query] = before
			}
		}
	})
}
