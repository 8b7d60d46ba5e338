package form

// An Effort is how much a search may cost the cluster for what it gains.
type Effort uint8

// The efforts.
const (
	// ByMatrix is Normal where a language model is mixed into the matrices of a
	// search, and High elsewhere: of what documents alone teach, fewer terms lose a
	// quarter of the gain.
	ByMatrix Effort = iota
	// Low adds few terms in the linear form.
	Low
	// Normal has the best hits of that ordered again by the saturated form.
	Normal
	// High does that with more terms and more hits.
	High
)

// String returns the name of the effort as the configuration writes it.
func (e Effort) String() string { return [...]string{"auto", "low", "normal", "high"}[e] }

// A Recipe says what an effort sends. Of the terms that are added, those with
// the largest v_j·√df_j go first: they find the most.
type Recipe struct {
	Effort Effort // one of the three
	// Few is how many terms are added to a search, 0 where all that were chosen are.
	Few int
	// Find terms are scored one by one by the query, where the form is Linear or a
	// rescore orders what it finds. The others are a set that only finds: a document
	// with any of them gets a constant, Share of what a middling one brings.
	Find  int
	Share float64
	// FindFactor is the factor of λ of the saturated form in the query whose hits are
	// rescored, and LinearFactor that of λ of the linear form.
	FindFactor, LinearFactor float64
	// Order terms are scored in the rescore, 0 stands for all that are in at least
	// one of [rareShare] documents, and Window is how many hits are ordered.
	Order, Window int
	// Whole terms are scored one by one where the saturated form is the query,
	// because its hits cannot be rescored.
	Whole int
	// Scoring is the form where none is configured.
	Scoring Scoring
}

// The recipes, measured on five judged collections and 200,000 documents
// (docs/performance.md).
var recipes = [...]Recipe{
	Low:    {Effort: Low, Few: 12, Find: 4, Share: 0.2, LinearFactor: 1.25, FindFactor: 1.14, Order: 8, Window: 50, Whole: 8, Scoring: Linear},
	Normal: {Effort: Normal, Few: 12, Find: 4, Share: 0.2, LinearFactor: 1.25, FindFactor: 1.14, Order: 8, Window: 50, Whole: 8},
	High:   {Effort: High, Find: 6, Share: 0.7, LinearFactor: 1, FindFactor: 3.2, Window: LargestWindow, Whole: 12},
}

// LargestWindow is the most hits that a rescore orders, on every page of them.
const LargestWindow = 100

// highSame is [High] where added terms find nothing, but only order: that is to
// cost about twice the search without, at most.
var highSame = Recipe{Effort: High, Few: 12, Find: 6, Share: 0.7, LinearFactor: 1, FindFactor: 3.2, Order: 12, Window: 50, Whole: 12}

// BesideVectors returns what is sent where the scores of text are mixed with
// those of vectors: 8 terms in the saturated form and 8 that only find, or 4 in
// the grouped form and 12 that only find. These raise the best score by 2 to
// 12 %, the linear form by 4 to 23 %, which would shift the mixture.
func (r *Recipe) BesideVectors() *Recipe {
	other := *r
	other.Few, other.Find, other.Whole, other.Scoring = 16, 4, 8, Auto
	return &other
}

// Recipe returns what the effort sends to fields whose matrices are mixed with
// a language model, or are not. Same says that added terms are to find nothing.
func (e Effort) Recipe(mixed, same bool) *Recipe {
	switch {
	case e == ByMatrix && mixed:
		e = Normal
	case e == ByMatrix:
		e = High
	}
	if e == High && same {
		return &highSame
	}
	return &recipes[e]
}
