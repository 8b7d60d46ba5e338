package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

const (
	feedbackIndex  = "akin-e2e-feedback"
	feedbackMetric = "akin_feedback_total"
	// feedbackQuery finds "0" first, the first of several with the same score, and
	// with feedback "a", since most of the first hits speak of tariffs.
	feedbackQuery = `{"query":{"match":{"body":"car"}},"aggs":{"a":{"value_count":{"field":"n"}}},"track_total_hits":true}`
)

// A feedbackSetting is akin in front of an engine, with something between them
// that spoils calls of the two passes.
type feedbackSetting struct {
	*akin
	engine *engine
	// firstPass, unless nil, is called behind each first pass, and vectors gets
	// the documents of each answer with terms.
	firstPass atomic.Pointer[func()]
	vectors   atomic.Pointer[func(docs []any)]
}

func newFeedbackSetting(t *testing.T, e *engine, budget string) *feedbackSetting {
	t.Helper()
	s := &feedbackSetting{engine: e}
	e.makeIndex(t, feedbackIndex, `{"settings":{"number_of_shards":1,"number_of_replicas":0},
		"mappings":{"properties":{"body":{"type":"text","analyzer":"whitespace"},"n":{"type":"integer"}}}}`)
	texts := map[string]string{
		"0": "car blue", "a": "car tariff", "b": "car tariff", "c": "automobile tariff", "sky": "car sky", "other": "automobile sea",
	}
	for i := range 60 {
		texts["filler"+strconv.Itoa(i)] = "filler of another kind"
	}
	var docs []document
	for id, text := range texts {
		docs = append(docs, document{id, map[string]any{"body": text, "n": 1}})
	}
	slices.SortFunc(docs, func(a, b document) int { return strings.Compare(a.id, b.id) })
	e.index(t, feedbackIndex, docs)
	matrix := filepath.Join(newDir(t, "matrix"), "m.akin")
	mustAkin(t, "matrix", "build", "--from-tsv", requestFixture("matrix.tsv"), "--out", matrix)

	target, err := url.Parse(e.url)
	if err != nil {
		t.Fatal(err)
	}
	between := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target); r.Out.Header.Del("Accept-Encoding") },
		ModifyResponse: func(res *http.Response) error {
			f, g := s.firstPass.Load(), s.vectors.Load()
			switch {
			case f != nil && strings.Contains(res.Request.URL.RawQuery, "_shards.failed,hits.hits._index"):
				(*f)()
			case g != nil && strings.Contains(res.Request.URL.Path, "_mtermvectors"):
				return changeDocs(res, *g)
			}
			return nil
		},
	})
	t.Cleanup(between.Close)
	s.akin = startAkin(t, section{
		"cluster":   section{"urls": []string{between.URL}},
		"expansion": section{"budget": budget, "templates": true, "feedback": section{"documents": 6}},
		"profiles":  section{"without": section{"feedback": section{"documents": 0}}},
		"matrices":  []section{{"name": "m", "file": matrix, "fields": []string{"body"}}},
	})
	s.awaitMatrix(t, "m")
	return s
}

// changeDocs changes the documents of an answer to _mtermvectors.
func changeDocs(res *http.Response, change func(docs []any)) error {
	var page map[string]any
	if err := json.NewDecoder(res.Body).Decode(&page); err != nil {
		return err
	}
	if docs, ok := page["docs"].([]any); ok {
		change(docs)
	}
	body, err := json.Marshal(page)
	res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	res.Header.Set("Content-Length", strconv.Itoa(len(body)))
	return err
}

// counted returns how often feedback had a result since the last call.
func (s *feedbackSetting) counted(t *testing.T, result string, f func()) float64 {
	t.Helper()
	before := s.metric(t, feedbackMetric, `result="`+result+`"`)
	f()
	return s.metric(t, feedbackMetric, `result="`+result+`"`) - before
}

