package evaluate

import "time"

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
	Trouble // counts searches

	Name     string              `json:"name"`
	Measures map[string]Estimate `json:"measures"` // by name
	// Unjudged is the mean share of documents without a grade in the top ten.
	Unjudged float64 `json:"unjudged_at_10"`
	Latency  Latency `json:"latency"`
	// AddedTerms is the mean number of terms that akin added to a search; nil if
	// unknown.
	AddedTerms *float64 `json:"added_terms,omitempty"`
}

// Trouble counts searches with problems.
type Trouble struct {
	// FailedOpen are searches that akin sent unchanged because something failed.
	FailedOpen int `json:"failed_open,omitempty"`
	// Unexplained are searches whose explanation was gone: they may have failed
	// open, and their added terms are unknown.
	Unexplained int `json:"unexplained,omitempty"`
}

func (t *Trouble) add(a Answer) {
	if a.FailedOpen {
		t.FailedOpen++
	}
	if a.Unexplained {
		t.Unexplained++
	}
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
	// FailedOpen says that akin sent the search unchanged because something
	// failed. Unexplained says that its explanation was gone.
	FailedOpen  bool          `json:"failed_open,omitempty"`
	Unexplained bool          `json:"unexplained,omitempty"`
	Took        time.Duration `json:"took_ns"` // until the answer was read
	// Engine is how long the engine says that it took, in whole milliseconds.
	Engine time.Duration `json:"engine_ns,omitempty"`
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
