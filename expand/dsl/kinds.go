package dsl

import (
	"strings"

	"github.com/akin-search/akin/expand/reason"
)

// A kind is how akin treats a kind of query. It has either read or inside.
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
}

// replaces is the boost_mode of functions that make the score.
const replaces = "replace"

// kinds lists the queries that akin rewrites or looks into, as in
// docs/queries.md.
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
}

// leftAlone has the reasons of the kinds that are left alone with everything in
// them. Unknown kinds are, too, with [reason.Unknown].
var leftAlone = byKind(map[reason.Reason]string{
	reason.NotScoring: "constant_score",
	reason.TermLevel: "exists fuzzy ids match_all match_none parent_id prefix range regexp term terms terms_set type " +
		"wildcard",
	reason.Positions: "field_masking_span intervals span_containing span_first span_field_masking span_gap span_multi " +
		"span_near span_not span_or span_term span_within",
	reason.Other: "common distance_feature geo_bounding_box geo_distance geo_grid geo_polygon geo_shape knn neural " +
		"neural_sparse percolate rank_feature script semantic shape xy_shape sparse_vector text_expansion " +
		"weighted_tokens wrapper",
	reason.KQL:      "kql",
	reason.Template: "template",
	reason.Agentic:  "agentic",
})

// byKind returns the reason of each kind, from the kinds of each reason.
func byKind(kinds map[reason.Reason]string) map[string]reason.Reason {
	reasons := map[string]reason.Reason{}
	for why, names := range kinds {
		for name := range strings.FieldsSeq(names) {
			reasons[name] = why
		}
	}
	return reasons
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
