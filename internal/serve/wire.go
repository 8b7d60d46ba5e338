package serve

import (
	"context"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/expand/soft"
	"github.com/akin-search/akin/expand/vectors"
	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/internal/limits"
	"github.com/akin-search/akin/internal/nodes"
	"github.com/akin-search/akin/internal/recovery"
	"github.com/akin-search/akin/internal/searches"
	"github.com/akin-search/akin/internal/tracing"
	"github.com/akin-search/akin/proxy"
	"github.com/akin-search/akin/proxy/report"
	"github.com/akin-search/akin/simmatrix/store"
)

// unlimited is a time that nothing takes.
const unlimited = 24 * time.Hour

// flushTimeout limits the sending of waiting spans when an App closes.
const flushTimeout = 3 * time.Second

const (
	otherFiles        = 128   // not for clients: admin port, Redis, akin's own calls, matrix files
	fewestConnections = 16    // allowed however few files there are
	mostConnections   = 10000 // by default: about 200 MB while all are idle
)

// New wires a proxy. Its errors are errors in the configuration.
func New(ctx context.Context, o Options) (*App, error) {
	if o.Stdout == nil {
		o.Stdout = io.Discard
	}
	p := &process{build: o.Build, stdout: o.Stdout, registry: prometheus.NewRegistry(), memory: limits.New(int64(o.Config.Memory.InFlight)), suggestions: o.Suggestions}
	p.guard = recovery.New(o.Log, p.registry)
	if err := p.openSearches(ctx, &o); err != nil {
		return nil, cli.Usage(err)
	}
	a, err := newApp(ctx, o, p, nil)
	if err != nil {
		return nil, err
	}
	p.shown.Store(a.metrics)
	build := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "akin_build_info", Help: "1, with the version of akin, its commit, and the Go that built it.",
		ConstLabels: prometheus.Labels{"version": o.Build.Version, "revision": o.Build.Commit, "goversion": o.Build.Go},
	}, func() float64 { return 1 })
	p.registry.MustRegister(&p.shown, build, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return a, nil
}

// openSearches opens what counts searches, if they are collected.
func (p *process) openSearches(ctx context.Context, o *Options) error {
	if !o.Config.Searches.Collect {
		return nil
	}
	kept, err := cli.Searches(o.Config)
	if err != nil {
		return err
	}
	kept.Guard, kept.Log = p.guard, o.Log
	p.searches, err = searches.Open(ctx, kept)
	return err
}

// newApp wires a proxy that will replace previous; nil for none.
func newApp(ctx context.Context, o Options, p *process, previous *proxy.Server) (a *App, err error) {
	a = &App{cfg: o.Config, log: o.Log, process: p, metrics: prometheus.NewRegistry(), coldStart: proxy.NewColdStart()}
	defer func() {
		if err != nil {
			a.Close()
			a, err = nil, cli.Usage(err)
		}
	}()
	p.apps.Add(1)
	a.onClose(func() {
		if p.apps.Add(-1) == 0 && p.searches != nil {
			p.searches.Close()
		}
	})
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() { p.memory.Trim(background) }) // returns memory to the system after bursts
	a.onClose(func() { stop(); running.Wait() })
	if a.tracer, err = newTracer(ctx, a); err != nil {
		return a, err
	}
	var limit time.Duration // 0 for the usual ones
	if o.InProcess {
		limit = unlimited
	}
	if err = a.openCluster(limit); err != nil {
		return a, err
	}
	options := a.proxyOptions()
	options.Budget = max(options.Budget, limit)
	options.Previous, options.AccessLog = previous, newAccessLog(a)
	if a.store, err = a.openStore(ctx, a.cfg.Matrices, o.Files, wantsWords(a.cfg), a.log); err != nil {
		return a, err
	}
	if a.weights, err = a.openStore(ctx, a.cfg.Weights, nil, false, a.log.With("of", "weights")); err != nil {
		return a, err
	}
	c := &collector{cluster: a.cluster, searches: p.searches, store: a.store, weights: a.weights, memory: a.process.memory}
	if cfg := a.cfg; len(cfg.Matrices) > 0 { // any search may ask for feedback
		c.rerank = soft.New(soft.Options{
			Vectors: termVectors{documents.API{Client: a.client}}, Bytes: cfg.Caches.Large(), TTL: time.Duration(cfg.Caches.TTL),
			Guard: p.guard, Client: proxy.ClientOf, Timeout: limit,
		})
		a.onClose(c.rerank.Close)
		by := rerankers{soft: c.rerank, budget: options.Budget}
		options.RerankBudget = options.Budget
		if cfg.Embeddings.URL != "" {
			if err = a.openEmbeddings(); err != nil {
				return a, err
			}
			by.vectors, c.embeddings = a.embeddings, a.embeddings
			options.RerankBudget += time.Duration(cfg.Embeddings.Budget) // they are waited for in turn
			if cfg.Expansion.RerankWarmUp {
				running.Go(func() { a.keepVectorsWarm(background, a.embeddings) })
				a.onClose(func() { stop(); running.Wait() }) // before its dependencies are closed
			}
		}
		options.Reranker = by
		options.HitTerms, options.Forms = c.rerank, a.store.Forms
		if cfg.Expansion.RerankWarmUp && ordersBySoft(cfg) {
			running.Go(func() { a.keepHitsWarm(background, c.rerank) })
			a.onClose(func() { stop(); running.Wait() }) // before its dependencies are closed
		}
	}
	models, err := readModels(ctx, a.cfg.Vectors, a.log)
	if err != nil {
		return a, err
	}
	a.expanders(&options, models, c.rerank) //nolint:contextcheck // What a refusal teaches outlives the client's request.
	if a.expander != nil {
		c.limits = a.expander.Limits().All
	}
	if options.Matrices, err = a.openPlayground(); err != nil {
		return a, err
	}
	if p.suggestions != nil {
		options.Suggestions = p.suggestions(a.cfg)
	}
	a.server = proxy.New(options)
	a.onClose(a.server.Close)
	a.metrics.MustRegister(c)
	return a, nil
}

