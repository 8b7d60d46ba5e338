package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/internal/recovery"
	"github.com/akin-search/akin/proxy"
	"github.com/akin-search/akin/rerank"
	"github.com/akin-search/akin/simmatrix/rowstore"
)

var (
	_ expand.Cluster  = cluster{}
	_ expand.Matrices = matrices{}
	_ expand.Pinned   = pinned{}
	_ expand.Rows     = (*rowstore.Rows)(nil)
	_ proxy.Expander  = (*expand.Expander)(nil)
)

// cluster answers expand from esclient.
type cluster struct{ cached *esclient.Cached }

func (c cluster) Analyze(ctx context.Context, t expand.Text) (*expand.Analysis, error) {
	a, err := c.cached.Analyze(ctx, esclient.Indices(t.Indices), t.Field, t.Analyzer, t.Text)
	if err != nil {
		return nil, alone(err)
	}
	return &expand.Analysis{
		Terms: a.Terms, Positions: a.Positions, Graph: a.Graph, Analyzer: a.Analyzer,
		Weighting: weighting(a.Similarity), Shards: a.Shards, Routed: a.Routed, Filtered: a.Filtered, NotWords: a.NotWords,
	}, nil
}

// alone makes those errors of esclient that are no failures known to expand.
func alone(err error) error {
	switch {
	case errors.Is(err, esclient.ErrNotText), errors.Is(err, esclient.ErrRemote):
		return fmt.Errorf("%w: %w", expand.ErrNotText, err)
	case errors.Is(err, esclient.ErrMixed):
		return fmt.Errorf("%w: %w", expand.ErrMixed, err)
	case unknown(err):
		return fmt.Errorf("%w: %w", expand.ErrUnknown, err)
	default:
		return err
	}
}

// unknown reports whether the cluster refused a call of akin's own for an index
// that is missing or closed, or for an analyzer that it does not have.
func unknown(err error) bool {
	var refused *esclient.Error
	return errors.As(err, &refused) && !barred(err) &&
		(refused.Status == http.StatusBadRequest || refused.Status == http.StatusNotFound)
}

// barred reports whether the cluster refused a call for its setting
// search.allow_expensive_queries, which bars queries of nested fields too:
// their document frequencies are counted by one. All engines say it in the
// same words.
func barred(err error) bool {
	const words = "queries cannot be executed when 'search.allow_expensive_queries' is set to false"
	var refused *esclient.Error
	return errors.As(err, &refused) && refused.Type == "exception" && strings.Contains(refused.Reason, words)
}

// unauthorized reports whether the cluster refused a call of akin's own for its
// credentials, and not for a block on an index, which is a 403, too.
func unauthorized(e *esclient.Error) bool {
	return e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden && e.Type != "cluster_block_exception"
}

// weighting says how a field is scored: by a constant with the boolean
// similarity, with idf once by all others that the engines have built in.
func weighting(s esclient.Similarity) expand.Weighting {
	if s == esclient.Boolean {
		return expand.WeightOne
	}
	return expand.WeightBM25
}

func (c cluster) Statistics(
	ctx context.Context, indices expand.Indices, field string, terms []string, docFreqs []int64,
) (expand.Statistics, error) {
	s, err := c.cached.Statistics(ctx, esclient.Indices(indices), field, terms, docFreqs)
	return expand.Statistics(s), err
}

func (c cluster) Fields(ctx context.Context, indices expand.Indices, pattern string) ([]string, error) {
	names, err := c.cached.Fields(ctx, esclient.Indices(indices), pattern)
	if err != nil {
		return nil, alone(err)
	}
	return names, nil
}

// matrices gives expand the versions that are active in a row store, of the
// matrices of some names, or of all where names is nil.
type matrices struct {
	store   *rowstore.Store
	cluster *esclient.Cached
	names   []string
}

func (m matrices) Pin() expand.Pinned { return pinned{m.store.Pin(), m.cluster, m.names} }

type pinned struct {
	snapshot *rowstore.Snapshot
	cluster  *esclient.Cached
	names    []string
}

func (p pinned) For(ctx context.Context, indices expand.Indices, field string) (expand.Bound, error) {
	m, err := match(ctx, p.snapshot, p.cluster, indices, field, p.names)
	bound := expand.Bound{Named: m.Named, Resolved: m.Resolved}
	if m.Rows != nil { // else an interface that is not nil
		bound.Rows = m.Rows
	}
	return bound, err
}

// match finds what is bound to a field of the indices. Those of other clusters,
// and those that the cluster tells akin nothing of, are matched by the names in
// the expression alone.
func match(
	ctx context.Context, snapshot *rowstore.Snapshot, cluster *esclient.Cached, indices expand.Indices, field string, among []string,
) (rowstore.Match, error) {
	return snapshot.Match(rowstore.Question{
		Index: indices.Expression, Field: field, Among: among,
		Resolve: func() ([]string, error) {
			names, err := cluster.Resolve(ctx, esclient.Indices(indices), field)
			var refused *esclient.Error
			switch {
			case errors.Is(err, esclient.ErrRemote), errors.Is(err, esclient.ErrNotText), unknown(err):
				return nil, nil
			case errors.As(err, &refused) && (refused.Status == http.StatusUnauthorized || refused.Status == http.StatusForbidden):
				return nil, nil
			}
			return names, err
		},
	})
}

// causes has what cause returns, and what an operator can do about it.
func causes() map[string]string {
	const slow = "the cluster or Redis does not answer in time, or fails: see /readyz, akin_row_store_failures_total and the log at level debug"
	return map[string]string{
		proxy.DegradedCredentials:  "the cluster refuses akin's own calls: see cluster.auth, AKIN_CLUSTER_* and the rights that README.md lists",
		proxy.DegradedThrottled:    "the cluster answers 429 to akin's own calls: it has more to do than it can",
		"busy":                     "as many calls of akin's own, or bodies of writes, are under way as may be: look at what the cluster takes so long for",
		"budget":                   "akin's own work takes longer than expansion.budget (rerank_budget, norms.budget): see akin_search_stage_duration_seconds; cold caches pass",
		"missing":                  "hits change between the search and the look at their terms: some of that is usual while documents are written",
		"too_large":                "hits have more terms than can be read in time: lower expansion.rerank_window",
		"no_terms":                 "the cluster tells no terms of the field: see docs/modes.md for the fields that the mode soft can rank by",
		"memory":                   "as much is held for requests as may be: see memory.in_flight and akin_held_bytes",
		"answer_too_large":         "an answer to a call of akin's own is larger than it can sensibly be: see the log at level debug",
		"access":                   "the cluster could not be asked whether a client may search: see akin_access_questions_total",
		"expensive_queries_barred": "search.allow_expensive_queries is false, so that words in nested fields cannot be counted",
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
		return proxy.DegradedCredentials
	case errors.As(err, &refused) && refused.Status == http.StatusTooManyRequests:
		return proxy.DegradedThrottled
	case barred(err):
		return "expensive_queries_barred"
	case unknown(err):
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
