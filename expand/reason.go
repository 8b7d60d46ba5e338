package expand

// Reasons that hold for a request as a whole.
const (
	// ReasonNotJSON: the body is not one JSON object, or a name stands twice
	// in it, which the engines refuse too.
	ReasonNotJSON Reason = "not_json"
	// ReasonTooDeep: queries are nested deeper than the engines accept.
	ReasonTooDeep Reason = "too_deep"
	// ReasonNoClause: no clause of the search is one that akin expands.
	ReasonNoClause Reason = "no_clause"
	// ReasonMinScore: min_score cuts by scores, which added clauses raise.
	ReasonMinScore Reason = "min_score"
	// ReasonNoScores: with matching "same" only the order changes, and this
	// request returns no hits or sorts by something else.
	ReasonNoScores Reason = "no_scores"
	// ReasonPIT: the search names a point in time of which akin cannot tell
	// the indices.
	ReasonPIT Reason = "pit"
	// ReasonPITFirstPage: the first page of this search on its point in time
	// could not be expanded, and was found by the scores of the original.
	ReasonPITFirstPage Reason = "pit_first_page"
	// ReasonSourceParameter: the parameter "source" stands beside a body or
	// holds no JSON.
	ReasonSourceParameter Reason = "source_parameter"
	// ReasonSuggestText: the parameter "q" is the text of suggestions, too.
	ReasonSuggestText Reason = "suggest_text"
	// ReasonMultiSearch: the lines of a _msearch are not headers and bodies in
	// turn, each ended by a newline.
	ReasonMultiSearch Reason = "msearch_lines"
	// ReasonSemicolon: the query string has a semicolon, which the engines take
	// for an ampersand.
	ReasonSemicolon Reason = "semicolon"
	// ReasonParameters: the query string has escapes that cannot be read, or
	// that stand in the name of a parameter.
	ReasonParameters Reason = "parameters"
	// ReasonTooManySearches: the request holds more searches than can be
	// expanded in time.
	ReasonTooManySearches Reason = "too_many_searches"
	// ReasonTooManyClauses: the search looks into more fields than can be
	// asked about in time.
	ReasonTooManyClauses Reason = "too_many_clauses"
	// ReasonTooManyHighlights: the search has words marked in so many places
	// that the original queries would not fit into all of them.
	ReasonTooManyHighlights Reason = "too_many_highlights"
	// ReasonQAndBody: the parameter "q" overrides the query of a body.
	ReasonQAndBody Reason = "q_and_body"
	// ReasonNotAuthorized: see [ErrNotAuthorized].
	ReasonNotAuthorized Reason = "not_authorized"
	// ReasonHidden: the answer would show the added terms to a client that is
	// not to see them, see [Options.HideFrom].
	ReasonHidden Reason = "hidden"
)

// Reasons that hold for one clause.
const (
	// ReasonOptions: an option of the clause has a value that akin does not
	// understand.
	ReasonOptions Reason = "clause_options"
	// ReasonFields: the clause names no field.
	ReasonFields Reason = "fields"
	// ReasonFieldsDiffer: the clause looks for each term in all of its fields
	// together, and they have other analyzers, by name, or other terms.
	ReasonFieldsDiffer Reason = "fields_differ"
	// ReasonSyntax: the text of a query string uses its operators.
	ReasonSyntax Reason = "query_syntax"
	// ReasonRuntimeField: the request redefines the field.
	ReasonRuntimeField Reason = "runtime_field"
	// ReasonNoMatrix: no matrix is bound to the index and field, or it has no
	// active version.
	ReasonNoMatrix Reason = "no_matrix"
	// ReasonNotWords: the field's analyzers make other terms than words, and no
	// binding names the field in full.
	ReasonNotWords Reason = "not_words"
	// ReasonNotText: see [ErrNotText].
	ReasonNotText Reason = "not_text"
	// ReasonMixed: see [ErrMixed].
	ReasonMixed Reason = "mixed_indices"
	// ReasonUnknownToCluster: see [ErrUnknown].
	ReasonUnknownToCluster Reason = "unknown_to_cluster"
	// ReasonNoTerms: the analyzer leaves no term of the text.
	ReasonNoTerms Reason = "no_terms"
	// ReasonTooManyTerms: the text has more terms than max_query_terms, or is
	// longer than 64 KiB.
	ReasonTooManyTerms Reason = "too_many_terms"
	// ReasonNoNeighbors: no term has a neighbor that the index holds and the
	// limits let in.
	ReasonNoNeighbors Reason = "no_neighbors"
	// ReasonTermLimit: other clauses used up max_added_terms.
	ReasonTermLimit Reason = "term_limit"
)