// newTracer returns the tracer of an App, or nil without a collector.
func newTracer(ctx context.Context, a *App) (*sdktrace.TracerProvider, error) {
	tracer, err := tracing.Export(ctx, a.process.build.Version)
	if err != nil || tracer == nil {
		return nil, err
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { //nolint:contextcheck // Spans are sent apart from requests.
		a.log.WarnContext(context.Background(), "spans of traces are lost; requests are not touched by that", "err", err)
	}))
	a.onClose(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
		defer cancel()
		_ = tracer.Shutdown(ctx) // the log has what it could not send
	})
	return tracer, nil
}

// newAccessLog returns the access log of an App, or nil if it is off.
func newAccessLog(a *App) *slog.Logger {
	if !a.cfg.Log.Access {
		return nil
	}
	counts := promauto.With(a.metrics).NewCounterVec(prometheus.CounterOpts{
		Name: "akin_access_log_lines_total", Help: "Lines for the access log, by whether they were written, dropped since too many wait, or failed.",
	}, []string{"result"})
	for _, result := range []string{report.Written, report.Dropped, report.Failed} {
		counts.WithLabelValues(result)
	}
	w := report.NewWriter(a.process.stdout, a.process.guard, func(result string) { counts.WithLabelValues(result).Inc() })
	a.onClose(w.Close)
	return slog.New(slog.NewJSONHandler(w, nil))
}

// openCluster opens the connections to the cluster. limit is that of a call, 0
// for the usual one; another means that nodes are not checked.
func (a *App) openCluster(limit time.Duration) (err error) {
	cfg := &a.cfg.Cluster
	clients, encrypted, err := cli.ClusterTLS(cfg.TLS)
	if err != nil {
		return err
	}
	if a.cfg.LendsRights() {
		a.log.Warn("whoever reaches akin acts with its rights in the cluster: set listen.auth", "address", a.cfg.Listen.Address)
	}
	sign := cli.Signing(&cfg.AWS, a.process.memory, a.log)
	if a.nodes, err = nodes.New(nodes.Options{
		URLs: cfg.URLs, TLS: clients, Sign: sign, Logger: a.log, Guard: a.process.guard, Registerer: a.metrics,
		MaxIdle: connections(a.cfg.Listen.MaxConnections, openFiles()), Trusted: limit > 0,
	}); err != nil {
		return err
	}
	a.onClose(a.nodes.Close)
	own := a.nodes
	if encrypted != clients {
		// Separate connections: over one with akin's certificate, the cluster would
		// take a client's request without credentials for akin's.
		if own, err = nodes.New(nodes.Options{URLs: cfg.URLs, TLS: encrypted, Sign: sign, Guard: a.process.guard}); err != nil {
			return err
		}
		a.onClose(own.Close)
	}
	if a.client, err = esclient.New(esclient.Options{
		Transport: own,
		Username:  cfg.Auth.Username, Password: cfg.Auth.Password.Reveal(), APIKey: cfg.Auth.APIKey.Reveal(),
		Guard: a.process.guard, Memory: a.process.memory.Hold(limits.OwnCall, ""), Timeout: limit,
	}); err != nil {
		return err
	}
	a.onClose(a.client.Close)
	caches := &a.cfg.Caches
	a.cluster = esclient.NewCached(a.client, esclient.CacheOptions{
		AnalysisBytes: caches.Small(), StatisticsBytes: caches.Small(), TTL: time.Duration(caches.TTL),
		Client: proxy.ClientOf, Timeout: limit,
	})
	a.onClose(a.cluster.Close)
	return nil
}