// TestFeedbackOrdersHits has searches of all kinds ordered by their first hits.
func TestFeedbackOrdersHits(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engine) {
		s := newFeedbackSetting(t, e, widePatience)
		read := func(answer []byte) (ids []string, rest string) {
			var a struct {
				Hits struct {
					Total json.RawMessage
					Hits  []struct {
						ID string `json:"_id"`
					}
				}
				Aggregations json.RawMessage
			}
			decode(t, answer, &a)
			for _, h := range a.Hits.Hits {
				ids = append(ids, h.ID)
			}
			return ids, fmt.Sprintf("%s %s", a.Hits.Total, a.Aggregations)
		}
		search := func(parameters string) ([]string, string) {
			return read(s.must(t, http.MethodPost, "/"+feedbackIndex+"/_search?"+parameters, feedbackQuery))
		}
		plain, facts := search("akin_profile=without")
		ids, same := search("")
		if same != facts || len(ids) != len(plain) {
			t.Errorf("finds %v, %s; without feedback %v, %s", ids, same, plain, facts)
		}
		if plain[0] != "0" || !slices.Equal(ids[:2], []string{"a", "b"}) {
			t.Errorf("order %v, without feedback %v", ids, plain)
		}
		t.Run("explained", func(t *testing.T) { checkFeedbackExplained(t, s) })
		t.Run("several", func(t *testing.T) {
			answers := answersOf(t, s.must(t, http.MethodPost, "/"+feedbackIndex+"/_msearch", strings.Repeat("{}\n"+feedbackQuery+"\n", 18)))
			for i, answer := range answers {
				want := ids
				if i >= 16 {
					want = plain
				}
				if got, rest := read([]byte(answer)); !slices.Equal(got, want) || rest != facts {
					t.Errorf("search %d: %v, want %v", i, got, want)
				}
			}
			if n := s.metric(t, feedbackMetric, `result="searches"`); n != 2 {
				t.Errorf("%v searches too many", n)
			}
		})
		t.Run("template", func(t *testing.T) {
			if e.scripts {
				answer := s.must(t, http.MethodPost, "/"+feedbackIndex+"/_search/template",
					`{"source":`+strings.Replace(feedbackQuery, `"car"`, `"{{q}}"`, 1)+`,"params":{"q":"car"}}`)
				if got, _ := read(answer); !slices.Equal(got, ids) {
					t.Errorf("%v, want %v", got, ids)
				}
			}
		})
		t.Run("scroll", func(t *testing.T) {
			var all []string
			path, body := "/"+feedbackIndex+"/_search?scroll=1m&size=2", feedbackQuery
			for range ids {
				var page struct {
					ID string `json:"_scroll_id"`
				}
				answer := s.must(t, http.MethodPost, path, body)
				decode(t, answer, &page)
				got, _ := read(answer)
				all = append(all, got...)
				path, body = "/_search/scroll", `{"scroll":"1m","scroll_id":"`+page.ID+`"}`
			}
			if !slices.Equal(sorted(all), sorted(ids)) {
				t.Errorf("pages have %v, want %v", all, ids)
			}
		})
		t.Run("point in time", func(t *testing.T) {
			if e.name == "elasticsearch7" {
				return // its free modules have none
			}
			var opened struct {
				ID    string
				PITID string `json:"pit_id"`
			}
			path := "/_pit?keep_alive=1m"
			if e.family == "opensearch" {
				path = "/_search/point_in_time?keep_alive=1m"
			}
			decode(t, s.must(t, http.MethodPost, "/"+feedbackIndex+path, ""), &opened)
			var all []string
			after := ""
			for range ids {
				var page struct {
					Hits struct {
						Hits []struct {
							ID   string `json:"_id"`
							Sort json.RawMessage
						}
					}
				}
				decode(t, s.must(t, http.MethodPost, "/_search", `{"size":2,"query":{"match":{"body":"car"}},"sort":["_score","_doc"],"pit":{"id":"`+
					opened.ID+opened.PITID+`","keep_alive":"1m"}`+after+`}`), &page)
				for _, h := range page.Hits.Hits {
					all, after = append(all, h.ID), `,"search_after":`+string(h.Sort)
				}
			}
			if !slices.Equal(sorted(all), sorted(ids)) || all[0] != ids[0] {
				t.Errorf("pages have %v, want %v", all, ids)
			}
		})
	})
}

func sorted(ids []string) []string { return slices.Sorted(slices.Values(ids)) }

