package expand

// A kind is what akin knows of one kind of query. Exactly one of read and
// inside is set.
type kind struct {
	// read takes a clause that looks for text and notes its fields and
	// options; the clause is the unit that is rewritten.
	read func(c *clause, value []byte) error
	// inside names the members in which further queries stand, as one query
	// object or as a list of them. All other members stay as they are.
	inside []string
	// averages says that the scores of several matches may be averaged, or the
	// least taken, as score_mode says: one more match can then lower a hit, so
	// that only what the original matches may match.
	averages bool
}

// kindOf is the one list of the queries that akin looks at. A query that does
// not stand here is left alone with all that is in it: that is right for
// bool.filter and bool.must_not, constant_score and boosting.negative, for
// phrases, spans, term-level queries and everything not known.
func kindOf(name []byte) (kind, bool) {
	switch string(name) {
	case "match":
		return kind{read: (*clause).match}, true
	case "multi_match":
		return kind{read: (*clause).multiMatch}, true
	case "query_string":
		return kind{read: (*clause).queryString}, true
	case "bool":
		return kind{inside: insideBool}, true
	case "dis_max":
		return kind{inside: insideDisMax}, true
	case "function_score":
		return kind{inside: insideQuery}, true
	case "nested":
		return kind{inside: insideQuery, averages: true}, true
	}
	return kind{}, false
}

var (
	insideBool   = []string{"must", "should"}
	insideDisMax = []string{"queries"}
	insideQuery  = []string{"query"}
)
