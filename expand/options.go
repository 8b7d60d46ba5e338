package expand

// A Form is a way of writing the added terms into a search.
type Form uint8

// The scoring forms.
const (
	// FormAuto takes FormSaturated where it is possible, else FormGrouped,
	// else FormLinear.
	FormAuto Form = iota
	// FormLinear adds one flat clause for each term beside the original, so
	// that the engine computes x'ᵀ·(document).
	FormLinear
	// FormGrouped takes, for each term of the text, the better of the term
	// and its neighbors.
	FormGrouped
	// FormSaturated counts the neighbors' occurrences, scaled, as occurrences
	// of the term inside one BM25 saturation. It needs inline scripts.
	FormSaturated
	// FormHard makes the score the hard-normalised soft cosine. [ModeHard] takes
	// it, and it is none to ask for.
	FormHard
)

// String returns the name of the form as the configuration writes it.
func (f Form) String() string {
	switch f {
	case FormLinear:
		return "linear"
	case FormGrouped:
		return "grouped"
	case FormSaturated:
		return "saturated"
	case FormHard:
		return "hard"
	default:
		return "auto"
	}
}

// A Mode is the measure that hits are ranked by.
type Mode uint8

// The modes.
const (
	// ModeBM25 ranks by the engine's BM25 with related terms added.
	ModeBM25 Mode = iota
	// ModeHard ranks by (Wx)ᵀS(Wy)/(‖Wx‖ ‖Wy‖), which the engine computes: the
	// hard-normalised soft cosine. It needs what [LinearFields] tell of.
	ModeHard
	// ModeSoft has the first hits ordered anew, outside of the engine, by
	// (Wx)ᵀS(Wy)/(√((Wx)ᵀS(Wx)) √((Wy)ᵀS(Wy))): the soft cosine measure.
	ModeSoft
)

// String returns the name of the mode as the configuration writes it.
func (m Mode) String() string {
	switch m {
	case ModeHard:
		return "hard"
	case ModeSoft:
		return "soft"
	default:
		return "bm25"
	}
}

// A Matching says which documents a rewritten search finds.
type Matching uint8

// The matchings.
const (
	// MatchingWiden finds documents that hold only related words, too.
	MatchingWiden Matching = iota
	// MatchingSame finds what the original finds and changes the order alone.
	MatchingSame
)

// A Phase is the part of a search that the scoring form is computed in.
type Phase uint8

// The phases.
const (
	// PhaseAuto takes PhaseRescore for the saturated form where the request
	// allows it, else PhaseQuery.
	PhaseAuto Phase = iota
	// PhaseQuery makes the form the query.
	PhaseQuery
	// PhaseRescore finds hits by the linear form and orders the first of them
	// by the saturated form, where the request allows it.
	PhaseRescore
)

// String returns the name of the phase as the configuration writes it.
func (p Phase) String() string {
	switch p {
	case PhaseQuery:
		return "query"
	case PhaseRescore:
		return "rescore"
	default:
		return "auto"
	}
}

// A Highlight says which words a highlighter marks in the hits of a rewritten
// search.
type Highlight uint8

// The choices of words to mark.
const (
	// HighlightOriginal marks what the original query marks.
	HighlightOriginal Highlight = iota
	// HighlightRelated marks the added terms, too.
	HighlightRelated
)

// Strength holds λ, the factor of the added terms, for each form. 0 adds
// terms without weight.
type Strength struct {
	// Linear, Grouped and Saturated are in [0, 1].
	Linear, Grouped, Saturated float64
}

// Options are the limits and choices of an [Expander]. The zero value adds
// nothing; [DefaultOptions] is the measured recipe.
type Options struct {
	// Mode is the measure. Where a search does not allow it, it is ranked as in
	// ModeBM25, and the clauses say why.
	Mode Mode
	// RerankWindow is k, how many hits ModeSoft orders anew. At 0 none are.
	RerankWindow int
	// Scoring is the form to write.
	Scoring Form
	// Phase says when the form is computed.
	Phase Phase
	// Matching says which documents are found.
	Matching Matching
	// MaxAddedTerms is the largest number of terms added to one search over
	// all its clauses, shared fairly between them.
	MaxAddedTerms int
	// MaxQueryTerms is the largest number of terms of a text that is expanded.
	MaxQueryTerms int
	// MaxDocShare in (0, 1] is the largest share of the documents with the
	// field that an added term may occur in, rounded up to whole documents.
	MaxDocShare float64
	// Strength holds λ.
	Strength Strength
	// DefaultFields are the fields to add terms in when the parameter "q" or
	// a query_string names none.
	DefaultFields []string
	// Highlight says which words are marked in a search that asks for
	// highlights and has no highlight_query.
	Highlight Highlight
	// NormalizeScores divides the score of a clause such that the largest that
	// it can be stays that of the original; then searches with min_score are
	// expanded, too.
	NormalizeScores bool
	// Phrases lets the words that are related to those of a phrase change the
	// order of the phrase's hits.
	Phrases bool
	// RescoreQueries expands the request's own rescore queries.
	RescoreQueries bool
	// HideFrom lists the requests that are left alone because their answers
	// show the added terms. Those on an alias with a filter always are.
	HideFrom Disclosure
}

// DefaultOptions returns the defaults: at most 30 terms, each in at most a
// tenth of the documents, λ as measured on judged collections.
func DefaultOptions() Options {
	return Options{
		RerankWindow:  100,
		MaxAddedTerms: 30,
		MaxQueryTerms: 64,
		MaxDocShare:   0.1,
		Strength:      Strength{Linear: 0.2, Grouped: 0.5, Saturated: 0.25},
	}
}
