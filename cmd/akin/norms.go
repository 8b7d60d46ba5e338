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
		Use: "norms", Short: "Store the lengths of documents, for modes hard and softcosine",
		Long: `For mode hard each document stores a number, ‖Wy‖: the length of its vector of term
frequencies, each weighted by the rarity of the term. A file freezes these weights, so that
lengths stay valid while documents come and go. "index norms snapshot" writes that file, and
"index norms backfill" computes and stores the lengths of the documents. Lengths do not depend
on the similarities of terms, which may change at any time. For mode softcosine each
document stores √((Wy)ᵀS(Wy)) as well, its soft length, which does depend on them.

docs/modes.md has the mapping and the similarity that the index needs first.`,
		Example: `  akin index norms snapshot --cluster http://127.0.0.1:9200 --index docs --field body --out weights.akin
  akin index norms backfill --cluster http://127.0.0.1:9200 --index docs --field body --weights weights.akin
  akin index norms backfill --cluster http://127.0.0.1:9200 --index docs --field body --weights weights.akin --matrix docs.akin`,
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
		Long: `snapshot reads the terms of every document, as the index analyzes them, and writes how many
documents contain each term: the weights for "index norms backfill" and mode hard. It changes
nothing in the index. The file is a matrix without neighbors, which you can push to Redis.
The same documents give the same file.

` + cli.Credentials,
		Example: `  akin index norms snapshot --cluster http://127.0.0.1:9200 --index docs --field body --out weights.akin
  akin matrix push --redis redis://127.0.0.1:6379 --name docs-weights --activate weights.akin`,
	}, f.check, f.run)
	flags := cmd.Flags()
	flags.StringVar(&f.maxMemory, "max-memory", "4GB", "memory limit")
	flags.StringVar(&f.out, "out", "", "file to write (required)")
	new(cli.Config).Register(cmd, &f.Cluster)
	return cmd
}

func (f *snapshotFlags) check() (err error) {
	f.memory, err = parseMemory(f.maxMemory)
	return errors.Join(err, cli.CheckOut(f.out))
}

// countingShare is the share of --max-memory for counting terms. Making the
// file takes about three times as much.
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

const backfillHelp = `backfill computes ‖Wy‖ for every document that has the field and no length by these weights
yet. It stores the length and the id of the weights in the document: in ` + esclient.NormObject + ` and
` + esclient.NormWeightsObject + `, under the name of the field with "__" for each ".". The weights come from the
document frequencies in MATRIX, which "index norms snapshot" writes.

With --matrix it also computes √((Wy)ᵀS(Wy)), for mode softcosine, and stores it with the ids
of weights and matrix in ` + esclient.SoftNormObject + ` and ` + esclient.SoftNormMatrixObject + `. Then a document lacks
something, too, if its soft length is by another matrix. Run it with a new matrix before
you activate that.

` + cli.MatrixHelp + `

` + fillHelp + `
Run it for each field, again after new weights, and from time to time with --all.

backfill rejects fields of nested documents, targets of copy_to, and indices that do not
keep the whole _source. It also rejects indices without the mapping, and prints it.
See docs/modes.md for more, and docs/security.md for the privileges.

` + cli.Credentials

func newNormsBackfill() *cobra.Command {
	var f fillFlags
	var redis cli.Redis
	var ref, matrix string
	cmd := f.backfill(&cobra.Command{
		Use:   "backfill --cluster URL --index INDEX --field FIELD --weights MATRIX",
		Short: "Compute and store the lengths of the documents of an index", Long: backfillHelp,
		Example: `  akin index norms backfill --cluster http://127.0.0.1:9200 --index docs --field body --weights weights.akin
  akin index norms backfill --cluster http://127.0.0.1:9200 --index docs --field body --weights weights.akin --dry-run
  akin index norms backfill --cluster http://127.0.0.1:9200 --index docs --field body --weights weights.akin --all
  akin index norms backfill --cluster http://127.0.0.1:9200 --index docs --field body --weights weights.akin --matrix docs.akin
  akin index norms backfill --cluster http://127.0.0.1:9200 --index docs --field body --redis redis://127.0.0.1:6379 --weights docs-weights@active`,
	}, "lengths", func() error { return required("weights MATRIX", ref) }, func(cmd *cobra.Command, cluster documents.API) (filling, error) {
		m, err := f.openWeights(cmd, ref, &redis)
		if err != nil {
			return filling{}, err
		}
		weights, err := enrich.NewWeights(m)
		if err != nil {
			return filling{}, fmt.Errorf("%s: %w", ref, err)
		}
		g := filling{kind: "weights", id: weights.ID(), empty: "terms"}
		var soft *enrich.SoftNorm
		if matrix != "" {
			s, err := f.openSimilarities(cmd, matrix, &redis)
			if err != nil {
				return filling{}, err
			}
			soft = enrich.NewSoftNorm(weights, s)
			g.kind, g.id = "weights and matrix", soft.ID()
			g.end = func(report *cli.Progress) {
				if now, err := redis.Matrix(cmd.Context(), cmd.ErrOrStderr(), matrix); err == nil && now.Checksum() != s.Checksum() {
					report.Tell("%s is another matrix now than at the start: run this again for its lengths", matrix)
				}
			}
		}
		g.task = enrich.NormsTask(cluster, weights, soft, f.field)
		if g.indices, err = f.countable(cmd.Context(), cluster); err == nil {
			err = f.checkMapping(g.indices, "lengths", func(i *mapping.Inspection) ([]byte, error) { return enrich.CheckNorms(i, f.field, soft != nil) })
		}
		return g, err
	})
	redis.RegisterServer(cmd)
	cmd.Flags().StringVar(&ref, "weights", "", "MATRIX of the weights (required)")
	cmd.Flags().StringVar(&matrix, "matrix", "", "MATRIX of the similarities, for mode softcosine")
	new(cli.Config).Register(cmd, &f.Cluster, &redis)
	return cmd
}
