package expand

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/akin-search/akin/expand/form"
)

const (
	// defaultClauseLimit is how many clauses engines take in a query where
	// indices.query.bool.max_clause_count does not say otherwise: Elasticsearch 7
	// and OpenSearch 2 and 3 exactly as many, and Elasticsearch 8 and 9, which work
	// it out from their memory, no less.
	defaultClauseLimit = 1024
	// limitTime is how long a limit is believed: settings change, and the next
	// search that is refused teaches it again. maxLimits bounds how many are known.
	limitTime = 10 * time.Minute
	maxLimits = 1000
)

// A LimitKind is what a limit is of.
type LimitKind string

// The limits that are learned from refusals, and the settings they come from.
const (
	LimitClauses LimitKind = "clauses"        // of a query: indices.query.bool.max_clause_count
	LimitRescore LimitKind = "rescore_window" // hits that are rescored: index.max_rescore_window
	LimitResults LimitKind = "result_window"  // hits that may be asked for: index.max_result_window
)

// A Limit is how much a search of an index expression may have of something.
// N is 0 where that is no longer known.
type Limit struct {
	Kind  LimitKind
	Index string
	N     int64
}

// Limits are those that were learned of a cluster. The zero value has none. It
// is safe for concurrent use.
type Limits struct {
	// OnChange, unless nil, is called whenever a limit is learned, changes, or,
	// with N = 0, is forgotten. It must not block or call a method of the Limits,
	// and is set before the first search.
	OnChange func(Limit)

	mu    sync.Mutex
	known map[Limit]knownLimit // with N = 0
}

// A knownLimit is valid until a time. asked says that it is the cluster's own
// answer, which refusals do not change.
type knownLimit struct {
	n     int64
	asked bool
	until time.Time
}

// of returns a limit, 0 where it is not known.
func (l *Limits) of(kind LimitKind, index string) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.get(Limit{Kind: kind, Index: index}).n
}

// Learn notes a limit that a refusal named, see [Refusal.Limit], for ten
// minutes. Of several the smallest counts, because the nodes of a cluster may
// differ, unless the cluster was asked. It reports whether that was news.
func (l *Limits) Learn(limit Limit) (news bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := limit.N
	limit.N = 0
	known := l.get(limit)
	if known.asked || known.n > 0 && known.n <= n {
		return false
	}
	l.set(limit, n, false)
	return true
}

// Correct replaces what a refusal named by what the cluster itself says of
// the limit. The larger number of clauses counts: Elasticsearch 8 and 9 work
// their limit out from their memory, and go on saying the default of the
// setting.
func (l *Limits) Correct(limit Limit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := limit.N
	limit.N = 0
	if known := l.get(limit); limit.Kind == LimitClauses {
		n = max(n, known.n)
	}
	l.set(limit, n, true)
}

// All returns the limits that are known now, in no order.
func (l *Limits) All() []Limit {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]Limit, 0, len(l.known))
	for k := range l.known {
		if k.N = l.get(k).n; k.N > 0 {
			all = append(all, k)
		}
	}
	return all
}

// get forgets what was known for long enough. The lock is held.
func (l *Limits) get(k Limit) knownLimit {
	known, ok := l.known[k]
	if ok && time.Now().After(known.until) {
		delete(l.known, k)
		l.changed(k, 0)
		return knownLimit{}
	}
	return known
}

// set notes a limit. Where there are too many, all are learned again.
func (l *Limits) set(k Limit, n int64, asked bool) {
	old, ok := l.known[k]
	if l.known == nil || !ok && len(l.known) >= maxLimits {
		l.known = map[Limit]knownLimit{}
	}
	k.Index = strings.Clone(k.Index) // it is a part of the request
	l.known[k] = knownLimit{n, asked, time.Now().Add(limitTime)}
	if old.n != n {
		l.changed(k, n)
	}
}

func (l *Limits) changed(k Limit, n int64) {
	if k.N = n; l.OnChange != nil {
		l.OnChange(k)
	}
}

