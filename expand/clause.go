package expand

import (
	"bytes"
	"errors"
	"math"
	"slices"
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
	// depth is the number of queries that it stands in.
	depth int
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
	// termwise says that the clause looks for each term in all fields together
	// (cross_fields, combined_fields): its targets have the same terms and share
	// the selection of the first, and an added term is looked for in all fields.
	termwise bool
	// prefix says that the last term of the text is the beginning of one: it is
	// left out of the targets' analysis.
	prefix bool
	// patterns says that the clause takes patterns for names of fields.
	patterns bool
	// phrase says that the clause looks for a phrase.
	phrase bool
	// note says that there is nothing to rewrite: the clause only tells why a
	// query of another kind is left alone.
	note bool
	// plain says that the score is the sum of the scores of the text's terms,
	// so that another way of scoring the terms may take its place.
	plain bool
	// fuzzy says that the original finds words that are spelled alike.
	fuzzy bool
	// reason says why the clause is left alone, "" where it is not.
	reason Reason
	// form is what is written, and formReason why it is not the one
	// configured.
	form       Form
	formReason Reason
	// rescored says that the form orders the best hits of the linear one anew.
	rescored bool
	// exact says that the form is FormHard, and modeReason why the search is not
	// ranked in the mode configured.
	exact      bool
	modeReason Reason
}

// groups reports whether the clause counts how many terms of the text match.
func (c *clause) groups() bool { return c.every || len(c.minimum) > 0 }

// A target is one field of a clause.
type target struct {
	field string
	// boost is the field's own factor, as in "title^3".
	boost    float64
	analysis *Analysis
	// rows are nil on the later pages of a point in time, which need none.
	rows Rows
	// matrix names the version of the rows, for explanations.
	matrix string
	// weights are set in the modes that need them, nil where none are bound.
	weights Weights
	// named says that a matrix is bound to the field by its full name.
	named  bool
	reason Reason
	// resolved are indices that no matrix is bound to.
	resolved []string
	stats    Statistics
	// docFreqs are the live document frequencies of the selection's terms.
	docFreqs []int64
	sel      selection
	// exact is what FormHard needs, nil in other forms.
	exact *exact
	// truncated says that terms of FormHard were taken back.
	truncated bool
	// found is how many of the selection's terms, its best ones, a search looks
	// for whose best hits are ordered anew by all of them.
	found int
}

// Errors of a clause's options.
var (
	errOptions    = errors.New("options not understood")
	errManyFields = errors.New("too many fields")
)

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
	// With "and" no word is optional. A share of none is none, but where the
	// engines are to find three of none they find nothing.
	if n, err := strconv.Atoi(strings.Trim(string(c.minimum), `" `)); err == nil && n > 0 && c.every {
		c.same = true
	}
	switch {
	case c.reason != "" || err == nil:
	case errors.Is(err, errManyFields):
		c.reason = ReasonTooManyClauses
	default:
		c.reason = ReasonOptions
	}
	return nil
}

// matchBoolPrefix reads a match_bool_prefix: a match whose last term is the
// beginning of one.
func (c *clause) matchBoolPrefix(raw []byte) error {
	err := c.match(raw)
	c.beginning()
	return err
}

// beginning says that the last term is the beginning of one. How many of the
// terms match is then counted by the original alone.
func (c *clause) beginning() {
	c.prefix, c.plain = true, false
	c.same = c.same || c.groups()
}

// matchPhrasePrefix reads a match_phrase_prefix: a phrase whose last term is
// the beginning of one.
func (c *clause) matchPhrasePrefix(raw []byte) error {
	c.prefix = true
	return c.matchPhrase(raw)
}

// matchPhrase reads a match_phrase.
func (c *clause) matchPhrase(raw []byte) error {
	err := c.match(raw)
	c.sequence()
	return err
}

// sequence says that the clause looks for a phrase, which only the original
// can: related words change the order of what it finds.
func (c *clause) sequence() {
	c.phrase, c.same, c.plain = true, true, false
	c.every, c.minimum = false, nil
}

