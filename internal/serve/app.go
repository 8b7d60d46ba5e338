// Package serve runs "akin serve": the proxy as one configuration wires it, its
// start, its state and its reloads.
//
// app.go defines App. wire.go builds one from a configuration, with adapters.go
// between packages that do not know each other. reload.go serves it and
// replaces it, warm.go fills the caches first, ready.go reports its state.
package serve

import (
	"io"
	"log/slog"
	"slices"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/expand/embedding"
	"github.com/akin-search/akin/internal/limits"
	"github.com/akin-search/akin/internal/nodes"
	"github.com/akin-search/akin/internal/recovery"
	"github.com/akin-search/akin/internal/searches"
	"github.com/akin-search/akin/proxy"
	"github.com/akin-search/akin/proxy/playground"
	"github.com/akin-search/akin/proxy/report"
	"github.com/akin-search/akin/simmatrix/store"
)

// An App is the proxy as one configuration wires it. A reload replaces it.
type App struct {
	cfg     *configs.Config
	log     *slog.Logger
	process *process
	server  *proxy.Server
	tracer  *sdktrace.TracerProvider // nil for none

	nodes   *nodes.Pool      // for clients' requests
	client  *esclient.Client // for akin's own calls
	cluster *esclient.Cached

	store    *store.Store     // nil without matrices
	weights  *store.Store     // nil without weights
	expander *expand.Expander // even if expansion is off; nil without matrices
	// embeddings orders hits by vectors of a language model; both nil without one.
	embeddings *embedding.Reranker
	model      *LanguageModel
	metrics    *prometheus.Registry // of this App only
	closers    []func()             // stop what was started, in reverse order
	warm       atomic.Bool          // the caches are filled for the first searches
	coldStart  *proxy.ColdStart     // gives searches more time while they are not
	// remembered is what the last reading of documents' terms came to; nil before
	// its end. embedded is that of their vectors, from its first documents on.
	remembered, embedded atomic.Pointer[[]report.Remembered]
}

// A process is what outlives a reload.
type process struct {
	build        Build
	stdout       io.Writer // for the access log
	registry     *prometheus.Registry
	shown        shownMetrics // those of the current App, for registry
	guard        *recovery.Guard
	memory       *limits.Budget // for what requests keep
	reloadFailed atomic.Bool    // the configuration on disk could not be loaded
	suggestions  func(cfg *configs.Config) playground.Suggestions
	// searches counts what searches find, nil if nothing does; the last of the apps
	// closes it.
	searches *searches.Collector
	apps     atomic.Int32
}

// Options configure [New].
type Options struct {
	Config *configs.Config
	Files  map[string]store.Loader // by name: matrices from elsewhere than configured
	Log    *slog.Logger
	Build  Build // for log and metrics
	// InProcess says that the cluster is an engine in this process, which is as
	// busy as the process: nothing waits for it in vain, so nothing has a limit of
	// time, and its node is never down.
	InProcess bool
	// Stdout gets the access log, if it is on; nil discards it.
	Stdout io.Writer
	// Suggestions returns what would help searches that find nothing, from a
	// configuration; nil makes none. A reload calls it again.
	Suggestions func(cfg *configs.Config) playground.Suggestions
}

func (a *App) onClose(f func()) { a.closers = append(a.closers, f) }

// closing logs an error of closing what.
func (a *App) closing(what string, err error) {
	if err != nil {
		a.log.Warn("not closed in good order", "what", what, "err", err)
	}
}

// Close stops what New started.
func (a *App) Close() {
	for _, end := range slices.Backward(a.closers) {
		end()
	}
}
