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

// A parser turns the JSON of a query into a query over one index.
type parser struct {
	ix             *index
	depth, clauses int
}

// parseQuery parses a query in the engines' query language; nil is match_all.
func parseQuery(ix *index, v any) (query, error) {
	if v == nil {
		return matchAll(), nil
	}
	return (&parser{ix: ix}).query(v)
}

func (p *parser) query(v any) (query, error) {
	object, ok := v.(map[string]any)
	if !ok || len(object) != 1 {
		return nil, parsingError("[query] malformed, expected an object with one query clause")
	}
	if p.depth++; p.depth > maxQueryDepth {
		return nil, badRequest("illegal_argument_exception", "the query is nested deeper than [%d]", maxQueryDepth)
	}
	defer func() { p.depth-- }()
	for name, body := range object {
		a, err := newArgs(name, body)
		if err != nil {
			return nil, err
		}
		a.str("_name", "")
		return p.named(name, a)
	}
	return nil, nil //nolint:nilnil // the object has one member
}

// named parses the body of one query. This is the place that lists what the
// engine runs.
func (p *parser) named(name string, a *args) (query, error) {
	switch name {
	case "match_all":
		return p.finish(a, matchAll(), nil)
	case "match_none":
		return p.finish(a, matchNone(), nil)
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
		return p.finish(a, existsQuery(a.str("field", "")), nil)
	case "ids":
		return p.finish(a, idsQuery(a.strings("values")), nil)
	case "bool":
		return p.boolean(a)
	case "dis_max":
		return p.disMax(a)
	case "constant_score":
		return p.constantScore(a)
	case "function_score":
		return p.functionScore(a)
	case "script_score":
		return p.scriptScore(a)
	default:
		return nil, parsingError("unknown query [%s]: the embedded engine does not run it", name)
	}
}

// finish reads the boost and returns q with it, unless something was wrong.
func (p *parser) finish(a *args, q query, err error) (query, error) {
	boost := a.boost("boost")
	if err != nil {
		return nil, err
	}
	if err := a.done(); err != nil {
		return nil, err
	}
	if p.clauses++; p.clauses > maxClauseCount {
		return nil, badRequest("too_many_clauses", "maxClauseCount is set to %d", maxClauseCount)
	}
	return boosted(q, boost), nil
}

// fieldOf reads the sole member of a clause keyed by a field. Its value is an
// object, or in the short form the value of the member short.
func fieldOf(a *args, short string) (string, *args, error) {
	name, v := a.sole()
	if a.err != nil {
		return "", nil, a.err
	}
	if _, ok := v.(map[string]any); !ok {
		v = map[string]any{short: v}
	}
	inner, err := newArgs(a.name, v)
	if err == nil {
		inner.str("_name", "")
	}
	return name, inner, err
}

func (p *parser) term(a *args) (query, error) {
	field, inner, err := fieldOf(a, "value")
	if err != nil {
		return nil, err
	}
	value, ok := inner.take("value")
	if !ok {
		return nil, badRequest("illegal_argument_exception", "value cannot be null")
	}
	q, err := p.exact(field, value)
	return p.finish(inner, q, err)
}

// exact returns the query for a value as it stands in the index, unanalyzed.
func (p *parser) exact(field string, value any) (query, error) {
	if field == "_id" {
		id, _ := textOf(value)
		return idsQuery([]string{id}), nil
	}
	t := p.ix.mapping.fields[field]
	text, ok := textOf(value)
	if !ok {
		return nil, parsingError("[term] query does not support an array or object for [%s]", field)
	}
	if t == nil {
		return matchNone(), nil
	}
	if t.kind == numberField {
		n, ok := numberOf(value)
		if !ok {
			return nil, badRequest("query_shard_exception", "failed to create query: For input string: %q", text)
		}
		return numberQuery(field, n, n), nil
	}
	return termQuery{field, text}, nil
}

func (p *parser) termSet(a *args) (query, error) {
	boost := a.boost("boost")
	field, v := a.sole()
	values, ok := v.([]any)
	if !ok && a.err == nil {
		return nil, parsingError("[terms] query requires an array of values for [%s]", field)
	}
	var either boolQuery
	for _, value := range values {
		q, err := p.exact(field, value)
		if err != nil {
			return nil, err
		}
		either.should = append(either.should, q)
	}
	either.minShould = 1
	q, err := p.finish(a, constantScore(either), nil)
	if err != nil {
		return nil, err
	}
	return boosted(q, boost), nil
}

func (p *parser) numberRange(a *args) (query, error) {
	field, inner, err := fieldOf(a, "gte")
	if err != nil {
		return nil, err
	}
	if t := p.ix.mapping.fields[field]; t != nil && t.kind != numberField {
		return nil, unsupported("[range] on field [%s] of type [%s]", field, t.name)
	}
	low := max(inner.number("gte", -math.MaxFloat64), next(inner.number("gt", -math.MaxFloat64), true))
	high := min(inner.number("lte", math.MaxFloat64), next(inner.number("lt", math.MaxFloat64), false))
	return p.finish(inner, numberQuery(field, low, high), nil)
}

