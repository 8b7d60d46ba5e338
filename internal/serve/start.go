package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/proxy"
)

// Run serves until ctx ends as the file says, which was read as cfg, and reads
// it again at each SIGHUP. build is this akin; the log goes to stderr, the
// access log to stdout.
func Run(ctx context.Context, file string, cfg *configs.Config, build Build, stdout, stderr io.Writer) error {
	hangup, stopHangup := onHangup()
	defer stopHangup()
	log := newLogger(cfg.Log, stderr)
	a, err := New(ctx, Options{Config: cfg, Log: log, Build: build, Stdout: stdout})
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

// Listen opens the listeners of clients and of operators, or none.
func Listen(ctx context.Context, cfg *configs.Config) (clients, admin net.Listener, err error) {
	if clients, err = new(net.ListenConfig).Listen(ctx, "tcp", cfg.Listen.Address); err != nil {
		return nil, nil, fmt.Errorf("listen: %w", err)
	}
	if admin, err = new(net.ListenConfig).Listen(ctx, "tcp", cfg.Admin.Address); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("admin: %w", err), clients.Close())
	}
	return clients, admin, nil
}

// Serve answers on the two listeners until ctx ends. Requests are forwarded at
// once; meanwhile the cluster is asked for what the first searches will need.
func (a *App) Serve(ctx context.Context, clients, admin net.Listener) error {
	starting, stop := context.WithCancel(ctx)
	var started sync.WaitGroup
	defer started.Wait()
	defer stop()
	started.Go(func() { a.start(starting) })
	return proxy.NewFront(a.server, nil).Serve(ctx, clients, admin)
}

// start says what has been started, waits for the cluster and warms up.
func (a *App) start(ctx context.Context) {
	info, err := a.ask(ctx)
	a.announce(ctx, info, err)
	if a.awaitNode(ctx) != nil {
		return
	}
	if err != nil { // it may have been away
		if info, err = a.ask(ctx); err == nil {
			a.log.InfoContext(ctx, "the cluster answers", "cluster", describe(info))
		}
	}
	a.warmUp(ctx)
}
