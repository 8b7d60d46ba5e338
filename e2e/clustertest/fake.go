// Package clustertest has a cluster of canned answers, and indices on a real
// one, for tests of the packages that call clusters.
package clustertest

import (
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// An Answer is what an engine answered to a call.
type Answer struct {
	Status int             `json:"status"`
	Body   json.RawMessage `json:"body"`
}

// Recorded are the answers of one engine, by name.
type Recorded struct {
	Engine  string
	Answers map[string]Answer
}

// Body returns a recorded answer's body.
func (r Recorded) Body(tb testing.TB, name string) []byte {
	tb.Helper()
	a, ok := r.Answers[name]
	if !ok {
		tb.Fatalf("%s: no answer %q recorded", r.Engine, name)
	}
	return a.Body
}

// Engines returns the recorded answers of all engines, a file each in a folder.
func Engines(tb testing.TB, folder string) []Recorded {
	tb.Helper()
	files := os.DirFS(folder)
	names, err := fs.Glob(files, "*.json")
	if err != nil || len(names) == 0 {
		tb.Fatalf("no recorded answers: %v", err)
	}
	all := make([]Recorded, len(names))
	for i, name := range names {
		b, err := fs.ReadFile(files, name)
		if err != nil {
			tb.Fatal(err)
		}
		all[i].Engine = strings.TrimSuffix(name, ".json")
		if err := json.Unmarshal(b, &all[i].Answers); err != nil {
			tb.Fatal(name, err)
		}
	}
	return all
}

// A Fake is a cluster of canned answers. It keeps what was asked.
type Fake struct {
	mu       sync.Mutex
	calls    []string
	handlers map[string]http.HandlerFunc // by method and the end of the path
}

// New returns a fake that answers every call with an error.
func New() *Fake { return &Fake{handlers: map[string]http.HandlerFunc{}} }

// On sets the handler of the calls whose method and path, without the query,
// end so; the longest end wins.
func (f *Fake) On(call string, h http.HandlerFunc) *Fake {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.handlers[call] = h
	return f
}

// Handler returns what [Fake.On] or another method has set.
func (f *Fake) Handler(call string) http.HandlerFunc {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.handlers[call]
}

// Reply sets a fixed answer.
func (f *Fake) Reply(call string, status int, body string) *Fake {
	return f.On(call, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	})
}

// Replay sets a recorded answer.
func (f *Fake) Replay(tb testing.TB, call string, r Recorded, name string) *Fake {
	tb.Helper()
	return f.Reply(call, r.Answers[name].Status, string(r.Body(tb, name)))
}

// ServeHTTP implements http.Handler.
func (f *Fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
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

// Calls returns the calls so far: method, path and body.
func (f *Fake) Calls() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls)
}

// Asked returns how many calls hold a text.
func (f *Fake) Asked(text string) (n int) {
	for _, c := range f.Calls() {
		if strings.Contains(c, text) {
			n++
		}
	}
	return n
}

// RoundTrip implements http.RoundTripper without a network, so that the fake
// works in a bubble of testing/synctest.
func (f *Fake) RoundTrip(req *http.Request) (*http.Response, error) {
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

// Slow makes every call of f take a time.
func (f *Fake) Slow(d time.Duration) *Fake {
	for call, h := range f.handlers {
		f.On(call, Late(d, h))
	}
	return f
}

// Late makes a call take a time.
func Late(d time.Duration, h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(d):
			h(w, r)
		case <-r.Context().Done():
		}
	}
}

// Hang blocks until the call is given up.
func Hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
