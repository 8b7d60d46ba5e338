// Package serve is what "akin serve" runs: the proxy with all that the
// configuration wires it to, its start, its state, and its reloads.
//
// app.go makes and closes an App, start.go serves it and warms it up,
// ready.go says how it is, reload.go replaces it. profiles.go and adapters.go
// connect the rooms that know nothing of each other.
package serve

import (
	"context"
	"io"
	"log/slog"
	"math"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/expand/soft"
	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/internal/limits"
	"github.com/akin-search/akin/internal/nodes"
	"github.com/akin-search/akin/internal/recovery"
	"github.com/akin-search/akin/internal/tracing"
	"github.com/akin-search/akin/proxy"
	"github.com/akin-search/akin/proxy/report"
	"github.com/akin-search/akin/simmatrix/store"
)

// flushTimeout bounds the sending of the spans that wait where an App ends.
const flushTimeout = 3 * time.Second

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

// New wires a proxy. Its error is one in the configuration.
func New(ctx context.Context, o Options) (*App, error) {
	if o.Stdout == nil {
		o.Stdout = io.Discard
	}
	p := &process{build: o.Build, stdout: o.Stdout, registry: prometheus.NewRegistry(), memory: limits.New(int64(o.Config.Memory.InFlight))}
	var err error
	if p.guard, err = recovery.New(o.Log, p.registry); err != nil {
		return nil, err
	}
	a, err := newApp(ctx, o, p, nil)
	if err != nil {
		return nil, err
	}
	p.shown.Store(a.metrics)
	p.registry.MustRegister(&p.shown, o.Build.metric(), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return a, nil
}

// newApp wires a proxy that is to replace previous, nil for none.
func newApp(ctx context.Context, o Options, p *process, previous *proxy.Server) (a *App, err error) {
	a = &App{cfg: o.Config, log: o.Log, process: p, metrics: prometheus.NewRegistry()}
	for _, warning := range a.cfg.Warnings {
		a.log.WarnContext(ctx, "configuration", "warning", warning)
	}
	defer func() {
		if err != nil {
			a.Close()
			a, err = nil, cli.Usage(err)
		}
	}()
	a.trim(ctx)
	if a.tracer, err = newTracer(ctx, a); err != nil {
		return a, err
	}
	if err = a.openCluster(); err != nil {
		return a, err
	}
	options := a.proxyOptions()
	options.Previous, options.AccessLog = previous, newAccessLog(a)
	if a.store, err = a.openStore(ctx, a.cfg.Matrices, o.Files, a.log); err != nil {
		return a, err
	}
	if a.weights, err = a.openStore(ctx, a.cfg.Weights, nil, a.log.With("of", "weights")); err != nil {
		return a, err
	}
	c := &collector{cluster: a.cluster, store: a.store, weights: a.weights, memory: a.process.memory}
	if cfg := a.cfg; len(cfg.Matrices) > 0 { // any search may ask for feedback
		c.rerank = soft.New(soft.Options{ //nolint:contextcheck // Loads outlive the search that asks first.
			Vectors: termVectors{documents.API{Client: a.client}}, Bytes: size(cfg.Caches.Vectors), TTL: time.Duration(cfg.Caches.TTL),
			Guard: p.guard, Client: proxy.ClientOf,
		})
		a.onClose(c.rerank.Close)
		options.Reranker, options.RerankBudget = c.rerank, time.Duration(cfg.Expansion.RerankBudget)
		options.HitTerms = c.rerank
	}
	models, err := readModels(ctx, a.cfg.Vectors, a.log)
	if err != nil {
		return a, err
	}
	a.expanders(&options, models) //nolint:contextcheck // What a refusal teaches outlives the client's request.
	if a.expander != nil {
		c.limits = a.expander.Limits
	}
	if options.Matrices, err = a.openPlayground(); err != nil {
		return a, err
	}
	if a.server, err = proxy.New(options); err != nil {
		return a, err
	}
	a.onClose(a.server.Close)
	a.metrics.MustRegister(c)
	return a, nil
}

func (a *App) onClose(f func()) { a.closers = append(a.closers, f) }

// Close ends what New started.
func (a *App) Close() {
	for _, end := range slices.Backward(a.closers) {
		end()
	}
}

// trim has memory given back to the system after bursts, until Close.
func (a *App) trim(ctx context.Context) {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	var trimming sync.WaitGroup
	trimming.Go(func() { a.process.memory.Trim(ctx) })
	a.onClose(func() { stop(); trimming.Wait() })
}

// newTracer returns what makes the spans of an App, nil where there is no
// collector.
func newTracer(ctx context.Context, a *App) (*sdktrace.TracerProvider, error) {
	cfg := &a.cfg.Tracing
	if cfg.Endpoint == "" {
		return nil, nil
	}
	headers, err := cfg.Header()
	must(err) // configs lets no others through
	tracer, err := tracing.Export(ctx, cfg.Endpoint, headers, cfg.Sample, a.process.build.Version)
	if err != nil {
		return nil, err
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { //nolint:contextcheck // Spans are sent apart from requests.
		a.log.WarnContext(context.Background(), "spans of traces are lost; requests are not touched by that", "err", err)
	}))
	a.onClose(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
		defer cancel()
		_ = tracer.Shutdown(ctx) // what it could not send is in the log
	})
	return tracer, nil
}

