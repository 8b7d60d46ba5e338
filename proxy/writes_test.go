package proxy

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/internal/budget"
)

// normsFunc is a Norms made of a function.
type normsFunc func(ctx context.Context, w *Write) (*Written, error)

func (f normsFunc) Write(ctx context.Context, w *Write) (*Written, error) { return f(ctx, w) }

// becomes puts norms into every body.
func becomes(body string) normsFunc {
	return func(_ context.Context, w *Write) (*Written, error) {
		if w.Body == nil {
			return &Written{}, nil
		}
		return &Written{Body: []byte(body), Documents: map[string]int{"added": 2}}, nil
	}
}

func TestRecognisesWrites(t *testing.T) {
	doc := func(index, id string) *Write { return &Write{Index: index, ID: id} }
	for _, c := range []struct {
		line string
		want *Write // nil for what is no write
	}{
		{"PUT /i/_doc/1", doc("i", "1")},
		{"POST /i/_doc/1/", doc("i", "1")},
		{"POST /i/_doc", doc("i", "")},
		{"PUT /i/_doc", nil},
		{"GET /i/_doc/1", nil},
		{"HEAD /i/_doc/1", nil},
		{"DELETE /i/_doc/1", nil},
		{"PUT /i/_create/1", doc("i", "1")},
		{"POST /i/_create/1", doc("i", "1")},
		{"POST /i/_create", nil},
		{"POST /i/_update/1", &Write{Index: "i", ID: "1", Update: true}},
		{"PUT /i/_update/1", nil},
		{"POST /_bulk", &Write{Bulk: true}},
		{"PUT /_bulk?refresh", &Write{Bulk: true}},
		{"GET /_bulk", nil},
		{"PUT /i/_bulk?pipeline=p&routing=a%20b", &Write{Index: "i", Bulk: true, Pipeline: "p", Routing: "a b"}},
		{"PUT /i/_doc/1?version_type=external&version=3", &Write{Index: "i", ID: "1", VersionType: "external"}},
		{"PUT /%3Clogs-%7Bnow%2Fd%7D%3E/_doc/a%2Fb", doc("<logs-{now/d}>", "a/b")},
		{"PUT /<logs-{now%2Fd}>/_doc/_search", doc("<logs-{now/d}>", "_search")},
		{"PUT /i/_doc/%zz", nil},
		{"PUT /i/%5Fdoc/1", nil},
		{"PUT /_ingest/_doc/1", nil},
		{"POST /i/_doc/1/_update", nil},
		{"POST /i/type/_bulk", nil},
		{"POST /i/_update_by_query", nil},
		{"POST /_reindex", nil},
		{"PUT /i", nil},
	} {
		t.Run(c.line, func(t *testing.T) {
			method, target, _ := strings.Cut(c.line, " ")
			path, query, _ := strings.Cut(target, "?")
			got, ok := recogniseWrite(method, path, query)
			if diff := cmp.Diff(c.want, got); diff != "" || ok != (c.want != nil) {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// sendWrite sends a raw request that ends the connection, and returns the answer.
func sendWrite(t *testing.T, addr, line, headers, body string) string {
	t.Helper()
	return exchangeRaw(t, addr, fmt.Sprintf("%s HTTP/1.1\nHost: a\nConnection: close\n%sContent-Length: %d\n\n", line, headers, len(body))+body)
}

const jsonLine = "Content-Type: application/json\n"

func TestWritesGoOnWithTheirNorms(t *testing.T) {
	for _, c := range []struct{ name, line, headers, body string }{
		{"a document", "PUT /i/_doc/1?if_seq_no=3&if_primary_term=1&refresh=wait_for", jsonLine, `{"a":1}`},
		{"a bulk request", "POST /_bulk", "Content-Type: application/x-ndjson\n", "{}\n"},
		{"a bulk request that says it is JSON", "POST /_bulk", jsonLine, "{}\n"},
		{"gzip", "PUT /i/_doc/1", jsonLine + "Content-Encoding: gzip\n", gzipped(t, `{"a":1}`)},
	} {
		t.Run(c.name, func(t *testing.T) {
			node := startRawNode(t, nil)
			var seen Write
			norms := normsFunc(func(ctx context.Context, w *Write) (*Written, error) {
				seen = *w
				return becomes(`{"a":1,"norm":2}`)(ctx, w)
			})
			addr, registry := startProxy(t, Options{Upstreams: []string{node.URL}, Norms: norms})
			sendWrite(t, addr, c.line, c.headers+"X-Opaque-Id: x\n", c.body)
			got := node.only(t)
			if got.line != c.line+" HTTP/1.1" || got.body != `{"a":1,"norm":2}` {
				t.Errorf("the node got %s with %s", got.line, got.body)
			}
			for name, want := range map[string]string{"Content-Length": "16", "Content-Encoding": "", "X-Opaque-Id": "x", "Transfer-Encoding": ""} {
				if got := strings.Join(got.get(name), ","); got != want {
					t.Errorf("%s is %q, want %q", name, got, want)
				}
			}
			if want := strings.ReplaceAll(c.body, gzipped(t, `{"a":1}`), `{"a":1}`); string(seen.Body) != want {
				t.Errorf("the norms saw %q, want %q", seen.Body, want)
			}
			if n := counter(t, registry, "akin_norm_writes_total", "result", writeChanged); n != 1 {
				t.Errorf("%v changed writes were counted, want 1", n)
			}
			if n := counter(t, registry, "akin_norm_documents_total", "result", "added"); n != 2 {
				t.Errorf("%v documents were counted, want 2", n)
			}
		})
	}
}

func gzipped(t *testing.T, text string) string {
	t.Helper()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	io.WriteString(z, text)
	z.Close()
	return packed.String()
}

func TestWritesFailOpen(t *testing.T) {
	ok := becomes("{}")
	for _, c := range []struct {
		name, headers, body, result string
		norms                       normsFunc
	}{
		{"an error", jsonLine, `{"a": 1}`, "error", func(context.Context, *Write) (*Written, error) { return nil, errors.New("x") }},
		{"an error with documents", jsonLine, `{"a": 1}`, "error", func(context.Context, *Write) (*Written, error) {
			return &Written{Documents: map[string]int{"left": 1}}, errors.New("x")
		}},
		{"a panic", jsonLine, `{"a": 1}`, "panic", func(context.Context, *Write) (*Written, error) { panic("x") }},
		{"no time", jsonLine, `{"a": 1}`, "budget", func(ctx context.Context, _ *Write) (*Written, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}},
		{"nothing to add", jsonLine, `{"a": 1}`, writeUnchanged, func(context.Context, *Write) (*Written, error) { return nil, nil }},
		{"no body", jsonLine, "", writeEmpty, ok},
		{"another format", "Content-Type: application/cbor\n", "\xbf\xff", reasonContentType, ok},
		{"lines for a document", "Content-Type: application/x-ndjson\n", "{}", reasonContentType, ok},
		{"no type", "", "{}", reasonContentType, ok},
		{"another coding", jsonLine + "Content-Encoding: br\n", "{}", reasonEncoding, ok},
		{"broken gzip", jsonLine + "Content-Encoding: gzip\n", "{}", reasonEncoding, ok},
		{"too large", jsonLine, strings.Repeat(" ", 1001), reasonTooLarge, ok},
		{"too large inside", jsonLine + "Content-Encoding: gzip\n", gzipped(t, strings.Repeat(" ", 1001)), reasonTooLarge, ok},
	} {
		t.Run(c.name, func(t *testing.T) {
			node := startRawNode(t, nil)
			addr, registry := startProxy(t, Options{
				Upstreams: []string{node.URL}, Norms: c.norms, WriteBudget: 10 * time.Millisecond, MaxWriteBody: 1000,
			})
			if got := sendWrite(t, addr, "PUT /i/_doc/1", c.headers, c.body); !strings.HasPrefix(got, "HTTP/1.1 200 OK") {
				t.Errorf("the answer is %q", got)
			}
			got := node.only(t)
			if got.body != c.body || got.line != "PUT /i/_doc/1 HTTP/1.1" {
				t.Errorf("the node got %s with %q, want the body as it came", got.line, got.body)
			}
			for line := range strings.Lines(c.headers) {
				name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
				if v := got.get(name); len(v) != 1 || v[0] != value {
					t.Errorf("%s is %q, want %q", name, v, value)
				}
			}
			if n := counter(t, registry, "akin_norm_writes_total", "result", c.result); n != 1 {
				t.Errorf("%v writes with the result %q were counted, want 1", n, c.result)
			}
		})
	}
}

func TestWritesInChunksAreRead(t *testing.T) {
	const chunked = "PUT /i/_doc/1 HTTP/1.1\nHost: a\nConnection: close\nContent-Type: application/json\nTransfer-Encoding: chunked\n\n"
	for name, c := range map[string]struct{ text, want string }{
		"small": {`{"a":1}`, `{"b":1}`}, "too large": {strings.Repeat(" ", 3000), ""},
	} {
		t.Run(name, func(t *testing.T) {
			node := startRawNode(t, nil)
			addr, _ := startProxy(t, Options{Upstreams: []string{node.URL}, Norms: becomes(`{"b":1}`), MaxWriteBody: 1000})
			exchangeRaw(t, addr, chunked+fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(c.text), c.text))
			got := node.only(t)
			if c.want != "" && got.body != c.want || c.want == "" && strings.Count(got.body, " ") != len(c.text) {
				t.Errorf("the node got %.100q", got.body)
			}
		})
	}
}

// Without norms the body of a write is not read before it is sent on, and nothing
// of the request changes.
func TestWritesPassUnreadWithoutNorms(t *testing.T) {
	node := startRawNode(t, nil)
	addr, registry := startProxy(t, Options{Upstreams: []string{node.URL}})
	const body = "{\"index\":{}}\n{\"a\":1}\n"
	sendWrite(t, addr, "POST /i/_bulk", "Content-Type: application/x-ndjson\nContent-Encoding: identity\n", body)
	direct := startRawNode(t, func(int, rawRequest) string { return emptyAnswer + hangUp })
	sendWrite(t, direct.addr, "POST /i/_bulk", "Content-Type: application/x-ndjson\nContent-Encoding: identity\n", body)
	got, want := node.only(t), direct.only(t)
	if got.line != want.line || got.body != want.body {
		t.Errorf("the node got %s with %q", got.line, got.body)
	}
	for _, name := range []string{"Content-Type", "Content-Encoding", "Content-Length"} {
		if diff := cmp.Diff(want.get(name), got.get(name)); diff != "" {
			t.Errorf("%s (-direct +got):\n%s", name, diff)
		}
	}
	if n := counter(t, registry, "akin_norm_writes_total"); n != 0 {
		t.Errorf("%v writes were counted, want none", n)
	}
}

func TestOtherRequestsDoNotReachTheNorms(t *testing.T) {
	node := startRawNode(t, nil)
	norms := normsFunc(func(_ context.Context, w *Write) (*Written, error) {
		t.Errorf("the norms got %+v", w)
		return nil, nil
	})
	addr, _ := startProxy(t, Options{Upstreams: []string{node.URL}, Norms: norms})
	for _, line := range []string{"POST /i/_update_by_query", "POST /_reindex", "PUT /i", "POST /i/_search", "POST /i/_refresh"} {
		sendWrite(t, addr, line, jsonLine, "{}")
	}
}

func TestNormsAreToldTheAnswerOnce(t *testing.T) {
	for _, c := range []struct {
		name, answer string
		want         []int
	}{
		{"taken", "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}", []int{201}},
		{"refused", "HTTP/1.1 400 Bad Request\r\nContent-Length: 2\r\n\r\n{}", []int{400}},
		{"a conflict", "HTTP/1.1 409 Conflict\r\nContent-Length: 2\r\n\r\n{}", []int{409}},
		{"broken off", "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n{}" + hangUp, []int{200}},
		{"none", hangUp, []int{0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			node := startRawNode(t, func(int, rawRequest) string { return c.answer })
			var mu sync.Mutex
			var told []int
			done := make(chan struct{})
			norms := normsFunc(func(context.Context, *Write) (*Written, error) {
				return &Written{Done: func(a WriteAnswer) map[string]int {
					mu.Lock()
					defer mu.Unlock()
					told = append(told, a.Status)
					close(done)
					return nil
				}}, nil
			})
			addr, _ := startProxy(t, Options{Upstreams: []string{node.URL, node.URL}, Norms: norms})
			sendWrite(t, addr, "PUT /i/_doc/1", jsonLine, "{ }")
			<-done
			mu.Lock()
			defer mu.Unlock()
			if diff := cmp.Diff(c.want, told); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
			node.only(t) // a write is never sent twice
		})
	}
}

// answering answers by what the body of a request is.
func answering(by func(body string) string) func(int, rawRequest) string {
	return func(_ int, r rawRequest) string {
		answer := by(r.body)
		status, body, _ := strings.Cut(answer, " ")
		return fmt.Sprintf("HTTP/1.1 %s X\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", status, len(body), body)
	}
}

func TestARefusedWriteIsSentAsItCame(t *testing.T) {
	const changed = `{"norm":1}`
	packed := gzipped(t, `{"a":1}`)
	for _, c := range []struct {
		name, line, headers, body string
		refused, then             string // what the changed one and the original are answered with
		sent                      int
		want                      WriteAnswer
		counted                   string
	}{
		{"a document", "PUT /i/_doc/1", jsonLine, `{"a": 1}`, "400 {}", "201 {}", 2, WriteAnswer{Status: 201, Original: true}, "taken"},
		{"a compressed one", "PUT /i/_doc/1", jsonLine + "Content-Encoding: gzip\n", packed, "400 {}", "201 {}", 2, WriteAnswer{Status: 201, Original: true}, "taken"},
		{"an update", "POST /i/_update/1", jsonLine, `{"doc":{}}`, "400 {}", "200 {}", 2, WriteAnswer{Status: 200, Original: true}, "taken"},
		{"a broken document", "PUT /i/_doc/1", jsonLine, `{"a": 1}`, "400 {}", "400 {}", 2, WriteAnswer{Status: 400, Original: true}, "refused"},
		{"a conflict", "PUT /i/_doc/1", jsonLine, `{"a": 1}`, "409 {}", "201 {}", 1, WriteAnswer{Status: 409}, ""},
		{"a failure", "PUT /i/_doc/1", jsonLine, `{"a": 1}`, "500 {}", "201 {}", 1, WriteAnswer{Status: 500}, ""},
		{"a bulk request", "POST /_bulk", jsonLine, "{}\n", "400 {}", "200 {}", 1, WriteAnswer{Status: 400, Beginning: []byte("{}")}, ""},
		{"one that became too long", "POST /_bulk", jsonLine, "{}\n", "413 {}", "200 {}", 2, WriteAnswer{Status: 200, Original: true}, "taken"},
	} {
		t.Run(c.name, func(t *testing.T) {
			node := startRawNode(t, answering(func(body string) string {
				if body == changed {
					return c.refused
				}
				return c.then
			}))
			done := make(chan WriteAnswer, 1)
			norms := normsFunc(func(context.Context, *Write) (*Written, error) {
				return &Written{Body: []byte(changed), Done: func(a WriteAnswer) map[string]int {
					done <- a
					return map[string]int{"behind": 3}
				}}, nil
			})
			addr, registry := startProxy(t, Options{Upstreams: []string{node.URL}, Norms: norms})
			answer := sendWrite(t, addr, c.line, c.headers, c.body)
			got := <-done
			if got.Beginning != nil && len(got.Beginning) == 0 {
				got.Beginning = nil
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("the norms were told (-want +got):\n%s", diff)
			}
			if !strings.HasPrefix(answer, fmt.Sprintf("HTTP/1.1 %d ", c.want.Status)) {
				t.Errorf("the client got %q", answer)
			}
			node.mu.Lock()
			defer node.mu.Unlock()
			if len(node.requests) != c.sent {
				t.Fatalf("%d requests were sent, want %d", len(node.requests), c.sent)
			}
			if last := node.requests[c.sent-1]; c.sent > 1 {
				encoding := ""
				if strings.Contains(c.headers, "gzip") {
					encoding = "gzip"
				}
				if last.body != c.body || strings.Join(last.get("Content-Encoding"), ",") != encoding || strings.Join(last.get("Content-Length"), ",") != strconv.Itoa(len(c.body)) {
					t.Errorf("the original went out as %+v", last)
				}
			}
			for _, original := range []string{"taken", "refused"} {
				want := 0.0
				if original == c.counted {
					want = 1
				}
				if n := counter(t, registry, "akin_norm_refused_writes_total", "original", original); n != want {
					t.Errorf("%v writes of which the original was %s, want %v", n, original, want)
				}
			}
			if n := counter(t, registry, "akin_norm_documents_total", "result", "behind"); n != 3 {
				t.Errorf("%v documents were counted after the answer, want 3", n)
			}
		})
	}
}

// The answer to a bulk request reaches the client whole, and the norms its
// beginning.
func TestTheBeginningOfABulkAnswerIsKept(t *testing.T) {
	text := `{"errors":true,"items":[` + strings.Repeat(" ", 2*maxBeginning) + `]}`
	for name, c := range map[string]struct{ headers, body string }{"plain": {"", text}, "gzip": {"Content-Encoding: gzip\r\n", gzipped(t, text)}} {
		t.Run(name, func(t *testing.T) {
			node := startRawNode(t, func(int, rawRequest) string {
				return fmt.Sprintf("HTTP/1.1 200 OK\r\n%sContent-Length: %d\r\n\r\n%s", c.headers, len(c.body), c.body)
			})
			done := make(chan []byte, 1)
			norms := normsFunc(func(context.Context, *Write) (*Written, error) {
				return &Written{Body: []byte("{}"), Done: func(a WriteAnswer) map[string]int {
					done <- a.Beginning
					panic("x") // the answer is there: nothing more can be lost
				}}, nil
			})
			addr, _ := startProxy(t, Options{Upstreams: []string{node.URL}, Norms: norms})
			if answer := sendWrite(t, addr, "POST /_bulk", jsonLine+"Accept-Encoding: gzip\n", "{}\n"); !strings.HasSuffix(answer, c.body) {
				t.Errorf("the client got %.100q, of %d bytes", answer, len(answer))
			}
			if got := <-done; string(got) != text[:maxBeginning] {
				t.Errorf("the norms got %.100q, of %d bytes", got, len(got))
			}
		})
	}
}

// A failure behind the first part of a bulk request leaves that its norms.
func TestAPartOfTheNormsIsSent(t *testing.T) {
	node := startRawNode(t, nil)
	norms := normsFunc(func(context.Context, *Write) (*Written, error) { return &Written{Body: []byte("{ }")}, errors.New("x") })
	addr, registry := startProxy(t, Options{Upstreams: []string{node.URL}, Norms: norms})
	sendWrite(t, addr, "POST /_bulk", jsonLine, "{}\n")
	if got := node.only(t).body; got != "{ }" {
		t.Errorf("the node got %q", got)
	}
	if n := counter(t, registry, "akin_norm_writes_total", "result", "error"); n != 1 {
		t.Errorf("%v writes with an error were counted, want 1", n)
	}
}

// What a write takes is bounded while it is read: then it goes on as it came.
func TestAWriteThatGrowsBeyondTheMemoryGoesOn(t *testing.T) {
	long := strings.Repeat("a", 3*firstRead)
	packed := gzipped(t, strings.Repeat(" ", 9*firstRead))
	for name, c := range map[string]struct{ text, body string }{
		"plain":   {fmt.Sprintf("Content-Length: %d\n\n%s", len(long), long), long},
		"chunked": {fmt.Sprintf("Transfer-Encoding: chunked\n\n%x\r\n%s\r\n0\r\n\r\n", len(long), long), long},
		"gzip":    {fmt.Sprintf("Content-Encoding: gzip\nContent-Length: %d\n\n%s", len(packed), packed), packed},
	} {
		t.Run(name, func(t *testing.T) {
			node := startRawNode(t, nil)
			unread := make(chan bool, 1)
			norms := normsFunc(func(_ context.Context, w *Write) (*Written, error) {
				unread <- w.Body == nil
				return nil, nil
			})
			memory := budget.New(4 * firstRead)
			addr, registry := startProxy(t, Options{Upstreams: []string{node.URL}, Norms: norms, Memory: memory})
			exchangeRaw(t, addr, "PUT /i/_doc/1 HTTP/1.1\nHost: a\nConnection: close\n"+jsonLine+c.text)
			if got := node.only(t).body; got != c.body {
				t.Errorf("the node got %d bytes, not the %d that were sent", len(got), len(c.body))
			}
			if !<-unread {
				t.Error("it was read all the same")
			}
			if n := counter(t, registry, "akin_norm_writes_total", "result", writeBusy); n != 1 {
				t.Errorf("%v writes were passed on for want of memory, want 1", n)
			}
			if held := memory.Stats(budget.WriteBody); held.Held != 0 || held.Refused != 1 {
				t.Errorf("then: %+v", held)
			}
		})
	}
}

func TestBodiesOfWritesAreBoundedTogether(t *testing.T) {
	const writes = 4
	node := startRawNode(t, nil)
	hold, entered := make(chan struct{}), make(chan struct{}, 2*writes)
	norms := normsFunc(func(_ context.Context, w *Write) (*Written, error) {
		if w.Body != nil {
			entered <- struct{}{}
			<-hold
		}
		return nil, nil
	})
	addr, registry := startProxy(t, Options{
		Upstreams: []string{node.URL}, Norms: norms, WriteBudget: patience, Memory: budget.New(2 * writes * 1001),
	})
	body := strings.Repeat(" ", 1000)
	var all sync.WaitGroup
	for range writes {
		all.Go(func() { sendWrite(t, addr, "PUT /i/_doc/1", jsonLine, body) })
	}
	for range writes {
		<-entered
	}
	sendWrite(t, addr, "PUT /i/_doc/1", jsonLine, body)
	close(hold)
	all.Wait()
	sendWrite(t, addr, "PUT /i/_doc/1", jsonLine, body)
	if n := counter(t, registry, "akin_norm_writes_total", "result", writeBusy); n != 1 {
		t.Errorf("%v writes were passed on for want of memory, want 1", n)
	}
	if n := counter(t, registry, "akin_norm_writes_total", "result", writeUnchanged); n != writes+1 {
		t.Errorf("%v writes were looked at, want %d", n, writes+1)
	}
}

func TestAWriteThatBreaksOffIsNotForwarded(t *testing.T) {
	node := startRawNode(t, nil)
	addr, _ := startProxy(t, Options{Upstreams: []string{node.URL}, Norms: becomes("{}")})
	exchangeRaw(t, addr, "PUT /i/_doc/1 HTTP/1.1\nHost: a\nConnection: close\nContent-Type: application/json\nTransfer-Encoding: chunked\n\nzz\r\n")
	node.mu.Lock()
	defer node.mu.Unlock()
	if len(node.requests) > 0 {
		t.Errorf("the node got %v", node.requests)
	}
}
