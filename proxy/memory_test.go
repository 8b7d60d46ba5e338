package proxy

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/internal/limits"
	"github.com/akin-search/akin/proxy/report"
)

// heldBytes returns what is held of all kinds.
func heldBytes(memory *limits.Budget) (n int64) {
	for _, kind := range limits.Kinds() {
		n += memory.Stats(kind).Held
	}
	return n
}

// waitFor waits until what is so.
func waitFor(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !so(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// heapInUse returns the bytes of objects that are in use.
func heapInUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// startNode serves h and returns the URL.
func startNode(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	node := httptest.NewServer(h)
	t.Cleanup(node.Close)
	return node.URL
}

// startHungryNode starts a node that reads bodies away.
func startHungryNode(t *testing.T) string {
	t.Helper()
	return startNode(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, "{}")
	})
}

// withheld begins a search whose last byte is missing.
func withheld(t *testing.T, addr string, size int) net.Conn {
	t.Helper()
	c := dial(t, addr)
	fmt.Fprintf(c, "POST /i/_search HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", size)
	if _, err := io.WriteString(c, "{"+strings.Repeat(" ", size-2)); err != nil {
		t.Error(err)
	}
	return c
}

// Bodies that never become whole take no more than the memory that there is,
// and none once they are too slow, while the searches of others are expanded.
func TestWithheldBodiesTakeABoundedMemory(t *testing.T) {
	const clients, size = 200, 1 << 20
	const limit = 32 << 20
	memory := limits.New(limit)
	s := newServer(t, Options{
		Nodes: nodesAt(startHungryNode(t)), Expander: rewriteTo("{}"),
		Memory: memory, Registry: prometheus.NewRegistry(),
	})
	before := heapInUse()
	s.bodyGrace = 3 * time.Second // all are there long before
	addr := startServer(t, s)
	var began sync.WaitGroup
	for range clients {
		began.Go(func() { withheld(t, addr, size) })
	}
	began.Wait()
	waitFor(t, "refusals", func() bool { return memory.Stats(limits.SearchBody).Refused > 0 })
	if n := heldBytes(memory); n > limit/2 {
		t.Errorf("%d bytes are held for one client, of %d", n, limit)
	}
	// A buffer or two of each connection stays. What is garbage, or in pools, goes
	// with the second collection.
	if grown := min(heapInUse(), heapInUse(), heapInUse()) - before; grown > limit+clients*(128<<10) {
		t.Errorf("the heap has grown by %d MiB", grown>>20)
	}
	waitFor(t, "the memory to be given back, but for the buffers", func() bool { return heldBytes(memory) <= clients*(16<<10) })
	waitFor(t, "the heap to shrink", func() bool { return heapInUse()-before <= clients*(128<<10) })
	if got := exchangeRaw(t, addr, searchOf("/i/_search", jsonType, `{"query":{}}`)); !strings.HasPrefix(got, "HTTP/1.1 200") {
		t.Errorf("another search: %q", got)
	}
	if n := counter(t, s.opts.Registry, "akin_requests_total", "outcome", report.Rewritten); n != 1 {
		t.Errorf("%v searches were expanded, want 1", n)
	}
	over := func() float64 {
		return counter(t, s.opts.Registry, "akin_requests_total", "outcome", report.FailedOpen, "reason", reasonMemory)
	}
	waitFor(t, "all to go on as they came", func() bool {
		return over()+counter(t, s.opts.Registry, "akin_requests_total", "outcome", report.Unchanged, "reason", reasonSlow) == clients
	})
	if over() == 0 {
		t.Error("none had no memory")
	}
}

