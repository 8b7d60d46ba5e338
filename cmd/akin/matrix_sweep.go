package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/combine"
	"github.com/akin-search/akin/simmatrix/learn"
	"github.com/akin-search/akin/tools/evaluate"
	"github.com/akin-search/akin/tools/reweigh"
)

type sweepFlags struct {
	config   cli.Config
	name     string // of an entry of the configuration
	field    fieldFlags
	index    indexFlags
	judged   reweigh.Judged
	searches searchCount
	grid     evaluate.Grid
	report   string // a file to write
	asJSON   bool
	log      io.Writer
}

func newMatrixSweep() *cobra.Command {
	f := &sweepFlags{searches: searchCount{Depth: evaluated}}
	cmd := &cobra.Command{
		Use: "sweep --judgments FILE [--index INDEX] [--field FIELD]", Short: "Find out with judged queries how large a matrix has to be",
		Long: `sweep reads the documents of an index once, makes matrices of them as "matrix build" does,
and searches with each of them and directly, in turn. It prints nDCG@10, the size of the
file, and the time of a search by the engine's own account, and says which matrix to take:
the smallest that does not rank surely worse than the best, if that ranks surely better
than direct search.

The matrices are the default and others that differ from it in one setting: the largest
number of neighbors of a term (--top of "matrix build"), the smallest similarity, the
power of the cosine, and with --embeddings the share of the word vectors. Settings that
help alone may not help together: compare such matrices by "akin eval".

` + cli.Credentials,
		Example: `  akin matrix sweep --template search.json --queries queries.jsonl --judgments qrels.tsv
  akin matrix sweep --cluster http://127.0.0.1:9200 --index docs --field title,body \
    --template search.json --queries queries.jsonl --judgments qrels.tsv --report sweep.html
  akin matrix sweep --cluster http://127.0.0.1:9200 --index docs --field body --embeddings file:vectors.txt \
    --neighbors 10,30,100,200,400 --embedding-share 0,0.35,0.7 --template search.json --judgments judged.csv`,
		Args: cli.NoArgs,
		RunE: f.run,
	}
	flags := cmd.Flags()
	f.field.Register(flags, "URL of the cluster")
	flags.StringSliceVar(&f.field.fields, "field", nil, "text fields to learn from; several must be analyzed alike")
	flags.StringVar(&f.name, "name", "", "entry of matrices in the configuration: its indices and fields are taken; default the only one")
	f.judged.Register(flags, "file of judgments (required)")
	flags.StringVar(&f.searches.Template, "template", "", "file of a search body with {{query}} in a string")
	flags.IntSliceVar(&f.grid.Neighbors, evaluate.FactorNeighbors, []int{10, 30, 100, 200}, "largest numbers of neighbors of a term to try; the default is 200")
	flags.Float64SliceVar(&f.grid.MinSimilarity, evaluate.FactorMinSimilarity, []float64{0, 0.01, 0.03, 0.1, 0.2}, "values to drop similarities up to; the default is 0")
	flags.Float64SliceVar(&f.grid.Power, evaluate.FactorPower, []float64{1, 2, 3, 4}, "powers of the cosine to try; the default is 3")
	flags.Float64SliceVar(&f.grid.Share, evaluate.FactorShare, []float64{0, 0.2, 0.35, 0.5, 0.7},
		"with --embeddings: shares of the model in a similarity to try, 0 for no model; the default is 0.35, or 0.5 for short documents")
	f.index.registerReading(flags)
	f.index.embeddings.registerModel(flags)
	flags.StringVar(&f.report, "report", "", "write the result as an HTML page with pictures into this file")
	flags.BoolVar(&f.asJSON, "json", false, "print the result as JSON")
	f.config.Register(cmd, &f.field.Cluster)
	return cmd
}

// configure takes from the configuration what no flag says of index and fields.
func (f *sweepFlags) configure() error {
	if f.name == "" && f.field.Index != "" && len(f.field.fields) > 0 {
		return nil
	}
	entry, err := f.config.Matrix(f.name)
	if err != nil {
		return err
	}
	return f.field.configure(entry)
}

