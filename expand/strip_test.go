package expand

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// A tree is a JSON object or list taken apart: the values of its members or
// elements, and the bytes before, between and behind them, names included.
type tree struct {
	names   []string // of the members, nil for a list
	values  [][]byte
	between [][]byte // one more than values
}

// takeApart takes an object or a list apart; false for any other value.
func takeApart(raw []byte) (tree, bool) {
	if len(raw) == 0 || raw[0] != '{' && raw[0] != '[' {
		return tree{}, false
	}
	var t tree
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw))
	if _, err := dec.ReadToken(); err != nil {
		return tree{}, false
	}
	at := 0
	for dec.PeekKind() != ']' && dec.PeekKind() != '}' {
		if raw[0] == '{' {
			name, err := dec.ReadToken()
			if err != nil {
				return tree{}, false
			}
			t.names = append(t.names, name.String())
		}
		value, err := dec.ReadValue()
		if err != nil {
			return tree{}, false
		}
		end := int(dec.InputOffset())
		t.between = append(t.between, raw[at:end-len(value)])
		t.values = append(t.values, raw[end-len(value):end])
		at = end
	}
	t.between = append(t.between, raw[at:])
	return t, true
}

// member returns the value of a member, nil where there is none.
func (t tree) member(name string) []byte {
	if i := slices.Index(t.names, name); i >= 0 {
		return t.values[i]
	}
	return nil
}

// inside returns the only member of an object, with its name.
func inside(raw []byte) (string, tree) {
	t, ok := takeApart(raw)
	if !ok || len(t.names) != 1 {
		return "", tree{}
	}
	value, _ := takeApart(t.values[0])
	return t.names[0], value
}

// first returns the first element of a list.
func first(list []byte) []byte {
	if t, ok := takeApart(list); ok && len(list) > 0 && list[0] == '[' && len(t.values) > 0 {
		return t.values[0]
	}
	return nil
}

// strip takes away what akin added to a search body, or to one that holds
// several, and reports an error unless the bytes of the original are what is
// left. It knows the shapes that akin writes and nothing of how it finds
// clauses.
func strip(original, rewritten []byte) error {
	original, rewritten = bytes.TrimSpace(original), bytes.TrimSpace(rewritten)
	rewritten, err := withoutRescore(original, rewritten)
	if err != nil {
		return err
	}
	c := checker{original: original}
	return c.compare(original, rewritten)
}

// withoutRescore cuts the rescore that akin put behind the query. Its query has
// to be the original's, expanded.
func withoutRescore(original, rewritten []byte) ([]byte, error) {
	was, _ := takeApart(original)
	is, _ := takeApart(rewritten)
	at := slices.Index(is.names, "rescore")
	if at < 1 || was.member("rescore") != nil {
		return rewritten, nil
	}
	rescorer, _ := takeApart(is.values[at])
	query, _ := takeApart(rescorer.member("query"))
	if is.names[at-1] != "query" || string(is.between[at]) != `,"rescore":` || string(query.member("query_weight")) != "0.000001" {
		return nil, fmt.Errorf("not akin's rescore: %s", is.values[at])
	}
	c := checker{original: original, rescore: true}
	if err := c.compare(was.member("query"), query.member("rescore_query")); err != nil {
		return nil, fmt.Errorf("rescore: %w", err)
	}
	var out []byte
	for i, value := range is.values {
		if i != at {
			out = append(append(out, is.between[i]...), value...)
		}
	}
	return append(out, is.between[len(is.values)]...), nil
}

// A checker compares what became of an original; rescore says that it is the
// query of the rescore, in which the hits are found already.
type checker struct {
	original []byte
	rescore  bool
}

// compare reports an error unless is equals was but for clauses that akin wrote
// around the original ones, and for queries of highlights.
func (c checker) compare(was, is []byte) error {
	if bytes.Equal(was, is) || c.wraps(is, was) {
		return nil
	}
	a, ok := takeApart(was)
	b, ok2 := takeApart(is)
	if !ok || !ok2 || len(a.values) != len(b.values) {
		return fmt.Errorf("%.200q became %.200q", was, is)
	}
	for i := range a.between {
		if !bytes.Equal(a.between[i], b.between[i]) {
			return fmt.Errorf("%.200q became %.200q", a.between[i], b.between[i])
		}
	}
	for i := range a.values {
		if a.names != nil && a.names[i] == "highlight" {
			b.values[i] = c.withoutQuery(a.values[i], b.values[i])
		}
		if err := c.compare(a.values[i], b.values[i]); err != nil {
			return err
		}
	}
	return nil
}

