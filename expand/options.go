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
	default:
		return "auto"
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

// Strength holds λ, the factor of the added terms, for each form. 0 adds
// terms without weight.
type Strength struct {
	// Linear, Grouped and Saturated are in [0, 1].
	Linear, Grouped, Saturated float64
}

// Options are the limits and choices of an [Expander]. The zero value adds
// nothing; [DefaultOptions] is the measured recipe.
type Options struct {
	// Scoring is the form to write.
	Scoring Form
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
}

// DefaultOptions returns the defaults: at most 30 terms, each in at most a
// tenth of the documents, λ as measured on judged collections.
func DefaultOptions() Options {
	return Options{
		MaxAddedTerms: 30,
		MaxQueryTerms: 64,
		MaxDocShare:   0.1,
		Strength:      Strength{Linear: 0.2, Grouped: 0.5, Saturated: 0.25},
	}
}