// check returns everything wrong with the flags.
func (f *sweepFlags) check(flags *pflag.FlagSet) error {
	errs := checkEmpty(flags)
	if err := f.configure(); err != nil {
		return err
	}
	if !f.field.known() {
		return errors.Join(append(errs, errors.New("give --cluster, --index and --field"))...)
	}
	if f.index.embeddings.url == "" {
		f.grid.Share = nil
		if flags.Changed(evaluate.FactorShare) {
			errs = append(errs, errors.New("--embedding-share needs --embeddings: built-in words have the usual share"))
		}
	}
	build := matrixFlags{field: f.field, rows: rowFlags{SparsifyOptions: combine.SparsifyOptions{Neighbors: defaultTop}}}
	errs = append(errs, f.grid.Validate(), f.index.embeddings.check(flags, f.field.CAFile),
		f.index.found.check(flags, f.index.words || f.index.exactAnalysis, false), f.index.check(&build))
	if len(f.grid.Variants(usualMatrix(usualShare))) == 1 {
		errs = append(errs, errors.New("there is only the default to try: give --neighbors, --min-similarity, --power or --embedding-share other values"))
	}
	if f.report != "" {
		if err := cli.CheckTarget(f.report); err != nil {
			errs = append(errs, fmt.Errorf("--report: %w", err))
		}
	}
	return errors.Join(errs...)
}

// usualMatrix returns the default of "matrix build". share is that of a model.
func usualMatrix(share float64) evaluate.MatrixSetting {
	return evaluate.MatrixSetting{Neighbors: defaultTop, Power: learn.DefaultCorpusOptions().Power, Share: share}
}

func (f *sweepFlags) run(cmd *cobra.Command, _ []string) error {
	f.log = cmd.ErrOrStderr()
	ctx, report := cmd.Context(), cli.NewProgress(f.log)
	defer report.End()
	if err := f.check(cmd.Flags()); err != nil {
		return cli.Usage(err)
	}
	set, err := f.judged.Read(ctx)
	if err != nil {
		return err
	}
	template, err := f.searches.ReadTemplate(ctx, "")
	if err != nil {
		return err
	}
	if err := checkJudged(set, template); err != nil {
		return cli.Usage(err)
	}
	result, err := f.sweep(ctx, set, template, report)
	if err != nil {
		return err
	}
	report.End()
	if f.report != "" {
		if err := cli.Write(ctx, f.report, func(w io.Writer) error { return evaluate.WriteSweepPage(w, result) }); err != nil {
			return err
		}
	}
	return cli.Print(cmd.OutOrStdout(), f.asJSON, result, result.Print)
}

// checkJudged reports what would make every matrix rank alike, or a search
// without a text.
func checkJudged(set *evaluate.Set, template *evaluate.Template) error {
	if depth := template.Depth(); depth < measured {
		return fmt.Errorf("%s looks at %d hits, and the search asks for %d: change the size in the template", evaluate.SweptMeasure, measured, depth)
	}
	relevant := 0
	for _, q := range set.Judged() {
		if _, err := template.Body(q); err != nil {
			return err
		}
		relevant += len(evaluate.Relevant(set.Grades[q.ID]))
	}
	if relevant == 0 {
		return errors.New("no judged document is relevant (has a grade above 0)")
	}
	return nil
}

