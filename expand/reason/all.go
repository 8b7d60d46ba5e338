package reason

// All returns every reason.
func All() []Reason {
	return []Reason{
		NotJSON, TooDeep, NoClause, MinScore, NoScores, PIT, PITFirstPage, SourceParameter, SuggestText, MultiSearch,
		Semicolon, Parameters, TooManySearches, TooManyClauses, TooManyHighlights, QAndBody, NotAuthorized, Hidden,
		Options, NoField, FieldsDiffer, Syntax, RuntimeField, NoMatrix, NotWords, NotText, Mixed, UnknownToCluster, NoTerms,
		TooManyTerms, NotNested, NoNeighbors, NeighborsTooFrequent, TermLimit,
		NotScoring, TermLevel, Positions, Phrase, Other, Unknown,
		Sort, Rescore, Collapse, Scroll, Retriever, Vectors, SearchAfter, PointInTime, Named, IndicesBoost, Endpoint,
		RescoreWindow,
		NotAdditive, NoScripts, NotBM25, SearchType, Routing,
		NoWeights, NoLinear, NoNorms, NoVectors, Truncated, Window, TooManyReranked, OtherScores, Answer, TooLong,
	}
}
