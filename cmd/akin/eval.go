package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/tools/evaluate"
	"github.com/akin-search/akin/tools/reweigh"
)

type searchFlags struct {
	config   cli.Config
	name     string // of an entry of the configuration
	arms     armOptions
	searches searchCount
	json     bool
}

func (f *searchFlags) register(cmd *cobra.Command, depth int) {
	flags := cmd.Flags()
	a, s := &f.arms, &f.searches
	s.Depth = depth
	a.Register(flags, "URL of the cluster")
	flags.StringVar(&a.Akin, "akin", "", "URL of a running akin")
	flags.StringVar(&a.Admin, "akin-admin", "", "URL of its admin port, which tells the added terms")
	flags.StringArrayVar(&a.Arms, "arm", []string{"direct"}, "a way to search; give several to compare them with the first")
	flags.StringVar(&f.name, "name", "", "entry of matrices in the configuration: its indices are searched, and its file is that of the arm matrix; default the only one")
	flags.StringVar(&a.Title, "title", "", "field with the titles of documents, to show in the results")
	flags.StringVar(&s.Template, "template", "", "file of a search body with {{query}} in a string")
	flags.StringVar(&s.Resume, "resume", "", "keep the answers in this file, so that an interrupted run can continue")
	flags.BoolVar(&f.json, "json", false, "print the result as JSON, with each query")
	f.config.Register(cmd, a)
}

// begin opens the file of --resume and the arms. An akin in this process logs
// to stderr. The caller closes both.
func (f *searchFlags) begin(ctx context.Context, stderr io.Writer) (*armSet, error) {
	if err := f.searches.Open(); err != nil {
		return nil, err
	}
	if f.arms.Index == "" || slices.ContainsFunc(f.arms.Arms, fileless.MatchString) || f.name != "" {
		entry, err := f.config.Matrix(f.name)
		if err != nil {
			return nil, err
		}
		if entry != nil {
			f.arms.Index, f.arms.File = cmp.Or(f.arms.Index, strings.Join(entry.Indices, ",")), entry.File
		}
	}
	f.arms.Log = stderr
	return openArms(ctx, f.arms)
}

// searchCount says how to send queries.
type searchCount struct {
	Template string // the file of a search body; "" if queries have their own
	Depth    int    // hits to ask for if the search has no size
	Resume   string // the file that stores the answers; "" for none

	// Kept has the answers in the file of --resume.
	Kept *evaluate.Kept
	file *os.File
}

// ReadTemplate reads the template. The template asks for the field title.
func (s *searchCount) ReadTemplate(ctx context.Context, title string) (t *evaluate.Template, err error) {
	var body []byte
	if s.Template != "" {
		body, err = cli.Read(ctx, s.Template, func(r io.Reader) ([]byte, error) { return io.ReadAll(io.LimitReader(r, 1<<20)) })
	}
	if err == nil {
		if t, err = evaluate.NewTemplate(body, s.Depth, title); err != nil {
			err = fmt.Errorf("%s: %w", s.Template, err)
		}
	}
	return t, cli.Usage(err)
}

// Open opens the file of --resume.
func (s *searchCount) Open() (err error) {
	if s.Resume == "" {
		return nil
	}
	if s.file, err = os.OpenFile(s.Resume, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600); err == nil {
		s.Kept, err = evaluate.ReadKept(s.file)
	}
	if err != nil {
		s.Close()
		return fmt.Errorf("--resume %s: %w", s.Resume, err)
	}
	return nil
}

// Close closes the file of --resume.
func (s *searchCount) Close() {
	if s.file != nil {
		_ = s.file.Close() // each line was written at once
	}
}

// Send sends queries through the arms, except those answered in the file of
// --resume, and shows the progress on stderr. It leaves out queries with an
// error for which refused returns true; refused may be nil.
func (s *searchCount) Send(ctx context.Context, set *armSet, queries []evaluate.Query, t *evaluate.Template, refused func(error) bool, stderr io.Writer) ([]evaluate.Answered, error) {
	progress := cli.NewProgress(stderr)
	defer progress.End()
	o := evaluate.SearchOptions{Body: t.Body, Kept: s.Kept, Refused: refused, Progress: progress.Step}
	answered, err := evaluate.Search(ctx, set.List, queries, o)
	switch {
	case err != nil && s.file != nil:
		err = fmt.Errorf("%w\n%d of %d queries are in %s: the same command goes on from there", err, len(answered), len(queries), s.Resume)
	case err != nil:
		err = fmt.Errorf("%w\n%d of %d queries were answered; with --resume FILE the answers are kept, and the same command goes on", err, len(answered), len(queries))
	}
	return answered, err
}

