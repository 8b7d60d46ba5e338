package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/expand/vectors"
	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/combine"
	"github.com/akin-search/akin/tools/enrich"
)

func newVectors() *cobra.Command {
	return cli.Group(&cobra.Command{
		Use: "vectors", Short: "Store documents as vectors, for mode vectors",
		Long: `For mode vectors each document stores a vector of the soft vector space model, in a field
of the engine for sparse or dense vectors. "index vectors model" makes the model, a file that
gives documents and searches their vectors. "index vectors backfill" stores the vectors of the
documents in an index.

The vectors contain the similarities of terms. So unlike in the other modes, documents need
new vectors when the matrix changes. See docs/vectors.md for more.`,
		Example: `  akin index vectors model --cluster http://127.0.0.1:9200 --index docs --field body --matrix docs.akin --weights weights.akin --store sparse_vector --out model.akin
  akin index vectors backfill --cluster http://127.0.0.1:9200 --index docs --field body --model model.akin`,
	}, newVectorsModel(), newVectorsBackfill())
}

type vectorModelFlags struct {
	indexFieldFlags

	redis           cli.Redis
	matrix, weights string
	meta            vectors.Meta
	strength        float64
	out             string
}

// With denseStrength most matrices are positive definite.
const denseStrength = 0.2

// vectorSample is how many documents dense vectors are learned from.
const vectorSample = 20_000

func newVectorsModel() *cobra.Command {
	var f vectorModelFlags
	cmd := f.command(&cobra.Command{
		Use:   "model --cluster URL --index INDEX --field FIELD --matrix MATRIX --weights MATRIX --store TYPE --out FILE",
		Short: "Make the model for the vectors of documents and searches",
		Long: `model joins a matrix of similarities and the weights of "index norms snapshot" in one file.
--store is the type of the field: sparse_vector (Elasticsearch from 8.11), rank_features
(Elasticsearch and OpenSearch), dense_vector (Elasticsearch from 8) or knn_vector
(OpenSearch with its plugin k-NN).

A document's sparse vector has its terms and the terms similar to them, only the --terms
largest. A dense vector has --dims dimensions, learned from 20,000 of the documents by
latent semantic analysis. For this the matrix is made symmetric, and it must be positive
definite. --strength scales all similarities of different terms; a lower one makes the
matrix positive definite. If you give none, model lowers it as far as needed.

With --normalize soft, scores are the soft cosine measure; with hard, the inner product
divided by the plain lengths; with none, the inner product. model changes nothing in the
index.

` + cli.MatrixHelp + `

` + cli.Credentials,
		Example: `  akin index vectors model --cluster http://127.0.0.1:9200 --index docs --field body --matrix docs.akin --weights weights.akin --store sparse_vector --out model.akin
  akin index vectors model --cluster http://127.0.0.1:9200 --index docs --field body --matrix docs.akin --weights weights.akin --store dense_vector --dims 256 --out model.akin`,
	}, f.check, f.run)
	flags := cmd.Flags()
	f.redis.RegisterServer(cmd)
	flags.StringVar(&f.matrix, "matrix", "", "MATRIX of the similarities (required)")
	flags.StringVar(&f.weights, "weights", "", "MATRIX of the weights (required)")
	flags.StringVar((*string)(&f.meta.Store), "store", "", "type of the field: sparse_vector, rank_features, dense_vector or knn_vector (required)")
	flags.StringVar((*string)(&f.meta.Normalization), "normalize", string(vectors.Soft), "what scores are divided by: soft, hard or none")
	flags.IntVar(&f.meta.Terms, "terms", 200, "largest number of terms in a document's sparse vector, 0 for all")
	flags.IntVar(&f.meta.Dims, "dims", 256, "dimensions of dense vectors")
	flags.Float64Var(&f.strength, "strength", 0, "factor of the similarities, up to 1; default 1 for sparse vectors, and 0.2 or what the matrix allows for dense ones")
	flags.StringVar(&f.out, "out", "", "file to write (required)")
	new(cli.Config).Register(cmd, &f.Cluster, &f.redis)
	return cmd
}

func (f *vectorModelFlags) check() error {
	errs := []error{required("matrix", f.matrix, "weights", f.weights, "store", string(f.meta.Store)), cli.CheckOut(f.out)}
	f.meta.Field, f.meta.Strength = f.field, cmp.Or(f.strength, 1)
	if f.meta.Store.Dense() {
		f.meta.Terms, f.meta.Strength = 0, cmp.Or(f.strength, denseStrength)
	} else {
		f.meta.Dims = 0
	}
	if f.meta.Store != "" {
		errs = append(errs, f.meta.Check())
	}
	return errors.Join(errs...)
}

