package demo

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// Limits of one query, those of the real engines.
const (
	maxQueryDepth  = 30
	maxClauseCount = 1024
)

// A parser turns the JSON of a query into a query over one index. After a
// mistake it returns queries that match nothing.
type parser struct {
	mistake
	ix             *index
	depth, clauses int
}

// parseQuery parses a query in the engines' query language; nil is match_all.
func parseQuery(ix *index, v any) (query, error) {
	if v == nil {
		return matchAll(), nil
	}
	p := &parser{ix: ix}
	q := p.query(v)
	return q, p.err
}

// refuse records a mistake.
func (p *parser) refuse(err error) query {
	p.fail(err)
	return matchNone()
}

func (p *parser) query(v any) query {
	object, ok := v.(map[string]any)
	if !ok || len(object) != 1 {
		return p.refuse(parsingError("[query] malformed, expected an object with one query clause"))
	}
	p.depth++
	defer func() { p.depth-- }()
	if p.depth > maxQueryDepth {
		return p.refuse(badRequest("illegal_argument_exception", "the query is nested deeper than [%d]", maxQueryDepth))
	}
	for name, body := range object {
		a := p.members(name, body)
		a.str("_name", "")
		if p.err == nil {
			return p.named(name, a)
		}
	}
	return matchNone()
}

// named parses the body of one query. It lists all queries of the engine.
func (p *parser) named(name string, a *args) query {
	switch name {
	case "match_all":
		return p.finish(a, matchAll())
	case "match_none":
		return p.finish(a, matchNone())
	case "match":
		return p.match(a)
	case "multi_match":
		return p.multiMatch(a)
	case "query_string":
		return p.queryString(a)
	case "term":
		return p.term(a)
	case "terms":
		return p.termSet(a)
	case "range":
		return p.numberRange(a)
	case "exists":
		return p.finish(a, existsQuery(a.str("field", "")))
	case "ids":
		return p.finish(a, idsQuery(a.strings("values")))
	case "bool":
		return p.boolean(a)
	case "dis_max":
		return p.disMax(a)
	case "constant_score":
		return p.finish(a, constantScore(p.sub(a, "filter")))
	case "function_score":
		return p.functionScore(a)
	case "script_score":
		q := scriptQuery{inner: p.sub(a, "query")}
		v, _ := a.take("script")
		q.script = p.script(v)
		return p.finish(a, q)
	default:
		return p.refuse(parsingError("unknown query [%s]: the embedded engine does not run it", name))
	}
}

// finish reads the boost and returns q with it.
func (p *parser) finish(a *args, q query) query {
	boost := a.boost("boost")
	_ = a.done() // it stays with the parser
	if p.clauses++; p.clauses > maxClauseCount {
		return p.refuse(badRequest("too_many_clauses", "maxClauseCount is set to %d", maxClauseCount))
	}
	return boosted(q, boost)
}

// fieldOf reads the sole member of a clause keyed by a field. Its value is an
// object, or in the short form the value of the member short.
func fieldOf(a *args, short string) (string, *args) {
	name, v := a.sole()
	if _, ok := v.(map[string]any); !ok {
		v = map[string]any{short: v}
	}
	inner := a.members(a.name, v)
	inner.str("_name", "")
	return name, inner
}

func (p *parser) term(a *args) query {
	field, inner := fieldOf(a, "value")
	value, ok := inner.take("value")
	if !ok {
		return p.refuse(badRequest("illegal_argument_exception", "value cannot be null"))
	}
	return p.finish(inner, p.exact(field, value))
}

// exact returns the query for a value as it stands in the index, unanalyzed.
func (p *parser) exact(field string, value any) query {
	t := p.ix.mapping.fields[field]
	text, ok := textOf(value)
	switch {
	case field == "_id":
		return idsQuery([]string{text})
	case !ok:
		return p.refuse(parsingError("[term] query does not support an array or object for [%s]", field))
	case t == nil:
		return matchNone()
	case t.kind != numberField:
		return termQuery{field, text}
	}
	n, ok := numberOf(value)
	if !ok {
		return p.refuse(badRequest("query_shard_exception", "failed to create query: For input string: %q", text))
	}
	return numberQuery(field, n, n)
}

func (p *parser) termSet(a *args) query {
	boost := a.boost("boost")
	field, v := a.sole()
	values, ok := v.([]any)
	if !ok {
		return p.refuse(parsingError("[terms] query requires an array of values for [%s]", field))
	}
	either := boolQuery{minShould: 1}
	for _, value := range values {
		either.should = append(either.should, p.exact(field, value))
	}
	return boosted(p.finish(a, constantScore(either)), boost)
}

func (p *parser) numberRange(a *args) query {
	field, inner := fieldOf(a, "gte")
	if t := p.ix.mapping.fields[field]; t != nil && t.kind != numberField {
		return p.refuse(unsupported("[range] on field [%s] of type [%s]", field, t.name))
	}
	low := max(inner.number("gte", -math.MaxFloat64), math.Nextafter(inner.number("gt", -math.MaxFloat64), math.Inf(1)))
	high := min(inner.number("lte", math.MaxFloat64), math.Nextafter(inner.number("lt", math.MaxFloat64), math.Inf(-1)))
	return p.finish(inner, numberQuery(field, low, high))
}

// queries parses the clauses of a list; a single object is a list of one.
func (p *parser) queries(list []any) []query {
	out := make([]query, 0, len(list))
	for _, v := range list {
		out = append(out, p.query(v))
	}
	return out
}