// Where there is no memory a search goes on byte for byte.
func TestSearchWithoutMemoryGoesOnAsItCame(t *testing.T) {
	text := `{"query":"` + strings.Repeat("abcdefghij", 20_000) + `"}`
	packed := gzipped(t, text)
	for name, c := range map[string]struct{ header, body, want string }{
		"plain":   {fmt.Sprintf("Content-Length: %d\n", len(text)), text, text},
		"chunked": {"Transfer-Encoding: chunked\n", fmt.Sprintf("%x\r\n%s\r\n%x\r\n%s\r\n0\r\n\r\n", 100_000, text[:100_000], len(text)-100_000, text[100_000:]), text},
		"gzip":    {fmt.Sprintf("Content-Encoding: gzip\nContent-Length: %d\n", len(packed)), packed, packed},
	} {
		t.Run(name, func(t *testing.T) {
			node := startRawNode(t, nil)
			memory := limits.New(200 << 10)
			addr, registry := startProxy(t, Options{Nodes: nodesAt(node.URL), Expander: rewriteTo("{}"), Memory: memory})
			exchangeRaw(t, addr, "POST /i/_search HTTP/1.1\nHost: a\nConnection: close\n"+jsonType+c.header+"\n"+c.body)
			if got := node.only(t).body; got != c.want {
				t.Errorf("the node got %d bytes, not the %d that were sent", len(got), len(c.want))
			}
			if n := counter(t, registry, "akin_requests_total", "outcome", report.FailedOpen, "reason", reasonMemory); n != 1 {
				t.Errorf("counted %v times", n)
			}
			if n := heldBytes(memory); n != 0 {
				t.Errorf("%d bytes are still held", n)
			}
		})
	}
}

// A body that comes slowly goes on as it came; its memory is given back before
// it ends, and the connection can be used again.
func TestSlowBodyGoesOnAsItCame(t *testing.T) {
	const first, second = `{"a":`, `1}`
	came, begun := make(chan string, 1), make(chan struct{}, 1)
	memory := limits.New(128 << 20)
	node := startNode(t, func(w http.ResponseWriter, r *http.Request) {
		start := make([]byte, len(first))
		io.ReadFull(r.Body, start)
		begun <- struct{}{}
		rest, err := io.ReadAll(r.Body)
		came <- fmt.Sprintf("%s %s%s %v", r.URL.Path, start, rest, err)
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, "{}")
	})
	s := newServer(t, Options{
		Nodes: nodesAt(node), Expander: rewriteTo("{}"), Memory: memory, Registry: prometheus.NewRegistry(),
	})
	s.bodyGrace = 20 * time.Millisecond
	pr, pw := io.Pipe()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+startServer(t, s)+"/i/_search", pr)
	if err != nil {
		t.Fatal(err)
	}
	req.ContentLength = int64(len(first + second))
	req.Header.Set("Content-Type", "application/json")
	go func() {
		io.WriteString(pw, first)
		<-begun                                                     // the node has it, before the rest was sent
		if n := heldBytes(memory); n > int64(len(first+second))+1 { // the buffer of the read that is under way
			t.Errorf("%d bytes are still held", n)
		}
		io.WriteString(pw, second)
		pw.Close()
	}()
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if got := receive(t, "the node", came); got != "/i/_search "+first+second+" <nil>" {
		t.Errorf("the node got %q", got)
	}
	if n := counter(t, s.opts.Registry, "akin_requests_total", "reason", reasonSlow); n != 1 {
		t.Errorf("counted %v times", n)
	}
}

// A search whose body does not come is answered with 408, whether it is still
// awaited or has gone on already, and its connection is closed.
func TestSearchWhoseBodyDoesNotComeIsCutOff(t *testing.T) {
	for name, grace := range map[string]time.Duration{"awaited": patience, "on its way": time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, Options{
				Nodes: nodesAt(startHungryNode(t)), Expander: rewriteTo("{}"),
				BodyTimeout: 100 * time.Millisecond, Registry: prometheus.NewRegistry(),
			})
			s.bodyGrace = grace
			c := withheld(t, startServer(t, s), 100)
			got, err := io.ReadAll(c)
			if err != nil {
				t.Fatal(err)
			}
			head, body, _ := strings.Cut(string(got), "\r\n\r\n")
			var answer errorAnswer
			if !strings.HasPrefix(head, "HTTP/1.1 408 ") || json.Unmarshal([]byte(body), &answer) != nil || answer.Status != 408 {
				t.Errorf("got %q", got)
			}
			if n := counter(t, s.opts.Registry, "akin_slow_clients_total", "transfer", report.SlowBody); n != 1 {
				t.Errorf("counted %v times", n)
			}
		})
	}
}

