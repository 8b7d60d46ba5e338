package expand

import (
	"context"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/expand/form"
	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/expand/terms"
)

// An Endpoint is the kind of a search request.
type Endpoint uint8

// The endpoints whose searches can be rewritten.
const (
	EndpointSearch      Endpoint = iota // one search body
	EndpointMultiSearch                 // _msearch: alternating lines of headers and bodies
	EndpointCount                       // _count: only a query, without scores
	EndpointValidate                    // _validate/query: only a query, which is parsed and not run
	EndpointExplain                     // _explain/{id}: only a query, scored for one document
	EndpointRankEval                    // _rank_eval: a list of search bodies with ratings
)

// A Request is a search request as the client sent it.
type Request struct {
	Endpoint Endpoint
	Index    string // the index expression of the path, unescaped; "" is all indices
	RawQuery string // the query string of the URL, without "?"
	Body     []byte // the body, decompressed; Expand does not modify it
	// Preview says that the result is only shown and not sent, so later pages of a
	// point in time do not reuse it.
	Preview bool
	// Fixed is why the hits of the answer cannot be reranked, "" if they can.
	Fixed reason.Reason
	// Allowed, unless nil, returns nil if the client may search the indices. It is
	// called once for each search, before any other question, and by several
	// goroutines at a time. Its error wraps [ErrNotAuthorized] or [ErrUnknown], or
	// is one of a [Cluster].
	Allowed func(ctx context.Context, indices esclient.Indices) error
	// Discloses adds to the disclosures of the body and the query string.
	Discloses Disclosure
	// Feedback says whether terms of the first hits are added.
	Feedback FeedbackWish
	// Embeddings says whether the first hits are put in order by vectors.
	Embeddings EmbeddingsWish
	// Effort, unless auto, overrides that of the profile.
	Effort Effort
	// Changes are what the playground changes for this search.
	Changes Changes
	// Again, unless nil, is the result of the first expansion of a search that finds
	// fewer hits than its [Part.Enough]. Its versions of matrices and weights are
	// used again, and with [Auto] related words find documents.
	Again *Result
	// NameAdded is [Profile.NameAdded] for this request.
	NameAdded bool
	// Warm says that the search only finds the hits that [ModeAuto] would put in
	// order, to remember what their documents hold.
	Warm bool
}

// An Effort is how much a search may cost the cluster.
type Effort = form.Effort

// Efforts are the efforts in rising order.
var Efforts = []Effort{form.Low, form.Normal, form.High}

// A FeedbackWish says whether a request wants feedback.
type FeedbackWish uint8

// The wishes.
const (
	FeedbackAsConfigured FeedbackWish = iota // if [FeedbackOptions.Documents] is set
	FeedbackOn                               // with five hits, if Documents is 0
	FeedbackOff
)

// Changes replace settings of a profile for one search of the playground. The
// zero value changes nothing.
type Changes struct {
	// Adjusted changes the weights of added terms.
	Adjusted []Adjustment
	// Matching and Strength replace those of the profile unless they are nil.
	Matching *Matching
	Strength *float64
}

// none reports whether nothing is changed.
func (c *Changes) none() bool {
	return len(c.Adjusted) == 0 && c.Matching == nil && c.Strength == nil
}

// An EmbeddingsWish says whether a request wants its first hits put in order by
// the vectors of a language model.
type EmbeddingsWish uint8

// The wishes.
const (
	EmbeddingsAsConfigured EmbeddingsWish = iota // as [Profile.Rerank] says
	EmbeddingsOn                                 // if the mode allows it
	EmbeddingsOff
)

// An Adjustment multiplies the weight of an added term, in the playground.
type Adjustment struct {
	Term   string  `json:"term"`
	Factor float64 `json:"factor"` // at least 0, which removes the term
}

// A FirstPass is a search for the ids, states and scores of the first hits, and
// nothing else.
type FirstPass struct {
	SideSearch

	// Documents is the largest number of hits.
	Documents int
	// Fields are the fields whose terms are wanted, sorted and unique.
	Fields []string
	asked  *expansion // what the search is written again from
}

// A FirstHit is a hit of a first pass.
type FirstHit = terms.FirstHit

// FieldTerms are the terms of a first hit in a field.
type FieldTerms = terms.FieldTerms

// A Result is the result of expanding a [Request].
type Result struct {
	// Rewritten reports whether anything was added. If false, the original is
	// sent, and RawQuery and Body are unset.
	Rewritten bool
	// RawQuery and Body replace those of the request. Body is JSON.
	RawQuery string
	Body     []byte
	// Parts are the searches of the request in order: one, or those of _msearch
	// and _rank_eval. There are none if the request could not be parsed.
	Parts   []Part
	several *several // nil for one search and without first passes
	pins    pins     // what was used, for a search that may be expanded again
	// ClauseCount is an upper estimate of the clauses in the query as the engine
	// counts them; the maximum if there are several searches.
	ClauseCount int
	// Clauses explains every recognized clause, in the order of the body.
	Clauses []Explanation
	// Reason is why the whole request was left alone, "" if the clauses have the
	// reasons.
	Reason reason.Reason
}

