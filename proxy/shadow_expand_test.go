package proxy

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/proxy/report"
)

// A shadow that fails on some shards finds less for another reason than its
// words.
func TestShardFailuresOfAShadowAreReported(t *testing.T) {
	good := hitsPage("1", "1")
	n := startShadowNode(t, page(good), page(`{"_shards":`+failedShards(shardFailure)+","+good[1:]))
	o := shadowOptions(n)
	told := make(chan []expand.Cause, 1)
	o.OnRefused = func(r *expand.Refusal) bool { told <- r.Causes; return false }
	addr, registry := startProxy(t, o)
	postOriginal(t, "http://"+addr+"/a/_search")
	if got := receive(t, "the refusal", told); len(got) != 1 || got[0].Type != "illegal_argument_exception" {
		t.Errorf("reported %+v", got)
	}
	awaitShadow(t, registry, report.ShadowRejected, 1)
}

// The question whether the client may search says the client's address once.
func TestForwardedHeadersOfAShadowNameTheClientOnce(t *testing.T) {
	n := startShadowNode(t, page(hitsPage("1", "1")), page(hitsPage("1", "1")))
	o := shadowOptions(n)
	o.ForwardedHeaders, o.Secured = true, true
	asked := make(chan string, 1)
	o.Expander = expander(func(ctx context.Context, r *expand.Request) (*expand.Result, error) {
		_ = r.Allowed(ctx, esclient.Indices{Expression: r.Index})
		n.mu.Lock()
		asked <- strings.Join(n.header["X-Forwarded-For"], ", ")
		n.mu.Unlock()
		return leaveAlone(ctx, r)
	})
	o.Budget = patience
	addr, _ := startProxy(t, o)
	postOriginal(t, "http://"+addr+"/a/_search")
	if got := receive(t, "the question", asked); got != "127.0.0.1" {
		t.Errorf("X-Forwarded-For: %s", got)
	}
}

// A shard that no node serves is missing for both.
func TestShadowIsComparedWhereNoNodeServesAShard(t *testing.T) {
	answer := `{"_shards":` + failedShards(unservedOne) + "," + hitsPage("1", "1")[1:]
	n := startShadowNode(t, page(answer), page(answer))
	addr, registry := startProxy(t, shadowOptions(n))
	postOriginal(t, "http://"+addr+"/a/_search")
	awaitShadow(t, registry, report.ShadowCompared, 1)
}

// The client has its answer before the expansion of its search begins.
func TestClientDoesNotWaitForTheExpansionOfItsShadow(t *testing.T) {
	n := startShadowNode(t, page(hitsPage("1", "1")), page(hitsPage("1", "1")))
	o := shadowOptions(n)
	o.Budget = patience
	proceed, looked := make(chan struct{}), make(chan *expand.Request, 1)
	o.Expander = expander(func(ctx context.Context, r *expand.Request) (*expand.Result, error) {
		looked <- r
		<-proceed
		return rewriteTo(rewritten)(ctx, r)
	})
	addr, registry := startProxy(t, o)
	answer := exchangeRaw(t, addr, searchOf("/a/_search?pretty", jsonType+"Content-Encoding: gzip\n", pack(t, original)))
	if !strings.HasSuffix(answer, hitsPage("1", "1")) {
		t.Errorf("the client got %q", answer)
	}
	want := &expand.Request{Endpoint: expand.EndpointSearch, Index: "a", RawQuery: "pretty", Body: []byte(original)}
	if diff := cmp.Diff(want, receive(t, "the expansion", looked)); diff != "" {
		t.Errorf("the expander got (-want +got):\n%s", diff)
	}
	close(proceed)
	awaitShadow(t, registry, report.ShadowCompared, 1)
	if got := n.arrived(); len(got) != 2 || got[1] != rewritten {
		t.Errorf("the node got %q", got)
	}
}