type evalFlags struct {
	searchFlags

	judged          reweigh.Judged
	measures, under []string
	runs, report    string // a folder and a file to write
	export          string // a folder to write
}

// evaluated is how many hits judged searches ask for.
const evaluated = 100

func newEval() *cobra.Command {
	f := &evalFlags{}
	cmd := &cobra.Command{
		Use: "eval --judgments FILE --index INDEX [--arm ARM]…", Short: "Measure akin's effect on your search with judged queries",
		Long: `eval sends judged queries through several ways to search. It prints how good the
rankings are, whether the differences could be chance, and how long searches take.

` + armHelp + `

--judgments is BEIR's qrels.tsv, TREC's qrels, a CSV file with the header
query,document,grade, a _rank_eval request, or an export of Quepid or the Search
Relevance Workbench. --queries is BEIR's queries.jsonl, or lines of id, tab and text.
--template is your search body with {{query}} in place of the text. Grades above 0 are
relevant. Ties and documents without a grade count as in trec_eval.

The exit status is 3 if a condition of --fail-under is not met.

` + cli.Credentials,
		Example: `  akin eval --template search.json --queries queries.jsonl --judgments qrels.tsv --arm direct --arm matrix
  akin eval --cluster http://127.0.0.1:9200 --index docs --template search.json \
    --queries queries.jsonl --judgments qrels.tsv --arm direct --arm new=matrix:docs.akin
  akin eval --akin http://127.0.0.1:9280 --akin-admin http://127.0.0.1:9281 --index docs \
    --template search.json --judgments judged.csv --arm direct --arm akin --fail-under nDCG@10=+0%`,
		Args: cli.NoArgs,
		RunE: f.run,
	}
	f.register(cmd, evaluated)
	flags := cmd.Flags()
	f.judged.Register(flags, "file of judgments (required)")
	flags.StringSliceVar(&f.measures, "measures", evaluate.DefaultMeasures(), "what to measure: MAP, MRR, and nDCG, MRR, P, recall with @k")
	flags.StringVar(&f.runs, "runs", "", "write each arm's rankings as a TREC run file into this folder, and the judgments as qrels.txt")
	flags.StringVar(&f.report, "report", "", "write the result as an HTML page into this file")
	flags.StringVar(&f.export, "export", "", "write the searches of each arm, the queries and the judgments for OpenSearch's Search Relevance Workbench, and the judgments for Quepid, into this folder")
	flags.StringArrayVar(&f.under, "fail-under", nil, "what each arm but the first must reach: nDCG@10=0.35, or relative to the first arm nDCG@10=+2%")
	return cmd
}

func (f *evalFlags) check() (measures []evaluate.Measure, conditions evaluate.Conditions, err error) {
	if measures, err = evaluate.ParseMeasures(f.measures); err != nil {
		return nil, nil, fmt.Errorf("--measures: %w", err)
	}
	if conditions, err = evaluate.ParseConditions(f.under, measures); err == nil && conditions.NeedSecondArm() && len(f.arms.Arms) < 2 {
		err = errors.New("a change from the first arm needs a second --arm")
	}
	if err != nil {
		return nil, nil, fmt.Errorf("--fail-under: %w", err)
	}
	if f.report != "" {
		if err := cli.CheckTarget(f.report); err != nil {
			return nil, nil, fmt.Errorf("--report: %w", err)
		}
	}
	if err := makeFolder(f.runs, "qrels.txt"); err != nil {
		return nil, nil, fmt.Errorf("--runs: %w", err)
	}
	if err := makeFolder(f.export, "query_set.json"); err != nil {
		return nil, nil, fmt.Errorf("--export: %w", err)
	}
	return measures, conditions, nil
}

