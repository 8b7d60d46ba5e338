package expand

import (
	"bytes"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// defaultClauseLimit is how many clauses engines take in a query where nobody
// says otherwise, by indices.query.bool.max_clause_count: Elasticsearch 7 and
// OpenSearch 2 and 3 exactly as many, and Elasticsearch 8 and 9, which work it
// out from their memory, no less.
const defaultClauseLimit = 1024

// limits are what was learnt of the cluster.
type limits struct {
	// clauses is how many clauses the cluster takes in a query, 0 where it has
	// not yet refused any.
	clauses atomic.Int64
	// windows holds how many hits indices let be ordered anew by the engine, and
	// results how many they let be asked for.
	windows, results windowLimits
}

// maxWindowLimits bounds the index expressions of [windowLimits].
const maxWindowLimits = 1000

// windowLimits hold, for index expressions of which a search was refused for
// its window, the widest window that they take. The zero value holds none.
type windowLimits struct {
	mu     sync.RWMutex
	limits map[string]int64
}

// of returns the limit of an expression, 0 where none is known.
func (w *windowLimits) of(expression string) int64 {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.limits[expression]
}

// lower notes a limit of an expression, unless it has a lower one. Where there
// are too many to keep they are learnt anew.
func (w *windowLimits) lower(expression string, limit int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if old := w.limits[expression]; old > 0 {
		w.limits[expression] = min(old, limit)
		return
	}
	if w.limits == nil || len(w.limits) >= maxWindowLimits {
		w.limits = map[string]int64{}
	}
	w.limits[strings.Clone(expression)] = limit
}

// maxRefusal bounds how much of an answer [Expander.Refused] reads.
const maxRefusal = 8 << 10

// Refused tells that the cluster refused a rewritten search, of an index
// expression, whose original it took. Of several in one request each has its
// own, see [Result.Indices]. answer is the beginning of what it answered; the
// first 8 KiB count. Where it was too many clauses, the searches after it are
// kept under the limit that the answer names; where it was too wide a rescore,
// those of the same expression are not rescored, and where it was too many
// hits, [ModeSoft] asks for no more than it names. The smallest limit heard is
// kept, because the nodes of a cluster may differ. Refused is safe for
// concurrent use.
func (e *Expander) Refused(index string, answer []byte) {
	answer = answer[:min(len(answer), maxRefusal)]
	lower(&e.limits.clauses, clauseLimit(answer))
	if window := windowLimit(answer); window > 0 {
		e.limits.windows.lower(index, window)
	}
	if results := resultLimit(answer); results > 0 {
		e.limits.results.lower(index, results)
	}
}

// lower sets limit to n where that is less. 0 stands for no limit.
func lower(limit *atomic.Int64, n int64) {
	for old := limit.Load(); n > 0 && (old == 0 || n < old); old = limit.Load() {
		if limit.CompareAndSwap(old, n) {
			return
		}
	}
}

// clauseLimit returns the limit that an answer names, 0 where it names none.
// Lucene's TooManyClauses and TooManyNestedClauses name it, and Elasticsearch 7
// to 9 and OpenSearch 2 and 3 give it on in their answers, with status 400 or
// 500 and under changing types of errors.
func clauseLimit(answer []byte) int64 {
	_, rest, _ := bytes.Cut(answer, []byte("maxClauseCount is set to "))
	return leadingNumber(rest)
}

// windowLimit returns the widest window of a rescore that an answer names, 0
// where it names none. It is the setting index.max_rescore_window of an index;
// Elasticsearch 7 to 9 and OpenSearch 2 and 3 name it in the same words. They
// take a window as wide as it, too.
func windowLimit(answer []byte) int64 {
	_, rest, _ := bytes.Cut(answer, []byte("Rescore window ["))
	_, rest, _ = bytes.Cut(rest, []byte("] is too large. It must be less than ["))
	return leadingNumber(rest)
}

// resultLimit returns how many hits may be asked for by what an answer says, 0
// where it does not. It is the setting index.max_result_window of an index,
// named in the same words by Elasticsearch 7 to 9 and OpenSearch 2 and 3.
func resultLimit(answer []byte) int64 {
	_, rest, _ := bytes.Cut(answer, []byte("from + size must be less than or equal to: ["))
	return leadingNumber(rest)
}

// leadingNumber returns the number that text begins with, 0 where it does not,
// or where the number may go on because the text ends with it.
func leadingNumber(text []byte) int64 {
	end := bytes.IndexFunc(text, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		return 0
	}
	n, err := strconv.ParseInt(string(text[:end]), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// over returns how many clauses the search has too many as w wrote it. Since
// Lucene 9 the engines count the leaves of a whole query, each time they stand
// there and in script_score too; before, the direct clauses of each bool, which
// are not more.
func (j *job) over(w *writer) int {
	limit := j.clauseLimit()
	if j.exactly() { // there are as many terms as S has
		limit = j.hardLimit()
	}
	if limit == 0 {
		return 0
	}
	scan := &j.scanner.scan
	n := scan.leaves + w.leaves
	for i := range scan.clauses {
		if c := &scan.clauses[i]; !c.changed() {
			n += c.leaves()
		}
	}
	return n - limit
}

// fuzzyExpansions is the number of terms that the engines take for a fuzzy one,
// unless the clause asks for more or less.
const fuzzyExpansions = 50

// leaves estimates from above how many leaves the original clause has.
func (c *clause) leaves() int {
	if c.note {
		return 0 // counted by the scan
	}
	n := 0
	for i := range c.targets {
		if a := c.targets[i].analysis; a != nil {
			n += len(a.Terms)
		} else {
			// As many as it has words, or signs where there are no blanks.
			n += max(len(strings.Fields(c.text)), len(c.text)/3) + 1
		}
	}
	if c.prefix {
		n += len(c.targets)
	}
	if c.fuzzy {
		n *= fuzzyExpansions
	}
	return n
}

// cut takes back n added terms: each time the weakest of the field that has the
// most.
func (j *job) cut(n int) {
	for range n {
		t := j.fullest()
		if t == nil {
			return
		}
		if t.sel.candidates = t.sel.candidates[:len(t.sel.candidates)-1]; len(t.sel.candidates) == 0 {
			t.reason = ReasonTermLimit
		}
	}
}

// fullest returns the target with the most added terms, the last of several;
// nil where no target has any.
func (j *job) fullest() *target {
	var fullest *target
	scan, most := &j.scanner.scan, 1
	for i := range scan.clauses {
		c := &scan.clauses[i]
		if c.added() == 0 {
			continue
		}
		for k := range c.targets {
			if t := &c.targets[k]; t.reason == "" && len(t.sel.candidates) >= most {
				fullest, most = t, len(t.sel.candidates)
			}
		}
	}
	return fullest
}

// maxLevels is how deep queries may stand in each other, with the innermost.
// Elasticsearch 8 and 9 refuse more than 30, or what the cluster's setting
// indices.query.bool.max_nested_depth says; some room is left for a lower one.
// Elasticsearch 7 and OpenSearch 2 take any depth.
const maxLevels = 20

// flatten takes a flatter form where the clause would be nested too deep, or
// leaves it alone.
func (j *job) flatten(c *clause) {
	for c.depth+j.levels(c) > maxLevels {
		c.formReason = ReasonTooDeep
		switch c.form {
		case FormSaturated:
			c.form = FormGrouped
		case FormGrouped:
			c.form = FormLinear
		case FormAuto, FormLinear, FormHard: // the last is not taken where it is too deep
			c.form = FormAuto
			c.leave(ReasonTooDeep)
			return
		}
	}
}

// levels returns how many levels of queries the clause takes in its form. A
// query that has no queries in it is a level, too.
func (j *job) levels(c *clause) int {
	several := len(c.targets) > 1
	counted := c.groups() && (several || !j.same(c))
	n := map[Form]int{
		FormLinear:    2, // bool, term
		FormGrouped:   4, // bool, two dis_max, term
		FormSaturated: 5, // bool, script_score, bool, script_score, term
	}[c.form]
	switch {
	case c.form == FormLinear && c.groups() && !j.same(c):
		return 5 // four bool, term
	case several:
		return n + 2 // dis_max and bool
	case c.form != FormLinear && counted:
		return n + 1 // bool
	}
	return n
}
