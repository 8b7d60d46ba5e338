package dsl

import (
	"strconv"
	"strings"

	"github.com/akin-search/akin/internal/jsonspan"
)

// defaultSize is how many hits the engines return by default.
const defaultSize = 10

// A Page is what the client asks for of the hits: Size of them behind the
// first From, and whether with sequence numbers and versions.
type Page struct {
	From, Size     int
	SeqNo, Version bool
}

// Page returns the page that the client asks for, false where akin does not
// know it for sure: the engines refuse some values, and take others for
// something else.
func (s *Search) Page(p *Parameters) (page Page, ok bool) {
	ok = !p.oddPage
	read := func(name string, at jsonspan.Span, otherwise string, valid func(string) bool) string {
		text := p.Get(name) // which goes before the body
		switch {
		case text != "":
		case at.IsZero():
			text = otherwise
		default:
			bare, opened := strings.CutPrefix(string(at.Of(s.Body)), `"`)
			bare, closed := strings.CutSuffix(bare, `"`)
			text, ok = bare, ok && opened == closed
		}
		ok = ok && valid(text)
		return text
	}
	from, errFrom := strconv.Atoi(read("from", s.Hits.From, "0", isCount))
	size, errSize := strconv.Atoi(read("size", s.Hits.Size, strconv.Itoa(defaultSize), isCount))
	page = Page{
		From: from, Size: size,
		SeqNo:   read("seq_no_primary_term", s.Hits.SeqNo, isFalse, isBoolean) == isTrue,
		Version: read("version", s.Hits.Version, isFalse, isBoolean) == isTrue,
	}
	return page, ok && errFrom == nil && errSize == nil && size > 0
}
