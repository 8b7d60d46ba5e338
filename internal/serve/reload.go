package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/proxy"
)

// readyWithin is how long a new configuration has to reach the cluster.
const readyWithin = 10 * time.Second

// Results of a reload, values of the label "result".
const reloaded, notReloaded = "ok", "failed"

// A reloader replaces the configuration while requests are served.
type reloader struct {
	file       string
	stderr     io.Writer
	front      *proxy.Front
	shown      *certificate // nil for plain HTTP
	app        *App         // in use
	reloads    *prometheus.CounterVec
	successful prometheus.Gauge
	retired    sync.WaitGroup // apps that are still to be closed
}

// newReloader returns a reloader for a, which was made from file.
func newReloader(file string, a *App, shown *certificate, front *proxy.Front, stderr io.Writer) *reloader {
	registering := promauto.With(a.process.registry)
	r := &reloader{
		file: file, stderr: stderr, front: front, shown: shown, app: a,
		reloads: registering.NewCounterVec(prometheus.CounterOpts{
			Name: "akin_config_reloads_total", Help: "SIGHUPs, by whether the configuration was put to use.",
		}, []string{"result"}),
		successful: registering.NewGauge(prometheus.GaugeOpts{
			Name: "akin_config_last_reload_successful", Help: "Whether the configuration that was read last is in use.",
		}),
	}
	for _, result := range []string{reloaded, notReloaded} {
		r.reloads.WithLabelValues(result)
	}
	r.successful.Set(1)
	return r
}

// run reloads at each hangup until ctx ends.
func (r *reloader) run(ctx context.Context, hangup <-chan os.Signal) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangup:
			r.reload(ctx)
		}
	}
}

// close closes the current app, after those that it has replaced.
func (r *reloader) close() {
	r.retired.Wait()
	r.app.Close()
}

// reload loads the configuration on disk, or changes nothing and logs why.
func (r *reloader) reload(ctx context.Context) {
	if r.file == "" {
		r.app.log.WarnContext(ctx, "there is no configuration file to read again")
		return
	}
	var kept []string
	err := r.app.process.guard.Do("reloading", func() (err error) {
		kept, err = r.replace(ctx)
		return err
	})
	if ctx.Err() != nil && err != nil {
		return // the process is shutting down
	}
	if err != nil {
		r.reloads.WithLabelValues(notReloaded).Inc()
		r.successful.Set(0)
		r.app.process.reloadFailed.Store(true)
		r.app.log.ErrorContext(ctx, "configuration not reloaded, the old one stays in use", "file", r.file, "problems", strings.Split(err.Error(), "\n"))
		return
	}
	r.reloads.WithLabelValues(reloaded).Inc()
	r.successful.Set(1)
	r.app.process.reloadFailed.Store(false)
	for _, key := range kept {
		r.app.log.WarnContext(ctx, "a changed key is not put to use before a restart", "key", key)
	}
	r.app.log.InfoContext(ctx, "configuration reloaded", "file", r.file)
	info, err := r.app.ask(ctx)
	r.app.announce(ctx, info, err)
}

// replace sends requests to a new app with the configuration on disk, and
// closes the old one later. It returns the changed keys that need a restart.
func (r *reloader) replace(ctx context.Context) (kept []string, err error) {
	read, cancel := context.WithTimeoutCause(ctx, readyWithin, errors.New("it does not end")) // a pipe never ends
	defer cancel()
	cfg, err := configs.Load(read, r.file)
	if err != nil {
		return nil, err
	}
	kept = keepFixed(cfg, r.app.cfg)
	log := newLogger(cfg.Log, r.stderr)
	var shown *certificate
	if r.shown != nil {
		if shown, err = newCertificate(cfg.Listen.TLS, log); err != nil {
			return nil, err
		}
	}
	next, err := newApp(ctx, Options{Config: cfg, Log: log}, r.app.process, r.app.server)
	if err != nil {
		return nil, err
	}
	reach, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	if err := next.awaitNode(reach); err != nil {
		next.Close()
		return nil, fmt.Errorf("not ready within %v: no node of the cluster answers: %w", readyWithin, err)
	}
	next.warmUp(ctx) // fill the caches for the first searches
	if shown != nil {
		r.shown.replace(shown)
	}
	old := r.app
	next.process.shown.Store(next.metrics)
	next.process.guard.SetLogger(log)
	next.process.memory.Resize(int64(cfg.Memory.InFlight)) // not before: a configuration that fails changes nothing
	r.front.Replace(next.server)
	r.app = next
	r.retired.Go(func() {
		wait, cancel := context.WithTimeout(context.WithoutCancel(ctx), configs.ShutdownTimeout)
		defer cancel()
		old.server.Wait(wait)
		old.Close()
	})
	return kept, nil
}

// keepFixed gives next the values of old that cannot change while the process
// runs, and returns the keys that differ.
func keepFixed(next, old *configs.Config) (kept []string) {
	keep := func(key string, differ bool, take func()) {
		if differ {
			kept = append(kept, key)
			take()
		}
	}
	n, o := &next.Listen, &old.Listen
	keep("listen.address", n.Address != o.Address, func() { n.Address = o.Address })
	keep("listen.tls", (n.TLS.CertFile == "") != (o.TLS.CertFile == ""), func() { n.TLS = o.TLS })
	keep("listen.max_connections", n.MaxConnections != o.MaxConnections, func() { n.MaxConnections = o.MaxConnections })
	keep("listen.idle_timeout", n.IdleTimeout != o.IdleTimeout, func() { n.IdleTimeout = o.IdleTimeout })
	keep("admin.address", next.Admin.Address != old.Admin.Address, func() { next.Admin.Address = old.Admin.Address })
	s, t := &next.Searches, &old.Searches
	keep("searches.collect", s.Collect != t.Collect, func() { s.Collect = t.Collect })
	keep("searches.keep", s.Keep != t.Keep, func() { s.Keep = t.Keep })
	keep("searches.file", s.File != t.File, func() { s.File = t.File })
	return kept
}

