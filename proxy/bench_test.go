package proxy

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/akin-search/akin/expand"
)

// benchClients is the number of clients that a benchmark keeps busy at once.
const benchClients = 16

// benchAnswer has the size of a page of ten hits.
var benchAnswer = bytes.Repeat([]byte(`{"hit":1}`), 900)

// benchUpstream answers every request like a node that has the answer ready.
func benchUpstream(b *testing.B) *httptest.Server {
	b.Helper()
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(benchAnswer)))
		w.Header().Set("X-Elastic-Product", "Elasticsearch")
		w.Write(benchAnswer)
	}))
	b.Cleanup(upstream.Close)
	return upstream
}

// bareProxy is the least that forwards: what akin is compared with.
func bareProxy(b *testing.B, upstream string) http.Handler {
	b.Helper()
	target, err := url.Parse(upstream)
	if err != nil {
		b.Fatal(err)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 512 // as akin
	transport.MaxIdleConns = 0
	transport.DisableCompression = true
	b.Cleanup(transport.CloseIdleConnections)
	return &httputil.ReverseProxy{
		Rewrite:   func(pr *httputil.ProxyRequest) { pr.SetURL(target) },
		Transport: transport,
	}
}

// load sends n requests over keep-alive connections of benchClients clients and
// returns the time that took.
func load(b *testing.B, base string, n int) time.Duration {
	b.Helper()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: benchClients, DisableCompression: true}}
	defer client.CloseIdleConnections()
	work := make(chan struct{}, n)
	for range n {
		work <- struct{}{}
	}
	close(work)
	done := make(chan error, benchClients)
	start := time.Now()
	for range benchClients {
		go func() {
			buf := make([]byte, 32<<10)
			var failed error
			for range work {
				if err := oneRequest(client, base, buf); err != nil {
					failed = err
				}
			}
			done <- failed
		}()
	}
	for range benchClients {
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(start)
}

func oneRequest(client *http.Client, base string, buf []byte) error {
	// A GET: of the POSTs through a bare ReverseProxy one in some ten thousand
	// breaks, see Server.send.
	res, err := client.Get(base + "/help/_doc/7")
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_, err = io.CopyBuffer(struct{ io.Writer }{io.Discard}, res.Body, buf)
	return err
}

// BenchmarkPassthrough compares the requests per second of requests that are
// not searches. akin and bare each run alone; ratio runs them turn by turn, so
// that a change of the machine's speed meets both, and reports akin/bare.
func BenchmarkPassthrough(b *testing.B) {
	upstream := benchUpstream(b)
	server, err := New(Options{Upstreams: []string{upstream.URL}, Expander: fixedExpander{}})
	if err != nil {
		b.Fatal(err)
	}
	akin := httptest.NewServer(server.Handler())
	defer akin.Close()
	bare := httptest.NewServer(bareProxy(b, upstream.URL))
	defer bare.Close()
	load(b, akin.URL, 2000)
	load(b, bare.URL, 2000)

	for _, of := range []struct{ name, base string }{{"bare", bare.URL}, {"akin", akin.URL}} {
		b.Run(of.name, func(b *testing.B) {
			took := load(b, of.base, b.N)
			b.ReportMetric(float64(b.N)/took.Seconds(), "req/s")
		})
	}
	b.Run("ratio", func(b *testing.B) {
		const turn = 500
		var akinTook, bareTook time.Duration
		for n := 0; n < b.N; n += 2 * turn { // in both orders, so that neither is favored
			akinTook += load(b, akin.URL, turn)
			bareTook += load(b, bare.URL, turn)
			bareTook += load(b, bare.URL, turn)
			akinTook += load(b, akin.URL, turn)
		}
		b.ReportMetric(bareTook.Seconds()/akinTook.Seconds(), "akin/bare")
	})
}

// fixedExpander answers every search with the same result.
type fixedExpander struct{ result expand.Result }

func (e fixedExpander) Expand(context.Context, *expand.Request) (*expand.Result, error) {
	return &e.result, nil
}
