package main

import (
	"context"
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
	"github.com/akin-search/akin/cmd/akin/internal/tuning"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/evaluate"
	"github.com/akin-search/akin/evaluate/judged"
	"github.com/akin-search/akin/evaluate/report"
)

// evalFlags are the flags of "eval".
type evalFlags struct {
	cluster  clusterFlags
	arms     arms.Options
	searches arms.Searches
	judged   arms.Judged
	measures []string
	out      evalOut
	under    []string
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
query,document,grade, a _rank_eval request, or what Quepid or the Search Relevance
Workbench export; --queries is BEIR's queries.jsonl,
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

func newTune() *cobra.Command {
	var cluster clusterFlags
	cmd := tuning.Command(tuning.Cluster{
		Open: func() (*esclient.Client, string, error) {
			client, err := cluster.open()
			return client, cluster.index, err
		},
		Names: originNames,
	})
	cmd.Args, cmd.Long = noArgs, cmd.Long+clusterCredentials
	cluster.register(cmd.Flags(), "URL of the cluster")
	return cmd
}

func (f *evalFlags) register(flags *pflag.FlagSet) {
	f.cluster.register(flags, "URL of the cluster")
	f.arms.Register(flags)
	f.searches.Register(flags, 100)
	f.judged.Register(flags)
	flags.StringSliceVar(&f.measures, "measures", evaluate.DefaultMeasures(), "what to measure: MAP, MRR, and nDCG, MRR, P, recall with @k")
	flags.BoolVar(&f.out.json, "json", false, "print the result as JSON, with each query and its first hits")
	flags.StringVar(&f.out.perQuery, "per-query", "", "write a CSV file with a line for each query and arm")
	flags.StringVar(&f.out.runs, "runs", "", "write each arm's rankings as a TREC run file into this folder, and the judgments as qrels.txt")
	flags.StringVar(&f.out.report, "report", "", "write a page that shows the result, index.html, and its plots as SVG into this folder")
	flags.StringArrayVar(&f.under, "fail-under", nil, "what each arm but the first has to reach: nDCG@10=0.35, or over the first arm nDCG@10=+2%")
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
	if conditions.NeedSecondArm() && len(f.arms.Arms) < 2 {
		return terminal.Usage(errors.New("--fail-under: a change from the first arm needs a second --arm"))
	}
	if f.out.perQuery != "" {
		if err := files.CheckTarget(f.out.perQuery); err != nil {
			return terminal.Usage(fmt.Errorf("--per-query: %w", err))
		}
	}
	set, err := f.judged.Read(ctx)
	if err != nil {
		return err
	}
	template, err := f.searches.ReadTemplate(ctx, f.arms.Title)
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
	answered, err := f.searches.Send(ctx, opened, set.Judged(), evaluate.SearchOptions{Body: template.Body}, stderr)
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
