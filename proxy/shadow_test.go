package proxy

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/internal/limits"
	"github.com/akin-search/akin/proxy/report"
)

// hitsPage is an answer to a search.
func hitsPage(total string, ids ...string) string {
	hits := make([]string, len(ids))
	for i, id := range ids {
		hits[i] = fmt.Sprintf(`{"_index":"a","_id":%q,"_score":1.5,"_source":{"_id":"x"}}`, id)
	}
	return `{"took":1,"hits":{"total":` + total + `,"max_score":1,"hits":[` + strings.Join(hits, ",") + `]}}`
}

// A shadowNode is a node that answers the original and the rewritten search
// differently.
type shadowNode struct {
	*httptest.Server
	mu       sync.Mutex
	requests []string // in the order of arrival, bodies alone
	header   http.Header
}

// startShadowNode starts a node. Its answers are written by the two functions;
// nil writes an empty page.
func startShadowNode(t *testing.T, onOriginal, onExpanded http.HandlerFunc) *shadowNode {
	t.Helper()
	n := &shadowNode{}
	n.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		n.mu.Lock()
		n.requests = append(n.requests, string(body))
		n.header = r.Header
		n.mu.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(body))
		answer := onOriginal
		if string(body) == rewritten {
			answer = onExpanded
		}
		w.Header().Set("Content-Type", "application/json")
		if answer == nil {
			answer = page(hitsPage("0"))
		}
		answer(w, r)
	}))
	t.Cleanup(n.Close)
	return n
}

func page(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, text) }
}

func statusPage(code int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		io.WriteString(w, text)
	}
}

// arrived returns the bodies of the requests so far.
func (n *shadowNode) arrived() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]string(nil), n.requests...)
}

// histogramSum returns the sum of what a histogram observed.
func histogramSum(t *testing.T, registry *prometheus.Registry, name string) (sum float64) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == name {
				sum += m.GetHistogram().GetSampleSum()
			}
		}
	}
	return sum
}

// awaitShadow waits until n searches ended in an outcome.
func awaitShadow(t *testing.T, registry *prometheus.Registry, outcome string, n float64) {
	t.Helper()
	for deadline := time.Now().Add(patience); counter(t, registry, "akin_shadow_searches_total", "outcome", outcome) != n; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not %v searches with outcome %s", n, outcome)
		}
	}
	if all := counter(t, registry, "akin_shadow_searches_total"); all != n {
		t.Errorf("%v outcomes, want %v", all, n)
	}
}

func shadowOptions(n *shadowNode) Options {
	return Options{Nodes: nodesAt(n.URL), Expander: rewriteTo(rewritten), Shadow: 1}
}

// postOriginal sends the original search and returns the answer.
func postOriginal(t *testing.T, url string, header ...string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(original))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	res, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}

func TestShadowComparesAndTheClientGetsTheOriginal(t *testing.T) {
	first := hitsPage(`{"value":3,"relation":"eq"}`, "1", "2", "3")
	second := hitsPage(`{"value":40,"relation":"eq"}`, "3", "9", "1", "7")
	for name, packed := range map[string]bool{"plain": false, "gzip": true} {
		t.Run(name, func(t *testing.T) {
			send := func(text string) http.HandlerFunc {
				return func(w http.ResponseWriter, _ *http.Request) {
					if packed {
						w.Header().Set("Content-Encoding", "gzip")
						text = pack(t, text)
					}
					io.WriteString(w, text)
				}
			}
			n := startShadowNode(t, send(first), send(second))
			addr, registry := startProxy(t, shadowOptions(n))
			header := []string{"Authorization", "Basic YTpi", "X-Akin-Profile", ""}
			if packed {
				header = append(header, "Accept-Encoding", "gzip")
			}
			want := first
			if packed {
				want = pack(t, first)
			}
			if got := postOriginal(t, "http://"+addr+"/a/_search?pretty", header...); got != want {
				t.Errorf("the client got %q", got)
			}
			awaitShadow(t, registry, report.ShadowCompared, 1)
			if diff := cmp.Diff([]string{original, rewritten}, n.arrived()); diff != "" {
				t.Errorf("the node got (-want +got):\n%s", diff)
			}
			if n.header.Get("Authorization") != "Basic YTpi" || n.header.Values("X-Akin-Profile") != nil {
				t.Errorf("the shadow had the headers %v", n.header)
			}
			if got := histogramSum(t, registry, "akin_shadow_overlap_at_10"); got != 0.5 { // 1 and 3 of four
				t.Errorf("overlap %v, want 0.5", got)
			}
			for search, hits := range map[string]float64{"original": 3, "expanded": 40} {
				if got := counter(t, registry, "akin_shadow_hits_total", "search", search); got != hits {
					t.Errorf("%s: %v hits, want %v", search, got, hits)
				}
				if got := counter(t, registry, "akin_shadow_duration_seconds", "search", search); got != 1 {
					t.Errorf("%s: timed %v times", search, got)
				}
				if got := counter(t, registry, "akin_shadow_empty_pages_total", "search", search); got != 0 {
					t.Errorf("%s: %v empty pages", search, got)
				}
			}
		})
	}
}

