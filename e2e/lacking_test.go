package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
)

// A lacking cluster forbids or lacks calls, as managed ones do.
type lacking struct {
	status       int
	answer       string
	points, tell bool        // whether there are points in time, and counts in the answers to akin's own searches
	inPIT, byID  atomic.Bool // whether pages were read so
}

// handle refuses calls, and forwards the others.
func (l *lacking) handle(w http.ResponseWriter, r *http.Request, forward http.Handler) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	own := r.Header.Get("User-Agent") == "akin"
	switch path := r.URL.Path; {
	case path == "/", strings.Contains(path, "/_cat"), strings.Contains(path, "termvectors"),
		strings.Contains(path, "/_search/scroll"), r.URL.Query().Has("scroll"),
		!l.points && (strings.HasSuffix(path, "/_pit") || strings.Contains(path, "/point_in_time")),
		!l.tell && own && bytes.Contains(body, []byte(`"aggs"`)):
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(l.status)
		if r.Method != http.MethodHead {
			_, _ = io.WriteString(w, l.answer)
		}
	default:
		if bytes.Contains(body, []byte(`"search_after"`)) {
			inPIT := bytes.Contains(body, []byte(`"pit"`))
			l.inPIT.Store(l.inPIT.Load() || inPIT)
			l.byID.Store(l.byID.Load() || !inPIT)
		}
		forward.ServeHTTP(w, r)
	}
}

// TestClustersThatLackCallsAreServed expands, checks, proposes and builds where
// an engine is behind a filter, and compares with what it does without one.
func TestClustersThatLackCallsAreServed(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engine) {
		makeRelated(t, e)
		if e.name == "elasticsearch8" { // sorts by id only with this setting
			e.changeSetting(t, "indices.id_field_data.enabled", true)
		}
		learned := []string{"akin-e2e-lacking-1", "akin-e2e-lacking-2"} // the same ids in both, several pages
		for k, index := range learned {
			e.makeIndex(t, index, `{"settings":{"number_of_shards":2,"number_of_replicas":0},"mappings":{"properties":{"body":{"type":"text"}}}}`)
			var docs []document
			for i := range 700 {
				docs = append(docs, document{strconv.Itoa(i), map[string]any{"body": fmt.Sprintf("word%c"+" word%c"+" word%c", 'a'+i%23, 'a'+i*7%19, 'a'+(i+k)%11)}})
			}
			e.index(t, index, docs)
		}
		learn := func(from string) string {
			return exported(t, build(t, "--cluster", from, "--index", strings.Join(learned, ","), "--field", "body"))
		}
		want := learn(e.url)
		if strings.Count(want, "\n") < 20 {
			t.Fatalf("learned only\n%s", want)
		}
		counted := build(t, append(e.of(relatedIndex, "body"), "--from-vectors", writeFile(t, "vectors.txt", vectorsA))...)
		for name, l := range map[string]*lacking{
			"lacks":              {status: http.StatusNotFound, answer: `{"error":"no handler found for uri","status":404}`, points: true, tell: true},
			"forbids":            {status: http.StatusForbidden, answer: `{"message":"Forbidden"}`, points: false, tell: true},
			"is gone, no counts": {status: http.StatusGone, answer: `{"error":{"type":"api_not_available_exception","reason":"not available in serverless mode"},"status":410}`, points: false, tell: false},
			"lacks, no counts":   {status: http.StatusNotFound, answer: ``, points: true, tell: false},
		} {
			t.Run(name, func(t *testing.T) {
				url := between(t, e, l.handle)
				a := setupWide(t, e, section{
					"cluster": section{"urls": []string{url}}, "matrices": matrices("main", counted),
					"profiles": section{
						"linear": section{"scoring": "linear"}, "grouped": section{"scoring": "grouped"}, "saturated": section{"scoring": "saturated"},
						"soft": section{"mode": "soft"}, "hard": section{"mode": "hard"}, "softcosine": section{"mode": "softcosine"},
					},
				})
				for _, parameters := range []string{"", "?akin_profile=linear", "?akin_profile=grouped", "?akin_profile=saturated", "?akin_profile=soft", "?akin_profile=hard", "?akin_profile=softcosine"} {
					if got := strings.Join(a.find(t, relatedIndex+parameters, relatedSearch("car")).sorted(), " "); got != expandedHits {
						t.Errorf("%s: found %s, want %s", parameters, got, expandedHits)
					}
				}
				checkNoFallback(t, a)
				form, why, scripts := "saturated", "", "yes"
				if !e.scripts {
					form, why, scripts = "grouped", "no_scripts", "no, "
				}
				if !l.tell {
					form, why = "grouped", "no_frequencies"
				}
				if c := a.explain(t, relatedIndex, relatedSearch("car")).Clauses; len(c) != 1 || c[0].Form != form || c[0].Reason != why || c[0].MatrixFrequencies == l.tell {
					t.Errorf("%+v", c)
				}
				if status, answer, err := a.admin.call(t.Context(), http.MethodGet, "/readyz", ""); err != nil || status != http.StatusOK || strings.Contains(string(answer), "calls") {
					t.Errorf("readyz: %v %d %s", err, status, answer)
				}
				if got := learn(url); got != want {
					t.Errorf("learned\n%.500s\nand from the engine itself\n%.500s", got, want)
				}
				points := l.points && e.name != "elasticsearch7" // has none without X-Pack
				if l.inPIT.Load() != points || l.byID.Load() == points {
					t.Errorf("read in a point in time: %v, by id: %v", l.inPIT.Load(), l.byID.Load())
				}
				checked := runAkin(t, "check", "--config", a.config, "--index", relatedIndex)
				for _, line := range []string{
					"scripts +" + scripts, "term vectors +no, " + map[bool]string{true: "documents with a word are counted", false: "the matrix's own"}[l.tell],
					"scrolls +no, ", "points in time +" + map[bool]string{true: "yes", false: "no, "}[points],
				} {
					if checked.status != 0 || !regexp.MustCompile("(?m)^ok +"+line).MatchString(checked.stdout) {
						t.Errorf("status %d, want %s in\n%s", checked.status, line, checked.stdout)
					}
				}
				mustAkin(t, "init", "--cluster", url, "--index", relatedIndex, "--out", "-")
			})
		}
	})
}