// Reasons that hold for queries of other kinds.
const (
	// ReasonNotScoring: the query filters, keeps out, or scores a constant.
	ReasonNotScoring Reason = "not_scoring"
	// ReasonTermLevel: the query takes no text apart.
	ReasonTermLevel Reason = "term_level"
	// ReasonPositions: the query looks at the places of words.
	ReasonPositions Reason = "positions"
	// ReasonPhrase: phrases are expanded only where [Options.Phrases] says so.
	ReasonPhrase Reason = "phrase"
	// ReasonOther: a query of a kind that has no terms to expand.
	ReasonOther Reason = "other_query"
	// ReasonUnknown: a query of a kind that akin does not know.
	ReasonUnknown Reason = "unknown_query"
)

// Reasons why the form is not computed by a rescore.
const (
	// ReasonSort: the request sorts its hits.
	ReasonSort Reason = "sort"
	// ReasonRescore: the request has a rescore of its own.
	ReasonRescore Reason = "rescore"
	// ReasonCollapse: the request collapses its hits.
	ReasonCollapse Reason = "collapse"
	// ReasonScroll: the engines rescore no scroll.
	ReasonScroll Reason = "scroll"
	// ReasonRetriever: the query is in a retriever.
	ReasonRetriever Reason = "retriever"
	// ReasonVectors: the request searches vectors as well.
	ReasonVectors Reason = "vectors"
	// ReasonSearchAfter: the page of hits begins behind a given score.
	ReasonSearchAfter Reason = "search_after"
	// ReasonPointInTime: a point in time is there to be read page by page, and
	// only its first page could be rescored.
	ReasonPointInTime Reason = "point_in_time"
	// ReasonNamed: the query has named queries or inner hits, which must not
	// stand in it twice.
	ReasonNamed Reason = "named_query"
	// ReasonIndicesBoost: the request weighs its indices, which a rescore does
	// not heed.
	ReasonIndicesBoost Reason = "indices_boost"
	// ReasonEndpoint: the endpoint takes a query alone.
	ReasonEndpoint Reason = "endpoint"
	// ReasonRescoreWindow: an index of the cluster refused as wide a rescore,
	// by its setting index.max_rescore_window.
	ReasonRescoreWindow Reason = "rescore_window"
)

// Reasons why a simpler scoring form was taken than the one configured.
const (
	// ReasonNotPlain: the original's score is not the sum of its terms'
	// (fuzziness, several terms at one position, fields akin does not know),
	// so it has to stay as the scoring part.
	ReasonNotPlain Reason = "not_plain_terms"
	// ReasonNoScripts: the cluster runs no inline scripts.
	ReasonNoScripts Reason = "no_scripts"
	// ReasonScale: the field is not scored by BM25, or its scale is unknown.
	ReasonScale Reason = "unknown_scale"
	// ReasonSearchType: each of several shards scores by statistics of its own,
	// because the request fixes a search_type or the endpoint knows none.
	ReasonSearchType Reason = "search_type"
	// ReasonRouting: the request or an alias may send the search to some of the
	// shards only, which know the statistics of no others.
	ReasonRouting Reason = "routing"
)

// Reasons why a search is not ranked in the mode configured.
const (
	// ReasonNoWeights: no weights are bound to the index and field, or they have
	// no version; for soft, the matrix has no document frequencies either.
	ReasonNoWeights Reason = "no_weights"
	// ReasonNoLinear: see [ErrNoLinear].
	ReasonNoLinear Reason = "no_linear_field"
	// ReasonNoNorms: see [ErrNoNorms].
	ReasonNoNorms Reason = "no_norms"
	// ReasonTruncated: the cluster takes fewer clauses than S has neighbors for
	// the text, so that those that weigh least were left out.
	ReasonTruncated Reason = "truncated"
	// ReasonWindow: the page is behind the hits that are ordered anew, or ends
	// far behind them.
	ReasonWindow Reason = "rerank_window"
	// ReasonTooManyReranked: the request holds more searches than have their hits
	// ordered anew.
	ReasonTooManyReranked Reason = "rerank_searches"
	// ReasonOtherScores: queries other than for text score as well.
	ReasonOtherScores Reason = "other_scores"
	// ReasonAnswer: the request asks for an answer that lacks what the order
	// needs (ids, scores or sequence numbers), or in a way that the engines refuse
	// or take for something else.
	ReasonAnswer Reason = "answer_members"
	// ReasonTooLong: the answer to such a search was too long a moment ago.
	ReasonTooLong Reason = "answer_too_long"
)
