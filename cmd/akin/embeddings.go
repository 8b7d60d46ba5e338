package main

import (
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/internal/serve"
)

func newEmbeddings() *cobra.Command {
	return cli.Group(&cobra.Command{
		Use: "embeddings", Short: "Make vectors of documents, for rerank: embeddings",
		Long: `With rerank: embeddings akin orders the first hits of a search by vectors that a language
model makes. akin serve has those of documents made in the background. "embeddings warm"
makes all of them at once, before. See docs/modes.md for more.`,
		Example: `  akin embeddings warm --config akin.yml --dry-run
  akin embeddings warm --config akin.yml`,
	}, newEmbeddingsWarm())
}

// perCall is about how many documents go to the model in a call.
const perCall = 20

func newEmbeddingsWarm() *cobra.Command {
	var file string
	dryRun := false
	cmd := &cobra.Command{
		Use: "warm [--config FILE]", Short: "Make the vectors of all documents",
		Long: `warm reads the documents of all indices that matrices are bound to, sends their texts in
the fields of embeddings.fields to the language model of embeddings.url, and keeps the
vectors in embeddings.file or in Redis, where akin serve finds them. It says before how
many documents that are, and where their texts go. What has a vector is not sent again:
run it again after an interruption, or when many documents have changed.

A file of vectors is for one process at a time, so stop akin serve, or use Redis.`,
		Example: `  akin embeddings warm --config akin.yml --dry-run
  akin embeddings warm --config akin.yml`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			cfg, err := configs.Load(ctx, file)
			if err != nil {
				return cli.Usage(err)
			}
			cfg.Expansion.RerankWarmUp = false
			app, err := serve.New(ctx, serve.Options{Config: cfg, Log: slog.New(slog.DiscardHandler)})
			if err != nil {
				return err
			}
			defer app.Close()
			plan, err := app.PlanEmbeddings(ctx)
			if err != nil {
				return err
			}
			report := cli.NewProgress(cmd.ErrOrStderr())
			defer report.End()
			report.Tell("up to %d texts of %d documents in %s go to %s, in %d calls or fewer; those that have a vector do not",
				plan.Documents, plan.Documents, strings.Join(plan.Indices, ", "), plan.Host, (plan.Documents+perCall-1)/perCall)
			if dryRun {
				return errDryRun
			}
			made, err := app.Embed(ctx, plan, func(n int) { report.Step("documents", n, int(plan.Documents)) })
			report.Tell("the model made %d vectors", made)
			return err
		},
	}
	cmd.Flags().StringVar(&file, "config", cli.UsualConfig, "configuration file")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print what would be sent to the model, and send and write nothing")
	return cmd
}
