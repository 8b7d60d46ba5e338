package proxy

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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
		{"none", hangUp, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			node := startRawNode(t, func(int, rawRequest) string { return c.answer })
			var mu sync.Mutex
			var told []int
			done := make(chan struct{})
			norms := normsFunc(func(context.Context, *Write) (*Written, error) {
				return &Written{Body: []byte("{}"), Done: func(status int) {
					mu.Lock()
					defer mu.Unlock()
					told = append(told, status)
					close(done)
				}}, nil
			})
			addr, _ := startProxy(t, Options{Upstreams: []string{node.URL, node.URL}, Norms: norms})
			sendWrite(t, addr, "PUT /i/_doc/1", jsonLine, "{ }")
			if c.want != nil {
				<-done
			}
			mu.Lock()
			defer mu.Unlock()
			if diff := cmp.Diff(c.want, told); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
			node.only(t) // a write is never sent twice
		})
	}
}

func TestBodiesOfWritesAreBoundedTogether(t *testing.T) {
	node := startRawNode(t, nil)
	hold, entered := make(chan struct{}), make(chan struct{}, 2*writesAtOnce)
	norms := normsFunc(func(_ context.Context, w *Write) (*Written, error) {
		if w.Body != nil {
			entered <- struct{}{}
			<-hold
		}
		return nil, nil
	})
	addr, registry := startProxy(t, Options{Upstreams: []string{node.URL}, Norms: norms, MaxWriteBody: 1000, WriteBudget: patience})
	body := strings.Repeat(" ", 1000)
	var writes sync.WaitGroup
	for range writesAtOnce {
		writes.Go(func() { sendWrite(t, addr, "PUT /i/_doc/1", jsonLine, body) })
	}
	for range writesAtOnce {
		<-entered
	}
	sendWrite(t, addr, "PUT /i/_doc/1", jsonLine, body)
	close(hold)
	writes.Wait()
	sendWrite(t, addr, "PUT /i/_doc/1", jsonLine, body)
	if n := counter(t, registry, "akin_norm_writes_total", "result", writeBusy); n != 1 {
		t.Errorf("%v writes were passed on for want of memory, want 1", n)
	}
	if n := counter(t, registry, "akin_norm_writes_total", "result", writeUnchanged); n != writesAtOnce+1 {
		t.Errorf("%v writes were looked at, want %d", n, writesAtOnce+1)
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
