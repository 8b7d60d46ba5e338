package expand

import (
	"context"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/expand/form"
	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/expand/terms"
)

// An Endpoint is the kind of request a search came in by.
type Endpoint uint8

// The endpoints whose searches can be rewritten.
const (
	EndpointSearch      Endpoint = iota // one search body
	EndpointMultiSearch                 // _msearch: lines of headers and bodies in turn
	EndpointCount                       // _count: only a query, which is only matched
	EndpointValidate                    // _validate/query: only a query, which is only parsed
	EndpointExplain                     // _explain/{id}: only a query, scored for one document
	EndpointRankEval                    // _rank_eval: a list of search bodies with ratings
)

// A Request is one search as the client sent it.
type Request struct {
	Endpoint Endpoint
	Index    string // the index expression of the path, unescaped; "" is all indices
	RawQuery string // the query string of the URL as it came, without "?"
	Body     []byte // the body, decompressed; it is not modified
	// Preview says that what comes out is only looked at: it does not decide how
	// the pages of a point in time are expanded.
	Preview bool
	// Fixed says why the hits of the answer cannot be reranked, "" where they can.
	Fixed reason.Reason
	// Allowed, unless nil, returns nil where the client may search the indices.
	// It is called once for each search, before anything is asked, by several
	// goroutines at a time. Its error wraps [ErrNotAuthorized] or [ErrUnknown],
	// or is one of a [Cluster].
	Allowed func(ctx context.Context, indices esclient.Indices) error
	// Discloses adds to what the body and the query string say.
	Discloses Disclosure
	// Feedback says whether terms of the first hits are added.
	Feedback FeedbackWish
	// Effort goes before that of the profile, but for auto.
	Effort Effort
	// Adjusted changes what added terms count for.
	Adjusted []Adjustment
	// NameAdded is [Profile.NameAdded] for this request.
	NameAdded bool
	// Pins are those of the [Result] of an earlier call for the same request; zero
	// pins the versions that are active now.
	Pins Pins
	// FirstHits are the hits of the first passes of its searches, as
	// [Part.FirstPass] asked for them; nil for those that have none. It is
	// empty in the first call.
	FirstHits [][]FirstHit
}

// An Effort is how much a search may cost the cluster for what it gains.
type Effort = form.Effort

// Efforts are those to choose from, in rising order.
var Efforts = []Effort{form.Low, form.Normal, form.High}

// A FeedbackWish says whether a request is to have feedback.
type FeedbackWish uint8

// The wishes.
const (
	FeedbackAsConfigured FeedbackWish = iota // where [FeedbackOptions.Documents] is set
	FeedbackOn                               // of five hits, where it is not
	FeedbackOff
)

// An Adjustment multiplies what an added term counts for, for somebody who
// tries what it does.
type Adjustment struct {
	Term   string  `json:"term"`
	Factor float64 `json:"factor"` // at least 0, which leaves the term out
}

// A FirstPass asks for the first hits of a search, and for nothing but their
// ids, states and scores.
type FirstPass struct {
	SideSearch

	// Documents is how many hits there are at most.
	Documents int
	// Fields are those whose terms are wanted, in order, each once.
	Fields []string
}

// A FirstHit is one of the hits of a first pass.
type FirstHit = terms.FirstHit

// FieldTerms are the terms of such a hit in a field.
type FieldTerms = terms.FieldTerms

// A Result is what becomes of a [Request].
type Result struct {
	// Rewritten reports whether anything was added. Where it is false, the
	// original request goes on, and RawQuery and Body are unset.
	Rewritten bool
	// RawQuery and Body replace those of the request. Body is JSON.
	RawQuery string
	Body     []byte
	// Pins are the versions that were used, for the second call; zero without first
	// passes.
	Pins Pins
	// Parts are the searches of the request in their order: one, or those of
	// _msearch and _rank_eval; none where the request could not be taken apart.
	Parts []Part
	// TooManyFirstPasses is how many searches have none because the request has
	// more than are read.
	TooManyFirstPasses int
	// ClauseCount estimates from above how many clauses the query has for the
	// engine; of several searches, the largest number.
	ClauseCount int
	// Clauses explains every clause that was recognized, in the order of the
	// body.
	Clauses []Explanation
	// Reason says why the request as a whole was left alone, "" where the
	// clauses say it.
	Reason reason.Reason
}

// A Part is what becomes of one search of a request.
type Part struct {
	// Index is its index expression.
	Index string
	// Rerank says how its hits are to be ordered before the client gets them, nil
	// where they stay in the engine's order.
	Rerank *Rerank
	// FirstPass is what is to be sent before it so that terms of its first hits can
	// be added by a second call, nil for nothing. The Body of the [Result] is what
	// goes out where a first pass fails.
	FirstPass *FirstPass
	// Err is what went wrong in a search of several, a [*StageError]; it is in Body
	// as it came.
	Err error
}

