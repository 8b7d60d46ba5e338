package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/internal/limits"
	"github.com/akin-search/akin/proxy/report"
)

// heapInUse returns the bytes of objects that are in use.
func heapInUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
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
	_, err := io.WriteString(c, "{"+strings.Repeat(" ", size-2))
	check.Error(t, nil, err)
	return c
}

// Bodies that never become whole take no more than the memory that there is,
// and none once they are too slow, while the searches of others are expanded.
func TestWithheldBodiesTakeABoundedMemory(t *testing.T) {
	const clients, size = 200, 1 << 20
	const limit = 32 << 20
	memory := limits.New(limit)
	before := heapInUse()
	p := start(t, Options{Nodes: nodesAt(startHungryNode(t)), Expander: rewriteTo("{}"), Memory: memory}, nil, graceOfBodies(3*time.Second)) // all are there long before
	var began sync.WaitGroup
	for range clients {
		began.Go(func() { withheld(t, p.addr, size) })
	}
	began.Wait()
	waitFor(t, "refusals", func() bool { return memory.Stats(limits.SearchBody).Refused > 0 })
	n := heldBytes(memory)
	check.That(t, n <= limit/2, "%d bytes are held for one client, of %d", n, limit)
	// A buffer or two of each connection stays. What is garbage, or in pools, goes
	// with the second collection.
	grown := min(heapInUse(), heapInUse(), heapInUse()) - before
	check.That(t, grown <= limit+clients*(128<<10), "the heap has grown by %d MiB", grown>>20)
	waitFor(t, "the memory to be given back, but for the buffers", func() bool { return heldBytes(memory) <= clients*(16<<10) })
	waitFor(t, "the heap to shrink", func() bool { return heapInUse()-before <= clients*(128<<10) })
	got := p.post(t, "/i/_search", jsonType, someSearch)
	check.That(t, strings.HasPrefix(got, "HTTP/1.1 200"), "another search: %q", got)
	p.counted(t, 1, "akin_requests_total", "outcome", report.Rewritten)
	over := func() float64 {
		return p.value(t, "akin_requests_total", "outcome", report.FailedOpen, "reason", reasonMemory)
	}
	waitFor(t, "all to go on as they came", func() bool {
		return over()+p.value(t, "akin_requests_total", "outcome", report.Unchanged, "reason", reasonSlow) == clients
	})
	check.That(t, over() != 0, "none had no memory")
}

// graceOfBodies sets how long a body may take that is waited for.
func graceOfBodies(d time.Duration) func(*Server) { return func(s *Server) { s.bodyGrace = d } }

func TestSearchWithoutMemoryGoesOnAsItCame(t *testing.T) {
	text := `{"query":"` + strings.Repeat("abcdefghij", 20_000) + `"}`
	packed := pack(t, text)
	for name, c := range map[string]struct{ header, body, want string }{
		"plain":   {fmt.Sprintf("Content-Length: %d\n", len(text)), text, text},
		"chunked": {"Transfer-Encoding: chunked\n", fmt.Sprintf("%x\r\n%s\r\n%x\r\n%s\r\n0\r\n\r\n", 100_000, text[:100_000], len(text)-100_000, text[100_000:]), text},
		"gzip":    {fmt.Sprintf("%sContent-Length: %d\n", gzipCoding, len(packed)), packed, packed},
	} {
		t.Run(name, func(t *testing.T) {
			memory := limits.New(200 << 10)
			p := start(t, Options{Expander: rewriteTo("{}"), Memory: memory}, nil)
			exchangeRaw(t, p.addr, "POST /i/_search HTTP/1.1\nHost: a\nConnection: close\n"+jsonType+c.header+"\n"+c.body)
			p.arrived(t, c.want)
			p.became(t, report.FailedOpen, reasonMemory)
			check.Equal(t, 0, heldBytes(memory), "bytes are still held")
		})
	}
}

