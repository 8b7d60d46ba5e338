package dsl

import (
	"strconv"

	"github.com/akin-search/akin/internal/jsonspan"
)

// A Parser parses search bodies, reusing its memory. The zero Parser leaves
// phrases, filters, rescore queries, hybrid queries and more_like_this alone.
type Parser struct {
	// Phrases has phrases expanded, Readings some of them only by what is as good
	// as their words, Filters what filters, Rescores the body's own rescore queries,
	// and Hybrid the sub-queries of a hybrid query.
	Phrases, Readings, Filters, Rescores, Hybrid bool
	// MoreLikeThis has the texts of such queries expanded.
	MoreLikeThis bool
	// Apart has the texts of query strings taken apart. Same says that no related
	// word finds anything.
	Apart, Same bool

	json jsonspan.Reader
	path []byte
	// standards are the queries of standard retrievers.
	standards []jsonspan.Span
	// texts counts the clauses to expand, phrases those with only readings, notes
	// the others.
	texts, phrases, notes int
	filtering             bool // what is read is in a filter
	wholes                []whole
	search                Search
}

func (p *Parser) isObject() bool { return p.json.Kind() == '{' }

// members reads an object, and calls f with each member's path in p.path. It
// skips other values.
func (p *Parser) members(f func(name []byte) error) error {
	if !p.isObject() {
		return p.json.Skip()
	}
	pathLen := len(p.path)
	err := p.json.Object(func(name []byte) error {
		p.path = p.path[:pathLen]
		if pathLen > 0 {
			p.path = append(p.path, '.')
		}
		p.path = append(p.path, name...)
		return f(name)
	})
	p.path = p.path[:pathLen]
	return err
}

// only calls f to read one member of an object, and skips the others.
func (p *Parser) only(member string, f func() error) error {
	return p.members(func(name []byte) error {
		if string(name) == member {
			return f()
		}
		return p.json.Skip()
	})
}

// oneOrMore calls f to read a value, or each value of a list.
func (p *Parser) oneOrMore(f func() error) error {
	if p.json.Kind() != '[' {
		return f()
	}
	pathLen := len(p.path)
	err := p.json.List(func(i int) error {
		p.path = strconv.AppendInt(append(p.path[:pathLen], '['), int64(i), 10)
		p.path = append(p.path, ']')
		return f()
	})
	p.path = p.path[:pathLen]
	return err
}
