// Package reason has the reasons why a search, or a part of it, is not
// expanded, or not as configured. They appear in explanations and as labels of
// metrics; docs/queries.md has a row for each.
package reason

// A Reason is a fixed short phrase why something was left alone.
type Reason string

// Reasons for a whole request.
const (
	NotJSON           Reason = "not_json"            // the body is not one JSON object, or has a duplicate name
	TooDeep           Reason = "too_deep"            // queries are nested deeper than the engines accept
	NoClause          Reason = "no_clause"           // the search has no clause that akin expands
	MinScore          Reason = "min_score"           // min_score cuts by scores, which added clauses raise
	AsTyped           Reason = "as_typed"            // words are counted: the hits of the search as typed keep their order
	NoScores          Reason = "no_scores"           // only the order would change, and order does not count
	PIT               Reason = "pit"                 // the indices of the point in time are unknown
	PITFirstPage      Reason = "pit_first_page"      // the first page of the search could not be expanded
	SourceParameter   Reason = "source_parameter"    // the parameter "source" comes with a body or is not JSON
	SuggestText       Reason = "suggest_text"        // the parameter "q" is also the text of suggestions
	MultiSearch       Reason = "msearch_lines"       // the lines of a _msearch are not alternating headers and bodies
	Semicolon         Reason = "semicolon"           // the query string has a semicolon, which the engines take for an ampersand
	Parameters        Reason = "parameters"          // escapes in the query string are malformed, or in a name
	TooManySearches   Reason = "too_many_searches"   // the request has more searches than can be expanded in time
	TooManyClauses    Reason = "too_many_clauses"    // the search has more fields than can be asked about in time
	TooManyHighlights Reason = "too_many_highlights" // the original queries would not fit into all places with highlights
	QAndBody          Reason = "q_and_body"          // the parameter "q" overrides the query of a body
	NotAuthorized     Reason = "not_authorized"      // the cluster does not let the client search the indices
	SearchPipeline    Reason = "search_pipeline"     // a processor of the search pipeline may read the query
	Hidden            Reason = "hidden"              // the answer would show the added terms, see expand.Profile.HideFrom
)

// Reasons for one clause.
const (
	Options              Reason = "clause_options"         // an option of the clause has a value that akin does not understand
	NoField              Reason = "no_field"               // no field has a name that the clause looks for
	NoDefaultFields      Reason = "no_default_fields"      // the clause names no field, and expand.Profile.DefaultFields is empty
	FieldsDiffer         Reason = "fields_differ"          // fields searched together differ in analyzer names or terms
	Syntax               Reason = "query_syntax"           // a query string with operators, or parts of it
	LikeDocuments        Reason = "like_documents"         // a more_like_this with documents, or parts of it
	RuntimeField         Reason = "runtime_field"          // the request redefines the field
	NoMatrix             Reason = "no_matrix"              // no matrix is bound to the index and field, or it has no active version
	NotWords             Reason = "not_words"              // the field's terms are not words, and no binding has the field's full name
	NotText              Reason = "not_text"               // the field is not text in every index of the search
	Mixed                Reason = "mixed_indices"          // the indices analyze or score the field differently
	UnknownToCluster     Reason = "unknown_to_cluster"     // the cluster does not know an index or analyzer, and will say so
	NoTerms              Reason = "no_terms"               // the analyzer leaves no term
	TooManyTerms         Reason = "too_many_terms"         // the text has more than 1,024 terms (in some modes max_query_terms), or is longer than 64 KiB
	NotNested            Reason = "not_nested"             // the field's segments are not in the configured nested field
	NoNeighbors          Reason = "no_neighbors"           // no term has a neighbor that the index has
	NeighborsTooFrequent Reason = "neighbors_too_frequent" // the neighbors that it has are in more than max_doc_share of the documents
	TermLimit            Reason = "term_limit"             // other clauses used up max_added_terms
)

// Reasons for other kinds of queries.
const (
	NotScoring      Reason = "not_scoring"      // the query filters, keeps out, or scores a constant
	TermLevel       Reason = "term_level"       // the query analyzes no text
	Positions       Reason = "positions"        // the query looks at the places of words
	Phrase          Reason = "phrase"           // phrases are expanded only where expand.Profile.Phrases says so
	Other           Reason = "other_query"      // a query of a kind that has no terms to expand
	KQL             Reason = "kql"              // a text in Kibana's query language
	Template        Reason = "template_query"   // a query that a template makes, which only the engine reads
	RetrieverFields Reason = "retriever_fields" // a text with fields of which a retriever makes several
	Agentic         Reason = "agentic_query"    // a question that a model makes a query of
	Unknown         Reason = "unknown_query"    // a query of a kind that akin does not know
)

