package main

import (
	"errors"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/expand/form"
	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/tools/reweigh"
)

type learnFlags struct {
	cluster cli.Cluster
	redis   cli.Redis
	source  reweigh.Source
	out     string
}

func newMatrixLearn() *cobra.Command {
	var f learnFlags
	cmd := &cobra.Command{
		Use: "learn MATRIX --out FILE", Short: "Learn from judgments or clicks which entries help",
		Long: `learn reads the documents of an index and what judges or users said about them. It changes
the matrix so that useful documents rank higher: misleading neighbors get lower
similarities and others higher ones, by a factor from 0 to 2. Words of queries get new
neighbors from the useful documents. learn holds out a quarter of the queries at a time,
and makes no change that does not help them. Without enough evidence the matrix stays
unchanged.

Give --judgments, as for akin eval, or --clicks, a file with a line for each answer
shown:

  {"query_id": "17", "query": "car hire", "shown": ["doc1", "doc2"], "clicked": ["doc2"]}

Users look less at later hits: learn assumes that they look at rank k 1/k times as often
as at the first.

` + cli.MatrixHelp + `

` + cli.Credentials,
		Example: `  akin matrix learn docs.akin --cluster http://127.0.0.1:9200 --index docs --field body \
    --queries queries.jsonl --judgments qrels.tsv --out learned.akin
  akin matrix learn docs.akin --cluster http://127.0.0.1:9200 --index docs --field body \
    --clicks clicks.jsonl --out learned.akin`,
		Args:    cli.ExactArgs(1),
		PreRunE: f.check, RunE: f.run,
	}
	f.redis.RegisterServer(cmd)
	flags := cmd.Flags()
	f.cluster.Register(flags, "URL of the cluster")
	flags.StringVar(&f.source.Field, "field", "", "text field that is searched")
	f.source.Register(flags, "file of judgments")
	flags.StringVar(&f.source.Clicks, "clicks", "", "file of shown and clicked documents")
	flags.StringVar(&f.out, "out", "", "file to write the matrix to (required)")
	new(cli.Config).Register(cmd, &f.cluster, &f.redis)
	return cmd
}

func (f *learnFlags) check(*cobra.Command, []string) error {
	var errs []error
	if f.cluster.URL == "" || f.cluster.Index == "" || f.source.Field == "" || f.out == "" {
		errs = append(errs, errors.New("give --cluster, --index, --field and --out"))
	}
	if (f.source.Judgments == "") == (f.source.Clicks == "") {
		errs = append(errs, errors.New("give one of --judgments and --clicks"))
	}
	if f.source.Queries != "" && f.source.Judgments == "" {
		errs = append(errs, errors.New("--queries goes with --judgments"))
	}
	return cli.Usage(errors.Join(append(errs, cli.CheckTarget(f.out))...))
}

func (f *learnFlags) run(cmd *cobra.Command, args []string) error {
	ctx := cmd.Context()
	m, err := f.redis.Matrix(ctx, cmd.ErrOrStderr(), args[0])
	if err != nil {
		return err
	}
	client, err := f.cluster.Open()
	if err != nil {
		return err
	}
	defer client.Close()
	report := cli.NewProgress(cmd.ErrOrStderr())
	defer report.End()
	f.source.Client = client
	f.source.Index = f.cluster.Index
	f.source.Report = report
	searches, unit, err := f.source.Searches(ctx)
	if err != nil {
		return err
	}
	collection, err := f.source.Collection(ctx)
	if err != nil {
		return err
	}
	if unknown := unknownDocuments(searches, collection); len(unknown) > 0 {
		report.Tell("%d documents that were judged or shown are not in %s and do not count: %s", len(unknown), f.cluster.Index, cli.Some(unknown))
	}
	expansion := configs.Default().Expansion
	r, err := reweigh.Learn(ctx, m, collection, searches, reweigh.Options{
		Strength: form.LambdaOf(expansion.Strength).Saturated, Added: expansion.MaxAddedTerms, MaxShare: expansion.MaxDocShare,
		OnlyKnown: f.source.Judgments == "", Unit: unit,
	}, report.Step)
	if err != nil {
		return err
	}
	if r.Matrix == m {
		report.Tell("learn could use %d of %d queries, which is not enough evidence for a change: %s is the unchanged matrix",
			r.Searches, len(searches), f.out)
	} else {
		report.Tell("learned from %d of %d queries: %d entries scaled, %d removed, %d new; nDCG@10 of queries held out %.4f, before %.4f",
			r.Searches, len(searches), r.Scaled, r.Removed, r.New, r.After, r.Before)
	}
	return cli.WriteMatrix(ctx, f.out, r.Matrix)
}

func unknownDocuments(searches []reweigh.Search, there *reweigh.Collection) []string {
	unknown := map[string]bool{}
	for _, s := range searches {
		for id := range s.Documents {
			if !there.Has(id) {
				unknown[id] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(unknown))
}
