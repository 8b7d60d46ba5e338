package e2e

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/e2e/matrixtest"
	"github.com/akin-search/akin/simmatrix"
)

// TestEnoughHitsAreOrderedAndTooFewAreWidened searches an index in which "torrent"
// finds 30 documents and "bicycle" 3, both with related words in others, and
// "photo" finds 12, with a synonym in others.
func TestEnoughHitsAreOrderedAndTooFewAreWidened(t *testing.T) {
	const index = "akin-e2e-enough"
	eachEngine(t, func(t *testing.T, e *engine) {
		e.remakeIndex(t, index, oneShard(`"body":{"type":"text","analyzer":"english"},"name":{"type":"keyword"},"n":{"type":"integer"},"kind":{"type":"text"}`))
		var docs []document
		add := func(count int, body string) {
			for range count {
				n := len(docs)
				docs = append(docs, document{strconv.Itoa(n), map[string]any{"body": body, "name": fmt.Sprintf("%s %03d", body[:1], (n*37)%100), "n": n % 3, "kind": []string{"thing", "thing object"}[n%2]}})
			}
		}
		add(30, "torrent client")
		add(8, "download manager")
		add(3, "bicycle shop")
		add(4, "tricycle shop")
		add(12, "photo album")
		add(5, "picture book")
		e.index(t, index, docs)
		pairs := "torrent\tdownload\t0.8\nbicycl\ttricycl\t0.8\nphoto\tpictur\t1\nstuff\tthing\t0.8\nthing\tobject\t0.8\n"
		a := setup(t, e, section{
			"expansion": section{"enough": 10, "enough_all": 3, "max_doc_share": 1, "templates": true},
			"matrices":  matrices("s", build(t, "--from-tsv", writeFile(t, "pairs.tsv", pairs))),
		})
		const aggs = `"aggs":{"n":{"terms":{"field":"n"}}}`
		body := func(word, more string) string { return `{"query":{"match":{"body":"` + word + `"}}` + more + `}` }
		both := func(word string) string {
			return `{"query":{"match":{"body":{"query":"` + word + `","operator":"and"}}}}`
		}
		var words strings.Builder // so many that only of a repeated word the neighbors count
		for n := range 1016 {
			fmt.Fprintf(&words, " word%d", n)
		}
		others := words.String()
		type search struct {
			path, body string
			want       int // hits; -1: the answer is the engine's to the byte
			how        string
		}
		searches := map[string]search{
			"enough":                          {"_search", body("torrent", `,"size":50,`+aggs), 30, "ordered"},
			"enough, sorted":                  {"_search", body("torrent", `,"sort":["name"],`+aggs), -1, ""},
			"enough, counted":                 {"_count", body("torrent", ""), -1, ""},
			"too few":                         {"_search", body("bicycle", `,`+aggs), 7, "widened"},
			"too few, counted":                {"_count", body("bicycle", ""), 7, "widened"},
			"too few, without a total":        {"_search", body("bicycle", `,"track_total_hits":false`), 7, "widened"},
			"a full page without a total":     {"_search", body("torrent", `,"size":5,"track_total_hits":false`), 5, "ordered"},
			"too few, sorted":                 {"_search", body("bicycle", `,"sort":["name"]`), -1, ""},
			"too few, only facets":            {"_search", body("bicycle", `,"size":0,`+aggs), 7, "widened"},
			"enough, in index order":          {"_search", body("torrent", `,"sort":["_doc"],`+aggs), -1, ""},
			"too few, in index order":         {"_search", body("bicycle", `,"sort":["_doc"]`), -1, ""},
			"enough, by score and name":       {"_search", body("torrent", `,"size":50,"sort":["_score","name"],`+aggs), 30, "ordered"},
			"too few, by score and name":      {"_search", body("bicycle", `,"sort":["_score","name"],`+aggs), 7, "widened"},
			"enough, collapsed":               {"_search", body("torrent", `,"collapse":{"field":"n"},`+aggs), 3, "ordered"},
			"too few, collapsed":              {"_search", body("bicycle", `,"collapse":{"field":"name"}`), 7, "widened"},
			"enough behind a post_filter":     {"_search", body("torrent", `,"post_filter":{"term":{"n":0}},`+aggs), 10, "ordered"},
			"too few behind a post_filter":    {"_search", body("torrent", `,"post_filter":{"ids":{"values":["0","1","30"]}}`), 3, "widened"},
			"terminated":                      {"_search", body("bicycle shop", `,"terminate_after":1`), 1, "ordered"},
			"scrolled":                        {"_search?scroll=1m", body("bicycle", ""), 3, "ordered"},
			"every document has it":           {"_search", `{"query":{"match":{"kind":"thing"}},"size":100,` + aggs + `}`, 62, "ordered"},
			"every document has the neighbor": {"_search", `{"query":{"match":{"kind":"stuff"}},"size":100}`, 62, "widened"},
			"one clause finds nothing":        {"_search", `{"query":{"bool":{"should":[{"match":{"body":"torrent"}},{"match":{"body":"xylophone"}}]}},"size":50}`, 30, "ordered"},
			"a needed one finds nothing":      {"_search", `{"query":{"bool":{"must":[{"match":{"body":"torrent"}},{"match":{"body":"xylophone"}}]}}}`, 0, "widened"},
			"1,024 words, enough":             {"_search", body(strings.Repeat("torrent ", 8)+others, `,"size":50,`+aggs), 30, "ordered"},
			"1,024 words, too few":            {"_search", body(strings.Repeat("bicycle ", 8)+others, ""), 7, "widened"},
			"a synonym":                       {"_search", body("photo", `,"size":50`), 17, "exact"},
			"a synonym, sorted":               {"_search", body("photo", `,"size":50,"sort":["name"]`), 17, "exact"},
			"all words, enough":               {"_search", both("bicycle shop"), -1, ""},
			"all words, too few":              {"_search", both("bicycle manager"), 0, "widened"},
			"all words, found by neighbors":   {"_search", both("torrent manager"), 8, "widened"},
		}
		if e.scripts {
			const byScript = `,"sort":{"_script":{"type":"number","script":"doc['n'].value - _score"}}`
			searches["enough, by a script"] = search{"_search", body("torrent", byScript), -1, ""}
			searches["too few, by a script"] = search{"_search", body("bicycle", byScript), -1, ""}
			searches["enough, by a template"] = search{"_search/template", `{"source":` + body("torrent", `,"size":50,`+aggs) + `}`, 30, "ordered"}
			searches["too few, by a template"] = search{"_search/template", `{"source":` + body("bicycle", "") + `}`, 7, "widened"}
		}
		for name, tt := range searches {
			through := a.call
			status, direct, err := e.call(t.Context(), http.MethodPost, "/"+index+"/"+tt.path, tt.body)
			if err != nil || status != http.StatusOK {
				t.Fatalf("%s: %d, %v: %s", name, status, err, direct)
			}
			var answer []byte
			counted := map[string]float64{}
			for _, how := range []string{"ordered", "widened", "exact"} {
				counted[how] = -a.metric(t, "akin_searches_total", "how", how)
			}
			if status, answer, err = through(t.Context(), http.MethodPost, "/"+index+"/"+tt.path, tt.body); err != nil || status != http.StatusOK {
				t.Fatalf("%s: %d, %v: %s", name, status, err, answer)
			}
			for how, before := range counted {
				if n := a.metric(t, "akin_searches_total", "how", how) + before; (n == 1) != (how == tt.how) {
					t.Errorf("%s: %v searches count as %s, want them as %q", name, n, how, tt.how)
				}
			}
			if tt.want < 0 || tt.how == "ordered" {
				if diff := cmp.Diff(counts(direct, tt.want < 0), counts(answer, tt.want < 0)); diff != "" {
					t.Errorf("%s (-direct +through akin):\n%s", name, diff)
				}
			}
			if hits := strings.Count(string(answer), `"_id"`); tt.want >= 0 && tt.path != "_count" && !strings.Contains(tt.body, `"size":0`) && hits != tt.want {
				t.Errorf("%s: %d hits, want %d: %s", name, hits, tt.want, answer)
			}
			if want := fmt.Sprintf(`"value":%d,`, tt.want); strings.Contains(tt.body, `"size":0`) && !strings.Contains(string(answer), want) {
				t.Errorf("%s: want %s in %s", name, want, answer)
			}
			if want := fmt.Sprintf(`"count":%d,`, tt.want); tt.path == "_count" && tt.want >= 0 && !strings.Contains(string(answer), want) {
				t.Errorf("%s: want %s in %s", name, want, answer)
			}
		}
		checkNoFallback(t, a)
		// Engines count facets before a post_filter, the total behind it. Of the 30
		// documents and the 8 that related words find 13 have the same n.
		behind := body("torrent", `,"post_filter":{"ids":{"values":["0","1","30"]}},`+aggs)
		if answer := a.must(t, http.MethodPost, "/"+index+"/_search", behind); !strings.Contains(string(answer), `"doc_count":13`) {
			t.Errorf("facets do not count what related words find: %s", answer)
		}
		// A wide search for all of many words has each of them twice: some engines
		// refuse it, once, and the client gets the answer to the first.
		for range 2 {
			if f := a.find(t, index, both(strings.Repeat("bicycle ", 8)+others)); len(f.Hits.Hits) != 0 {
				t.Errorf("all of 1,024 words are in %v", f.ids())
			}
		}
		if n := a.metric(t, refusedMetric); n > 1 {
			t.Errorf("the engine refused %v searches, want 1 at most", n)
		}
		checkManySearches(t, a, index, body("torrent", ""), body("bicycle", ""))
		if e.name != "elasticsearch7" {
			checkGrowingIndex(t, e, a, index, body("bicycle", `,"size":4,"sort":["_score","name"]`))
		}
	})
}

