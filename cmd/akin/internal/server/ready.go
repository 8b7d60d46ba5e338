package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/internal/recovery"
	"github.com/akin-search/akin/proxy/health"
	"github.com/akin-search/akin/rerank"
	"github.com/akin-search/akin/simmatrix/rowstore"
)

// incomplete returns what is wrong with matrices and weights.
func (a *App) incomplete() (all []health.Degradation) {
	if a.weights == nil && ranks(a.cfg, configs.ModeHard) {
		all = append(all, health.Degradation{
			Reason: health.Weights, Detail: "mode hard without weights: its searches are expanded as in the mode bm25",
		})
	}
	return slices.Concat(all, a.unsound(a.store), a.unsound(a.weights))
}

// unsound returns what is wrong with the matrices of a store, nil for none.
func (a *App) unsound(store *rowstore.Store) (all []health.Degradation) {
	if store == nil {
		return nil
	}
	reason, what := health.Matrix, "matrix"
	if store == a.weights {
		reason, what = health.Weights, "weights"
	}
	for _, s := range store.State() {
		switch {
		case s.Version == "":
			all = append(all, health.Degradation{Reason: reason, Detail: fmt.Sprintf("%s %q: no version is served: %s", what, s.Name, s.Problem)})
		case s.Problem != "":
			all = append(all, health.Degradation{Reason: reason, Detail: fmt.Sprintf("%s %q: the last good version is served: %s", what, s.Name, s.Problem)})
		}
	}
	return all
}

// check returns the state of the process. It is ready where it forwards: where
// some node answers, whatever that says to akin.
func (a *App) check(ctx context.Context) (c health.Condition) {
	pinged := make(chan error, 1)
	go func() { // ends with ctx
		pinged <- a.process.guard.Do("asking for the state", func() error { return a.client.Ping(ctx) })
	}()
	if err := a.nodes.Reach(ctx); err != nil {
		c.NotReady = append(c.NotReady, "no node of the cluster answers: "+err.Error())
	}
	if !a.warm.Load() {
		c.NotReady = append(c.NotReady, "starting: asking the cluster for what the first searches need")
	}
	if d, ok := degradation(<-pinged); ok {
		c.Degraded = append(c.Degraded, d)
	}
	if a.reloadFailed.Load() {
		c.Degraded = append(c.Degraded, health.Degradation{
			Reason: health.Reload, Detail: "the configuration on disk cannot be put to use: see the line \"configuration not reloaded\"",
		})
	}
	c.Degraded = append(c.Degraded, a.incomplete()...)
	return c
}

// degradation returns what an error of akin's own call means, false for none.
func degradation(err error) (d health.Degradation, ok bool) {
	refused, _ := errors.AsType[*esclient.Error](err)
	switch {
	case err == nil:
		return d, false
	case refused == nil:
		d.Reason, d.Detail = health.Calls, "akin's own calls fail"
	case unauthorized(refused):
		d.Reason = health.Credentials
		d.Detail = fmt.Sprintf("the cluster answers %d to akin's own calls, so that no search is expanded: see cluster.auth and AKIN_CLUSTER_*", refused.Status)
	case refused.Status == http.StatusTooManyRequests:
		d.Reason, d.Detail = health.Throttled, "the cluster answers 429 to akin's own calls"
	default:
		d.Reason, d.Detail = health.Calls, fmt.Sprintf("the cluster answers %d to akin's own calls", refused.Status)
	}
	return d, true
}

// causes has what cause returns, and what an operator can do about it.
func causes() map[string]string {
	const slow = "the cluster or Redis does not answer in time, or fails: see /readyz, akin_row_store_failures_total and the log at level debug"
	return map[string]string{
		health.Credentials:         "the cluster refuses akin's own calls: see cluster.auth, AKIN_CLUSTER_* and the rights that README.md lists",
		health.Throttled:           "the cluster answers 429 to akin's own calls: it has more to do than it can",
		"busy":                     "as many calls of akin's own, or bodies of writes, are under way as may be: look at what the cluster takes so long for",
		"budget":                   "akin's own work takes longer than expansion.budget (rerank_budget, norms.budget): see akin_search_stage_duration_seconds; cold caches pass",
		"missing":                  "hits change between the search and the look at their terms: some of that is usual while documents are written",
		"too_large":                "hits have more terms than can be read in time: lower expansion.rerank_window",
		"no_terms":                 "the cluster tells no terms of the field: see docs/modes.md for the fields that the mode soft can rank by",
		"memory":                   "as much is held for requests as may be: see memory.in_flight and akin_request_memory_bytes",
		"answer_too_large":         "an answer to a call of akin's own is larger than it can sensibly be: see the log at level debug",
		"authorization":            "the cluster could not be asked whether a client may search: see akin_authorization_checks_total",
		"expensive_queries_disabled": "search.allow_expensive_queries is false, so that words in nested fields cannot be counted",
		"unknown_to_cluster":       "the cluster does not know an index or an analyzer, or refuses a call: see the log at level debug",
		"client_gone":              "clients go away before their search is sent",
		"error":                    "see the log at level debug",

		string(expand.StageScan): slow, string(expand.StageFields): slow, string(expand.StageAnalyze): slow, string(expand.StageRows): slow,
		string(expand.StageStatistics): slow, string(expand.StageLinear): slow, string(expand.StageWeights): slow,
	}
}

// cause names why a search was not expanded, for the metrics. causes has all
// that it returns.
func cause(err error) string {
	var stage *expand.StageError
	var refused *esclient.Error
	switch {
	case errors.Is(err, recovery.ErrPanic):
		return "panic"
	case errors.Is(err, esclient.ErrBusy), errors.Is(err, rerank.ErrBusy):
		return "busy"
	case errors.Is(err, esclient.ErrNoMemory):
		return "memory"
	case errors.Is(err, esclient.ErrTooLarge) && !errors.Is(err, rerank.ErrTooLarge):
		return "answer_too_large" // to a call of akin's own
	case errors.Is(err, rerank.ErrMissing):
		return "missing" // a hit has changed since it was found
	case errors.Is(err, rerank.ErrTooLarge):
		return "too_large" // the hits have too many terms
	case errors.Is(err, rerank.ErrNoTerms):
		return "no_terms" // the cluster tells none of the field
	case errors.As(err, &refused) && unauthorized(refused):
		return health.Credentials
	case errors.As(err, &refused) && refused.Status == http.StatusTooManyRequests:
		return health.Throttled
	case esclient.IsBarred(err):
		return "expensive_queries_disabled"
	case esclient.IsUnknown(err):
		return "unknown_to_cluster" // a missing or closed index, an unknown analyzer
	case errors.Is(err, context.DeadlineExceeded):
		return "budget"
	case errors.Is(err, context.Canceled):
		return "client_gone"
	case errors.As(err, &stage):
		return string(stage.Stage)
	}
	return "error"
}
