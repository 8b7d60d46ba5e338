package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/akin-search/akin/cmd/akin/internal/connect"
	"github.com/akin-search/akin/cmd/akin/internal/terminal"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/norms"
)

// backfillFlags are the flags of "norms backfill".
type backfillFlags struct {
	fillFlags

	redis   connect.Redis
	weights string
}

const backfillHelp = `backfill computes ‖Wy‖ of every document that has the field and does not have it by these
weights yet, and stores it in the document with the id of the weights: in ` + esclient.NormObject + ` and
` + esclient.NormWeightsObject + `, under the name of the field with "__" for each ".". The document frequencies
of MATRIX make the weights: "norms snapshot" writes them. ` + matrixHelp + `

` + fillHelp + ` Start one for each field, again when there are new weights,
and with --all after a time without it.

Refused are fields of nested documents, fields that others are copied to by copy_to, and
indices that do not keep the whole _source or lack the mapping, which is then printed.
docs/modes.md has the rest, docs/security.md the rights.

` + connect.Credentials

func newNormsBackfill() *cobra.Command {
	var f backfillFlags
	cmd := &cobra.Command{
		Use:   "backfill --cluster URL --index INDEX --field FIELD --weights MATRIX",
		Short: "Compute and store the lengths of the documents of an index", Long: backfillHelp,
		Example: `  akin norms backfill --cluster http://127.0.0.1:9200 --index docs --field body --weights weights.akin
  akin norms backfill --cluster http://127.0.0.1:9200 --index docs --field body --weights weights.akin --dry-run
  akin norms backfill --cluster http://127.0.0.1:9200 --index docs --field body --weights weights.akin --all
  akin norms backfill --cluster http://127.0.0.1:9200 --index docs --field body --redis redis://127.0.0.1:6379 --weights docs-weights@active`,
		Args: terminal.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.parse(); err != nil {
				return terminal.Usage(err)
			}
			return f.start(cmd.Context(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	f.register(flags, "lengths")
	f.redis.RegisterServer(cmd)
	flags.StringVar(&f.weights, "weights", "", "MATRIX of the weights (required)")
	return cmd
}

// parse returns all that is wrong with the flags.
func (f *backfillFlags) parse() error {
	errs := f.check()
	if f.weights == "" {
		errs = append(errs, errors.New("give --weights MATRIX"))
	}
	return errors.Join(errs...)
}

func (f *backfillFlags) start(ctx context.Context, stderr io.Writer) error {
	m, err := f.openWeights(ctx, stderr, f.weights, &f.redis)
	if err != nil {
		return err
	}
	weights, err := norms.NewWeights(m)
	if err != nil {
		return fmt.Errorf("%s: %w", f.weights, err)
	}
	return f.fill(ctx, stderr, func(cluster documents.API) (filling, error) {
		return filling{
			task: norms.Task(cluster, weights, f.field), kind: "weights", id: weights.ID(), empty: "terms",
			check: func(ctx context.Context, index string) ([]string, error) {
				indices, err := f.countable(ctx, cluster, index)
				if err == nil {
					err = f.checkMapping(ctx, cluster, index, indices)
				}
				return indices, err
			},
		}, nil
	})
}

// checkMapping refuses to write what the engine would map as it sees fit.
// indices are those that the expression index stands for.
func (f *backfillFlags) checkMapping(ctx context.Context, cluster documents.API, index string, indices []string) error {
	lacking, err := cluster.NotStoring(ctx, index, indices, esclient.NormPath(f.field), esclient.NormWeightsPath(f.field))
	if err != nil || len(lacking) == 0 {
		return err
	}
	const named = 5
	names := strings.Join(lacking[:min(len(lacking), named)], ", ")
	if len(lacking) > named {
		names += fmt.Sprintf(" and %d more", len(lacking)-named)
	}
	return fmt.Errorf("%s: the mapping lacks what the lengths are stored in, or has it otherwise; put it first:\n  PUT /%s/_mapping\n  %s",
		names, index, norms.Mapping(f.field))
}