func (a *App) proxyOptions() proxy.Options {
	cfg := a.cfg
	host, _, err := net.SplitHostPort(cfg.Admin.Address)
	must(err) // configs allows no other address
	trials := make([]proxy.Trial, 0, len(cfg.Expansion.Trials))
	for _, t := range cfg.Expansion.Trials {
		trials = append(trials, proxy.Trial{
			Name: t.Name, Covers: store.Covers(t.Indices), Arms: [2]string(t.Arms), Share: t.Share, Header: t.Header,
		})
	}
	keeps := append(make([]string, 0, 1+len(cfg.Searches.ExcludeIndices)), "*")
	for _, out := range cfg.Searches.ExcludeIndices {
		keeps = append(keeps, "-"+out)
	}
	return proxy.Options{
		Nodes:   a.nodes,
		Collect: proxy.Collecting{Searches: a.process.searches, Below: cfg.Searches.Below, Covers: store.Covers(keeps)},
		Budget:  time.Duration(cfg.Expansion.Budget), ColdStart: a.coldStart, Memory: a.process.memory,
		MaxBody: int64(cfg.Expansion.MaxBody), BodyTimeout: time.Duration(cfg.Listen.BodyTimeout),
		Cause: cause, Causes: causes(), Check: a.check, Unbound: a.unbound,
		ResultHeader: cfg.Answers.Header, HideFrom: cfg.Expansion.HideFrom,
		Templates: cfg.Expansion.Templates, Shadow: cfg.Expansion.Shadow, Trials: trials,
		Secured: cfg.Cluster.Secured(), Signs: cfg.Cluster.AWS.Signs(),
		Clients: proxy.Clients{
			Username: cfg.Listen.Auth.Username, Password: cfg.Listen.Auth.Password.Reveal(), APIKey: cfg.Listen.Auth.APIKey.Reveal(),
		},
		Gate: proxy.Gate{
			Hosts: append([]string{host}, cfg.Admin.Hosts...), Token: cfg.Admin.Token.Reveal(), Exposed: cfg.Admin.Exposed(),
		},
		Logger: a.log, LogQueries: cfg.Log.Queries,
		Registry: a.process.registry, Guard: a.process.guard, Tracer: a.tracer,
		ForwardedHeaders: cfg.Listen.ForwardedHeaders,
		MaxConnections:   connections(cfg.Listen.MaxConnections, openFiles()),
		IdleTimeout:      time.Duration(cfg.Listen.IdleTimeout),
		ShutdownDelay:    time.Duration(cfg.Shutdown.Delay),
		ShutdownTimeout:  configs.ShutdownTimeout,
	}
}

// must panics for errors that only a bug can cause.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// wantsWords reports whether searches look for the nearest known words.
func wantsWords(cfg *configs.Config) bool {
	wanted := func(p *expand.Profile) bool {
		return p.NearestWords && (p.Mode == expand.ModeBM25 || p.Mode == expand.ModeSoft || p.Mode == expand.ModeAuto)
	}
	for _, p := range cfg.Profiles {
		if p.Enabled && wanted(&p.Profile) {
			return true
		}
	}
	return wanted(&cfg.Expansion.Profile) // of the preview, too
}

// ordersBySoft reports whether searches may be ordered by what documents hold.
func ordersBySoft(cfg *configs.Config) bool {
	orders := func(p *expand.Profile) bool { return p.Mode == expand.ModeSoft || p.Mode == expand.ModeAuto }
	for _, p := range cfg.Profiles {
		if p.Enabled && orders(&p.Profile) {
			return true
		}
	}
	return cfg.Expansion.Enabled && orders(&cfg.Expansion.Profile)
}