// checkFeedbackExplained looks for the term, and the documents that it is from.
func checkFeedbackExplained(t *testing.T, s *feedbackSetting) {
	t.Helper()
	shown := explainedFeedback(t, s.akin, s.url, "/"+feedbackIndex+"/_search", feedbackQuery)
	for _, f := range shown {
		if f.Term == "tariff" {
			if !slices.Contains(f.Documents, "a") || slices.Contains(f.Documents, "0") || f.Weight <= 0 || f.Weight >= 1 || f.Boost <= 0 {
				t.Errorf("%+v", f)
			}
			return
		}
	}
	t.Errorf("no tariff in %+v", shown)
}

type feedbackTerm struct {
	Term          string
	Documents     []string
	Weight, Boost float64
}

// explainedFeedback sends a search with one clause to akin at address, and
// returns what its explanation says of feedback.
func explainedFeedback(t *testing.T, a *akin, address, path, body string) []feedbackTerm {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Akin", "explain")
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body)
	var shown struct {
		Clauses []struct{ Feedback []feedbackTerm }
	}
	decode(t, a.admin.must(t, http.MethodGet, "/_akin/explanations/"+res.Header.Get("X-Akin-Explanation"), ""), &shown)
	if len(shown.Clauses) != 1 {
		t.Fatalf("%s: %+v", res.Status, shown)
	}
	return shown.Clauses[0].Feedback
}

// TestFeedbackFailsOpen has the cluster change, or fail, between the passes.
func TestFeedbackFailsOpen(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engine) {
		s := newFeedbackSetting(t, e, "2s")
		search := func() []string {
			t.Helper()
			got, err := s.search(t.Context(), "/"+feedbackIndex+"/_search", feedbackQuery)
			if err != nil {
				t.Fatal(err)
			}
			return got.ids()
		}
		// One of the hits has no terms.
		withError := func(docs []any) {
			doc, _ := docs[0].(map[string]any)
			docs[0] = map[string]any{"_index": doc["_index"], "_id": doc["_id"], "error": map[string]any{"type": "some_exception", "reason": "no"}}
		}
		s.vectors.Store(&withError)
		if n := s.counted(t, "used", func() { search() }); n != 1 {
			t.Errorf("one hit without terms: %v used", n)
		}
		s.vectors.Store(nil)
		// One of them is deleted between the passes.
		gone := func() { e.must(t, http.MethodDelete, "/"+feedbackIndex+"/_doc/sky?refresh=true", "") }
		s.firstPass.Store(&gone)
		if n := s.counted(t, "used", func() {
			if ids := search(); slices.Contains(ids, "sky") || ids[0] != "a" {
				t.Errorf("a deleted hit: %v", ids)
			}
		}); n != 1 {
			t.Errorf("a deleted hit: %v used", n)
		}
		s.firstPass.Store(nil)
		// The cluster has no _source to take the terms from.
		const sourceless = feedbackIndex + "-sourceless"
		e.makeIndex(t, sourceless, `{"settings":{"number_of_shards":1,"number_of_replicas":0},
			"mappings":{"_source":{"enabled":false},"properties":{"body":{"type":"text","analyzer":"whitespace"}}}}`)
		e.index(t, sourceless, []document{{"a", map[string]any{"body": "car tariff"}}, {"b", map[string]any{"body": "automobile"}}})
		if n := s.counted(t, "no_terms", func() {
			if got, err := s.search(t.Context(), "/"+sourceless+"/_search", feedbackQuery); err != nil || len(got.ids()) != 2 {
				t.Errorf("hits without _source: %v, %v", got.ids(), err)
			}
		}); n != 1 {
			t.Errorf("hits without _source: %v without terms", n)
		}
		// The first pass takes too long.
		slow := func() { time.Sleep(3 * time.Second) }
		s.firstPass.Store(&slow)
		if n := s.counted(t, "budget", func() {
			if ids := search(); ids[0] != "0" || !slices.Contains(ids, "c") {
				t.Errorf("a slow first pass: %v", ids)
			}
		}); n != 1 {
			t.Errorf("a slow first pass: %v over the budget", n)
		}
	})
}
