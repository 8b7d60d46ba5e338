package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/internal/limits"
	"github.com/akin-search/akin/proxy/report"
)

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

// TestFailuresAreToldToTheLogOfTheServerInUse, not to that of one that is made
// and may never be.
func TestFailuresAreToldToTheLogOfTheServerInUse(t *testing.T) {
	var old, next logBook
	before := newServer(t, Options{Logger: old.logger()})
	f := NewFront(before, nil)
	after := newServer(t, Options{Logger: next.logger(), Previous: before})
	before.health.FailedOpen(t.Context(), failedSearch, "rows", "i")
	if a, b := old.lines(t), next.lines(t); len(a) != 1 || len(b) != 0 {
		t.Errorf("before the change the logs have %v and %v", a, b)
	}
	f.Replace(after)
	before.health.FailedOpen(t.Context(), failedSearch, "budget", "i")
	if a, b := old.lines(t), next.lines(t); len(a) != 0 || len(b) != 1 {
		t.Errorf("after the change the logs have %v and %v", a, b)
	}
}

func TestReadyzTellsReadyFromDegradedFromNotReady(t *testing.T) {
	refused := report.Degradation{Reason: report.Credentials, Detail: "the cluster answers 401"}
	for _, c := range []struct {
		name   string
		is     report.Condition
		status int
		answer string
		metric string
	}{
		{"well", report.Condition{}, 200, `{"status":"ok"}`, `akin_degraded{reason="credentials"} 0`},
		{
			"degraded",
			report.Condition{Degraded: []report.Degradation{{Reason: report.Matrix, Detail: "main: away"}, refused}},
			200,
			`{"status":"degraded","reasons":["credentials: the cluster answers 401","matrix: main: away"]}`, `akin_degraded{reason="credentials"} 1`,
		},
		{
			"not ready",
			report.Condition{NotReady: []string{"no node answers"}, Degraded: []report.Degradation{refused}},
			503,
			`{"status":"not ready","reasons":["no node answers","credentials: the cluster answers 401"]}`, `akin_degraded{reason="reload"} 0`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newServer(t, Options{Check: func(ctx context.Context) report.Condition {
				if until, ok := ctx.Deadline(); !ok || time.Until(until) > time.Second {
					t.Error("the check is not bounded in time")
				}
				return c.is
			}})
			get := func(path string) *httptest.ResponseRecorder {
				w := httptest.NewRecorder()
				s.admin.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
				return w
			}
			if w := get("/readyz"); w.Code != c.status || w.Body.String() != c.answer {
				t.Errorf("got %d %s, want %d %s", w.Code, w.Body, c.status, c.answer)
			}
			if w := get("/metrics"); !strings.Contains(w.Body.String(), c.metric+"\n") {
				t.Errorf("no %s in the metrics", c.metric)
			}
			if w := get("/healthz"); w.Code != 200 || w.Body.String() != `{"status":"ok"}` {
				t.Errorf("/healthz: %d %s", w.Code, w.Body)
			}
		})
	}
}

// Nobody needs to ask for /readyz for log and metrics to tell of a degradation.
func TestServeTellsOfADegradationAndOfItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var book logBook
		var mu sync.Mutex
		all := []report.Degradation{{Reason: report.Matrix, Detail: "main: away"}}
		registry := prometheus.NewRegistry()
		s := build(Options{Nodes: nodesAt("http://a"), Logger: book.logger(), Registry: registry, Check: func(context.Context) report.Condition {
			mu.Lock()
			defer mu.Unlock()
			return report.Condition{Degraded: all}
		}})
		defer s.Close()
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); NewFront(s, nil).watch(ctx) }()
		time.Sleep(3 * watchEvery)
		synctest.Wait()
		begins := book.lines(t)
		mu.Lock()
		all = nil
		mu.Unlock()
		time.Sleep(2 * watchEvery)
		synctest.Wait()
		want := []map[string]any{
			{"level": "WARN", "msg": "degraded", "reason": "matrix", "detail": "main: away"},
			{"level": "INFO", "msg": "no longer degraded", "reason": "matrix"},
		}
		if diff := cmp.Diff(want, append(begins, book.lines(t)...)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		stop()
		<-ended
	})
}

