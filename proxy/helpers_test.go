package proxy

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/internal/limits"
	"github.com/akin-search/akin/internal/nodes"
	"github.com/akin-search/akin/internal/recovery"
	"github.com/akin-search/akin/proxy/answer"
)

// patience bounds every wait of a test; nothing comes near it.
const patience = 20 * time.Second

// client gives up before the test run does.
var client = &http.Client{Timeout: patience}

// expander is an Expander made of a function.
type expander func(ctx context.Context, r *expand.Request) (*expand.Result, error)

func (f expander) Expand(ctx context.Context, r *expand.Request) (*expand.Result, error) {
	return f(ctx, r)
}

func (expander) WithFirstHits(context.Context, *expand.Result, [][]expand.FirstHit) (*expand.Result, error) {
	return nil, errors.New("this expander wants no first hits")
}

func (expander) Below(*expand.Request) []int { return nil }

// leaveAlone expands nothing.
func leaveAlone(context.Context, *expand.Request) (*expand.Result, error) {
	return &expand.Result{Reason: "left alone"}, nil
}

// rewriteTo expands every search to body.
func rewriteTo(body string) expander {
	return func(_ context.Context, r *expand.Request) (*expand.Result, error) {
		return &expand.Result{
			Rewritten: true,
			RawQuery:  r.RawQuery,
			Body:      []byte(body),
			Clauses:   []expand.Explanation{{Path: "query.match", Field: "body", Added: make([]expand.Added, 3)}},
		}, nil
	}
}

// poolOf returns a pool of nodes.
func poolOf(o nodes.Options) *nodes.Pool {
	pool, err := nodes.New(o)
	if err != nil {
		panic(err)
	}
	return pool
}

func nodesAt(urls ...string) *nodes.Pool { return poolOf(nodes.Options{URLs: urls}) }

// build is [New] with what a test leaves out: nodes that nobody asks, and much
// time and memory for all but expanding and reranking.
func build(o Options) *Server {
	if o.Nodes == nil {
		o.Nodes = nodesAt("http://127.0.0.1:9")
	}
	o.Budget = cmp.Or(o.Budget, 50*time.Millisecond)
	o.RerankBudget = cmp.Or(o.RerankBudget, 50*time.Millisecond)
	o.MaxBody = cmp.Or(o.MaxBody, 1<<20)
	o.IdleTimeout = cmp.Or(o.IdleTimeout, 2*time.Minute)
	o.ShutdownTimeout = cmp.Or(o.ShutdownTimeout, 20*time.Second)
	o.BodyTimeout = cmp.Or(o.BodyTimeout, 30*time.Second)
	if o.Memory == nil {
		o.Memory = limits.New(128 << 20)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Registry == nil {
		o.Registry = prometheus.NewRegistry()
	}
	if o.Cause == nil {
		o.Cause = defaultCause
	}
	if o.Guard == nil {
		o.Guard = recovery.New(o.Logger, o.Registry)
	}
	return New(o)
}

func defaultCause(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "budget"
	}
	return "error"
}

// A rig is a proxy on a real socket before a node.
type rig struct {
	*rawNode // nil where the test has nodes of its own

	server *Server
	addr   string
}

// start serves o, before a node that answers by a function unless o has nodes.
// What change does to the server comes before that.
func start(t *testing.T, o Options, reply func(n int, r rawRequest) string, change ...func(*Server)) *rig {
	t.Helper()
	p := &rig{}
	if o.Nodes == nil {
		p.rawNode = startRawNode(t, reply)
		o.Nodes = nodesAt(p.URL)
	}
	p.server = newServer(t, o)
	for _, f := range change {
		f(p.server)
	}
	p.addr = startServer(t, p.server)
	return p
}

// post sends a search and returns all of the answer.
func (p *rig) post(t *testing.T, target, header, body string) string {
	t.Helper()
	return exchangeRaw(t, p.addr, searchOf(target, header, body))
}

// search sends [someSearch] and returns the body of the answer.
func (p *rig) search(t *testing.T, target string) string {
	t.Helper()
	return bodyOf(p.post(t, target, jsonType, someSearch))
}

// arrived compares the bodies of the searches that arrived at the node.
func (p *rig) arrived(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	for _, r := range p.searches() {
		got = append(got, r.body)
	}
	check.That(t, slices.Equal(got, want), "the node got %.500q, want %.500q", got, want)
}

// value returns that of a metric, see [counter].
func (p *rig) value(t *testing.T, metric string, labels ...string) float64 {
	t.Helper()
	return counter(t, p.server.opts.Registry, metric, labels...)
}

