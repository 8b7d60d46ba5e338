package form

// An Effort is how much a search may cost the cluster.
type Effort uint8

// The efforts.
const (
	// ByMatrix is Normal if all matrices of a search contain word vectors, and High
	// otherwise: for matrices from documents alone, fewer terms lose a
	// quarter of the gain.
	ByMatrix Effort = iota
	// Low adds few terms, in the linear form if none is configured.
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

// LargestWindow is the largest number of hits that a rescore orders, on
// every page of them.
const LargestWindow = 100

// highSame is [High] for added terms that only order. A search with it must
// cost at most about twice the search without.
var highSame = Recipe{Effort: High, Few: 12, Find: 6, Share: 0.7, LinearFactor: 1, FindFactor: 3.2, Order: 12, Window: 50, Whole: 12}

// The recipes for added terms that only order, but find where the search itself
// finds little. Over 17 sets of judged searches 12 terms in a window of 100
// have .29 points more nDCG@10 than 8 in 50, and 30 terms no more.
var orderings = [...]Recipe{Low: onlyOrders(Low, 8, 20), Normal: onlyOrders(Normal, 12, 100), High: onlyOrders(High, 12, 100)}

func onlyOrders(effort Effort, added, window int) Recipe {
	r := recipes[Normal]
	r.Effort, r.Few = effort, added
	r.Order, r.Whole = added, added
	r.Window = window
	return r
}

// Ordering returns the recipe of the effort for added terms that only order, as
// long as the search itself finds enough. It does not depend on the matrices.
func (e Effort) Ordering() *Recipe {
	if e == ByMatrix {
		e = Normal
	}
	return &orderings[e]
}

// BesideVectors returns the recipe for searches whose text scores are mixed
// with those of vectors: all chosen terms, the best 20 of them scored in
// the saturated form; with effort low 16, the best 8 scored. These raise
// the best score by 3 to 14 %, the linear form by 4 to 23 %, which would
// shift the mixture. Over the hybrid search without akin, mean of five
// collections (e2e/testdata/hybrid_stats.txt), MAP / nDCG@10, and the cost
// of 3 / 8 words (BenchmarkHybrid):
//
//	scored, added  whole queries  three rarest terms  cost
//	 8, 16         +1.8 / +1.3 %  +5.5 / +3.8 %       1.32 / 1.31
//	12, 30         +2.0 / +1.5 %  +6.0 / +4.1 %       1.30 / 1.35
//	20, 30         +2.2 / +1.8 %  +6.5 / +4.7 %       1.45 / 1.51
//	30, 30         +2.3 / +1.7 %  +6.6 / +4.5 %       1.47 / 1.44
func (r *Recipe) BesideVectors() *Recipe {
	other := *r
	other.Few = 0
	other.Find = 4
	other.Whole = 20
	other.Scoring = Auto
	if r.Effort == Low {
		other.Few, other.Whole = 16, 8
	}
	return &other
}

// Recipe returns the recipe of the effort. mixed says that the matrices
// contain word vectors, same that added terms must not find documents.
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
