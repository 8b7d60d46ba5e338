// Package reason has the reasons why a search, or a part of it, is not
// expanded or not in the way configured. Clients and operators read them in
// explanations, and they are labels of metrics; docs/queries.md has a row
// for each.
package reason

// A Reason says in a fixed short phrase why something was left alone.
type Reason string

// Reasons that hold for a request as a whole.
const (
	// NotJSON: the body is not one JSON object, or a name stands twice in it,
	// which the engines refuse too.
	NotJSON  Reason = "not_json"
	TooDeep  Reason = "too_deep"  // queries are nested deeper than the engines accept
	NoClause Reason = "no_clause" // no clause of the search is one that akin expands
	MinScore Reason = "min_score" // min_score cuts by scores, which added clauses raise
	// NoScores: with matching "same" only the order changes, and this request
	// returns no hits or sorts by something else.
	NoScores Reason = "no_scores"
	PIT      Reason = "pit" // the search names a point in time of which akin cannot tell the indices
	// PITFirstPage: the first page of this search on its point in time could
	// not be expanded, and was found by the scores of the original.
	PITFirstPage    Reason = "pit_first_page"
	SourceParameter Reason = "source_parameter" // the parameter "source" stands with a body or holds no JSON
	SuggestText     Reason = "suggest_text"     // the parameter "q" is the text of suggestions, too
	// MultiSearch: the lines of a _msearch are not headers and bodies in turn,
	// each ended by a newline.
	MultiSearch Reason = "msearch_lines"
	Semicolon   Reason = "semicolon" // the query string has a semicolon, which the engines take for an ampersand
	// Parameters: the query string has escapes that cannot be read, or that
	// stand in the name of a parameter.
	Parameters      Reason = "parameters"
	TooManySearches Reason = "too_many_searches" // the request holds more searches than can be expanded in time
	TooManyClauses  Reason = "too_many_clauses"  // the search looks into more fields than can be asked about in time
	// TooManyHighlights: the search has words marked in so many places that the
	// original queries would not fit into all of them.
	TooManyHighlights Reason = "too_many_highlights"
	QAndBody          Reason = "q_and_body"     // the parameter "q" overrides the query of a body
	NotAuthorized     Reason = "not_authorized" // the cluster does not let the client search the indices
	// Hidden: the answer would show the added terms to a client that is not to
	// see them, see expand.Options.HideFrom.
	Hidden Reason = "hidden"
)

// Reasons that hold for one clause.
const (
	Options Reason = "clause_options" // an option of the clause has a value that akin does not understand
	NoField Reason = "no_field"       // the clause names no field
	// FieldsDiffer: the clause looks for each term in all of its fields
	// together, and they have other analyzers, by name, or other terms.
	FieldsDiffer Reason = "fields_differ"
	Syntax       Reason = "query_syntax"  // the text of a query string uses its operators
	RuntimeField Reason = "runtime_field" // the request redefines the field
	NoMatrix     Reason = "no_matrix"     // no matrix is bound to the index and field, or it has no active version
	// NotWords: the field's analyzers make other terms than words, and no
	// binding names the field in full.
	NotWords Reason = "not_words"
	NotText  Reason = "not_text"      // the field is not text in every index of the search
	Mixed    Reason = "mixed_indices" // the indices analyze or score the field differently
	// UnknownToCluster: the cluster does not know what the request names, an
	// index or an analyzer. It will tell the client.
	UnknownToCluster Reason = "unknown_to_cluster"
	NoTerms          Reason = "no_terms"       // the analyzer leaves no term of the text
	TooManyTerms     Reason = "too_many_terms" // the text has more terms than max_query_terms, or is longer than 64 KiB
	NoNeighbors      Reason = "no_neighbors"   // no term has a neighbor that the index holds and the limits let in
	TermLimit        Reason = "term_limit"     // other clauses used up max_added_terms
)

// Reasons that hold for queries of other kinds.
const (
	NotScoring Reason = "not_scoring"   // the query filters, keeps out, or scores a constant
	TermLevel  Reason = "term_level"    // the query takes no text apart
	Positions  Reason = "positions"     // the query looks at the places of words
	Phrase     Reason = "phrase"        // phrases are expanded only where expand.Options.Phrases says so
	Other      Reason = "other_query"   // a query of a kind that has no terms to expand
	Unknown    Reason = "unknown_query" // a query of a kind that akin does not know
)

// Reasons why the form is not computed by a rescore.
const (
	Sort        Reason = "sort"         // the request sorts its hits
	Rescore     Reason = "rescore"      // the request has a rescore of its own
	Collapse    Reason = "collapse"     // the request collapses its hits
	Scroll      Reason = "scroll"       // the engines rescore no scroll
	Retriever   Reason = "retriever"    // the query is in a retriever
	Vectors     Reason = "vectors"      // the request searches vectors as well
	SearchAfter Reason = "search_after" // the page of hits begins behind a given score
	// PointInTime: a point in time is there to be read page by page, and only
	// its first page could be rescored.
	PointInTime  Reason = "point_in_time"
	Named        Reason = "named_query"   // the query has named queries or inner hits, which must not stand in it twice
	IndicesBoost Reason = "indices_boost" // the request weighs its indices, which a rescore does not heed
	Endpoint     Reason = "endpoint"      // the endpoint takes only a query
	// RescoreWindow: an index of the cluster refused as wide a rescore, by its
	// setting index.max_rescore_window.
	RescoreWindow Reason = "rescore_window"
)

// Reasons why a simpler scoring form was taken than the one configured.
const (
	// NotAdditive: the original's score is not the sum of its terms'
	// (fuzziness, several terms at one position, fields akin does not know), so
	// it has to stay as the scoring part.
	NotAdditive Reason = "score_not_additive"
	NoScripts   Reason = "no_scripts" // the cluster runs no inline scripts
	NotBM25     Reason = "not_bm25"   // the field is not scored by BM25, or its scale is unknown
	// SearchType: each of several shards scores by statistics of its own,
	// because the request fixes a search_type or the endpoint knows none.
	SearchType Reason = "search_type"
	// Routing: the request or an alias may send the search to some of the
	// shards only, which know the statistics of no others.
	Routing Reason = "routing"
)

// Reasons why a search is not ranked in the mode configured.
const (
	// NoWeights: no weights are bound to the index and field, or they have no
	// version; for soft, the matrix has no document frequencies either.
	NoWeights Reason = "no_weights"
	NoLinear  Reason = "no_linear_field" // no field scores linearly in all indices
	NoNorms   Reason = "no_norms"        // the documents have no norms by these weights
	// Truncated: the cluster takes fewer clauses than S has neighbors for the
	// text, so that those that weigh least were left out.
	Truncated       Reason = "truncated"
	Window          Reason = "rerank_window"   // the page is behind the hits that are reranked, or ends far behind them
	TooManyReranked Reason = "rerank_searches" // the request holds more searches than have their hits reranked
	OtherScores     Reason = "other_scores"    // queries other than for text score as well
	// Answer: the request asks for an answer that lacks what the order needs
	// (ids, scores or sequence numbers), or in a way that the engines refuse or
	// take for something else.
	Answer  Reason = "answer_members"
	TooLong Reason = "answer_too_long" // the answer to such a search was too long a moment ago
)
