// Package reason has the reasons why a search, or a part of it, is not expanded
// or not in the way configured. Clients and operators read them in explanations,
// and they are labels of metrics; docs/queries.md has a row for each.
package reason

// A Reason says in a fixed short phrase why something was left alone.
type Reason string

// Reasons that hold for a request as a whole.
const (
	// NotJSON: the body is not one JSON object, or a name stands twice
	// in it, which the engines refuse too.
	NotJSON Reason = "not_json"
	// TooDeep: queries are nested deeper than the engines accept.
	TooDeep Reason = "too_deep"
	// NoClause: no clause of the search is one that akin expands.
	NoClause Reason = "no_clause"
	// MinScore: min_score cuts by scores, which added clauses raise.
	MinScore Reason = "min_score"
	// NoScores: with matching "same" only the order changes, and this
	// request returns no hits or sorts by something else.
	NoScores Reason = "no_scores"
	// PIT: the search names a point in time of which akin cannot tell
	// the indices.
	PIT Reason = "pit"
	// PITFirstPage: the first page of this search on its point in time
	// could not be expanded, and was found by the scores of the original.
	PITFirstPage Reason = "pit_first_page"
	// SourceParameter: the parameter "source" stands with a body or
	// holds no JSON.
	SourceParameter Reason = "source_parameter"
	// SuggestText: the parameter "q" is the text of suggestions, too.
	SuggestText Reason = "suggest_text"
	// MultiSearch: the lines of a _msearch are not headers and bodies in
	// turn, each ended by a newline.
	MultiSearch Reason = "msearch_lines"
	// Semicolon: the query string has a semicolon, which the engines take
	// for an ampersand.
	Semicolon Reason = "semicolon"
	// Parameters: the query string has escapes that cannot be read, or
	// that stand in the name of a parameter.
	Parameters Reason = "parameters"
	// TooManySearches: the request holds more searches than can be
	// expanded in time.
	TooManySearches Reason = "too_many_searches"
	// TooManyClauses: the search looks into more fields than can be
	// asked about in time.
	TooManyClauses Reason = "too_many_clauses"
	// TooManyHighlights: the search has words marked in so many places
	// that the original queries would not fit into all of them.
	TooManyHighlights Reason = "too_many_highlights"
	// QAndBody: the parameter "q" overrides the query of a body.
	QAndBody Reason = "q_and_body"
	// NotAuthorized: the cluster does not let the client search the indices.
	NotAuthorized Reason = "not_authorized"
	// Hidden: the answer would show the added terms to a client that is
	// not to see them, see expand.Options.HideFrom.
	Hidden Reason = "hidden"
)

// Reasons that hold for one clause.
const (
	// Options: an option of the clause has a value that akin does not
	// understand.
	Options Reason = "clause_options"
	// Fields: the clause names no field.
	Fields Reason = "fields"
	// FieldsDiffer: the clause looks for each term in all of its fields
	// together, and they have other analyzers, by name, or other terms.
	FieldsDiffer Reason = "fields_differ"
	// Syntax: the text of a query string uses its operators.
	Syntax Reason = "query_syntax"
	// RuntimeField: the request redefines the field.
	RuntimeField Reason = "runtime_field"
	// NoMatrix: no matrix is bound to the index and field, or it has no
	// active version.
	NoMatrix Reason = "no_matrix"
	// NotWords: the field's analyzers make other terms than words, and no
	// binding names the field in full.
	NotWords Reason = "not_words"
	// NotText: the field is not text in every index of the search.
	NotText Reason = "not_text"
	// Mixed: the indices analyze or score the field differently.
	Mixed Reason = "mixed_indices"
	// UnknownToCluster: the cluster does not know what the request names, an index
	// or an analyzer. It will tell the client.
	UnknownToCluster Reason = "unknown_to_cluster"
	// NoTerms: the analyzer leaves no term of the text.
	NoTerms Reason = "no_terms"
	// TooManyTerms: the text has more terms than max_query_terms, or is
	// longer than 64 KiB.
	TooManyTerms Reason = "too_many_terms"
	// NoNeighbors: no term has a neighbor that the index holds and the
	// limits let in.
	NoNeighbors Reason = "no_neighbors"
	// TermLimit: other clauses used up max_added_terms.
	TermLimit Reason = "term_limit"
)

