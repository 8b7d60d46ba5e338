package proxy

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/akin-search/akin/e2e/check"
)

// passedTargets are targets of requests that are no searches, or not expanded.
var passedTargets = []string{
	"/",
	"/?",
	"/_cat/indices?a=b;c=%zz",
	"/_cat/indices?v&&h=a+b%20c&=&x",
	"/_cat/indices?h-i=1&h=~&h=1&h=%3A",
	"/a%2Fb/_doc/1",
	"/a%7eb/%5f",
	"//double//slash/",
	"/trailing/_search/",
	"/_search///",
	"//_search",
	"/_scripts/_search",
	"/a%00b/_search",
	"/%00",
	"/" + strings.Repeat("abc%2F", 1<<10) + "/_search/",
	"/./a/../b",
	"/<logs-{now/d}>/_doc/1",
	"/%3Clogs-%7Bnow%2Fd%7D%3E/_doc/1",
	"/%3Clogs-%7Bnow%2Fd%7D%3E/_search?pretty",
	"/<logs-{now/d}>/_search",
	"/a|b/\"c\"^`?x|y\"^`{}",
	"/größe?größe",
	"/a#b?c#d",
	"/_search?q=a%2Bb+c;d&akin_profil=x",
	"/_cat/indices?akin=off&akin_profile=x",
	"/_search?q",
}

func TestPassthroughRequestTarget(t *testing.T) {
	for _, prefix := range []string{"", "/es", "/e%2Fs"} {
		node := startRawNode(t, nil)
		p := start(t, Options{Nodes: nodesAt(node.URL + prefix + "/"), Expander: expander(leaveAlone)}, nil)
		for n, target := range passedTargets {
			exchangeRaw(t, p.addr, "GET "+target+" HTTP/1.1\nHost: a\nConnection: close\n\n")
			got, want := node.all()[n].line, "GET "+prefix+target+" HTTP/1.1"
			check.That(t, got == want, "the node got %q, want %q", got, want)
		}
	}
}

// The one target that does not stay as it is: what net/http cannot send
// exactly, two leading slashes together with characters that URLs escape, it
// sends escaped, and not in absolute form.
func TestPassthroughRequestLine(t *testing.T) {
	p := start(t, Options{}, inTurn("HTTP/1.1 204 No Content\r\n\r\n"))
	for n, line := range []string{"OPTIONS * HTTP/1.1", "PROPFIND /a HTTP/1.1", "DELETE /a HTTP/1.1", "HEAD /a HTTP/1.1", "search /a HTTP/1.1", "GET //a|b?c|d HTTP/1.1"} {
		exchangeRaw(t, p.addr, line+"\nHost: a\nConnection: close\n\n")
		got, want := p.all()[n].line, strings.Replace(line, "//a|b", "//a%7Cb", 1)
		check.That(t, got == want, "the node got %q, want %q", got, want)
	}
}

func TestPassthroughRequestHeaders(t *testing.T) {
	const sent = `Accept: application/vnd.elasticsearch+json; compatible-with=8
Authorization: ApiKey a2V5OnNlY3JldA==
Cookie: a=b
Cookie: c=d
Forwarded: for=192.0.2.1
Traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01
X-Akinetic: off
X-Forwarded-For: 192.0.2.1
X-Forwarded-For: 192.0.2.2
X-Forwarded-Host: search.example
X-Forwarded-Proto: https
X-Opaque-Id:  spaced, "quoted"
X-Twice: b
X-Twice: a`
	p := start(t, Options{Expander: expander(leaveAlone)}, nil)
	exchangeRaw(t, p.addr, "GET /_cat/health HTTP/1.1\nHost: akin.example\nConnection: close, X-Private\nX-Private: 1\nKeep-Alive: timeout=5\nX-Akin: off\nX-Akin-Profile: x\n"+sent+"\n\n")

	got := p.only(t)
	want := append([]string{"Host: " + p.rawNode.addr}, strings.Split(strings.Replace(sent, ":  ", ": ", 1), "\n")...)
	check.Equal(t, slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(got.header)), "header lines")
	for name, values := range map[string][]string{"X-Twice": {"b", "a"}, "Cookie": {"a=b", "c=d"}} {
		check.Equal(t, values, got.get(name), name, "their order")
	}
}

