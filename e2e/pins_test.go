package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// pinsIndex has feedback terms and enough words for searches of their own.
const pinsIndex = "akin-e2e-pins"

// TestPinsOneVersionForAllOfARequest switches the matrix while akin waits for
// the engine in the middle of a request. All that is expanded behind that has
// the version that was active when the request began.
func TestPinsOneVersionForAllOfARequest(t *testing.T) {
	const name = "akin-e2e-pins"
	e, redis := oneEngine(t), commonRedis(t)
	e.makeIndex(t, pinsIndex, `{"settings":{"number_of_shards":1,"number_of_replicas":0},
		"mappings":{"properties":{"body":{"type":"text","analyzer":"whitespace"}}}}`)
	var docs []document
	for i, text := range []string{"car tariff", "car tariff red", "automobile tariff", "lorry", "boat"} {
		docs = append(docs, document{strconv.Itoa(i), map[string]any{"body": text}})
	}
	for i := range 60 {
		docs = append(docs, document{fmt.Sprint("filler", i), map[string]any{"body": "filler of another kind"}})
	}
	e.index(t, pinsIndex, docs)
	versionA := pushMatrix(t, redis, name, relatedFile(t, vectorsA))
	versionB := pushMatrix(t, redis, name, relatedFile(t, vectorsB))

	target, err := url.Parse(e.url)
	if err != nil {
		t.Fatal(err)
	}
	var hold atomic.Pointer[func(r *http.Request)]
	between := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		if f := hold.Load(); f != nil {
			(*f)(r.In)
		}
		r.SetURL(target)
	}})
	t.Cleanup(between.Close)
	a := startAkin(t, section{
		"cluster":   section{"urls": []string{between.URL}},
		"expansion": section{"budget": widePatience, "templates": true, "feedback": section{"documents": 3}},
		"matrices":  []section{{"name": name}},
		"redis":     section{"url": redis.url},
	})
	const warm = `{"query":{"match":{"body":"car"}}}`
	activate := func(version string) {
		t.Helper()
		mustAkin(t, "matrix", "activate", version, "--redis", redis.url, "--name", name)
		waitFor(t, 10*time.Second, "the version "+version, func() error {
			if got := a.explain(t, pinsIndex, warm).Clauses[0].Matrix; got != name+"@"+version {
				return fmt.Errorf("it is %s", got)
			}
			return nil
		})
	}
	// Of texts that akin has not analyzed yet.
	several := func(line, word string) string {
		var b strings.Builder
		for i := range 9 {
			fmt.Fprintf(&b, line, fmt.Sprintf(`{"query":{"match":{"body":"car boat %s%d"}}}`, word, i))
		}
		return b.String()
	}
	for _, tt := range []struct {
		name, path, body string
		// held reports whether a call to the engine waits for the switch.
		held func(r *http.Request) bool
	}{
		{"_msearch", "/_msearch", several("{}\n%s\n", "a"), isAnalysis},
		{"_msearch_template", "/_msearch/template", several("{}\n{\"source\":%s}\n", "b"), isAnalysis},
		{
			"_rank_eval", "/_rank_eval", `{"requests":[` + strings.TrimSuffix(several(`{"id":"a","ratings":[],"request":%s},`, "c"), ",") + `],"metric":{"precision":{}}}`,
			isAnalysis,
		},
		{"feedback", "/_search", warm, func(r *http.Request) bool { return strings.Contains(r.URL.RawQuery, "_shards.failed,hits.hits._index") }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			activate(versionA)
			used := a.metric(t, feedbackMetric, `result="used"`)
			arrived, released := make(chan struct{}), make(chan struct{})
			var once sync.Once
			f := func(r *http.Request) {
				if tt.held(r) {
					once.Do(func() { close(arrived) })
					<-released
				}
			}
			hold.Store(&f)
			defer hold.Store(nil)
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, a.url+"/"+pinsIndex+tt.path, strings.NewReader(tt.body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("X-Akin", "explain")
			id := make(chan string, 1)
			go func() {
				defer close(id)
				res, err := client.Do(req)
				if err != nil {
					t.Error(err)
					return
				}
				defer res.Body.Close()
				_, _ = io.Copy(io.Discard, res.Body)
				id <- res.Header.Get("X-Akin-Explanation")
			}()
			select {
			case <-arrived:
			case got := <-id:
				t.Fatalf("nothing was held: %q", got)
			}
			activate(versionB)
			close(released)
			var shown explanation
			decode(t, a.admin.must(t, http.MethodGet, "/_akin/explanations/"+<-id, ""), &shown)
			var versions []string
			for _, c := range shown.Clauses {
				versions = append(versions, c.Matrix)
			}
			if len(versions) == 0 || slices.ContainsFunc(versions, func(v string) bool { return v != name+"@"+versionA }) {
				t.Errorf("versions %q, want %s in all", versions, versionA)
			}
			if a.metric(t, feedbackMetric, `result="used"`) == used && tt.name == "feedback" {
				t.Error("no feedback was used")
			}
		})
	}
}

func isAnalysis(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/_analyze") }