// A Refusal is what the cluster says against a rewritten search whose
// original it took.
type Refusal struct {
	// Index is the index expression of the search that was refused.
	Index string
	// ClauseCount is [Result.ClauseCount] of the search.
	ClauseCount int
	// Causes are from the cluster's own error objects: the root causes, what failed
	// on shards, and what these were caused by.
	Causes []Cause
}

// A Cause is one error in the answer of a cluster. Its reason may quote the
// request.
type Cause struct{ Type, Reason string }

// Types of errors.
const (
	tooManyClauses  = "too_many_clauses"
	tooManyNested   = "too_many_nested_clauses"
	illegalArgument = "illegal_argument_exception"
)

// minLimit is the smallest limit that is believed: no cluster that is
// searched for text has less, and searches under it would be left alone.
const minLimit = 64

// limitSentences are the whole sentences in which OpenSearch 2 and 3 and
// Elasticsearch 7 to 9 name the limit n and how much was asked for. A query
// that is too long as written is a too_many_clauses, one whose parts are too
// long together a too_many_nested_clauses on some of them.
var limitSentences = []struct {
	kind     LimitKind
	types    []string
	sentence *regexp.Regexp
}{
	{LimitClauses, []string{tooManyClauses, tooManyNested}, regexp.MustCompile(
		`^(?:Query contains too many nested clauses; )?maxClauseCount is set to (?<n>\d{1,9})$`)},
	{LimitRescore, []string{illegalArgument}, regexp.MustCompile(
		`^Rescore window \[(?<asked>\d{1,9})\] is too large\. It must be less than \[(?<n>\d{1,9})\]\. ` +
			`This prevents allocating massive heaps for storing the results to be rescored\. ` +
			`This limit can be set by changing the \[index\.max_rescore_window\] index level setting\.$`)},
	{LimitResults, []string{illegalArgument}, regexp.MustCompile(
		`^Result window is too large, from \+ size must be less than or equal to: \[(?<n>\d{1,9})\] but was \[(?<asked>\d{1,9})\]\. ` +
			`See the scroll api for a more efficient way to request large data sets\. ` +
			`This limit can be set by changing the \[index\.max_result_window\] index level setting\.$`)},
}

// Limit returns the limit that the cluster names, false where it names none.
// A script of the client's can throw an error with any text: where one failed
// nothing is believed, and never a limit that the search did not exceed.
func (r *Refusal) Limit() (Limit, bool) {
	if r.has("script_exception") {
		return Limit{}, false
	}
	for _, c := range r.Causes {
		for _, l := range limitSentences {
			m := l.sentence.FindStringSubmatch(c.Reason)
			if m == nil || !slices.Contains(l.types, c.Type) {
				continue
			}
			n, _ := strconv.Atoi(m[l.sentence.SubexpIndex("n")]) // it fits
			asked := r.ClauseCount
			if at := l.sentence.SubexpIndex("asked"); at > 0 {
				asked, _ = strconv.Atoi(m[at])
			}
			if n >= minLimit && n < asked && (l.kind != LimitRescore || asked <= form.LargestWindow) {
				return Limit{l.kind, r.Index, int64(n)}, true
			}
		}
	}
	return Limit{}, false
}

func (r *Refusal) has(types ...string) bool {
	return slices.ContainsFunc(r.Causes, func(c Cause) bool { return slices.Contains(types, c.Type) })
}

// Moved reports whether the cluster says that indices or fields are not as
// they were known, or that it no longer runs scripts.
func (r *Refusal) Moved() bool {
	if r.has("index_not_found_exception", "index_closed_exception") {
		return true
	}
	return slices.ContainsFunc(r.Causes, func(c Cause) bool {
		switch c.Type {
		case "query_shard_exception": // a field that does not take such a query
			return !r.has("script_exception", tooManyClauses, tooManyNested)
		case "exception", illegalArgument:
			return strings.HasPrefix(c.Reason, "No field found for [") || // to a script of ours
				strings.HasPrefix(c.Reason, "Unable to find a field mapper for field [") ||
				strings.Contains(c.Reason, "search.allow_expensive_queries")
		}
		return false
	})
}
