package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/akin-search/akin/cmd/akin/internal/files"
	"github.com/akin-search/akin/cmd/akin/internal/terminal"
	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/combine"
	"github.com/akin-search/akin/simmatrix/learn"
	"github.com/akin-search/akin/simmatrix/shape"
	"github.com/akin-search/akin/simmatrix/source"
	"github.com/akin-search/akin/simmatrix/spelling"
)

// buildFlags are the flags of "matrix build".
type buildFlags struct {
	paths struct{ vectors, edit, thesaurus, tsv, market, vocabulary string }

	docs      indexFlags
	vectors   learn.VectorOptions
	reading   source.ReadVectorsOptions
	edit      spelling.Options
	formula   string
	thesaurus source.ThesaurusOptions
	multiWord string
	given     source.ListOptions
	combine   combineFlags

	power     float64
	format    string
	target    target
	filter    filterFlags
	sparsify  shape.SparsifyOptions
	overrides string
	out       string

	rules *combine.Overrides    // of the file overrides
	found *shape.ProjectOptions // what the cluster says of the words; nil where nobody has asked
}

func newMatrixBuild() *cobra.Command {
	f := &buildFlags{}
	cmd := &cobra.Command{
		Use:   "build",
		Short: "Build a matrix from an index, word vectors, spelling, a thesaurus or other matrices",
		Long: `build writes a matrix file from one source:

  --from-index           the documents of an index, which are only read: terms are similar
                         that occur beside the same terms and in the same documents
  --from-vectors         word vectors (word2vec, GloVe, fastText; text or binary, plain or gzip)
  --from-edit-distance   terms, one on a line, or those of a matrix file: similar spelling
  --from-thesaurus       a synonym file of Solr or Elasticsearch, or WordNet's wn_s.pl
  --from-tsv             lines of term, TAB, term, TAB, similarity
  --from-matrix-market   a MatrixMarket file, with --vocabulary
  --from-matrices        one matrix file to work over, or several to combine

Words become the index terms of a field, which is what searches look up, with --cluster,
--index and --field; without them they are taken for index terms as they are. Then terms
are filtered, corrections by hand (--overrides) are applied, and each row is cut to its
--top neighbors. docs/matrices.md says which source is good for what.

Credentials for the cluster come from ` + configs.EnvClusterUsername + ` and ` + configs.EnvClusterPassword + ` or
from ` + configs.EnvClusterAPIKey + `.`,
		Example: `  akin matrix build --from-index http://127.0.0.1:9200 --index docs --field body --out docs.akin
  akin matrix build --from-vectors vectors.txt.gz --cluster http://127.0.0.1:9200 --index docs --field body --out docs.akin
  akin matrix build --from-matrices vectors.akin,spelling.akin --combine average --symmetric --out both.akin`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			source, err := f.check(cmd.Flags())
			if err != nil {
				return terminal.Usage(err)
			}
			return f.run(cmd.Context(), source, cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	f.registerSources(flags)
	f.target.register(flags)
	f.filter.register(flags)
	flags.Float64Var(&f.power, "power", f.vectors.Power, "with --from-index and --from-vectors: power of the cosine")
	flags.IntVar(&f.sparsify.Neighbors, "top", f.vectors.Neighbors, "neighbors of a term at most")
	flags.Float64Var(&f.sparsify.Threshold, "min-similarity", 0, "drop similarities up to this")
	flags.BoolVar(&f.sparsify.Mutual, "mutual", false, "keep neighbors only where each is the other's")
	flags.BoolVar(&f.sparsify.Symmetric, "symmetric", false, "make both directions alike, the rarest terms first; rows stay within --top")
	flags.BoolVar(&f.sparsify.Dominant, "dominant", false, "keep the sum of a row's similarities under 1; with --symmetric the matrix is positive definite")
	flags.StringVar(&f.overrides, "overrides", "", "file of corrections by hand (see akin matrix edit)")
	flags.StringVar(&f.out, "out", "", "matrix file to write (required)")
	return cmd
}

// check returns all that is wrong with the flags.
func (f *buildFlags) check(flags *pflag.FlagSet) (matrixSource, error) {
	source, err := f.chosen(flags)
	errs := append([]error{err}, checkEmpty(flags)...)
	errs = append(errs, f.checkIdle(source, flags)...)
	errs = append(errs, f.checkInputs()...)
	errs = append(errs, f.checkRows()...)
	if f.out == "" {
		errs = append(errs, errors.New("give --out FILE"))
	} else {
		errs = append(errs, files.CheckTarget(f.out))
	}
	f.setNeighbors()
	errs = append(errs, f.filter.parse()...)
	if source.check != nil {
		errs = append(errs, source.check())
	}
	if source.flag != "from-index" {
		errs = append(errs, f.target.check())
	}
	return source, errors.Join(errs...)
}

func (f *buildFlags) run(ctx context.Context, source matrixSource, stderr io.Writer) error {
	report := terminal.NewProgress(stderr)
	defer report.End()
	m, err := f.build(ctx, source, report)
	if err != nil {
		return err
	}
	if err := writeMatrix(ctx, f.out, m); err != nil {
		return err
	}
	if err := f.docs.spooled.Remove(); err != nil {
		return err
	}
	report.End()
	meta := m.Meta()
	fmt.Fprintf(stderr, "%s: %d terms, %d neighbors", f.out, meta.Terms, meta.NonZeros)
	if meta.Docs > 0 {
		fmt.Fprintf(stderr, ", from %d documents", meta.Docs)
	}
	fmt.Fprintln(stderr)
	return nil
}

// build is the way from the source to the matrix that is written.
func (f *buildFlags) build(ctx context.Context, source matrixSource, report *terminal.Progress) (*simmatrix.Matrix, error) {
	if err := f.readOverrides(ctx); err != nil {
		return nil, err
	}
	m, err := source.build(ctx, report)
	if err != nil {
		return nil, err
	}
	if f.target.cluster != "" {
		if f.found == nil { // the source did not need to know
			if f.found, err = f.target.lookUp(ctx, slices.Collect(m.Terms()), report); err != nil {
				return nil, err
			}
		}
		if m, err = f.target.project(m, f.found, report); err != nil {
			return nil, err
		}
	}
	if m, err = f.filter.apply(m, report); err != nil {
		return nil, err
	}
	if m, err = applyOverrides(m, f.rules, report); err != nil {
		return nil, err
	}
	f.sparsify.Protect = f.rules.Protects
	return shape.Sparsify(m, f.sparsify)
}

// readOverrides reads the overrides, none without --overrides. Those that make
// the two directions of a pair differ do not go with --symmetric.
func (f *buildFlags) readOverrides(ctx context.Context) error {
	f.rules = &combine.Overrides{}
	if f.overrides == "" {
		return nil
	}
	var err error
	if f.rules, err = readOverrides(ctx, f.overrides); err != nil || !f.sparsify.Symmetric {
		return err
	}
	var errs []error
	for rule := range f.rules.All() {
		if rule.OneWay && rule.Action != combine.ActionPin {
			errs = append(errs, fmt.Errorf("%s: %v: with --symmetric a rule has to be both ways", f.overrides, &rule))
		}
	}
	if len(errs) > 0 {
		return terminal.Usage(errors.Join(errs...))
	}
	return nil
}

// maxUnmet is how many pins are named that ask for what is not there.
const maxUnmet = 20

// applyOverrides applies them and tells which pins ask for what m lacks.
func applyOverrides(m *simmatrix.Matrix, overrides *combine.Overrides, report *terminal.Progress) (*simmatrix.Matrix, error) {
	m, counts, err := overrides.Apply(m)
	if err != nil {
		return nil, err
	}
	if counts.Set+counts.Banned+counts.Pinned+counts.NoEffect > 0 {
		report.Tell("overrides: %d entries set, %d banned, %d pinned, %d as they were; %d terms added",
			counts.Set, counts.Banned, counts.Pinned, counts.NoEffect, counts.TermsAdded)
	}
	for k, pin := range counts.Unmet {
		if k == maxUnmet {
			report.Tell("overrides: and %d more pins of entries that are not there", len(counts.Unmet)-maxUnmet)
			break
		}
		report.Tell("overrides: %v: there is no such entry to keep", &pin)
	}
	return m, nil
}