// matchOption takes the options that match, its phrases and multi_match share.
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
		c.plain, c.fuzzy = false, true
	case "zero_terms_query", "lenient", "_name", "prefix_length", "max_expansions", "fuzzy_transpositions",
		"fuzzy_rewrite", "auto_generate_synonyms_phrase_query", "cutoff_frequency", "slop":
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
	c.patterns = true
	kind, tie := "best_fields", false
	err := members(raw, func(name, value []byte) (err error) {
		switch string(name) {
		case "fields":
			c.targets, err = fields(value)
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
	switch kind {
	case "best_fields":
	case "most_fields", "bool_prefix":
		if !tie {
			c.tieBreaker = 1 // the sum of the fields
		}
		if kind == "bool_prefix" {
			c.beginning()
		}
	case "cross_fields":
		c.termwise, c.plain = true, false
	case "phrase", "phrase_prefix":
		c.prefix = kind == "phrase_prefix"
		c.sequence()
	default:
		err = errOptions
	}
	return c.options(err)
}

// combinedFields reads {"query": "text", "fields": […]}, which scores several
// fields as if they were one.
func (c *clause) combinedFields(raw []byte) error {
	c.patterns, c.termwise, c.plain = true, true, false
	err := members(raw, func(name, value []byte) (err error) {
		if string(name) == "fields" {
			c.targets, err = fields(value)
			return err
		}
		return c.matchOption(name, value)
	})
	return c.options(err)
}

// queryString reads {"query": "text", "default_field": …} of a query_string
// whose text uses none of the operators.
func (c *clause) queryString(raw []byte) error {
	c.patterns = true
	err := members(raw, func(name, value []byte) (err error) {
		switch string(name) {
		case "default_field":
			var field string
			field, err = text(value)
			c.targets = []target{{field: field, boost: 1}}
		case "fields":
			c.targets, err = fields(value)
		case "analyze_wildcard", "allow_leading_wildcard", "enable_position_increments", "escape", "phrase_slop",
			"quote_analyzer", "quote_field_suffix", "max_determinized_states", "time_zone", "rewrite":
		default:
			err = c.matchOption(name, value)
		}
		return err
	})
	// The engine combines several fields term by term.
	c.plain = c.plain && len(c.targets) == 1
	if err == nil && hasSyntax(c.text, `=&|><!(){}[]^"~*?:\/`) {
		c.reason = ReasonSyntax
	}
	return c.options(err)
}

// simpleQueryString reads {"query": "text", "fields": […]} of a
// simple_query_string whose text uses none of the operators.
func (c *clause) simpleQueryString(raw []byte) error {
	c.patterns = true
	c.tieBreaker = 1 // the engine adds up the fields
	err := members(raw, func(name, value []byte) (err error) {
		switch string(name) {
		case "fields":
			c.targets, err = fields(value)
		case "flags", "analyze_wildcard", "quote_field_suffix", "fuzzy_prefix_length", "fuzzy_max_expansions":
		default:
			err = c.matchOption(name, value)
		}
		return err
	})
	// The engine takes the text apart at blanks before it analyzes the words,
	// and counts these.
	c.plain = c.plain && len(c.targets) == 1
	c.same = c.same || c.groups()
	if err == nil && hasSyntax(c.text, `+|"*()~\`) {
		c.reason = ReasonSyntax
	}
	return c.options(err)
}

// hasSyntax reports whether text uses anything of a query syntax: one of the
// operators, plus or minus before a word or alone, or a word that is an
// operator in the syntax of Lucene.
func hasSyntax(text, operators string) bool {
	if strings.ContainsAny(text, operators) {
		return true
	}
	for word := range strings.FieldsSeq(text) {
		switch {
		case word[0] == '+', word[0] == '-', word == "AND", word == "OR", word == "NOT", word == "TO":
			return true
		}
	}
	return false
}

// fields reads a list of field names with boosts, or one.
func fields(raw []byte) ([]target, error) {
	if raw[0] == '"' {
		t, err := fieldTarget(raw)
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
		t, err := fieldTarget(value)
		if err != nil {
			return nil, err
		}
		// Of a field that stands twice the engines keep the last boost.
		if i := slices.IndexFunc(out, func(o target) bool { return o.field == t.field }); i >= 0 {
			out = slices.Delete(out, i, i+1)
		}
		if out = append(out, t); len(out) > maxTargets {
			return nil, errManyFields
		}
	}
	return out, nil
}

// fieldTarget reads a field name, perhaps with a boost.
func fieldTarget(raw []byte) (target, error) {
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