// Run serves until ctx ends, configured by cfg, read from file. It reloads file
// at each SIGHUP. The log goes to stderr, the access log to stdout.
func Run(ctx context.Context, file string, o Options, stderr io.Writer) error {
	cfg := o.Config
	hangup := make(chan os.Signal, 1) // merges hangups that nobody has received yet
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	log := newLogger(cfg.Log, stderr)
	o.Log = log
	a, err := New(ctx, o)
	if err != nil {
		return err
	}
	var shown *certificate // nil for plain HTTP
	var encrypted *tls.Config
	if cfg.Listen.TLS.CertFile != "" {
		if shown, err = newCertificate(cfg.Listen.TLS, log); err != nil {
			a.Close()
			return err
		}
		encrypted = shown.config()
	}
	listener, admin, err := Listen(ctx, cfg)
	if err != nil {
		a.Close()
		return err
	}
	front := proxy.NewFront(a.server, encrypted)
	reloads := newReloader(file, a, shown, front, stderr)
	defer reloads.close()
	var running sync.WaitGroup
	defer running.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	running.Go(func() { reloads.run(ctx, hangup) })
	log.InfoContext(ctx, "listening", "proxy", listener.Addr().String(), "admin", admin.Addr().String())
	running.Go(func() { a.start(ctx) })
	return front.Serve(ctx, listener, admin)
}

// Listen opens the listeners for clients and operators, or neither.
func Listen(ctx context.Context, cfg *configs.Config) (clients, admin net.Listener, err error) {
	if clients, err = new(net.ListenConfig).Listen(ctx, "tcp", cfg.Listen.Address); err != nil {
		return nil, nil, fmt.Errorf("listen: %w", err)
	}
	if admin, err = new(net.ListenConfig).Listen(ctx, "tcp", cfg.Admin.Address); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("admin: %w", err), clients.Close())
	}
	return clients, admin, nil
}

// Serve serves both listeners until ctx ends. It forwards requests at once and
// fills the caches meanwhile.
func (a *App) Serve(ctx context.Context, clients, admin net.Listener) error {
	starting, stop := context.WithCancel(ctx)
	var started sync.WaitGroup
	defer started.Wait()
	defer stop()
	started.Go(func() { a.start(starting) })
	return proxy.NewFront(a.server, nil).Serve(ctx, clients, admin)
}

// start logs the start, waits for the cluster and warms up.
func (a *App) start(ctx context.Context) {
	info, err := a.ask(ctx)
	a.announce(ctx, info, err)
	if a.awaitNode(ctx) != nil {
		return
	}
	if err != nil { // it may have been down
		if info, err = a.ask(ctx); err == nil {
			a.log.InfoContext(ctx, "the cluster answers", "cluster", info.String())
		}
	}
	a.warmUp(ctx)
}

// certificateEvery is the minimum pause between two checks for changed
// certificate files; a handshake costs more than one.
const certificateEvery = 3 * time.Second

// A certificate is shown to clients and follows changes of its files.
type certificate struct {
	log *slog.Logger

	mu      sync.Mutex
	files   configs.ServerTLS
	pair    *tls.Certificate
	seen    [2]string // times and sizes of the files when last read
	checked time.Time
}

func newCertificate(paths configs.ServerTLS, log *slog.Logger) (*certificate, error) {
	c := &certificate{log: log, files: paths, seen: timesAndSizes(paths), checked: time.Now()}
	var err error
	c.pair, err = readPair(paths)
	return c, err
}

// replace makes c a copy of next.
func (c *certificate) replace(next *certificate) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.log = next.log
	c.files = next.files
	c.pair = next.pair
	c.seen = next.seen
	c.checked = next.checked
}

func (c *certificate) config() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.get}
}

// get returns the pair in the files, or the last good one if they cannot be
// read or do not fit together.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.checked) < certificateEvery {
		return c.pair, nil
	}
	c.checked = time.Now()
	before := c.seen
	if c.seen = timesAndSizes(c.files); c.seen == before {
		return c.pair, nil
	}
	pair, err := readPair(c.files)
	if err != nil { // logged once per change: the files are not read again before the next one
		c.log.Warn("the certificate for clients has changed and cannot be used, the old one stays", "err", err)
		return c.pair, nil
	}
	c.pair = pair
	c.log.Info("the certificate for clients was renewed", "not_after", pair.Leaf.NotAfter)
	return pair, nil
}

func readPair(paths configs.ServerTLS) (*tls.Certificate, error) {
	pair, err := cli.LoadPair(paths.CertFile, paths.KeyFile)
	if err != nil {
		return nil, cli.Usage(fmt.Errorf("listen.tls: %w", err))
	}
	return pair, nil
}

// timesAndSizes shows whether one of the files has changed.
func timesAndSizes(paths configs.ServerTLS) (all [2]string) {
	for i, name := range []string{paths.CertFile, paths.KeyFile} {
		if info, err := os.Stat(name); err == nil {
			all[i] = fmt.Sprint(info.ModTime().UnixNano(), info.Size())
		}
	}
	return all
}