// Nothing that becomes of the shadow changes what the client gets.
func TestShadowThatCannotBeComparedIsCounted(t *testing.T) {
	good := hitsPage("1", "1")
	hangsUp := func(w http.ResponseWriter, _ *http.Request) {
		c, _, _ := http.NewResponseController(w).Hijack()
		c.Close()
	}
	breaksOff := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		io.WriteString(w, good)
	}
	long := `{"x":"` + strings.Repeat("x", maxShadowed) + `",` + good[1:]
	failed := `{"_shards":` + failedShards(shardFailure) + "," + good[1:]
	for _, tt := range []struct {
		name               string
		original, expanded http.HandlerFunc
		answer, outcome    string
		runs               int
	}{
		{"the original is refused", statusPage(400, "no"), page(good), "no", report.ShadowRejected, 1},
		{"the original shows no hits", page(`{"took":1}`), page(good), `{"took":1}`, report.ShadowUnreadable, 1},
		{"the original is too long", page(long), page(good), long, report.ShadowUnreadable, 1},
		{"the shadow is refused", page(good), statusPage(400, "no"), good, report.ShadowRejected, 2},
		{"the shadow is not answered", page(good), hangsUp, good, report.ShadowUnanswered, 2},
		{"the shadow's answer breaks off", page(good), breaksOff, good, report.ShadowUnanswered, 2},
		{"the shadow's answer is too long", page(good), page(long), good, report.ShadowUnreadable, 2},
		{"the shadow's answer is none", page(good), page("]"), good, report.ShadowUnreadable, 2},
		{"the original fails on a shard", page(failed), page(good), failed, report.ShadowRejected, 1},
		{"the shadow fails on a shard", page(good), page(failed), good, report.ShadowRejected, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := startShadowNode(t, tt.original, tt.expanded)
			addr, registry := startProxy(t, shadowOptions(n))
			if got := postOriginal(t, "http://"+addr+"/a/_search"); got != tt.answer {
				t.Errorf("the client got %.100q", got)
			}
			awaitShadow(t, registry, tt.outcome, 1)
			if got := len(n.arrived()); got != tt.runs {
				t.Errorf("%d requests arrived, want %d", got, tt.runs)
			}
			for _, name := range []string{"akin_shadow_overlap_at_10", "akin_shadow_duration_seconds", "akin_shadow_hits_total"} {
				if got := counter(t, registry, name); got != 0 {
					t.Errorf("%s counted %v", name, got)
				}
			}
		})
	}
}

func TestUnansweredOriginalHasNoShadow(t *testing.T) {
	n := startShadowNode(t, nil, nil)
	n.Close()
	addr, registry := startProxy(t, shadowOptions(n))
	postOriginal(t, "http://"+addr+"/a/_search")
	awaitShadow(t, registry, report.ShadowUnanswered, 1)
}

