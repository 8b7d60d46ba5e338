package demo

import (
	"cmp"
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
func (p *parser) options(a *args, operatorKey string) textOptions {
	operator := strings.ToLower(a.str(operatorKey, "or"))
	if operator != "or" && operator != "and" {
		p.fail(badRequest("illegal_argument_exception", "operator needs to be either OR or AND, but not [%s]", operator))
	}
	o := textOptions{
		and:       operator == "and",
		minShould: a.str("minimum_should_match", ""),
		analyzer:  a.str("analyzer", ""),
		lenient:   a.boolean("lenient", false),
	}
	if o.analyzer != "" && p.ix.analyzers[o.analyzer] == nil {
		p.fail(badRequest("query_shard_exception", "[%s] analyzer [%s] not found", a.name, o.analyzer))
		o.analyzer = ""
	}
	a.boolean("auto_generate_synonyms_phrase_query", true) // there are no synonyms here
	return o
}

// text reads the members that the match queries have in common.
func (p *parser) text(a *args) (value any, o textOptions) {
	value, ok := a.take("query")
	if !ok {
		p.fail(parsingError("No text specified for text query"))
	}
	o = p.options(a, "operator")
	zero := strings.ToLower(a.str("zero_terms_query", "none"))
	if zero != "none" && zero != "all" {
		p.fail(parsingError("Unsupported zero_terms_query value [%s]", zero))
	}
	o.zeroAll = zero == "all"
	return value, o
}

func (p *parser) match(a *args) query {
	field, inner := fieldOf(a, "query")
	value, o := p.text(inner)
	return p.finish(inner, p.fullText(field, value, o))
}

// fullText searches one field for a text.
func (p *parser) fullText(field string, value any, o textOptions) query {
	text, ok := textOf(value)
	if !ok {
		return p.refuse(parsingError("[match] unknown token for the text of field [%s]", field))
	}
	t := p.ix.mapping.fields[field]
	if t == nil {
		return matchNone()
	}
	if t.kind != textField {
		before := p.mistake
		q := p.exact(field, value)
		if o.lenient {
			p.mistake = before
		}
		return q
	}
	return p.terms(field, p.ix.analyzers[cmp.Or(o.analyzer, t.searchAnalyzer)].terms(text), o)
}

// terms combines the terms of a text.
func (p *parser) terms(field string, terms []string, o textOptions) query {
	var q boolQuery
	for _, term := range terms {
		q.should = append(q.should, termQuery{field, term})
	}
	p.clauses += max(0, len(terms)-1)
	switch {
	case len(terms) == 0 && o.zeroAll:
		return matchAll()
	case len(terms) == 0:
		return matchNone()
	case len(terms) == 1:
		return q.should[0] // as in the engines, minimum_should_match does not apply to a single term
	case o.and:
		q.must, q.should = q.should, nil
		return q
	}
	q.minShould = 1
	if o.minShould != "" {
		q.minShould = max(1, p.minimum(o.minShould, len(terms)))
	}
	return q
}

func (p *parser) multiMatch(a *args) query {
	value, o := p.text(a)
	return p.finish(a, p.overFields(a, value, a.strings("fields"), o))
}

// overFields searches several fields for one text and combines them as the
// type says. No fields stands for every field.
func (p *parser) overFields(a *args, value any, fields []string, o textOptions) query {
	kind := a.str("type", "best_fields")
	tie := 0.0
	switch kind {
	case "best_fields":
	case "most_fields":
		tie = 1
	default:
		return p.refuse(unsupported("[%s] of type [%s]", a.name, kind))
	}
	q := disMaxQuery{tie: float32(a.number("tie_breaker", tie))}
	if len(fields) == 0 {
		fields = []string{"*"}
	}
	for _, field := range fields {
		pattern, boost := p.splitBoost(field)
		each := o
		each.lenient = o.lenient || pattern == "*"
		for _, name := range p.ix.mapping.matching(pattern) {
			q.clauses = append(q.clauses, boosted(p.fullText(name, value, each), boost))
		}
	}
	switch len(q.clauses) {
	case 0:
		return matchNone()
	case 1:
		return q.clauses[0]
	default:
		return q
	}
}

func (p *parser) queryString(a *args) query {
	text := a.str("query", "")
	if operators(text) {
		return p.refuse(unsupported("operators in a query string, found in [%s]", text))
	}
	o := p.options(a, "default_operator")
	fields := a.strings("fields")
	if field := a.str("default_field", ""); field != "" {
		fields = append(fields, field)
	}
	switch strings.TrimSpace(text) {
	case "":
		return p.finish(a, matchNone())
	case "*":
		return p.finish(a, matchAll())
	}
	return p.finish(a, p.overFields(a, text, fields, o))
}

// operators reports whether text has anything that Lucene's query syntax reads
// as more than words. A single star, all documents, is allowed.
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