// A Part is the result for one search of a request.
type Part struct {
	// Index is its index expression.
	Index string
	// Rerank says how to rerank the hits before the client gets them, nil if they
	// keep the engine's order.
	Rerank *Rerank
	// How says what the added words do in it, [Ordered], [Widened] or [Exact], ""
	// if none are added.
	How string
	// FollowUp finds the hits that would have been put in order if they were
	// remembered; nil for none. It shares the memory of the request.
	FollowUp *Request
	// Enough says when the search is to be expanded again, with [Request.Again].
	Enough Enough
	// Nothing says that the search as typed finds nothing, by the frequencies of its
	// words: so related words find documents at once.
	Nothing bool
	// FirstPass is the search to send first for feedback, nil for none:
	// [Expander.WithFirstHits] adds the terms of its hits. If it fails, the Body of
	// the [Result] is sent.
	FirstPass *FirstPass
	// Err is the [*StageError] of one of several searches; Body has the original
	// of that search.
	Err error
}

// Reranks returns [Part.Rerank] of each search, or nil if all are nil.
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

// Failures returns the errors of the searches that failed.
func (r *Result) Failures() (failures []error) {
	for i := range r.Parts {
		if err := r.Parts[i].Err; err != nil {
			failures = append(failures, err)
		}
	}
	return failures
}

// A SideSearch is sent to the cluster in addition to a client's search, with
// that client's permissions.
type SideSearch struct {
	Index, RawQuery string
	Body            []byte
}

// A Rerank says how to rerank the hits of a search. [Result.Body] finds the
// first [Rerank.Asked] hits and returns only their names and scores. Together
// with everything else that the client wants to know of all matches, this
// answer is the frame. A second search, Page, fetches the client's page of
// hits.
type Rerank struct {
	// Window is how many of the first hits are reranked; those after it keep the
	// engine's order. The client wants Size hits after the first From hits.
	Window, From, Size int
	// Key is set in [ModeAuto]: what searches have in common of which much the same
	// hits are remembered, and the hash of this one. Hits that are not remembered
	// keep their places then.
	Key HitsKey
	// Text is the text of the search if vectors of a language model order the hits,
	// else "". TextWeight in [0, 1] is the share of the vectors' cosine in that
	// order; the rest is the order by Fields or, without those, the engine's score.
	Text       string
	TextWeight float64
	// SoftWeight in [0, 1] is the share of the soft cosine in the order by Fields.
	// The rest is the saturated sum, or the engine's score without Sums.
	SoftWeight float64
	// BySeqNo says that one shard is searched, so that sequence numbers identify
	// documents. The hits then have no ids or versions, which are expensive.
	BySeqNo bool
	// Fields are those of the soft cosine, each once; none if only vectors order the
	// hits.
	Fields []RerankField
	// Sums are the clauses of the saturated sum. They are nil if a score is not
	// the sum of its terms' scores.
	Sums []Sum
	// Feedback says how many of the best hits add terms to the sums, and how.
	// Terms in a larger share of the documents than MaxDocShare are not added.
	Feedback    FeedbackOptions
	MaxDocShare float64
	// Page fetches hits as the client wants them; [Rerank.PageOf] adds which ones.
	// InOrder fetches the client's page in the engine's order.
	Page, InOrder SideSearch
	query         []byte // finds what it names or highlights in the page; nil for none
}

// Asked returns how many hits the search asks for: the window, or more if the
// client's page ends after it.
func (r *Rerank) Asked() int { return max(r.Window, r.From+r.Size) }

// A Hit identifies one state of a document, as a search returns it. With
// [Rerank.BySeqNo] it has only the number and the index.
type Hit struct {
	// Index is the concrete index; Routing is "" for none.
	Index, ID, Routing string
	// SeqNo and PrimaryTerm identify the write of this state.
	SeqNo, PrimaryTerm, Version int64
}

// A HitScore is what a hit is ranked by: its saturated sum and its soft
// cosine, and the cosine of its vector.
type HitScore struct {
	Sum, Soft, Cosine float64
	// Unknown says that the hit was not remembered, and keeps its place in the order
	// by Sum and Soft. NoVector says that it keeps that in the order by Cosine.
	Unknown, NoVector bool
}

