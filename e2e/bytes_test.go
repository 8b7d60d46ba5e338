package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A seenRequest is what a cluster sees of a request.
type seenRequest struct {
	Target  string // as in the request line
	Method  string
	Header  []string // sorted lines, without those about the connection
	Framing string
	Body    string
}

// recordingUpstream is a cluster that answers every request with 200 and
// hands on what it saw of those that carry the header X-Test.
func recordingUpstream(t *testing.T) (url string, seen <-chan seenRequest) {
	t.Helper()
	requests := make(chan seenRequest, 16)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("%s %s: %v", r.Method, r.RequestURI, err)
		}
		if r.Header.Get("X-Test") != "" {
			requests <- seenRequest{r.Method + " " + r.RequestURI, r.Method, headerLines(r.Header), framing(r), string(body)}
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "{}")
	}))
	t.Cleanup(server.Close)
	return server.URL, requests
}

func headerLines(h http.Header) []string {
	var lines []string
	for name, values := range h {
		for _, v := range values {
			lines = append(lines, name+": "+v)
		}
	}
	slices.Sort(lines)
	return lines
}

func framing(r *http.Request) string {
	if len(r.TransferEncoding) > 0 {
		return strings.Join(r.TransferEncoding, ",")
	}
	return fmt.Sprint("length ", r.ContentLength)
}

// TestClusterSeesWhatTheClientSent compares what a cluster sees of a request
// through akin with what it sees of the same request sent to it directly.
func TestClusterSeesWhatTheClientSent(t *testing.T) {
	upstream, seen := recordingUpstream(t)
	a := launchAkin(t, section{"cluster": section{"urls": []string{upstream}}})
	const search = `{"query":{"match":{"body":"car"}},"size":1.0}`
	for _, test := range []struct {
		name string
		rawRequest
	}{
		{"no headers", rawRequest{method: "GET", target: "/"}},
		{"empty POST", rawRequest{method: "POST", target: "/i/_refresh"}},
		{"empty POST to _search", rawRequest{method: "POST", target: "/i/_search"}},
		{"HEAD", rawRequest{method: "HEAD", target: "/i"}},
		{"GET with a body", rawRequest{method: "GET", target: "/i/_count", header: []string{jsonType}, body: "{}"}},
		{"DELETE with a body", rawRequest{method: "DELETE", target: "/_search/scroll", header: []string{jsonType}, body: "{}"}},
		{"chunked", rawRequest{method: "POST", target: "/_bulk", header: []string{ndjsonType}, body: strings.Repeat("x", 5000), chunked: true}},
		{"chunked search", rawRequest{method: "POST", target: "/i/_search", header: []string{jsonType}, body: search, chunked: true}},
		{"search that cannot be expanded", rawRequest{method: "POST", target: "/i/_search?a=b;c=%zz&&", header: []string{jsonType}, body: search}},
		{"broken query string", rawRequest{method: "GET", target: "/i/_doc/1?a=b;c=%zz&d=%"}},
		{"escapes in the path", rawRequest{method: "GET", target: "/%3Ci-%7Bnow%2Fd%7D%3E/_doc/a%2Fb%2fc%20d+e"}},
		{"characters that need no escape", rawRequest{method: "GET", target: "/i/_doc/a(b)c!d*e'f,g:h@i~j$k"}},
		{"unescaped date math", rawRequest{method: "GET", target: "/<i-{now/d}>/_search"}},
		{"double slashes", rawRequest{method: "GET", target: "//i//_doc//1"}},
		{"dots", rawRequest{method: "GET", target: "/i/./_doc/../x"}},
		{"trailing slash and question mark", rawRequest{method: "GET", target: "/i/_count/?"}},
		{"headers of many kinds", rawRequest{method: "GET", target: "/", header: []string{
			"User-Agent: me/1.0", "Accept: a/b", "Accept: c/d", "Accept-Encoding: br;q=1.0, gzip", "X-Opaque-Id: 1",
			"Traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "Authorization: ApiKey YTpi",
			"X-Forwarded-For: 10.0.0.1", "Forwarded: for=10.0.0.1", "Via: 1.1 edge", "Cookie: a=b; c=d",
			"Es-Security-Runas-User: other", "X-Elastic-Client-Meta: es=8.1", "X-Empty:",
		}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.header = append(slices.Clone(test.header), "X-Test: "+t.Name())
			exchange(t, upstream, test.rawRequest)
			want := <-seen
			exchange(t, a.url, test.rawRequest)
			if diff := cmp.Diff(want, <-seen); diff != "" {
				t.Errorf("the cluster sees (-directly +through akin):\n%s", diff)
			}
		})
	}
}