func TestForwardedHeadersAreAddedWhenConfigured(t *testing.T) {
	p := start(t, Options{ForwardedHeaders: true}, nil)
	exchangeRaw(t, p.addr, "GET / HTTP/1.1\nHost: akin.example\nConnection: close\nX-Forwarded-For: 192.0.2.1\n\n")
	got := p.only(t)
	for name, want := range map[string]string{
		"X-Forwarded-For":   "192.0.2.1, 127.0.0.1",
		"X-Forwarded-Host":  "akin.example",
		"X-Forwarded-Proto": "http",
	} {
		check.Equal(t, []string{want}, got.get(name), name)
	}
}

// An answer reaches the client as the node sent it, and nothing is added: no
// Date, no Content-Type, no Content-Length.
func TestPassthroughAnswer(t *testing.T) {
	const hopByHop = "Connection: x-private\r\nX-Private: 1\r\nKeep-Alive: timeout=5\r\n"
	packed := pack(t, "{}")
	const hints = "103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
	for name, tt := range map[string]struct{ method, answer string }{
		"bare":                    {"GET", "200 OK\r\nContent-Length: 2\r\n\r\n{}"},
		"looks like HTML":         {"GET", "200 OK\r\nContent-Length: 6\r\n\r\n<html>"},
		"date":                    {"GET", "200 OK\r\nContent-Length: 0\r\nDate: Mon, 02 Jan 2006 15:04:05 GMT\r\n\r\n"},
		"order of values":         {"GET", "200 OK\r\nContent-Length: 0\r\nWarning: 299 b\r\nWarning: 299 a\r\n\r\n"},
		"no content":              {"DELETE", "204 No Content\r\n\r\n"},
		"not modified":            {"GET", "304 Not Modified\r\nEtag: \"1\"\r\n\r\n"},
		"head":                    {"HEAD", "200 OK\r\nContent-Length: 270\r\nContent-Type: application/json\r\n\r\n"},
		"head of what is missing": {"HEAD", "404 Not Found\r\n\r\n"},
		"empty 404":               {"GET", "404 Not Found\r\nContent-Length: 0\r\n\r\n"},
		"hop by hop":              {"GET", "200 OK\r\n" + hopByHop + "Content-Length: 0\r\n\r\n"},
		"early hints":             {"GET", hints},
		"chunked":                 {"GET", "200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"},
		"trailer":                 {"GET", "200 OK\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX-Sum: 1\r\n\r\n"},
		"unusual status":          {"GET", "418 I'm a teapot\r\nContent-Length: 0\r\n\r\n"},
		"gzip":                    {"GET", fmt.Sprintf("200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", len(packed), packed)},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			p := start(t, Options{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))}, inTurn("HTTP/1.1 "+tt.answer))
			got := exchangeRaw(t, p.addr, tt.method+" /a HTTP/1.1\nHost: a\nConnection: close\n\n")
			got = strings.Replace(got, "Connection: close\r\n", "", 1) // the answer to the request's own
			check.Equal(t, "HTTP/1.1 "+strings.Replace(tt.answer, hopByHop, "", 1), got, "answer")
			if log.Len() > 0 { // net/http complains of headers that are written twice
				t.Errorf("the log says %s", log.String())
			}
		})
	}
}

func TestPassthroughExpectContinue(t *testing.T) {
	t.Run("granted by the node", func(t *testing.T) {
		node := startNode(t, func(w http.ResponseWriter, r *http.Request) {
			check.Equal(t, "100-continue", r.Header.Get("Expect"), "Expect")
			io.Copy(w, r.Body)
		})
		p := start(t, Options{Nodes: nodesAt(node)}, nil)
		c := dial(t, p.addr)
		io.WriteString(c, "PUT /a/_doc/1 HTTP/1.1\r\nHost: a\r\nConnection: close\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
		br := bufio.NewReader(c)
		for _, want := range []string{"HTTP/1.1 100 Continue\r\n", "\r\n"} {
			got, err := br.ReadString('\n')
			check.Must(t, got == want, "got %q, %v, want %q", got, err, want)
		}
		io.WriteString(c, "{}")
		rest, err := io.ReadAll(br)
		check.That(t, err == nil && strings.HasPrefix(string(rest), "HTTP/1.1 200 OK\r\n") && strings.HasSuffix(string(rest), "{}"), "got %q, %v", rest, err)
	})
	t.Run("granted twice by the node", func(t *testing.T) {
		node := startRawNode(t, func(_ int, _ rawRequest) string {
			return strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 2) + "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
		})
		p := start(t, Options{Nodes: nodesAt(node.URL)}, nil)
		got := exchangeRaw(t, p.addr, "PUT /a/_doc/1 HTTP/1.1\nHost: a\nConnection: close\nExpect: 100-continue\nContent-Length: 2\n\n{}")
		check.Equal(t, 1, strings.Count(got, "100 Continue"), got, "answers grant the body")
	})
}

