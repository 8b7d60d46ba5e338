package evaluate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// A Result has the figures of several arms on judged searches. --json prints
// it, and the table and the report show it.
type Result struct {
	// Measures are the names of the measures, such as "nDCG@10", in the given
	// order.
	Measures []string `json:"measures"`
	// Arms are in the given order. Each is compared with the first.
	Arms []ArmResult `json:"arms"`
	// Queries are the sent queries, in the order of their file.
	Queries []QueryResult `json:"queries"`
	// LeftOut says which parts of the judged set could not be used.
	LeftOut LeftOut `json:"left_out"`
}

// An ArmResult summarizes an arm over all queries.
type ArmResult struct {
	Expansion // counts searches

	Name     string              `json:"name"`
	Measures map[string]Estimate `json:"measures"` // by name
	// Unjudged is the mean share of documents without a grade in the top ten.
	Unjudged float64 `json:"unjudged_at_10"`
	Latency  Latency `json:"latency"`
	// AddedTerms is the mean number of terms that akin added to a search; nil if
	// unknown.
	AddedTerms *float64 `json:"added_terms,omitempty"`
}

// An Expansion counts searches by whether akin expanded them. It is zero
// without an akin.
type Expansion struct {
	Expanded int `json:"expanded,omitempty"`
	// Unexpanded counts the searches that went out as they came, by
	// [Answer.Unexpanded].
	Unexpanded map[string]int `json:"unexpanded,omitempty"`
	// Unexplained are searches whose explanation was gone: it is unknown whether
	// they were expanded.
	Unexplained int `json:"unexplained,omitempty"`
	// Warning says that fewer than 90 % were expanded, or is "".
	Warning string `json:"warning,omitempty"`
}

// Add counts an answer.
func (e *Expansion) Add(a Answer) {
	switch {
	case a.Unexplained:
		e.Unexplained++
	case a.Unexpanded != "":
		if e.Unexpanded == nil {
			e.Unexpanded = map[string]int{}
		}
		e.Unexpanded[a.Unexpanded]++
	case a.Added != nil:
		e.Expanded++
	}
	e.Warning = ""
	asked := e.asked()
	// Searches that find enough are left alone because the profile says so.
	if meant := e.Expanded + e.Unexpanded[enoughHits]; 10*meant < 9*asked {
		e.Warning = fmt.Sprintf("only %d of %d searches were expanded", e.Expanded, asked)
	}
}

// enoughHits is the reason of searches that find enough by themselves.
const enoughHits = "enough_hits"

// asked returns how many searches akin is known to have got.
func (e *Expansion) asked() int {
	sum := e.Expanded
	for _, n := range e.Unexpanded {
		sum += n
	}
	return sum
}

// Share says how many searches were expanded, "-" without an akin.
func (e *Expansion) Share() string {
	if e.asked() == 0 {
		return "-"
	}
	return fmt.Sprintf("%d of %d", e.Expanded, e.asked())
}

// Why lists the reasons of the others, the most frequent first, or returns "".
func (e *Expansion) Why() string {
	reasons := slices.Sorted(maps.Keys(e.Unexpanded))
	slices.SortStableFunc(reasons, func(a, b string) int { return e.Unexpanded[b] - e.Unexpanded[a] })
	for k, reason := range reasons {
		reasons[k] = fmt.Sprintf("%d %s", e.Unexpanded[reason], reason)
	}
	return strings.Join(reasons, ", ")
}

// An Interval is a 95 % confidence interval, by the bootstrap over queries.
type Interval struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// An Estimate is the mean of a measure over the queries.
type Estimate struct {
	Mean     float64  `json:"mean"`
	Interval Interval `json:"interval"`
	// Gain is the gain over the first arm; nil for the first arm.
	Gain *Gain `json:"gain,omitempty"`
}

// A Gain is the mean of the paired differences to the first arm.
type Gain struct {
	Mean     float64  `json:"mean"`
	Interval Interval `json:"interval"`
	// P is the probability of such a difference by chance. Holm is P corrected for
	// the number of arms, for this measure.
	P    float64 `json:"p"`
	Holm float64 `json:"p_holm"`
}

// Latency has percentiles of the time of a search, as its client saw it, in
// milliseconds.
type Latency struct {
	P50 float64 `json:"p50_ms"`
	P95 float64 `json:"p95_ms"`
	P99 float64 `json:"p99_ms"`
}

// A QueryResult has the results of one query.
type QueryResult struct {
	Query

	Arms []Ranked `json:"arms"` // as in [Result]
}

// Ranked is an arm's result for a query.
type Ranked struct {
	Measures map[string]float64 `json:"measures"` // by name
	Unjudged float64            `json:"unjudged_at_10"`
	// Hits are the first hits, at most [ShownHits], in the measured order.
	Hits []Hit `json:"hits"`
	// Added are the terms that akin added, in the order of their clauses.
	Added      []AddedTerm `json:"added,omitempty"`
	TookMillis float64     `json:"took_ms"`
}

// ShownHits is how many hits of a ranking a [Result] keeps.
const ShownHits = 10

// An Answer is the answer of an arm to one search.
type Answer struct {
	// Hits are in the engine's order. Without scores they get scores in that
	// order.
	Hits []Hit `json:"hits"`
	// Added is nil if the added terms are unknown, and empty if akin added
	// nothing.
	Added []AddedTerm `json:"added"`
	// Unexpanded is why akin sent the search as it came, "" if it did not, or
	// without an akin. Unexplained says that its explanation was gone.
	Unexpanded  string        `json:"unexpanded,omitempty"`
	Unexplained bool          `json:"unexplained,omitempty"`
	Took        time.Duration `json:"took_ns"` // until the answer was read
	// Engine is how long the engine says that it took, in whole milliseconds.
	Engine time.Duration `json:"engine_ns,omitempty"`
	// Sent is the body that the cluster got, if the arm was to keep it.
	// Reordered says that akin put the hits in another order.
	Sent      []byte `json:"sent,omitempty"`
	Reordered bool   `json:"reordered,omitempty"`
}

// A Hit is a document that was found.
type Hit struct {
	ID    string   `json:"id"`
	Score float64  `json:"score"`
	Title string   `json:"title,omitempty"` // "" if none was requested
	Grade *float64 `json:"grade,omitempty"` // nil if it was not judged or not yet measured
}

// An AddedTerm is a term that akin added to a search.
type AddedTerm struct {
	Term  string  `json:"term"`
	From  string  `json:"from"` // the term of the search that it was added for
	Boost float64 `json:"boost"`
	// Word and FromWord are what people write for Term and From, "" if that is the
	// same.
	Word     string `json:"word,omitempty"`
	FromWord string `json:"from_word,omitempty"`
}

// LeftOut lists the parts of a judged set that could not be used.
type LeftOut struct {
	// Unjudged are queries without judgments. They were not sent.
	Unjudged []string `json:"queries_without_judgments,omitempty"`
	// Unknown are queries with judgments and without a text.
	Unknown []string `json:"queries_without_text,omitempty"`
	// Documents are judged documents that are not in the index. They count as
	// relevant documents that cannot be found.
	Documents []string `json:"documents_not_in_the_index,omitempty"`
	// Ungraded is how many lines of a CSV file have no grade yet.
	Ungraded int `json:"lines_without_grade,omitempty"`
}
