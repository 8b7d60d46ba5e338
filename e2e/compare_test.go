package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
)

// A comparison compares the answers of two searches that should agree except
// for the last digits of scores.
type comparison struct {
	// tolerance is the largest relative difference of two scores.
	tolerance float64
	// problems are the differences.
	problems []string
}

// ignoredMembers of answers differ from one run to the next, or, terminated_early,
// tell that OpenSearch 3 has answered a single term from its statistics.
var ignoredMembers = []string{"took", "terminated_early", "_scroll_id", "pit_id", "profile", "_explanation", "skipped", "num_reduce_phases"}

// answers compares two answers.
func (c *comparison) answers(want, got []byte) {
	a, errA := decodeAnswer(want)
	b, errB := decodeAnswer(got)
	if errA != nil || errB != nil {
		c.problem("answer", "no JSON: %v, %v", errA, errB)
		return
	}
	c.value("answer", a, b)
}

func decodeAnswer(answer []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(answer))
	decoder.UseNumber()
	var v any
	err := decoder.Decode(&v)
	return v, err
}

func (c *comparison) problem(path, format string, args ...any) {
	c.problems = append(c.problems, path+": "+fmt.Sprintf(format, args...))
}

// value compares any two values.
func (c *comparison) value(path string, want, got any) {
	switch want := want.(type) {
	case map[string]any:
		if got, ok := got.(map[string]any); ok {
			c.object(path, want, got)
			return
		}
	case []any:
		if got, ok := got.([]any); ok {
			c.list(path, want, got)
			return
		}
	case json.Number:
		if got, ok := got.(json.Number); ok && c.close(want, got) {
			return
		}
	default:
		if want == got {
			return
		}
	}
	c.problem(path, "%v, want %v", got, want)
}

func (c *comparison) object(path string, want, got map[string]any) {
	names := map[string]bool{}
	for _, o := range []map[string]any{want, got} {
		for name := range o {
			names[name] = !slices.Contains(ignoredMembers, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		w, inWant := want[name]
		g, inGot := got[name]
		switch {
		case !names[name]:
		case inWant != inGot:
			c.problem(path, "%s: %v, want %v", name, g, w)
		default:
			c.value(path+"."+name, w, g)
		}
	}
}

func (c *comparison) list(path string, want, got []any) {
	if len(want) != len(got) {
		c.problem(path, "%d, want %d: %.200v, want %.200v", len(got), len(want), got, want)
		return
	}
	if len(want) > 0 && hitID(want[0]) != "" {
		c.hits(path, want, got)
		return
	}
	for i := range want {
		c.value(fmt.Sprintf("%s[%d]", path, i), want[i], got[i])
	}
}

// close compares two numbers: digit by digit, or as scores.
func (c *comparison) close(want, got json.Number) bool {
	if want == got {
		return true
	}
	return relative(number(want), number(got)) <= c.tolerance
}

// relative returns the relative difference of two numbers.
func relative(a, b float64) float64 { return math.Abs(a-b) / max(math.Abs(a), math.Abs(b), 1e-30) }

func number(n json.Number) float64 {
	f, err := n.Float64()
	if err != nil {
		return math.NaN()
	}
	return f
}

// hits compares two lists of hits. Hits with the same score may be in any order.
func (c *comparison) hits(path string, want, got []any) {
	for from := 0; from < len(want); {
		to := from + 1
		for to < len(want) && c.tied(want[to-1], want[to]) {
			to++
		}
		found := map[string]any{}
		for _, h := range got[from:to] {
			found[hitID(h)] = h
		}
		for _, h := range want[from:to] {
			if g, ok := found[hitID(h)]; ok {
				c.value(path+"["+hitID(h)+"]", h, g)
				delete(found, hitID(h))
			}
		}
		atEdge := from == 0 || to == len(want)
		for id, h := range found {
			switch {
			case !atEdge:
				c.problem(path, "%s in place %d to %d of %v, want %v", id, from, to, hitIDs(got), hitIDs(want))
			case !c.tied(want[from], h):
				c.problem(path, "%s with %v in place %d to %d, want a score of %v", id, hitScore(h), from, to, hitScore(want[from]))
			}
		}
		from = to
	}
}

// tied reports whether the order of two hits can be the other one: where all
// that they are sorted by is equal, or scores are nearly so.
func (c *comparison) tied(a, b any) bool {
	x, y := sortValues(a), sortValues(b)
	if len(x) != len(y) {
		return false
	}
	for i := range x {
		m, isNumber := x[i].(json.Number)
		n, both := y[i].(json.Number)
		switch {
		case x[i] == y[i]:
		case isNumber && both:
			return relative(number(m), number(n)) <= c.tolerance
		default:
			return false
		}
	}
	return true
}

// sortValues returns what a hit is sorted by: its score where it says nothing.
func sortValues(hit any) []any {
	h, _ := hit.(map[string]any)
	if values, ok := h["sort"].([]any); ok {
		return values
	}
	return []any{h["_score"]}
}

// hitID returns what names a hit in a list: its id, and for a nested one, all
// of which have the id of the document, its place in that.
func hitID(hit any) string {
	h, _ := hit.(map[string]any)
	id, _ := h["_id"].(string)
	if place, ok := h["_nested"]; ok {
		id += fmt.Sprint(place)
	}
	return id
}

func hitIDs(hits []any) []string {
	var ids []string
	for _, h := range hits {
		ids = append(ids, hitID(h))
	}
	return ids
}

func hitScore(hit any) json.Number {
	h, _ := hit.(map[string]any)
	n, _ := h["_score"].(json.Number)
	return n
}
