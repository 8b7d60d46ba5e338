package dsl

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/internal/jsonspan"
)

// Errors in a clause's options.
var (
	errOptions    = errors.New("options not understood")
	errManyFields = errors.New("too many fields")
)

// match reads {"field": "text"} or {"field": {"query": "text", …}}.
func (c *Clause) match(raw []byte) {
	var options []byte
	fields := 0
	err := jsonspan.Members(raw, func(name, value []byte) error {
		fields++
		options = value
		c.Fields = []BoostedField{{string(name), 1}}
		return nil
	})
	switch {
	case err != nil:
	case fields != 1:
		err = errOptions
	case options[0] != '{':
		c.Text, err = scalar(options)
	default:
		err = jsonspan.Members(options, func(name, value []byte) error { return c.option(string(name), value) })
	}
	c.settle(err)
}

// maxBoost limits the product of a clause's and a field's boosts. The engines
// compute in 32-bit floats and refuse what does not fit.
const maxBoost = 1e30

// settle turns an error into the reason to leave the clause alone.
func (c *Clause) settle(err error) {
	for _, f := range c.Fields {
		if c.Boost*f.Boost > maxBoost {
			err = errOptions
		}
	}
	// With "and" no word is optional. A percentage of none is none, but engines
	// find nothing if three of none must match.
	if c.OperatorAnd {
		if n, err := strconv.Atoi(strings.Trim(string(c.MinimumShouldMatch), `" `)); err == nil && n > 0 {
			c.Matches = Same
		}
	}
	switch {
	case c.Reason != "" || err == nil:
	case errors.Is(err, errManyFields):
		c.Reason = reason.TooManyClauses
	default:
		c.Reason = reason.Options
	}
}

// matchBoolPrefix reads a match whose last term is a prefix.
func (c *Clause) matchBoolPrefix(raw []byte) {
	c.match(raw)
	c.lastIsPrefix()
}

// lastIsPrefix says that the last term is a prefix. Then only the original
// counts how many terms match.
func (c *Clause) lastIsPrefix() {
	c.Prefix, c.Additive = true, false
	if c.Counted() {
		c.Matches = Same
	}
}

// Counted reports whether the clause counts how many terms of the text match.
func (c *Clause) Counted() bool { return c.OperatorAnd || len(c.MinimumShouldMatch) > 0 }

// matchPhrasePrefix reads a phrase whose last term is a prefix.
func (c *Clause) matchPhrasePrefix(raw []byte) {
	c.Prefix = true
	c.matchPhrase(raw)
}

func (c *Clause) matchPhrase(raw []byte) {
	c.match(raw)
	c.isPhrase()
}

// isPhrase says that the clause searches for a phrase. Only the original and
// its readings can, see package terms. Related words change the order of what
// these find.
func (c *Clause) isPhrase() {
	c.Phrase = true
	c.Matches = Same
	c.Additive = false
	c.OperatorAnd, c.MinimumShouldMatch = false, nil
}

// option reads an option that several kinds share.
func (c *Clause) option(name string, value []byte) (err error) {
	switch name {
	case "query":
		c.Text, err = scalar(value)
	case "operator", "default_operator":
		var op string
		op, err = text(value)
		c.OperatorAnd = c.OperatorAnd || strings.EqualFold(op, "and")
		if err == nil && !strings.EqualFold(op, "and") && !strings.EqualFold(op, "or") {
			err = errOptions
		}
	case "minimum_should_match":
		if string(value) != "null" {
			c.MinimumShouldMatch = value
		}
	case "analyzer":
		c.Analyzer, err = text(value)
	case "boost":
		c.Boost, err = number(value)
	case "tie_breaker":
		c.TieBreaker, err = number(value)
	case "slop":
		c.Slop, err = number(value)
	case "fuzziness":
		c.Additive, c.Fuzzy = false, true
	case "zero_terms_query", "lenient", "_name", "prefix_length", "max_expansions", "fuzzy_transpositions",
		"fuzzy_rewrite", "auto_generate_synonyms_phrase_query", "cutoff_frequency":
		// These affect only the original, which stays as it is.
	default:
		err = errOptions
	}
	return err
}

// several reads the options of a query with several fields. own reads those of
// the kind, or returns false; ignored ones affect only the original.
func (c *Clause) several(raw []byte, own func(name string, value []byte) (bool, error), ignored ...string) error {
	c.Patterns = true
	return jsonspan.Members(raw, func(n, value []byte) (err error) {
		name := string(n)
		if name == "fields" {
			c.Fields, err = fields(value)
			return err
		}
		if own != nil {
			if taken, err := own(name, value); taken {
				return err
			}
		}
		if slices.Contains(ignored, name) {
			return nil
		}
		return c.option(name, value)
	})
}