// withoutQuery cuts the highlight_query that akin put in front of the members
// of a highlight object that has none.
func (c checker) withoutQuery(was, is []byte) []byte {
	before, _ := takeApart(was)
	now, _ := takeApart(is)
	if before.member("highlight_query") != nil || len(now.names) == 0 || now.names[0] != "highlight_query" || !c.marks(now.values[0]) {
		return is
	}
	added := []byte(`"highlight_query":` + string(now.values[0]))
	if len(now.values) > 1 {
		added = append(added, ',')
	}
	return bytes.Replace(is, added, nil, 1)
}

// marks reports whether a highlight_query is a query of the original, or any of
// several together with what akin adds.
func (c checker) marks(query []byte) bool {
	if bytes.Contains(c.original, query) {
		return true
	}
	kind, parts := inside(query)
	should, _ := takeApart(parts.member("should"))
	if kind != "bool" || len(parts.names) != 1 || len(should.values) < 2 {
		return false
	}
	for i, q := range should.values {
		if !bytes.Contains(c.original, q) && (i == 0 || !ours([][]byte{q})) {
			return false
		}
	}
	return true
}

// wraps reports whether outer is a query that akin writes around a clause.
func (c checker) wraps(outer, clause []byte) bool {
	kind, parts := inside(outer)
	if kind != "bool" || len(parts.names) == 0 {
		return false
	}
	for _, name := range parts.names {
		if !slices.Contains([]string{"must", "filter", "should", "boost"}, name) {
			return false
		}
	}
	should, ok := takeApart(parts.member("should"))
	if !ok {
		return false
	}
	added := should.values
	switch must, filter := parts.member("must"), parts.member("filter"); {
	case must != nil: // linear, same, or feedback around either
		inner := first(must)
		if !bytes.Equal(must, listOf(inner)) || !bytes.Equal(inner, clause) && !c.wraps(inner, clause) {
			return false
		}
	case filter != nil && bytes.Equal(filter, listOf(clause)): // grouped or saturated, same
	case filter != nil: // linear with groups: the original and its groups decide what matches
		either, groups := inside(first(filter))
		options, _ := takeApart(groups.member("should"))
		if either != "bool" || len(options.values) == 0 || !bytes.Equal(options.values[0], clause) || !ours(options.values[1:]) {
			return false
		}
		if len(added) == 0 || !bytes.Equal(added[0], clause) {
			return false
		}
		added = added[1:]
	case len(added) == 0:
		return false
	case bytes.Equal(added[0], clause), string(added[0]) == `{"bool":{"filter":`+string(listOf(clause))+`}}`:
		added = added[1:]
	case !c.rescore:
		return false
	}
	return len(added) > 0 && ours(added)
}

func listOf(value []byte) []byte { return []byte("[" + string(value) + "]") }

// ours reports whether the queries are made of nothing but what akin adds:
// terms, alone or combined, behind one of its two scripts or divided by a doc
// value.
func ours(queries [][]byte) bool {
	for _, q := range queries {
		kind, parts := inside(q)
		switch kind {
		case "term", "terms", "prefix":
			continue
		case "multi_match": // the original for one field
			if fields, ok := takeApart(parts.member("fields")); !ok || len(fields.values) != 1 {
				return false
			}
		case "bool", "dis_max":
			name := map[string]string{"bool": "should", "dis_max": "queries"}[kind]
			inner, ok := takeApart(parts.member(name))
			if !ok || !ours(inner.values) {
				return false
			}
			if filter := parts.member("filter"); filter != nil && !ours([][]byte{first(filter)}) {
				return false
			}
		case "script_score":
			script, _ := takeApart(parts.member("script"))
			source := strings.Trim(string(script.member("source")), `"`)
			if source != scriptInvert && source != scriptSaturate || !ours([][]byte{parts.member("query")}) {
				return false
			}
		case "function_score":
			function, _ := takeApart(parts.member("field_value_factor"))
			if !slices.Equal(parts.names, []string{"query", "field_value_factor", "boost_mode"}) ||
				string(function.member("modifier")) != `"reciprocal"` || !ours([][]byte{parts.member("query")}) {
				return false
			}
		case "constant_score": // of terms with names
			if !ours([][]byte{parts.member("filter")}) {
				return false
			}
		case "nested": // of segments
			continue
		default:
			return false
		}
	}
	return true
}