// queries parses the clauses of a list; a single object is a list of one.
func (p *parser) queries(list []any) ([]query, error) {
	out := make([]query, 0, len(list))
	for _, v := range list {
		q, err := p.query(v)
		if err != nil {
			return nil, err
		}
		out = append(out, q)
	}
	return out, nil
}

func (p *parser) boolean(a *args) (query, error) {
	var q boolQuery
	for _, clause := range []struct {
		name string
		into *[]query
	}{{"must", &q.must}, {"should", &q.should}, {"filter", &q.filter}, {"must_not", &q.mustNot}} {
		queries, err := p.queries(a.list(clause.name))
		if err != nil {
			return nil, err
		}
		*clause.into = queries
	}
	a.boolean("adjust_pure_negative", true)
	if spec := a.str("minimum_should_match", ""); spec != "" {
		n, err := minimumShouldMatch(spec, len(q.should))
		if err != nil {
			return nil, err
		}
		q.minShould = n
	}
	if q.minShould == 0 && len(q.should) > 0 && len(q.must)+len(q.filter) == 0 {
		q.minShould = 1
	}
	return p.finish(a, q.simplified(), nil)
}

func (p *parser) disMax(a *args) (query, error) {
	tie := float32(a.number("tie_breaker", 0))
	queries, err := p.queries(a.list("queries"))
	if err == nil && len(queries) == 0 {
		err = parsingError("[dis_max] requires 'queries' field with at least one clause")
	}
	return p.finish(a, disMaxQuery{queries, tie}, err)
}

// sub parses a member that is a query.
func (p *parser) sub(a *args, key string) (query, error) {
	v, ok := a.take(key)
	if !ok {
		return nil, parsingError("[%s] requires a '%s' element", a.name, key)
	}
	return p.query(v)
}

func (p *parser) constantScore(a *args) (query, error) {
	q, err := p.sub(a, "filter")
	if err != nil {
		return nil, err
	}
	return p.finish(a, constantScore(q), nil)
}

func (p *parser) scriptScore(a *args) (query, error) {
	q, err := p.sub(a, "query")
	if err != nil {
		return nil, err
	}
	v, _ := a.take("script")
	s, err := parseScript(v)
	return p.finish(a, scriptQuery{q, s}, err)
}

func (p *parser) functionScore(a *args) (query, error) {
	q := functionQuery{inner: matchAll(), scoreMode: a.str("score_mode", "multiply"), boostMode: a.str("boost_mode", "multiply")}
	modes := []string{"multiply", "sum", "avg", "max", "min"}
	if !slices.Contains(append(modes, "first"), q.scoreMode) ||
		!slices.Contains(append(modes, "replace"), q.boostMode) {
		return nil, parsingError("[function_score] illegal score_mode [%s] or boost_mode [%s]", q.scoreMode, q.boostMode)
	}
	if v, ok := a.take("query"); ok {
		inner, err := p.query(v)
		if err != nil {
			return nil, err
		}
		q.inner = inner
	}
	if v, ok := a.take("random_score"); ok {
		return p.randomScore(a, v, q)
	}
	functions := a.list("functions")
	if weight, ok := a.take("weight"); ok {
		functions = append(functions, map[string]any{"weight": weight})
	}
	for _, v := range functions {
		f, err := p.weightFunction(v)
		if err != nil {
			return nil, err
		}
		q.functions = append(q.functions, f)
	}
	return p.finish(a, q, nil)
}

func (p *parser) weightFunction(v any) (weightFunction, error) {
	a, err := newArgs("function_score", v)
	if err != nil {
		return weightFunction{}, err
	}
	f := weightFunction{weight: a.boost("weight")}
	if v, ok := a.take("filter"); ok {
		if f.filter, err = p.query(v); err != nil {
			return f, err
		}
	}
	return f, a.done()
}

// splitBoost splits "title^2" into the field and its boost.
func splitBoost(field string) (string, float32, error) {
	name, text, ok := strings.Cut(field, "^")
	if !ok {
		return name, 1, nil
	}
	boost, err := strconv.ParseFloat(text, 32)
	if err != nil || !(boost >= 0) || math.IsInf(boost, 0) {
		return "", 0, badRequest("illegal_argument_exception", "the boost of field [%s] is not a positive number", field)
	}
	return name, float32(boost), nil
}

// randomScore reads a function_score query with random_score, which may stand
// for the score of its query and do nothing else.
func (p *parser) randomScore(a *args, random any, q functionQuery) (query, error) {
	r := randomQuery{inner: q.inner, least: float32(a.number("min_score", 0))}
	if q.boostMode != "replace" {
		return nil, unsupported("random_score without the boost_mode [replace]")
	}
	inner, err := newArgs("random_score", random)
	if err != nil {
		return nil, err
	}
	r.seed = uint64(inner.integer("seed", 0)) //nolint:gosec // it is not negative
	if field := inner.str("field", "_seq_no"); field != "_seq_no" {
		return nil, unsupported("random_score by the field [%s]", field)
	}
	if err := inner.done(); err != nil {
		return nil, err
	}
	return p.finish(a, r, nil)
}

// next returns the nearest float64 above (up) or below v, for the open ends of
// ranges.
func next(v float64, up bool) float64 {
	if up {
		return math.Nextafter(v, math.Inf(1))
	}
	return math.Nextafter(v, math.Inf(-1))
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