func TestServeWatchesTheStateUntilItEnds(t *testing.T) {
	checked := make(chan struct{}, 1)
	s := newServer(t, Options{Check: func(context.Context) report.Condition {
		select {
		case checked <- struct{}{}:
		default:
		}
		return report.Condition{}
	}})
	_, _, stop := startServe(t, s)
	receive(t, "the first look", checked)
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// Whatever fails open says so in the log, at the level that is on by default,
// without the text of the search.
func TestEachWayOfFailingOpenIsLogged(t *testing.T) {
	fails := expander(func(context.Context, *expand.Request) (*expand.Result, error) {
		return nil, errors.New("secret text")
	})
	refuse := func(n int, _ rawRequest) string {
		if n == 1 {
			return answerWith(400, jsonType, `{"error":{"type":"x","reason":"secret text"}}`)
		}
		return answerOf(`{}`)
	}
	broken := rerankerFunc(func(context.Context, *expand.Rerank, []expand.Hit) ([]expand.HitScore, error) {
		return nil, errors.New("secret text")
	})
	const page = "POST /i/_search"
	for _, c := range []struct {
		name, line  string
		answer      func(n int, r rawRequest) string
		options     Options
		what, cause string
	}{
		{"an error of the expander", page, nil, Options{Expander: fails}, failedSearch, "error"},
		{"a panic", page, nil, Options{Expander: expander(func(context.Context, *expand.Request) (*expand.Result, error) {
			panic("secret text")
		})}, failedSearch, "panic"},
		{"one of several searches", "POST /i/_msearch", nil, Options{Expander: expander(func(_ context.Context, r *expand.Request) (*expand.Result, error) {
			return &expand.Result{Rewritten: true, Body: r.Body, Parts: []expand.Part{{Err: errors.New("secret text")}}}, nil
		})}, failedSearch, "error"},
		{"a body without memory", page, nil, Options{Expander: rewriteTo(rewritten), Memory: limits.New(1)}, failedSearch, reasonMemory},
		{"a refused search", page, refuse, Options{Expander: rewriteTo(rewritten)}, failedSearch, "rejected"},
		{"an answer that cannot be looked at", "POST /i/_msearch", func(int, rawRequest) string {
			return answerOf(`{"responses":1,"error":"failures"}`)
		}, Options{Expander: rewriteTo(rewritten)}, failedSearch, "unchecked"},
		{
			"hits in the engine's order", page, frames(threeHits),
			Options{Expander: expander(rerankAll), Reranker: broken},
			failedRerank, "error",
		},
		{
			"hits that cannot be cut", page, func(int, rawRequest) string { return answerOf(`{"hits":7}`) },
			Options{Expander: expander(rerankAll), Reranker: broken},
			failedRerank, "unreadable",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var book logBook
			node := startRawNode(t, c.answer)
			c.options.Nodes, c.options.Logger = nodesAt(node.URL), book.logger()
			addr, _ := startProxy(t, c.options)
			const body = `{"query":"secret text"}`
			exchangeRaw(t, addr, fmt.Sprintf("%s HTTP/1.1\nHost: a\nConnection: close\n%sContent-Length: %d\n\n%s", c.line, jsonType, len(body), body))
			told := false
			text := book.text()
			for _, line := range book.lines(t) {
				told = told || line["level"] == "WARN" && line["msg"] == "failing open" && line["what"] == c.what && line["cause"] == c.cause
			}
			if !told {
				t.Errorf("no line on %s, %s in\n%s", c.what, c.cause, text)
			}
			if strings.Contains(text, "secret") {
				t.Errorf("the log tells too much:\n%s", text)
			}
		})
	}
}

func TestSearchesThatFailOpenDegradeTheServer(t *testing.T) {
	node := startRawNode(t, nil)
	fail := true
	s := newServer(t, Options{Nodes: nodesAt(node.URL), Expander: expander(func(ctx context.Context, r *expand.Request) (*expand.Result, error) {
		if fail {
			return nil, errors.New("away")
		}
		return rewriteTo(rewritten)(ctx, r)
	})})
	search := func(n int) {
		for range n {
			r := httptest.NewRequest(http.MethodPost, "/i/_search", strings.NewReader("{}"))
			r.Header.Set("Content-Type", "application/json")
			s.proxy.ServeHTTP(httptest.NewRecorder(), r)
		}
	}
	search(20)
	if c := s.condition(t.Context()); len(c.NotReady) > 0 || len(c.Degraded) != 1 || c.Degraded[0].Reason != report.FailingOpen {
		t.Errorf("all fail: %v", c)
	}
	fail = false
	search(10 * 20)
	if c := s.condition(t.Context()); len(c.Degraded) > 0 {
		t.Errorf("one in eleven failed: %v", c)
	}
}

func TestAClientThatGoesAwayIsNoFailure(t *testing.T) {
	var book logBook
	s := newServer(t, Options{Logger: book.logger()})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	x := searchFor(expand.EndpointSearch, "", "", "")
	x.report.Fail(ctx, report.Failure{What: failedSearch, Cause: "client_gone"})
	s.tell(t.Context(), x, nil)
	if len(x.report.Failures) > 0 || book.text() != "" {
		t.Errorf("logged: %s", book.text())
	}
}

func TestEachWayOfFailingOpenHasASeriesFromTheStart(t *testing.T) {
	_, page := askAdmin(t, Options{Causes: map[string]string{"rows": "a hint"}}, http.MethodGet, "/metrics", "")
	for _, want := range []string{
		`akin_requests_total{effort="",outcome="failed_open",reason="rows"} 0`,
		`akin_requests_total{effort="",outcome="failed_open",reason="panic"} 0`,
		`akin_reranked_total{result="rows"} 0`,
		`akin_reranked_total{result="unreadable"} 0`,
		`akin_rejected_searches_total{original="accepted"} 0`,
		`akin_shadow_searches_total{outcome="failed"} 0`,
		`akin_degraded{reason="failing_open"} 0`,
	} {
		if !strings.Contains(page, want+"\n") {
			t.Errorf("no %s", want)
		}
	}
}
