package expand

// A kind is what akin does with one kind of query. Exactly one of read, inside
// and alone is set.
type kind struct {
	// read takes a clause that looks for text and notes its fields and
	// options; the clause is the unit that is rewritten.
	read func(c *clause, value []byte) error
	// inside names the members in which further queries stand, as one query
	// object or as a list of them. All other members stay as they are.
	inside []string
	// outside names the members whose queries do not score or score against a
	// hit. They are left alone, with [ReasonNotScoring].
	outside []string
	// scoreMode is the default of the member score_mode where several matches
	// make one score, "" for kinds that have no such member. Where scores are
	// averaged, or the least is taken, one more match can lower a hit, so that
	// only what the original matches may match.
	scoreMode string
	// sums says that the score is made of those of the queries inside alone.
	sums bool
	// alone is why the kind is left alone with all that is in it.
	alone Reason
}

// kinds is the one list of the queries that akin knows. docs/queries.md shows
// it; a query that does not stand here is left alone with [ReasonUnknown].
var kinds = map[string]kind{
	"match":               {read: (*clause).match},
	"match_bool_prefix":   {read: (*clause).matchBoolPrefix},
	"match_phrase":        {read: (*clause).matchPhrase},
	"match_phrase_prefix": {read: (*clause).matchPhrasePrefix},
	"multi_match":         {read: (*clause).multiMatch},
	"combined_fields":     {read: (*clause).combinedFields},
	"query_string":        {read: (*clause).queryString},
	"simple_query_string": {read: (*clause).simpleQueryString},

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

	"constant_score": {alone: ReasonNotScoring},

	"exists":    {alone: ReasonTermLevel},
	"fuzzy":     {alone: ReasonTermLevel},
	"ids":       {alone: ReasonTermLevel},
	"match_all": {alone: ReasonTermLevel}, "match_none": {alone: ReasonTermLevel},
	"parent_id": {alone: ReasonTermLevel},
	"prefix":    {alone: ReasonTermLevel},
	"range":     {alone: ReasonTermLevel},
	"regexp":    {alone: ReasonTermLevel},
	"term":      {alone: ReasonTermLevel}, "terms": {alone: ReasonTermLevel}, "terms_set": {alone: ReasonTermLevel},
	"type":     {alone: ReasonTermLevel},
	"wildcard": {alone: ReasonTermLevel},

	"field_masking_span": {alone: ReasonPositions},
	"intervals":          {alone: ReasonPositions},
	"span_containing":    {alone: ReasonPositions}, "span_first": {alone: ReasonPositions},
	"span_field_masking": {alone: ReasonPositions}, "span_gap": {alone: ReasonPositions},
	"span_multi": {alone: ReasonPositions}, "span_near": {alone: ReasonPositions},
	"span_not": {alone: ReasonPositions}, "span_or": {alone: ReasonPositions},
	"span_term": {alone: ReasonPositions}, "span_within": {alone: ReasonPositions},

	"common":           {alone: ReasonOther},
	"distance_feature": {alone: ReasonOther},
	"geo_bounding_box": {alone: ReasonOther}, "geo_distance": {alone: ReasonOther}, "geo_grid": {alone: ReasonOther},
	"geo_polygon": {alone: ReasonOther}, "geo_shape": {alone: ReasonOther},
	"hybrid":         {alone: ReasonOther},
	"knn":            {alone: ReasonOther},
	"more_like_this": {alone: ReasonOther},
	"neural":         {alone: ReasonOther}, "neural_sparse": {alone: ReasonOther},
	"percolate":    {alone: ReasonOther},
	"rank_feature": {alone: ReasonOther},
	"script":       {alone: ReasonOther},
	"semantic":     {alone: ReasonOther},
	"shape":        {alone: ReasonOther}, "xy_shape": {alone: ReasonOther},
	"sparse_vector": {alone: ReasonOther}, "text_expansion": {alone: ReasonOther}, "weighted_tokens": {alone: ReasonOther},
	"wrapper": {alone: ReasonOther},
}

// retrievers names, for each kind of retriever, the members in which a query or
// further retrievers stand. Others, such as knn, are left alone.
var retrievers = map[string][]string{
	"standard":                 {"query"},
	"rrf":                      {"retrievers"},
	"linear":                   {"retrievers"},
	"text_similarity_reranker": {"retriever"},
	"random_reranker":          {"retriever"},
	"rescorer":                 {"retriever"},
	"rule":                     {"retriever"},
	"pinned":                   {"retriever"},
	"diversify":                {"retriever"},
}