// counted compares the value of a metric.
func (p *rig) counted(t *testing.T, want float64, metric string, labels ...string) {
	t.Helper()
	check.Equal(t, want, p.value(t, metric, labels...), metric, labels)
}

// became checks that there was one request, with an outcome and a reason.
func (p *rig) became(t *testing.T, outcome, reason string) {
	t.Helper()
	p.counted(t, 1, "akin_requests_total")
	p.counted(t, 1, "akin_requests_total", "outcome", outcome, "reason", reason)
}

// explained returns what the admin port shows of the search whose answer is
// given, nil where that names no record.
func (p *rig) explained(t *testing.T, text string) (shown map[string]any) {
	t.Helper()
	_, id, named := strings.Cut(text, explanationHeader+": ")
	if !named {
		return nil
	}
	id, _, _ = strings.Cut(id, "\r\n")
	status := getAdmin(t, p.server, explanationsPath+"/"+id, &shown)
	check.Must(t, status == http.StatusOK, "status %d of explanation %s", status, id)
	return shown
}

// bodyOf returns what is behind the head of an answer.
func bodyOf(text string) string {
	_, body, _ := strings.Cut(text, "\r\n\r\n")
	return body
}

// inTurn answers with texts, the last one again and again.
func inTurn(texts ...string) func(int, rawRequest) string {
	return func(n int, _ rawRequest) string { return texts[min(n, len(texts))-1] }
}

// startServer serves s on a real socket and returns the address.
func startServer(t *testing.T, s *Server) (addr string) {
	t.Helper()
	server := httptest.NewUnstartedServer(s.proxy)
	server.Config = newHTTPServer(s.proxy, s.opts.IdleTimeout, s.log)
	server.Start()
	t.Cleanup(server.Close)
	t.Cleanup(s.upstream.CloseIdleConnections)
	t.Cleanup(s.Close)
	return server.Listener.Addr().String()
}

// A rawRequest is a request as it arrived on the wire.
type rawRequest struct {
	line   string   // the request line
	header []string // the header lines, in the order of arrival
	body   string   // with its chunk framing, if any
}

// get returns the values of the header lines of a name.
func (r rawRequest) get(name string) []string {
	var values []string
	for _, line := range r.header {
		if k, v, _ := strings.Cut(line, ": "); strings.EqualFold(k, name) {
			values = append(values, v)
		}
	}
	return values
}

// A rawNode is a node that notes requests byte for byte and answers each with
// the bytes that answer returns, or with an empty object. To HEAD it sends no
// body: the next answer on the connection would be taken from it.
type rawNode struct {
	URL, addr string
	mu        sync.Mutex
	requests  []rawRequest
}

const (
	emptyAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Type: application/json\r\n\r\n{}"
	// hangUp at the end of an answer closes the connection after what is before.
	hangUp = "\x00hang up"
)

func startRawNode(t *testing.T, reply func(n int, r rawRequest) string) *rawNode {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check.OK(t, err)
	node := &rawNode{URL: "http://" + l.Addr().String(), addr: l.Addr().String()}
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns.Go(func() { node.serve(c, reply) })
		}
	})
	t.Cleanup(func() { l.Close(); conns.Wait() })
	return node
}

func (n *rawNode) serve(c net.Conn, reply func(int, rawRequest) string) {
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	for br := bufio.NewReader(c); ; {
		r, ok := readRawRequest(br)
		if !ok {
			return
		}
		n.mu.Lock()
		n.requests = append(n.requests, r)
		count := len(n.requests)
		n.mu.Unlock()
		text := emptyAnswer
		if reply != nil {
			text = reply(count, r)
		}
		text, hangsUp := strings.CutSuffix(text, hangUp)
		if head, _, whole := strings.Cut(text, "\r\n\r\n"); whole && strings.HasPrefix(r.line, http.MethodHead+" ") {
			text = head + "\r\n\r\n"
		}
		io.WriteString(c, text)
		if hangsUp {
			return
		}
	}
}

func readRawRequest(br *bufio.Reader) (r rawRequest, ok bool) {
	for {
		line, err := br.ReadString('\n')
		if err != nil {
			return r, false
		}
		line = strings.TrimSuffix(line, "\r\n")
		switch {
		case r.line == "":
			r.line = line
			continue
		case line != "":
			r.header = append(r.header, line)
			continue
		}
		break
	}
	req, err := http.ReadRequest(bufio.NewReader(io.MultiReader(
		strings.NewReader("POST / HTTP/1.1\r\n"+strings.Join(r.header, "\r\n")+"\r\n\r\n"), br)))
	if err != nil {
		return r, false
	}
	body, err := io.ReadAll(req.Body)
	r.body = string(body)
	return r, err == nil
}

