package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"strings"
)

// A generatedSearch is one search on the generated documents.
type generatedSearch struct {
	number int
	// kind names what it is a case of.
	kind string
	// params is the query string, and body the body.
	params, body string
}

func (g generatedSearch) String() string {
	return fmt.Sprintf("search %d (%s) %s %s", g.number, g.kind, g.params, g.body)
}

// wide returns the search for the first 1,000 hits in place of a page.
func (g generatedSearch) wide() generatedSearch {
	var body section
	if json.Unmarshal([]byte(g.body), &body) == nil {
		body["from"], body["size"] = 0, 1000
		text, _ := json.Marshal(body) // it came from JSON
		g.body = string(text)
	}
	return g
}

// A queryMaker makes a query.
type queryMaker func(s speaker, e *engine) section

// fuzzyKind begins the names of the kinds of fuzzy searches. No other clause is next to
// them: where a term is in two clauses with nothing between them, Lucene makes one of
// both, with the statistics of one, and those of a fuzzy term are blended.
// Anything that akin puts between them undoes that.
//
// With the statistics of all shards a fuzzy word, which is the terms that it stands
// for in a shard, scores by what else the search looks for: a field has the statistics
// of the shards where a clause names a term in it, and a term those of the last clause
// that names it (server/src/main/java/org/opensearch/search/dfs/DfsPhase.java of
// OpenSearch, the same in Elasticsearch). fuzzyWord marks such a word in a query
// string, which may stand next to other clauses.
const (
	fuzzyKind = "fuzzy"
	fuzzyWord = "~1"
)

// generatedKinds are the kinds of queries that searches are generated for.
var generatedKinds = []struct {
	name string
	make queryMaker
}{
	{"match", matchAny},
	{"match minimum", matchMinimum},
	{fuzzyKind, matchFuzzy},
	{fuzzyKind + " fields", multiMatchFuzzy},
	{"match analyzer", matchAnalyzer},
	{"match nothing", matchNothing},
	{"multi_match best_fields", multiMatch("best_fields")},
	{"multi_match most_fields", multiMatch("most_fields")},
	{"multi_match cross_fields", multiMatch("cross_fields")},
	{"multi_match bool_prefix", multiMatch("bool_prefix")},
	{"multi_match phrase", multiMatch("phrase")},
	{"multi_match wildcards", multiMatchPatterns},
	{"combined_fields", combinedFields},
	{"match_bool_prefix", matchBoolPrefix},
	{"match_phrase", matchPhrase},
	{"query_string", queryString},
	{"query_string syntax", queryStringSyntax},
	{"simple_query_string", simpleQueryString},
	{"bool", boolQuery},
	{"bool nested deep", deepBool},
	{"dis_max", disMax},
	{"function_score", functionScore},
	{"boosting", boosting},
	{"script_score", scriptScore},
	{"nested", nested},
	{"has_child", hasChild},
	{"has_parent", hasParent},
	{"q", matchAny},
}

// generateSearch returns the search of the given number.
func generateSearch(number int, e *engine) generatedSearch {
	s := newSpeaker(1000 + uint64(number))
	kind := generatedKinds[number%len(generatedKinds)]
	g := generatedSearch{number: number, kind: kind.name}
	if kind.name == "q" {
		g.params = "?q=" + url.QueryEscape(s.words(1, 4)) + pick(s, "", "&df=body", "&df=title&default_operator=AND")
		return g
	}
	query := kind.make(s, e)
	if s.chance(4) && !strings.HasPrefix(kind.name, fuzzyKind) { // among others
		query = section{"bool": section{
			pick(s, "must", "should"): []section{query, clauseOrFilter(s, e)},
			"filter":                  section{"range": section{"n": section{"lt": 20 + s.IntN(80)}}},
		}}
	}
	body := section{"query": query, "_source": false}
	maps.Copy(body, envelope(s))
	text, err := json.Marshal(body)
	if err != nil {
		panic(err) // maps of strings and numbers
	}
	g.body = string(text)
	return g
}

