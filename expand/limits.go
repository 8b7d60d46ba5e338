package expand

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// defaultClauseLimit is how many clauses engines take in a query where nobody
// says otherwise, by indices.query.bool.max_clause_count: Elasticsearch 7 and
// OpenSearch 2 and 3 exactly as many, and Elasticsearch 8 and 9, which work it
// out from their memory, no less.
const defaultClauseLimit = 1024

// What is learnt is forgotten after limitTime: settings change, and the next
// search that is refused teaches it again. maxLimits bounds how much is known.
const (
	limitTime = 10 * time.Minute
	maxLimits = 1000
)

// A LimitKind is what a limit is of.
type LimitKind string

// The limits that are learnt from refusals.
const (
	// LimitClauses is how many clauses a query may have, by the cluster's setting
	// indices.query.bool.max_clause_count.
	LimitClauses LimitKind = "clauses"
	// LimitRescore is how many hits the engine orders again, by the index's setting
	// index.max_rescore_window.
	LimitRescore LimitKind = "rescore_window"
	// LimitResults is how many hits may be asked for, by the index's setting
	// index.max_result_window.
	LimitResults LimitKind = "result_window"
)

// A Limit is how much a search of an index expression may have of something.
type Limit struct {
	Kind  LimitKind
	Index string
	// N is the limit. It is 0 where it is no longer known.
	N int64
}

// limits are those that were learnt. The zero value holds none.
type limits struct {
	// count is how many are held, so that nobody waits for the lock while there
	// are none, as usual.
	count atomic.Int32
	mu    sync.Mutex
	known map[limitKey]learntLimit
	told  func(Limit)
}

type limitKey struct {
	kind  LimitKind
	index string
}

// A learntLimit holds until a time. asked says that it is the cluster's own
// answer, which refusals do not change.
type learntLimit struct {
	n     int64
	asked bool
	until time.Time
}

// of returns a limit of an index expression, 0 where none is known.
func (l *limits) of(kind LimitKind, index string) int64 {
	if l.count.Load() == 0 {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.get(limitKey{kind, index}).n
}

// get returns what is known, the zero value for nothing, and forgets what was
// known for long enough. The lock is held.
func (l *limits) get(k limitKey) learntLimit {
	known, ok := l.known[k]
	if ok && time.Now().After(known.until) {
		delete(l.known, k)
		l.count.Store(int32(len(l.known))) //nolint:gosec // at most maxLimits
		l.tell(k, 0)
		return learntLimit{}
	}
	return known
}

// set notes a limit. Where there are too many to keep, all are learnt again.
func (l *limits) set(k limitKey, known learntLimit) {
	if _, old := l.known[k]; l.known == nil || !old && len(l.known) >= maxLimits {
		l.known = map[limitKey]learntLimit{}
	}
	k.index = strings.Clone(k.index) // it is a part of the request
	known.until = time.Now().Add(limitTime)
	changed := l.known[k].n != known.n
	l.known[k] = known
	l.count.Store(int32(len(l.known))) //nolint:gosec // at most maxLimits
	if changed {
		l.tell(k, known.n)
	}
}

func (l *limits) tell(k limitKey, n int64) {
	if l.told != nil {
		l.told(Limit{k.kind, k.index, n})
	}
}

// OnLimit has f called whenever a limit is learnt, changes, or, with N = 0, is
// forgotten. f must not block or call e. OnLimit must be called before the
// first search.
func (e *Expander) OnLimit(f func(Limit)) { e.limits.told = f }

// Learn notes a limit that a refusal named, see [Refusal.Limit]. The searches
// of that index expression are kept under it for ten minutes. Of several the
// smallest counts, because the nodes of a cluster may differ, unless the
// cluster was asked. It reports whether that was news. Learn is safe for
// concurrent use.
func (e *Expander) Learn(limit Limit) (news bool) {
	k := limitKey{limit.Kind, limit.Index}
	e.limits.mu.Lock()
	defer e.limits.mu.Unlock()
	if known := e.limits.get(k); known.asked || known.n > 0 && known.n <= limit.N {
		return false
	}
	e.limits.set(k, learntLimit{n: limit.N})
	return true
}

// Correct replaces what a refusal named by what the cluster itself says of the
// limit. The larger number of clauses counts: Elasticsearch 8 and 9 work their
// limit out from their memory, and go on telling the default of the setting.
// Correct is safe for concurrent use.
func (e *Expander) Correct(limit Limit) {
	k := limitKey{limit.Kind, limit.Index}
	e.limits.mu.Lock()
	defer e.limits.mu.Unlock()
	if known := e.limits.get(k); limit.Kind == LimitClauses {
		limit.N = max(limit.N, known.n)
	}
	e.limits.set(k, learntLimit{n: limit.N, asked: true})
}

// Limits returns the limits that are known now, in no order.
func (e *Expander) Limits() []Limit {
	e.limits.mu.Lock()
	defer e.limits.mu.Unlock()
	all := make([]Limit, 0, len(e.limits.known))
	for k := range e.limits.known {
		if known := e.limits.get(k); known.n > 0 {
			all = append(all, Limit{k.kind, k.index, known.n})
		}
	}
	return all
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
	return j.leaves(w) - limit
}

// leaves estimates from above how many clauses the search has as w wrote it.
func (j *job) leaves(w *writer) int {
	scan := &j.scanner.scan
	n := scan.leaves + w.leaves
	for i := range scan.clauses {
		if c := &scan.clauses[i]; !c.changed() {
			n += c.leaves()
		}
	}
	return n
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
