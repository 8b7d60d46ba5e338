package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/expand/embedding"
	"github.com/akin-search/akin/expand/soft"
	"github.com/akin-search/akin/internal/cache"
	"github.com/akin-search/akin/internal/nodes"
	"github.com/akin-search/akin/internal/recovery"
	"github.com/akin-search/akin/proxy/report"
	"github.com/akin-search/akin/simmatrix/store"
)

func (a *App) incomplete() (all []report.Degradation) {
	needs := func(p *expand.Profile) bool { return p.Mode == expand.ModeHard || p.Mode == expand.ModeSoftCosine }
	weighted := needs(&a.cfg.Expansion.Profile)
	for _, p := range a.cfg.Profiles {
		weighted = weighted || needs(&p.Profile)
	}
	if a.weights == nil && weighted {
		all = append(all, report.Degradation{
			Reason: report.Weights, Detail: "mode hard or softcosine without weights: its searches are expanded as in the mode bm25",
		})
	}
	if a.embeddings != nil {
		all = append(all, lackingModel(a.embeddings.State())...)
	}
	matrices, weights := a.Served()
	return slices.Concat(all, unsound(report.Matrix, "matrix", matrices), unsound(report.Weights, "weights", weights))
}

// lackingModel says what keeps vectors of a language model from ordering hits.
func lackingModel(s embedding.State) (all []report.Degradation) {
	if !s.Ready && s.Err != nil {
		all = append(all, report.Degradation{Reason: report.Model, Detail: "hits keep the order without it: " + s.Err.Error()})
	}
	if s.Ready && s.Documents != nil {
		all = append(all, report.Degradation{Reason: report.Model, Detail: "the last documents got no vectors: " + s.Documents.Error()})
	}
	if s.Store != nil {
		all = append(all, report.Degradation{Reason: report.Model, Detail: "vectors of documents are not stored, so the next start has to make them again: " + s.Store.Error()})
	}
	return all
}

func unsound(reason, what string, states []store.State) (all []report.Degradation) {
	for _, s := range states {
		served := "the last good version"
		if s.Version == "" {
			served = "no version"
		}
		if s.Version == "" || s.Problem != "" {
			all = append(all, report.Degradation{Reason: reason, Detail: fmt.Sprintf("%s %q: %s is served: %s", what, s.Name, served, s.Problem)})
		}
	}
	return all
}

// check returns the state of the process. It is ready if requests can be
// forwarded, that is, if any node answers, whatever it answers to akin.
func (a *App) check(ctx context.Context) (c report.Condition) {
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
	err := <-pinged
	if refusal, ok := errors.AsType[*nodes.NotSentError](err); ok {
		c.NotReady = append(c.NotReady, refusal.Error())
	} else if d, ok := degradation(err); ok {
		c.Degraded = append(c.Degraded, d)
	}
	if a.process.reloadFailed.Load() {
		c.Degraded = append(c.Degraded, report.Degradation{
			Reason: report.Reload, Detail: "the configuration on disk cannot be put to use: see the line \"configuration not reloaded\"",
		})
	}
	c.Degraded = append(c.Degraded, a.incomplete()...)
	if read := a.remembered.Load(); read != nil {
		c.Remembered = *read
	}
	if read := a.embedded.Load(); read != nil {
		c.Embedded = *read
	}
	return c
}

// degradation returns what an error of akin's own call means, or false for nil.
func degradation(err error) (d report.Degradation, ok bool) {
	refused, ok := errors.AsType[*esclient.Error](err)
	if !ok {
		return report.Degradation{Reason: report.Calls, Detail: "akin's own calls fail"}, err != nil
	}
	d = report.Degradation{Reason: report.Calls, Detail: fmt.Sprintf("the cluster answers %d to akin's own calls", refused.Status)}
	switch {
	case unauthorized(refused):
		d.Reason, d.Detail = report.Credentials, d.Detail+", so that no search is expanded: see cluster.auth and AKIN_CLUSTER_*, or cluster.aws"
	case refused.Status == http.StatusTooManyRequests:
		d.Reason = report.Throttled
	}
	return d, true
}

