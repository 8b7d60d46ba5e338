package proxy

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/internal/limits"
	"github.com/akin-search/akin/proxy/report"
)

// TestFailuresAreToldToTheLogOfTheServerInUse, not to that of one that is made
// and may never be.
func TestFailuresAreToldToTheLogOfTheServerInUse(t *testing.T) {
	var old, next logBook
	before := newServer(t, Options{Logger: old.logger()})
	f := NewFront(before, nil)
	after := newServer(t, Options{Logger: next.logger(), Previous: before})
	before.health.FailedOpen(t.Context(), failedSearch, "rows", "i")
	a, b := old.lines(t), next.lines(t)
	check.That(t, len(a) == 1 && len(b) == 0, "before the change the logs have %v and %v", a, b)
	f.Replace(after)
	before.health.FailedOpen(t.Context(), failedSearch, "budget", "i")
	a, b = old.lines(t), next.lines(t)
	check.That(t, len(a) == 0 && len(b) == 1, "after the change the logs have %v and %v", a, b)
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
				until, ok := ctx.Deadline()
				check.That(t, ok && time.Until(until) <= time.Second, "the check is not bounded in time")
				return c.is
			}})
			status, answer := askServer(s, http.MethodGet, "/readyz", "")
			check.That(t, status == c.status && answer == c.answer, "got %d %s, want %d %s", status, answer, c.status, c.answer)
			_, answer = askServer(s, http.MethodGet, "/metrics", "")
			check.That(t, strings.Contains(answer, c.metric+"\n"), "no %s in the metrics", c.metric)
			status, answer = askServer(s, http.MethodGet, "/healthz", "")
			check.That(t, status == 200 && answer == `{"status":"ok"}`, "/healthz: %d %s", status, answer)
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
		check.Elapse(3 * watchEvery)
		begins := book.lines(t)
		mu.Lock()
		all = nil
		mu.Unlock()
		check.Elapse(2 * watchEvery)
		want := []map[string]any{
			{"level": "WARN", "msg": "degraded", "reason": "matrix", "detail": "main: away"},
			{"level": "INFO", "msg": "no longer degraded", "reason": "matrix"},
		}
		check.Equal(t, want, append(begins, book.lines(t)...))
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
	err := stop()
	check.Error(t, nil, err)
}

// Whatever fails open says so in the log, at the level that is on by default,
// without the text of the search.
func TestEachWayOfFailingOpenIsLogged(t *testing.T) {
	secret := errors.New("secret text")
	refusal := answerWith(400, jsonType, `{"error":{"type":"x","reason":"secret text"}}`)
	broken := rerankerFunc(func(context.Context, *expand.Rerank, []expand.Hit) ([]expand.HitScore, error) { return nil, secret })
	gone := func(rawRequest) string { return answerOf(`{"hits":{"hits":[]}}`) }
	rewrites := Options{Expander: rewriteTo(rewritten)}
	reranks := Options{Expander: expander(rerankAll), Reranker: broken}
	for name, c := range map[string]struct {
		target      string
		o           Options
		answer      func(n int, r rawRequest) string
		what, cause string
	}{
		"an error of the expander":           {"/i/_search", Options{Expander: fails(secret)}, nil, failedSearch, "error"},
		"a panic":                            {"/i/_search", Options{Expander: expander(panics)}, nil, failedSearch, "panic"},
		"one of several searches":            {"/i/_msearch", Options{Expander: results(expand.Result{Rewritten: true, Parts: []expand.Part{{Err: secret}}})}, nil, failedSearch, "error"},
		"a body without memory":              {"/i/_search", Options{Expander: rewriteTo(rewritten), Memory: limits.New(1)}, nil, failedSearch, reasonMemory},
		"a refused search":                   {"/i/_search", rewrites, inTurn(refusal, emptyAnswer), failedSearch, "rejected"},
		"an answer that cannot be looked at": {"/i/_msearch", rewrites, inTurn(answerOf(`{"responses":1,"error":"failures"}`)), failedSearch, "unchecked"},
		"hits in the engine's order":         {"/i/_search", reranks, frames(threeHits), failedRerank, "error"},
		"a page that lacks a hit":            {"/i/_search", Options{Expander: expander(rerankAll), Reranker: rerankerFunc(backwards)}, sides(threeHits, gone, nil), failedRerank, rerankChanged},
		"hits that cannot be cut":            {"/i/_search", reranks, inTurn(answerOf(`{"hits":7}`)), failedRerank, "unreadable"},
	} {
		t.Run(name, func(t *testing.T) {
			var book logBook
			c.o.Logger = book.logger()
			start(t, c.o, c.answer).post(t, c.target, jsonType, `{"query":"secret text"}`)
			text := book.text()
			if !slices.ContainsFunc(book.lines(t), func(line map[string]any) bool {
				return line["level"] == "WARN" && line["msg"] == "failing open" && line["what"] == c.what && line["cause"] == c.cause
			}) {
				t.Errorf("no line on %s, %s in\n%s", c.what, c.cause, text)
			}
			check.That(t, !strings.Contains(text, "secret"), "the log tells too much:\n%s", text)
		})
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
	check.That(t, len(x.report.Failures) == 0 && book.text() == "", "logged: %s", book.text())
}

func TestEachWayOfFailingOpenHasASeriesFromTheStart(t *testing.T) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "akin_matrix_version", Help: "h"}, func() float64 { return 7 }))
	_, page := askAdmin(t, Options{Registry: registry, Causes: map[string]string{"rows": "a hint"}}, http.MethodGet, "/metrics", "")
	for _, want := range []string{
		`akin_matrix_version 7`,
		`akin_requests_total{effort="",outcome="passed_through",reason=""} 0`,
		`akin_requests_total{effort="",outcome="failed_open",reason="rows"} 0`,
		`akin_requests_total{effort="",outcome="failed_open",reason="panic"} 0`,
		`akin_search_stage_duration_seconds_count{effort="",stage="expand"} 0`,
		`akin_reranked_total{result="rows"} 0`,
		`akin_reranked_total{result="unreadable"} 0`,
		`akin_rejected_searches_total{original="accepted"} 0`,
		`akin_shadow_searches_total{outcome="failed"} 0`,
		`akin_degraded{reason="failing_open"} 0`,
	} {
		check.That(t, strings.Contains(page, want+"\n"), "no %s", want)
	}
}
