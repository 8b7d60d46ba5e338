package dsl

import "github.com/akin-search/akin/expand/reason"

// A kind is what akin does with one kind of query. Exactly one of read,
// inside and reason is set.
type kind struct {
	// read takes a clause that looks for text and notes its fields and
	// options; the clause is the unit that is rewritten.
	read func(c *Clause, value []byte)
	// oneField says that such a clause is an object whose only member is named
	// like the field and has the text or the options.
	oneField bool
	// inside names the members in which further queries stand, as one query
	// object or as a list of them. All other members stay as they are.
	inside []string
	// outside names the members whose queries do not score or score against a
	// hit. They are left alone, with [reason.NotScoring].
	outside []string
	// scoreMode is the default of the member score_mode where several matches
	// make one score, "" for kinds that have no such member. Where scores are
	// averaged, or the least is taken, one more match can lower a hit, so that
	// only what the original matches may match.
	scoreMode string
	// sums says that the score is made only of those of the queries inside.
	sums bool
	// reason is why the kind is left alone with all that is in it.
	reason reason.Reason
}

// kinds is the one list of the queries that akin knows. docs/queries.md
// shows it; a query that does not stand here is left alone with
// [reason.Unknown].
var kinds = map[string]kind{
	"match":               {read: (*Clause).match, oneField: true},
	"match_bool_prefix":   {read: (*Clause).matchBoolPrefix, oneField: true},
	"match_phrase":        {read: (*Clause).matchPhrase, oneField: true},
	"match_phrase_prefix": {read: (*Clause).matchPhrasePrefix, oneField: true},
	"multi_match":         {read: (*Clause).multiMatch},
	"combined_fields":     {read: (*Clause).combinedFields},
	"query_string":        {read: (*Clause).queryString},
	"simple_query_string": {read: (*Clause).simpleQueryString},

	"bool":           {inside: []string{"must", "should"}, outside: []string{"filter", "must_not"}, sums: true},
	"boosting":       {inside: []string{"positive"}, outside: []string{"negative"}},
	"dis_max":        {inside: []string{"queries"}, sums: true},
	"function_score": {inside: []string{"query"}},
	"script_score":   {inside: []string{"query"}},
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
	"knn": {reason: reason.Other}, "more_like_this": {reason: reason.Other},
	"neural": {reason: reason.Other}, "neural_sparse": {reason: reason.Other}, "percolate": {reason: reason.Other},
	"rank_feature": {reason: reason.Other}, "script": {reason: reason.Other}, "semantic": {reason: reason.Other},
	"shape": {reason: reason.Other}, "xy_shape": {reason: reason.Other}, "sparse_vector": {reason: reason.Other},
	"text_expansion": {reason: reason.Other}, "weighted_tokens": {reason: reason.Other},
	"wrapper": {reason: reason.Other},

	"kql": {reason: reason.KQL}, "template": {reason: reason.Template}, "agentic": {reason: reason.Agentic},
}

// HasOneField reports whether a clause of the kind looks into one field, by the
// name of which the options stand.
func HasOneField(kind string) bool { return kinds[kind].oneField }

// retrievers names, for each kind of retriever, the member in which a query
// or further retrievers stand. Others, such as knn, are left alone.
var retrievers = map[string]string{
	"standard": "query",
	"rrf":      "retrievers", "linear": "retrievers",
	"text_similarity_reranker": "retriever", "random_reranker": "retriever", "rescorer": "retriever",
	"rule": "retriever", "pinned": "retriever", "diversify": "retriever",
}