// makeFolder makes a folder to write such a file into; "" is none.
func makeFolder(folder, file string) error {
	if folder == "" {
		return nil
	}
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return err
	}
	return cli.CheckTarget(filepath.Join(folder, file))
}

func (f *evalFlags) run(cmd *cobra.Command, _ []string) error {
	ctx, stderr := cmd.Context(), cmd.ErrOrStderr()
	measures, conditions, err := f.check()
	if err != nil {
		return cli.Usage(err)
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
			return cli.Usage(fmt.Errorf("%s looks at %d hits, and the search asks for %d: change --measures, or the size in the template",
				m.Name, m.K, template.Depth()))
		}
	}
	defer f.searches.Close()
	f.arms.KeepsSent = f.export != ""
	opened, err := f.begin(ctx, stderr)
	if err != nil {
		return err
	}
	defer opened.Close()
	missing, err := opened.Missing(ctx, set.Documents())
	if err != nil {
		return err
	}
	answered, err := f.searches.Send(ctx, opened, set.Judged(), template, nil, stderr)
	if err != nil {
		return err
	}
	result := evaluate.Judge(set, opened.List, answered, measures)
	result.LeftOut.Documents = missing
	if err := f.write(ctx, result, set, answered); err != nil {
		return err
	}
	if f.export != "" {
		if err := f.exported(ctx, stderr, set, opened.List, answered); err != nil {
			return fmt.Errorf("--export: %w", err)
		}
	}
	if err := cli.Print(cmd.OutOrStdout(), f.json, result, result.WriteTable); err != nil {
		return err
	}
	return conditions.Check(result)
}

func (f *evalFlags) write(ctx context.Context, r *evaluate.Result, set *evaluate.Set, answered []evaluate.Answered) (err error) {
	write := func(folder, name string, write func(w io.Writer) error) {
		err = cmp.Or(err, cli.Write(ctx, filepath.Join(folder, name), write))
	}
	if f.runs != "" {
		write(f.runs, "qrels.txt", func(w io.Writer) error { return evaluate.WriteQrels(w, set) })
		for k, arm := range r.Arms {
			write(f.runs, arm.Name+".run", func(w io.Writer) error { return evaluate.WriteRun(w, arm.Name, k, answered) })
		}
	}
	if f.report != "" {
		write("", f.report, func(w io.Writer) error { return evaluate.WritePage(w, r) })
	}
	return err
}

// workbenchQueries is how many queries a query set of the workbench has at most
// by its default, plugins.search_relevance.query_set.maximum.
const workbenchQueries = 1000

// exported writes the folder of --export, and says on stderr what is not in it.
func (f *evalFlags) exported(ctx context.Context, stderr io.Writer, set *evaluate.Set, arms []evaluate.Arm, answered []evaluate.Answered) error {
	e, err := evaluate.NewExport("akin", f.arms.Index, set, arms, answered)
	if err != nil {
		return err
	}
	write := func(name string, content any) {
		err = cmp.Or(err, cli.Write(ctx, filepath.Join(f.export, name), func(w io.Writer) error { return json.NewEncoder(w).Encode(content) }))
	}
	write("query_set.json", e.QuerySet)
	write("judgments.json", e.Judgments)
	for k, search := range e.Searches {
		write("search_"+arms[k].Name+".json", search)
		if n := e.Reordered[arms[k].Name]; n > 0 {
			fmt.Fprintf(stderr, "%s: akin put the hits of %d searches in order after the engine, which no search configuration does: export mode=bm25\n", arms[k].Name, n)
		}
	}
	if strings.Contains(f.arms.Index, ",") {
		fmt.Fprintf(stderr, "A search configuration has one index or alias, not %s: give one that stands for all\n", f.arms.Index)
	}
	if len(e.Refused) > 0 {
		fmt.Fprintf(stderr, "%d queries are left out, which the workbench refuses for their characters or length: %.200q\n", len(e.Refused), e.Refused)
	}
	if n := len(e.QuerySet.Queries); n > workbenchQueries {
		fmt.Fprintf(stderr, "The query set has %d queries: raise plugins.search_relevance.query_set.maximum, which is %d by default\n", n, workbenchQueries)
	}
	quepid := func(w io.Writer) error { return evaluate.WriteQuepid(w, set) }
	return cmp.Or(err, cli.Write(ctx, filepath.Join(f.export, "quepid.csv"), quepid))
}

