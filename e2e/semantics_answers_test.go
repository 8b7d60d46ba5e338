package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/akin-search/akin/simmatrix"
)

// TestRelatedWordsInAnswers looks at what an answer says of related words, in
// every writing: which field counts for more, whom names name, where a search
// ends, and what pages of a scroll have together.
func TestRelatedWordsInAnswers(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engine) {
		contenders := serveSemantics(t, e)
		named := startContenders(t, e, section{"name": "main", "file": build(t, "--from-tsv", writeFile(t, "pairs.tsv", semanticsPairs))}, section{"name_added": true})
		for i, c := range contenders {
			for _, kind := range []string{"best_fields", "most_fields", "cross_fields"} {
				for first, fields := range map[string]string{"title:auto": `"title^5","subtitle"`, "subtitle:auto": `"title","subtitle^5"`} {
					ids := c.find(t, semanticsIndex, `{"size":200,"query":{"multi_match":{"query":"car","type":"`+kind+`","fields":[`+fields+`]}}}`).ids()
					if ids = slices.DeleteFunc(ids, func(id string) bool { return !strings.HasSuffix(id, "title:auto") }); len(ids) != 2 || ids[0] != first {
						t.Errorf("%s, %s of %s: %q, want %s first", c.name, kind, fields, ids, first)
					}
				}
			}
			const search = `{"size":200,"query":{"bool":{"should":[{"match":{"body":{"query":"big boat","_name":"mine"}}},{"match":{"body":"car red"}}]}}}`
			plain, with := c.find(t, semanticsIndex, search), named[i].find(t, semanticsIndex, search)
			if got, want := fmt.Sprint(with.ids(), with.scores()), fmt.Sprint(plain.ids(), plain.scores()); got != want || len(with.ids()) == 0 {
				t.Errorf("%s: names make hits %s, without %s", c.name, got, want)
			}
			for _, h := range with.Hits.Hits {
				var want []string
				has := strings.FieldsFunc(h.ID, func(r rune) bool { return strings.ContainsRune("- :", r) })
				if title, body, ok := strings.Cut(h.ID, " body:"); ok && strings.HasPrefix(title, "title:") {
					has = []string{body}
				}
				for _, word := range []string{"car", "red", "big", "boat"} {
					if slices.Contains(has, relatedTo[word]) {
						want = append(want, "akin:body:"+relatedTo[word])
					}
				}
				if slices.Contains(has, "big") || slices.Contains(has, "boat") {
					want = append(want, "mine")
				}
				slices.Sort(want)
				if slices.Sort(h.Named); !slices.Equal(h.Named, want) {
					t.Errorf("%s: %s has the names %q, want %q", c.name, h.ID, h.Named, want)
				}
			}
			type ended struct {
				Early bool `json:"terminated_early"`
				Hits  struct{ Total struct{ Value int } }
			}
			const boat = `"query":{"match":{"body":"boat"}}}`
			if got := ask[ended](t, c.cluster, http.MethodPost, "/"+semanticsIndex+"/_search", `{"terminate_after":1,"track_total_hits":true,`+boat); !got.Early || got.Hits.Total.Value != 1 {
				t.Errorf("%s: terminate_after: 1: %+v", c.name, got)
			}
			whole, scrolled := c.find(t, semanticsIndex, `{"size":200,`+boat).sorted(), []string(nil)
			page := c.find(t, semanticsIndex+"?scroll=1m", `{"size":2,`+boat)
			for len(page.ids()) > 0 {
				scrolled = append(scrolled, page.ids()...)
				*page = ask[found](t, c.cluster, http.MethodPost, "/_search/scroll", toJSON(t, section{"scroll": "1m", "scroll_id": page.ScrollID}))
			}
			c.must(t, http.MethodDelete, "/_search/scroll", toJSON(t, section{"scroll_id": page.ScrollID}))
			if slices.Sort(scrolled); !slices.Equal(scrolled, whole) || !slices.Contains(whole, "ship") {
				t.Errorf("%s: one page %q, scrolled %q", c.name, whole, scrolled)
			}
		}
		checkNoFallback(t, append(akins(contenders), akins(named)...)...)
		if !e.scripts { // the engines with scripts have the module for analysis, too
			return
		}
		for field, warned := range map[string]bool{"body": false, "body.gramsboth": true} {
			r := runAkin(t, slices.Concat([]string{"matrix", "build", "--from-index", e.url, "--index", semanticsIndex, "--field", field, "--min-df", "1", "--out", newPath(t, "m.akin")})...)
			if warned != strings.Contains(r.stderr, "warning: the terms of field "+field+" are no words, because of its filter few (edge_ngram)") {
				t.Errorf("a matrix of %s: status %d\n%s", field, r.status, r.stderr)
			}
		}
	})
}

// TestMisspelledWordsFindWhatTheRightOnesFind misspells words that documents
// have, in every writing.
func TestMisspelledWordsFindWhatTheRightOnesFind(t *testing.T) {
	var rows []simmatrix.TermRow
	for word, related := range relatedTo {
		rows = append(rows, simmatrix.TermRow{Term: word, DocFreq: 5, Neighbors: []simmatrix.Neighbor{{Term: related, Similarity: 0.9, DocFreq: 5}}},
			simmatrix.TermRow{Term: related, DocFreq: 5})
	}
	matrix := section{"name": "main", "file": rowsFile(t, 80, rows)}
	eachEngine(t, func(t *testing.T, e *engine) {
		e.makeIndex(t, semanticsIndex, semanticsDefinition(e))
		e.index(t, semanticsIndex, semanticsDocuments())
		for _, c := range startContenders(t, e, matrix, nil) {
			for query, want := range map[string][]string{
				`{"match":{"body":"baot"}}`:                                     inBody("boat", 1, true),
				`{"match":{"body":"baot crimsson"}}`:                            inBody("boat crimson", 1, true),
				`{"match":{"body":{"query":"baot big","operator":"and"}}}`:      inBody("boat big", 2, true),
				`{"match":{"body":"bigboat"}}`:                                  inBody("boat big", 1, true),
				`{"match":{"body":{"query":"bigboat","operator":"and"}}}`:       {}, // a part of it is not all of it
				`{"match":{"body":{"query":"bigboat red","operator":"and"}}}`:   {},
				`{"match":{"body":{"query":"baot boat","operator":"and"}}}`:     {}, // the nearest word is in the text already
				`{"multi_match":{"query":"baot","fields":["body","subtitle"]}}`: inBody("boat", 1, true),
			} {
				if got := c.meant(t, query); !slices.Equal(got, want) {
					t.Errorf("%s: %s finds %q, want %q", c.name, query, got, want)
				}
			}
		}
	})
}
