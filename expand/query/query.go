// Package query has the queries that akin writes, as trees. It alone knows
// their JSON, which is the same for all engines. How deep a search is and how
// many clauses it has follows from its tree.
package query

import (
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// A Query is a query with those inside it, which a method adds, unless they are
// nil.
type Query struct {
	// The JSON is before, the queries with commas between them, and after. For a
	// bool, after is its minimum_should_match and factor its boost.
	before, after     []byte
	factor            float64
	first, last, next *Query
	// leaves is how many clauses it is without those inside.
	leaves int
	// occur is how the query counts in the bool around it.
	occur   occur
	boolean bool
	// bare says that a bool has one query that must match or filter, without an
	// array.
	bare bool
}

type occur uint8

const (
	only occur = iota // in a query that is no bool
	must
	filter
	mustNot
	should
)

var occurs = [...]string{must: `"must":`, filter: `"filter":`, mustNot: `"must_not":`, should: `"should":`}

// A Tree makes queries, in memory that Reset makes free for others. The zero
// value is ready for use.
type Tree struct {
	json   buffer
	blocks []*[block]Query
	used   int
}

const block = 64

// Reset forgets all queries. Nobody may use them any longer.
func (t *Tree) Reset() {
	if len(t.blocks) > 8 || cap(t.json) > 1<<16 { // not worth keeping
		*t = Tree{}
	}
	for _, b := range t.blocks[:(t.used+block-1)/block] {
		clear(b[:])
	}
	t.used = 0
	t.json = t.json[:0]
}

func (t *Tree) query() *Query {
	if t.used == len(t.blocks)*block {
		t.blocks = append(t.blocks, new([block]Query))
	}
	q := &t.blocks[t.used/block][t.used%block]
	t.used++
	return q
}

// open returns a query of so many leaves whose JSON begins with the parts, and
// end writes what is after the queries inside it.
func (t *Tree) open(leaves int, parts ...any) *Query {
	q := t.query()
	q.leaves, q.before = leaves, t.write(parts...)
	return q
}

func (t *Tree) end(q *Query, parts ...any) *Query {
	q.after = t.write(parts...)
	return q
}

func (t *Tree) write(parts ...any) []byte {
	start := len(t.json)
	t.json.put(parts...)
	return t.json[start:len(t.json):len(t.json)]
}

// Raw returns a query of the client, which has so many leaves.
func (t *Tree) Raw(json []byte, leaves int) *Query {
	q := t.query()
	q.before, q.leaves = json, leaves
	return q
}

// Term returns a query for a term. Its name may be "".
func (t *Tree) Term(field, value string, factor float64, called string) *Query {
	return t.open(1, `{"term":{`, text(field), `:{"value":`, text(value), boost(factor), name(called), `}}}`)
}

// Prefix returns a query for the terms of an index that begin with a value.
func (t *Tree) Prefix(field, value string) *Query {
	return t.open(1, `{"prefix":{`, text(field), `:{"value":`, text(value), `}}}`)
}

// Terms returns a query that scores the factor if a document has any of the
// terms. Older versions of Lucene make up to 16 clauses of it.
func (t *Tree) Terms(field string, values []string, factor float64) *Query {
	leaves := len(values)
	if leaves > 16 {
		leaves = 1
	}
	return t.open(leaves, `{"terms":{`, text(field), `:`, values, boost(factor), `}}`)
}

// Phrase returns a query for terms of an index, which are not analyzed again,
// at most slop places apart. Its name may be "".
func (t *Tree) Phrase(field string, values []string, slop, factor float64, called string) *Query {
	return t.phrase(`{"match_phrase":{`, field, values, slop, nil, factor, called)
}

// PhrasePrefix is like Phrase, but the last term is a prefix of at most as many
// terms as most says, as JSON, or nil.
func (t *Tree) PhrasePrefix(field string, values []string, slop float64, most []byte, factor float64, called string) *Query {
	if most != nil {
		most = append([]byte(`,"max_expansions":`), most...)
	}
	return t.phrase(`{"match_phrase_prefix":{`, field, values, slop, most, factor, called)
}

func (t *Tree) phrase(kind, field string, values []string, slop float64, most []byte, factor float64, called string) *Query {
	q := t.open(len(values), kind, text(field), `:{"query":`, text(strings.Join(values, " ")), `,"analyzer":"whitespace"`, most)
	if slop > 0 {
		return t.end(q, `,"slop":`, slop, boost(factor), name(called), `}}}`)
	}
	return t.end(q, boost(factor), name(called), `}}}`)
}

// Span is like Phrase, where "" stands for any term.
func (t *Tree) Span(field string, values []string, slop, factor float64, called string) *Query {
	q := t.open(len(values), `{"span_near":{"clauses":[`)
	gap := 0
	for _, v := range values {
		if v == "" {
			gap++
			continue
		}
		if gap > 0 {
			q.add(only, t.open(0, `{"span_gap":{`, text(field), `:`, gap, `}}`))
		}
		q.add(only, t.open(0, `{"span_term":{`, text(field), `:`, text(v), `}}`))
		gap = 0
	}
	return t.end(q, `],"slop":`, slop, `,"in_order":true`, boost(factor), name(called), `}}`)
}

// Feature returns a query for a number in a field of the type rank_features.
func (t *Tree) Feature(field string, factor float64) *Query {
	return t.open(1, `{"rank_feature":{"field":`, text(field), `,"linear":{},"boost":`, factor, `}}`)
}

// Near returns a query for the k nearest vectors of the documents that the
// query of finds, or of all if it is nil. plugin says that it is that of
// OpenSearch's plugin.
func (t *Tree) Near(plugin bool, field string, vector []float32, k int, factor float64, of *Query) *Query {
	filtered := ""
	if of != nil {
		filtered = `,"filter":`
	}
	if plugin {
		q := t.open(1, `{"knn":{`, text(field), `:{"vector":`, vector, `,"k":`, k, filtered)
		return t.end(q.add(only, of), `,"boost":`, factor, `}}}`)
	}
	q := t.open(1, `{"knn":{"field":`, text(field), `,"query_vector":`, vector, `,"k":`, k, `,"num_candidates":`, k, filtered)
	return t.end(q.add(only, of), `,"boost":`, factor, `}}`)
}

// Bool returns a bool without queries.
func (t *Tree) Bool() *Query {
	q := t.query()
	q.boolean, q.factor = true, 1
	return q
}

// DisMax returns a dis_max without queries, which Should adds.
func (t *Tree) DisMax(tieBreaker float64) *Query {
	return t.end(t.open(0, `{"dis_max":{"tie_breaker":`, tieBreaker, `,"queries":[`), `]}}`)
}

// Best returns a dis_max that scores by the best query alone.
func (t *Tree) Best() *Query { return t.end(t.open(0, `{"dis_max":{"queries":[`), `]}}`) }

// Constant returns a query that scores the factor if of matches.
func (t *Tree) Constant(of *Query, factor float64) *Query {
	return t.end(t.open(0, `{"constant_score":{"filter":`).add(only, of), boost(factor), `}}`)
}

// A Script computes a score from that of the query inside it. Bound is its
// param c, 0 for none.
type Script struct {
	Source string
	Bound  float64
}

// Script returns a query that makes a score of that of the query of. m and b
// are params; without a bound there is no b.
func (t *Tree) Script(s *Script, of *Query, m, b float64) *Query {
	q := t.open(0, `{"script_score":{"query":`).add(only, of)
	if s.Bound > 0 {
		return t.end(q, `,"script":{"source":"`, s.Source, `","params":{"m":`, m, `,"c":`, s.Bound, `,"b":`, b, `}}}}`)
	}
	return t.end(q, `,"script":{"source":"`, s.Source, `","params":{"m":`, m, `}}}}`)
}

// Over returns a query that divides the score of the query of by the number in
// a field, or the one for documents without.
func (t *Tree) Over(field string, missing float64, of *Query) *Query {
	return t.end(t.open(0, `{"function_score":{"query":`).add(only, of),
		`,"field_value_factor":{"field":`, text(field), `,"modifier":"reciprocal","missing":`, missing, `},"boost_mode":"multiply"}}`)
}

// In is like Over, but leaves the score as it is if the number is not in a
// range, such as "gt":0. Unless reciprocal, it multiplies.
func (t *Tree) In(field, within string, reciprocal bool, of *Query) *Query {
	modifier := ""
	if reciprocal {
		modifier = `,"modifier":"reciprocal"`
	}
	return t.end(t.open(0, `{"function_score":{"query":`).add(only, of),
		`,"functions":[{"filter":{"range":{`, text(field), `:{`, within, `}}},"field_value_factor":{"field":`, text(field), modifier, `,"missing":1}}]}}`)
}

// Nested returns a query for nested documents, of which so many come back.
func (t *Tree) Nested(path, scoreMode string, innerHits int, of *Query) *Query {
	q := t.open(0, `{"nested":{"path":`, text(path), `,"ignore_unmapped":true,"score_mode":"`, scoreMode, `","query":`).add(only, of)
	if innerHits > 0 {
		return t.end(q, `,"inner_hits":{"size":`, innerHits, `}}}`)
	}
	return t.end(q, `}}`)
}

func (q *Query) add(how occur, child *Query) *Query {
	switch {
	case child == nil:
		return q
	case q.first == nil:
		q.first = child
	default:
		q.last.next = child
	}
	q.last, child.occur = child, how
	return q
}

// Must adds a query to a bool.
func (q *Query) Must(c *Query) *Query { return q.add(must, c) }

// Filter adds a query to a bool.
func (q *Query) Filter(c *Query) *Query { return q.add(filter, c) }

// MustNot adds a query to a bool.
func (q *Query) MustNot(c *Query) *Query { return q.add(mustNot, c) }

// Should adds a query to a bool or a dis_max.
func (q *Query) Should(c *Query) *Query { return q.add(should, c) }

// Minimum sets minimum_should_match of a bool, as JSON.
func (q *Query) Minimum(json []byte) *Query {
	q.after = json
	return q
}

// Bare writes the queries of a bool that must match or filter without arrays.
func (q *Query) Bare() *Query {
	q.bare = true
	return q
}

// Times multiplies the scores of a bool.
func (q *Query) Times(factor float64) *Query {
	q.factor *= factor
	return q
}

// Simple returns the only query of a dis_max instead of it, and nil instead of
// one without queries.
func (q *Query) Simple() *Query {
	if q.first == q.last {
		return q.first
	}
	return q
}

// Depth returns how deep queries are nested, including the innermost ones.
func (q *Query) Depth() int {
	deepest := 0
	for c := q.first; c != nil; c = c.next {
		deepest = max(deepest, c.Depth())
	}
	return 1 + deepest
}

// Leaves returns an upper estimate of the clauses of a query as engines count
// them. Since Lucene 9 these are the leaf queries, including those in
// script_score; before, the direct clauses of each bool, which are not more.
func (q *Query) Leaves() int {
	n := q.leaves
	for c := q.first; c != nil; c = c.next {
		n += c.Leaves()
	}
	return n
}

// Size returns about how many bytes the query has as JSON, rather more.
func (q *Query) Size() int {
	n := len(q.before) + len(q.after) + len(",")
	if q.boolean {
		n += len(`{"bool":{"filter":[],"should":[],"boost":0.12345678}}`)
	}
	for c := q.first; c != nil; c = c.next {
		n += c.Size()
	}
	return n
}

// Append appends the query as JSON.
func (q *Query) Append(to []byte) []byte {
	if !q.boolean {
		return append(appendList(append(to, q.before...), q.first, nil), q.after...)
	}
	b := append(buffer(to), `{"bool":{`...)
	for c := q.first; c != nil; {
		end := c.next
		for end != nil && end.occur == c.occur {
			end = end.next
		}
		if c != q.first {
			b = append(b, ',')
		}
		b = append(b, occurs[c.occur]...)
		if q.bare && c.occur != should {
			b = appendList(b, c, end)
		} else {
			b = append(appendList(append(b, '['), c, end), ']')
		}
		if c.occur == should && q.after != nil {
			b.put(`,"minimum_should_match":`, q.after)
		}
		c = end
	}
	b.put(boost(q.factor), `}}`)
	return b
}

// appendList appends the queries from c to before end.
func appendList(b []byte, c, end *Query) []byte {
	for first := c; c != end; c = c.next {
		if c != first {
			b = append(b, ',')
		}
		b = c.Append(b)
	}
	return b
}

type buffer []byte

// A text is a string to be written in quotes. A boost is a member, unless it is
// 1, and so is a name, unless it is "".
type (
	text  string
	boost float64
	name  string
)

// put writes JSON: strings and bytes as they are. It panics on types that it
// does not know.
func (b *buffer) put(parts ...any) {
	for _, part := range parts {
		switch p := part.(type) {
		case string:
			*b = append(*b, p...)
		case []byte:
			*b = append(*b, p...)
		case text:
			*b = AppendText(*b, string(p))
		case int:
			*b = strconv.AppendInt(*b, int64(p), 10)
		case float64:
			*b = appendNumber(*b, p)
		case boost:
			if p != 1 {
				*b = appendNumber(append(*b, `,"boost":`...), float64(p))
			}
		case name:
			if p != "" {
				*b = AppendText(append(*b, `,"_name":`...), string(p))
			}
		case []string:
			*b = appendArray(*b, p, AppendText)
		case []float32:
			*b = appendArray(*b, p, func(b []byte, x float32) []byte { return appendNumber(b, float64(x)) })
		default:
			panic("query: a part of a type that put does not write")
		}
	}
}

func appendArray[T any](b []byte, all []T, one func([]byte, T) []byte) []byte {
	b = append(b, '[')
	for i, x := range all {
		if i > 0 {
			b = append(b, ',')
		}
		b = one(b, x)
	}
	return append(b, ']')
}

// appendNumber appends a number with 32 bits, as the engines read them.
func appendNumber(b []byte, x float64) []byte {
	return strconv.AppendFloat(b, min(x, math.MaxFloat32), 'g', -1, 32)
}

// AppendText appends a text in quotes. AppendQuote fails only on invalid UTF-8,
// and then has written it repaired. The index has no such term, so it finds
// nothing.
func AppendText(b []byte, s string) []byte {
	b, _ = jsontext.AppendQuote(b, s)
	return b
}
