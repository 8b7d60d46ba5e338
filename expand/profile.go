package expand

import "github.com/akin-search/akin/expand/form"

// A Mode is the measure that hits are ranked by.
type Mode uint8

// The modes.
const (
	// ModeBM25 ranks by the engine's BM25 with related terms added.
	ModeBM25 Mode = iota
	// ModeHard ranks by (Wx)ᵀS(Wy)/(‖Wx‖ ‖Wy‖), which the engine computes: the
	// length-normalized soft cosine. It needs what [WeightSource] knows.
	ModeHard
	// ModeSoft has the first hits ordered outside of the engine by the soft
	// cosine (Wx)ᵀS(Wy)/(√((Wx)ᵀS(Wx)) √((Wy)ᵀS(Wy))), blended with the engine's
	// scores.
	ModeSoft
	// ModeVectors ranks by vectors that the documents have, blended with the
	// engine's BM25. It needs a [VectorSource].
	ModeVectors
)

// A When says when a search is expanded.
type When uint8

// The choices.
const (
	Always  When = iota
	FewHits      // where the original finds fewer than [Profile.Below] hits
)

// Profile are the limits and choices of an [Expander]. The zero value adds
// nothing; [DefaultProfile] is the measured recipe.
//
// Package configs reads it by the tags: the key, and what is allowed, which is
// the least and the largest number, "(" for one that is too small itself, or
// the words that stand for 0, 1, 2 and so on. Of the words of a bool the second
// is true. The tag "is" says that texts are full names of fields.
type Profile struct {
	// Mode is the measure. Where a search does not allow it, it is ranked as in
	// ModeBM25, and the clauses say why.
	Mode Mode `yaml:"mode" allowed:"bm25 hard soft vectors"`
	// RerankWindow is k, how many hits ModeSoft reranks, and how many nearest
	// documents of each shard a query in dense vectors finds.
	RerankWindow int `yaml:"rerank_window" allowed:"1 1000"`
	// SoftWeight in [0, 1] is what the soft cosine counts for in the order of
	// ModeSoft, and what vectors count for in that of ModeVectors; the saturated
	// sum and the engine's scores count for the rest. At 1 the order and the scores
	// are the measure's.
	SoftWeight float64 `yaml:"soft_weight" allowed:"0 1"`
	// When says when a search is expanded, and Below below how many hits of the
	// original, with [FewHits].
	When  When `yaml:"when" allowed:"always few_hits"`
	Below int  `yaml:"below" allowed:"1 10000"`
	// Effort is how much a search may cost the cluster.
	Effort form.Effort `yaml:"effort" allowed:"auto low normal high"`
	// Scoring is the form to write.
	Scoring form.Scoring `yaml:"scoring" allowed:"auto linear grouped saturated"`
	// NoRescore has the saturated form be the query. Otherwise it rescores the
	// first hits of the linear form where the request allows that.
	NoRescore bool `yaml:"phase" allowed:"auto query rescore"`
	// SameMatches finds what the original finds, and changes only the order.
	// Otherwise documents with only related words are found, too.
	SameMatches bool `yaml:"matching" allowed:"widen same"`
	// MaxAddedTerms is the largest number of terms that are chosen for one search,
	// shared fairly between its clauses. Low and normal efforts add the best of them.
	MaxAddedTerms int `yaml:"max_added_terms" allowed:"0 200"`
	// MaxQueryTerms is the largest number of terms of a text that is expanded. Every
	// engine takes 1024 clauses.
	MaxQueryTerms int `yaml:"max_query_terms" allowed:"1 1024"`
	// MaxDocShare in (0, 1] is the largest share of the documents with the
	// field that an added term may occur in, rounded up to whole documents.
	MaxDocShare float64 `yaml:"max_doc_share" allowed:"(0 1"`
	// Strength is what added terms count for, see [form.Strength].
	Strength float64 `yaml:"strength" allowed:"0 5"`
	// DefaultFields are the fields to add terms in when a request names none.
	DefaultFields []string `yaml:"default_fields" is:"field"`
	// MarkRelated has highlighters mark the added terms, too.
	MarkRelated bool `yaml:"highlight" allowed:"original related"`
	// NameAdded names the clauses of the added terms, so that the answer says for
	// each hit which of them found it.
	NameAdded bool `yaml:"name_added"`
	// NormalizeScores divides the score of a clause such that the largest that it
	// can be stays the same; then searches with min_score are expanded, too.
	NormalizeScores bool `yaml:"normalize_score"`
	// Phrases has words related to those of a phrase reorder the phrase's hits.
	Phrases bool `yaml:"phrases"`
	// Hybrid expands the sub-queries of hybrid queries.
	Hybrid bool `yaml:"hybrid"`
	// RescoreQueries expands the request's own rescore queries.
	RescoreQueries bool `yaml:"rescore_queries"`
	// NearestWords gives words that no document has, and that have no row, the row of
	// the nearest known word. It is for ModeBM25 and for what ModeSoft finds.
	NearestWords bool `yaml:"nearest_words"`
	// HideFrom lists the requests that are left alone because their answers show
	// the added terms; those on an alias with a filter always are. Where it lists
	// any, NameAdded has no effect. Clients choose it: it is no key of a profile.
	HideFrom Disclosure `yaml:"-"`
	// Feedback says how the terms of the first hits are added.
	Feedback FeedbackOptions `yaml:"feedback"`
	// Segments are the fields whose text documents hold in parts, too, each with
	// full names. They are for ModeBM25.
	Segments []form.Segments `yaml:"segments"`
}

// FeedbackOptions say how the terms of the first hits of a search are added to
// it, which takes a second search. The zero value adds none.
type FeedbackOptions struct {
	// Documents is how many hits are read, Terms how many terms are added to a
	// search at most.
	Documents int `yaml:"documents" allowed:"0 100"`
	Terms     int `yaml:"terms" allowed:"1 100"`
	// Weight is what the added terms count for together, as a share of the
	// search's own terms.
	Weight float64 `yaml:"weight" allowed:"0 1"`
}

// A Disclosure is a set of the ways in which the answer to a rewritten
// search shows the terms that were added to it.
type Disclosure uint8

// The ways.
const (
	DiscloseProfile  Disclosure = 1 << iota // a search with "profile"
	DiscloseExplain                         // a search that asks for explanations, in inner hits too, and _explain
	DiscloseValidate                        // _validate/query with more than a verdict
	DiscloseSecured                         // in [Profile.HideFrom] all ways, where [Request.Allowed] is set: the cluster has security
)

// DefaultProfile returns the defaults: at most 30 terms, each in at most a
// tenth of the documents, λ as measured on judged collections.
func DefaultProfile() Profile {
	return Profile{
		Below: 10, RerankWindow: 100, SoftWeight: 0.2, MaxAddedTerms: 30, MaxQueryTerms: 64, MaxDocShare: 0.1,
		Strength: 1, NearestWords: true, Hybrid: true,
		Feedback: FeedbackOptions{Terms: 20, Weight: 0.3},
	}
}