type compareFlags struct {
	searchFlags

	log   string
	judge string
}

// judgedPairs is how many pairs of query and document --judge writes.
const judgedPairs = 200

func newCompare() *cobra.Command {
	f := &compareFlags{}
	cmd := &cobra.Command{
		Use: "compare --log FILE --index INDEX --arm ARM --arm ARM", Short: "Show without judgments what akin changes in your users' searches",
		Long: `compare sends the queries of a log through two ways to search. It prints how similar the
rankings are, how many searches without hits get some, and how long searches take.
With --judge it writes a table of the documents that the two rank most differently. The
order does not show which ranking they come from. Fill in the column grade, 0 for a
useless document, and give the table to akin eval --judgments.

` + armHelp + `

--log has one query a line, as text or as JSON: {"query":"…","count":3,"id":"…"},
where count and id are optional, or it is a query set of OpenSearch's Search Relevance
Workbench. Repeated queries count several times. --template is your search body with
{{query}} in place of the text.

` + cli.Credentials,
		Example: `  akin compare --cluster http://127.0.0.1:9200 --index docs --template search.json \
    --log queries.txt --arm direct --arm new=matrix:docs.akin --title title --judge pairs.csv
  akin eval --cluster http://127.0.0.1:9200 --index docs --template search.json \
    --judgments pairs.csv --arm direct --arm new=matrix:docs.akin`,
		Args:    cli.NoArgs,
		PreRunE: f.check, RunE: f.run,
	}
	f.register(cmd, 10)
	cmd.Flags().StringVar(&f.log, "log", "", "file of queries (required)")
	cmd.Flags().StringVar(&f.judge, "judge", "", "write the documents whose ranks differ most into this CSV file, for judging by hand")
	return cmd
}

func (f *compareFlags) check(*cobra.Command, []string) error {
	switch {
	case f.log == "":
		return cli.Usage(errors.New("give --log FILE"))
	case len(f.arms.Arms) != 2:
		return cli.Usage(errors.New("give two arms, no more and no fewer: --arm ARM --arm ARM"))
	case f.judge == "":
		return nil
	case f.arms.Title == "":
		return cli.Usage(errors.New("--judge: give --title FIELD, the text that the judge sees"))
	}
	if err := cli.CheckTarget(f.judge); err != nil {
		return cli.Usage(fmt.Errorf("--judge: %w", err))
	}
	return nil
}

func (f *compareFlags) run(cmd *cobra.Command, _ []string) error {
	ctx, stderr := cmd.Context(), cmd.ErrOrStderr()
	log, err := reweigh.ReadQueryLog(ctx, f.log, stderr)
	if err != nil {
		return err
	}
	template, err := f.searches.ReadTemplate(ctx, f.arms.Title)
	if err != nil {
		return err
	}
	defer f.searches.Close()
	opened, err := f.begin(ctx, stderr)
	if err != nil {
		return err
	}
	defer opened.Close()
	var refusal error
	answered, err := f.searches.Send(ctx, opened, log.Queries, template, func(err error) bool {
		answer, refused := errors.AsType[*esclient.Error](err)
		if refused = refused && answer.Status == http.StatusBadRequest; refused {
			refusal = err
		}
		return refused
	}, stderr)
	if err != nil {
		return err
	}
	c := evaluate.Compare([2]string{opened.List[0].Name, opened.List[1].Name}, log.Queries, answered)
	if c.Queries == 0 {
		return errors.Join(errors.New("the cluster refuses all queries"), refusal)
	}
	if f.judge != "" {
		pairs := evaluate.Differences(log.Queries, answered, judgedPairs)
		err := cli.Write(ctx, f.judge, func(w io.Writer) error { return evaluate.WriteDifferences(w, pairs) })
		if err != nil {
			return err
		}
		fmt.Fprintf(stderr, "%d pairs to be judged are in %s\n", len(pairs), f.judge)
	}
	return cli.Print(cmd.OutOrStdout(), f.json, c, c.WriteTable)
}
