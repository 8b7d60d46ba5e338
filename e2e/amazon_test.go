package e2e

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/akin-search/akin/e2e/amazontest"
)

// An amazon is akin before a stand-in for Amazon that verifies every signature
// in front of a real engine. Credentials are those of a container, and change.
type amazon struct {
	*akin

	front *amazontest.Front
	asked atomic.Int32 // how often for credentials
	dir   string       // the spool
}

const (
	iamJSON = `{"Message":"User: arn:aws:iam::123456789012:role/akin is not authorized to perform: es:ESHttpGet"}`
	iamXML  = "<AccessDeniedException>\n  <Message>not authorized</Message>\n</AccessDeniedException>"
)

func setupAmazon(t *testing.T, e *engine, life time.Duration) *amazon {
	t.Helper()
	target, err := url.Parse(e.url)
	if err != nil {
		t.Fatal(err)
	}
	relay := httputil.NewSingleHostReverseProxy(target)
	s := &amazon{dir: newDir(t, "spool")}
	s.front = &amazontest.Front{Region: "eu-central-1", Service: "es", Next: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/moved":
			http.Redirect(w, r, "http://192.0.2.1/elsewhere", http.StatusTemporaryRedirect)
		case "/iam.json", "/iam.xml":
			w.Header().Set("Content-Type", "application/"+strings.TrimPrefix(r.URL.Path, "/iam."))
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, map[string]string{"/iam.json": iamJSON, "/iam.xml": iamXML}[r.URL.Path])
		default:
			r.Host = target.Host
			relay.ServeHTTP(w, r)
		}
	})}
	credentials := s.front.Credentials(life)
	served := func(h http.Handler) string {
		server := httptest.NewServer(h)
		t.Cleanup(server.Close)
		return server.URL
	}
	endpoint := served(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.asked.Add(1)
		credentials.ServeHTTP(w, r)
	}))
	none := s.dir + "/none"
	s.akin = setup(t, e, section{
		"cluster": section{
			"urls": []string{served(s.front)}, "aws": section{"region": "eu-central-1", "service": "es", "spool": s.dir},
		},
		"expansion": section{"matching": "widen"},
	}, "AWS_CONTAINER_CREDENTIALS_FULL_URI="+endpoint, "AWS_CONFIG_FILE="+none, "AWS_SHARED_CREDENTIALS_FILE="+none, "AWS_ACCESS_KEY_ID=", "AWS_PROFILE=")
	return s
}

// wellSigned fails where the stand-in refused a request.
func (s *amazon) wellSigned(t *testing.T) {
	t.Helper()
	if failed := s.front.Failed(); len(failed) > 0 || s.front.Passed() == 0 {
		t.Errorf("%d requests passed, and these were refused: %.2000q", s.front.Passed(), failed)
	}
}

// TestSignedRequestsReachTheEngine sends each kind of request and body, and
// compares the engine's answers with those to the same requests sent to it.
func TestSignedRequestsReachTheEngine(t *testing.T) {
	e := oneEngine(t)
	s := setupAmazon(t, e, time.Hour)
	if strings.Join(s.find(t, relatedIndex, relatedSearch("car")).sorted(), " ") != expandedHits {
		t.Error("searches are not expanded")
	}
	checkNoFallback(t, s.akin)

	const target = "akin-e2e-amazon"
	e.remakeIndex(t, target, `{"mappings":{"enabled":false}}`)
	t.Cleanup(func() { e.dropIndex(target) })
	var packed bytes.Buffer
	gz := gzip.NewWriter(&packed)
	_, _ = io.WriteString(gz, `{"query":{"match":{"body":"car"}}}`)
	_ = gz.Close()
	jsonType, lines := "Content-Type: application/json", "Content-Type: application/x-ndjson"
	bulk := func(size int) string {
		line := `{"index":{}}` + "\n" + `{"text":"` + strings.Repeat("x", 1<<20) + `"}` + "\n"
		return strings.Repeat(line, size/len(line))
	}
	for name, r := range map[string]rawRequest{
		"search":                {method: "POST", target: "/" + relatedIndex + "/_search?typed_keys&filter_path=hits.total,-took", header: []string{jsonType, "X-Akin: off"}, body: `{"query":{"match":{"body":"car"}}}`},
		"search in the target":  {method: "GET", target: "/" + relatedIndex + "/_search?q=body:(car+OR%20b%6Fat*)&df=body;sort=_doc", header: []string{"X-Akin: off"}},
		"gzip":                  {method: "POST", target: "/" + relatedIndex + "/_search", header: []string{jsonType, "Content-Encoding: gzip", "X-Akin: off"}, body: packed.String()},
		"several searches":      {method: "POST", target: "/_msearch", header: []string{lines, "X-Akin: off"}, body: `{"index":"` + relatedIndex + `"}` + "\n" + `{"query":{"match":{"body":"car"}}}` + "\n"},
		"date math":             {method: "GET", target: "/<akin-e2e-amazon-{now/d}>,akin-e2e-amazo*/_count"},
		"escaped date math":     {method: "GET", target: "/%3Cakin-e2e-amazon-%7Bnow%2Fd%7D%3E/_count?ignore_unavailable"},
		"two slashes":           {method: "GET", target: "//" + relatedIndex + "//_count"},
		"bad escape, as engine": {method: "GET", target: "/" + relatedIndex + "/_count?q=%zz"},
		"empty":                 {method: "POST", target: "/" + relatedIndex + "/_refresh"},
		"chunks":                {method: "POST", target: "/" + target + "/_doc", header: []string{jsonType}, body: `{"text":"` + strings.Repeat("y", 5000) + `"}`, chunked: true},
		"snapshots":             {method: "GET", target: "/_snapshot/_all"},
		"a snapshot":            {method: "PUT", target: "/_snapshot/none/first?wait_for_completion", header: []string{jsonType}, body: `{"indices":"` + relatedIndex + `"}`},
		"100 MB":                {method: "POST", target: "/" + target + "/_bulk?filter_path=errors,status", header: []string{lines}, body: bulk(100_000_000)},
	} {
		before := s.front.Passed()
		got, want := exchange(t, s.url, r), exchange(t, e.url, r)
		written := strings.HasPrefix(r.target, "/"+target)
		if got.status != want.status || !written && got.status < "3" && volatile.ReplaceAllString(got.body, "") != volatile.ReplaceAllString(want.body, "") {
			t.Errorf("%s: %s %.300s, and without akin %s %.300s", name, got.status, got.body, want.status, want.body)
		}
		if passed := s.front.Passed() > before; passed == (name == "bad escape, as engine") {
			t.Errorf("%s: reached the cluster: %v", name, passed)
		}
	}
	// The engine takes as much at once as a tenth of its memory.
	if got := exchange(t, s.url, rawRequest{method: "POST", target: "/" + target + "/_bulk?filter_path=errors", header: []string{lines}, body: bulk(40_000_000)}); got.body != `{"errors":false}` {
		t.Errorf("40 MB: %s %.300s", got.status, got.body)
	}
	if got := exchange(t, s.url, rawRequest{method: "POST", target: "/" + target + "/_bulk", header: []string{lines}, body: bulk(110_000_000)}); !strings.HasPrefix(got.status, "413 ") {
		t.Errorf("110 MB: %s %.300s", got.status, got.body)
	}
	for path, want := range map[string]string{"/moved": "307 Temporary Redirect", "/iam.json": "403 Forbidden" + iamJSON, "/iam.xml": "403 Forbidden" + iamXML} {
		got := exchange(t, s.url, rawRequest{method: "GET", target: path})
		if !strings.HasPrefix(got.status+got.body, want) {
			t.Errorf("%s: %s %s", path, got.status, got.body)
		}
	}
	if left, err := os.ReadDir(s.dir); err != nil || len(left) > 0 {
		t.Errorf("left in the spool: %v, %v", left, err)
	}
	s.wellSigned(t)
}

