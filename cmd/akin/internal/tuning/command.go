package tuning

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/akin-search/akin/cmd/akin/internal/arms"
	"github.com/akin-search/akin/cmd/akin/internal/evidence"
	"github.com/akin-search/akin/cmd/akin/internal/files"
	"github.com/akin-search/akin/cmd/akin/internal/terminal"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/evaluate/tune"
	"github.com/akin-search/akin/simmatrix/combine"
)

// A Cluster is what a command gives to its flags.
type Cluster struct {
	// Open returns a client of the cluster, which the caller closes, and the index
	// expression; "" where none was given.
	Open func() (client *esclient.Client, index string, err error)
	// Names returns names for matrix files, each once.
	Names func(paths []string) ([]string, error)
}

type flags struct {
	options  options
	matrices []string
	judged   evidence.Judged
	searches arms.Searches
	asJSON   bool
}

// Command returns the command "tune", without the flags of the cluster.
func Command(c Cluster) *cobra.Command {
	f := &flags{searches: arms.Searches{Depth: tune.Measured}}
	f.options.tune = tune.Options{Settings: 300, Folds: 5, Seed: 1, Confidence: 0.95}
	cmd := &cobra.Command{
		Use: "tune --judgments FILE --index INDEX --field FIELD --matrix FILE --out FILE", Short: "Find settings that rank judged queries better",
		Long: `tune tries settings on judged queries and says what of the gain in nDCG@10 holds up
on queries that the settings were not chosen on: the queries are cut into folds, and
for each a setting is chosen on the others. It recommends nothing that is not better
than direct search with the confidence asked for, writes what it recommends as a
profile to --out, and beside it the matrix where that is another one.

The terms of all documents are read once, 20 million at most; after that the cluster
only analyzes the queries. Several matrices are combined with weights.

`,
		Example: `  akin tune --cluster http://127.0.0.1:9200 --index docs --field title,body --matrix docs.akin \
    --template search.json --queries queries.jsonl --judgments qrels.tsv --out tuned.yml`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd.Context(), c, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f.register(cmd.Flags())
	return cmd
}

func (f *flags) register(set *pflag.FlagSet) {
	o := &f.options
	set.StringSliceVar(&o.fields, "field", nil, "text fields that the searches look at (required)")
	set.StringSliceVar(&f.matrices, "matrix", nil, "matrix file; several are combined with weights (required)")
	f.judged.Register(set)
	set.StringVar(&f.searches.Template, "template", "", "file of a search body with {{query}} in a string")
	set.StringVar(&o.out, "out", "", "write the profile to this file (required)")
	set.IntVar(&o.tune.Settings, "settings", o.tune.Settings, "settings to try")
	set.IntVar(&o.tune.Folds, "folds", o.tune.Folds, "parts that the queries are cut into")
	set.Uint64Var(&o.tune.Seed, "seed", o.tune.Seed, "seed of all that is random")
	set.Float64Var(&o.tune.Confidence, "confidence", o.tune.Confidence, "confidence that a recommendation needs, and of the intervals")
	set.BoolVar(&f.asJSON, "json", false, "print the result as JSON")
}

func (f *flags) run(ctx context.Context, c Cluster, stdout, stderr io.Writer) (err error) {
	o := &f.options
	o.report = terminal.NewProgress(stderr)
	defer o.report.End()
	if o.client, o.index, err = c.Open(); err != nil {
		return err
	}
	defer func() { _ = o.client.Close() }() // nothing was written
	if err := f.read(ctx, c.Names); err != nil {
		return terminal.Usage(err)
	}
	result, err := o.run(ctx)
	if err != nil {
		return err
	}
	return terminal.Print(stdout, f.asJSON, result, result.Print)
}

// checkOut reports where the profile, or the matrix beside it, cannot be
// written or would replace a file that is read.
func (f *flags) checkOut() error {
	o := &f.options
	if err := files.CheckTarget(o.out); err != nil {
		return err
	}
	written := []string{o.out, o.matrixFile()}
	if files.Same(written[0], written[1]) {
		return fmt.Errorf("--out %s: the matrix beside the profile would have this name: name it .yml", o.out)
	}
	for _, read := range append(f.matrices, f.judged.Judgments, f.judged.Queries, f.searches.Template) {
		for _, path := range written {
			if read != "" && files.Same(read, path) {
				return fmt.Errorf("--out %s: %s would be written over, which is read: name another file", o.out, path)
			}
		}
	}
	return nil
}

// read checks what the flags say, and reads the files that they name.
func (f *flags) read(ctx context.Context, names func(paths []string) ([]string, error)) (err error) {
	o := &f.options
	if o.index == "" || len(o.fields) == 0 || len(f.matrices) == 0 || o.out == "" {
		return errors.New("give --index, --field, --matrix and --out")
	}
	if err := f.checkOut(); err != nil {
		return err
	}
	if o.set, err = f.judged.Read(ctx); err == nil {
		o.template, err = f.searches.ReadTemplate(ctx, "")
	}
	if err != nil {
		return err
	}
	o.first = f.matrices[0]
	named, err := names(f.matrices)
	if err != nil {
		return fmt.Errorf("--matrix: %w", err)
	}
	for k, path := range f.matrices {
		m, err := files.ReadMatrix(ctx, path)
		if err != nil {
			return err
		}
		o.matrices = append(o.matrices, combine.Input{Name: named[k], Matrix: m})
	}
	return nil
}
