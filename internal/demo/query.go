package demo

import (
	"fmt"
	"math"
	"net/http"
	"slices"
)

// A query is a node of a parsed query for one index. It returns a document's
// score times boost, with an explanation, or nil if it does not match.
type query func(doc int, boost float32) *explanation

func (q query) matches(doc int) bool { return q(doc, 1) != nil }

type hit struct {
	doc   int
	score float32
}

func (q query) hits(ix *index) (out []hit) {
	for doc := range ix.docs {
		if e := q(doc, 1); e != nil {
			out = append(out, hit{doc, e.Value})
		}
	}
	return out
}

func boosted(q query, boost float32) query {
	return func(doc int, outer float32) *explanation { return q(doc, outer*boost) }
}

// term scores documents with a term in a field by BM25.
func term(ix *index, field, text string, words bool) query {
	f := ix.fields[field]
	known := f.of(text)
	list := known.list
	if len(list) == 0 {
		return func(int, float32) *explanation { return nil }
	}
	score := f.bm25.scorer(known.docFreq, f.docCount, f.tokens)
	return func(doc int, boost float32) *explanation {
		at, has := slices.BinarySearchFunc(list, doc, func(p posting, doc int) int { return int(p.doc) - doc })
		if !has {
			return nil
		}
		why := score(list[at].freq, list[at].length, boost, words)
		if !words {
			return why
		}
		return explained(why.Value, fmt.Sprintf("weight(%s:%s in %d) [PerFieldSimilarity], result of:", field, text, doc), why)
	}
}

func constant(description string, matches func(doc int) bool) query {
	return func(doc int, boost float32) *explanation {
		if !matches(doc) {
			return nil
		}
		return explained(boost, description)
	}
}

func matchAll() query { return constant("*:*", func(int) bool { return true }) }

func matchNone() query { return constant("MatchNoDocsQuery", func(int) bool { return false }) }

type boolQuery struct {
	must, should, filter, mustNot []query
	minShould                     int // how many of should must match
}

func (b boolQuery) query() query {
	scored := slices.Concat(b.must, b.should)
	return func(doc int, boost float32) *explanation {
		var details []*explanation
		sum := 0.0 // Lucene sums in float64
		for i, clause := range scored {
			if e := clause(doc, boost); e != nil {
				details, sum = append(details, e), sum+float64(e.Value)
			} else if i < len(b.must) {
				return nil
			}
		}
		if len(details) < len(b.must)+b.minShould {
			return nil
		}
		for _, clause := range b.filter {
			e := clause(doc, 1)
			if e == nil {
				return nil
			}
			details = append(details, explained(0, "match on required clause, product of:", explained(0, "# clause"), e))
		}
		if slices.ContainsFunc(b.mustNot, func(q query) bool { return q.matches(doc) }) {
			return nil
		}
		return explained(float32(sum), "sum of:", details...)
	}
}

// disMax scores by the best clause, plus tie times the others.
func disMax(tie float32, clauses []query) query {
	description := "max plus " + floatText(tie) + " times others of:"
	return func(doc int, boost float32) *explanation {
		var details []*explanation
		best, others := float32(0), 0.0
		for _, clause := range clauses {
			if e := clause(doc, boost); e != nil {
				details = append(details, e)
				others += float64(min(best, e.Value))
				best = max(best, e.Value)
			}
		}
		if details == nil {
			return nil
		}
		return explained(float32(float64(best)+others*float64(tie)), description, details...)
	}
}

// weighted multiplies scores of documents that match a filter.
func weighted(inner, filter query, factor float32) query {
	return func(doc int, boost float32) *explanation {
		e := inner(doc, boost)
		if e == nil || !filter.matches(doc) {
			return e
		}
		return explained(e.Value*factor, "function score, product of:", e, explained(factor, "weight"))
	}
}

// randomScore gives matching documents pseudo-random scores in [0, 1) and drops
// those below least, which leaves a random share. Scores are the upper bits of
// document number and seed, mixed as by SplitMix64.
func randomScore(inner query, seed uint64, least float32) query {
	return func(doc int, boost float32) *explanation {
		h := seed*0x9e3779b97f4a7c15 + uint64(doc) //nolint:gosec // it is not negative
		h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
		h = (h ^ h>>27) * 0x94d049bb133111eb
		h ^= h >> 31
		score := float32(h>>40) / (1 << 24)
		if score < least || !inner.matches(doc) {
			return nil
		}
		return explained(score*boost, "random score, of the seed and the document")
	}
}

// The scripts that this engine runs, known by their text: two of a search in
// akin's saturated form, and one that shows akin whether scripts run.
const (
	// ScriptInvert undoes BM25's saturation: with m = boost·2.2·idf it turns a
	// term's score into b·tf/K. c in (0, 1) keeps it finite.
	ScriptInvert = "double r = Math.min(_score / params.m, params.c); return params.b * r / (1 - r)"
	// ScriptSaturate saturates a sum of such values again, to at most m.
	ScriptSaturate = "return params.m * _score / (1 + _score)"
	// ScriptProbe multiplies a score by a.
	ScriptProbe = "_score * params.a"
)

// scriptScore replaces the scores of a query by a script's. Like the real
// engines it refuses a score that is negative or not a number.
func scriptScore(inner query, v any) query {
	a := newArgs("script", v)
	source, lang := a.str("source", ""), a.str("lang", "painless")
	params := newArgs("script params", a.object("params"))
	a.done()
	param := func(name string) float64 { return params.number(name, math.NaN()) }
	m := param("m")
	c := param("c")
	b := param("b")
	factor := param("a")
	run := map[string]func(score float64) float64{
		ScriptInvert:   func(score float64) float64 { r := math.Min(score/m, c); return b * r / (1 - r) },
		ScriptSaturate: func(score float64) float64 { return m * score / (1 + score) },
		ScriptProbe:    func(score float64) float64 { return score * factor },
	}[source]
	if run == nil || lang != "painless" {
		panic(refuse(http.StatusBadRequest, "script_exception", "compile error: the embedded engine runs akin's own scripts only"))
	}
	description := `script score function, computed with script:"` + source + `"`
	return func(doc int, boost float32) *explanation {
		was := inner(doc, 1)
		if was == nil {
			return nil
		}
		score := float32(run(float64(was.Value)))
		if !(score >= 0 && score <= math.MaxFloat32) {
			panic(illegal("script_score script returned an invalid score [%v] for doc [%d]", score, doc))
		}
		e := explained(score, description, explained(was.Value, "_score: ", was))
		if boost == 1 {
			return e
		}
		return explained(score*boost, "Boosted score, product of:", explained(boost, "boost"), e)
	}
}