// What the cluster refuses of a shadow teaches akin as much as what it refuses
// of a client's search.
func TestRefusedShadowIsReported(t *testing.T) {
	n := startShadowNode(t, page(hitsPage("0")), statusPage(400, `{"error":{"type":"too_many_clauses","reason":"x"},"status":400}`))
	o := shadowOptions(n)
	told := make(chan string, 1)
	o.OnRefused = func(r *expand.Refusal) bool { told <- fmt.Sprint(*r); return false }
	addr, registry := startProxy(t, o)
	postOriginal(t, "http://"+addr+"/help/_search")
	if got := receive(t, "the refusal", told); got != "{help 0 [{too_many_clauses x}]}" {
		t.Errorf("reported %q", got)
	}
	awaitShadow(t, registry, report.ShadowRejected, 1)
	if got := counter(t, registry, "akin_rejected_searches_total", "original", "accepted"); got != 1 {
		t.Errorf("counted %v times as refused", got)
	}
}

// The client has its answer, and is gone, while the shadow still waits.
func TestShadowOutlivesTheClientsSearch(t *testing.T) {
	proceed := make(chan struct{})
	reached := make(chan struct{})
	n := startShadowNode(t, page(hitsPage("1", "1")), func(w http.ResponseWriter, _ *http.Request) {
		close(reached)
		<-proceed
		io.WriteString(w, hitsPage("1", "1"))
	})
	addr, registry := startProxy(t, shadowOptions(n))
	answer := exchangeRaw(t, addr, searchOf("/a/_search", jsonType, original)) // until the connection is closed
	if !strings.HasSuffix(answer, hitsPage("1", "1")) {
		t.Errorf("the client got %q", answer)
	}
	receive(t, "the shadow", reached)
	close(proceed)
	awaitShadow(t, registry, report.ShadowCompared, 1)
	if got := histogramSum(t, registry, "akin_shadow_overlap_at_10"); got != 1 {
		t.Errorf("overlap %v", got)
	}
}

func TestShadowEndsWithTheServer(t *testing.T) {
	reached := make(chan struct{})
	n := startShadowNode(t, nil, func(_ http.ResponseWriter, r *http.Request) {
		close(reached)
		<-r.Context().Done()
	})
	o := shadowOptions(n)
	o.Registry = prometheus.NewRegistry()
	s := build(o)
	proxy, _, stop := startServe(t, s)
	postOriginal(t, "http://"+proxy+"/a/_search")
	receive(t, "the shadow", reached)
	if err := stop(); err != nil {
		t.Errorf("Serve = %v", err)
	}
	if got := counter(t, o.Registry, "akin_shadow_searches_total"); got != 0 {
		t.Errorf("%v outcomes of a search that was cut off by the end", got)
	}
	s.shadows.reserve()
	released := false
	s.shadows.start(func(context.Context) { t.Error("a shadow runs after the end") }, func() { released = true })
	if !released {
		t.Error("its slot is still taken")
	}
}

func TestShadowIsDroppedWhereAllSlotsAreTaken(t *testing.T) {
	n := startShadowNode(t, nil, nil)
	s := newServer(t, shadowOptions(n))
	proxy := httptest.NewServer(s.proxy)
	defer proxy.Close()
	for s.shadows.reserve() { // takes all
	}
	if got := postOriginal(t, proxy.URL+"/a/_search"); got != hitsPage("0") {
		t.Errorf("the client got %q", got)
	}
	awaitShadow(t, s.opts.Registry, report.ShadowDropped, 1)
	s.shadows.release()
	postOriginal(t, proxy.URL+"/a/_search")
	for deadline := time.Now().Add(patience); counter(t, s.opts.Registry, "akin_shadow_searches_total", "outcome", report.ShadowCompared) != 1; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("a free slot is not taken")
		}
	}
	if got := counter(t, s.opts.Registry, "akin_shadow_empty_pages_total"); got != 2 {
		t.Errorf("%v empty pages, want 2", got)
	}
	if got := counter(t, s.opts.Registry, "akin_shadow_overlap_at_10"); got != 0 {
		t.Error("two empty pages have an overlap")
	}
}

