package dsl

import (
	"strconv"
	"strings"

	"github.com/akin-search/akin/internal/jsonspan"
)

// defaultSize is the engines' default number of hits.
const defaultSize = 10

// A Page is the requested page of hits: Size of them after the first From.
type Page struct{ From, Size int }

// Page returns the requested page, or false if akin is not sure of it: engines
// refuse some values, and interpret others differently.
func (s *Search) Page(p *Parameters) (page Page, ok bool) {
	ok = !p.oddPage
	read := func(name string, at jsonspan.Span, otherwise int) int {
		text := p.Get(name) // overrides the body
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