// TestControlsOfAkinDoNotReachTheCluster looks at what is akin's own. The
// cluster would refuse the parameter, so it goes with expansion off as well.
func TestControlsOfAkinDoNotReachTheCluster(t *testing.T) {
	upstream, seen := recordingUpstream(t)
	for _, test := range []struct {
		name   string
		config section
	}{
		{"with a matrix", section{"matrices": []section{{"name": "main", "file": "absent.akin"}}}},
		{"expansion off", section{"expansion": section{"enabled": false}}},
		{"no matrix", section{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.config["cluster"] = section{"urls": []string{upstream}}
			a := launchAkin(t, test.config)
			exchange(t, a.url, rawRequest{
				method: "POST", target: "/i/_search?size=1&akin=off&b=%zz",
				header: []string{jsonType, "X-Akin: off", "X-Test: 1"}, body: "{}",
			})
			want := seenRequest{"POST /i/_search?size=1&b=%zz", "POST", []string{"Content-Length: 2", jsonType, "X-Test: 1"}, "length 2", "{}"}
			if diff := cmp.Diff(want, <-seen); diff != "" {
				t.Errorf("the cluster sees (-want +got):\n%s", diff)
			}
		})
	}
}

// hold is the longest that a test waits for what has to happen at once.
const hold = 20 * time.Second

// receive returns the next value of c and fails the test when none comes.
func receive[T any](t *testing.T, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(hold):
		t.Fatalf("%s: not within %v", what, hold)
		panic("unreachable")
	}
}

// TestAnswersStreamToTheClient lets the cluster send the second part of an
// answer only after the client has the first.
func TestAnswersStreamToTheClient(t *testing.T) {
	arrived := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "first\n")
		if r.URL.Path != "/stream" {
			return
		}
		_ = http.NewResponseController(w).Flush()
		select {
		case <-arrived:
		case <-r.Context().Done():
			return
		}
		_, _ = io.WriteString(w, "second\n")
	}))
	t.Cleanup(server.Close)
	a := launchAkin(t, section{"cluster": section{"urls": []string{server.URL}}})
	lines := make(chan string, 3)
	go func() {
		defer close(lines)
		resp, err := client.Get(a.url + "/stream")
		if err != nil {
			lines <- err.Error()
			return
		}
		defer resp.Body.Close()
		for scanner := bufio.NewScanner(resp.Body); scanner.Scan(); {
			lines <- scanner.Text()
		}
	}()
	if got := receive(t, lines, "the first part of the answer"); got != "first" {
		t.Fatalf("first part = %q", got)
	}
	close(arrived)
	if got := receive(t, lines, "the second part"); got != "second" {
		t.Errorf("second part = %q", got)
	}
}

// TestRequestsStreamToTheCluster lets the client send the second part of a
// body only after the cluster has the first.
func TestRequestsStreamToTheCluster(t *testing.T) {
	firstSeen := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/_bulk" {
			return
		}
		body := bufio.NewReader(r.Body)
		line, _ := body.ReadString('\n')
		firstSeen <- line
		rest, _ := io.ReadAll(body)
		_, _ = w.Write(rest)
	}))
	t.Cleanup(server.Close)
	a := launchAkin(t, section{"cluster": section{"urls": []string{server.URL}}})
	reader, writer := io.Pipe()
	answers := make(chan string, 1)
	go func() {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, a.url+"/_bulk", reader)
		if err != nil {
			answers <- err.Error()
			return
		}
		resp, err := client.Do(req)
		if err != nil {
			answers <- err.Error()
			return
		}
		defer resp.Body.Close()
		answer, _ := io.ReadAll(resp.Body)
		answers <- string(answer)
	}()
	_, _ = io.WriteString(writer, "first\n")
	if got := receive(t, firstSeen, "the first part of the request"); got != "first\n" {
		t.Fatalf("first part = %q", got)
	}
	_, _ = io.WriteString(writer, "second\n")
	writer.Close()
	if got := receive(t, answers, "the answer"); got != "second\n" {
		t.Errorf("answer = %q", got)
	}
}

// TestClientThatGoesAwayCancelsItsRequest covers a request that is passed on
// and a search, since dropping the connection is how a search is canceled.
func TestClientThatGoesAwayCancelsItsRequest(t *testing.T) {
	began, ended := make(chan struct{}, 1), make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/slow") {
			return
		}
		_, _ = io.Copy(io.Discard, r.Body) // the server notices the end of the connection only then
		began <- struct{}{}
		<-r.Context().Done()
		ended <- struct{}{}
	}))
	t.Cleanup(server.Close)
	a := launchAkin(t, section{"cluster": section{"urls": []string{server.URL}}})
	for _, path := range []string{"/slow/_forcemerge", "/slow/_search"} {
		t.Run(path, func(t *testing.T) {
			conn, err := net.Dial("tcp", strings.TrimPrefix(a.url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			r := rawRequest{method: "POST", target: path, header: []string{jsonType}, body: "{}"}
			if _, err := io.WriteString(conn, r.wire(a.url)); err != nil {
				t.Fatal(err)
			}
			receive(t, began, "the request at the cluster")
			conn.Close()
			receive(t, ended, "the end of the request at the cluster")
		})
	}
}

// TestBrokenAnswerIsBrokenForTheClient: half an answer must not look whole.
func TestBrokenAnswerIsBrokenForTheClient(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/i/_search" {
			return
		}
		_, _ = io.WriteString(w, `{"hits":`)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}))
	t.Cleanup(server.Close)
	a := launchAkin(t, section{"cluster": section{"urls": []string{server.URL}}})
	resp, err := client.Get(a.url + "/i/_search")
	if err != nil {
		return // no answer at all is honest too
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err == nil {
		t.Errorf("half an answer looks whole: %q", body)
	}
}
