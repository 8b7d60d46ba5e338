package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/internal/nodes"
)

// hidden is a request that stands in the body of another one.
const hidden = "GET /hidden HTTP/1.1\r\nHost: x\r\n\r\n"

// An earlyNode is a node that answers requests to /early/STATUS/… by their
// heads. It then reads the body and takes the next request, as the engines do.
// To /early/close/… it closes the connection. All else is answered after the body.
type earlyNode struct {
	url string

	mu     sync.Mutex
	hidden int // requests that stood in bodies
}

func startEarlyNode(tb testing.TB) *earlyNode {
	tb.Helper()
	l, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	check.OK(tb, err)
	n := &earlyNode{url: "http://" + l.Addr().String()}
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns.Go(func() { n.serve(c) })
		}
	})
	tb.Cleanup(func() { l.Close(); conns.Wait() })
	return n
}

func (n *earlyNode) serve(c net.Conn) {
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	for r := bufio.NewReader(c); ; {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		if req.URL.Path == "/hidden" {
			n.mu.Lock()
			n.hidden++
			n.mu.Unlock()
		}
		status, _, early := strings.Cut(strings.TrimPrefix(req.URL.Path, "/early/"), "/")
		early = early && strings.HasPrefix(req.URL.Path, "/early/")
		if early && status == "close" {
			return
		}
		if !early {
			status = "200"
			if req.Header.Get("Expect") != "" {
				io.WriteString(c, "HTTP/1.1 100 Continue\r\n\r\n")
			}
			io.Copy(io.Discard, req.Body)
		}
		fmt.Fprintf(c, "HTTP/1.1 %s S\r\nContent-Length: 2\r\n\r\n", status)
		if req.Method != http.MethodHead {
			io.WriteString(c, "{}")
		}
		io.Copy(io.Discard, req.Body)
	}
}

func (n *earlyNode) check(t *testing.T) {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	check.That(t, n.hidden <= 0, "the node got %d requests that stood in a body", n.hidden)
}

// sendRaw sends request, in its parts, over a connection to addr and returns
// the statuses of all answers that come until that closes.
func sendRaw(tb testing.TB, addr string, request ...string) (statuses []int) {
	tb.Helper()
	c, err := (&net.Dialer{Timeout: patience}).DialContext(tb.Context(), "tcp", addr)
	check.OK(tb, err)
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	var writing sync.WaitGroup
	defer writing.Wait()
	defer c.Close()
	writing.Go(func() {
		for _, part := range request {
			if _, err := io.WriteString(c, part); err != nil {
				return // the other side has closed it
			}
		}
		_ = c.(*net.TCPConn).CloseWrite()
	})
	for r := bufio.NewReader(c); ; {
		res, err := http.ReadResponse(r, nil)
		if err != nil {
			if timeout, ok := err.(net.Error); ok && timeout.Timeout() { //nolint:errorlint // as the connection returns it
				tb.Errorf("the connection stays open: %v", err)
			}
			return statuses
		}
		if res.StatusCode >= http.StatusOK {
			statuses = append(statuses, res.StatusCode)
		}
		_, err = io.Copy(io.Discard, res.Body)
		res.Body.Close()
		if err != nil || len(statuses) == 10 { // far too many
			return statuses
		}
	}
}

// earlyRequests returns requests that the cluster answers before their bodies
// have come, all of which consist of other requests.
func earlyRequests(outcome string) map[string]string {
	const json = "Content-Type: application/json\r\n"
	body := func(size int) string { return strings.Repeat(hidden, size/len(hidden)+1) }
	sized := func(target, header string, size int) string {
		return fmt.Sprintf("POST /early/%s/%s HTTP/1.1\r\nHost: x\r\n%sContent-Length: %d\r\n\r\n%s", outcome, target, header, len(body(size)), body(size))
	}
	chunked := func(target, header string, size int) string {
		return fmt.Sprintf("POST /early/%s/%s HTTP/1.1\r\nHost: x\r\n%sTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", outcome, target, header, len(body(size)), body(size))
	}
	return map[string]string{
		"a small document":            sized("_doc", json, 1<<10),
		"a document":                  sized("_doc", json, 300<<10),
		"a large document":            sized("_doc", json, 8<<20),
		"a large document in chunks":  chunked("_doc", json, 8<<20),
		"a document in broken chunks": fmt.Sprintf("POST /early/%s/_doc HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nno length\r\n%s", outcome, body(1<<10)),
		"a document, if wanted":       sized("_doc", json+"Expect: 100-continue\r\n", 8<<20),
		"a search":                    sized("_search", json, 1<<10),
		"a search of another type":    sized("_search", "Content-Type: application/yaml\r\n", 8<<20),
		"a large search":              sized("_search", json, 8<<20),
		"a large search in chunks":    chunked("_search", json, 8<<20),
		"a search in broken chunks":   fmt.Sprintf("POST /early/%s/_search HTTP/1.1\r\nHost: x\r\n%sTransfer-Encoding: chunked\r\n\r\nno length\r\n%s", outcome, json, body(1<<10)),
		"a large search, if wanted":   sized("_search", json+"Expect: 100-continue\r\n", 8<<20),
	}
}

