package expand

import (
	"bytes"
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// A clause is one query of the body that looks for a text in fields, with
// what its rewriting needs to know of it.
type clause struct {
	// at is where the whole query object stands, {"match": …}.
	at span
	// path leads to it.
	path string
	// text is what is looked for.
	text string
	// targets are the fields, in the order of the clause.
	targets []target
	// boost multiplies the score of the clause.
	boost float64
	// tieBreaker combines the fields: the best field's score plus tieBreaker
	// times the others'.
	tieBreaker float64
	// analyzer is the analyzer the clause names, "" for the fields' own.
	analyzer string
	// every says that each term of the text has to match ("operator": "and").
	every bool
	// minimum is the value of minimum_should_match as it stands in the body,
	// empty where there is none.
	minimum []byte
	// same says that the clause has to match what the original matches, though
	// the request's matching be to widen.
	same bool
	// plain says that the score is the sum of the scores of the text's terms,
	// so that another way of scoring the terms may take its place.
	plain bool
	// reason says why the clause is left alone, "" where it is not.
	reason Reason
	// form is what is written, and formReason why it is not the one
	// configured.
	form       Form
	formReason Reason
}

// groups reports whether the clause counts how many terms of the text match.
func (c *clause) groups() bool { return c.every || len(c.minimum) > 0 }

// A target is one field of a clause.
type target struct {
	field string
	// boost is the field's own factor, as in "title^3".
	boost    float64
	analysis *Analysis
	rows     Rows
	reason   Reason
	stats    Statistics
	sel      selection
}

var errOptions = errors.New("options not understood")

// members calls f for each member of an object that is known to be JSON; the
// name is passed without quotes and escapes. It reports errOptions where raw is
// no object.
func members(raw []byte, f func(name, value []byte) error) error {
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw))
	if dec.PeekKind() != '{' {
		return errOptions
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for dec.PeekKind() != '}' {
		name, err := dec.ReadValue()
		if err != nil {
			return err
		}
		end := int(dec.InputOffset())
		plain, err := plainName(raw[end-len(name) : end]) // the decoder reuses what it returns
		if err != nil {
			return err
		}
		value, err := dec.ReadValue()
		if err != nil {
			return err
		}
		end = int(dec.InputOffset())
		if err := f(plain, raw[end-len(value):end]); err != nil {
			return err
		}
	}
	return nil
}

// match reads {"field": "text"} or {"field": {"query": "text", …}}.
func (c *clause) match(raw []byte) error {
	var options []byte
	fields := 0
	err := members(raw, func(name, value []byte) error {
		fields++
		options = value
		c.targets = []target{{field: string(name), boost: 1}}
		return nil
	})
	if err == nil && fields != 1 {
		err = errOptions
	}
	if err == nil && options[0] != '{' {
		c.text, err = scalar(options)
		return c.options(err)
	}
	if err == nil {
		err = members(options, c.matchOption)
	}
	return c.options(err)
}

// maxBoost bounds the boosts of a clause and its fields together. The engines
// compute in 32-bit floats and refuse what is no number there.
const maxBoost = 1e30

// options turns an error of reading a clause's options into the reason to
// leave it alone.
func (c *clause) options(err error) error {
	for i := range c.targets {
		if c.boost*c.targets[i].boost > maxBoost {
			err = errOptions
		}
	}
	if err != nil && c.reason == "" {
		c.reason = ReasonOptions
	}
	return nil
}

// matchOption takes the options that match and multi_match share.
func (c *clause) matchOption(name, value []byte) (err error) {
	switch string(name) {
	case "query":
		c.text, err = scalar(value)
	case "operator", "default_operator":
		return c.operator(value)
	case "minimum_should_match":
		if string(value) != "null" {
			c.minimum = value
		}
	case "analyzer":
		c.analyzer, err = text(value)
	case "boost":
		c.boost, err = number(value)
	case "tie_breaker":
		c.tieBreaker, err = number(value)
	case "fuzziness":
		c.plain = false
	case "zero_terms_query", "lenient", "_name", "prefix_length", "max_expansions", "fuzzy_transpositions",
		"fuzzy_rewrite", "auto_generate_synonyms_phrase_query", "cutoff_frequency":
		// They act on the original alone, which stays as it is.
	default:
		err = errOptions
	}
	return err
}

