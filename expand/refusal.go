package expand

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/akin-search/akin/expand/form"
)

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
			if n >= minLimit && n < asked && (l.kind != LimitRescore || asked == form.RescoreWindow) {
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