// multiMatch reads {"query": "text", "fields": […], "type": …}.
func (c *Clause) multiMatch(raw []byte) {
	kind := "best_fields"
	tie, named := false, false
	err := c.several(raw, func(name string, value []byte) (taken bool, err error) {
		tie = tie || name == "tie_breaker"
		named = named || name == "_name"
		if name == "type" {
			kind, err = text(value)
		}
		return name == "type", err
	})
	// A name belongs to one query. With all fields the engine skips those that
	// cannot contain the text.
	if !named && !slices.ContainsFunc(c.Fields, func(f BoostedField) bool { return f.Name == "*" }) {
		c.Across = ByField
	}
	switch kind {
	case "best_fields":
	case "most_fields", "bool_prefix":
		if !tie {
			c.TieBreaker = 1 // the sum over fields
		}
		if kind == "bool_prefix" {
			c.lastIsPrefix()
		}
	case "cross_fields":
		c.Across, c.Additive = ByTerm, false
	case "phrase", "phrase_prefix":
		c.Prefix = kind == "phrase_prefix"
		c.isPhrase()
	default:
		err = errOptions
	}
	c.settle(err)
}

// combinedFields reads a query that scores several fields like one.
func (c *Clause) combinedFields(raw []byte) {
	c.Across, c.Additive = AsOne, false
	c.settle(c.several(raw, nil))
}

// queryString reads a query_string whose text uses no operators.
func (c *Clause) queryString(raw []byte) {
	err := c.several(raw, func(name string, value []byte) (bool, error) {
		if name != "default_field" {
			return false, nil
		}
		field, err := text(value)
		c.Fields = []BoostedField{{field, 1}}
		return true, err
	}, "analyze_wildcard", "allow_leading_wildcard", "enable_position_increments", "escape", "phrase_slop",
		"quote_analyzer", "quote_field_suffix", "max_determinized_states", "time_zone", "rewrite")
	// The engine combines several fields by term.
	c.Additive = c.Additive && len(c.Fields) == 1
	if err == nil && hasSyntax(c.Text, `=&|><!(){}[]^"~*?:\/`) {
		c.Reason = reason.Syntax
	}
	c.settle(err)
}

// simpleQueryString reads one whose text uses no operators.
func (c *Clause) simpleQueryString(raw []byte) {
	c.TieBreaker = 1 // the engine adds up the fields
	err := c.several(raw, nil, "flags", "analyze_wildcard", "quote_field_suffix", "fuzzy_prefix_length", "fuzzy_max_expansions")
	// The engine splits the text at blanks before analysis and counts the words,
	// each in any of the fields. All of them are all terms.
	one := len(c.Fields) == 1 && !strings.Contains(c.Fields[0].Name, "*")
	c.Additive = c.Additive && len(c.Fields) == 1
	if len(c.MinimumShouldMatch) > 0 || c.OperatorAnd && !one {
		c.Matches = Same
	}
	if err == nil && hasSyntax(c.Text, `+|"*()~\`) {
		c.Reason = reason.Syntax
	}
	c.settle(err)
}

// hasSyntax reports whether text uses an operator, a plus or minus at the start
// of a word, or a word that is an operator in Lucene.
func hasSyntax(text, operators string) bool {
	for word := range strings.FieldsSeq(text) {
		if word[0] == '+' || word[0] == '-' || word == "AND" || word == "OR" || word == "NOT" || word == "TO" {
			return true
		}
	}
	return strings.ContainsAny(text, operators)
}

// fields reads a field name with boost, or a list of them.
func fields(raw []byte) (out []BoostedField, err error) {
	if raw[0] == '"' {
		f, err := fieldOf(raw)
		return []BoostedField{f}, err
	}
	err = jsonspan.Elements(raw, func(value []byte) error {
		f, err := fieldOf(value)
		// Of a repeated field the engines keep the last boost.
		out = slices.DeleteFunc(out, func(o BoostedField) bool { return o.Name == f.Name })
		if out = append(out, f); len(out) > MaxFields && err == nil {
			err = errManyFields
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func fieldOf(raw []byte) (BoostedField, error) {
	name, err := text(raw)
	if err != nil {
		return BoostedField{}, err
	}
	name, factor, ok := strings.Cut(name, "^")
	f := BoostedField{name, 1}
	if ok {
		f.Boost, err = number([]byte(factor))
	}
	return f, err
}

// scalar returns a string, or a number or boolean as written.
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

func text(raw []byte) (string, error) {
	if raw[0] != '"' {
		return "", errOptions
	}
	plain, err := jsonspan.Unquote(raw)
	return string(plain), err
}

// number returns a finite number of at least 0, possibly in quotes.
func number(raw []byte) (float64, error) {
	s := strings.Trim(string(raw), `"`)
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || math.Signbit(v) || !(v <= maxBoost) {
		return 0, errOptions
	}
	return v, nil
}