// envelope returns the other members of a search's body: often none.
func envelope(s speaker) section {
	out := section{"size": pick(s, 10, 10, 10, 3, 25, 100)}
	if s.chance(6) {
		from := s.IntN(30)
		out["from"] = from
		// A rescore scores the first hundred hits; those behind keep only their order.
		out["size"] = min(out["size"].(int), 100-from)
	}
	if s.chance(8) {
		out["track_total_hits"] = pick[any](s, true, false, 1, 20)
	}
	switch s.IntN(9) {
	case 0:
		out["aggs"] = section{
			"tags": section{"terms": section{"field": "tag"}, "aggs": section{"price": section{"avg": section{"field": "price"}}}},
			"n":    section{"stats": section{"field": "n"}},
			"all":  section{"global": section{}, "aggs": section{"n": section{"sum": section{"field": "n"}}}},
		}
		if s.chance(4) {
			out["size"] = 0
		}
	case 1:
		out["aggs"] = section{"tags": section{
			"terms": section{"field": "tag", "size": 3},
			"aggs":  section{"best": section{"top_hits": section{"size": 2, "_source": false}}},
		}}
	case 2:
		out["sort"] = pick(s, []any{section{"n": "desc"}}, []any{"_score", section{"price": "asc"}}, []any{"tag", "_score"})
		out["track_scores"] = s.chance(2)
	case 3:
		out["collapse"] = section{"field": "tag"}
		if s.chance(2) {
			out["collapse"] = section{"field": "tag", "inner_hits": section{"name": "more", "size": 2, "_source": false, "sort": []any{section{"n": "asc"}}}}
		}
	case 4:
		out["highlight"] = section{"fields": section{"body": section{}, "title": section{"number_of_fragments": 0}}}
	case 5:
		out["rescore"] = section{"window_size": 20, "query": section{
			"rescore_query": section{"match": section{"title": s.words(1, 2)}}, "query_weight": 0.7, "rescore_query_weight": 1.5,
		}}
	case 6:
		out["post_filter"] = section{"range": section{"n": section{"gte": s.IntN(30)}}}
		out["docvalue_fields"] = []string{"n", "tag"}
	}
	return out
}

// textField returns a field to search in.
func textField(s speaker) string {
	return pick(s, "body", "body", "body", "title", "title", "body.stem", "note", "_absent")
}

// minimumForms are the forms of minimum_should_match.
var minimumForms = []any{1, 2, 3, -1, -2, "2", "75%", "50%", "-25%", "-60%", "2<75%", "1<-1 3<60%", "100%"}

// clauseOf returns {kind: {field: …}}, short where there is nothing but a text.
func clauseOf(s speaker, kind, field, text string, options section) section {
	if s.chance(5) {
		options["boost"] = pick(s, 0.5, 2, 3.25)
	}
	if s.chance(12) {
		options["_name"] = pick(s, "first", "second")
	}
	if len(options) == 0 && s.chance(2) {
		return section{kind: section{field: text}}
	}
	options["query"] = text
	return section{kind: section{field: options}}
}

func matchAny(s speaker, _ *engine) section {
	options := section{}
	if s.chance(3) {
		options["operator"] = pick(s, "and", "or", "AND")
	}
	text := s.words(1, 5)
	if s.chance(5) { // a word twice
		text += " " + strings.Fields(text)[0]
	}
	return clauseOf(s, "match", textField(s), text, options)
}

func matchMinimum(s speaker, _ *engine) section {
	options := section{"minimum_should_match": pick(s, minimumForms...)}
	return clauseOf(s, "match", pick(s, "body", "title", "body.stem"), s.words(1, 6), options)
}

func matchFuzzy(s speaker, _ *engine) section {
	options := section{"fuzziness": pick[any](s, "AUTO", 1, "0"), "prefix_length": s.IntN(3)}
	if s.chance(3) {
		options["operator"] = "and"
	}
	return clauseOf(s, "match", textField(s), s.words(1, 3), options)
}

func matchAnalyzer(s speaker, _ *engine) section {
	options := section{"analyzer": pick(s, "english", "standard", "whitespace", "simple", "keyword")}
	return clauseOf(s, "match", textField(s), s.words(1, 4)+pick(s, "", "-"+s.word(), " THE"), options)
}

// matchNothing looks for texts that leave no terms or are in no document.
func matchNothing(s speaker, _ *engine) section {
	options := section{"zero_terms_query": pick(s, "all", "none")}
	return clauseOf(s, "match", pick(s, "body", "body.stem", "title"), pick(s, "", "...", "the of and", "unheard of"), options)
}

// weighted returns a field, perhaps with a boost.
func weighted(s speaker, field string) string {
	return field + pick(s, "", "", "^2", "^0.3", "^3.5")
}

