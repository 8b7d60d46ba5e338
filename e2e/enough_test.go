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
)

// TestEnoughHitsAreOrderedAndTooFewAreWidened searches an index in which "torrent"
// finds 30 documents and "bicycle" 3, both with related words in others, and
// "photo" finds 12, with a synonym in others.
func TestEnoughHitsAreOrderedAndTooFewAreWidened(t *testing.T) {
	const index = "akin-e2e-enough"
	eachEngine(t, func(t *testing.T, e *engine) {
		e.remakeIndex(t, index, oneShard(`"body":{"type":"text","analyzer":"english"},"name":{"type":"keyword"},"n":{"type":"integer"}`))
		var docs []document
		add := func(count int, body string) {
			for range count {
				n := len(docs)
				docs = append(docs, document{strconv.Itoa(n), map[string]any{"body": body, "name": fmt.Sprintf("%s %03d", body[:1], (n*37)%100), "n": n % 3}})
			}
		}
		add(30, "torrent client")
		add(8, "download manager")
		add(3, "bicycle shop")
		add(4, "tricycle shop")
		add(12, "photo album")
		add(5, "picture book")
		e.index(t, index, docs)
		pairs := "torrent\tdownload\t0.8\nbicycl\ttricycl\t0.8\nphoto\tpictur\t1\n"
		a := setup(t, e, section{
			"expansion": section{"enough": 10, "enough_all": 3, "max_doc_share": 1},
			"matrices":  matrices("s", build(t, "--from-tsv", writeFile(t, "pairs.tsv", pairs))),
		})
		const aggs = `"aggs":{"n":{"terms":{"field":"n"}}}`
		body := func(word, more string) string { return `{"query":{"match":{"body":"` + word + `"}}` + more + `}` }
		both := func(word string) string {
			return `{"query":{"match":{"body":{"query":"` + word + `","operator":"and"}}}}`
		}
		for name, tt := range map[string]struct {
			path, body string
			want       int // hits; -1: the answer is the engine's to the byte
			how        string
		}{
			"enough":                        {"_search", body("torrent", `,"size":50,`+aggs), 30, "ordered"},
			"enough, sorted":                {"_search", body("torrent", `,"sort":["name"],`+aggs), -1, ""},
			"enough, counted":               {"_count", body("torrent", ""), -1, ""},
			"too few":                       {"_search", body("bicycle", `,`+aggs), 7, "widened"},
			"too few, counted":              {"_count", body("bicycle", ""), 7, "widened"},
			"too few, without a total":      {"_search", body("bicycle", `,"track_total_hits":false`), 7, "widened"},
			"a full page without a total":   {"_search", body("torrent", `,"size":5,"track_total_hits":false`), 5, "ordered"},
			"too few, sorted":               {"_search", body("bicycle", `,"sort":["name"]`), -1, ""},
			"too few, only facets":          {"_search", body("bicycle", `,"size":0,`+aggs), 7, "widened"},
			"a synonym":                     {"_search", body("photo", `,"size":50`), 17, "exact"},
			"a synonym, sorted":             {"_search", body("photo", `,"size":50,"sort":["name"]`), 17, "exact"},
			"all words, enough":             {"_search", both("bicycle shop"), -1, ""},
			"all words, too few":            {"_search", both("bicycle manager"), 0, "widened"},
			"all words, found by neighbors": {"_search", both("torrent manager"), 8, "widened"},
		} {
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
			if hits := strings.Count(string(answer), `"_id"`); tt.want >= 0 && tt.path == "_search" && !strings.Contains(tt.body, `"size":0`) && hits != tt.want {
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
