package expand

import (
	"github.com/akin-search/akin/expand/form"
)

// A Mode is a measure for ranking hits.
type Mode uint8

// The modes.
const (
	// ModeBM25 ranks by the engine's BM25, with related terms added.
	ModeBM25 Mode = iota
	// ModeHard ranks by the length-normalized soft cosine, which the engine
	// computes: (Wx)ᵀS(Wy)/(‖Wx‖ ‖Wy‖). It needs a [WeightSource].
	ModeHard
	// ModeSoft has akin rerank the first hits by the soft cosine
	// (Wx)ᵀS(Wy)/(√((Wx)ᵀS(Wx)) √((Wy)ᵀS(Wy))), blended with the engine's scores.
	ModeSoft
	// ModeVectors ranks by the documents' vectors, blended with the engine's BM25.
	// It needs a [VectorSource].
	ModeVectors
	// ModeSoftCosine ranks by the soft cosine as ModeSoft does, but the engine
	// computes it: blended with BM25 for the first hits, or alone for all. It needs
	// a [WeightSource].
	ModeSoftCosine
	// ModeAuto is ModeSoft for a search like which the last ones had nearly all
	// their hits remembered, as [HitMemory] says, and ModeBM25 for the others. No
	// search waits for terms of documents.
	ModeAuto
)

// A When says when a search is expanded.
type When uint8

// The choices.
const (
	Always  When = iota
	FewHits      // if the original finds fewer than [Profile.Below] hits
)

// A Matching says whether documents with only related words are found.
type Matching uint8

// The choices.
const (
	// Auto is Same for a search that finds as many hits as [Profile.Enough] and
	// EnoughAll say, and Widen for one that finds fewer. What counts as much as a
	// word of the text always finds documents. With [FewHits] it is Widen.
	Auto  Matching = iota
	Widen          // they are
	Same           // related words only change the order of the hits
)

// A Reranking says what puts the first hits in order besides the mode.
type Reranking uint8

// The choices.
const (
	NoReranking Reranking = iota
	// ByEmbeddings has akin rerank the first hits by the vectors that a language
	// model makes of them and of the search, blended with the scores that these
	// have without. It goes with the modes bm25 and auto, and needs
	// [DocumentVectors].
	ByEmbeddings
)

// A Profile has the limits and options of an [Expander]. The zero value adds
// nothing; [DefaultProfile] has measured values.
//
// Package configs reads it by the tags. yaml is the key. allowed is either the
// least and the largest number, with "(" before an excluded one, or the words
// for 0, 1, 2 and so on; of the words of a bool the second is true. is:"field"
// says that texts are full field names.
type Profile struct {
	// Mode is the measure. A search that does not allow it is ranked as in
	// ModeBM25, and its clauses give the reason.
	Mode Mode `yaml:"mode" allowed:"bm25 hard soft vectors softcosine auto"`
	// Waits makes ModeAuto wait for the terms of hits, to measure how it ranks once
	// all are remembered. It is no key.
	Waits bool `yaml:"-"`
	// RerankWindow is k: how many hits akin reranks, and how many nearest documents
	// of each shard a dense vector query finds.
	RerankWindow int `yaml:"rerank_window" allowed:"1 1000"`
	// SoftWeight in [0, 1] is the share of the soft cosine in the order of ModeSoft
	// and ModeSoftCosine, and of the vectors in that of ModeVectors. The rest is
	// the saturated sum or the engine's score. With 1, order and scores are the
	// measure's alone.
	SoftWeight float64 `yaml:"soft_weight" allowed:"0 1"`
	// Rerank says what else puts the first hits in order. EmbeddingsWeight in [0, 1]
	// is the share of the vectors in the order then; the rest is the score without.
	Rerank           Reranking `yaml:"rerank" allowed:"none embeddings"`
	EmbeddingsWeight float64   `yaml:"embeddings_weight" allowed:"0 1"`
	// When says when a search is expanded. With [FewHits], it is if the original
	// finds fewer than Below hits.
	When  When `yaml:"when" allowed:"always few_hits"`
	Below int  `yaml:"below" allowed:"1 10000"`
	// Effort is how much a search may cost the cluster.
	Effort form.Effort `yaml:"effort" allowed:"auto low normal high"`
	// Scoring is the form of the added terms.
	Scoring form.Scoring `yaml:"scoring" allowed:"auto linear grouped saturated"`
	// NoRescore makes the saturated form the query. Otherwise it rescores the
	// first hits of the linear form if the request allows that.
	NoRescore bool `yaml:"phase" allowed:"auto query rescore"`
	// Matching says whether documents with only related words are found.
	Matching Matching `yaml:"matching" allowed:"auto widen same"`
	// Enough is how many hits of its own are enough for a search with [Auto], and
	// EnoughAll for one of which all words, or some number of them, must match.
	// With 0 related words never find documents.
	Enough    int `yaml:"enough" allowed:"0 10000"`
	EnoughAll int `yaml:"enough_all" allowed:"0 10000"`
	// MaxAddedTerms is how many terms are chosen for one search at most, shared
	// fairly between its clauses. Low and normal efforts add the best of them.
	MaxAddedTerms int `yaml:"max_added_terms" allowed:"0 200"`
	// MaxQueryTerms is how many terms of a text are expanded at most. Every engine
	// accepts 1,024 clauses.
	MaxQueryTerms int `yaml:"max_query_terms" allowed:"1 1024"`
	// MaxDocShare in (0, 1] is the largest share of the documents with the field
	// that may contain an added term, rounded up to whole documents.
	MaxDocShare float64 `yaml:"max_doc_share" allowed:"(0 1"`
	// Strength multiplies the weight of added terms, see [form.LambdaOf].
	Strength float64 `yaml:"strength" allowed:"0 5"`
	// Fit chooses and weights added terms by how close they are to the whole text.
	// Without it their weights are those of x', see package terms.
	Fit bool `yaml:"fit"`
	// DefaultFields are the fields to expand if a request names none.
	DefaultFields []string `yaml:"default_fields" is:"field"`
	// MarkRelated makes highlighters mark the added terms, too.
	MarkRelated bool `yaml:"highlight" allowed:"original related"`
	// NameAdded gives the clauses of added terms names, so that the answer says
	// for each hit which of them found it.
	NameAdded bool `yaml:"name_added"`
	// NormalizeScores divides a clause's score so that its largest possible value
	// does not change. Then searches with min_score are expanded, too.
	NormalizeScores bool `yaml:"normalize_score"`
	// Phrases adds words related to those of a phrase, to reorder the hits of the
	// phrase.
	Phrases bool `yaml:"phrases"`
	// MoreLikeThis adds words related to those that a more_like_this searches for,
	// in ModeBM25.
	MoreLikeThis bool `yaml:"more_like_this"`
	// Expressions adds what stands for expressions of several words, and words that
	// are as good as others, see the package terms.
	Expressions bool `yaml:"expressions"`
	// Filters has the clauses in bool.filter find by what Expressions adds, in
	// ModeBM25 and ModeSoft. Related words are never added there.
	Filters bool `yaml:"filters"`
	// Hybrid expands the sub-queries of hybrid queries.
	Hybrid bool `yaml:"hybrid"`
	// RescoreQueries expands the request's own rescore queries.
	RescoreQueries bool `yaml:"rescore_queries"`
	// NearestWords gives words that no document contains and that have no row the
	// row of the nearest known word, in ModeBM25 and for finding the hits of
	// ModeSoft.
	NearestWords bool `yaml:"nearest_words"`
	// Relax says which words of a search for all of its words need not match.
	Relax Relax `yaml:"relax" allowed:"none unknown"`
	// HideFrom says which requests are left alone because their answers would show
	// the added terms. On an alias with a filter they always are. If it is set,
	// NameAdded has no effect. It is no key of a profile, because clients choose
	// the profile.
	HideFrom Disclosure `yaml:"-"`
	// Feedback says how the terms of the first hits are added.
	Feedback FeedbackOptions `yaml:"feedback"`
	// Segments are the fields whose text documents also store in parts, by full
	// field names. They are for ModeBM25.
	Segments []form.Segments `yaml:"segments"`
}

