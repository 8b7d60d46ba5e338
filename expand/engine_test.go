package expand

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/simmatrix"
)

// What the engine below knows of the queries that are written, and of their
// bounds, as package form has it.
const (
	scriptInvert   = "double r = Math.min(_score / params.m, params.c); return params.b * r / (1 - r)"
	scriptSaturate = "return params.m * _score / (1 + _score)"
	maxLevels      = 20
)

// best is what a dis_max makes of scores.
type best struct{ most, sum float64 }

func (b *best) take(score float64) {
	b.most = max(b.most, score)
	b.sum += score
}

func (b *best) score(tie float64) float64 { return b.most + tie*(b.sum-b.most) }

// An engine matches and scores one document as Elasticsearch and OpenSearch do,
// for the queries that the tests use. Its statistics are those of the cluster,
// in all fields.
type engine struct {
	tb      testing.TB
	cluster *fakeCluster
	// doc holds tf/(tf+K) of each term in each field.
	doc map[string]map[string]float64
	// linear are the fields, by name, that hold for each term its tf, and norms
	// the doc values of the document.
	linear map[string]esclient.Linear
	norms  map[string]float64
	// depth and clauseCount are the deepest nesting and the number of queries without
	// queries in them, of all queries looked at.
	depth, clauseCount int
}

// hit is what becomes of a document: found or not, and its score.
type hit struct {
	found bool
	score float64
}

func (e *engine) search(body []byte, member string) hit {
	e.tb.Helper()
	var parsed map[string]any
	if err := json.Unmarshal(body, &parsed); err != nil {
		e.tb.Fatalf("%s: %v", body, err)
	}
	if member == "rescore" {
		rescore := parsed["rescore"].(map[string]any)["query"].(map[string]any)
		return e.query(rescore["rescore_query"], 1)
	}
	return e.query(parsed["query"], 1)
}

func (e *engine) query(q any, depth int) hit {
	e.depth = max(e.depth, depth)
	for kind, v := range q.(map[string]any) {
		o := v.(map[string]any)
		switch kind {
		case "bool":
			return e.bool(o, depth)
		case "dis_max":
			return e.disMax(asList(o["queries"]), number64(o["tie_breaker"], 0), depth)
		case "script_score":
			return e.scriptScore(o, depth)
		case "function_score":
			return e.functionScore(o, depth)
		case "constant_score":
			if !e.query(o["filter"], depth+1).found {
				return hit{}
			}
			return hit{true, number64(o["boost"], 1)}
		case "term":
			e.clauseCount++
			for field, options := range o {
				options := options.(map[string]any)
				h := e.term(field, options["value"].(string))
				h.score *= number64(options["boost"], 1)
				return h
			}
		case "terms":
			out := hit{}
			for field, list := range o {
				list, ok := list.([]any)
				if ok && len(list) > 16 { // as the engine does that counts most
					e.clauseCount++
				} else {
					e.clauseCount += len(list)
				}
				if ok && slices.ContainsFunc(list, func(term any) bool { return e.term(field, term.(string)).found }) {
					out = hit{true, number64(o["boost"], 1)}
				}
			}
			return out
		case "match", "match_phrase":
			for field, options := range o {
				return e.match(options, field)
			}
		case "multi_match":
			return e.multiMatch(o)
		}
		e.tb.Fatalf("no such query: %s", kind)
	}
	return hit{}
}

func (e *engine) bool(o map[string]any, depth int) hit {
	found, score, should := true, 0.0, 0
	for _, q := range asList(o["filter"]) {
		found = e.query(q, depth+1).found && found
	}
	for _, q := range asList(o["must"]) {
		h := e.query(q, depth+1)
		found, score = found && h.found, score+h.score
	}
	for _, q := range asList(o["must_not"]) {
		found = found && !e.query(q, depth+1).found
	}
	optional := asList(o["should"])
	for _, q := range optional {
		if h := e.query(q, depth+1); h.found {
			should, score = should+1, score+h.score
		}
	}
	least := 0
	if len(optional) > 0 && o["filter"] == nil && o["must"] == nil {
		least = 1
	}
	if m, ok := o["minimum_should_match"]; ok {
		least = max(least, e.minimum(m, len(optional)))
	}
	if !found || should < least {
		return hit{}
	}
	return hit{true, score * number64(o["boost"], 1)}
}

func (e *engine) disMax(queries []any, tie float64, depth int) hit {
	var out hit
	var scores best
	for _, q := range queries {
		if h := e.query(q, depth+1); h.found {
			out.found = true
			scores.take(h.score)
		}
	}
	out.score = scores.score(tie)
	return out
}

func (e *engine) scriptScore(o map[string]any, depth int) hit {
	h := e.query(o["query"], depth+1)
	if !h.found {
		return h
	}
	script := o["script"].(map[string]any)
	params := script["params"].(map[string]any)
	m := number64(params["m"], math.NaN())
	switch script["source"] {
	case scriptInvert:
		r := min(h.score/m, number64(params["c"], math.NaN()))
		h.score = number64(params["b"], math.NaN()) * r / (1 - r)
	case scriptSaturate:
		h.score = m * h.score / (1 + h.score)
	default:
		e.tb.Fatalf("no such script: %v", script["source"])
	}
	return h
}