// Reranks returns [Part.Rerank] of each search, nil where all are.
func (r *Result) Reranks() (reranks []*Rerank) {
	for i := range r.Parts {
		if rerank := r.Parts[i].Rerank; rerank != nil {
			if reranks == nil {
				reranks = make([]*Rerank, len(r.Parts))
			}
			reranks[i] = rerank
		}
	}
	return reranks
}

// Failures returns the errors of the searches that have one.
func (r *Result) Failures() (failures []error) {
	for i := range r.Parts {
		if err := r.Parts[i].Err; err != nil {
			failures = append(failures, err)
		}
	}
	return failures
}

// A SideSearch goes to the cluster besides the search of a client, as that
// client.
type SideSearch struct {
	Index, RawQuery string
	Body            []byte
}

// A Rerank says how the hits of a search are to be ordered outside of the
// engine. [Result.Body] finds the first of them, as many as [Rerank.Asked]
// says, and brings nothing but their names and scores; with everything else
// that the client wants to know of all matches, it is the frame of the answer.
// The client's page of the hits comes from a second search, Page.
type Rerank struct {
	// Window is how many hits, of the first, are reranked; those behind them
	// stay in the engine's order. The client asked for the Size hits behind the
	// first From of all.
	Window, From, Size int
	// SoftWeight in [0, 1] is what the soft cosine counts for in the order; the
	// rest is the saturated sum, or without Sums the engine's scores.
	SoftWeight float64
	// BySeqNo says that one shard is searched: its sequence numbers name its
	// documents, and the hits have neither ids nor versions, which are dear.
	BySeqNo bool
	// Fields are what the soft cosine is computed over, each once.
	Fields []RerankField
	// Sums are the clauses, of which the saturated sum is made; nil where a score
	// is not the sum of those of its terms.
	Sums []Sum
	// Feedback says how many of the best hits have their terms added to the sums,
	// and how; terms in a larger share of the documents than MaxDocShare are not.
	Feedback    FeedbackOptions
	MaxDocShare float64
	// Page brings hits as the client wants them, without saying which: see
	// [Rerank.PageOf]. InOrder brings the client's page in the engine's order.
	Page, InOrder SideSearch
	query         []byte // that finds in the page what it names, nil for none
}

// Asked returns how many hits the search asks for: the window, or more where
// the client's page ends behind it.
func (r *Rerank) Asked() int { return max(r.Window, r.From+r.Size) }

// A Hit names one state of a document, as the answer to a search shows it. One
// of a search with [Rerank.BySeqNo] has the number and the index only.
type Hit struct {
	// Index is the concrete index; Routing is "" for none.
	Index, ID, Routing string
	// SeqNo and PrimaryTerm name the write that made the state.
	SeqNo, PrimaryTerm, Version int64
}

// A HitScore is what a hit is ordered by: its saturated sum and its soft
// cosine. ID is that of the hit.
type HitScore struct {
	ID        string
	Sum, Soft float64
}

// A RerankField is a text that is compared with a field of the hits.
type RerankField struct {
	// Field is its full name, and Boost b, its weight in the measure, positive.
	Field string
	Boost float64
	// Terms are the terms of the text, each once, and Freqs how often it has
	// them: x.
	Terms []string
	Freqs []float64
	// Similarities are the rows of S, and Weights W; nil stands for the document
	// frequencies in the rows of S.
	Similarities Rows
	Weights      Weights
}

// A Sum is the score of one clause: that of its best field, and TieBreaker
// times those of the others. A field scores
//
//	Boost · Σ_i Weight_i · y_i/(1 + y_i),  y_i = Σ_j Boost_ij tf_j/K,  K = 1.2 (0.25 + 0.75 length/mean length)
//
// over the terms i of the text and their terms j, i itself among them with
// Boost 1: BM25 (Robertson and Zaragoza 2009, eq. 3.15) with the neighbors'
// occurrences inside one saturation.
type Sum struct {
	TieBreaker float64
	Fields     []SumField
}

// A SumField is a field of a clause.
type SumField struct {
	Field int // of [Rerank.Fields]
	Boost float64
	Words []SumWord
}

// A SumWord is a term of the text with what counts as it.
type SumWord struct {
	Weight float64 // x_i idf_i
	Terms  []string
	Boosts []float64
}

// Effort returns that of the first clause that was rewritten, "" where none
// was.
func (r *Result) Effort() string {
	for i := range r.Clauses {
		if effort := r.Clauses[i].Effort; effort != "" {
			return effort
		}
	}
	return ""
}

// AddedTerms returns how many terms were added over all clauses.
func (r *Result) AddedTerms() (n int) {
	for i := range r.Clauses {
		n += len(r.Clauses[i].Added)
	}
	return n
}