func multiMatch(kind string) queryMaker {
	return func(s speaker, _ *engine) section {
		fields := []string{weighted(s, "title"), weighted(s, "body")}
		if s.chance(3) {
			fields = append(fields, weighted(s, pick(s, "note", "body.stem", "answer")))
		}
		q := section{"query": s.words(1, 5), "fields": fields, "type": kind}
		if kind == "best_fields" && s.chance(2) {
			delete(q, "type")
		}
		if s.chance(2) && kind != "phrase" && kind != "bool_prefix" {
			q["tie_breaker"] = pick(s, 0.0, 0.3, 1.0)
		}
		if s.chance(4) && kind != "phrase" {
			q["operator"] = "and"
		}
		if s.chance(4) && kind != "phrase" {
			q["minimum_should_match"] = pick(s, minimumForms...)
		}
		if s.chance(6) {
			q["boost"] = 2
		}
		if s.chance(8) && kind != "cross_fields" {
			q["analyzer"] = "english"
		}
		return section{"multi_match": q}
	}
}

func multiMatchFuzzy(s speaker, e *engine) section {
	q := multiMatch(pick(s, "best_fields", "most_fields"))(s, e)
	options, _ := q["multi_match"].(section)
	// Few, for all of them count against the engine's limit of clauses, which
	// akin learns by a search that is refused.
	options["fuzziness"], options["max_expansions"] = "AUTO", 10
	return q
}

func multiMatchPatterns(s speaker, _ *engine) section {
	q := section{
		"query":  s.words(1, 4),
		"fields": pick(s, []string{"t*"}, []string{"bod*^2", "title"}, []string{"*"}, []string{"*.stem", "body"}, []string{"title", "t*^3"}),
		"type":   pick(s, "best_fields", "most_fields", "cross_fields"), "lenient": true,
	}
	return section{"multi_match": q}
}

func combinedFields(s speaker, _ *engine) section {
	q := section{"query": s.words(1, 5), "fields": []string{"title" + pick(s, "", "^2", "^3.5"), "body"}}
	if s.chance(3) {
		q["operator"] = "and"
	} else if s.chance(3) {
		q["minimum_should_match"] = pick(s, minimumForms...)
	}
	return section{"combined_fields": q}
}

func matchBoolPrefix(s speaker, _ *engine) section {
	options := section{}
	if s.chance(3) {
		options["operator"] = "and"
	} else if s.chance(3) {
		options["minimum_should_match"] = pick(s, minimumForms...)
	}
	text := s.words(1, 4)
	return clauseOf(s, "match_bool_prefix", pick(s, "body", "title"), text[:len(text)-s.IntN(3)], options)
}

func matchPhrase(s speaker, _ *engine) section {
	return clauseOf(s, pick(s, "match_phrase", "match_phrase_prefix"), pick(s, "body", "title"), s.words(1, 2), section{"slop": s.IntN(4)})
}

// stringOptions are those that both query strings take.
func stringOptions(s speaker, q section) section {
	if s.chance(3) {
		q["default_operator"] = pick(s, "and", "OR")
	}
	if s.chance(4) {
		q["minimum_should_match"] = pick(s, minimumForms...)
	}
	if s.chance(4) {
		q["boost"] = 1.5
	}
	return q
}

func queryString(s speaker, _ *engine) section {
	q := stringOptions(s, section{"query": s.words(1, 5)})
	switch s.IntN(4) {
	case 0:
		q["default_field"] = pick(s, "body", "title")
	case 1:
		q["fields"] = []string{weighted(s, "title"), weighted(s, "body")}
		q["tie_breaker"] = pick(s, 0.0, 0.4)
		q["type"] = pick(s, "best_fields", "most_fields", "cross_fields")
	case 2:
		q["fields"] = []string{"bod*", "title"}
	}
	return section{"query_string": q}
}

func queryStringSyntax(s speaker, _ *engine) section {
	text := pick(s, `body:%s %s`, `%s AND %s`, `"%s %s"~2`, `%s^2 +%s`, `-%s %s`, `%s`+fuzzyWord+` %s*`, `(%s OR %s) AND NOT title:x`)
	return section{pick(s, "query_string", "simple_query_string"): section{
		"query": fmt.Sprintf(text, s.word(), s.word()), "fields": []string{"body", "title^2"},
	}}
}

func simpleQueryString(s speaker, _ *engine) section {
	q := stringOptions(s, section{"query": s.words(1, 5)})
	if s.chance(2) {
		q["fields"] = pick(s, []string{"body"}, []string{weighted(s, "title"), weighted(s, "body")}, []string{"body", "body.stem"})
	}
	return section{"simple_query_string": q}
}