// Reasons that hold for queries of other kinds.
const (
	// NotScoring: the query filters, keeps out, or scores a constant.
	NotScoring Reason = "not_scoring"
	// TermLevel: the query takes no text apart.
	TermLevel Reason = "term_level"
	// Positions: the query looks at the places of words.
	Positions Reason = "positions"
	// Phrase: phrases are expanded only where expand.Options.Phrases says so.
	Phrase Reason = "phrase"
	// Other: a query of a kind that has no terms to expand.
	Other Reason = "other_query"
	// Unknown: a query of a kind that akin does not know.
	Unknown Reason = "unknown_query"
)

// Reasons why the form is not computed by a rescore.
const (
	// Sort: the request sorts its hits.
	Sort Reason = "sort"
	// Rescore: the request has a rescore of its own.
	Rescore Reason = "rescore"
	// Collapse: the request collapses its hits.
	Collapse Reason = "collapse"
	// Scroll: the engines rescore no scroll.
	Scroll Reason = "scroll"
	// Retriever: the query is in a retriever.
	Retriever Reason = "retriever"
	// Vectors: the request searches vectors as well.
	Vectors Reason = "vectors"
	// SearchAfter: the page of hits begins behind a given score.
	SearchAfter Reason = "search_after"
	// PointInTime: a point in time is there to be read page by page, and
	// only its first page could be rescored.
	PointInTime Reason = "point_in_time"
	// Named: the query has named queries or inner hits, which must not
	// stand in it twice.
	Named Reason = "named_query"
	// IndicesBoost: the request weighs its indices, which a rescore does
	// not heed.
	IndicesBoost Reason = "indices_boost"
	// Endpoint: the endpoint takes only a query.
	Endpoint Reason = "endpoint"
	// RescoreWindow: an index of the cluster refused as wide a rescore,
	// by its setting index.max_rescore_window.
	RescoreWindow Reason = "rescore_window"
)

// Reasons why a simpler scoring form was taken than the one configured.
const (
	// NotPlain: the original's score is not the sum of its terms'
	// (fuzziness, several terms at one position, fields akin does not know),
	// so it has to stay as the scoring part.
	NotPlain Reason = "not_plain_terms"
	// NoScripts: the cluster runs no inline scripts.
	NoScripts Reason = "no_scripts"
	// Scale: the field is not scored by BM25, or its scale is unknown.
	Scale Reason = "unknown_scale"
	// SearchType: each of several shards scores by statistics of its own,
	// because the request fixes a search_type or the endpoint knows none.
	SearchType Reason = "search_type"
	// Routing: the request or an alias may send the search to some of the
	// shards only, which know the statistics of no others.
	Routing Reason = "routing"
)

// Reasons why a search is not ranked in the mode configured.
const (
	// NoWeights: no weights are bound to the index and field, or they have
	// no version; for soft, the matrix has no document frequencies either.
	NoWeights Reason = "no_weights"
	// NoLinear: no field scores linearly in all indices.
	NoLinear Reason = "no_linear_field"
	// NoNorms: the documents have no norms by these weights.
	NoNorms Reason = "no_norms"
	// Truncated: the cluster takes fewer clauses than S has neighbors for
	// the text, so that those that weigh least were left out.
	Truncated Reason = "truncated"
	// Window: the page is behind the hits that are reranked, or ends
	// far behind them.
	Window Reason = "rerank_window"
	// TooManyReranked: the request holds more searches than have their hits
	// reranked.
	TooManyReranked Reason = "rerank_searches"
	// OtherScores: queries other than for text score as well.
	OtherScores Reason = "other_scores"
	// Answer: the request asks for an answer that lacks what the order
	// needs (ids, scores or sequence numbers), or in a way that the engines refuse
	// or take for something else.
	Answer Reason = "answer_members"
	// TooLong: the answer to such a search was too long a moment ago.
	TooLong Reason = "answer_too_long"
)
