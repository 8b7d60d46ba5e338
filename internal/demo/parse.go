package demo

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

type parser struct {
	ix    *index
	words bool // explanations of terms need words, not only values
	named map[string]query
}

// parseQuery parses a query in the engines' query language; nil is match_all.
// It also returns the named queries inside it.
func parseQuery(ix *index, v any, words bool) (query, map[string]query) {
	if v == nil {
		return matchAll(), nil
	}
	p := parser{ix, words, map[string]query{}}
	return p.query(v), p.named
}

func (p parser) query(v any) query {
	object, ok := v.(map[string]any)
	if !ok || len(object) != 1 {
		panic(parsingError("[query] malformed, expected an object with one query clause"))
	}
	name, body := newArgs("query", object).sole()
	a, field := newArgs(name, body), ""
	called := a.str("_name", "")
	// short is the member that the body of a query keyed by a field can consist
	// of.
	if short := map[string]string{"match": "query", "term": "value"}[name]; short != "" {
		field, body = a.sole()
		if _, ok := body.(map[string]any); !ok {
			body = map[string]any{short: body}
		}
		a = newArgs(name, body)
		called = cmp.Or(a.str("_name", ""), called)
	}
	q := p.kind(name, field, a)
	boost := a.boost("boost")
	a.done()
	q = boosted(q, boost)
	if called != "" {
		p.named[called] = q
	}
	return q
}

func (p parser) kind(name, field string, a *args) query {
	switch name {
	case "match_all":
		return matchAll()
	case "match":
		return p.fullText(field, readTextOptions(a, "operator"))
	case "multi_match":
		return p.overFields(a, a.strings("fields"), readTextOptions(a, "operator"))
	case "query_string":
		return p.queryString(a)
	case "term":
		return p.exact(field, a.str("value", ""))
	case "terms":
		boost := a.boost("boost")
		field, values := a.sole()
		anyOf := boolQuery{minShould: 1}
		if field == "_seq_no" {
			numbers, _ := values.([]any)
			docs := make(map[int]bool, len(numbers))
			for _, n := range numbers {
				if doc, err := strconv.Atoi(fmt.Sprint(n)); err == nil {
					docs[doc] = true
				}
			}
			return constant("PointInSetQuery", func(doc int) bool { return docs[doc] })
		}
		for _, text := range newArgs("terms", map[string]any{field: values}).strings(field) {
			anyOf.should = append(anyOf.should, p.exact(field, text))
		}
		return boosted(constant("TermInSetQuery", anyOf.query().matches), boost)
	case "ids":
		ids := make(map[string]bool)
		for _, id := range a.strings("values") {
			ids[id] = true
		}
		return constant("TermInSetQuery", func(doc int) bool { return ids[p.ix.docs[doc].id] })
	case "bool":
		return p.boolean(a)
	case "dis_max":
		clauses := p.queries(a, "queries")
		if len(clauses) == 0 {
			panic(parsingError("[dis_max] requires 'queries' field with at least one clause"))
		}
		return disMax(float32(a.number("tie_breaker", 0)), clauses)
	case "constant_score":
		return constant("ConstantScore", p.required(a, "filter").matches)
	case "function_score":
		return p.functionScore(a)
	case "script_score":
		inner := p.required(a, "query")
		v, _ := a.take("script")
		return scriptScore(inner, v)
	default:
		panic(parsingError("unknown query [%s]: the embedded engine does not run it", name))
	}
}

func (p parser) queries(a *args, key string) (out []query) {
	for _, v := range a.list(key) {
		out = append(out, p.query(v))
	}
	return out
}

func (p parser) required(a *args, key string) query {
	v, ok := a.take(key)
	if !ok {
		panic(parsingError("[%s] requires a '%s' element", a.name, key))
	}
	return p.query(v)
}

// exact returns the query for a value as it is in the index, not analyzed.
func (p parser) exact(field, value string) query {
	switch {
	case field == "_index":
		return constant("_index", func(int) bool { return p.ix.name == value })
	case field == "_seq_no":
		number, err := strconv.Atoi(value)
		return constant("PointInSetQuery", func(doc int) bool { return err == nil && doc == number })
	case p.ix.mapping.fields[field] != nil:
		return term(p.ix, field, value, p.words)
	case p.ix.mapping.loaded:
		panic(illegal("the terms of field [%s] are not there", field))
	default:
		return matchNone()
	}
}

func (p parser) boolean(a *args) query {
	q := boolQuery{
		must: p.queries(a, "must"), should: p.queries(a, "should"), filter: p.queries(a, "filter"), mustNot: p.queries(a, "must_not"),
	}
	a.boolean("adjust_pure_negative", true)
	q.minShould = minimumShouldMatch(a.str("minimum_should_match", "0"), len(q.should))
	if q.minShould == 0 && len(q.should) > 0 && len(q.must)+len(q.filter) == 0 {
		q.minShould = 1
	}
	if len(q.must)+len(q.should)+len(q.filter)+len(q.mustNot) == 0 {
		return matchAll()
	}
	return q.query()
}

