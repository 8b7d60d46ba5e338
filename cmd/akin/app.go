package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/akin-search/akin/cmd/akin/internal/terminal"
	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/internal/budget"
	"github.com/akin-search/akin/internal/nodes"
	"github.com/akin-search/akin/internal/recovery"
	"github.com/akin-search/akin/proxy"
	"github.com/akin-search/akin/rerank"
	"github.com/akin-search/akin/simmatrix/rowstore"
)

// An app is the proxy with all that it is wired to.
type app struct {
	server  *proxy.Server
	nodes   *nodes.Pool
	client  *esclient.Client
	cluster *esclient.Cached
	store   *rowstore.Store       // nil where no matrix is configured
	weights *rowstore.Store       // nil where no weights are configured
	rerank  *rerank.Reranker      // nil where nothing is ranked softly
	limits  func() []expand.Limit // those known of the cluster, nil where nothing is rewritten
	cfg     *configs.Config
	stop    context.CancelFunc
	beside  sync.WaitGroup // what runs until stop is called
	log     *slog.Logger
	// expander rewrites searches as cfg.Expansion says, also where that is
	// switched off; nil where no matrix is configured.
	expander *expand.Expander
	// warm says that the first searches find what they need in the caches.
	warm atomic.Bool
	// reloadFailed says that the configuration on disk could not be put to use.
	reloadFailed atomic.Bool
	// registry, shown, guard and memory, of what is held for requests, outlive a
	// reload. own has the metrics that end
	// with this app; registry shows them while it is in use.
	registry, own *prometheus.Registry
	shown         *shownMetrics
	guard         *recovery.Guard
	memory        *budget.Budget
}

// newApp wires a proxy as cfg says. files has matrices that do not come from
// the place configured, by name. previous is the app that this one is to
// replace, nil at the start: its metrics and its memory budget go on.
func newApp(
	ctx context.Context, cfg *configs.Config, files map[string]rowstore.Loader, log *slog.Logger, previous *app,
) (a *app, err error) {
	a = &app{
		cfg: cfg, log: log, registry: prometheus.NewRegistry(), own: prometheus.NewRegistry(), shown: &shownMetrics{},
	}
	if previous != nil {
		a.registry, a.shown, a.guard, a.memory = previous.registry, previous.shown, previous.guard, previous.memory
	} else if a.guard, err = recovery.New(log, a.registry); err != nil {
		return nil, err
	}
	if a.memory == nil {
		a.memory = budget.New(int64(cfg.Memory.InFlight))
	}
	for _, warning := range cfg.Warnings {
		log.WarnContext(ctx, "configuration", "warning", warning)
	}
	a.trim(ctx)
	defer func() {
		if err != nil {
			a.close()
			a = nil
		}
	}()
	if err = a.openCluster(cfg); err != nil {
		return a, err
	}
	options := a.proxyOptions(cfg, previous)
	if err = a.openStores(ctx, cfg, files, a.guard); err != nil {
		return a, terminal.Usage(err)
	}
	if ranks(cfg, configs.ModeSoft) {
		a.rerank = rerank.New(rerank.Options{
			Vectors: vectors{a.client}, Bytes: size(cfg.Caches.Vectors), TTL: time.Duration(cfg.Caches.TTL),
			Guard: a.guard, Client: proxy.ClientOf,
		})
		options.Reranker, options.RerankBudget = reranker{a.rerank}, time.Duration(cfg.Expansion.RerankBudget)
	}
	a.expanders(cfg, &options) //nolint:contextcheck // What a refusal teaches outlives the client's request.
	if a.server, err = proxy.New(options); err != nil {
		return a, terminal.Usage(err)
	}
	a.register(previous == nil)
	return a, nil
}

// openCluster makes what talks to the cluster: the pool of its nodes, which
// clients' requests and akin's own calls share, and the latter's client and
// caches.
func (a *app) openCluster(cfg *configs.Config) error {
	ca, err := readCA(cfg.Cluster.TLS.CAFile)
	if err != nil {
		return err
	}
	clusterTLS, err := upstreamTLS(cfg.Cluster.TLS, ca)
	if err != nil {
		return err
	}
	if a.nodes, err = nodes.New(nodes.Options{
		URLs: cfg.Cluster.URLs, TLS: clusterTLS, Logger: a.log, Guard: a.guard, Registerer: a.own, MaxIdle: connections(cfg.Listen.MaxConnections, openFiles()),
	}); err != nil {
		return terminal.Usage(err)
	}
	if a.client, err = esclient.New(esclient.Options{
		Transport: a.nodes, // akin's own calls avoid a node that is not well, too
		Username:  cfg.Cluster.Auth.Username, Password: cfg.Cluster.Auth.Password.Reveal(), APIKey: cfg.Cluster.Auth.APIKey.Reveal(),
		Guard: a.guard, Memory: a.memory.Hold(budget.OwnCall, ""),
	}); err != nil {
		return terminal.Usage(err)
	}
	a.cluster = esclient.NewCached(a.client, esclient.CacheOptions{
		AnalysisBytes: size(cfg.Caches.Analysis), StatisticsBytes: size(cfg.Caches.Statistics), TTL: time.Duration(cfg.Caches.TTL),
		Client: proxy.ClientOf,
	})
	return nil
}

