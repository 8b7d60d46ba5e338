package main

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/esclient/mapping"
	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/tools/enrich"
)

func newNorms() *cobra.Command {
	return cli.Group(&cobra.Command{
		Use: "norms", Short: "Store the lengths of documents, for mode hard",
		Long: `For mode hard each document holds a number, ‖Wy‖: the length of its vector of term
frequencies, each weighted by the rarity of the term. The weights are frozen in a file, so
that the lengths stay right while documents come and go: "norms snapshot" writes that
file, and "norms backfill" computes and stores the lengths of the documents.
The similarities of terms are not in it; they may change at any time.

docs/modes.md has the mapping and the similarity that the index needs before.`,
		Example: `  akin norms snapshot --cluster http://127.0.0.1:9200 --index docs --field body --out weights.akin
  akin norms backfill --cluster http://127.0.0.1:9200 --index docs --field body --weights weights.akin`,
	}, newNormsSnapshot(), newNormsBackfill())
}

type snapshotFlags struct {
	indexFieldFlags

	maxMemory string
	memory    configs.Bytes
	out       string
}

func newNormsSnapshot() *cobra.Command {
	var f snapshotFlags
	cmd := f.command(&cobra.Command{
		Use: "snapshot --cluster URL --index INDEX --field FIELD --out FILE", Short: "Freeze the weights of the terms of a field in a file",
		Long: `snapshot reads the terms of every document, as the index itself makes them, and writes
how many documents hold each: the weights of "norms backfill" and of mode hard. The index
is only read. The file is a matrix without neighbors and can be pushed to Redis as one.
The same documents give the same file.

` + cli.Credentials,
		Example: `  akin norms snapshot --cluster http://127.0.0.1:9200 --index docs --field body --out weights.akin
  akin matrix push --redis redis://127.0.0.1:6379 --name docs-weights --activate weights.akin`,
	}, f.check, f.run)
	flags := cmd.Flags()
	flags.StringVar(&f.maxMemory, "max-memory", "4GB", "memory to use at most")
	flags.StringVar(&f.out, "out", "", "file to write (required)")
	return cmd
}

func (f *snapshotFlags) check() (err error) {
	f.memory, err = parseMemory(f.maxMemory)
	return errors.Join(err, cli.CheckOut(f.out))
}

// countingShare of --max-memory is what the terms may take while they are
// counted; to make the file of them takes about three times as much.
const countingShare = 0.2

func (f *snapshotFlags) run(cmd *cobra.Command, cluster documents.API, report *cli.Progress) error {
	ctx := cmd.Context()
	if _, err := f.countable(ctx, cluster); err != nil {
		return err
	}
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(int64(collectingShare * float64(f.memory))))
	skipped := 0
	terms := f.reading(cluster, report, func(doc documents.DocRef, err error) {
		if skipped++; skipped <= maxFailuresShown {
			report.Tell("document %q of index %q is not counted: %v", doc.ID, doc.Index, err)
		}
	})
	m, err := enrich.Snapshot(ctx, terms, enrich.SnapshotOptions{
		Source: "index " + f.Index + ", field " + f.field, MaxMemory: int64(countingShare * float64(f.memory)),
	})
	if errors.Is(err, simmatrix.ErrMemory) {
		err = fmt.Errorf("%w: raise --max-memory %s", err, f.maxMemory)
	}
	if err != nil {
		return fmt.Errorf("field %q of %q: %w", f.field, f.Index, err)
	}
	if err := cli.WriteMatrix(ctx, f.out, m); err != nil {
		return err
	}
	if skipped > 0 {
		report.Tell("%d documents are not counted: they have too many terms", skipped)
	}
	report.Tell("%s: weights %s of %d terms, from %d documents", f.out, esclient.NormWeightsID(m.Checksum()), m.Len(), m.Meta().Docs)
	return nil
}

const backfillHelp = `backfill computes ‖Wy‖ of every document that has the field and does not have it by these
weights yet, and stores it in the document with the id of the weights: in ` + esclient.NormObject + ` and
` + esclient.NormWeightsObject + `, under the name of the field with "__" for each ".". The document frequencies
of MATRIX make the weights: "norms snapshot" writes them. ` + cli.MatrixHelp + `

` + fillHelp + ` Start one for each field, again when there are new weights,
and with --all after a time without it.

Refused are fields of nested documents, fields that others are copied to by copy_to, and
indices that do not keep the whole _source or lack the mapping, which is then printed.
docs/modes.md has the rest, docs/security.md the rights.

` + cli.Credentials

func newNormsBackfill() *cobra.Command {
	var f fillFlags
	var redis cli.Redis
	var ref string
	cmd := f.backfill(&cobra.Command{
		Use:   "backfill --cluster URL --index INDEX --field FIELD --weights MATRIX",
		Short: "Compute and store the lengths of the documents of an index", Long: backfillHelp,
		Example: `  akin norms backfill --cluster http://127.0.0.1:9200 --index docs --field body --weights weights.akin
  akin norms backfill --cluster http://127.0.0.1:9200 --index docs --field body --weights weights.akin --dry-run
  akin norms backfill --cluster http://127.0.0.1:9200 --index docs --field body --weights weights.akin --all
  akin norms backfill --cluster http://127.0.0.1:9200 --index docs --field body --redis redis://127.0.0.1:6379 --weights docs-weights@active`,
	}, "lengths", func() error { return required("weights MATRIX", ref) }, func(cmd *cobra.Command, cluster documents.API) (filling, error) {
		m, err := f.openWeights(cmd, ref, &redis)
		if err != nil {
			return filling{}, err
		}
		weights, err := enrich.NewWeights(m)
		if err != nil {
			return filling{}, fmt.Errorf("%s: %w", ref, err)
		}
		indices, err := f.countable(cmd.Context(), cluster)
		if err == nil {
			err = f.checkMapping(indices, "lengths", func(i *mapping.Inspection) ([]byte, error) { return enrich.CheckNorms(i, f.field) })
		}
		return filling{task: enrich.NormsTask(cluster, weights, f.field), kind: "weights", id: weights.ID(), empty: "terms", indices: indices}, err
	})
	redis.RegisterServer(cmd)
	cmd.Flags().StringVar(&ref, "weights", "", "MATRIX of the weights (required)")
	return cmd
}
