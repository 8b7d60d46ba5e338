package demo

import (
	"fmt"
	"math"
	"math/bits"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// A query is one node of a parsed query, bound to one index. It returns the
// score of a document times boost and how it comes about, nil if the document
// does not match.
type query func(doc int, boost float32) *explanation

func (q query) matches(doc int) bool { return q(doc, 1) != nil }

type hit struct {
	doc   int
	score float32
}

// hits returns the documents of an index that match, ascending by number.
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

// term scores the documents that contain a term by BM25.
func (p *parser) term(field, text string) query {
	f, words := p.ix.fields[field], p.words
	known := f.of(text)
	if len(known.list) == 0 {
		return func(int, float32) *explanation { return nil }
	}
	s, list, next := f.scorer(known), known.list, 0
	return func(doc int, boost float32) *explanation {
		if next = seek(list, next, doc); next == len(list) || int(list[next].doc) != doc {
			return nil
		}
		why := s.score(list[next], boost, words)
		if !words {
			return why
		}
		return explained(why.Value, fmt.Sprintf("weight(%s:%s in %d) [PerFieldSimilarity], result of:", field, text, doc), why)
	}
}

// constant gives every document that matches the score 1.
func constant(description string, matches func(doc int) bool) query {
	return func(doc int, boost float32) *explanation {
		switch {
		case !matches(doc):
			return nil
		case boost == 1:
			return explained(1, description)
		default:
			return explained(boost, description+"^"+floatText(boost))
		}
	}
}

func matchAll() query { return constant("*:*", func(int) bool { return true }) }

func matchNone() query { return constant("MatchNoDocsQuery", func(int) bool { return false }) }

// boolQuery sums the scores of its clauses.
type boolQuery struct {
	must, should, filter, mustNot []query
	minShould                     int // how many of should have to match
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

// disMax takes the best score of its clauses, and adds tie times the others.
func disMax(tie float32, clauses []query) query {
	description := "max plus " + floatText(tie) + " times others of:"
	switch {
	case len(clauses) == 0:
		panic(parsingError("[dis_max] requires 'queries' field with at least one clause"))
	case len(clauses) == 1:
		return clauses[0]
	case tie == 0:
		description = "max of:"
	case tie == 1:
		description = "sum of:"
	}
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

// weighted multiplies the scores of the documents that match a filter.
func weighted(inner, filter query, factor float32) query {
	return func(doc int, boost float32) *explanation {
		e := inner(doc, boost)
		if e == nil || !filter.matches(doc) {
			return e
		}
		return explained(e.Value*factor, "function score, product of:", e, explained(factor, "weight"))
	}
}

// randomScore gives the documents of a query scores in [0, 1) that look random,
// and finds those with at least the least score: a random share of them. Scores
// are the upper bits of document number and seed, mixed as by SplitMix64.
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

// The scripts that this engine runs, recognized by their text: the two that a
// search in akin's saturated form carries, and the one by which akin learns
// whether scripts run at all.
const (
	// ScriptInvert undoes BM25's saturation: with m = boost·2.2·idf it turns
	// the score of a term into b·tf/K. c in (0, 1) keeps it finite.
	ScriptInvert = "double r = Math.min(_score / params.m, params.c); return params.b * r / (1 - r)"
	// ScriptSaturate saturates a sum of such values again, to at most m.
	ScriptSaturate = "return params.m * _score / (1 + _score)"
	// ScriptProbe multiplies a score by a.
	ScriptProbe = "_score * params.a"
)

// scriptScore replaces the scores of a query by a script. It refuses parameters
// with which a score could come out negative or infinite; the real engines
// refuse them when it happens.
func scriptScore(inner query, v any) query {
	a := newArgs("script", v)
	source, lang := a.str("source", ""), a.str("lang", "painless")
	params := newArgs("script params", a.object("params"))
	a.done()
	m, c, b, factor := params.number("m", -1), params.number("c", -1), params.number("b", -1), params.number("a", -1)
	var run func(score float64) float64
	wrong := ""
	switch {
	case lang != "painless":
		wrong = "the embedded engine runs painless only"
	case source == ScriptInvert && (m <= 0 || c < 0 || c >= 1 || b < 0):
		wrong = "runtime error: params.m must be positive, params.c in [0, 1), params.b not negative"
	case source == ScriptInvert:
		run = func(score float64) float64 { r := math.Min(score/m, c); return b * r / (1 - r) }
	case source == ScriptSaturate && m < 0:
		wrong = "runtime error: params.m must not be negative"
	case source == ScriptSaturate:
		run = func(score float64) float64 { return m * score / (1 + score) }
	case source == ScriptProbe && factor < 0:
		wrong = "runtime error: params.a must not be negative"
	case source == ScriptProbe:
		run = func(score float64) float64 { return factor * score }
	default:
		wrong = "compile error: the embedded engine runs akin's own scripts only"
	}
	if wrong != "" {
		panic(&apiError{http.StatusBadRequest, "script_exception", wrong, map[string]any{
			"script": strings.ToValidUTF8(source, "\uFFFD"), "lang": "painless",
		}})
	}
	description := `script score function, computed with script:"` + source + `"`
	return func(doc int, boost float32) *explanation {
		was := inner(doc, 1)
		if was == nil {
			return nil
		}
		e := explained(float32(run(float64(was.Value))), description,
			explained(was.Value, "_score: ", was))
		if boost == 1 {
			return e
		}
		return explained(e.Value*boost, "Boosted score, product of:", explained(boost, "boost"), e)
	}
}

// bm25 has the parameters of BM25, and what each score is multiplied by.
type bm25 struct{ k1, b, scale float32 }

// defaultBM25 returns what both engines start with. Elasticsearch and
// OpenSearch up to 2 multiply each score by k1+1 (Lucene's
// LegacyBM25Similarity), and so does this engine.
func defaultBM25() bm25 { return bm25{1.2, 0.75, 2.2} }

// exactLengths is the number of document lengths from 0 that Lucene's one-byte
// code keeps as they are: 255 less the code of the largest int.
const exactLengths = 24

// quantizedLength returns the field length n as Lucene remembers it after
// coding it in one byte (SmallFloat.intToByte4 and back): what n exceeds 24 by
// keeps its four most significant bits, so that lengths under 40 are exact and
// longer ones are rounded down by less than an eighth.
func quantizedLength(n int) int {
	if n < exactLengths {
		return n
	}
	rest := uint(n - exactLengths)
	shift := max(0, bits.Len(rest)-4)
	return exactLengths + int(rest>>shift<<shift)
}

// A scorer scores one term in one field.
type scorer struct {
	bm25

	docs, docFreq  float64
	idf, avgLength float32
}

func (f *inverted) scorer(p *postings) *scorer {
	docs, docFreq := float64(f.docCount), float64(len(p.list))
	return &scorer{
		f.bm25, docs, docFreq,
		float32(math.Log(1 + (docs-docFreq+0.5)/(docFreq+0.5))), float32(float64(f.tokens) / docs),
	}
}

// score scores the occurrences of a term in one document, with dl the length of
// the field:
//
//	score = boost·scale · idf · tf/(tf + k1·(1 - b + b·dl/avgdl))
//	idf   = ln(1 + (N - n + 0.5)/(n + 0.5))
//
// in Lucene's order of float32 operations. If wanted, the explanation is in the
// words of Lucene, which clients read k1 and the scale from.
func (s *scorer) score(at posting, boost float32, words bool) *explanation {
	freq, length := float32(at.freq), int(at.length)
	inverse := 1 / (s.k1 * ((1 - s.b) + float32(s.b*float32(length))/s.avgLength))
	// w·tf/(tf+K) as Lucene writes it, which is monotonic in floating point.
	saturated := func(w float32) float32 { return w - w/(1+float32(freq*inverse)) }
	boost *= s.scale
	score := saturated(boost * s.idf)
	if !words {
		return &explanation{Value: score}
	}
	lengthWords := "dl, length of field"
	if length >= exactLengths+16 { // from here on quantizedLength rounds
		lengthWords += " (approximate)"
	}
	return explained(score, "score(freq="+floatText(freq)+"), computed as boost * idf * tf from:",
		explained(boost, "boost"),
		explained(s.idf, "idf, computed as log(1 + (N - n + 0.5) / (n + 0.5)) from:",
			explained(float32(s.docFreq), "n, number of documents containing term"),
			explained(float32(s.docs), "N, total number of documents with field")),
		explained(saturated(1), "tf, computed as freq / (freq + k1 * (1 - b + b * dl / avgdl)) from:",
			explained(freq, "freq, occurrences of term within document"),
			explained(s.k1, "k1, term saturation parameter"),
			explained(s.b, "b, length normalization parameter"),
			explained(float32(length), lengthWords),
			explained(s.avgLength, "avgdl, average length of field")))
}

// An explanation says how a score came about, in the shape in which the
// engines answer explain: true.
type explanation struct {
	Value       float32        `json:"value"`
	Description string         `json:"description"`
	Details     []*explanation `json:"details"`
}

func explained(value float32, description string, details ...*explanation) *explanation {
	return &explanation{Value: value, Description: description, Details: details}
}

// floatText writes f as Java does, with at least one decimal.
func floatText(f float32) string {
	s := strconv.FormatFloat(float64(f), 'g', -1, 32)
	if !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	return s
}