func (c *clause) operator(value []byte) error {
	op, err := text(value)
	switch {
	case err != nil:
		return err
	case strings.EqualFold(op, "and"):
		c.every = true
	case !strings.EqualFold(op, "or"):
		return errOptions
	}
	return nil
}

// multiMatch reads {"query": "text", "fields": […], "type": …}.
func (c *clause) multiMatch(raw []byte) error {
	kind, tie := "best_fields", false
	err := members(raw, func(name, value []byte) (err error) {
		switch string(name) {
		case "fields":
			c.targets, err = c.fields(value)
		case "type":
			kind, err = text(value)
		case "tie_breaker":
			tie = true
			c.tieBreaker, err = number(value)
		default:
			err = c.matchOption(name, value)
		}
		return err
	})
	if len(c.targets) == 0 && c.reason == "" {
		c.reason = ReasonFields
	}
	switch {
	case kind == "most_fields" && !tie:
		c.tieBreaker = 1 // the sum of the fields
	case kind != "best_fields" && kind != "most_fields":
		c.reason = ReasonType
	}
	return c.options(err)
}

// queryString reads {"query": "text", "default_field": …} of a query_string
// whose text uses none of the operators.
func (c *clause) queryString(raw []byte) error {
	err := members(raw, func(name, value []byte) (err error) {
		switch string(name) {
		case "default_field":
			var field string
			field, err = text(value)
			c.targets = []target{{field: field, boost: 1}}
		case "fields":
			c.targets, err = c.fields(value)
			// The engine combines the fields term by term.
			c.plain = c.plain && len(c.targets) == 1
		case "analyze_wildcard", "allow_leading_wildcard", "enable_position_increments", "escape":
		default:
			err = c.matchOption(name, value)
		}
		return err
	})
	if err == nil && hasSyntax(c.text) {
		c.reason = ReasonSyntax
	}
	for i := range c.targets {
		if strings.Contains(c.targets[i].field, "*") {
			c.reason = ReasonFields
		}
	}
	return c.options(err)
}

// hasSyntax reports whether text uses anything of the Lucene query syntax.
func hasSyntax(text string) bool {
	if strings.ContainsAny(text, `+-=&|><!(){}[]^"~*?:\/`) {
		return true
	}
	for word := range strings.FieldsSeq(text) {
		if word == "AND" || word == "OR" || word == "NOT" || word == "TO" {
			return true
		}
	}
	return false
}

// fields reads a list of field names with boosts, or one.
func (c *clause) fields(raw []byte) ([]target, error) {
	if raw[0] == '"' {
		t, err := c.fieldTarget(raw)
		return []target{t}, err
	}
	if raw[0] != '[' {
		return nil, errOptions
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw))
	if _, err := dec.ReadToken(); err != nil {
		return nil, err
	}
	var out []target
	for dec.PeekKind() != ']' {
		value, err := dec.ReadValue()
		if err != nil {
			return nil, err
		}
		t, err := c.fieldTarget(value)
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

func (c *clause) fieldTarget(raw []byte) (target, error) {
	name, err := text(raw)
	if err != nil {
		return target{}, err
	}
	t := target{field: name, boost: 1}
	if field, boost, ok := strings.Cut(name, "^"); ok {
		t.field = field
		if t.boost, err = number([]byte(boost)); err != nil {
			return t, err
		}
	}
	if strings.Contains(t.field, "*") {
		c.reason = ReasonFields
	}
	return t, nil
}

// scalar returns what the engine takes as the text of a query: a string, or a
// number or boolean as it is written.
func scalar(raw []byte) (string, error) {
	switch raw[0] {
	case '"':
		return text(raw)
	case '{', '[', 'n':
		return "", errOptions
	default:
		return string(raw), nil
	}
}

// text returns the value of a JSON string.
func text(raw []byte) (string, error) {
	if raw[0] != '"' {
		return "", errOptions
	}
	plain, err := plainName(raw)
	return string(plain), err
}

// number returns a finite JSON number of at least 0; the engines also take it
// as a string.
func number(raw []byte) (float64, error) {
	s := strings.Trim(string(raw), `"`)
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || math.Signbit(v) || !(v <= maxBoost) {
		return 0, errOptions
	}
	return v, nil
}