func (p *parser) boolean(a *args) query {
	q := boolQuery{
		must: p.queries(a.list("must")), should: p.queries(a.list("should")),
		filter: p.queries(a.list("filter")), mustNot: p.queries(a.list("must_not")),
	}
	a.boolean("adjust_pure_negative", true)
	if spec := a.str("minimum_should_match", ""); spec != "" {
		q.minShould = p.minimum(spec, len(q.should))
	}
	if q.minShould == 0 && len(q.should) > 0 && len(q.must)+len(q.filter) == 0 {
		q.minShould = 1
	}
	return p.finish(a, q.simplified())
}

// minimum is minimumShouldMatch.
func (p *parser) minimum(spec string, n int) int {
	n, err := minimumShouldMatch(spec, n)
	if err != nil {
		p.fail(err)
	}
	return n
}

func (p *parser) disMax(a *args) query {
	q := disMaxQuery{tie: float32(a.number("tie_breaker", 0)), clauses: p.queries(a.list("queries"))}
	if len(q.clauses) == 0 {
		return p.refuse(parsingError("[dis_max] requires 'queries' field with at least one clause"))
	}
	return p.finish(a, q)
}

// sub parses a member that is a query.
func (p *parser) sub(a *args, key string) query {
	v, ok := a.take(key)
	if !ok {
		return p.refuse(parsingError("[%s] requires a '%s' element", a.name, key))
	}
	return p.query(v)
}

func (p *parser) functionScore(a *args) query {
	q := functionQuery{inner: matchAll(), scoreMode: a.str("score_mode", "multiply"), boostMode: a.str("boost_mode", "multiply")}
	modes := []string{"multiply", "sum", "avg", "max", "min"}
	if !slices.Contains(append(modes, "first"), q.scoreMode) ||
		!slices.Contains(append(modes, "replace"), q.boostMode) {
		return p.refuse(parsingError("[function_score] illegal score_mode [%s] or boost_mode [%s]", q.scoreMode, q.boostMode))
	}
	if v, ok := a.take("query"); ok {
		q.inner = p.query(v)
	}
	if v, ok := a.take("random_score"); ok {
		return p.randomScore(a, v, q)
	}
	functions := a.list("functions")
	if weight, ok := a.take("weight"); ok {
		functions = append(functions, map[string]any{"weight": weight})
	}
	for _, v := range functions {
		member := p.members("function_score", v)
		f := weightFunction{weight: member.boost("weight")}
		if v, ok := member.take("filter"); ok {
			f.filter = p.query(v)
		}
		_ = member.done() // it stays with the parser
		q.functions = append(q.functions, f)
	}
	return p.finish(a, q)
}

// randomScore reads a function_score query with random_score, which may stand
// for the score of its query and do nothing else.
func (p *parser) randomScore(a *args, random any, q functionQuery) query {
	if q.boostMode != "replace" {
		return p.refuse(unsupported("random_score without the boost_mode [replace]"))
	}
	inner := p.members("random_score", random)
	seed := uint64(inner.integer("seed", 0)) //nolint:gosec // it is not negative
	if field := inner.str("field", "_seq_no"); field != "_seq_no" {
		return p.refuse(unsupported("random_score by the field [%s]", field))
	}
	_ = inner.done() // it stays with the parser
	return p.finish(a, randomQuery{q.inner, seed, float32(a.number("min_score", 0))})
}

// splitBoost splits "title^2" into the field and its boost.
func (p *parser) splitBoost(field string) (string, float32) {
	name, text, ok := strings.Cut(field, "^")
	if !ok {
		return name, 1
	}
	boost, err := strconv.ParseFloat(text, 32)
	if err != nil || !(boost >= 0) || math.IsInf(boost, 0) {
		p.fail(badRequest("illegal_argument_exception", "the boost of field [%s] is not a positive number", field))
	}
	return name, float32(boost)
}

// minimumShouldMatch returns how many of n optional clauses the specification
// asks for: "3", "-1" (all but one), "75%", "-25%", or "2<75% 9<-3" (up to 2
// all, up to 9 three quarters, above all but three). Shares are rounded down.
// The result can exceed n; then nothing matches.
func minimumShouldMatch(spec string, n int) (int, error) {
	spec = strings.TrimSpace(spec)
	if !strings.Contains(spec, "<") {
		return simpleMinimum(spec, n)
	}
	result := n
	for part := range strings.FieldsSeq(spec) {
		above, rest, ok := strings.Cut(part, "<")
		limit, err := strconv.Atoi(above)
		if !ok || err != nil {
			return 0, badRequest("illegal_argument_exception", "minimum_should_match [%s] is malformed", spec)
		}
		if n <= limit {
			return result, nil
		}
		if result, err = simpleMinimum(rest, n); err != nil {
			return 0, err
		}
	}
	return result, nil
}

func simpleMinimum(spec string, n int) (int, error) {
	number, percent := strings.CutSuffix(spec, "%")
	value, err := strconv.Atoi(number)
	if err != nil || value > math.MaxInt16 || value < math.MinInt16 {
		return 0, badRequest("illegal_argument_exception", "minimum_should_match [%s] is malformed", spec)
	}
	butFor := value < 0
	if percent {
		value = n * value / 100 // truncates toward zero, so that -25% of 3 is none
	}
	if butFor {
		value += n
	}
	return max(value, 0), nil
}