// All shadows at once ask the cluster no more than a few at a time.
func TestShadowsAreFewAtATime(t *testing.T) {
	var mu sync.Mutex
	now, most := 0, 0
	proceed := make(chan struct{})
	reached := make(chan struct{}, maxInBackground)
	n := startShadowNode(t, nil, func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		now++
		most = max(most, now)
		mu.Unlock()
		reached <- struct{}{}
		<-proceed
		mu.Lock()
		now--
		mu.Unlock()
		io.WriteString(w, hitsPage("0"))
	})
	addr, registry := startProxy(t, shadowOptions(n))
	for range maxInBackground {
		postOriginal(t, "http://"+addr+"/a/_search")
	}
	for range backgroundWorkers {
		receive(t, "a shadow", reached)
	}
	close(proceed)
	awaitShadow(t, registry, report.ShadowCompared, maxInBackground)
	if most != backgroundWorkers {
		t.Errorf("%d at a time, want %d", most, backgroundWorkers)
	}
}

func TestClientThatLeavesIsCounted(t *testing.T) {
	proceed := make(chan struct{})
	n := startShadowNode(t, func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "{")
		http.NewResponseController(w).Flush()
		<-proceed
	}, nil)
	defer close(proceed)
	addr, registry := startProxy(t, shadowOptions(n))
	c := dial(t, addr)
	io.WriteString(c, strings.ReplaceAll(searchOf("/a/_search", jsonType, "{}"), "\n", "\r\n"))
	if _, err := io.ReadFull(c, make([]byte, 12)); err != nil {
		t.Fatal(err)
	}
	c.Close()
	awaitShadow(t, registry, report.ShadowClientGone, 1)
}

// A request that leaves something behind, or holds several searches, is not
// sent twice.
func TestOnlyPlainSearchesHaveShadows(t *testing.T) {
	for _, target := range []string{"/a/_search?scroll=1m", "/a/_search?pretty;scroll=1m", "/a/_async_search", "/a/_count", "/a/_explain/1", "/a/_doc/1"} {
		n := startShadowNode(t, nil, nil)
		addr, registry := startProxy(t, shadowOptions(n))
		postOriginal(t, "http://"+addr+target)
		if got := n.arrived(); len(got) != 1 || got[0] != original {
			t.Errorf("%s: the node got %q", target, got)
		}
		if got := counter(t, registry, "akin_shadow_searches_total"); got != 0 {
			t.Errorf("%s: %v shadows", target, got)
		}
		if got := counter(t, registry, "akin_requests_total", "reason", reasonShadow); (got == 1) == strings.Contains(target, "_doc") {
			t.Errorf("%s: counted %v times", target, got)
		}
		if got := counter(t, registry, "akin_search_stage_duration_seconds", "stage", "expand"); got != 0 {
			t.Errorf("%s: it was looked at", target)
		}
	}
}

func TestSampleIsTheShare(t *testing.T) {
	for share, bounds := range map[float64][2]int{0: {0, 0}, 1: {10_000, 10_000}, 0.3: {2500, 3500}} { // 11 standard deviations
		n := 0
		for range 10_000 {
			if sampled(share, match{route: &routes[0]}, "") {
				n++
			}
		}
		if n < bounds[0] || n > bounds[1] {
			t.Errorf("%d of 10,000 at %v", n, share)
		}
	}
}

// What a shadow reads of its own answer, and what comes of it decompressed,
// takes memory of the budget like all else.
func TestAnswersToShadowsAreHeldWithinTheBudget(t *testing.T) {
	long := hitsPage("1", "x") + strings.Repeat(" ", maxShadowed/2)
	gzipped := pack(t, long)
	for name, answers := range map[string][2]http.HandlerFunc{
		"its own":             {page(hitsPage("1", "x")), page(long)},
		"its own, compressed": {page(hitsPage("1", "x")), packedPage(gzipped)},
		"the original's":      {packedPage(gzipped), page(hitsPage("1", "x"))},
	} {
		t.Run(name, func(t *testing.T) {
			o := shadowOptions(startShadowNode(t, answers[0], answers[1]))
			o.Memory = limits.New(maxShadowed / 2)
			addr, registry := startProxy(t, o)
			postOriginal(t, "http://"+addr+"/a/_search")
			awaitShadow(t, registry, report.ShadowDropped, 1)
			waitFor(t, "the memory to be given back", func() bool { return heldBytes(o.Memory) == 0 })
		})
	}
}

// packedPage answers with what is compressed.
func packedPage(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		io.WriteString(w, text)
	}
}
