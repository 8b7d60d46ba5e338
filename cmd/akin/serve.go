package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"

	"github.com/spf13/cobra"

	"github.com/akin-search/akin/configs"
)

func newServe() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "serve --config FILE",
		Short: "Stand in front of a cluster and expand its searches",
		Long: `serve forwards every request to the cluster and expands the searches among them.
Whatever goes wrong, the original request goes on. The admin port has /healthz,
/readyz, /metrics, POST /_akin/expand/{index} and GET /_akin/explanations; it
shows the texts of searches.`,
		Example: `  akin serve --config configs/akin.yml`,
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file == "" {
				return usageError{errors.New("give --config FILE")}
			}
			cfg, err := configs.Load(file)
			if err != nil {
				return usageError{err}
			}
			return serve(cmd.Context(), cfg, cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVar(&file, "config", "", "configuration file (required)")
	return cmd
}

// must panics for an error that only a mistake in this program can cause.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

func serve(ctx context.Context, cfg *configs.Config, stderr io.Writer) error {
	log := newLogger(cfg.Log, stderr)
	a, err := newApp(ctx, cfg, nil, log)
	if err != nil {
		return err
	}
	defer a.close()
	listener, err := listen(ctx, cfg.Listen)
	if err != nil {
		return err
	}
	admin, err := new(net.ListenConfig).Listen(ctx, "tcp", cfg.Admin.Address)
	if err != nil {
		return fmt.Errorf("admin: %w", err)
	}
	log.InfoContext(ctx, "listening", "proxy", listener.Addr().String(), "admin", admin.Addr().String())
	return a.serve(ctx, listener, admin)
}

// listen opens the listener for clients, with TLS where it is configured.
func listen(ctx context.Context, cfg configs.Listen) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", cfg.Address)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	if cfg.TLS.CertFile == "" {
		return l, nil
	}
	cert, err := tls.LoadX509KeyPair(cfg.TLS.CertFile, cfg.TLS.KeyFile)
	if err != nil {
		return nil, usageError{fmt.Errorf("listen.tls: %w", err)}
	}
	return tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}), nil
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