// Reasons why the form is not computed in a rescore.
const (
	Sort          Reason = "sort"           // the request sorts its hits
	Rescore       Reason = "rescore"        // the request has its own rescore
	Collapse      Reason = "collapse"       // the request collapses its hits
	Scroll        Reason = "scroll"         // the engines do not rescore scrolls
	Retriever     Reason = "retriever"      // the query is in a retriever
	Vectors       Reason = "vectors"        // the request searches vectors as well
	Hybrid        Reason = "hybrid"         // a pipeline normalizes the scores of its sub-queries
	SearchAfter   Reason = "search_after"   // the page of hits begins behind a given score
	PointInTime   Reason = "point_in_time"  // it is read page by page, and only the first page could be rescored
	Named         Reason = "named_query"    // the query has named queries or inner hits, which must not stand in it twice
	Values        Reason = "score_values"   // the score is a value of the document: function_score with boost_mode replace, or a script without _score
	IndicesBoost  Reason = "indices_boost"  // the request weighs its indices, which a rescore ignores
	Endpoint      Reason = "endpoint"       // the endpoint takes only a query
	RescoreWindow Reason = "rescore_window" // an index does not allow such a rescore (index.max_rescore_window)
)

// Reasons for a simpler scoring form than the configured one.
const (
	// NotAdditive: the original's score is not the sum of its terms' (fuzziness,
	// several terms at one position, unknown fields), so it must stay.
	NotAdditive Reason = "score_not_additive"
	NoScripts   Reason = "no_scripts" // the cluster runs no inline scripts
	// NoFrequencies: the cluster does not tell how many documents have a term.
	NoFrequencies Reason = "no_frequencies"
	NotBM25       Reason = "not_bm25"    // the field is not scored by BM25, or its scale is unknown
	SearchType    Reason = "search_type" // shards score by their own statistics: search_type is fixed, or unknown
	Routing       Reason = "routing"     // the search may go to only some of the shards
)

// Reasons why a search is not ranked in the configured mode.
const (
	NoWeights       Reason = "no_weights"      // no weights are active (for soft: and the matrix has no document frequencies)
	NoLinear        Reason = "no_linear_field" // no field scores linearly in all indices
	NoNorms         Reason = "no_norms"        // too few documents have norms for these weights, or soft norms for these and this version of S
	NoVectors       Reason = "no_vectors"      // too few documents have vectors of a model of the field, or a dense one knows no term of the text
	Truncated       Reason = "truncated"       // the cluster accepts fewer clauses than the text has neighbors in S
	Window          Reason = "rerank_window"   // the page is behind the reranked hits, or ends far behind them
	TooManyReranked Reason = "rerank_searches" // the request has more searches than are reranked
	NotRemembered   Reason = "not_remembered"  // in the mode auto: too few hits of the last such searches are remembered
	NoEmbeddings    Reason = "no_embeddings"   // the search is not in the fields that vectors are made of, or the model does not answer
	OtherScores     Reason = "other_scores"    // queries other than for text also score
	// Answer: the requested answer lacks what the order needs (ids, scores or
	// sequence numbers), or is requested in a way that engines treat differently.
	Answer  Reason = "answer_members"
	TooLong Reason = "answer_too_long" // the answer to such a search was recently too long
)

// All returns every reason.
func All() []Reason {
	return []Reason{
		NotJSON, TooDeep, NoClause, MinScore, AsTyped, NoScores, PIT, PITFirstPage, SourceParameter, SuggestText, MultiSearch,
		Semicolon, Parameters, TooManySearches, TooManyClauses, TooManyHighlights, QAndBody, NotAuthorized, SearchPipeline, Hidden,
		Options, NoField, NoDefaultFields, FieldsDiffer, Syntax, LikeDocuments, RuntimeField, NoMatrix, NotWords, NotText, Mixed, UnknownToCluster, NoTerms,
		TooManyTerms, NotNested, NoNeighbors, NeighborsTooFrequent, TermLimit,
		NotScoring, TermLevel, Positions, Phrase, Other, KQL, Template, RetrieverFields, Agentic, Unknown,
		Sort, Rescore, Collapse, Scroll, Retriever, Vectors, Hybrid, SearchAfter, PointInTime, Named, Values, IndicesBoost, Endpoint,
		RescoreWindow,
		NotAdditive, NoScripts, NoFrequencies, NotBM25, SearchType, Routing,
		NoWeights, NoLinear, NoNorms, NoVectors, Truncated, Window, TooManyReranked, NotRemembered, NoEmbeddings, OtherScores, Answer, TooLong,
	}
}