// openStore opens a store of entries, or returns nil if there are none; words
// is [store.Options.Words].
func (a *App) openStore(
	ctx context.Context, entries []configs.Matrix, loaders map[string]store.Loader, words bool, log *slog.Logger,
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
		RedisTimeout: min(time.Duration(cfg.Expansion.Budget)*3/5, time.Second), // so that there is time left
		CacheBytes:   cfg.Caches.Large(),
		Words:        words,
		Guard:        a.process.guard,
		OnState: func(s store.State) {
			level := slog.LevelInfo
			if s.Problem != "" {
				level = slog.LevelWarn
			} else {
				a.coldStart.Begin() // the rows and frequencies of a new version are not cached
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
	rows, err := store.Open(ctx, options)
	if err == nil {
		a.onClose(func() { a.closing("row store", rows.Close()) })
	}
	return rows, err
}

// connections returns how many clients may connect: as configured or, for 0, as
// many as open files allow; files is 0 if unknown. A client takes one for
// itself, one for its request to the cluster, and one that is idle there.
func connections(configured int, files uint64) int {
	switch {
	case configured > 0:
		return configured
	case files == 0 || files > 3*mostConnections+otherFiles:
		return mostConnections
	}
	return max(int(files)-otherFiles, 3*fewestConnections) / 3
}

func newLogger(cfg configs.Log, w io.Writer) *slog.Logger {
	var level slog.Level
	must(level.UnmarshalText([]byte(cfg.Level))) // configs allows no other names
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: withUnit}))
}

// withUnit writes a duration with its unit: JSON would have nanoseconds.
func withUnit(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}

// expanders creates the expanders: the default one and one per profile. They
// share what is learned of the cluster.
func (a *App) expanders(options *proxy.Options, models []*vectors.Model, hits *soft.Reranker) {
	cfg := a.cfg
	options.Profiles = make(map[string]proxy.Expander, len(cfg.Profiles))
	for name := range cfg.Profiles {
		options.Profiles[name] = nil // known, and switched off
	}
	if a.store == nil {
		return
	}
	rewriting := func(p expand.Profile) expand.Profile {
		p.HideFrom = cfg.Expansion.HideFrom
		return p
	}
	a.expander = expand.New(a.cluster, matrices{a.store, a.cluster, nil}, rewriting(cfg.Expansion.Profile)).WithHits(hits)
	if a.weights != nil {
		a.expander = a.expander.WithWeights(weightSource{a.weights, a.cluster})
	}
	if len(models) > 0 {
		a.expander = a.expander.WithVectors(&vectorSource{models: models, cluster: a.cluster, log: a.log})
	}
	if a.embeddings != nil {
		a.expander = a.expander.WithDocuments(a.embeddings)
	}
	if cfg.Expansion.Enabled {
		options.Expander = a.expander
	}
	for name, p := range cfg.Profiles {
		if !p.Enabled {
			continue
		}
		e := a.expander.With(rewriting(p.Profile))
		if len(p.Matrices) > 0 {
			e = e.WithMatrices(matrices{a.store, a.cluster, p.Matrices})
		}
		options.Profiles[name] = e
	}
	a.expander.Limits().OnChange = a.logLimit
	options.OnRefused = func(r *expand.Refusal) bool { return a.learn(r) }
}

// learn reports whether a refusal taught something new: a limit, which is then
// asked of the cluster, or that the indices have changed.
func (a *App) learn(r *expand.Refusal) bool {
	limit, ok := r.Limit()
	if !ok {
		return r.Moved() && a.cluster.Forget(r.Index)
	}
	news := a.expander.Limits().Learn(limit)
	if news {
		setting := map[expand.LimitKind]string{
			expand.LimitClauses: esclient.MaxClauses, expand.LimitRescore: esclient.MaxRescoreWindow, expand.LimitResults: esclient.MaxResultWindow,
		}[limit.Kind]
		a.cluster.AskLimit(setting, limit.Index, func(n int64) {
			a.expander.Limits().Correct(expand.Limit{Kind: limit.Kind, Index: limit.Index, N: n})
		})
	}
	return news
}

func (a *App) logLimit(l expand.Limit) {
	if l.N == 0 {
		a.log.Info("a limit of the cluster is to be learned again", "kind", l.Kind, "index", l.Index)
		return
	}
	a.log.Info("searches are kept under a limit of the cluster", "kind", l.Kind, "index", l.Index, "limit", l.N)
}
