package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/akin-search/akin/cmd/akin/internal/arms"
	"github.com/akin-search/akin/cmd/akin/internal/files"
	"github.com/akin-search/akin/cmd/akin/internal/terminal"
	"github.com/akin-search/akin/evaluate"
	"github.com/akin-search/akin/evaluate/judged"
	"github.com/akin-search/akin/evaluate/report"
	"github.com/akin-search/akin/internal/openfile"
)

// evalFlags are the flags of "eval".
type evalFlags struct {
	cluster  clusterFlags
	arms     arms.Options
	judged   judgedFlags
	measures []string
	out      evalOut
	resume   string
	under    []string
}

// judgedFlags say which judged queries are searched for, and how.
type judgedFlags struct {
	queries, judgments, template string
	depth                        int
}

// evalOut says what becomes of the result.
type evalOut struct {
	json           bool
	perQuery, runs string
	report         string
}

func newEval() *cobra.Command {
	f := &evalFlags{}
	cmd := &cobra.Command{
		Use: "eval --judgments FILE --index INDEX [--arm ARM]…", Short: "Measure with judged queries what akin does to your search",
		Long: `eval sends judged queries through several ways to search and says how good the
rankings are, whether the differences could be chance, and how long searches take.

` + arms.Help + `

--judgments is BEIR's qrels.tsv, TREC's qrels, a CSV file with the header
query,document,grade, or a _rank_eval request; --queries is BEIR's queries.jsonl,
TREC's topics, or lines of id, tab and text. --template is a search body of yours
with {{query}} in place of the text. Grades above 0 are relevant; ties and documents
without a grade count as in trec_eval.

The exit status is 3 where a condition of --fail-under is not met.

` + clusterCredentials,
		Example: `  akin eval --cluster http://127.0.0.1:9200 --index docs --template search.json \
    --queries queries.jsonl --judgments qrels.tsv --arm direct --arm new=matrix:docs.akin
  akin eval --akin http://127.0.0.1:9280 --akin-admin http://127.0.0.1:9281 --index docs \
    --template search.json --judgments judged.csv --arm direct --arm akin --fail-under nDCG@10=+0%`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f.register(cmd.Flags())
	return cmd
}

func (f *evalFlags) register(flags *pflag.FlagSet) {
	f.cluster.register(flags, "URL of the cluster")
	f.arms.Register(flags)
	flags.StringVar(&f.judged.queries, "queries", "", "file of queries, where the judgments have only their ids")
	flags.StringVar(&f.judged.judgments, "judgments", "", "file of judgments (required)")
	flags.StringVar(&f.judged.template, "template", "", "file of a search body with {{query}} in a string")
	flags.IntVar(&f.judged.depth, "depth", 100, "hits to ask for where the search says no size")
	flags.StringSliceVar(&f.measures, "measures", evaluate.DefaultMeasures(), "what to measure: MAP, MRR, and nDCG, MRR, P, recall with @k")
	flags.BoolVar(&f.out.json, "json", false, "print the result as JSON, with each query and its first hits")
	flags.StringVar(&f.out.perQuery, "per-query", "", "write a CSV file with a line for each query and arm")
	flags.StringVar(&f.out.runs, "runs", "", "write each arm's rankings as a TREC run file into this folder, and the judgments as qrels.txt")
	flags.StringVar(&f.out.report, "report", "", "write a page that shows the result, index.html, and its plots as SVG into this folder")
	flags.StringVar(&f.resume, "resume", "", "keep the answers in this file, from which an interrupted run goes on")
	flags.StringArrayVar(&f.under, "fail-under", nil, "what each arm but the first has to reach: nDCG@10=0.35, or over the first arm nDCG@10=+2%")
}

// read returns the judged set and the template.
func (f *judgedFlags) read(ctx context.Context, title string) (set *judged.Set, t *evaluate.Template, err error) {
	if f.judgments == "" {
		return nil, nil, terminal.Usage(errors.New("give --judgments FILE"))
	}
	var body []byte
	if f.template != "" {
		body, err = files.Read(ctx, f.template, func(r io.Reader) ([]byte, error) { return io.ReadAll(io.LimitReader(r, 1<<20)) })
	}
	if err == nil {
		if t, err = evaluate.NewTemplate(body, f.depth, title); err != nil {
			err = fmt.Errorf("%s: %w", f.template, err)
		}
	}
	if err != nil {
		return nil, nil, terminal.Usage(err)
	}
	judgments, err := openfile.Open(ctx, f.judgments)
	if err != nil {
		return nil, nil, err
	}
	defer judgments.Close() // nothing was written
	var queries *judged.File
	if f.queries != "" {
		file, err := openfile.Open(ctx, f.queries)
		if err != nil {
			return nil, nil, err
		}
		defer file.Close() // nothing was written
		queries = &judged.File{Name: f.queries, Content: file}
	}
	if set, err = judged.Read(queries, &judged.File{Name: f.judgments, Content: judgments}); err == nil && len(set.Judged()) == 0 {
		err = fmt.Errorf("%s: none of the judgments is of a query in %s", f.judgments, f.queries)
	}
	return set, t, err
}

func (f *evalFlags) run(ctx context.Context, stdout, stderr io.Writer) error {
	measures, err := evaluate.ParseMeasures(f.measures)
	if err != nil {
		return terminal.Usage(fmt.Errorf("--measures: %w", err))
	}
	conditions, err := evaluate.ParseConditions(f.under, measures)
	if err != nil {
		return terminal.Usage(fmt.Errorf("--fail-under: %w", err))
	}
	set, template, err := f.judged.read(ctx, f.arms.Title)
	if err != nil {
		return err
	}
	for _, m := range measures {
		if m.K > template.Depth() {
			return terminal.Usage(fmt.Errorf("%s looks at %d hits, and the search asks for %d: change --measures, --depth or the size in the template",
				m.Name, m.K, template.Depth()))
		}
	}
	opened, err := f.cluster.openArms(ctx, f.arms, stderr)
	if err != nil {
		return err
	}
	defer opened.Close()
	missing, err := opened.Missing(ctx, documentsOf(set))
	if err != nil {
		return err
	}
	answered, err := f.search(ctx, opened, set, template, stderr)
	if err != nil {
		return err
	}
	result := evaluate.Judge(set, opened.List, answered, measures)
	result.LeftOut.Documents = missing
	if err := f.out.write(ctx, stdout, result, set, answered); err != nil {
		return err
	}
	return conditions.Check(result)
}

// documentsOf returns the documents that have judgments, sorted.
func documentsOf(set *judged.Set) []string {
	all := map[string]bool{}
	for _, grades := range set.Grades {
		for id := range grades {
			all[id] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// search sends the judged queries through the arms, from where the file of
// --resume ends.
func (f *evalFlags) search(
	ctx context.Context, opened *arms.Set, set *judged.Set, template *evaluate.Template, stderr io.Writer,
) ([]evaluate.Answered, error) {
	queries := set.Judged()
	progress := terminal.NewProgress(stderr)
	defer progress.End()
	o := evaluate.SearchOptions{Body: template.Body, Progress: progress.Step}
	if f.resume != "" {
		file, known, err := openState(f.resume, planOf(f.cluster.index, opened, template, queries))
		if err != nil {
			return nil, fmt.Errorf("--resume %s: %w", f.resume, err)
		}
		defer func() { _ = file.Close() }() // each line was written at once
		o.Known = known
		o.Keep = func(a evaluate.Answered) error { return evaluate.WriteState(file, a) }
	}
	answered, err := evaluate.Search(ctx, opened.List, queries, o)
	switch {
	case err != nil && f.resume != "":
		err = fmt.Errorf("%w\n%d of %d queries are in %s: the same command goes on from there", err, len(answered), len(queries), f.resume)
	case err != nil:
		err = fmt.Errorf("%w\n%d of %d queries were answered; with --resume FILE they are kept, and the same command goes on", err, len(answered), len(queries))
	}
	return answered, err
}

// planOf says what the answers depend on.
func planOf(index string, opened *arms.Set, template *evaluate.Template, queries []judged.Query) evaluate.Plan {
	hash := sha256.New()
	for _, q := range queries {
		body, _ := template.Body(q) // an error is reported when it is searched for
		fmt.Fprintf(hash, "%q %q\n", q.ID, body)
	}
	return evaluate.Plan{"arms": opened.Plan, "index": index, "queries or template": hex.EncodeToString(hash.Sum(nil))}
}

// openState opens a state file to append to, a new one with its plan.
func openState(path string, plan evaluate.Plan) (file *os.File, known map[string]evaluate.Answered, err error) {
	if file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600); err != nil { //nolint:gosec // the user names it
		return nil, nil, err
	}
	known, whole, err := evaluate.ReadState(file, plan)
	if err == nil {
		err = file.Truncate(whole) // half a line of a run that was killed
	}
	if err == nil {
		_, err = file.Seek(whole, io.SeekStart)
	}
	if err == nil && whole == 0 {
		err = evaluate.WriteState(file, plan)
	}
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return file, known, nil
}

// write prints the result and writes the files that were asked for.
func (o *evalOut) write(ctx context.Context, stdout io.Writer, r *evaluate.Result, set *judged.Set, answered []evaluate.Answered) error {
	if o.perQuery != "" {
		if err := files.Write(ctx, o.perQuery, r.WriteCSV); err != nil {
			return err
		}
	}
	if o.runs != "" {
		if err := os.MkdirAll(o.runs, 0o777); err != nil { //nolint:gosec // less the umask, as files are
			return err
		}
		err := files.Write(ctx, filepath.Join(o.runs, "qrels.txt"), func(w io.Writer) error { return evaluate.WriteQrels(w, set) })
		for k, arm := range r.Arms {
			err = errors.Join(err, files.Write(ctx, filepath.Join(o.runs, arm.Name+".run"), func(w io.Writer) error {
				return evaluate.WriteRun(w, arm.Name, k, answered)
			}))
		}
		if err != nil {
			return err
		}
	}
	if o.report != "" {
		if err := writeReport(ctx, o.report, r); err != nil {
			return err
		}
	}
	if o.json {
		encoder := json.NewEncoder(stdout)
		encoder.SetIndent("", "  ")
		return encoder.Encode(r)
	}
	return r.WriteTable(stdout)
}

// writeReport writes a page and its plots into a folder.
func writeReport(ctx context.Context, folder string, r *evaluate.Result) error {
	all, err := report.Files(r)
	if err == nil {
		err = os.MkdirAll(folder, 0o777) //nolint:gosec // less the umask, as files are
	}
	for _, f := range all {
		if err == nil {
			err = files.Write(ctx, filepath.Join(folder, f.Name), func(w io.Writer) error { _, err := w.Write(f.Data); return err })
		}
	}
	return err
}
