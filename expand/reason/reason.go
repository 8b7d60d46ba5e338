// Package reason has the reasons why a search, or a part of it, is not
// expanded or not in the way configured. Clients and operators read them in
// explanations, and they are labels of metrics; docs/queries.md has a row
// for each.
package reason

// A Reason says in a fixed short phrase why something was left alone.
type Reason string

// Reasons that hold for a request as a whole.
const (
	NotJSON           Reason = "not_json"            // the body is not one JSON object, or a name stands twice in it
	TooDeep           Reason = "too_deep"            // queries are nested deeper than the engines accept
	NoClause          Reason = "no_clause"           // no clause of the search is one that akin expands
	MinScore          Reason = "min_score"           // min_score cuts by scores, which added clauses raise
	NoScores          Reason = "no_scores"           // only the order would change, and it does not count
	PIT               Reason = "pit"                 // akin cannot tell the indices of the point in time
	PITFirstPage      Reason = "pit_first_page"      // the first page of the search could not be expanded
	SourceParameter   Reason = "source_parameter"    // the parameter "source" stands with a body or has no JSON
	SuggestText       Reason = "suggest_text"        // the parameter "q" is the text of suggestions, too
	MultiSearch       Reason = "msearch_lines"       // the lines of a _msearch are not headers and bodies in turn
	Semicolon         Reason = "semicolon"           // the query string has a semicolon, which the engines take for an ampersand
	Parameters        Reason = "parameters"          // escapes in the query string cannot be read, or stand in a name
	TooManySearches   Reason = "too_many_searches"   // the request has more searches than can be expanded in time
	TooManyClauses    Reason = "too_many_clauses"    // the search looks into more fields than can be asked about in time
	TooManyHighlights Reason = "too_many_highlights" // the original queries would not fit into all places with marked words
	QAndBody          Reason = "q_and_body"          // the parameter "q" overrides the query of a body
	NotAuthorized     Reason = "not_authorized"      // the cluster does not let the client search the indices
	SearchPipeline    Reason = "search_pipeline"     // a processor of the search pipeline may read the query
	Hidden            Reason = "hidden"              // the answer would show the added terms, see expand.Profile.HideFrom
)

// Reasons that hold for one clause.
const (
	Options              Reason = "clause_options"         // an option of the clause has a value that akin does not understand
	NoField              Reason = "no_field"               // the clause names no field
	FieldsDiffer         Reason = "fields_differ"          // fields that are searched together have other analyzers, by name, or terms
	Syntax               Reason = "query_syntax"           // the text of a query string uses its operators
	RuntimeField         Reason = "runtime_field"          // the request redefines the field
	NoMatrix             Reason = "no_matrix"              // no matrix is bound to the index and field, or it has no active version
	NotWords             Reason = "not_words"              // the field's terms are no words, and no binding names the field in full
	NotText              Reason = "not_text"               // the field is not text in every index of the search
	Mixed                Reason = "mixed_indices"          // the indices analyze or score the field differently
	UnknownToCluster     Reason = "unknown_to_cluster"     // the cluster does not know an index or analyzer, and will say so
	NoTerms              Reason = "no_terms"               // the analyzer leaves no term of the text
	TooManyTerms         Reason = "too_many_terms"         // the text has more terms than max_query_terms, or is longer than 64 KiB
	NotNested            Reason = "not_nested"             // the segments of the field are not in the nested field that is configured
	NoNeighbors          Reason = "no_neighbors"           // no term has a neighbor that the index has
	NeighborsTooFrequent Reason = "neighbors_too_frequent" // and those that it has are in more than max_doc_share of the documents
	TermLimit            Reason = "term_limit"             // other clauses used up max_added_terms
)

// Reasons that hold for queries of other kinds.
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

// Reasons why the form is not computed by a rescore.
const (
	Sort          Reason = "sort"           // the request sorts its hits
	Rescore       Reason = "rescore"        // the request has a rescore of its own
	Collapse      Reason = "collapse"       // the request collapses its hits
	Scroll        Reason = "scroll"         // the engines rescore no scroll
	Retriever     Reason = "retriever"      // the query is in a retriever
	Vectors       Reason = "vectors"        // the request searches vectors as well
	Hybrid        Reason = "hybrid"         // a pipeline normalizes the scores of its sub-queries
	SearchAfter   Reason = "search_after"   // the page of hits begins behind a given score
	PointInTime   Reason = "point_in_time"  // it is read page by page, and only the first page could be rescored
	Named         Reason = "named_query"    // the query has named queries or inner hits, which must not stand in it twice
	IndicesBoost  Reason = "indices_boost"  // the request weighs its indices, which a rescore ignores
	Endpoint      Reason = "endpoint"       // the endpoint takes only a query
	RescoreWindow Reason = "rescore_window" // an index allows no such rescore, by index.max_rescore_window
)

// Reasons why a simpler scoring form was taken than the one configured.
const (
	// NotAdditive: the original's score is not the sum of its terms' (fuzziness,
	// several terms at one position, unknown fields), so it has to stay.
	NotAdditive Reason = "score_not_additive"
	NoScripts   Reason = "no_scripts"  // the cluster runs no inline scripts
	NotBM25     Reason = "not_bm25"    // the field is not scored by BM25, or its scale is unknown
	SearchType  Reason = "search_type" // shards score by their own statistics: search_type is fixed, or not known here
	Routing     Reason = "routing"     // the search may go to some of the shards only
)

// Reasons why a search is not ranked in the mode configured.
const (
	NoWeights       Reason = "no_weights"      // no weights are active; for soft, no document frequencies either
	NoLinear        Reason = "no_linear_field" // no field scores linearly in all indices
	NoNorms         Reason = "no_norms"        // the documents have no norms by these weights
	NoVectors       Reason = "no_vectors"      // too few documents have vectors by a model of the field, or a dense one knows no term of the text
	Truncated       Reason = "truncated"       // the cluster takes fewer clauses than S has neighbors for the text
	Window          Reason = "rerank_window"   // the page is behind the hits that are reranked, or ends far behind them
	TooManyReranked Reason = "rerank_searches" // the request has more searches than have their hits reranked
	OtherScores     Reason = "other_scores"    // queries other than for text score as well
	// Answer: the answer that is asked for lacks what the order needs (ids, scores
	// or sequence numbers), or is asked for in a way that engines differ in.
	Answer  Reason = "answer_members"
	TooLong Reason = "answer_too_long" // the answer to such a search was too long a moment ago
)

// All returns every reason.
func All() []Reason {
	return []Reason{
		NotJSON, TooDeep, NoClause, MinScore, NoScores, PIT, PITFirstPage, SourceParameter, SuggestText, MultiSearch,
		Semicolon, Parameters, TooManySearches, TooManyClauses, TooManyHighlights, QAndBody, NotAuthorized, SearchPipeline, Hidden,
		Options, NoField, FieldsDiffer, Syntax, RuntimeField, NoMatrix, NotWords, NotText, Mixed, UnknownToCluster, NoTerms,
		TooManyTerms, NotNested, NoNeighbors, NeighborsTooFrequent, TermLimit,
		NotScoring, TermLevel, Positions, Phrase, Other, KQL, Template, RetrieverFields, Agentic, Unknown,
		Sort, Rescore, Collapse, Scroll, Retriever, Vectors, Hybrid, SearchAfter, PointInTime, Named, IndicesBoost, Endpoint,
		RescoreWindow,
		NotAdditive, NoScripts, NotBM25, SearchType, Routing,
		NoWeights, NoLinear, NoNorms, NoVectors, Truncated, Window, TooManyReranked, OtherScores, Answer, TooLong,
	}
}
