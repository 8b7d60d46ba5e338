package expand

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// A tree is a JSON object or list taken apart: the values of its members or
// elements, and the bytes before, between and behind them, names included.
type tree struct {
	names   []string // of the members, nil for a list
	values  [][]byte
	between [][]byte // one more than values
}

// parse takes an object or a list apart; false for any other value.
func parse(raw []byte) (tree, bool) {
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
	t, ok := parse(raw)
	if !ok || len(t.names) != 1 {
		return "", tree{}
	}
	value, _ := parse(t.values[0])
	return t.names[0], value
}

// first returns the first element of a list.
func first(list []byte) []byte {
	if t, ok := parse(list); ok && len(list) > 0 && list[0] == '[' && len(t.values) > 0 {
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
	return compare(original, withoutHighlight(original, rewritten))
}

// withoutRescore cuts the rescore that akin put behind the query. Its query has
// to be the original's, expanded.
func withoutRescore(original, rewritten []byte) ([]byte, error) {
	was, _ := parse(original)
	is, _ := parse(rewritten)
	at := slices.Index(is.names, "rescore")
	if at < 1 || was.member("rescore") != nil {
		return rewritten, nil
	}
	rescorer, _ := parse(is.values[at])
	query, _ := parse(rescorer.member("query"))
	if is.names[at-1] != "query" || string(is.between[at]) != `,"rescore":` || string(query.member("query_weight")) != "0" {
		return nil, fmt.Errorf("not akin's rescore: %s", is.values[at])
	}
	if err := compare(was.member("query"), query.member("rescore_query")); err != nil {
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

// withoutHighlight cuts the highlight_query that akin put in.
func withoutHighlight(original, rewritten []byte) []byte {
	was, _ := parse(original)
	is, _ := parse(rewritten)
	before, _ := parse(was.member("highlight"))
	highlight := is.member("highlight")
	now, _ := parse(highlight)
	if before.member("highlight_query") != nil || now.member("highlight_query") == nil {
		return rewritten
	}
	added := []byte(`"highlight_query":` + string(now.values[0]))
	if len(now.values) > 1 {
		added = append(added, ',')
	}
	return bytes.Replace(rewritten, highlight, bytes.Replace(highlight, added, nil, 1), 1)
}

// compare reports an error unless is equals was but for clauses that akin wrote
// around the original ones.
func compare(was, is []byte) error {
	if bytes.Equal(was, is) || wraps(is, was) {
		return nil
	}
	a, ok := parse(was)
	b, ok2 := parse(is)
	if !ok || !ok2 || len(a.values) != len(b.values) {
		return fmt.Errorf("%.200q became %.200q", was, is)
	}
	for i := range a.between {
		if !bytes.Equal(a.between[i], b.between[i]) {
			return fmt.Errorf("%.200q became %.200q", a.between[i], b.between[i])
		}
	}
	for i := range a.values {
		if err := compare(a.values[i], b.values[i]); err != nil {
			return err
		}
	}
	return nil
}

// wraps reports whether outer is a query that akin writes around a clause.
func wraps(outer, clause []byte) bool {
	kind, parts := inside(outer)
	if kind != "bool" || len(parts.names) == 0 {
		return false
	}
	for _, name := range parts.names {
		if !slices.Contains([]string{"must", "filter", "should", "boost"}, name) {
			return false
		}
	}
	should, ok := parse(parts.member("should"))
	if !ok {
		return false
	}
	added := should.values
	switch must, filter := parts.member("must"), parts.member("filter"); {
	case must != nil: // linear, same
		if !bytes.Equal(must, listOf(clause)) {
			return false
		}
	case filter != nil && bytes.Equal(filter, listOf(clause)): // grouped or saturated, same
	case filter != nil: // linear with groups: the original and its groups decide what matches
		either, groups := inside(first(filter))
		options, _ := parse(groups.member("should"))
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
	default:
		return false
	}
	return len(added) > 0 && ours(added)
}

func listOf(value []byte) []byte { return []byte("[" + string(value) + "]") }

// ours reports whether the queries are made of nothing but what akin adds:
// terms, alone or combined or behind one of its two scripts.
func ours(queries [][]byte) bool {
	for _, q := range queries {
		kind, parts := inside(q)
		switch kind {
		case "term", "prefix":
			continue
		case "bool", "dis_max":
			name := map[string]string{"bool": "should", "dis_max": "queries"}[kind]
			inner, ok := parse(parts.member(name))
			if !ok || !ours(inner.values) {
				return false
			}
		case "script_score":
			script, _ := parse(parts.member("script"))
			source := strings.Trim(string(script.member("source")), `"`)
			if source != scriptInvert && source != scriptSaturate || !ours([][]byte{parts.member("query")}) {
				return false
			}
		default:
			return false
		}
	}
	return true
}

func TestStripNoticesWhatAkinMayNotChange(t *testing.T) {
	r := expandRequest(t, &Request{Body: []byte(carRental)}, nil)
	if err := strip([]byte(carRental), r.Body); err != nil {
		t.Fatal(err)
	}
	for was, is := range map[string]string{
		`"car rental"`:    `"car  rental"`,
		`{"query":`:       `{ "query":`,
		`"should":`:       `"minimum_should_match":1,"should":`,
		`{"term":{"body"`: `{"match":{"body"`,
		`]}}}`:            `]}},"size":10}`,
	} {
		changed := strings.Replace(string(r.Body), was, is, 1)
		if changed == string(r.Body) {
			t.Fatalf("%s is not in %s", was, r.Body)
		}
		if strip([]byte(carRental), []byte(changed)) == nil {
			t.Errorf("%s became %s, and nobody noticed", was, is)
		}
	}
}
