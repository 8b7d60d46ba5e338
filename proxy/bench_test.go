//go:build unix

package proxy

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/akin-search/akin/expand"
)

const (
	// benchClients is the number of clients that a benchmark keeps busy at once.
	benchClients = 64
	// A turn of one proxy takes benchTurn, and is followed by one of the next.
	benchTurn = time.Second / 2
	// The variables that name the proxy which this binary is to be, and the cluster.
	benchProxy, benchCluster = "AKIN_BENCH_PROXY", "AKIN_BENCH_CLUSTER"
)

// benchAnswer is what a node says, with the headers of Elasticsearch, and a
// page of ten hits.
var benchAnswer = []byte("HTTP/1.1 200 OK\r\nX-elastic-product: Elasticsearch\r\ncontent-type: application/json\r\n" +
	"content-length: 6147\r\n\r\n" + strings.Repeat(`{"hit":1}`, 683))

// A GET: of the POSTs through a bare ReverseProxy one in some ten thousand
// breaks, see Server.send.
const benchRequest = "GET /help/_doc/7 HTTP/1.1\r\nHost: cluster\r\nUser-Agent: elasticsearch-py/8\r\nAccept: application/json\r\n" +
	"Authorization: Basic dXNlcjpwYXNzd29yZA==\r\n\r\n"

// BenchmarkPassthrough compares the requests per second of requests that are
// not searches through akin and a bare ReverseProxy. Each is a process of its own; they run turn by turn, so that a change of the
// machine's speed meets all. The load and the cluster are this process, whose
// share of the processor is reported, too.
func BenchmarkPassthrough(b *testing.B) {
	cluster := benchNode(b)
	proxies := []*benchedProxy{{name: "akin"}, {name: "bare"}}
	for _, p := range proxies {
		p.startSelf(b, cluster)
	}
	for _, p := range proxies {
		p.turn(b)
		p.requests, p.took = 0, 0
	}
	own := ownTime(b)
	for b.Loop() {
		for _, p := range proxies {
			p.turn(b)
		}
	}
	own = ownTime(b) - own
	total := own
	for _, p := range proxies {
		p.end(b)
		total += p.processor
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(100*own.Seconds()/total.Seconds(), "%load+cluster")
	for _, p := range proxies {
		b.ReportMetric(p.rate(), p.name+"-req/s")
		b.ReportMetric(float64(p.processor.Microseconds())/float64(p.requests), p.name+"-cpu-µs")
		if p != proxies[0] {
			b.ReportMetric(proxies[0].rate()/p.rate(), "akin/"+p.name)
		}
	}
}

// A benchedProxy is a proxy in a process of its own.
type benchedProxy struct {
	name, address string
	process       *exec.Cmd
	requests      int64
	took          time.Duration
	processor     time.Duration // time of the process and its children
}

func (p *benchedProxy) rate() float64 { return float64(p.requests) / p.took.Seconds() }

// startSelf starts this binary as the proxy.
func (p *benchedProxy) startSelf(b *testing.B, cluster string) {
	b.Helper()
	p.process = exec.CommandContext(b.Context(), os.Args[0], "-test.run", "^TestServesForTheBenchmark$")
	p.process.Env = append(os.Environ(), benchProxy+"="+p.name, benchCluster+"="+cluster)
	said, err := p.process.StdoutPipe()
	if err == nil {
		err = p.process.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	line, err := bufio.NewReader(said).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	p.address = strings.TrimSpace(line)
}

// turn keeps the proxy busy for a while.
func (p *benchedProxy) turn(b *testing.B) {
	b.Helper()
	var requests atomic.Int64
	var clients sync.WaitGroup
	began := time.Now()
	for range benchClients {
		clients.Go(func() {
			n, err := loadUntil(p.address, began.Add(benchTurn))
			if requests.Add(n); err != nil {
				b.Errorf("%s: %v", p.name, err)
			}
		})
	}
	clients.Wait()
	p.requests += requests.Load()
	p.took += time.Since(began)
}

// loadUntil sends one request after the other on one connection.
func loadUntil(address string, end time.Time) (requests int64, err error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	_, body, _ := bytes.Cut(benchAnswer, []byte("\r\n\r\n"))
	buf := make([]byte, 16<<10)
	for ; time.Now().Before(end); requests++ {
		if _, err := io.WriteString(conn, benchRequest); err != nil {
			return requests, err
		}
		for have, whole := 0, len(buf); have < whole; {
			n, err := conn.Read(buf[have:])
			if err != nil {
				return requests, err
			}
			have += n
			if head := bytes.Index(buf[:have], []byte("\r\n\r\n")); head > 0 && whole == len(buf) {
				whole = head + 4 + len(body)
			}
		}
		if !bytes.HasPrefix(buf, []byte("HTTP/1.1 200")) {
			return requests, fmt.Errorf("it answers %q", buf[:64])
		}
	}
	return requests, nil
}

// end stops the process and notes the time that it took of the processor.
func (p *benchedProxy) end(b *testing.B) {
	b.Helper()
	_ = p.process.Process.Signal(syscall.SIGTERM)
	var status *exec.ExitError
	if err := p.process.Wait(); err != nil && !errors.As(err, &status) {
		b.Fatal(err)
	}
	p.processor = p.process.ProcessState.UserTime() + p.process.ProcessState.SystemTime()
}

// ownTime returns the time that this process took of the processor.
func ownTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// benchNode returns the address of a node that has every answer ready.
func benchNode(b *testing.B) string {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				buf := make([]byte, 4<<10)
				for have := 0; ; {
					n, err := conn.Read(buf[have:])
					if err != nil {
						return
					}
					if have += n; !bytes.HasSuffix(buf[:have], []byte("\r\n\r\n")) {
						continue
					}
					answer := benchAnswer
					if bytes.HasPrefix(buf, []byte("HEAD")) {
						answer = answer[:bytes.Index(answer, []byte("\r\n\r\n"))+4]
					}
					if _, err := conn.Write(answer); err != nil {
						return
					}
					have = 0
				}
			}()
		}
	}()
	return l.Addr().String()
}

// TestServesForTheBenchmark is a proxy where the benchmark has started it.
func TestServesForTheBenchmark(t *testing.T) {
	cluster := "http://" + os.Getenv(benchCluster)
	var h http.Handler
	switch os.Getenv(benchProxy) {
	case "akin":
		server := build(Options{Nodes: nodesAt(cluster), Expander: results(expand.Result{})})
		h = server.Handler()
	case "bare":
		h = bareProxy(t, cluster)
	default:
		return
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	server := &http.Server{Handler: h, ReadHeaderTimeout: readHeaderTimeout}
	context.AfterFunc(ctx, func() { server.Close() })
	fmt.Println(l.Addr())
	_ = server.Serve(l)
}

// bareProxy is the least that forwards: what akin is compared with.
func bareProxy(t *testing.T, cluster string) http.Handler {
	t.Helper()
	target, err := url.Parse(cluster)
	if err != nil {
		t.Fatal(err)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 512 // as akin
	transport.MaxIdleConns = 0
	transport.DisableCompression = true
	return &httputil.ReverseProxy{
		Rewrite:   func(pr *httputil.ProxyRequest) { pr.SetURL(target) },
		Transport: transport,
	}
}
