package evaluate

import (
	"cmp"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
)

// A Log is what users asked.
type Log struct {
	// Queries are in the order of their first lines, each text once, with its count.
	Queries []Query
	// Skipped is how many lines had no query that can be used.
	Skipped int
	// Causes say of the first of them which line it is and why.
	Causes []error
}

// maxText is how long a query may be, in bytes; engines refuse far shorter
// ones.
const maxText = 8 << 10

// ReadLog reads a log that has one query a line, all as text or all as JSON
// such as {"id":"17","query":"wind tunnel","count":3}, where id and count
// may be missing; or the queries of a file in JSON that [ReadJudged] takes,
// and of a query set of the Search Relevance Workbench. Empty lines do not
// count. A text that comes again adds to the count of the first, whose id
// it gets; without an id the text is the id. It fails where there is no
// query.
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
	at := map[string]int{} // by text, the place in r.set.Queries
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
			r.fail(n, "%d bytes are too long for a query, at most %d", len(q.Query), maxText)
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