// The time for one body does not end what comes behind it on its connection.
func TestTheTimeForABodyEndsWithIt(t *testing.T) {
	proceed := make(chan struct{})
	node := startRawNode(t, func(int, rawRequest) string { <-proceed; return emptyAnswer })
	addr, _ := startProxy(t, Options{Nodes: nodesAt(node.URL), Expander: rewriteTo("{}"), BodyTimeout: 100 * time.Millisecond})
	time.AfterFunc(300*time.Millisecond, func() { close(proceed) })
	c := dial(t, addr)
	for range 2 {
		io.WriteString(c, "POST /i/_search HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
		got := make([]byte, len("HTTP/1.1 200"))
		if _, err := io.ReadFull(c, got); err != nil || string(got) != "HTTP/1.1 200" {
			t.Fatalf("got %q, %v", got, err)
		}
		if _, err := io.ReadFull(c, make([]byte, len(emptyAnswer)-len(got))); err != nil {
			t.Fatal(err)
		}
	}
}

// from returns a client at an address of this machine.
func from(t *testing.T, address string) *net.Dialer {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("Linux alone answers at all of 127.0.0.0/8")
	}
	return &net.Dialer{Timeout: patience, LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
}

// Clients that do not read their answers hold a part of the memory, and for a
// time; others still get theirs looked at.
func TestSlowReadersLeaveMemoryToOthers(t *testing.T) {
	// More than the buffers of both ends of a connection take.
	long := `{"responses":[` + goodItem + `,{"x":"` + strings.Repeat("x", limits.MaxAnswer-1000) + `"}` + "]}"
	for name, address := range map[string]func(i int) string{
		"at one address":     func(int) string { return "127.0.0.2" },
		"at an address each": func(i int) string { return fmt.Sprint("127.0.1.", i+1) },
	} {
		t.Run(name, func(t *testing.T) {
			const readers = 14
			memory := limits.New(64 << 20)
			node := startRawNode(t, func(_ int, r rawRequest) string {
				if strings.Contains(r.line, "/long/") {
					return answerWith(200, jsonType, long)
				}
				return answerWith(200, jsonType, responses(goodItem, goodItem, goodItem))
			})
			s := newServer(t, Options{
				Nodes: nodesAt(node.URL), Expander: expander(rewriteFirstAndLast), Memory: memory,
				Registry: prometheus.NewRegistry(),
			})
			s.answerGrace = 2 * time.Second
			addr := startServer(t, s)
			for i := range readers {
				c, err := from(t, address(i)).DialContext(t.Context(), "tcp", addr)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { c.Close() })
				c.(*net.TCPConn).SetReadBuffer(4 << 10)
				fmt.Fprintf(c, "POST /long/_msearch HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(lines), lines)
			}
			waitFor(t, "all answers", func() bool {
				return counter(t, s.opts.Registry, "akin_search_stage_duration_seconds", "stage", "upstream") == readers
			})
			if memory.Stats(limits.Answer).Refused == 0 {
				t.Error("all answers are held")
			}
			unchecked := func() float64 { return counter(t, s.opts.Registry, "akin_unchecked_responses_total") }
			before := unchecked()
			got := exchangeRaw(t, addr, searchOf("/i/_msearch", jsonType, lines))
			if !strings.HasPrefix(got, "HTTP/1.1 200") || unchecked() != before {
				t.Errorf("another client: %q, unchecked: %v", got, unchecked() != before)
			}
			// Those whose answers stream through may take their time.
			waitFor(t, "the memory to be given back", func() bool { return memory.Stats(limits.Answer).Held == 0 })
			if n := counter(t, s.opts.Registry, "akin_slow_clients_total", "transfer", report.SlowResponse); n == 0 {
				t.Error("nobody was cut off")
			}
		})
	}
}

// The expander can tell for which client it works.
func TestExpanderSeesTheClient(t *testing.T) {
	node := startRawNode(t, nil)
	seen := make(chan string, 1)
	addr, _ := startProxy(t, Options{Nodes: nodesAt(node.URL), Expander: expander(func(ctx context.Context, _ *expand.Request) (*expand.Result, error) {
		seen <- ClientOf(ctx)
		return &expand.Result{}, nil
	})})
	exchangeRaw(t, addr, searchOf("/i/_search", jsonType, "{}"))
	if got := <-seen; got != "127.0.0.1" || ClientOf(t.Context()) != "" {
		t.Errorf("got %q", got)
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