// newAccessLog returns the access log of an App, nil where it has none.
func newAccessLog(a *App) *slog.Logger {
	if !a.cfg.Log.Access {
		return nil
	}
	counts := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "akin_access_log_lines_total", Help: "Lines for the access log, by whether they were written, dropped since too many wait, or failed.",
	}, []string{"result"})
	for _, result := range []string{report.Written, report.Dropped, report.Failed} {
		counts.WithLabelValues(result)
	}
	a.metrics.MustRegister(counts)
	w := report.NewWriter(report.Options{
		To: unclosed{a.process.stdout}, Room: math.MaxInt64, Guard: a.process.guard, What: "writing the access log",
		Count: func(result string) { counts.WithLabelValues(result).Inc() },
	})
	a.onClose(w.Close)
	return slog.New(slog.NewJSONHandler(w, nil))
}

// unclosed is a stream that is not ours to close.
type unclosed struct{ io.Writer }

// Close does nothing.
func (unclosed) Close() error { return nil }

// openCluster makes what reaches the cluster.
func (a *App) openCluster() (err error) {
	cfg := &a.cfg.Cluster
	clients, encrypted, err := cli.ClusterTLS(cfg.TLS)
	if err != nil {
		return err
	}
	if a.nodes, err = nodes.New(nodes.Options{
		URLs: cfg.URLs, TLS: clients, Logger: a.log, Guard: a.process.guard, Registerer: a.metrics,
		MaxIdle: connections(a.cfg.Listen.MaxConnections, openFiles()),
	}); err != nil {
		return err
	}
	a.onClose(a.nodes.Close)
	own := a.nodes
	if encrypted != clients {
		// Connections of their own: over one with akin's certificate the cluster would take
		// a client's request without credentials for akin's.
		if own, err = nodes.New(nodes.Options{URLs: cfg.URLs, TLS: encrypted, Guard: a.process.guard}); err != nil {
			return err
		}
		a.onClose(own.Close)
	}
	if a.client, err = esclient.New(esclient.Options{
		Transport: own,
		Username:  cfg.Auth.Username, Password: cfg.Auth.Password.Reveal(), APIKey: cfg.Auth.APIKey.Reveal(),
		Guard: a.process.guard, Memory: a.process.memory.Hold(limits.OwnCall, ""),
	}); err != nil {
		return err
	}
	a.onClose(func() { a.closing("cluster client", a.client.Close()) })
	caches := &a.cfg.Caches
	a.cluster = esclient.NewCached(a.client, esclient.CacheOptions{
		AnalysisBytes: size(caches.Analysis), StatisticsBytes: size(caches.Statistics), TTL: time.Duration(caches.TTL),
		Client: proxy.ClientOf,
	})
	a.onClose(a.cluster.Close)
	return nil
}

