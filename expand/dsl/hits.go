package dsl

import (
	"strconv"
	"strings"

	"github.com/akin-search/akin/internal/jsonspan"
)

// defaultSize is how many hits the engines return by default.
const defaultSize = 10

// A Page is what the client asks for of the hits: Size of them behind the
// first From.
type Page struct{ From, Size int }

// Page returns the page that the client asks for, false where akin does not
// know it for sure: the engines refuse some values, and take others for
// something else.
func (s *Search) Page(p *Parameters) (page Page, ok bool) {
	ok = !p.oddPage
	read := func(name string, at jsonspan.Span, otherwise int) int {
		text := p.Get(name) // which goes before the body
		if text == "" && at.IsZero() {
			return otherwise
		}
		if text == "" {
			bare, opened := strings.CutPrefix(string(at.Of(s.Body)), `"`)
			bare, closed := strings.CutSuffix(bare, `"`)
			text, ok = bare, ok && opened == closed
		}
		n, err := strconv.Atoi(text)
		ok = ok && err == nil && isCount(text)
		return n
	}
	page = Page{From: read("from", s.Hits.From, 0), Size: read("size", s.Hits.Size, defaultSize)}
	return page, ok && page.Size > 0
}