// A body that comes slowly goes on as it came; its memory is given back before
// it ends, and the connection can be used again.
func TestSlowBodyGoesOnAsItCame(t *testing.T) {
	const first, second = `{"a":`, `1}`
	came, begun := make(chan string, 1), make(chan struct{})
	memory := limits.New(128 << 20)
	node := startNode(t, func(_ http.ResponseWriter, r *http.Request) {
		start := make([]byte, len(first))
		io.ReadFull(r.Body, start)
		close(begun)
		rest, err := io.ReadAll(r.Body)
		came <- fmt.Sprintf("%s %s%s %v", r.URL.Path, start, rest, err)
	})
	p := start(t, Options{Nodes: nodesAt(node), Expander: rewriteTo("{}"), Memory: memory}, nil, graceOfBodies(20*time.Millisecond))
	c := dial(t, p.addr)
	fmt.Fprintf(c, "POST /i/_search HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(first+second), first)
	receive(t, "the beginning at the node", begun)              // before the rest was sent
	if n := heldBytes(memory); n > int64(len(first+second))+1 { // the buffer of the read that is under way
		t.Errorf("%d bytes are still held", n)
	}
	io.WriteString(c, second)
	check.Equal(t, "/i/_search "+first+second+" <nil>", receive(t, "the node", came), "the node")
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	check.OK(t, err)
	defer res.Body.Close()
	check.That(t, !res.Close, "the client got %+v", res)
	p.counted(t, 1, "akin_requests_total", "reason", reasonSlow)
}

// saysAndCloses reads all that comes on c: an error of akin about a request, and
// that the connection ends.
func saysAndCloses(t *testing.T, c net.Conn, status int, reason string) {
	t.Helper()
	got, err := io.ReadAll(c)
	head, body, _ := strings.Cut(string(got), "\r\n\r\n")
	check.That(t, err == nil && strings.HasPrefix(head, fmt.Sprintf("HTTP/1.1 %d ", status)) && strings.Contains(head, "\r\nConnection: close"), "got %q, %v", got, err)
	cause := `"type":"akin_request_exception","reason":"` + reason + `"}`
	check.Equal(t, fmt.Sprintf(`{"error":{"root_cause":[{%s],%s,"status":%d}`, cause, cause, status), body)
}

// A search whose body does not come is answered with 408, whether it is still
// awaited or has gone on already.
func TestSearchWhoseBodyDoesNotComeIsCutOff(t *testing.T) {
	for name, grace := range map[string]time.Duration{"awaited": patience, "on its way": time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			p := start(t, Options{Nodes: nodesAt(startHungryNode(t)), Expander: rewriteTo("{}"), BodyTimeout: 100 * time.Millisecond}, nil, graceOfBodies(grace))
			saysAndCloses(t, withheld(t, p.addr, 100), http.StatusRequestTimeout, "the body of the search came too slowly")
			p.counted(t, 1, "akin_slow_clients_total", "transfer", report.SlowBody)
		})
	}
}

func TestSearchWhoseBodyBreaksOffIsCutOff(t *testing.T) {
	_, addr, _ := startFront(t, Options{Nodes: nodesAt(startHungryNode(t)), Expander: rewriteTo("{}")})
	c := withheld(t, addr, 100)
	check.OK(t, c.(*net.TCPConn).CloseWrite())
	saysAndCloses(t, c, http.StatusBadRequest, "the body of the request broke off")
}

// The time for one body does not end what comes behind it on its connection.
func TestTheTimeForABodyEndsWithIt(t *testing.T) {
	const timeout = 100 * time.Millisecond
	p := start(t, Options{Expander: rewriteTo("{}"), BodyTimeout: timeout}, func(int, rawRequest) string {
		time.Sleep(3 * timeout) // The time of the body has to be over on a real connection.
		return emptyAnswer
	})
	c := dial(t, p.addr)
	for range 2 {
		io.WriteString(c, "POST /i/_search HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
		got := make([]byte, len(emptyAnswer))
		_, err := io.ReadFull(c, got)
		check.Must(t, err == nil && strings.HasPrefix(string(got), "HTTP/1.1 200"), "got %q, %v", got, err)
	}
}

// A client that does not read its answer is cut off after a time, and the memory
// of what waits for it is given back. How much others get meanwhile is tested in
// package limits.
func TestClientsThatDoNotReadAreCutOff(t *testing.T) {
	memory := limits.New(64 << 20)
	// More than the buffers of both ends of a connection take.
	long := `{"responses":[` + goodItem + `,{"x":"` + strings.Repeat("x", limits.MaxAnswer-1000) + `"}` + "]}"
	p := start(t, Options{Expander: expander(rewriteFirstAndLast), Memory: memory}, inTurn(answerOf(long), answerOf(responses(goodItem))), func(s *Server) { s.answerGrace = 500 * time.Millisecond })
	c := dial(t, p.addr)
	c.SetReadBuffer(4 << 10)
	fmt.Fprintf(c, "POST /_msearch HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(lines), lines)
	waitFor(t, "the answer to be held", func() bool { return memory.Stats(limits.Answer).Held > 0 })
	p.post(t, "/_msearch", jsonType, lines)
	p.counted(t, 0, "akin_unchecked_responses_total")
	waitFor(t, "the memory to be given back", func() bool { return memory.Stats(limits.Answer).Held == 0 })
	p.counted(t, 1, "akin_slow_clients_total", "transfer", report.SlowResponse)
}