// TestCredentialsChangeWhileClientsSearch has sixteen clients read and write
// while the credentials are replaced and the old ones end.
func TestCredentialsChangeWhileClientsSearch(t *testing.T) {
	s := setupAmazon(t, oneEngine(t), 3*time.Second)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	const target = "akin-e2e-amazon-load"
	t.Cleanup(func() { oneEngine(t).dropIndex(target) })
	first := s.asked.Load()
	var clients sync.WaitGroup
	var answered atomic.Int32
	for n := range 16 {
		clients.Go(func() {
			for k := 0; s.asked.Load() < first+4 && ctx.Err() == nil; k++ {
				method, path, body := http.MethodPost, "/"+relatedIndex+"/_search", `{"query":{"match":{"body":"car"}}}`
				switch k % 3 {
				case 1:
					path, body = "/_msearch", `{"index":"`+relatedIndex+`"}`+"\n"+body+"\n"
				case 2:
					path, body = "/_bulk", fmt.Sprintf(`{"index":{"_index":%q,"_id":"%d"}}`+"\n"+`{"n":%d}`+"\n", target, n, k)
				}
				status, answer, err := s.call(ctx, method, path, body)
				if err != nil || status != http.StatusOK {
					t.Errorf("%s: %v %d %.300s", path, err, status, answer)
					return
				}
				answered.Add(1)
			}
		})
	}
	clients.Wait()
	if s.asked.Load() < first+4 || answered.Load() < 100 {
		t.Errorf("%d requests in the time of %d credentials", answered.Load(), s.asked.Load()-first)
	}
	s.wellSigned(t)
	checkNoFallback(t, s.akin)
}

// BenchmarkSignedSearches has eight clients search in turn through an akin that
// signs and one that does not, on one engine, which ignores signatures.
func BenchmarkSignedSearches(b *testing.B) {
	const batch, clients = 100, 8
	e := oneEngine(b)
	aws := section{"urls": []string{e.url}, "aws": section{"region": "eu-central-1"}}
	arms := []*akin{setup(b, e, section{}), setup(b, e, section{"cluster": aws}, "AWS_ACCESS_KEY_ID=a", "AWS_SECRET_ACCESS_KEY=b")}
	took := make([]time.Duration, len(arms))
	for n := 0; b.Loop(); n++ {
		for k := range arms {
			i := (n + k) % len(arms) // each is the first one as often
			a, began := arms[i], time.Now()
			var sending sync.WaitGroup
			for range clients {
				sending.Go(func() {
					for range batch {
						if status, answer, err := a.call(b.Context(), http.MethodPost, "/"+relatedIndex+"/_search", `{"query":{"match":{"body":"car"}}}`); err != nil || status != http.StatusOK {
							b.Errorf("%v %d %.300s", err, status, answer)
						}
					}
				})
			}
			sending.Wait()
			took[i] += time.Since(began)
		}
	}
	searches := float64(batch * clients * b.N)
	for i, a := range arms {
		if n := a.metric(b, requestsMetric, `outcome="rewritten"`); n < searches {
			b.Errorf("arm %d expanded %v of %v searches", i, n, searches)
		}
	}
	b.ReportMetric(searches/took[0].Seconds(), "unsigned/s")
	b.ReportMetric(searches/took[1].Seconds(), "signed/s")
}