// all returns the requests so far.
func (n *rawNode) all() []rawRequest {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]rawRequest(nil), n.requests...)
}

// only returns the one request that arrived.
func (n *rawNode) only(t *testing.T) rawRequest {
	t.Helper()
	got := n.all()
	check.Must(t, len(got) == 1, "%d requests arrived, want 1: %q", len(got), got)
	return got[0]
}

// dial connects to addr for the time of the test.
func dial(t *testing.T, addr string) *net.TCPConn {
	t.Helper()
	c, err := (&net.Dialer{Timeout: patience}).DialContext(t.Context(), "tcp", addr)
	check.OK(t, err)
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(patience))
	return c.(*net.TCPConn)
}

// exchangeRaw sends request, with \n for \r\n in the head, and returns all that
// comes back until the connection closes. The request should ask for that.
func exchangeRaw(t *testing.T, addr, request string) string {
	t.Helper()
	c := dial(t, addr)
	head, body, _ := strings.Cut(request, "\n\n")
	check.OK(t, check.ErrOf(io.WriteString(c, strings.ReplaceAll(head, "\n", "\r\n")+"\r\n\r\n"+body)))
	text, err := io.ReadAll(c)
	check.Must(t, err == nil, "reading the answer: %v, so far %q", err, text)
	return string(text)
}

// counter returns the sum of the samples of a metric whose labels include
// those given as name, value pairs.
func counter(t *testing.T, registry *prometheus.Registry, name string, labels ...string) float64 {
	t.Helper()
	families, err := registry.Gather()
	check.OK(t, err)
	sum := 0.0
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
	samples:
		for _, m := range family.GetMetric() {
			have := map[string]string{}
			for _, l := range m.GetLabel() {
				have[l.GetName()] = l.GetValue()
			}
			for i := 0; i < len(labels); i += 2 {
				if have[labels[i]] != labels[i+1] {
					continue samples
				}
			}
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return sum
}

// receive returns what comes out of ch, and fails the test if nothing does.
func receive[T any](t *testing.T, what string, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(patience):
		t.Fatalf("waited in vain for %s", what)
		panic("not reached")
	}
}

// threeHits is an answer of OpenSearch 2.19 to a search for sequence numbers
// and versions, the documents shortened.
const threeHits = `{"took":5,"timed_out":false,"_shards":{"total":2,"successful":2,"skipped":0,"failed":0},` +
	`"hits":{"total":{"value":3,"relation":"eq"},"max_score":1.5,"hits":[` +
	`{"_index":"t","_id":"1","_version":1,"_seq_no":0,"_primary_term":1,"_score":1.5,"_routing":"zz","_source":{"a":[1.0,1e0],"hits":{"hits":1}}},` +
	`{"_index":"t","_id":"2","_version":7,"_seq_no":4,"_primary_term":2,"_score":1.25,"_source":{"a":"}"}},` +
	`{"_index":"t","_id":"3\n","_version":2,"_seq_no":3,"_primary_term":1,"_score":1.0,"_source":{}}]},"profile":{}}`

// threeSearches is an answer to _msearch: the second search failed.
const threeSearches = `{"took":9,"responses":[` + threeHits + `,{"error":{"type":"x","hits":{"hits":[1]}},"status":404},` + threeHits + `],"more":[]}`

// searchFor returns a search of an endpoint and an index.
func searchFor(endpoint expand.Endpoint, index, rawQuery, text string) *search {
	return &search{
		match: match{route: &route{endpoint: endpoint}, index: index}, rawQuery: rawQuery, asked: new(sync.Map),
		body: body{whole: true, raw: []byte(text), plain: []byte(text)},
	}
}

// A document is one of [threeHits].
type document struct {
	id, quoted, rest string
	seqNo            int
	score            string
}

var documents = []document{
	{"1", `"1"`, `,"_routing":"zz","_source":{"a":[1.0,1e0],"hits":{"hits":1}}}`, 0, "1.5"},
	{"2", `"2"`, `,"_source":{"a":"}"}}`, 4, "1.25"},
	{"3\n", `"3\n"`, `,"_source":{}}`, 3, "1.0"},
}

// hit is a document as clients ask for it.
func (d document) hit(score string) string {
	return `{"_index":"t","_id":` + d.quoted + `,"_score":` + score + d.rest
}

// Kinds of requests for a search whose hits are reranked: for the frame and
// whatever else is no side search, for the client's page, and for that in the
// engine's order.
const (
	asksFrame = "frame"
	asksPage  = "page"
	asksOrder = "order"
)