// Each piece is sent only after the client has the one before it.
func TestPassthroughStreamsPieceByPiece(t *testing.T) {
	for _, length := range []string{"", "9"} {
		t.Run("Content-Length "+length, func(t *testing.T) {
			arrived := make(chan struct{})
			node := startNode(t, func(w http.ResponseWriter, r *http.Request) {
				if length != "" {
					w.Header().Set("Content-Length", length)
				}
				flush := http.NewResponseController(w).Flush
				flush()
				for range 3 {
					select {
					case <-arrived:
					case <-r.Context().Done():
					}
					io.WriteString(w, "abc")
					flush()
				}
			})
			p := start(t, Options{Nodes: nodesAt(node)}, nil)
			res, err := client.Get("http://" + p.addr + "/_nodes/hot_threads") // returns with the header, before the body
			check.OK(t, err)
			defer res.Body.Close()
			for range 3 {
				arrived <- struct{}{}
				piece := make([]byte, 3)
				_, err := io.ReadFull(res.Body, piece)
				check.Must(t, err == nil && string(piece) == "abc", "got %q, %v", piece, err)
			}
		})
	}
}

// A node may answer before it has the whole request, and the client may wait
// for that.
func TestPassthroughAnswerBeforeRequestEnds(t *testing.T) {
	for _, length := range []string{"Content-Length: 4", "Transfer-Encoding: chunked"} {
		t.Run(length, func(t *testing.T) {
			node := startNode(t, func(w http.ResponseWriter, r *http.Request) {
				ctl := http.NewResponseController(w)
				ctl.EnableFullDuplex()
				two := make([]byte, 2)
				io.ReadFull(r.Body, two)
				w.Write(two)
				ctl.Flush()
				io.Copy(w, r.Body)
			})
			p := start(t, Options{Nodes: nodesAt(node)}, nil)
			c := dial(t, p.addr)
			defer c.Close()
			first, second := "ab", "cd"
			if strings.Contains(length, "chunked") {
				first, second = "2\r\nab\r\n", "2\r\ncd\r\n0\r\n\r\n"
			}
			io.WriteString(c, "POST /a HTTP/1.1\r\nHost: a\r\n"+length+"\r\n\r\n"+first)
			res, err := http.ReadResponse(bufio.NewReader(c), nil)
			check.OK(t, err)
			defer res.Body.Close()
			io.WriteString(c, second)
			if got, err := io.ReadAll(res.Body); string(got) != "abcd" {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

// A node may answer early: then the transport may close the body while it reads
// it, and begin to read it once more when the client has its answer.
func TestABodyIsOnlyLentToTheTransport(t *testing.T) {
	of := &closedBody{Reader: strings.NewReader("body")}
	lent := &lentBody{Reader: of}
	begun, read := make(chan struct{}), make(chan error)
	go func() {
		close(begun)
		_, err := io.ReadAll(iotest.OneByteReader(lent))
		read <- err
	}()
	<-begun
	lent.Close()
	if err := <-read; err != nil && !errors.Is(err, http.ErrBodyReadAfterClose) {
		t.Error(err)
	}
	if n, err := lent.Read(make([]byte, 8)); n != 0 || !errors.Is(err, http.ErrBodyReadAfterClose) || of.closed {
		t.Errorf("after its end %d bytes, %v; the client's was closed: %v", n, err, of.closed)
	}
}

type closedBody struct {
	io.Reader

	closed bool
}

func (b *closedBody) Close() error {
	b.closed = true
	return nil
}
