// Package serve is what "akin serve" runs: the proxy with all that the
// configuration wires it to, its start, its state, and its reloads.
//
// app.go says what an App is, wire.go makes one of a configuration, with
// adapters.go, which connects rooms that know nothing of each other. reload.go
// serves it and replaces it, warm.go has the caches filled first, ready.go says
// how it is.
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
	"github.com/akin-search/akin/internal/limits"
	"github.com/akin-search/akin/internal/nodes"
	"github.com/akin-search/akin/internal/recovery"
	"github.com/akin-search/akin/proxy"
	"github.com/akin-search/akin/simmatrix/store"
)

// An App is the proxy with all that one configuration wires it to. A reload
// replaces it.
type App struct {
	cfg     *configs.Config
	log     *slog.Logger
	process *process
	server  *proxy.Server
	tracer  *sdktrace.TracerProvider // nil for none

	nodes   *nodes.Pool      // by which clients' requests reach the cluster
	client  *esclient.Client // of akin's own calls
	cluster *esclient.Cached

	store    *store.Store         // nil where no matrix is configured
	weights  *store.Store         // nil where no weights are configured
	expander *expand.Expander     // also where expansion is off; nil where no matrix is configured
	metrics  *prometheus.Registry // end with the App
	closers  []func()             // end what was started, the last one first
	warm     atomic.Bool          // the first searches find what they need in the caches
}

// A process is what outlives a reload.
type process struct {
	build        Build
	stdout       io.Writer // gets the access log
	registry     *prometheus.Registry
	shown        shownMetrics // those of the App in use, which the registry shows
	guard        *recovery.Guard
	memory       *limits.Budget // of what is kept for requests
	reloadFailed atomic.Bool    // the configuration on disk could not be put to use
}

// Options say what to serve.
type Options struct {
	Config *configs.Config
	Files  map[string]store.Loader // matrices that do not come from the place configured, by name
	Log    *slog.Logger
	Build  Build // which akin this is, for log and metrics
	// Stdout gets the access log, if there is one; nil discards it.
	Stdout io.Writer
}

func (a *App) onClose(f func()) { a.closers = append(a.closers, f) }

// closing logs what goes wrong where something is closed.
func (a *App) closing(what string, err error) {
	if err != nil {
		a.log.Warn("not closed in good order", "what", what, "err", err)
	}
}

// Close ends what New started.
func (a *App) Close() {
	for _, end := range slices.Backward(a.closers) {
		end()
	}
}
