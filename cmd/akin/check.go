package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/internal/serve"
)

func newCheck() *cobra.Command {
	var file, index string
	asJSON := false
	cmd := &cobra.Command{
		Use: "check [--config FILE]", Short: "Check a configuration: cluster, privileges, Redis, matrices, fields",
		Long: `check tries a configuration and changes nothing: each node of the cluster, the privileges
of akin's own calls, certificates, Redis, and each matrix. For each text field of the
indices that matrices are bound to, or of --index, it expands searches for a few words of
documents like akin serve. It prints the matrix and the form, or why the search stays
unchanged. If few terms are known, the matrix has another language or analyzer.

The exit status is 1 if there is an error, otherwise 0. Warnings are not errors.`,
		Example: `  akin check
  akin check --config akin.yml --index products --json`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			report := runCheck(cmd.Context(), file, index)
			if err := cli.Print(cmd.OutOrStdout(), asJSON, report, report.Print); err != nil {
				return err
			}
			return report.Err()
		},
	}
	cmd.Flags().StringVar(&file, "config", cli.UsualConfig, "configuration file")
	cmd.Flags().StringVar(&index, "index", "", "indices to check; default those that matrices are bound to")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// runCheck tries the configuration in a file. index, unless "", replaces the
// indices that matrices are bound to.
func runCheck(ctx context.Context, file, index string) *checkReport {
	r := &checkReport{Checks: []checkResult{}, Fields: []checkedField{}}
	cfg, err := configs.Load(ctx, file)
	if err != nil {
		problems := []error{err}
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			problems = joined.Unwrap()
		}
		for _, problem := range problems {
			r.fail("configuration", problem)
		}
		return r
	}
	r.add(verdictOK, "configuration", file)
	r.certificates(cfg)
	reached := r.nodes(ctx, cfg)
	app, err := serve.New(ctx, serve.Options{Config: cfg, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		r.fail("configuration", err)
		return r
	}
	defer app.Close()
	r.matrices(cfg, app)
	if cfg.Embeddings.URL != "" {
		host, dim, err := app.TryModel(ctx)
		if err != nil {
			r.fail("language model", err)
		} else {
			r.add(verdictOK, "language model", fmt.Sprintf("%s answers with vectors of %d numbers", host, dim))
			if reached {
				r.vectors(ctx, cfg, app, dim)
			}
		}
	}
	if reached {
		r.fields(ctx, cfg, app, index)
	}
	return r
}
