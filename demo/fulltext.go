package demo

import (
	"strings"
)

// textOptions are what the full-text queries have in common.
type textOptions struct {
	and       bool
	minShould string
	analyzer  string
	lenient   bool
	zeroAll   bool // a text without terms matches everything
}

// options reads the members that the full-text queries have in common.
func (p *parser) options(a *args, operatorKey string) (textOptions, error) {
	operator := strings.ToLower(a.str(operatorKey, "or"))
	if operator != "or" && operator != "and" {
		return textOptions{}, badRequest("illegal_argument_exception", "operator needs to be either OR or AND, but not [%s]", operator)
	}
	o := textOptions{
		and:       operator == "and",
		minShould: a.str("minimum_should_match", ""),
		analyzer:  a.str("analyzer", ""),
		lenient:   a.boolean("lenient", false),
	}
	if o.analyzer != "" && p.ix.analyzers[o.analyzer] == nil {
		return o, badRequest("query_shard_exception", "[%s] analyzer [%s] not found", a.name, o.analyzer)
	}
	a.boolean("auto_generate_synonyms_phrase_query", true) // there are no synonyms here
	return o, nil
}

// zeroTerms reads what a text without terms is to match.
func (o *textOptions) zeroTerms(a *args) error {
	switch zero := strings.ToLower(a.str("zero_terms_query", "none")); zero {
	case "none":
	case "all":
		o.zeroAll = true
	default:
		return parsingError("Unsupported zero_terms_query value [%s]", zero)
	}
	return nil
}

func (p *parser) match(a *args) (query, error) {
	field, inner, err := fieldOf(a, "query")
	if err != nil {
		return nil, err
	}
	value, ok := inner.take("query")
	if !ok {
		return nil, parsingError("No text specified for text query")
	}
	o, err := p.options(inner, "operator")
	if err != nil {
		return nil, err
	}
	if err := o.zeroTerms(inner); err != nil {
		return nil, err
	}
	q, err := p.fullText(field, value, o)
	return p.finish(inner, q, err)
}

// fullText searches one field for a text.
func (p *parser) fullText(field string, value any, o textOptions) (query, error) {
	text, ok := textOf(value)
	if !ok {
		return nil, parsingError("[match] unknown token for the text of field [%s]", field)
	}
	t := p.ix.mapping.fields[field]
	if t == nil {
		return matchNone(), nil
	}
	if t.kind != textField {
		q, err := p.exact(field, value)
		if err != nil && o.lenient {
			return matchNone(), nil
		}
		return q, err
	}
	name := t.searchAnalyzer
	if o.analyzer != "" {
		name = o.analyzer
	}
	return p.terms(field, p.ix.analyzers[name].terms(text), o)
}

// terms combines the terms of a text.
func (p *parser) terms(field string, terms []string, o textOptions) (query, error) {
	var q boolQuery
	for _, term := range terms {
		q.should = append(q.should, termQuery{field, term})
	}
	p.clauses += max(0, len(terms)-1)
	switch {
	case len(terms) == 0 && o.zeroAll:
		return matchAll(), nil
	case len(terms) == 0:
		return matchNone(), nil
	case len(terms) == 1:
		return q.should[0], nil // minimum_should_match means nothing to a single term, as in the engines
	case o.and:
		q.must, q.should = q.should, nil
		return q, nil
	}
	q.minShould = 1
	if o.minShould != "" {
		n, err := minimumShouldMatch(o.minShould, len(terms))
		if err != nil {
			return nil, err
		}
		q.minShould = max(1, n)
	}
	return q, nil
}

func (p *parser) multiMatch(a *args) (query, error) {
	value, ok := a.take("query")
	if !ok {
		return nil, parsingError("No text specified for multi_match query")
	}
	o, err := p.options(a, "operator")
	if err != nil {
		return nil, err
	}
	if err := o.zeroTerms(a); err != nil {
		return nil, err
	}
	q, err := p.overFields(a, value, a.strings("fields"), o)
	return p.finish(a, q, err)
}

// overFields searches several fields for one text and combines them as the
// type says. No fields stands for every field.
func (p *parser) overFields(a *args, value any, fields []string, o textOptions) (query, error) {
	kind := a.str("type", "best_fields")
	tie := 0.0
	switch kind {
	case "best_fields":
	case "most_fields":
		tie = 1
	default:
		return nil, unsupported("[%s] of type [%s]", a.name, kind)
	}
	q := disMaxQuery{tie: float32(a.number("tie_breaker", tie))}
	if len(fields) == 0 {
		fields = []string{"*"}
	}
	for _, field := range fields {
		pattern, boost, err := splitBoost(field)
		if err != nil {
			return nil, err
		}
		each := o
		each.lenient = o.lenient || pattern == "*"
		for _, name := range p.ix.mapping.matching(pattern) {
			sub, err := p.fullText(name, value, each)
			if err != nil {
				return nil, err
			}
			q.clauses = append(q.clauses, boosted(sub, boost))
		}
	}
	switch len(q.clauses) {
	case 0:
		return matchNone(), nil
	case 1:
		return q.clauses[0], nil
	default:
		return q, nil
	}
}

func (p *parser) queryString(a *args) (query, error) {
	text := a.str("query", "")
	if operators(text) {
		return nil, unsupported("operators in a query string, found in [%s]", text)
	}
	o, err := p.options(a, "default_operator")
	if err != nil {
		return nil, err
	}
	fields := a.strings("fields")
	if field := a.str("default_field", ""); field != "" {
		fields = append(fields, field)
	}
	if strings.TrimSpace(text) == "" {
		return p.finish(a, matchNone(), nil)
	}
	if strings.TrimSpace(text) == "*" {
		return p.finish(a, matchAll(), nil)
	}
	q, err := p.overFields(a, text, fields, o)
	return p.finish(a, q, err)
}

// operators reports whether text holds anything that Lucene's query syntax
// reads as more than words. A single star, all documents, is allowed.
func operators(text string) bool {
	if strings.TrimSpace(text) == "*" {
		return false
	}
	if strings.ContainsAny(text, `:"*?~^()[]{}\/`) || strings.Contains(text, "&&") || strings.Contains(text, "||") {
		return true
	}
	for word := range strings.FieldsSeq(text) {
		switch word {
		case "AND", "OR", "NOT":
			return true
		}
		if strings.ContainsRune("+-!<>=", rune(word[0])) {
			return true
		}
	}
	return false
}