// sweep learns from the documents, and searches with each matrix in turn.
func (f *sweepFlags) sweep(ctx context.Context, set *evaluate.Set, template *evaluate.Template, report *cli.Progress) (*evaluate.SweepResult, error) {
	client, err := f.field.Open()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	missing, err := (&armSet{first: target{client: client, index: f.field.Index}}).Missing(ctx, set.Documents())
	if err != nil {
		return nil, err
	}
	// The share of a model that is the default depends on the documents.
	most, judged := max(len(f.grid.Variants(usualMatrix(usualShare))), len(f.grid.Variants(usualMatrix(shortShare)))), set.Judged()
	report.Tell("up to %d matrices, each with %d searches, and as many direct ones in turn", most, len(judged))
	defer f.index.limitMemory()()
	corpus, err := f.index.corpus(ctx, &f.field, client, report)
	if err != nil {
		return nil, f.index.advise(err)
	}
	usual, mix := usualMatrix(0), f.index.options.Mix
	if mix != nil {
		usual.Share = mix.Share
	}
	variants := f.grid.Variants(usual)
	for _, v := range variants {
		f.index.options.Neighbors = max(f.index.options.Neighbors, v.Neighbors)
	}
	learned, err := learn.Learn(ctx, corpus, f.index.options, report.Step)
	if err != nil {
		return nil, f.index.advise(err)
	}
	direct := directArm(client, f.field.Index)
	arms, answered := []evaluate.Arm{direct}, make([]evaluate.Answered, len(judged))
	matrices := make([]evaluate.SweptMatrix, len(variants))
	mixed := mix != nil
	for k, v := range variants {
		if mixed != (v.Share > 0) { // function words have neighbors without word vectors
			mixed = v.Share > 0
			if learned, err = f.learnAgain(ctx, corpus, mixed, report); err != nil {
				return nil, fmt.Errorf("%v: %w", v, err)
			}
		}
		m, err := f.matrix(ctx, learned, corpus, v.MatrixSetting, mix, report)
		if err != nil {
			return nil, fmt.Errorf("%v: %w", v, err)
		}
		both, err := f.search(ctx, direct, m, judged, template, func(stage string, done, total int) {
			report.Step(fmt.Sprintf("matrix %d of %d, %v: %s", k+1, len(variants), v, stage), done, total)
		})
		if err != nil {
			return nil, fmt.Errorf("%v: %w", v, err)
		}
		for i, a := range both {
			if k == 0 {
				answered[i] = evaluate.Answered{Query: a.Query, Answers: a.Answers[:1:1]}
			}
			answered[i].Answers = append(answered[i].Answers, a.Answers[1])
		}
		arms = append(arms, evaluate.Arm{Name: v.String()})
		matrices[k] = evaluate.SweptMatrix{Variant: v, Bytes: size(m), EngineMillis: evaluate.MeanEngine(both, 1), DirectMillis: evaluate.MeanEngine(both, 0)}
	}
	measures, err := evaluate.ParseMeasures([]string{evaluate.SweptMeasure})
	if err != nil {
		return nil, err
	}
	r := evaluate.Judge(set, arms, answered, measures)
	r.LeftOut.Documents = missing
	return evaluate.Sweep(r, matrices), nil
}

// learnAgain learns for matrices that word vectors are mixed into, or not.
func (f *sweepFlags) learnAgain(ctx context.Context, corpus *learn.Corpus, mixed bool, report *cli.Progress) (*learn.Learned, error) {
	corpus.OnlyContexts(func(string) bool { return false })
	if mixed {
		if _, _, err := readOwnWords(corpus); err != nil {
			return nil, err
		}
	}
	return learn.Learn(ctx, corpus, f.index.options, report.Step)
}

// matrix returns the matrix that "matrix build" makes with a setting.
func (f *sweepFlags) matrix(ctx context.Context, learned *learn.Learned, corpus *learn.Corpus, s evaluate.MatrixSetting, mix *learn.Mix, report *cli.Progress) (*simmatrix.Matrix, error) {
	if s.Share == 0 {
		mix = nil
	} else {
		of := *mix
		of.Share, mix = s.Share, &of
	}
	m, err := mixture(ctx, learned, s.Neighbors, s.Power, mix, report)
	if err == nil {
		m, err = f.index.found.add(m, corpus)
	}
	if err != nil {
		return nil, err
	}
	return combine.Sparsify(m, combine.SparsifyOptions{Neighbors: s.Neighbors, Threshold: s.MinSimilarity})
}

// search sends the queries directly and through an akin with the matrix.
func (f *sweepFlags) search(ctx context.Context, direct evaluate.Arm, m *simmatrix.Matrix, queries []evaluate.Query, t *evaluate.Template, progress simmatrix.Progress) ([]evaluate.Answered, error) {
	how := expand.DefaultProfile()
	how.Mode = expand.ModeBM25 // one search for each query
	arm, end, err := candidateArm(ctx, armOptions{Cluster: f.field.Cluster, Log: f.log}, how, m)
	defer end()
	if err != nil {
		return nil, err
	}
	return evaluate.Search(ctx, []evaluate.Arm{direct, arm}, queries, evaluate.SearchOptions{Body: t.Body, Progress: progress})
}

// size returns the bytes of a matrix's file.
func size(m *simmatrix.Matrix) int64 {
	var n counter
	_ = simmatrix.Encode(&n, m) // a counter accepts everything
	return int64(n)
}

type counter int64

func (n *counter) Write(p []byte) (int, error) {
	*n += counter(len(p))
	return len(p), nil
}