// asks returns the kind of a request.
func (r rawRequest) asks() string {
	switch {
	case strings.Contains(r.body, `"query":{"bool":{"filter":[{"terms":{"_seq_no":`):
		return asksPage
	case strings.HasPrefix(r.body, `{"track_total_hits":false`):
		return asksOrder
	}
	return asksFrame
}

// kinds returns those of the requests so far.
func (n *rawNode) kinds() string {
	var all []string
	for _, r := range n.all() {
		all = append(all, r.asks())
	}
	return strings.Join(all, " ")
}

// rerankOf returns how three hits are reranked: the client asks for some of
// them.
func rerankOf(from, size int) *expand.Rerank {
	return &expand.Rerank{
		Window: 3, From: from, Size: size, SoftWeight: 1,
		Page:    expand.SideSearch{Index: "t", RawQuery: "routing=zz", Body: []byte(`,"_source":true}`)},
		InOrder: expand.SideSearch{Index: "t", RawQuery: "preference=a", Body: fmt.Appendf(nil, `{"track_total_hits":false,"from":%d,"size":%d}`, from, size)},
	}
}

// sideHits returns the answer of a cluster that has the documents to a search
// for a page: its hits in no order, with the score of a filter.
func sideHits(r rawRequest) string {
	var body struct {
		From, Size int
		Query      struct {
			Bool struct {
				Filter []struct {
					Terms struct {
						SeqNo []int `json:"_seq_no"`
					}
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(r.body), &body); err != nil {
		return err.Error()
	}
	var hits []string
	if r.asks() == asksOrder {
		for _, d := range documents[min(body.From, len(documents)):min(body.From+body.Size, len(documents))] {
			hits = append(hits, d.hit(d.score))
		}
	} else {
		for _, d := range documents {
			if slices.Contains(body.Query.Bool.Filter[0].Terms.SeqNo, d.seqNo) {
				hits = append(hits, d.hit("0.0"))
			}
		}
	}
	return `{"timed_out":false,"_shards":{"failed":0},"hits":{"hits":[` + strings.Join(hits, ",") + `]}}`
}

// cluster answers searches for pages, and all else with frame.
func cluster(frame func(n int, r rawRequest) string) func(n int, r rawRequest) string {
	return func(n int, r rawRequest) string {
		if r.asks() != asksFrame {
			return answerOf(sideHits(r))
		}
		return frame(n, r)
	}
}

// frames answers searches for pages, and all else with text.
func frames(text string) func(n int, r rawRequest) string {
	return cluster(func(int, rawRequest) string { return answerOf(text) })
}

// cutPages returns an answer with the pages of its searches in the order of new
// scores, of those without in the engine's.
func cutPages(t *testing.T, text string, reranks []*expand.Rerank, scores ...[]float64) string {
	t.Helper()
	endpoint := expand.EndpointSearch
	if len(reranks) > 1 {
		endpoint = expand.EndpointMultiSearch
	}
	all, err := answer.ReadFrames([]byte(text), endpoint, reranks)
	check.Must(t, err == nil, "%v: %s", err, text)
	for k, f := range all {
		if f == nil {
			continue
		}
		var ok bool
		if k < len(scores) && scores[k] != nil {
			var page []expand.Hit
			page, ok = f.Order(softOf(scores[k]...))
			ok = ok && f.SetPage(page, []byte(sideHits(rawRequest{body: string(f.Rerank.PageOf(page).Body)})))
		} else {
			ok = f.SetInOrder([]byte(sideHits(rawRequest{body: string(f.Rerank.InOrder.Body)})))
		}
		check.Must(t, ok, "no page for the %d-th search", k)
	}
	return string(answer.WriteFrames([]byte(text), all))
}

// softOf returns scores of the documents.
func softOf(soft ...float64) []expand.HitScore {
	scores := make([]expand.HitScore, len(soft))
	for i, s := range soft {
		scores[i] = expand.HitScore{Soft: s}
	}
	return scores
}

const (
	someSearch = `{"query":{}}`
	original   = "{ \"query\" : {\"match\":{\"body\":\"car\"}}, \"from\": 1.0e0 }\n"
	rewritten  = `{"query":{"bool":{"should":[]}}}`
)

func pack(tb testing.TB, s string) string {
	tb.Helper()
	var b bytes.Buffer
	gz := gzip.NewWriter(&b)
	io.WriteString(gz, s)
	check.OK(tb, gz.Close())
	return b.String()
}

// searchOf returns a raw request for a search.
func searchOf(target, header, body string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\nHost: a\nConnection: close\n%sContent-Length: %d\n\n%s", target, header, len(body), body)
}

const jsonType = "Content-Type: application/json\n"

// answerWith returns an answer on the wire.
func answerWith(status int, header, body string) string {
	return fmt.Sprintf("HTTP/1.1 %d X\r\n%sContent-Length: %d\r\n\r\n%s", status, strings.ReplaceAll(header, "\n", "\r\n"), len(body), body)
}

// searches returns the requests that are not akin's own: health checks, ends of
// scrolls, templates to render.
func (n *rawNode) searches() []rawRequest {
	var kept []rawRequest
	for _, r := range n.all() {
		if method, _, _ := strings.Cut(r.line, " "); method != http.MethodHead && method != http.MethodDelete && !strings.Contains(r.line, renderPath) {
			kept = append(kept, r)
		}
	}
	return kept
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// startSlowNode starts a node that answers by a function of ours, and returns
// its URL.
func startSlowNode(t *testing.T, reply func(w http.ResponseWriter)) string {
	t.Helper()
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		reply(w)
	}))
	t.Cleanup(node.Close)
	return node.URL
}

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
	for end := time.Now().Add(patience); !so(); time.Sleep(time.Millisecond) { // What is polled has no event.
		check.Must(t, !time.Now().After(end), "waited in vain for %s", what)
	}
}