// A HitReason explains the place of a hit that a vector of a language model
// helped to order.
type HitReason struct {
	Index string `json:"index"`
	ID    string `json:"id"`
	// Place is that without the vectors, from 1, and Score what it has there: the
	// engine's, or that of the soft cosine.
	Place int     `json:"place"`
	Score float64 `json:"score"`
	// Cosine is that of the vectors of search and document, and Weight its share.
	// Unknown says that the document has no vector, and kept its place.
	Cosine  float64 `json:"cosine"`
	Weight  float64 `json:"weight"`
	Unknown bool    `json:"unknown,omitempty"`
}

// A RerankField is a text to compare with a field of the hits.
type RerankField struct {
	// Field is the full name. Boost is b > 0, its weight in the measure.
	Field string
	Boost float64
	// Terms are the unique terms of the text. Freqs are their frequencies x.
	Terms []string
	Freqs []float64
	// Similarities are the rows of S. Weights are W, nil for the document
	// frequencies in the rows of S.
	Similarities Rows
	Weights      Weights
}

// A Sum is the score of one clause: the score of its best field plus TieBreaker
// times those of the others. A field scores
//
//	Boost · Σ_i Weight_i · y_i/(1 + y_i),  y_i = Σ_j Boost_ij tf_j/K,  K = 1.2 (0.25 + 0.75 length/mean length)
//
// over the terms i of the text and, for each, the terms j: its neighbors, and i
// itself with Boost 1. This is BM25 (Robertson and Zaragoza 2009, eq. 3.15)
// with the neighbors' occurrences inside one saturation.
type Sum struct {
	TieBreaker float64
	Fields     []SumField
}

// A SumField is a field of a clause.
type SumField struct {
	Field int // index in [Rerank.Fields]
	Boost float64
	Words []SumWord
}

// A SumWord is a term of the text with the terms that count as it.
type SumWord struct {
	Weight float64 // x_i idf_i, and without the fit also λ v_i
	Terms  []string
	Boosts []float64
}

// Effort returns the effort of the first rewritten clause, or "" if there is
// none.
func (r *Result) Effort() string {
	for i := range r.Clauses {
		if effort := r.Clauses[i].Effort; effort != "" {
			return effort
		}
	}
	return ""
}

// AddedTerms returns the number of terms added to all clauses.
func (r *Result) AddedTerms() (n int) {
	for i := range r.Clauses {
		n += len(r.Clauses[i].Added)
	}
	return n
}

// An Explanation describes what happened to one field of one clause.
type Explanation struct {
	// Path leads to the clause, for example "query.bool.must[0].match", or
	// "[2].query.match" in a request with several searches.
	Path  string `json:"path"`
	Field string `json:"field,omitempty"`
	// Indices are the first ten indices that the index expression stands for, if
	// no matrix is bound to the expression or to all of them.
	Indices []string `json:"indices,omitempty"`
	// Matrix is the name and version of the matrix.
	Matrix string `json:"matrix,omitempty"`
	// Model names what the matrix has word vectors of; "" for none.
	Model string `json:"model,omitempty"`
	// Form is the scoring form, "" if nothing was written.
	Form string `json:"form,omitempty"`
	// Phase is "query" if the form is the query, "rescore" if it rescores the best
	// hits of a simpler form, "rerank" if it finds the hits that the soft cosine
	// reranks, and "" if nothing was written.
	Phase string `json:"phase,omitempty"`
	// Effort is how much the search may cost: "low", "normal" or "high". It is ""
	// if nothing was written.
	Effort string `json:"effort,omitempty"`
	// AsTypedFirst says that the hits of the clause as typed keep their scores, and
	// come before those that related words find.
	AsTypedFirst bool `json:"as_typed_first,omitempty"`
	// Terms are the terms of the clause's text.
	Terms []string `json:"terms,omitempty"`
	// Words, and Word in the lists below, are set if clauses are shown to people.
	// Words maps terms to what people write for them, if that is known and
	// different, such as "gas" for "ga".
	Words map[string]string `json:"words,omitempty"`
	// Added are the added terms, in the order of the body.
	Added []Added `json:"added,omitempty"`
	// Written are the parts of the text that give the Terms, see
	// [esclient.Analysis]; it may be missing. Words replaces it.
	Written []string `json:"written,omitempty"`
	// NoRow are the terms of the text without a row: no document contains them, or
	// none that the matrix was built from.
	NoRow []string `json:"no_row,omitempty"`
	// Optional are the terms of NoRow that need not match, see [Profile.Relax].
	Optional []string `json:"optional,omitempty"`
	// Nearest are the known words used in place of terms of NoRow that no document
	// contains. The terms added for such a term are these words and their
	// neighbors.
	Nearest []NearestWord `json:"nearest,omitempty"`
	// MatrixFrequencies says that document frequencies are those of the matrix,
	// because the cluster does not tell its own.
	MatrixFrequencies bool `json:"matrix_frequencies,omitempty"`
	// Alternatives stand for words of the text, as good as they are or nearly.
	Alternatives []Alternative `json:"alternatives,omitempty"`
	// LeftOut are at most ten neighbors that were not added: first alternatives,
	// then those in too many documents, then by similarity.
	LeftOut []LeftOut `json:"left_out,omitempty"`
	// Feedback are the terms added from the first hits, the best first.
	Feedback []AddedFeedback `json:"feedback,omitempty"`
	// Reason is why the clause was left alone, or has a simpler form.
	Reason reason.Reason `json:"reason,omitempty"`
	// Left are parts of a query string with operators that are not expanded, or
	// options because of which it is not.
	Left []string `json:"left,omitempty"`
}

