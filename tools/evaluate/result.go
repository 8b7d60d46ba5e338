package evaluate

import "time"

// A Result is what several arms did to judged searches. It is what --json
// prints, and what the table and the report show.
type Result struct {
	// Measures are the names of the measures, such as "nDCG@10", in the order asked
	// for.
	Measures []string `json:"measures"`
	// Arms are in the order asked for. The others are compared with the first.
	Arms []ArmResult `json:"arms"`
	// Queries are those that were searched for, in the order of their file.
	Queries []QueryResult `json:"queries"`
	// LeftOut is what of the judged set could not be used.
	LeftOut LeftOut `json:"left_out"`
}

// An ArmResult sums up an arm over all queries.
type ArmResult struct {
	Trouble // counts searches

	Name     string              `json:"name"`
	Measures map[string]Estimate `json:"measures"` // by name
	// Unjudged is the mean share of documents without a grade in the top ten.
	Unjudged float64 `json:"unjudged_at_10"`
	Latency  Latency `json:"latency"`
	// AddedTerms is the mean number of terms that akin added to a search; nil where
	// nobody knows.
	AddedTerms *float64 `json:"added_terms,omitempty"`
}

// Trouble counts searches that did not go as they should.
type Trouble struct {
	// FailedOpen are those that akin sent as they came, since something failed.
	FailedOpen int `json:"failed_open,omitempty"`
	// Unexplained are those of which akin did not know any more what it had done:
	// they may have failed open, and their added terms are not known.
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

// An Interval holds a value with a confidence of 95 %, by the bootstrap over
// queries.
type Interval struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// An Estimate is the mean of a measure over the queries.
type Estimate struct {
	Mean     float64  `json:"mean"`
	Interval Interval `json:"interval"`
	// Gain is what the arm has more than the first one; nil for that one.
	Gain *Gain `json:"gain,omitempty"`
}

// A Gain is the mean of the paired differences to the first arm.
type Gain struct {
	Mean     float64  `json:"mean"`
	Interval Interval `json:"interval"`
	// P is the probability of as large a difference by chance, and Holm the same
	// as it counts if all arms are looked at, for this measure.
	P    float64 `json:"p"`
	Holm float64 `json:"p_holm"`
}

// Latency has percentiles of the time that a search took, as its client saw it,
// in milliseconds.
type Latency struct {
	P50 float64 `json:"p50_ms"`
	P95 float64 `json:"p95_ms"`
	P99 float64 `json:"p99_ms"`
}

// A QueryResult is what became of one query.
type QueryResult struct {
	Query

	Arms []Ranked `json:"arms"` // as in [Result]
}

// Ranked is what an arm returned for a query.
type Ranked struct {
	Measures map[string]float64 `json:"measures"` // by name
	Unjudged float64            `json:"unjudged_at_10"`
	// Hits are the first ones, at most [ShownHits], in the order that is measured.
	Hits []Hit `json:"hits"`
	// Added are the terms that akin added, in the order of their clauses.
	Added      []AddedTerm `json:"added,omitempty"`
	TookMillis float64     `json:"took_ms"`
}

// ShownHits is how many hits of a ranking a [Result] keeps.
const ShownHits = 10

// An Answer is what an arm returns for one search.
type Answer struct {
	// Hits are as the engine orders them. Where it gives them no score they have
	// those of their order.
	Hits []Hit `json:"hits"`
	// Added is nil where nobody knows what akin added, and empty where it added
	// nothing.
	Added []AddedTerm `json:"added"`
	// FailedOpen says that akin sent the search as it came, since something failed,
	// and Unexplained that akin was asked what it did and did not know any more.
	FailedOpen  bool          `json:"failed_open,omitempty"`
	Unexplained bool          `json:"unexplained,omitempty"`
	Took        time.Duration `json:"took_ns"` // until the answer was read
}

// A Hit is a document that was found.
type Hit struct {
	ID    string   `json:"id"`
	Score float64  `json:"score"`
	Title string   `json:"title,omitempty"` // "" where none was asked for
	Grade *float64 `json:"grade,omitempty"` // nil where it was not judged, or not yet measured
}

// An AddedTerm is a term that akin added to a search.
type AddedTerm struct {
	Term  string  `json:"term"`
	From  string  `json:"from"` // the term of the search that it is added for
	Boost float64 `json:"boost"`
	// Word and FromWord are what people write for Term and From, "" for the same.
	Word     string `json:"word,omitempty"`
	FromWord string `json:"from_word,omitempty"`
}

// LeftOut lists what of a judged set could not be used.
type LeftOut struct {
	// Unjudged are queries without judgments; they were not searched for.
	Unjudged []string `json:"queries_without_judgments,omitempty"`
	// Unknown are queries that have judgments and no text.
	Unknown []string `json:"queries_without_text,omitempty"`
	// Documents have judgments and are not in the index. They count as relevant
	// ones that nobody can find.
	Documents []string `json:"documents_not_in_the_index,omitempty"`
	// Ungraded is how many lines of a CSV file have no grade yet.
	Ungraded int `json:"lines_without_grade,omitempty"`
}