// closing logs what goes wrong where something is closed.
func (a *App) closing(what string, err error) {
	if err != nil {
		a.log.Warn("not closed in good order", "what", what, "err", err)
	}
}

func (a *App) proxyOptions() proxy.Options {
	cfg := a.cfg
	host, _, err := net.SplitHostPort(cfg.Admin.Address)
	must(err) // configs lets no other address through
	return proxy.Options{
		Nodes:  a.nodes,
		Budget: time.Duration(cfg.Expansion.Budget), Memory: a.process.memory,
		MaxBody: int64(cfg.Expansion.MaxBody), BodyTimeout: time.Duration(cfg.Listen.BodyTimeout),
		Cause: cause, Causes: causes(), Check: a.check, Forms: a.forms,
		RankEval: cfg.Expansion.RankEval, Templates: cfg.Expansion.Templates, Shadow: cfg.Expansion.Shadow,
		Trials: trials(cfg.Expansion.Trials),
		// Who has credentials for akin's own calls has a cluster that asks for them.
		Secured: cfg.Cluster.Auth.Username != "" || cfg.Cluster.Auth.APIKey.Reveal() != "" || cfg.Cluster.TLS.Certificate != "",
		Gate: proxy.Gate{
			Hosts: append([]string{host}, cfg.Admin.Hosts...), Token: cfg.Admin.Token.Reveal(), Exposed: cfg.Admin.Exposed(),
		},
		Logger: a.log, LogQueries: cfg.Log.Queries,
		Registry: a.process.registry, Guard: a.process.guard, Tracer: a.tracer,
		ForwardedHeaders: cfg.Listen.ForwardedHeaders,
		MaxConnections:   connections(cfg.Listen.MaxConnections, openFiles()),
		IdleTimeout:      time.Duration(cfg.Listen.IdleTimeout),
		ShutdownDelay:    time.Duration(cfg.Shutdown.Delay),
		ShutdownTimeout:  time.Duration(cfg.Shutdown.Timeout),
	}
}

// must panics for an error that only a mistake in this program can cause.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// openStore opens a store of the entries of one list, nil for none.
func (a *App) openStore(
	ctx context.Context, entries []configs.Matrix, loaders map[string]store.Loader, log *slog.Logger,
) (*store.Store, error) {
	if len(entries) == 0 {
		return nil, nil
	}
	cfg := a.cfg
	certificates, err := cli.RedisTLS(cfg.Redis.TLS)
	if err != nil {
		return nil, err
	}
	options := store.Options{
		Files:        map[string]store.Loader{},
		Redis:        store.Redis{URL: cfg.Redis.URL.Reveal(), TLS: certificates},
		RedisTimeout: time.Duration(cfg.Redis.Timeout),
		CacheBytes:   size(cfg.Caches.Rows),
		Guard:        a.process.guard,
		OnState: func(s store.State) {
			level := slog.LevelInfo
			if s.Problem != "" {
				level = slog.LevelWarn
			}
			log.Log(context.WithoutCancel(ctx), level, "matrix", "name", s.Name, "source", s.Source,
				"version", s.Version, "terms", s.Terms, "problem", s.Problem)
		},
	}
	for _, m := range entries {
		options.Bindings = append(options.Bindings, store.Binding{Name: m.Name, Indices: m.Indices, Fields: m.Fields})
		switch load := loaders[m.Name]; {
		case load != nil:
			options.Files[m.Name] = load
		case m.File != "":
			options.Files[m.Name] = cli.Follow(m.File)
		}
	}
	store, err := store.Open(ctx, options)
	if err == nil {
		a.onClose(func() { a.closing("row store", store.Close()) })
	}
	return store, err
}

// size returns a number of bytes; configs lets no negative one through.
func size(b configs.Bytes) uint64 { return uint64(max(b, 0)) }
