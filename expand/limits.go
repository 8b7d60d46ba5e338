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
	// defaultClauseLimit is how many clauses engines accept in a query unless
	// indices.query.bool.max_clause_count says otherwise. Elasticsearch 7 and
	// OpenSearch 2 and 3 accept exactly as many; Elasticsearch 8 and 9 derive the
	// limit from their memory and accept at least as many.
	defaultClauseLimit = 1024
	// limitTime is how long a learned limit is valid: settings change, and the
	// next refused search teaches the limit again. maxLimits is how many limits
	// are kept.
	limitTime = 10 * time.Minute
	maxLimits = 1000
)

// A LimitKind is the kind of a limit.
type LimitKind string

// The limits that are learned from refusals, and their settings.
const (
	LimitClauses LimitKind = "clauses"        // clauses of a query: indices.query.bool.max_clause_count
	LimitRescore LimitKind = "rescore_window" // rescored hits: index.max_rescore_window
	LimitResults LimitKind = "result_window"  // from + size: index.max_result_window
)

// A Limit is an upper bound for the searches of an index expression. N is 0 if
// it is no longer known.
type Limit struct {
	Kind  LimitKind
	Index string
	N     int64
}

// Limits are the limits learned from a cluster. The zero value has none. It is
// safe for concurrent use.
type Limits struct {
	// OnChange, unless nil, is called whenever a limit is learned, changes, or is
	// forgotten (N = 0). Set it before the first search. It must not block or call
	// a method of the Limits.
	OnChange func(Limit)

	mu    sync.Mutex
	known map[Limit]knownLimit // the key has N = 0
}

// A knownLimit is valid until a time. asked says that the cluster itself gave
// it; refusals do not change it then.
type knownLimit struct {
	n     int64
	asked bool
	until time.Time
}

// of returns a limit, or 0 if unknown.
func (l *Limits) of(kind LimitKind, index string) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.get(Limit{Kind: kind, Index: index}).n
}

// Learn stores the limit in a refusal, see [Refusal.Limit], for ten minutes.
// The smallest of several wins, because the nodes of a cluster may differ. A
// limit that the cluster gave itself is not replaced. Learn reports whether the
// limit was new.
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

// Correct replaces a limit learned from a refusal by the one that the cluster's
// settings give. Of two clause limits the larger one wins: Elasticsearch 8 and
// 9 derive their limit from memory, but still report the default of the
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

// get returns what is known of a limit, and forgets it after its time. The
// caller holds the lock.
func (l *Limits) get(k Limit) knownLimit {
	known, ok := l.known[k]
	if ok && time.Now().After(known.until) {
		delete(l.known, k)
		l.changed(k, 0)
		return knownLimit{}
	}
	return known
}

// set stores a limit. If there are too many, it forgets all others.
func (l *Limits) set(k Limit, n int64, asked bool) {
	old, ok := l.known[k]
	if l.known == nil || !ok && len(l.known) >= maxLimits {
		l.known = map[Limit]knownLimit{}
	}
	k.Index = strings.Clone(k.Index) // k.Index is a part of the request
	l.known[k] = knownLimit{n, asked, time.Now().Add(limitTime)}
	if old.n != n {
		l.changed(k, n)
	}
}

func (l *Limits) changed(k Limit, n int64) {
	k.N = n
	if l.OnChange != nil {
		l.OnChange(k)
	}
}

// A Refusal is the cluster's error for a rewritten search whose original it
// accepted.
type Refusal struct {
	// Index is the index expression of the refused search.
	Index string
	// ClauseCount is [Result.ClauseCount] of the search.
	ClauseCount int
	// Causes come from the cluster's own error objects: the root causes, the
	// failures of shards, and their causes.
	Causes []Cause
}

// A Cause is one error in a cluster's answer. Its reason may quote the request.
type Cause struct{ Type, Reason string }

// Types of errors.
const (
	tooManyClauses  = "too_many_clauses"
	tooManyNested   = "too_many_nested_clauses"
	illegalArgument = "illegal_argument_exception"
)

// minLimit is the smallest limit that is accepted. No cluster with text search
// has less, and a smaller limit would leave most searches unexpanded.
const minLimit = 64

// limitSentences are the complete sentences in which OpenSearch 2 and 3 and
// Elasticsearch 7 to 9 give the limit n and the number asked for. A query with
// too many clauses as written is a too_many_clauses; one with too many clauses
// in its parts together is a too_many_nested_clauses in some versions.
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

// Limit returns the limit that the cluster gives, or false if there is none. It
// ignores a limit that the search did not exceed, and all limits if a script
// failed: a client's script can throw an error with any text.
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
			n, _ := strconv.Atoi(m[l.sentence.SubexpIndex("n")]) // at most nine digits
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

// Moved reports whether the cluster says that indices or fields have changed,
// or that it no longer runs scripts.
func (r *Refusal) Moved() bool {
	if r.has("index_not_found_exception", "index_closed_exception") {
		return true
	}
	return slices.ContainsFunc(r.Causes, func(c Cause) bool {
		switch c.Type {
		case "query_shard_exception": // the field does not support such a query
			return !r.has("script_exception", tooManyClauses, tooManyNested)
		case "exception", illegalArgument:
			return strings.HasPrefix(c.Reason, "No field found for [") || // an error of akin's scripts
				strings.HasPrefix(c.Reason, "Unable to find a field mapper for field [") ||
				strings.Contains(c.Reason, "search.allow_expensive_queries")
		}
		return false
	})
}