// An Explanation says what was done with one field of one clause of a search.
type Explanation struct {
	// Path leads to the clause, for example "query.bool.must[0].match", and in a
	// request that has several searches "[2].query.match".
	Path  string `json:"path"`
	Field string `json:"field,omitempty"`
	// Indices are those that the index expression stands for, the first ten, where
	// no matrix is bound to the expression or to all of them.
	Indices []string `json:"indices,omitempty"`
	// Matrix names the matrix and version that gave the rows.
	Matrix string `json:"matrix,omitempty"`
	// Form is the scoring form that was written, "" where nothing was.
	Form string `json:"form,omitempty"`
	// Phase is "query" where the form is the query, "rescore" where it rescores the
	// best hits of a simpler one, "rerank" where it finds the hits that the soft
	// cosine orders, "" where nothing was written.
	Phase string `json:"phase,omitempty"`
	// Effort is how much the search may cost: "low", "normal" or "high", "" where
	// nothing was written.
	Effort string `json:"effort,omitempty"`
	// Terms are those of the clause's text.
	Terms []string `json:"terms,omitempty"`
	// Words, and Word of what is listed here, are set where clauses are shown to
	// people: what people write for terms, by term, where that is known and another
	// text, such as "gas" for "ga".
	Words map[string]string `json:"words,omitempty"`
	// Added are the terms that were added, as written.
	Added []Added `json:"added,omitempty"`
	// Written are the parts of the text that Terms are made of, see
	// [esclient.Analysis]; it may be missing.
	Written []string `json:"-"`
	// NoRow are the terms of the text that the matrix has no row of: they are in no
	// document, or in none that it was built from.
	NoRow []string `json:"no_row,omitempty"`
	// Nearest are the words that stand for terms of NoRow that no document has: the
	// terms added from such a term are these and their neighbors.
	Nearest []NearestWord `json:"nearest,omitempty"`
	// LeftOut are neighbors of the terms that were not added because of how many
	// documents have them, at most ten: first the too frequent ones, then by
	// similarity.
	LeftOut []LeftOut `json:"left_out,omitempty"`
	// Feedback are the terms added because the first hits have them, the best
	// first.
	Feedback []AddedFeedback `json:"feedback,omitempty"`
	// Reason says why the clause was left alone or a simpler form taken.
	Reason reason.Reason `json:"reason,omitempty"`
}

// Added is one term j that was added to a search.
type Added struct {
	Term string `json:"term"`
	// From is the term i of the text that gives it most of its weight, and
	// Similarity s_ij.
	From       string  `json:"from"`
	Similarity float64 `json:"similarity"`
	// Fit is ctx_j, how close j is to the whole text: at most √n for n words, and
	// small where it goes with one of several. It is left out where terms are not
	// chosen by it.
	Fit float64 `json:"fit,omitempty"`
	// IDF is that of j in the field.
	IDF float64 `json:"idf,omitempty"`
	// Weight is the score mass that the term brings at λ = 1, of [terms.Candidate]
	// V, and Boost the factor in the rewritten search.
	Weight float64 `json:"weight"`
	Boost  float64 `json:"boost"`
	Word   string  `json:"word,omitempty"` // see [Explanation.Words]
}

// NearestWord is a word that documents have, in the place of one that none has.
type NearestWord struct {
	// Term is the term of the text, and Known the nearest known one, or one of two
	// that it is made of.
	Term  string `json:"term"`
	Known string `json:"known"`
	Word  string `json:"word,omitempty"` // of Known, see [Explanation.Words]
}

// Why a neighbor was left out.
const (
	LeftOutFrequent = "max_doc_share" // more than [Profile.MaxDocShare] of the documents have it
	LeftOutAbsent   = "not_in_index"  // no document has it
)

// LeftOut is one neighbor that was not added to a search.
type LeftOut struct {
	Term string `json:"term"`
	// From is the term of the text that it is a neighbor of, and Similarity how
	// similar the two are.
	From       string  `json:"from"`
	Similarity float64 `json:"similarity"`
	Reason     string  `json:"reason"`         // [LeftOutFrequent] or [LeftOutAbsent]
	Word       string  `json:"word,omitempty"` // see [Explanation.Words]
}

// AddedFeedback is one term that was added because the first hits of a search
// hold it.
type AddedFeedback struct {
	// Term is the term j, and Documents are the ids of the hits that hold it.
	Term      string   `json:"term"`
	Documents []string `json:"documents,omitempty"`
	// Weight is f_j, see [terms.Feedback], and Boost the factor that the term
	// carries in the search.
	Weight float64 `json:"weight"`
	Boost  float64 `json:"boost"`
	Word   string  `json:"word,omitempty"` // see [Explanation.Words]
}