// functionScore parses a function_score query: a random share of the documents,
// or constant weights that multiply the score.
func (p parser) functionScore(a *args) query {
	inner := p.required(a, "query")
	if v, ok := a.take("random_score"); ok {
		random := newArgs("random_score", v)
		if boostMode, field := a.str("boost_mode", ""), random.str("field", ""); boostMode != "replace" || field != "_seq_no" {
			panic(unsupported("random_score but by the field [_seq_no] with the boost_mode [replace]"))
		}
		seed := random.integer("seed", 0)
		random.done()
		return randomScore(inner, uint64(seed), float32(a.number("min_score", 0))) //nolint:gosec // it is not negative
	}
	functions := a.list("functions")
	if weight, ok := a.take("weight"); ok {
		functions = append(functions, map[string]any{"weight": weight})
	}
	for _, v := range functions {
		function := newArgs("function_score", v)
		factor, filter := function.boost("weight"), matchAll()
		if v, ok := function.take("filter"); ok {
			filter = p.query(v)
		}
		function.done()
		inner = weighted(inner, filter, factor)
	}
	return inner
}

type textOptions struct {
	text      string
	and       bool
	minShould string
	all       bool // a text without terms matches everything
}

func readTextOptions(a *args, operatorKey string) textOptions {
	either := func(key, absent, other string) bool {
		value := strings.ToLower(a.str(key, absent))
		if value != absent && value != other {
			panic(a.malformed(key, absent+" or "+other))
		}
		return value == other
	}
	a.boolean("auto_generate_synonyms_phrase_query", true) // this engine has no synonyms
	return textOptions{
		text: a.str("query", ""), and: either(operatorKey, "or", "and"), minShould: a.str("minimum_should_match", "1"),
		all: a.name != "query_string" && either("zero_terms_query", "none", "all"),
	}
}

func (p parser) fullText(field string, o textOptions) query {
	t := p.ix.mapping.fields[field]
	if t == nil {
		return p.exact(field, o.text)
	}
	var terms []query
	tokens, _ := p.ix.mapping.analyzers[t.analyzer](o.text)
	for _, token := range tokens {
		terms = append(terms, term(p.ix, field, token.Term, p.words))
	}
	switch {
	case len(terms) == 0 && o.all:
		return matchAll()
	case len(terms) == 0:
		return matchNone()
	case len(terms) == 1:
		return terms[0] // minimum_should_match does not apply to a single term, as in the engines
	case o.and:
		return boolQuery{must: terms}.query()
	default:
		return boolQuery{should: terms, minShould: max(1, minimumShouldMatch(o.minShould, len(terms)))}.query()
	}
}

// overFields searches several fields for one text, combined as the type says.
// No fields means every field.
func (p parser) overFields(a *args, fields []string, o textOptions) query {
	kind := a.str("type", "best_fields")
	tie, ok := map[string]float64{"best_fields": 0, "most_fields": 1}[kind]
	if !ok {
		panic(unsupported("[%s] of type [%s]", a.name, kind))
	}
	tie = a.number("tie_breaker", tie)
	if len(fields) == 0 {
		fields = []string{"*"}
	}
	var clauses []query
	for _, field := range fields {
		pattern, boost := splitBoost(field)
		for _, name := range p.ix.mapping.matching(pattern) {
			clauses = append(clauses, boosted(p.fullText(name, o), boost))
		}
	}
	if len(clauses) == 0 {
		return matchNone()
	}
	return disMax(float32(tie), clauses)
}

func (p parser) queryString(a *args) query {
	o := readTextOptions(a, "default_operator")
	if operators(o.text) {
		panic(unsupported("operators in a query string, found in [%s]", o.text))
	}
	fields := a.strings("fields")
	if field := a.str("default_field", ""); field != "" {
		fields = append(fields, field)
	}
	switch strings.TrimSpace(o.text) {
	case "":
		return matchNone()
	case "*":
		return matchAll()
	default:
		return p.overFields(a, fields, o)
	}
}

// operators reports whether Lucene's query syntax reads text as more than
// words. A single star, all documents, is allowed.
func operators(text string) bool {
	found, err := regexp.MatchString(`[:"*?~^()[\]{}\\/]|&&|\|\||(^|\s)[-+!<>=]|(^|\s)(AND|OR|NOT)(\s|$)`, text)
	return strings.TrimSpace(text) != "*" && (found || err != nil)
}

func splitBoost(field string) (string, float32) {
	name, text, ok := strings.Cut(field, "^")
	if !ok {
		return name, 1
	}
	return name, newArgs(name, map[string]any{"boost": text}).boost("boost")
}

// minimumShouldMatch returns how many of n optional clauses spec asks for: "3",
// "-1" (all but one), "75%", "-25%", or "2<75% 9<-3" (up to 2 all, up to 9
// three quarters, above that all but three). Shares are rounded down. The
// result can exceed n; then nothing matches.
func minimumShouldMatch(spec string, n int) int {
	malformed := illegal("minimum_should_match [%s] is malformed", spec)
	chosen := spec
	if strings.Contains(spec, "<") {
		chosen = "100%"
		for part := range strings.FieldsSeq(spec) {
			above, rest, ok := strings.Cut(part, "<")
			limit, err := strconv.Atoi(above)
			if !ok || err != nil {
				panic(malformed)
			}
			if n <= limit {
				break
			}
			chosen = rest
		}
	}
	number, percent := strings.CutSuffix(strings.TrimSpace(chosen), "%")
	value, err := strconv.Atoi(number)
	if err != nil || value > math.MaxInt16 || value < math.MinInt16 {
		panic(malformed)
	}
	butFor := value < 0
	if percent {
		value = n * value / 100 // truncates toward zero, so -25% of 3 is none
	}
	if butFor {
		value += n
	}
	return max(value, 0)
}