// Each search counts once, as one that was sent as it came, whatever becomes of
// its shadow, and the expansion has a budget of its own.
func TestShadowsThatAreNotSentAreCounted(t *testing.T) {
	for _, tt := range []struct {
		name     string
		expander expander
		outcome  string
		record   map[string]any
	}{
		{"left alone", leaveAlone, report.ShadowUnchanged, map[string]any{"outcome": "unchanged", "reason": "left alone", "sent": "original"}},
		{"out of budget", func(ctx context.Context, _ *expand.Request) (*expand.Result, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, report.ShadowFailed, map[string]any{"outcome": "failed_open", "cause": "budget", "sent": "original"}},
		{"a panic", func(context.Context, *expand.Request) (*expand.Result, error) { panic("x") }, report.ShadowFailed, map[string]any{"outcome": "failed_open", "cause": "panic", "sent": "original"}},
		{"rewritten", rewriteTo(rewritten), report.ShadowCompared, map[string]any{"outcome": "rewritten", "sent": "original"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := startShadowNode(t, nil, nil)
			o := shadowOptions(n)
			o.Expander, o.Budget = tt.expander, 20*time.Millisecond
			o.Registry = prometheus.NewRegistry()
			s := newServer(t, o)
			proxy := httptest.NewServer(s.proxy)
			defer proxy.Close()
			if got := postOriginal(t, proxy.URL+"/a/_search"); got != hitsPage("0") {
				t.Errorf("the client got %q", got)
			}
			awaitShadow(t, o.Registry, tt.outcome, 1)
			var list struct{ Explanations []map[string]any }
			getAdmin(t, s, "/_akin/explanations", &list)
			if len(list.Explanations) != 1 {
				t.Fatalf("recorded %v", list.Explanations)
			}
			for name, want := range tt.record {
				if got := list.Explanations[0][name]; got != want {
					t.Errorf("%s is %v, want %v", name, got, want)
				}
			}
			if all, shadow := counter(t, o.Registry, "akin_requests_total"), counter(t, o.Registry, "akin_requests_total", "outcome", report.Unchanged, "reason", reasonShadow); all != 1 || shadow != 1 {
				t.Errorf("%v outcomes, %v of them for the shadow", all, shadow)
			}
		})
	}
}

// A client that wants to know what becomes of its search waits for that; the
// search has no shadow.
func TestSearchThatAsksForAnExplanationHasNoShadow(t *testing.T) {
	n := startShadowNode(t, nil, nil)
	o := shadowOptions(n)
	o.Registry = prometheus.NewRegistry()
	s := newServer(t, o)
	proxy := httptest.NewServer(s.proxy)
	defer proxy.Close()
	for query, reason := range map[string]string{"?akin=explain": reasonShadow, "?akin=dry-run": reasonDryRun} {
		shown, ok := explainedBy(t, s, proxy.URL, query)
		if !ok || shown["outcome"] != "rewritten" || shown["sent"] != "original" {
			t.Errorf("%s: shown %v", query, shown)
		}
		if got := counter(t, o.Registry, "akin_requests_total", "reason", reason); got != 1 {
			t.Errorf("%s: counted %v times", query, got)
		}
	}
	if got := n.arrived(); len(got) != 2 || got[0] != original || got[1] != original {
		t.Errorf("the node got %q", got)
	}
	if got := counter(t, o.Registry, "akin_shadow_searches_total"); got != 0 {
		t.Errorf("%v shadows", got)
	}
}

// What is too long to be compared is too long to be kept for that.
func TestLongSearchHasNoShadow(t *testing.T) {
	n := startShadowNode(t, nil, nil)
	o := shadowOptions(n)
	o.MaxBody = 4 * maxShadowed
	addr, registry := startProxy(t, o)
	exchangeRaw(t, addr, searchOf("/a/_search", jsonType, original+strings.Repeat(" ", maxShadowed)))
	awaitShadow(t, registry, report.ShadowDropped, 1)
	if got := len(n.arrived()); got != 1 {
		t.Errorf("%d requests arrived", got)
	}
}