func (f *vectorModelFlags) run(cmd *cobra.Command, cluster documents.API, report *cli.Progress) error {
	ctx := cmd.Context()
	s, err := f.openSimilarities(cmd, f.matrix, &f.redis)
	if err != nil {
		return err
	}
	weights, err := f.openWeights(cmd, f.weights, &f.redis)
	if err != nil {
		return err
	}
	if _, err = f.countable(ctx, cluster); err == nil {
		err = checkVectorEngine(ctx, cluster, f.meta)
	}
	if err != nil {
		return err
	}
	var m *vectors.Model
	if f.meta.Store.Dense() {
		m, err = f.learn(ctx, report, cluster, s, weights)
	} else {
		m, err = vectors.New(f.meta, s, weights)
	}
	if err != nil {
		return err
	}
	if err := cli.Write(ctx, f.out, m.Write); err != nil {
		return err
	}
	report.Tell("%s: model %s of %d terms, for %s", f.out, m.ID(), m.Len(), m.Meta().Store)
	if less := m.Meta().Dims; less < f.meta.Dims {
		report.Tell("vectors have only %d dimensions: the documents do not give more", less)
	}
	return nil
}

// learn returns a model for dense vectors. If no strength is given, it lowers
// the default as far as the matrix needs.
func (f *vectorModelFlags) learn(
	ctx context.Context, report *cli.Progress, cluster documents.API, s, weights *simmatrix.Matrix,
) (m *vectors.Model, err error) {
	if s, err = combine.Sparsify(s, combine.SparsifyOptions{Symmetric: true}); err != nil {
		return nil, fmt.Errorf("%s: %w", f.matrix, err)
	}
	docs, err := sampleDocuments(ctx, f.reading(cluster, report, func(doc documents.DocRef, err error) {
		report.Tell("document %q of index %q is left out: %v", doc.ID, doc.Index, err)
	}), vectorSample)
	if err != nil {
		return nil, err
	}
	for {
		m, err = enrich.LearnVectors(ctx, f.meta, s, weights, docs, report.Step)
		no, ok := errors.AsType[*enrich.NotPositiveError](err)
		switch {
		case ok && f.strength == 0:
			report.Tell("%s is not positive definite at strength %v; continuing with %v", f.matrix, f.meta.Strength, no.Enough)
			f.meta.Strength = no.Enough
			continue
		case ok:
			err = fmt.Errorf("%w: give a lower --strength, or a matrix built with --symmetric --dominant", err)
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", f.matrix, err)
		}
		return m, err
	}
}

func newVectorsBackfill() *cobra.Command {
	var f fillFlags
	var path string
	cmd := f.backfill(&cobra.Command{
		Use:   "backfill --cluster URL --index INDEX --field FIELD --model FILE",
		Short: "Compute and store the vectors of the documents of an index",
		Long: `backfill computes the vector of every document that has the field and no vector of this
model yet. It stores the vector and the id of the model in the document: in ` + vectors.Object + ` and
` + vectors.ModelObject + `, under the name of the field with "__" for each ".". It adds the
mapping of both first, if an index has none. It replaces vectors of another model.

` + fillHelp + `

backfill rejects fields of nested documents, targets of copy_to, and indices that do not
keep the whole _source or whose engine cannot store the vectors.

` + cli.Credentials,
		Example: `  akin index vectors backfill --cluster http://127.0.0.1:9200 --index docs --field body --model model.akin
  akin index vectors backfill --cluster http://127.0.0.1:9200 --index docs --field body --model model.akin --dry-run`,
	}, "vectors", func() error { return required("model FILE", path) }, func(cmd *cobra.Command, cluster documents.API) (filling, error) {
		ctx := cmd.Context()
		m, err := cli.Read(ctx, path, vectors.Read)
		if err != nil {
			return filling{}, err
		}
		if m.Meta().Field != f.field {
			return filling{}, fmt.Errorf("%s is a model for the field %q, not %q", path, m.Meta().Field, f.field)
		}
		if err := checkVectorEngine(ctx, cluster, m.Meta()); err != nil {
			return filling{}, err
		}
		indices, err := f.countable(ctx, cluster)
		if err == nil {
			err = prepareVectors(ctx, cluster, indices, m.Meta(), !f.dryRun)
		}
		losses := &vectorLosses{}
		return filling{
			task: vectorTask(cluster, m, losses), kind: "model", id: m.ID(), empty: "terms", indices: indices,
			end: func(report *cli.Progress) {
				if lost := losses.Describe(m.Meta()); lost != "" {
					report.Tell("%s", lost)
				}
			},
		}, err
	})
	cmd.Flags().StringVar(&path, "model", "", "file of the model (required)")
	new(cli.Config).Register(cmd, &f.Cluster)
	return cmd
}
