package e2e

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A rawRequest is written to the connection as it is: net/http would
// tidy the path, the query and the headers.
type rawRequest struct {
	method, target string
	header         []string // lines
	body           string
	chunked        bool // else with a Content-Length where there is a body
}

// A rawResponse is an answer with nothing decoded.
type rawResponse struct {
	status string
	header http.Header
	framed string // how the body was delimited
	body   string
}

// exchange sends r over a new connection to the server at base.
func exchange(t *testing.T, base string, r rawRequest) rawResponse {
	t.Helper()
	conn, err := net.DialTimeout("tcp", strings.TrimPrefix(base, "http://"), 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(60 * time.Second)); err != nil {
		t.Fatal(err)
	}
	wrote := make(chan error, 1)
	go func() { // while reading: an answer may come before the whole body is read
		_, err := io.WriteString(conn, r.wire(base))
		wrote <- err
	}()
	resp, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: r.method})
	if err != nil {
		t.Fatalf("%s %s %.100q: %v", r.method, r.target, r.body, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s %s %.100q: %v", r.method, r.target, r.body, err)
	}
	if err := <-wrote; err != nil {
		t.Fatalf("%s %s %.100q: %v", r.method, r.target, r.body, err)
	}
	framed := strings.Join(resp.TransferEncoding, ",")
	if framed == "" || r.method == http.MethodHead { // without a body, chunks concern only this hop
		framed = fmt.Sprintf("content-length present: %t", resp.Header.Get("Content-Length") != "")
	}
	return rawResponse{resp.Status, resp.Header, framed, string(body)}
}

// wire is the request as it goes over the connection. The host is the one of
// the engine whoever is asked, so that it cannot make a difference.
func (r rawRequest) wire(base string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\n", r.method, r.target, strings.TrimPrefix(base, "http://"))
	for _, line := range r.header {
		b.WriteString(line + "\r\n")
	}
	switch {
	case r.chunked:
		b.WriteString("Transfer-Encoding: chunked\r\n\r\n")
		for chunk := range slices.Chunk([]byte(r.body), 1000) {
			fmt.Fprintf(&b, "%x\r\n%s\r\n", len(chunk), chunk)
		}
		b.WriteString("0\r\n\r\n")
		return b.String()
	case r.body != "" || r.method == http.MethodPost || r.method == http.MethodPut:
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(r.body))
	}
	return b.String() + "\r\n" + r.body
}

// volatile matches what differs between two equal requests to one server:
// durations, clock times, ids that the engine draws, and measured memory.
var volatile = regexp.MustCompile(strings.Join([]string{
	`"took":\d+`,
	`\b(coordinating_and_primary|all)_bytes=\d+`, // of all bulks in flight, where one is refused
	`"_scroll_id":"[^"]*"`,
	`"(index\.)?(creation_date|uuid|index_uuid)" ?: ?"[^"]*"`,
	`\ntook: \d+`,                              // YAML
	`\(byte\[\]\)\\".{0,900}?column: \d+\]`,    // Elasticsearch 7 quotes its receive buffer: only the body, or the head too
	`\[akin-e2e-[a-z0-9]*/[A-Za-z0-9_-]{22}\]`, // [index/uuid] in reasons
	`\b[0-9]{10} \d\d:\d\d:\d\d\b`,             // _cat/health
	`\b[A-Za-z0-9_-]{22}\b`,                    // uuid in _cat/indices
	`\b\d+(\.\d+)?[kmg]?b\b`,                   // sizes in _cat
}, "|"))

// stable is the answer with everything volatile masked and the body unzipped,
// one line each. The value of Content-Length goes with the body.
func (r rawResponse) stable(t *testing.T) string {
	t.Helper()
	body := r.body
	if r.header.Get("Content-Encoding") == "gzip" {
		reader, err := gzip.NewReader(strings.NewReader(body))
		if err != nil {
			t.Fatalf("said to be gzip: %v", err)
		}
		unzipped, err := io.ReadAll(reader)
		if err != nil {
			t.Fatalf("said to be gzip: %v", err)
		}
		body = string(unzipped)
	}
	lines := []string{r.status, r.framed}
	for name, values := range r.header {
		if name == "Content-Length" {
			continue
		}
		for _, v := range values {
			lines = append(lines, name+": "+stableHeader(name, v))
		}
	}
	slices.Sort(lines[2:])
	return strings.Join(lines, "\n") + "\n\n" + volatile.ReplaceAllString(body, "*")
}

// stableHeader puts the methods of Allow, which the engines keep in a hash
// set, into a fixed order, and masks what OpenSearch says of the task.
func stableHeader(name, value string) string {
	switch name {
	case "Allow":
		methods := strings.Split(value, ",")
		slices.Sort(methods)
		return strings.Join(methods, ",")
	case "Task_resource_usage":
		return "*"
	default:
		return value
	}
}

// jsonType and ndjsonType are the header lines of the usual bodies.
const (
	jsonType = "Content-Type: application/json"
)

// post is a POST of JSON with more lines of the header.
func post(target, body string, header ...string) rawRequest {
	return rawRequest{method: http.MethodPost, target: target, header: append([]string{jsonType}, header...), body: body}
}

// checkSame checks that akin answers a request as the engine does, except for
// what two answers of the engine differ in, and returns the answer.
func checkSame(t *testing.T, e *engine, a *akin, r rawRequest) {
	t.Helper()
	direct, through := exchange(t, e.url, r), exchange(t, a.url, r)
	if diff := cmp.Diff(direct.stable(t), through.stable(t)); diff != "" {
		t.Errorf("%s %s %.300s (-direct +through akin):\n%s", r.method, r.target, r.body, diff)
	}
}