// orders reports whether akin may put hits in order by the soft cosine.
func (m Mode) orders() bool { return m == ModeSoft || m == ModeAuto }

// adds reports whether the mode adds terms to clauses in the engine's scoring.
func (m Mode) adds() bool { return m == ModeBM25 || m.orders() }

// embeds reports whether a request has its first hits put in order by vectors.
func (o *Profile) embeds(wish EmbeddingsWish) bool {
	wanted := wish == EmbeddingsOn || wish == EmbeddingsAsConfigured && o.Rerank == ByEmbeddings
	return wanted && (o.Mode == ModeBM25 || o.Mode == ModeAuto)
}

// exact reports whether the measure of [ModeHard] or the soft cosine alone
// ranks all hits.
func (o *Profile) exact() bool {
	return o.Mode == ModeHard || o.Mode == ModeSoftCosine && o.SoftWeight == 1
}

// FeedbackOptions say how the terms of a search's first hits are added to it,
// which takes a second search. The zero value adds none.
type FeedbackOptions struct {
	// Documents is how many hits are read. Terms is how many terms are added to a
	// search at most.
	Documents int `yaml:"documents" allowed:"0 100"`
	Terms     int `yaml:"terms" allowed:"1 100"`
	// Weight is the weight of all added terms together, as a share of that of the
	// search's own terms.
	Weight float64 `yaml:"weight" allowed:"0 1"`
}

// Relax says which words of a search with the operator "and" need not match.
type Relax uint8

// The values.
const (
	RelaxNone    Relax = iota
	RelaxUnknown       // those that no document has, and nothing stands for
)

// A Disclosure is a set of ways in which an answer shows the terms that were
// added to its search.
type Disclosure uint8

// The ways.
const (
	DiscloseProfile  Disclosure = 1 << iota // a search with "profile"
	DiscloseExplain                         // a search that asks for explanations, in inner hits too, and _explain
	DiscloseValidate                        // _validate/query with more than a verdict
	DiscloseSecured                         // in [Profile.HideFrom]: all ways, if the cluster has security ([Request.Allowed] is set)
)

// DefaultProfile returns the defaults: at most 30 terms, each in at most a
// tenth of the documents, with λ measured on judged collections.
func DefaultProfile() Profile {
	return Profile{
		Mode: ModeAuto, Below: 10, Enough: 100, EnoughAll: 10, RerankWindow: 100, SoftWeight: 0.3, EmbeddingsWeight: 0.5, MaxAddedTerms: 30, MaxQueryTerms: 64, MaxDocShare: 0.1,
		Strength: 1, Fit: true, NearestWords: true, Hybrid: true, Expressions: true,
		Feedback: FeedbackOptions{Terms: 20, Weight: 0.3},
	}
}