// The body of a request never becomes another request (RFC 9112, section 11.2),
// however early the answer comes.
func TestEarlyAnswersDoNotMakeRequestsOfBodies(t *testing.T) {
	for _, outcome := range []string{"413", "401", "429", "503", "close"} {
		for name, request := range earlyRequests(outcome) {
			t.Run(outcome+" to "+name, func(t *testing.T) {
				t.Parallel()
				node := startEarlyNode(t)
				_, addr, _ := startFront(t, Options{Nodes: nodesAt(node.url), Expander: expander(leaveAlone)})
				var several sync.WaitGroup
				for range 4 {
					several.Go(func() {
						got := sendRaw(t, addr, request, "GET /last HTTP/1.1\r\nHost: x\r\n\r\n")
						check.That(t, len(got) <= 2, "2 requests got the answers %d", got)
					})
				}
				several.Wait()
				node.check(t)
			})
		}
	}
}

// requestsIn returns how many requests net/http's server would read, at most.
func requestsIn(sent string) (n int) {
	for r := bufio.NewReader(strings.NewReader(sent)); ; n++ {
		req, err := http.ReadRequest(r)
		if err == io.EOF { //nolint:errorlint // as ReadRequest returns it at the end
			return n
		}
		if err == nil {
			_, err = io.Copy(io.Discard, req.Body)
		}
		if err != nil { // it gets an answer all the same, and is the last
			return n + 1
		}
		if req.Method == http.MethodPost { // after which net/http forgives some line breaks
			for range 4 {
				if next, err := r.Peek(1); err == nil && (next[0] == '\r' || next[0] == '\n') {
					_, _ = r.Discard(1)
				}
			}
		}
	}
}

// FuzzPipelinedRequests sends bytes over a connection, and for each NUL a body
// of requests. There are never more answers than requests.
func FuzzPipelinedRequests(f *testing.F) {
	const long = 300 << 10
	body := strings.Repeat(hidden, long/len(hidden)+1)
	for _, outcome := range []string{"413", "401", "close"} {
		for _, request := range earlyRequests(outcome) {
			if len(request) <= 2*long {
				request = strings.Replace(request, body, "\x00", 1)
				f.Add([]byte(request + hidden))
				f.Add([]byte(hidden + request + request))
			}
		}
	}
	f.Add([]byte("POST /early/413/_doc HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 31\r\n\r\n" + hidden + hidden))
	f.Add([]byte("POST /a/_doc HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTrailer: A\r\n\r\n0\r\nA: b\r\n\r\n" + hidden))
	f.Add([]byte("PUT /early/503/_doc HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\n" + hidden))
	f.Add([]byte("HEAD / HTTP/1.1\r\nHost: x\r\n\r\n" + hidden))
	node := startEarlyNode(f)
	_, addr, _ := startFront(f, Options{Nodes: nodesAt(node.url), Expander: expander(leaveAlone), MaxBody: 1 << 10, BodyTimeout: time.Second})
	f.Fuzz(func(t *testing.T, packed []byte) {
		if len(packed) > 8<<10 {
			t.Skip("slow")
		}
		sent := strings.Replace(string(packed), "\x00", body, 2)
		got, requests := sendRaw(t, addr, sent), requestsIn(sent)
		check.That(t, len(got) <= requests, "%d requests got the answers %d", requests, got)
	})
}

// Only answers that come early close the connection.
func TestConnectionsAreKeptWhereBodiesCameWhole(t *testing.T) {
	node := startEarlyNode(t)
	_, addr, _ := startFront(t, Options{Nodes: nodesAt(node.url), Expander: expander(leaveAlone)})
	c := dial(t, addr)
	r := bufio.NewReader(c)
	for range 3 {
		for name, request := range earlyRequests("") {
			if strings.Contains(name, "broken") {
				continue
			}
			request = strings.Replace(request, "/early//", "/a/", 1)
			go io.WriteString(c, request)
			res, err := http.ReadResponse(r, nil)
			for err == nil && res.StatusCode == http.StatusContinue {
				res, err = http.ReadResponse(r, nil)
			}
			check.Must(t, err == nil, "%s: %v", name, err)
			io.Copy(io.Discard, res.Body)
			res.Body.Close()
			check.Must(t, !res.Close && res.StatusCode == http.StatusOK, "%s got %s, close %t", name, res.Status, res.Close)
		}
	}
	node.check(t)
}

// A node that refuses a request by its head does not get the body (RFC 9110,
// section 10.1.1), nor is the client asked for it.
func TestRefusedBodiesAreNotSent(t *testing.T) {
	for _, target := range []string{"/a/_doc", "/a/_search"} {
		uploaded := make(chan int64, 1)
		l := listenOn(t, "127.0.0.1:0")
		go func() {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer c.Close()
			r := bufio.NewReader(c)
			check.Error(t, nil, check.ErrOf(http.ReadRequest(r)))
			io.WriteString(c, "HTTP/1.1 413 Request Entity Too Large\r\nContent-Length: 0\r\n\r\n")
			n, _ := io.Copy(io.Discard, r)
			uploaded <- n
		}()
		registry := prometheus.NewRegistry()
		_, addr, _ := startFront(t, Options{
			Nodes:    poolOf(nodes.Options{URLs: []string{"http://" + l.Addr().String()}, Registerer: registry}),
			Expander: expander(leaveAlone), Registry: registry,
		})
		c := dial(t, addr)
		fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: 8388608\r\n\r\n", target)
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		check.OK(t, err)
		res.Body.Close()
		c.Close()
		if n := receive(t, "the end of the connection to the node", uploaded); n != 0 || res.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("%s got %s after %d bytes of the body", target, res.Status, n)
		}
		check.Equal(t, 0, counter(t, registry, "akin_node_failures_total"), "failures of the node are counted")
		l.Close()
	}
}