// anyClause returns a clause that looks for a text.
func anyClause(s speaker, e *engine) section {
	return pick[queryMaker](s, matchAny, matchAny, matchMinimum, multiMatch("best_fields"), multiMatch("most_fields"),
		multiMatch("cross_fields"), queryString, simpleQueryString, matchBoolPrefix, matchPhrase)(s, e)
}

// clauseOrFilter returns a clause, or a query of another kind.
func clauseOrFilter(s speaker, e *engine) section {
	switch s.IntN(6) {
	case 0:
		return section{"term": section{"tag": fmt.Sprintf("t%d", s.IntN(9))}}
	case 1:
		return section{"range": section{"n": section{"gte": s.IntN(90), "boost": 0.5}}}
	case 2:
		return section{"constant_score": section{"filter": anyClause(s, e), "boost": 1.2}}
	default:
		return anyClause(s, e)
	}
}

func boolQuery(s speaker, e *engine) section {
	q := section{}
	if s.chance(2) {
		q["must"] = []section{clauseOrFilter(s, e)}
	}
	if s.chance(2) || len(q) == 0 {
		q["should"] = []section{anyClause(s, e), clauseOrFilter(s, e), anyClause(s, e)}
		if s.chance(2) {
			q["minimum_should_match"] = pick[any](s, 1, 2, "60%", -1)
		}
	}
	if s.chance(3) {
		q["must_not"] = matchAny(s, e)
	}
	if s.chance(3) {
		q["filter"] = []section{matchAny(s, e)}
	}
	if s.chance(5) {
		q["boost"] = 2
	}
	return section{"bool": q}
}

func deepBool(s speaker, e *engine) section {
	q := boolQuery(s, e)
	for range 1 + s.IntN(8) {
		switch s.IntN(4) {
		case 0:
			q = section{"bool": section{"must": q}}
		case 1:
			q = section{"bool": section{"should": []section{q, anyClause(s, e)}, "minimum_should_match": 1}}
		case 2:
			q = section{"dis_max": section{"queries": []section{q}, "boost": 0.5}}
		default:
			q = section{"function_score": section{"query": q, "weight": 1.5}}
		}
	}
	return q
}

func disMax(s speaker, e *engine) section {
	return section{"dis_max": section{
		"queries": []section{anyClause(s, e), clauseOrFilter(s, e)}, "tie_breaker": pick(s, 0.0, 0.5, 1.0), "boost": pick(s, 1.0, 1.5),
	}}
}

func functionScore(s speaker, e *engine) section {
	q := section{
		"query": anyClause(s, e),
		"functions": []section{
			{"filter": section{"match": section{"title": s.word()}}, "weight": 2},
			{"field_value_factor": section{"field": "price", "modifier": "log1p", "missing": 1}},
		},
		"score_mode": pick(s, "sum", "multiply", "max", "avg"), "boost_mode": pick(s, "multiply", "sum", "replace"),
	}
	if s.chance(4) {
		q["min_score"] = 1
	}
	return section{"function_score": q}
}

func boosting(s speaker, e *engine) section {
	return section{"boosting": section{"positive": anyClause(s, e), "negative": matchAny(s, e), "negative_boost": 0.4}}
}

func scriptScore(s speaker, e *engine) section {
	return section{"script_score": section{"query": anyClause(s, e), "script": section{"source": "_score * 2 + doc['n'].value / 100.0"}}}
}

// openOnly adds a filter that excludes the hidden parts and replies of documents.
func openOnly(query section, field string) section {
	return section{"bool": section{"must": query, "filter": section{"term": section{field: true}}}}
}

func nested(s speaker, _ *engine) section {
	q := section{
		"path":       "parts",
		"score_mode": pick(s, "avg", "max", "sum", "min", "none"),
		"query":      openOnly(clauseOf(s, "match", "parts.text", s.words(1, 4), section{"operator": pick(s, "or", "and")}), "parts.open"),
	}
	if s.chance(2) {
		q["inner_hits"] = section{"size": 2, "_source": false}
	}
	return section{"nested": q}
}

func hasChild(s speaker, _ *engine) section {
	q := section{
		"type":       "reply",
		"score_mode": pick(s, "avg", "max", "sum", "min", "none"),
		"query":      openOnly(clauseOf(s, "match", "answer", s.words(1, 4), section{}), "open"),
	}
	if s.chance(2) {
		q["inner_hits"] = section{"size": 2, "_source": false}
	}
	return section{"has_child": q}
}

func hasParent(s speaker, e *engine) section {
	return section{"has_parent": section{"parent_type": "question", "query": openOnly(matchAny(s, e), "open"), "score": s.chance(2)}}
}
