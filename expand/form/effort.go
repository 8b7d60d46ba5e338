package form

// An Effort is how much a search may cost the cluster.
type Effort uint8

// The efforts.
const (
	// ByMatrix is Normal if the matrices of a search contain a language model, and
	// High otherwise: for matrices from documents alone, fewer terms lose a
	// quarter of the gain.
	ByMatrix Effort = iota
	// Low adds few terms in the linear form.
	Low
	// Normal also reorders the best hits by the saturated form.
	Normal
	// High is Normal with more terms and more hits.
	High
)

// String returns the name of the effort as the configuration writes it.
func (e Effort) String() string { return [...]string{"auto", "low", "normal", "high"}[e] }

// A Recipe says what an effort sends. The added terms with the largest
// v_j·√df_j come first, because they find the most.
type Recipe struct {
	Effort Effort // Low, Normal or High
	// Few is how many terms are added to a search, 0 for all chosen terms.
	Few int
	// Find is how many terms the query scores one by one, if the form is Linear or
	// a rescore orders the hits. The other terms form a set that only finds: a
	// document with any of them scores a constant, Share times the mean of what
	// they bring.
	Find  int
	Share float64
	// FindFactor multiplies the saturated form's λ in a query that is rescored.
	// LinearFactor multiplies the λ of the linear form.
	FindFactor, LinearFactor float64
	// Order is how many terms the rescore scores, 0 for all terms that are in at
	// least one of [rareShare] documents. Window is how many hits it orders.
	Order, Window int
	// Whole is how many terms are scored one by one if the saturated form is the
	// query, because its hits cannot be rescored.
	Whole int
	// Scoring is the form if none is configured.
	Scoring Scoring
}

// The recipes, measured on five judged collections and 200,000 documents
// (docs/performance.md).
var recipes = [...]Recipe{
	Low:    {Effort: Low, Few: 12, Find: 4, Share: 0.2, LinearFactor: 1.25, FindFactor: 1.14, Order: 8, Window: 50, Whole: 8, Scoring: Linear},
	Normal: {Effort: Normal, Few: 12, Find: 4, Share: 0.2, LinearFactor: 1.25, FindFactor: 1.14, Order: 8, Window: 50, Whole: 8},
	High:   {Effort: High, Find: 6, Share: 0.7, LinearFactor: 1, FindFactor: 3.2, Window: LargestWindow, Whole: 12},
}

// LargestWindow is the largest number of hits that a rescore orders, on every
// page of them.
const LargestWindow = 100

// highSame is [High] for added terms that only order. A search with it must
// cost at most about twice the search without.
var highSame = Recipe{Effort: High, Few: 12, Find: 6, Share: 0.7, LinearFactor: 1, FindFactor: 3.2, Order: 12, Window: 50, Whole: 12}

// BesideVectors returns the recipe for text scores that are mixed with vector
// scores: 8 terms in the saturated form and 8 that only find, or 4 in the
// grouped form and 12 that only find. These raise the best score by 2 to 12 %.
// The linear form raises it by 4 to 23 %, which would shift the mixture.
func (r *Recipe) BesideVectors() *Recipe {
	other := *r
	other.Few, other.Find, other.Whole, other.Scoring = 16, 4, 8, Auto
	return &other
}

// Recipe returns the recipe of the effort. mixed says that the matrices contain
// a language model, same that added terms must not find documents.
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