// Added is a term j added to a search.
type Added struct {
	Term string `json:"term"`
	// From is the term i of the text from which j has most of its weight.
	// Similarity is s_ij.
	From       string  `json:"from"`
	Similarity float64 `json:"similarity"`
	// Fit is ctx_j, how close j is to the whole text: at most √n for n words, and
	// small if j fits only one of several. It is left out if terms are not chosen
	// by it.
	Fit float64 `json:"fit,omitempty"`
	// IDF is the idf of j in the field.
	IDF float64 `json:"idf,omitempty"`
	// Weight is the score mass of the term at λ = 1, V of [terms.Candidate]. Boost
	// is its factor in the rewritten search.
	Weight float64 `json:"weight"`
	Boost  float64 `json:"boost"`
	Word   string  `json:"word,omitempty"` // see [Explanation.Words]
}

// NearestWord is a known word used in place of one that no document contains.
type NearestWord struct {
	// Term is the term of the text. Known is the nearest known word, or one of the
	// two that the term is composed of.
	Term  string `json:"term"`
	Known string `json:"known"`
	Word  string `json:"word,omitempty"` // of Known, see [Explanation.Words]
}

// An Alternative is an expression or a word that stands for words of a text. A
// document with it counts as one with these words, in the saturation of each.
type Alternative struct {
	// Term is the word, or the terms of the expression with blanks between them.
	// For is what it stands for, in the same way.
	Term string `json:"term"`
	For  string `json:"for"`
	// Similarity is β: an occurrence counts as so much of one of the words. 1 is
	// exact.
	Similarity float64 `json:"similarity"`
	// Found is the part of the text that it stands for, as it is written there, and
	// At the number of its first term, from 0.
	Found string `json:"found"`
	At    int    `json:"at"`
	Word  string `json:"word,omitempty"` // see [Explanation.Words]
	// Source is where the matrix has it from, such as "synonyms.txt:12" or "acronym
	// of 12 documents", "" if unknown.
	Source string `json:"source,omitempty"`
	// Key and ForKey are Term and For as the matrix has them, until Word and Source
	// are set.
	Key    string `json:"key,omitempty"`
	ForKey string `json:"for_key,omitempty"`
}

// Why a neighbor was left out. Those from LeftOutPositions on are of
// [Alternative].
const (
	LeftOutFrequent  = "max_doc_share"   // more than [Profile.MaxDocShare] of the documents contain it
	LeftOutAbsent    = "not_in_index"    // no document contains it
	LeftOutPositions = "no_positions"    // the field finds no phrases (index_options docs and freqs)
	LeftOutGraph     = "token_graph"     // the engine makes phrases of the text itself
	LeftOutCombined  = "combined_fields" // the words of an expression may be in several fields
	LeftOutMode      = "mode"            // the mode ranks by words
	LeftOutOrdered   = "same_matches"    // the clause finds only what the original finds
	LeftOutLimit     = "limit"           // the search would have too many clauses, or the phrase too many readings
)

// LeftOut is a neighbor that was not added to a search.
type LeftOut struct {
	Term string `json:"term"`
	// From is the term or expression of the text whose neighbor it is. Similarity
	// is that of the two.
	From       string  `json:"from"`
	Similarity float64 `json:"similarity"`
	Reason     string  `json:"reason"`         // such as [LeftOutFrequent]
	Word       string  `json:"word,omitempty"` // see [Explanation.Words]
}

// AddedFeedback is a term that was added because the first hits contain it.
type AddedFeedback struct {
	// Term is j. Documents are the ids of the first hits that contain it.
	Term      string   `json:"term"`
	Documents []string `json:"documents,omitempty"`
	// Weight is f_j, see [terms.Feedback]. Boost is the term's factor in the
	// search.
	Weight float64 `json:"weight"`
	Boost  float64 `json:"boost"`
	Word   string  `json:"word,omitempty"` // see [Explanation.Words]
}
