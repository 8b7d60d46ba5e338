package documents

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/akin-search/akin/esclient"
)

// An answer is what an engine answered to a call.
type answer struct {
	Status int             `json:"status"`
	Body   json.RawMessage `json:"body"`
}

// recorded are the answers of one engine.
type recorded struct {
	engine  string
	answers map[string]answer
}

// body returns a recorded answer's body.
func (r recorded) body(t *testing.T, name string) []byte {
	t.Helper()
	a, ok := r.answers[name]
	if !ok {
		t.Fatalf("%s: no answer %q recorded", r.engine, name)
	}
	return a.Body
}

// engines returns the recorded answers of all engines.
func engines(tb testing.TB) []recorded {
	tb.Helper()
	names, err := filepath.Glob("../testdata/*.json")
	if err != nil || len(names) == 0 {
		tb.Fatalf("no recorded answers: %v", err)
	}
	var all []recorded
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			tb.Fatal(err)
		}
		r := recorded{engine: strings.TrimSuffix(filepath.Base(name), ".json")}
		if err := json.Unmarshal(b, &r.answers); err != nil {
			tb.Fatal(name, err)
		}
		all = append(all, r)
	}
	return all
}

// A fake is a cluster of canned answers. It keeps what was asked.
type fake struct {
	mu    sync.Mutex
	calls []string
	// handlers answer the calls by method and the end of the path.
	handlers map[string]http.HandlerFunc
}

func newFake() *fake { return &fake{handlers: map[string]http.HandlerFunc{}} }

// on sets the handler of the calls whose method and path, without the query,
// end so; the longest end wins.
func (f *fake) on(call string, h http.HandlerFunc) *fake {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.handlers[call] = h
	return f
}

// reply sets a fixed answer.
func (f *fake) reply(call string, status int, body string) *fake {
	return f.on(call, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	})
}

// replay sets a recorded answer.
func (f *fake) replay(t *testing.T, call string, r recorded, name string) *fake {
	t.Helper()
	return f.reply(call, r.answers[name].Status, string(r.body(t, name)))
}

// ServeHTTP implements http.Handler.
func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	f.mu.Lock()
	f.calls = append(f.calls, r.Method+" "+r.URL.RequestURI()+" "+string(body))
	var best string
	for call := range f.handlers {
		method, end, _ := strings.Cut(call, " ")
		if r.Method == method && strings.HasSuffix(r.URL.Path, end) && len(call) > len(best) {
			best = call
		}
	}
	h := f.handlers[best]
	f.mu.Unlock()
	if h == nil {
		http.Error(w, `{"error":"no handler found"}`, http.StatusBadRequest)
		return
	}
	h(w, r)
}

// asked returns how many calls hold a text.
func (f *fake) asked(text string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, c := range f.calls {
		if strings.Contains(c, text) {
			n++
		}
	}
	return n
}

// RoundTrip implements http.RoundTripper without a network, so that the fake
// works in a bubble of testing/synctest.
func (f *fake) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body == nil {
		req.Body = http.NoBody
	}
	w := httptest.NewRecorder()
	f.ServeHTTP(w, req)
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	return w.Result(), nil
}

// client returns the API of the fake, without a network.
func (f *fake) client(tb testing.TB) API {
	tb.Helper()
	c, err := esclient.New(esclient.Options{Transport: f})
	if err != nil {
		tb.Fatal(err)
	}
	return API{c}
}

// hang blocks until the call is given up.
func hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