// checkManySearches sends as many searches in one request as are expanded, and
// more: the first of two finds 30 documents, the second 3, and 7 if it is wide.
func checkManySearches(t *testing.T, a *akin, index, enough, tooFew string) {
	t.Helper()
	for searches, want := range map[int]int{256: 7, 1000: 3} {
		lines := strings.Repeat("{}\n"+enough+"\n{}\n"+tooFew+"\n", searches/2)
		several := ask[struct{ Responses []*found }](t, a.cluster, http.MethodPost, "/"+index+"/_msearch", lines)
		if len(several.Responses) != searches {
			t.Errorf("%d answers, want %d", len(several.Responses), searches)
		}
		for k, one := range several.Responses {
			if got := one.Hits.Total.Value; got != []int{30, want}[k%2] {
				t.Errorf("search %d of %d finds %d documents", k, searches, got)
				break
			}
		}
	}
}

// checkGrowingIndex reads the first page of a search that finds 3 documents, 7 if
// it is wide, and the second when it finds 13: a point in time has the 7 on both,
// without one the second page is of those that are there by then.
func checkGrowingIndex(t *testing.T, e *engine, a *akin, index, body string) {
	t.Helper()
	id := openPoint(t, e, a.cluster, index)
	page := func(more string) *found {
		f, err := a.search(t.Context(), "/_search", `{"pit":{"id":"`+id+`"},`+more+body[1:])
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	first, alone := page(""), a.find(t, index, body)
	last := first.Hits.Hits[len(first.Hits.Hits)-1]
	var more []document
	for n := range 10 {
		more = append(more, document{fmt.Sprint("more", n), map[string]any{"body": "bicycle shop", "name": fmt.Sprint("z ", n)}})
	}
	e.index(t, index, more)
	second := page(fmt.Sprintf(`"search_after":%s,`, toJSON(t, last.Sort)))
	if ids := slices.Compact(slices.Sorted(slices.Values(append(first.ids(), second.ids()...)))); len(ids) != 7 || second.Hits.Total.Value != 7 {
		t.Errorf("both pages of the point in time have %v, want 7; the total is %d", ids, second.Hits.Total.Value)
	}
	if then := a.find(t, index, `{"from":4,`+body[1:]); alone.Hits.Total.Value != 7 || then.Hits.Total.Value != 13 {
		t.Errorf("the totals are %d and %d, want 7 and 13", alone.Hits.Total.Value, then.Hits.Total.Value)
	}
}

// TestEnoughIsDecidedForAllIndicesOfAnAlias searches an index of 10 documents, of
// which 2 have "zebra" and 4 "quagga", one of 2,000 with 40 and 5, and an alias of
// both. Each field has the matrix of another index.
func TestEnoughIsDecidedForAllIndicesOfAnAlias(t *testing.T) {
	const small, large, alias = "akin-e2e-enough-small", "akin-e2e-enough-large", "akin-e2e-enough-both"
	eachEngine(t, func(t *testing.T, e *engine) {
		for index, texts := range map[string]map[string]int{
			small: {"zebra": 2, "quagga": 4, "okapi": 1, "stone": 3}, large: {"zebra": 40, "quagga": 5, "stone": 1955},
		} {
			var docs []document
			for text, n := range texts {
				for range n {
					docs = append(docs, document{strconv.Itoa(len(docs)), map[string]any{"of_small": text, "of_large": text}})
				}
			}
			e.makeIndex(t, index, oneShard(`"of_small":{"type":"text"},"of_large":{"type":"text"}`))
			e.index(t, index, docs)
			e.must(t, http.MethodPut, "/"+index+"/_alias/"+alias, "")
		}
		file := func(docs uint64, zebra uint32) string {
			quagga := []simmatrix.Neighbor{{Term: "quagga", Similarity: 0.8}}
			return encodedFile(t, matrixtest.New(t, simmatrix.Meta{Docs: docs}, []simmatrix.TermRow{
				{Term: "okapi", DocFreq: 1, Neighbors: quagga}, {Term: "quagga"}, {Term: "zebra", DocFreq: zebra, Neighbors: quagga},
			}))
		}
		a := setup(t, e, section{
			"expansion": section{"enough": 10, "max_doc_share": 1},
			"matrices": []section{
				{"name": "small", "fields": []string{"of_small"}, "file": file(10, 2)},
				{"name": "large", "fields": []string{"of_large"}, "file": file(2000, 40)},
			},
		})
		for name, tt := range map[string]struct {
			index, field, word string
			want               int
			how                string
			asked              float64 // 1: its total decides
		}{
			"too few by frequencies":    {small, "of_small", "zebra", 6, "widened", 0},
			"too few in the smaller":    {small, "of_large", "zebra", 6, "widened", 1},
			"enough":                    {large, "of_large", "zebra", 40, "ordered", 1},
			"enough in the larger":      {large, "of_small", "zebra", 40, "ordered", 1},
			"enough in both":            {alias, "of_small", "zebra", 42, "ordered", 1},
			"enough in both, of large":  {alias, "of_large", "zebra", 42, "ordered", 1},
			"too few in both":           {alias, "of_small", "okapi", 10, "widened", 1},
			"too few in both, of large": {alias, "of_large", "okapi", 10, "widened", 0},
		} {
			body := `{"query":{"match":{"` + tt.field + `":"` + tt.word + `"}},"size":50}`
			asked, how := -a.metric(t, "akin_few_hits_total"), -a.metric(t, "akin_searches_total", "how", tt.how)
			got := a.find(t, tt.index, body)
			asked, how = asked+a.metric(t, "akin_few_hits_total"), how+a.metric(t, "akin_searches_total", "how", tt.how)
			if got.Hits.Total.Value != tt.want || len(got.Hits.Hits) != tt.want || asked != tt.asked || how != 1 {
				t.Errorf("%s: the total %d with %d hits, want %d; %v totals decide, want %v; %v are %s", name, got.Hits.Total.Value, len(got.Hits.Hits), tt.want, asked, tt.asked, how, tt.how)
			}
			// Judged searches have no totals: frequencies decide, or they are ordered.
			judged := fmt.Sprintf(`{"requests":[{"id":"q","request":%s,"ratings":[{"_index":"%s","_id":"x","rating":1}]}],"metric":{"precision":{"k":50}}}`, body, small)
			if tt.asked == 1 {
				tt.want = e.find(t, tt.index, body).Hits.Total.Value
			}
			path := "/" + tt.index + "/_rank_eval"
			if status, _, err := e.call(t.Context(), http.MethodPost, path, judged); err != nil || status != http.StatusOK {
				continue // the tests' Elasticsearch 8 and 9 do not have it
			}
			answer := ask[struct {
				Details map[string]struct {
					Unrated []any `json:"unrated_docs"`
				}
			}](t, a.cluster, http.MethodPost, path, judged)
			if n := len(answer.Details["q"].Unrated); n != tt.want {
				t.Errorf("%s: of a judged search there are %d hits, want %d", name, n, tt.want)
			}
		}
		checkNoFallback(t, a)
	})
}

// counts returns the parts of an answer that must be the engine's: total and
// facets, and the ids of the hits, or all of it but the time.
func counts(answer []byte, all bool) []string {
	if all {
		return []string{regexp.MustCompile(`"took":\d+`).ReplaceAllString(string(answer), "")}
	}
	parts := regexp.MustCompile(`"total":\{[^}]*\}|"aggregations":.*|"_id":"\d+"`).FindAllString(string(answer), -1)
	slices.Sort(parts)
	return parts
}