// functionScore divides by a doc value.
func (e *engine) functionScore(o map[string]any, depth int) hit {
	h := e.query(o["query"], depth+1)
	factor := o["field_value_factor"].(map[string]any)
	if factor["modifier"] != "reciprocal" || o["boost_mode"] != "multiply" {
		e.tb.Fatalf("no such function: %v", o)
	}
	norm, ok := e.norms[factor["field"].(string)]
	if !ok {
		norm = number64(factor["missing"], math.NaN())
	}
	h.score /= norm
	return h
}

func (e *engine) term(field, term string) hit {
	tf := e.doc[field][term]
	if l, ok := e.linear[field]; ok {
		if !l.Scripted {
			tf *= l.Factor * simmatrix.IDF(e.cluster.docFreqs[term], e.cluster.docCount)
		}
		return hit{tf > 0, tf}
	}
	return hit{tf > 0, e.cluster.scale * simmatrix.IDF(e.cluster.docFreqs[term], e.cluster.docCount) * tf}
}

// match takes {"query": …} or a text alone; each word is a term.
func (e *engine) match(options any, field string) hit {
	o, ok := options.(map[string]any)
	if !ok {
		o = map[string]any{"query": options}
	}
	return e.words(o, []string{field})
}

// words finds the words of the text, each in the best of the fields.
func (e *engine) words(o map[string]any, fields []string) hit {
	words := strings.Fields(strings.ToLower(o["query"].(string)))
	n, score := 0, 0.0
	for _, word := range words {
		var scores best
		found := false
		for _, name := range fields {
			field, boost := boosted(name)
			e.clauseCount++
			h := e.term(field, word)
			scores.take(boost * h.score)
			found = found || h.found
		}
		if found {
			n++
			score += scores.score(number64(o["tie_breaker"], 0))
		}
	}
	least := 1
	switch {
	case o["operator"] != nil && strings.EqualFold(o["operator"].(string), "and"):
		least = len(words)
	case o["minimum_should_match"] != nil && len(words) > 1:
		least = max(1, e.minimum(o["minimum_should_match"], len(words)))
	}
	if n < least {
		return hit{}
	}
	return hit{true, score * number64(o["boost"], 1)}
}

func (e *engine) multiMatch(o map[string]any) hit {
	var fields []string
	for _, f := range asList(o["fields"]) {
		fields = append(fields, f.(string))
	}
	if o["type"] == "cross_fields" {
		return e.words(o, fields)
	}
	tie := 0.0
	if o["type"] == "most_fields" {
		tie = 1
	}
	var out hit
	var scores best
	for _, name := range fields {
		field, boost := boosted(name)
		if h := e.words(o, []string{field}); h.found {
			out.found = true
			scores.take(boost * h.score)
		}
	}
	out.score = scores.score(number64(o["tie_breaker"], tie))
	return out
}

// minimum reads minimum_should_match as the engines do, for n clauses.
func (e *engine) minimum(v any, n int) int {
	if f, ok := v.(float64); ok {
		v = strconv.Itoa(int(f))
	}
	s := v.(string)
	if above, then, ok := strings.Cut(s, "<"); ok {
		if limit, _ := strconv.Atoi(above); n <= limit {
			return n
		}
		s = then
	}
	percent, ok := strings.CutSuffix(s, "%")
	m, err := strconv.Atoi(percent)
	if err != nil {
		e.tb.Fatalf("minimum_should_match %v: %v", v, err)
	}
	if ok {
		m = int(float64(m) * float64(n) / 100) // towards zero
	}
	if m < 0 {
		m += n
	}
	return max(m, 0)
}

func boosted(name string) (field string, boost float64) {
	field, b, ok := strings.Cut(name, "^")
	boost = 1
	if ok {
		boost, _ = strconv.ParseFloat(b, 64)
	}
	return field, boost
}

func asList(v any) []any {
	switch v := v.(type) {
	case nil:
		return nil
	case []any:
		return v
	default:
		return []any{v}
	}
}

func number64(v any, otherwise float64) float64 {
	if f, ok := v.(float64); ok {
		return f
	}
	return otherwise
}

// document makes a document with some of the terms in some of the fields.
func document(random func(n int) int, fields, terms []string) map[string]map[string]float64 {
	doc := map[string]map[string]float64{}
	for _, f := range fields {
		doc[f] = map[string]float64{}
		for _, term := range slices.Sorted(slices.Values(terms)) {
			if random(3) == 0 {
				doc[f][term] = float64(1+random(99)) / 100
			}
		}
	}
	return doc
}

func (h hit) String() string { return fmt.Sprintf("found %t, score %v", h.found, h.score) }