// A failure is a cause of failing open: its name in the metrics, whether an
// error has it, and a hint for operators.
type failure struct {
	cause string
	is    bool
	hint  string
}

// failures returns the causes known by their errors. The first of err counts.
func failures(err error) []failure {
	is := func(target error) bool { return errors.Is(err, target) }
	refusal, refused := errors.AsType[*esclient.Error](err)
	_, unsigned := errors.AsType[*nodes.NotSentError](err)
	return []failure{
		{"panic", is(recovery.ErrPanic), ""},
		{"busy", is(cache.ErrBusy), "as many calls of akin's own are under way as may be: look at what the cluster takes so long for"},
		{"memory", is(esclient.ErrNoMemory), "as much is held for requests as may be: see memory.in_flight and akin_request_memory_bytes"},
		{"too_large", is(soft.ErrTooLarge), "hits have more terms than can be read in time: lower expansion.rerank_window"},
		{"answer_too_large", is(esclient.ErrTooLarge), "an answer to a call of akin's own is larger than it can sensibly be: see the log at level debug"},
		{"model_late", is(embedding.ErrLate), "the language model does not answer in embeddings.budget: see akin_embeddings_call_duration_seconds"},
		{"model_rejects", is(embedding.ErrRejected), "the language model has no vector for the texts of some searches, which may be too long: see the log of the model"},
		{"model", is(embedding.ErrModel), "the language model of the section embeddings fails: see /readyz and akin_embeddings_failed_calls_total"},
		{"missing", is(soft.ErrMissing), "hits change between the search and the look at their terms: some of that is usual while documents are written"},
		{"no_terms", is(soft.ErrNoTerms), "the cluster tells no terms of the field: see docs/modes.md for the fields that the mode soft can rank by"},
		{
			report.Credentials, unsigned || refused && unauthorized(refusal),
			"the cluster refuses akin's own calls: see cluster.auth, AKIN_CLUSTER_*, cluster.aws and the role in docs/security.md",
		},
		{report.Throttled, refused && refusal.Status == http.StatusTooManyRequests, "the cluster answers 429 to akin's own calls: it has more to do than it can"},
		{"expensive_queries_disabled", esclient.IsBarred(err), "search.allow_expensive_queries is false, so that words in nested fields cannot be counted"},
		{"unknown_to_cluster", esclient.IsUnknown(err), "the cluster does not know an index or an analyzer, or refuses a call: see the log at level debug"},
		{"budget", is(context.DeadlineExceeded), "akin's own work takes longer than expansion.budget, or than 1 s with cold caches: see akin_search_stage_duration_seconds"},
		{"client_gone", is(context.Canceled), "clients go away before their search is sent"},
	}
}

func causes() map[string]string {
	const slow = "the cluster or Redis does not answer in time, or fails: see /readyz, akin_row_store_failures_total and the log at level debug"
	hints := map[string]string{
		"authorization": "the cluster could not be asked whether a client may search: see akin_authorization_checks_total",
		"error":         "see the log at level debug",
	}
	for _, f := range failures(nil) {
		if f.hint != "" {
			hints[f.cause] = f.hint
		}
	}
	for _, s := range []expand.Stage{
		expand.StageFields, expand.StageAnalyze, expand.StageRows, expand.StageStatistics, expand.StageLinear, expand.StageWeights, expand.StageVectors,
	} {
		hints[string(s)] = slow
	}
	return hints
}

// cause returns why a search was not expanded, for the metrics.
func cause(err error) string {
	for _, f := range failures(err) {
		if f.is {
			return f.cause
		}
	}
	if stage, ok := errors.AsType[*expand.StageError](err); ok {
		return string(stage.Stage)
	}
	return "error"
}
