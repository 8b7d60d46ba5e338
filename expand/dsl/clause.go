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

// lastIsPrefix says that the last term is a prefix.
func (c *Clause) lastIsPrefix() { c.Prefix, c.Additive = true, false }

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
	case "max_expansions":
		c.MaxExpansions = value
	case "fuzziness":
		c.Additive, c.Fuzzy = false, true
	case "zero_terms_query", "lenient", "_name", "prefix_length", "fuzzy_transpositions",
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
func (c *Clause) multiMatch(raw []byte) { c.settle(c.typed(raw, nil)) }

// typed reads a query with several fields and a type that says how to combine
// them. own and ignored are as for several.
func (c *Clause) typed(raw []byte, own func(name string, value []byte) (bool, error), ignored ...string) error {
	kind := "best_fields"
	tie, named := false, false
	err := c.several(raw, func(name string, value []byte) (taken bool, err error) {
		tie = tie || name == "tie_breaker"
		named = named || name == "_name"
		switch {
		case name == "type":
			kind, err = text(value)
			return true, err
		case own != nil:
			return own(name, value)
		}
		return false, nil
	}, ignored...)
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
		return errOptions
	}
	if !c.Phrase {
		c.Slop = 0
	}
	return err
}

// combinedFields reads a query that scores several fields like one.
func (c *Clause) combinedFields(raw []byte) {
	c.Across, c.Additive = AsOne, false
	c.settle(c.several(raw, nil))
}

// queryString reads a query_string whose text uses no operators. The engine
// then searches like multi_match, without fuzziness.
func (c *Clause) queryString(raw []byte) {
	operators, escaped := `=&|><!(){}[]^"~*?:\/+-`, false
	err := c.typed(raw, func(name string, value []byte) (taken bool, err error) {
		switch name {
		case "default_field":
			var field string
			field, err = text(value)
			c.Fields = []BoostedField{{field, 1}}
		case "phrase_slop":
			c.Slop, err = number(value)
		case "escape":
			if strings.Trim(string(value), `"`) == isTrue {
				operators, escaped = "<>", true // which the engine does not escape
			}
		default:
			return false, nil
		}
		return true, err
	}, "fuzziness", "fuzzy_prefix_length", "fuzzy_max_expansions", "analyze_wildcard", "allow_leading_wildcard",
		"enable_position_increments", "quote_analyzer", "quote_field_suffix", "max_determinized_states", "time_zone", "rewrite")
	if len(c.MinimumShouldMatch) > 0 && !c.TermCentric() {
		c.Across = Apart
		c.countedOfOne()
	}
	switch {
	case err != nil || !hasSyntax(c.Text, operators, "AND", "OR", "NOT"):
	case escaped:
		c.Reason = reason.Syntax
		c.leave("escape")
	default:
		c.takeApart("query_string", raw, queryParts)
	}
	c.settle(err)
}

// simpleQueryString reads one whose text uses no operators. The engine splits
// the text at blanks before analysis and searches for each word in all fields.
func (c *Clause) simpleQueryString(raw []byte) {
	c.TieBreaker = 1 // the engine adds up the fields
	splits, crosses := true, false
	all := true // flags
	err := c.several(raw, func(name string, value []byte) (taken bool, err error) {
		switch name {
		case "flags":
			splits = splitsAtBlanks(string(value))
			all = strings.EqualFold(string(value), `"all"`)
		case "type": // Elasticsearch 8
			var kind string
			kind, err = text(value)
			switch kind {
			case "best_fields", "cross_fields":
				c.TieBreaker = 0
				crosses = kind == "cross_fields"
			case "most_fields":
			default:
				err = errOptions
			}
		default:
			return false, nil
		}
		return true, err
	}, "analyze_wildcard", "quote_field_suffix", "fuzzy_prefix_length", "fuzzy_max_expansions", "all_fields", "locale", "lowercase_expanded_terms")
	one := c.oneField()
	c.Additive = c.Additive && len(c.Fields) == 1
	switch {
	case crosses && !splits:
		err = errOptions
	case !splits:
		c.countedOfOne()
	case !one && (crosses || c.Counted()):
		c.Across, c.Additive = ByTerm, false
	}
	switch {
	case err != nil || !hasSyntax(c.Text, `+|"*()~\+-`):
	case !all:
		c.Reason = reason.Syntax
		c.leave("flags")
	default:
		c.takeApart("simple_query_string", raw, simpleParts)
	}
	if splits && (len(c.MinimumShouldMatch) > 0 || c.OperatorAnd && !one) { // all words of one field are all its terms
		c.Words = len(strings.FieldsFunc(c.Text, func(r rune) bool { return strings.ContainsRune(" \t\r\n", r) }))
	}
	c.settle(err)
}

// countedOfOne has words counted in a single field only: in several the engine
// does not count, but does if only one of them exists.
func (c *Clause) countedOfOne() {
	if len(c.MinimumShouldMatch) > 0 && len(c.Fields) > 1 {
		c.MinimumShouldMatch, c.Matches = nil, max(c.Matches, Same)
	}
}

// splitsAtBlanks reports whether the flags of a simple_query_string have the
// text split at blanks. The bit is that of Lucene's SimpleQueryParser.
func splitsAtBlanks(flags string) bool {
	const blanks = 1 << 7
	flags = strings.ToUpper(strings.Trim(flags, `"`))
	n, err := strconv.Atoi(flags)
	return err == nil && n&blanks != 0 || flags == "" || strings.Contains(flags, "ALL") || strings.Contains(flags, "WHITESPACE")
}

// hasSyntax reports whether text uses one of the words or operators. A plus or
// minus at the end of these is one only at the start of a word.
func hasSyntax(text, operators string, words ...string) bool {
	inside := strings.TrimRight(operators, "+-")
	for word := range strings.FieldsSeq(text) {
		if strings.Contains(operators[len(inside):], word[:1]) || slices.Contains(words, word) {
			return true
		}
	}
	return strings.ContainsAny(text, inside)
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
