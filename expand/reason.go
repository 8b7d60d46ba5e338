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
	// ReasonPIT: the search names a point in time instead of an index.
	ReasonPIT Reason = "pit"
	// ReasonSourceParameter: the body is in the parameter "source".
	ReasonSourceParameter Reason = "source_parameter"
	// ReasonSemicolon: the query string has a semicolon, which the engines take
	// for an ampersand.
	ReasonSemicolon Reason = "semicolon"
	// ReasonTooManyClauses: the search looks into more fields than can be
	// asked about in time.
	ReasonTooManyClauses Reason = "too_many_clauses"
	// ReasonQAndBody: the parameter "q" overrides the query of a body.
	ReasonQAndBody Reason = "q_and_body"
)

// Reasons that hold for one clause.
const (
	// ReasonOptions: an option of the clause has a value that akin does not
	// understand.
	ReasonOptions Reason = "clause_options"
	// ReasonType: a multi_match type that is not expanded.
	ReasonType Reason = "multi_match_type"
	// ReasonFields: the clause names no field, or names fields by wildcard.
	ReasonFields Reason = "fields"
	// ReasonSyntax: the text of a query string uses its operators.
	ReasonSyntax Reason = "query_syntax"
	// ReasonRuntimeField: the request redefines the field.
	ReasonRuntimeField Reason = "runtime_field"
	// ReasonNoMatrix: no matrix is bound to the index and field, or it has no
	// active version.
	ReasonNoMatrix Reason = "no_matrix"
	// ReasonNotText: see [ErrNotText].
	ReasonNotText Reason = "not_text"
	// ReasonMixed: see [ErrMixed].
	ReasonMixed Reason = "mixed_indices"
	// ReasonNoTerms: the analyzer leaves no term of the text.
	ReasonNoTerms Reason = "no_terms"
	// ReasonTooManyTerms: the text has more terms than max_query_terms.
	ReasonTooManyTerms Reason = "too_many_terms"
	// ReasonNoNeighbors: no term has a neighbor that the index holds and the
	// limits let in.
	ReasonNoNeighbors Reason = "no_neighbors"
	// ReasonTermLimit: other clauses used up max_added_terms.
	ReasonTermLimit Reason = "term_limit"
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
	// ReasonSearchType: the request fixes a search_type with which each of
	// several shards scores by statistics of its own.
	ReasonSearchType Reason = "search_type"
)
