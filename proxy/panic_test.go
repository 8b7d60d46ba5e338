package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/proxy/report"
)

func panicOn(error) string { panic("a mistake") }

// The engines answer rest_total_hits_as_int with -1 where nobody counts.
func TestShadowTakesATotalOfMinusOneForNone(t *testing.T) {
	for _, total := range []string{"-1", `{"value":-1}`, "null", `"x"`} {
		n := startShadowNode(t, page(hitsPage(total, "1")), page(hitsPage(total, "1", "2")))
		addr, registry := startProxy(t, shadowOptions(n))
		postOriginal(t, "http://"+addr+"/a/_search?track_total_hits=false&rest_total_hits_as_int=true")
		awaitShadow(t, registry, report.ShadowCompared, 1)
		if hits, panics := counter(t, registry, "akin_shadow_hits_total"), counter(t, registry, "akin_panics_total"); hits != 0 || panics != 0 {
			t.Errorf("%s: counted %v hits and %v panics", total, hits, panics)
		}
	}
}

func TestPanicOfAShadowIsCounted(t *testing.T) {
	n := startShadowNode(t, nil, nil)
	o := shadowOptions(n)
	o.Cause = panicOn // it is asked in the goroutine of the shadow
	o.Expander = expander(func(context.Context, *expand.Request) (*expand.Result, error) { return nil, errors.New("failed") })
	addr, registry := startProxy(t, o)
	postOriginal(t, "http://"+addr+"/a/_search")
	awaitShadow(t, registry, report.ShadowFailed, 1)
	if got := counter(t, registry, "akin_panics_total", "operation", "shadowing"); got != 1 {
		t.Errorf("%v panics are counted", got)
	}
	postOriginal(t, "http://"+addr+"/a/_search") // all its slots are free again
	awaitShadow(t, registry, report.ShadowFailed, 2)
}

func TestPanicWhileAPageIsScoredLeavesTheEnginesOrder(t *testing.T) {
	node := startRawNode(t, frames(threeHits))
	addr, registry := startProxy(t, Options{
		Nodes: nodesAt(node.URL), Expander: expander(rerankAll), Cause: panicOn,
		Reranker: rerankerFunc(func(context.Context, *expand.Rerank, []expand.Hit) ([]expand.HitScore, error) {
			return nil, errors.New("failed")
		}),
	})
	if got := hitIDs(postSearch(t, addr, "/t/_search")); got != "1 2" {
		t.Errorf("got the hits %s", got)
	}
	if got := node.kinds(); got != "frame order" {
		t.Errorf("asked for %s", got)
	}
	if got := counter(t, registry, "akin_panics_total", "operation", "reranking"); got != 1 {
		t.Errorf("%v panics are counted", got)
	}
	if got := counter(t, registry, "akin_reranked_total", "result", "panic"); got != 1 {
		t.Errorf("%v results are counted as a panic", got)
	}
}

// panicking panics whatever is asked of it.
type panicking struct {
	http.ResponseWriter
	io.Closer
}

func (panicking) Read([]byte) (int, error) { panic("a mistake") }

func (panicking) FlushError() error { panic("a mistake") }

// A body is read in a goroutine of its own.
func TestPanicWhileABodyIsReadIsAnError(t *testing.T) {
	registry := prometheus.NewRegistry()
	s := newServer(t, Options{Nodes: nodesAt("http://127.0.0.1:1"), Expander: expander(leaveAlone), Registry: registry})
	r := httptest.NewRequest(http.MethodPost, "/a/_search", panicking{Closer: http.NoBody})
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	s.proxy.ServeHTTP(w, r)
	if n := counter(t, registry, "akin_panics_total", "operation", "reading a body"); n != 1 || w.Code != http.StatusBadRequest {
		t.Errorf("%v panics are counted, status %d", n, w.Code)
	}
}

// A timer sends the pieces of an answer.
func TestPanicWhileAPieceIsSentIsCounted(t *testing.T) {
	registry := prometheus.NewRegistry()
	s := newServer(t, Options{Nodes: nodesAt("http://127.0.0.1:1"), Registry: registry})
	w := httptest.NewRecorder()
	relayed(func(w *relay, _ *http.Request) {
		writePieces(w, 1, 0)
		waitFor(t, "the panic", func() bool { return counter(t, registry, "akin_panics_total", "operation", "sending an answer") == 1 })
		_, _ = io.WriteString(w, " and another")
	}, s.guard, s.metrics, false, nil).ServeHTTP(panicking{ResponseWriter: w}, httptest.NewRequest(http.MethodGet, "/", http.NoBody))
	if got := w.Body.String(); got != "piece and another" {
		t.Errorf("the client got %q", got)
	}
}

func TestPanicWhileTheStateIsWatchedIsCounted(t *testing.T) {
	registry := prometheus.NewRegistry()
	s := newServer(t, Options{
		Nodes: nodesAt("http://127.0.0.1:1"), Registry: registry,
		Check: func(context.Context) report.Condition { panic("a mistake") },
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	NewFront(s, nil).watch(ctx)
	if n := counter(t, registry, "akin_panics_total", "operation", "watching the state"); n != 1 {
		t.Errorf("%v panics are counted", n)
	}
}
