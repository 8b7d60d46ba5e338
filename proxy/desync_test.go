package proxy

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"slices"
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
	got    int // requests that it answers
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
		n.mu.Lock()
		n.got++
		n.mu.Unlock()
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

// requests returns how many requests the node has got and answers.
func (n *earlyNode) requests() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.got
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
	const isJSON = "Content-Type: application/json\r\n"
	body := func(size int) string { return strings.Repeat(hidden, size/len(hidden)+1) }
	sized := func(target, header string, size int) string {
		return fmt.Sprintf("POST /early/%s/%s HTTP/1.1\r\nHost: x\r\n%sContent-Length: %d\r\n\r\n%s", outcome, target, header, len(body(size)), body(size))
	}
	chunked := func(target, header string, size int) string {
		return fmt.Sprintf("POST /early/%s/%s HTTP/1.1\r\nHost: x\r\n%sTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", outcome, target, header, len(body(size)), body(size))
	}
	return map[string]string{
		"a small document":            sized("_doc", isJSON, 1<<10),
		"a document":                  sized("_doc", isJSON, 300<<10),
		"a large document":            sized("_doc", isJSON, 8<<20),
		"a large document in chunks":  chunked("_doc", isJSON, 8<<20),
		"a document in broken chunks": fmt.Sprintf("POST /early/%s/_doc HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nno length\r\n%s", outcome, body(1<<10)),
		"a document, if wanted":       sized("_doc", isJSON+"Expect: 100-continue\r\n", 8<<20),
		"a search":                    sized("_search", isJSON, 1<<10),
		"a search of another type":    sized("_search", "Content-Type: application/yaml\r\n", 8<<20),
		"a large search":              sized("_search", isJSON, 8<<20),
		"a large search in chunks":    chunked("_search", isJSON, 8<<20),
		"a search in broken chunks":   fmt.Sprintf("POST /early/%s/_search HTTP/1.1\r\nHost: x\r\n%sTransfer-Encoding: chunked\r\n\r\nno length\r\n%s", outcome, isJSON, body(1<<10)),
		"a large search, if wanted":   sized("_search", isJSON+"Expect: 100-continue\r\n", 8<<20),
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

// coded is the rest of a request, with a body in chunks that is a request.
const coded = "Transfer-Encoding: chunked\r\n\r\n21\r\n" + hidden + "\r\n0\r\n\r\n"

// oldRequests are requests of HTTP/1.0, with what may come before them on a
// connection, their answers, and how many the node gets.
var oldRequests = map[string]struct {
	sent     string
	statuses []int
	reached  int
}{
	"chunks":                          {"POST /a/_update_by_query HTTP/1.0\r\n" + coded, []int{400}, 0},
	"chunks of a search":              {"POST /a/_search HTTP/1.0\r\nContent-Type: application/json\r\n" + coded, []int{400}, 0},
	"chunks of GET":                   {"GET /a/_search HTTP/1.0\r\n" + coded, []int{400}, 0},
	"chunks of HEAD":                  {"HEAD / HTTP/1.0\r\n" + coded, []int{400}, 0},
	"chunks of DELETE":                {"DELETE /a/_doc/1 HTTP/1.0\r\n" + coded, []int{400}, 0},
	"chunks of OPTIONS":               {"OPTIONS * HTTP/1.0\r\n" + coded, []int{400}, 0},
	"keep-alive":                      {"POST /a/_doc HTTP/1.0\r\nConnection: keep-alive\r\n" + coded + hidden, []int{400}, 0},
	"another case":                    {"POST /a/_doc HTTP/1.0\r\ntRANSFER-eNCODING:CHUNKED\r\n\r\n0\r\n\r\n", []int{400}, 0},
	"a folded line":                   {"POST /a/_doc HTTP/1.0\r\nA: b\r\n c\r\nTransfer-Encoding:\r\n\t chunked\r\n\r\n0\r\n\r\n", []int{400}, 0},
	"line feeds":                      {"POST /a/_doc HTTP/1.0\nTransfer-Encoding: chunked\n\n0\n\n", []int{400}, 0},
	"a space, which net/http refuses": {"POST /a/_doc HTTP/1.0\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n", []int{400}, 0},
	"no value":                        {"POST /a/_doc HTTP/1.0\r\nTransfer-Encoding:\r\n\r\n", []int{400}, 0},
	"identity":                        {"POST /a/_doc HTTP/1.0\r\nTransfer-Encoding: identity\r\n\r\n", []int{400}, 0},
	"two codings":                     {"POST /a/_doc HTTP/1.0\r\nTransfer-Encoding: gzip\r\n" + coded, []int{400}, 0},
	"a length, too":                   {"POST /a/_doc HTTP/1.0\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}", []int{400}, 0},
	"an expectation":                  {"POST /a/_doc HTTP/1.0\r\nExpect: 100-continue\r\n" + coded, []int{400}, 0},
	"a long head":                     {"POST /a/_doc HTTP/1.0\r\nX-A: " + strings.Repeat("a", 30<<10) + "\r\n" + coded, []int{400}, 0},
	"a long body":                     {"POST /a/_doc HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n800000\r\n" + strings.Repeat("a", 8<<20), []int{400}, 0},
	"behind GET":                      {hidden + "POST /a/_doc HTTP/1.0\r\n" + coded, []int{200, 400}, 1},
	"behind a length":                 {kept + "5\r\n\r\nhello" + kept + "0\r\n\r\nPOST /a/_doc HTTP/1.0\r\n" + coded, []int{200, 200, 400}, 2},
	"behind a decoy":                  {kept + "33\r\n\r\n" + hidden + "POST /a/_doc HTTP/1.0\r\n" + coded, []int{200, 400}, 1},
	"behind itself":                   {kept + "51\r\n\r\nGET /a HTTP/1.0\r\nConnection: close\r\nA: 23456789\r\n\r\nGET /a HTTP/1.0\r\n" + coded, []int{200, 400}, 1},
	"behind a long body":              {kept + "300000\r\n\r\n" + strings.Repeat("\r\n\r\n", 75000) + "POST /a/_doc HTTP/1.0\r\n" + coded, []int{200, 400}, 1},
	"behind line breaks":              {kept + "0\r\n\r\n\r\n\r\nPOST /a/_doc HTTP/1.0\r\n" + coded, []int{200, 400}, 1},
	"behind chunks":                   {"POST /a/_doc HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /a HTTP/1.0\r\n\r\n", []int{200, 400}, 1},

	"no body":       {"GET /a HTTP/1.0\r\n\r\n", []int{200}, 1},
	"no header":     {kept + "0\r\n\r\nGET /a HTTP/1.0\r\n\r\n", []int{200, 200}, 2},
	"a length":      {"POST /a/_search HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}", []int{200}, 1},
	"another name":  {"GET /a?Transfer-Encoding:%20chunked HTTP/1.0\r\nX-Transfer-Encoding: chunked\r\nA: Transfer-Encoding: chunked\r\nB:\r\n Transfer-Encoding: chunked\r\n\r\n", []int{200}, 1},
	"in a body":     {kept + "28\r\n\r\nTransfer-Encoding: chunked\r\n" + kept + "28\r\n\r\nTransfer-Encoding: chunked\r\nGET /a HTTP/1.0\r\n\r\n", []int{200, 200, 200}, 3},
	"before chunks": {kept + "0\r\n\r\nPOST /a/_doc HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + coded, []int{200, 200}, 2},
}

// kept begins a request of HTTP/1.0 after which the connection stays open. Its
// length follows.
const kept = "POST /a/_doc HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: "

// net/http would drop Transfer-Encoding of HTTP/1.0 (RFC 9112, section 6.1), and
// with it the body: the node would search and update everything.
func TestHTTP10WithATransferEncodingIsRefused(t *testing.T) {
	certified := httptest.NewTLSServer(nil)
	certified.Close()
	for _, config := range []*tls.Config{nil, {Certificates: certified.TLS.Certificates}} {
		node := startEarlyNode(t)
		_, addr, _ := startFrontTLS(t, Options{Nodes: nodesAt(node.url), Expander: expander(leaveAlone)}, config)
		for name, tt := range oldRequests {
			for _, size := range []int{len(tt.sent), 1} {
				if len(tt.sent) > 1<<10*size {
					continue // byte by byte takes long
				}
				t.Run(fmt.Sprintf("%s, TLS %t, %d bytes at once", name, config != nil, size), func(t *testing.T) {
					before := node.requests()
					var c net.Conn = dial(t, addr)
					if config != nil {
						c = secure(certified, c)
					}
					var writing sync.WaitGroup
					defer writing.Wait()
					defer c.Close()
					writing.Go(func() {
						for part := range slices.Chunk([]byte(tt.sent), size) {
							if _, err := c.Write(part); err != nil {
								return // it is refused already
							}
						}
					})
					var statuses []int
					for r := bufio.NewReader(c); ; {
						res, err := http.ReadResponse(r, nil)
						if err != nil {
							break
						}
						statuses = append(statuses, res.StatusCode)
						body, err := io.ReadAll(res.Body)
						res.Body.Close()
						var refused errorAnswer
						if res.StatusCode == http.StatusBadRequest && name != "chunks of HEAD" {
							err = errors.Join(err, json.Unmarshal(body, &refused))
							check.That(t, err == nil && res.Close && refused.Status == 400 && refused.Error.Type == "akin_request_exception", "refused by %s, %v, close %t", body, err, res.Close)
						}
					}
					check.Equal(t, tt.statuses, statuses)
					check.Equal(t, tt.reached, node.requests()-before, "requests that the node got")
				})
			}
		}
	}
}

// requestsIn returns how many requests net/http's server would read, and how
// many of them may reach the node, at most.
func requestsIn(sent string) (n, reach int) {
	for r := bufio.NewReader(strings.NewReader(sent)); ; n++ {
		left, _ := r.Peek(r.Size())
		req, err := http.ReadRequest(r)
		if err == io.EOF { //nolint:errorlint // as ReadRequest returns it at the end
			return n, reach
		}
		if err == nil && !req.ProtoAtLeast(1, 1) && isCoded(left) {
			return n + 1, reach
		}
		reach++
		if err == nil {
			_, err = io.Copy(io.Discard, req.Body)
		}
		if err != nil { // it gets an answer all the same, and is the last
			return n + 1, reach
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

// isCoded reports whether the head of a request has a Transfer-Encoding.
func isCoded(request []byte) bool {
	head := textproto.NewReader(bufio.NewReader(bytes.NewReader(request)))
	_, _ = head.ReadLine()
	header, _ := head.ReadMIMEHeader()
	return header["Transfer-Encoding"] != nil
}

// FuzzPipelinedRequests sends bytes over a connection, and for each NUL a body
// of requests. There are never more answers than requests, and the node never
// gets more of them than came with a body that akin can tell.
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
	for _, old := range oldRequests {
		if len(old.sent) < 4<<10 {
			f.Add([]byte(old.sent))
			f.Add([]byte(hidden + old.sent + hidden))
		}
	}
	f.Add([]byte("POST /early/413/_doc HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 31\r\n\r\n" + hidden + hidden))
	f.Add([]byte("POST /a/_doc HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTrailer: A\r\n\r\n0\r\nA: b\r\n\r\n" + hidden))
	f.Add([]byte("PUT /early/503/_doc HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\n" + hidden))
	f.Add([]byte("HEAD / HTTP/1.1\r\nHost: x\r\n\r\n" + hidden))
	front, addr, _ := startFront(f, Options{Nodes: nodesAt(startEarlyNode(f).url)})
	f.Fuzz(func(t *testing.T, packed []byte) {
		if len(packed) > 8<<10 {
			t.Skip("slow")
		}
		sent := strings.Replace(string(packed), "\x00", body, 2)
		requests, reach := requestsIn(sent)
		var node *earlyNode
		t.Cleanup(func() { // after the last request has come to its end
			check.That(t, node.requests() <= reach, "the node got %d requests, of %d that may reach it", node.requests(), reach)
		})
		node = startEarlyNode(t)
		s := build(Options{Nodes: nodesAt(node.url), Expander: expander(leaveAlone), MaxBody: 1 << 10, BodyTimeout: time.Second, Previous: front.server()})
		front.Replace(s)
		t.Cleanup(func() {
			s.Wait(context.Background())
			s.upstream.Close()
		})
		got := sendRaw(t, addr, sent)
		check.That(t, len(got) <= requests, "%d requests got the answers %d", requests, got)
	})
}

// What breaks is the client's body: no node is to blame, whether akin reads the
// body or not.
func TestBrokenBodiesAreTheFaultOfTheClient(t *testing.T) {
	for _, head := range []string{"/a/_doc HTTP/1.1\n", "/a/_search HTTP/1.1\nContent-Type: application/json\n", "/a/_search HTTP/1.1\nContent-Type: application/yaml\n"} {
		for _, body := range []string{"no size\r\n{}", "1\r\n{\r\nno size\r\n", "1\r\n{no end", "fffffffffffffffff\r\n{}"} {
			node, registry := startEarlyNode(t), prometheus.NewRegistry()
			_, addr, _ := startFront(t, Options{
				Nodes:    poolOf(nodes.Options{URLs: []string{node.url}, Registerer: registry}),
				Expander: expander(leaveAlone), Registry: registry,
			})
			got := exchangeRaw(t, addr, "POST "+head+"Host: x\nTransfer-Encoding: chunked\n\n"+body)
			for _, want := range []string{"HTTP/1.1 400 ", "\r\nConnection: close\r\n", `"reason":"the body of the request broke off"`} {
				check.That(t, strings.Contains(got, want), "%s with %q got %s", head, body, got)
			}
			for _, name := range []string{"akin_node_failures_total", "akin_upstream_errors_total"} {
				check.Equal(t, 0, counter(t, registry, name), name)
			}
		}
	}
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