// startNode serves h and returns the URL.
func startNode(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	node := httptest.NewServer(h)
	t.Cleanup(node.Close)
	return node.URL
}

// A logBook keeps what is logged at info and above.
type logBook struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBook) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logBook) logger() *slog.Logger { return slog.New(slog.NewJSONHandler(b, nil)) }

func (b *logBook) text() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// lines returns the records since the last call, decoded.
func (b *logBook) lines(t *testing.T) (all []map[string]any) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for dec := json.NewDecoder(&b.buf); ; {
		line := map[string]any{}
		if err := dec.Decode(&line); errors.Is(err, io.EOF) {
			b.buf.Reset()
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		delete(line, "time")
		all = append(all, line)
	}
}

// newServer returns a server whose cluster nobody asks.
func newServer(tb testing.TB, o Options) *Server {
	tb.Helper()
	s := build(o)
	tb.Cleanup(s.upstream.CloseIdleConnections)
	tb.Cleanup(s.Close)
	return s
}

// getAdmin reads JSON from the admin port.
func getAdmin(t *testing.T, s *Server, target string, into any) (status int) {
	t.Helper()
	w := answerAdmin(s, adminRequest(http.MethodGet, target, ""))
	err := json.Unmarshal(w.Body.Bytes(), into)
	check.Must(t, err == nil && w.Header().Get("Content-Type") == "application/json", "GET %s: %v: %s", target, err, w.Body)
	return w.Code
}

// adminRequest returns a request to the admin port by its address.
func adminRequest(method, target, body string) *http.Request {
	return httptest.NewRequest(method, "http://127.0.0.1:9281"+target, strings.NewReader(body))
}

// askServer sends a request to the admin handler of a server.
func askServer(s *Server, method, target, body string) (status int, text string) {
	w := answerAdmin(s, adminRequest(method, target, body))
	return w.Code, w.Body.String()
}

// answerAdmin returns the answer to a request with header lines by name and
// value, of which those without a value are left out.
func answerAdmin(s *Server, r *http.Request, header ...string) *httptest.ResponseRecorder {
	for i := 0; i < len(header); i += 2 {
		if header[i+1] != "" {
			r.Header.Set(header[i], header[i+1])
		}
	}
	w := httptest.NewRecorder()
	s.admin.ServeHTTP(w, r)
	return w
}

// askAdmin sends a request to the admin handler of a server for o.
func askAdmin(t *testing.T, o Options, method, target, body string) (status int, text string) {
	t.Helper()
	return askServer(newServer(t, o), method, target, body)
}

// answerOf returns a node's answer in HTTP.
func answerOf(body string, header ...string) string {
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s\r\n%s",
		len(body), strings.Join(append(header, ""), "\r\n"), body)
}

// inChunks returns a node's answer in HTTP, without its length.
func inChunks(body string) string {
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(body), body)
}

// hitIDs returns the ids in an answer in their order.
func hitIDs(text string) string {
	var ids []string
	for _, part := range strings.Split(text, `"_id":"`)[1:] {
		id, _, _ := strings.Cut(part, `"`)
		ids = append(ids, id)
	}
	return strings.Join(ids, " ")
}

const originalAnswer = `{"hits":{"hits":[{"_id":"original"}]}}`
