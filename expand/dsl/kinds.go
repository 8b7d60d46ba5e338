package dsl

import "github.com/akin-search/akin/expand/reason"

// A kind is how akin treats a kind of query. It has one of read, inside,
// reason.
type kind struct {
	// read reads the fields and options of a clause that searches for text; the
	// clause is rewritten as a whole.
	read func(c *Clause, value []byte)
	// oneField says that such a clause is an object whose only member is named
	// after the field and has the text or the options.
	oneField bool
	// inside names the members with further queries, one object or a list. All
	// other members stay.
	inside []string
	// outside names the members whose queries do not score, or score against a
	// hit. They are left alone, with [reason.NotScoring], but for filters where
	// [Parser] has Filters.
	outside []string
	// scoreMode is the default of the member score_mode, by which several matches
	// make one score; "" for kinds without it. If scores are averaged, or the
	// lowest is taken, one more match can lower a hit, so only the original's
	// matches may match.
	scoreMode string
	// boostMode is the default of the member boost_mode, by which functions change
	// the score; "" for kinds without functions.
	boostMode string
	// sums says that the score consists only of those of the queries inside.
	sums bool
	// reason is why the kind and everything in it is left alone.
	reason reason.Reason
}

// replaces is the boost_mode of functions that make the score.
const replaces = "replace"

// kinds lists the queries that akin knows, as in docs/queries.md. Others are
// left alone, with [reason.Unknown].
var kinds = map[string]kind{
	"match":               {read: (*Clause).match, oneField: true},
	"match_bool_prefix":   {read: (*Clause).matchBoolPrefix, oneField: true},
	"match_phrase":        {read: (*Clause).matchPhrase, oneField: true},
	"match_phrase_prefix": {read: (*Clause).matchPhrasePrefix, oneField: true},
	"multi_match":         {read: (*Clause).multiMatch},
	"combined_fields":     {read: (*Clause).combinedFields},
	"query_string":        {read: (*Clause).queryString},
	"simple_query_string": {read: (*Clause).simpleQueryString},
	"more_like_this":      {read: (*Clause).moreLikeThis}, // see [Parser.MoreLikeThis]

	"bool":           {inside: []string{"must", "should"}, outside: []string{"filter", "must_not"}, sums: true},
	"boosting":       {inside: []string{"positive"}, outside: []string{"negative"}},
	"dis_max":        {inside: []string{"queries"}, sums: true},
	"function_score": {inside: []string{"query"}, boostMode: "multiply"},
	"script_score":   {inside: []string{"query"}, boostMode: replaces},
	"nested":         {inside: []string{"query"}, scoreMode: "avg"},
	"has_child":      {inside: []string{"query"}, scoreMode: "none"},
	"has_parent":     {inside: []string{"query"}},
	"pinned":         {inside: []string{"organic"}},
	"rule":           {inside: []string{"organic"}},
	"rule_query":     {inside: []string{"organic"}},
	// Only as the query of the search, see [Parser.Hybrid].
	"hybrid": {inside: []string{"queries"}, outside: []string{"filter"}},

	"constant_score": {reason: reason.NotScoring},

	"exists": {reason: reason.TermLevel}, "fuzzy": {reason: reason.TermLevel}, "ids": {reason: reason.TermLevel},
	"match_all": {reason: reason.TermLevel}, "match_none": {reason: reason.TermLevel},
	"parent_id": {reason: reason.TermLevel}, "prefix": {reason: reason.TermLevel}, "range": {reason: reason.TermLevel},
	"regexp": {reason: reason.TermLevel}, "term": {reason: reason.TermLevel}, "terms": {reason: reason.TermLevel},
	"terms_set": {reason: reason.TermLevel}, "type": {reason: reason.TermLevel}, "wildcard": {reason: reason.TermLevel},

	"field_masking_span": {reason: reason.Positions}, "intervals": {reason: reason.Positions},
	"span_containing": {reason: reason.Positions}, "span_first": {reason: reason.Positions},
	"span_field_masking": {reason: reason.Positions}, "span_gap": {reason: reason.Positions},
	"span_multi": {reason: reason.Positions}, "span_near": {reason: reason.Positions},
	"span_not": {reason: reason.Positions}, "span_or": {reason: reason.Positions},
	"span_term": {reason: reason.Positions}, "span_within": {reason: reason.Positions},

	"common": {reason: reason.Other}, "distance_feature": {reason: reason.Other},
	"geo_bounding_box": {reason: reason.Other}, "geo_distance": {reason: reason.Other},
	"geo_grid": {reason: reason.Other}, "geo_polygon": {reason: reason.Other}, "geo_shape": {reason: reason.Other},
	"knn": {reason: reason.Other}, "neural": {reason: reason.Other}, "neural_sparse": {reason: reason.Other}, "percolate": {reason: reason.Other},
	"rank_feature": {reason: reason.Other}, "script": {reason: reason.Other}, "semantic": {reason: reason.Other},
	"shape": {reason: reason.Other}, "xy_shape": {reason: reason.Other}, "sparse_vector": {reason: reason.Other},
	"text_expansion": {reason: reason.Other}, "weighted_tokens": {reason: reason.Other},
	"wrapper": {reason: reason.Other},

	"kql": {reason: reason.KQL}, "template": {reason: reason.Template}, "agentic": {reason: reason.Agentic},
}

// HasOneField reports whether a clause of the kind searches one field, which is
// the name of its options.
func HasOneField(kind string) bool { return kinds[kind].oneField }

// retrievers names, for each kind of retriever, the member with a query or more
// retrievers. Others, such as knn, are left alone.
var retrievers = map[string]string{
	"standard": "query",
	"rrf":      "retrievers", "linear": "retrievers",
	"text_similarity_reranker": "retriever", "random_reranker": "retriever", "rescorer": "retriever",
	"rule": "retriever", "pinned": "retriever", "diversify": "retriever",
}