// proxyOptions returns what cfg says of the server.
func (a *app) proxyOptions(cfg *configs.Config, previous *app) proxy.Options {
	options := proxy.Options{
		Nodes:  a.nodes,
		Budget: time.Duration(cfg.Expansion.Budget), Memory: a.memory,
		MaxBody: int64(cfg.Expansion.MaxBody), BodyTimeout: time.Duration(cfg.Listen.BodyTimeout),
		Cause: cause, Causes: causes(), Check: a.check,
		RankEval: cfg.Expansion.RankEval, Templates: cfg.Expansion.Templates, Shadow: cfg.Expansion.Shadow,
		// Who has credentials for akin's own calls has a cluster that asks for them.
		Secured:    cfg.Cluster.Auth.Username != "" || cfg.Cluster.Auth.APIKey.Reveal() != "",
		AdminHosts: append([]string{hostOf(cfg.Admin.Address)}, cfg.Admin.Hosts...),
		Logger:     a.log, LogQueries: cfg.Log.Queries,
		Registry: a.registry, Guard: a.guard,
	}
	options.ForwardedHeaders = cfg.Listen.ForwardedHeaders
	if previous != nil {
		options.Previous = previous.server
	}
	options.MaxHeader = int(cfg.Listen.MaxHeader)
	options.MaxConnections = connections(cfg.Listen.MaxConnections, openFiles())
	options.IdleTimeout = time.Duration(cfg.Listen.IdleTimeout)
	options.ShutdownDelay = time.Duration(cfg.Shutdown.Delay)
	options.ShutdownTimeout = time.Duration(cfg.Shutdown.Timeout)
	return options
}

// register has a tell of its caches and stores, and at the start of the process
// of that.
func (a *app) register(start bool) {
	a.own.MustRegister(&collector{cluster: a.cluster, limits: a.limits, store: a.store, weights: a.weights, rerank: a.rerank, memory: a.memory})
	if start {
		a.shown.Store(a.own)
		a.registry.MustRegister(a.shown, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	}
}

// hostOf returns the host of a host:port that configs let through.
func hostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	must(err)
	return host
}

// close ends what newApp started. It may be called on a part of it.
func (a *app) close() {
	if a.server != nil {
		a.server.Close()
	}
	if a.rerank != nil {
		a.rerank.Close()
	}
	for _, store := range []*rowstore.Store{a.store, a.weights} {
		if store == nil {
			continue
		}
		if err := store.Close(); err != nil {
			a.log.Warn("closing the row store", "err", err)
		}
	}
	if a.cluster != nil {
		a.cluster.Close()
	}
	if a.client != nil {
		if err := a.client.Close(); err != nil {
			a.log.Warn("closing the cluster client", "err", err)
		}
	}
	if a.nodes != nil {
		a.nodes.Close()
	}
	a.stop()
	a.beside.Wait()
}

// trim has memory given back to the system after bursts, until close.
func (a *app) trim(ctx context.Context) {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	a.stop = stop
	a.beside.Go(func() { a.memory.Trim(ctx) })
}

// openStores opens the stores of the matrices and of the weights, where there
// are some.
func (a *app) openStores(ctx context.Context, cfg *configs.Config, files map[string]rowstore.Loader, guard *recovery.Guard) (err error) {
	if len(cfg.Matrices) > 0 {
		if a.store, err = openStore(ctx, cfg, cfg.Matrices, files, guard, a.log); err != nil {
			return err
		}
	}
	if len(cfg.Weights) > 0 {
		if a.weights, err = openStore(ctx, cfg, cfg.Weights, nil, guard, a.log.With("of", "weights")); err != nil {
			return err
		}
	}
	return nil
}

// openStore opens a store of the entries of one list. files has matrices that
// do not come from the place configured, by name.
func openStore(
	ctx context.Context, cfg *configs.Config, entries []configs.Matrix, files map[string]rowstore.Loader, guard *recovery.Guard, log *slog.Logger,
) (*rowstore.Store, error) {
	certificates, err := redisTLS(cfg.Redis.TLS)
	if err != nil {
		return nil, err
	}
	options := rowstore.Options{
		Files:        map[string]rowstore.Loader{},
		Redis:        rowstore.Redis{URL: cfg.Redis.URL.Reveal(), TLS: certificates},
		RedisTimeout: time.Duration(cfg.Redis.Timeout),
		CacheBytes:   size(cfg.Caches.Rows),
		Guard:        guard,
		OnState: func(s rowstore.State) {
			level := slog.LevelInfo
			if s.Problem != "" {
				level = slog.LevelWarn
			}
			log.Log(context.WithoutCancel(ctx), level, "matrix", "name", s.Name, "source", s.Source,
				"version", s.Version, "terms", s.Terms, "problem", s.Problem)
		},
	}
	for _, m := range entries {
		options.Bindings = append(options.Bindings, rowstore.Binding{Name: m.Name, Indices: m.Indices, Fields: m.Fields})
		switch load := files[m.Name]; {
		case load != nil:
			options.Files[m.Name] = load
		case m.File != "":
			options.Files[m.Name] = followFile(m.File)
		}
	}
	return rowstore.Open(ctx, options)
}

func readCA(file string) ([]byte, error) {
	if file == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(file) //nolint:gosec // the operator names the file
	if err != nil {
		return nil, terminal.Usage(fmt.Errorf("certificate authorities: %w", err))
	}
	return pem, nil
}

// upstreamTLS returns how the forwarded requests verify the cluster.
func upstreamTLS(cfg configs.ClientTLS, ca []byte) (*tls.Config, error) {
	c := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: cfg.InsecureSkipVerify, //nolint:gosec // off unless the operator asks for it
	}
	if ca != nil {
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(ca) {
			return nil, terminal.Usage(errors.New("cluster.tls.ca_file: no certificate in it"))
		}
	}
	return c, nil
}

// size returns a number of bytes, which configs lets through only where it is
// positive.
func size(b configs.Bytes) uint64 { return uint64(max(b, 0)) }
