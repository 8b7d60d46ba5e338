package proxy

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/proxy/playground"
)

// The playground shows what clients get, with what it says of added terms, and
// takes part in no trial, which would count and log its searches as users'.
func TestPlaygroundSearchesAsClientsDo(t *testing.T) {
	node := trialNode{answersWith(hitsAnswer(1, 1, "a")), answersWith(hitsAnswer(2, 2, "a b"))}.start(t)
	o := trialOptions(node, func(x *Trial) { x.Header = "" })
	var asked *expand.Request
	o.Expander = expander(func(ctx context.Context, r *expand.Request) (*expand.Result, error) {
		asked = r
		return rewriteTo(newBody)(ctx, r)
	})
	o.Registry = prometheus.NewRegistry()
	s := newServer(t, o)
	t.Cleanup(s.Close)
	r := adminRequest(http.MethodPost, "/_akin/playground/search", `{"index":"t","body":`+trialBody+`,"adjusted":[{"term":"dog","factor":0.5}]}`)
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	s.admin.ServeHTTP(w, r)
	var got playground.Compared
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if !strings.Contains(string(got.Direct.Answer), `"value":1`) || !strings.Contains(string(got.Akin.Answer), `"value":2`) ||
		got.Explanation == nil || got.Explanation.Sent != "rewritten" || string(got.Explanation.Rewritten.Body) != newBody {
		t.Errorf("got %s", w.Body)
	}
	if len(asked.Adjusted) != 1 || asked.Adjusted[0].Factor != 0.5 || !asked.NameAdded {
		t.Errorf("the expander is asked for %v, names %t", asked.Adjusted, asked.NameAdded)
	}
	client := httptest.NewRequest(http.MethodPost, "/t/_search?akin=no-feedback", strings.NewReader(trialBody))
	client.Header.Set("Content-Type", "application/json")
	if s.proxy.ServeHTTP(httptest.NewRecorder(), client); asked.Adjusted != nil || asked.NameAdded {
		t.Error("clients' searches have names, too")
	}
	if n := counter(t, o.Registry, "akin_trial_searches_total"); n != 0 {
		t.Errorf("%v searches are in a trial", n)
	}
}

// Probes and scrapers need no token; all that shows or sends searches does.
func TestTokenOfTheAdminPort(t *testing.T) {
	s := newServer(t, Options{Nodes: nodesAt("http://127.0.0.1:9"), Gate: Gate{Token: "0123456789abcdef", Exposed: true}})
	t.Cleanup(s.Close)
	for route, open := range map[string]bool{
		"GET /healthz": true, "GET /readyz": true, "GET /metrics": true,
		"GET /": false, "GET /playground": false, "GET /playground.js": false, "GET /playground.css": false,
		"POST /_akin/expand/a": false, "GET /_akin/explanations": false, "GET /_akin/explanations/1": false,
		"GET /_akin/playground/setup": false, "POST /_akin/playground/search": false,
		"POST /_akin/playground/analysis": false, "POST /_akin/playground/neighbors": false,
	} {
		method, path, _ := strings.Cut(route, " ")
		for _, token := range []string{"", "0123456789abcdef"} {
			r := adminRequest(method, path, "{}")
			if token != "" {
				r.Header.Set("Authorization", "Bearer "+token)
			}
			w := httptest.NewRecorder()
			s.admin.ServeHTTP(w, r)
			if refused := w.Code == http.StatusUnauthorized; refused != (token == "" && !open) {
				t.Errorf("%s with the token %q: %d", route, token, w.Code)
			}
		}
	}
}

// They have texts of searches, which are to be in memory only.
func TestBrowsersKeepNoExplanations(t *testing.T) {
	s := newServer(t, Options{})
	for _, path := range []string{"/_akin/explanations", "/_akin/explanations/1"} {
		w := httptest.NewRecorder()
		s.admin.ServeHTTP(w, adminRequest(http.MethodGet, path, ""))
		if h := w.Header(); h.Get("Cache-Control") != "no-store" || h.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", path, h)
		}
	}
}
