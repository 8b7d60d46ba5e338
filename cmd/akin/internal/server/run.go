package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/proxy"
)

// Run serves until ctx ends as the file says, which was read as cfg, and reads
// it again at each SIGHUP. version is that of akin, and the log goes to stderr.
func Run(ctx context.Context, file string, cfg *configs.Config, version string, stderr io.Writer) error {
	hangup, stopHangup := onHangup()
	defer stopHangup()
	log := newLogger(cfg.Log, stderr)
	a, err := New(ctx, Options{Config: cfg, Log: log, Version: version})
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

const (
	otherFiles        = 128   // no client's: the admin port, Redis, akin's own calls to the cluster, matrix files
	fewestConnections = 16    // served however few files there are
	mostConnections   = 10000 // by default: they take about 200 MB while all are idle
)

// connections returns how many clients may be connected: as configured or, for
// 0, as many as there are files for. A client takes one for itself, one for its
// request to the cluster, and one for a connection to there that is idle. files
// is 0 where it is not known.
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
	must(level.UnmarshalText([]byte(cfg.Level))) // configs lets no other names through
	options := &slog.HandlerOptions{Level: level}
	if cfg.Format == configs.FormatText {
		return slog.New(slog.NewTextHandler(w, options))
	}
	return slog.New(slog.NewJSONHandler(w, options))
}
