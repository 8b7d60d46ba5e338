package judging

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/akin-search/akin/cmd/akin/internal/arms"
	"github.com/akin-search/akin/cmd/akin/internal/connect"
	"github.com/akin-search/akin/cmd/akin/internal/evidence"
	"github.com/akin-search/akin/cmd/akin/internal/files"
	"github.com/akin-search/akin/cmd/akin/internal/terminal"
	"github.com/akin-search/akin/esclient/answers"
	"github.com/akin-search/akin/evaluate"
)

// compareFlags are the flags of "compare".
type compareFlags struct {
	searchFlags

	log   string
	judge string
	pairs int
}

func newCompare(version string) *cobra.Command {
	f := &compareFlags{searchFlags: searchFlags{version: version}}
	cmd := &cobra.Command{
		Use: "compare --log FILE --index INDEX --arm ARM --arm ARM", Short: "See without judgments what akin changes in the searches of your users",
		Long: `compare sends the queries of a log through two ways to search and says how alike the
rankings are, how many searches without hits get some, and how long searches take.
With --judge it writes the documents that the two rank most differently as a table,
in an order that does not say where they come from: who judges fills in the column
grade, 0 for a document that is of no use, and akin eval --judgments reads the table.

` + arms.Help + `

--log has one query a line, as text or as JSON: {"query":"…","count":3,"id":"…"},
where count and id may be missing; or it is a query set of OpenSearch's Search
Relevance Workbench. Queries that come again count as often. --template is a search
body of yours with {{query}} in place of the text.

` + connect.Credentials,
		Example: `  akin compare --cluster http://127.0.0.1:9200 --index docs --template search.json \
    --log queries.txt --arm direct --arm new=matrix:docs.akin --title title --judge pairs.csv
  akin eval --cluster http://127.0.0.1:9200 --index docs --template search.json \
    --judgments pairs.csv --arm direct --arm new=matrix:docs.akin`,
		Args: terminal.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f.register(cmd.Flags(), 10)
	cmd.Flags().StringVar(&f.log, "log", "", "file of queries (required)")
	cmd.Flags().StringVar(&f.judge, "judge", "", "write the documents that differ most into this CSV file, to be judged by hand")
	cmd.Flags().IntVar(&f.pairs, "pairs", 200, "how many pairs of a query and a document --judge writes")
	return cmd
}

// check returns what is wrong with the flags.
func (f *compareFlags) check() error {
	switch {
	case f.log == "":
		return errors.New("give --log FILE")
	case len(f.arms.Arms) != 2:
		return errors.New("give two arms, --arm ARM --arm ARM")
	case f.pairs < 1:
		return fmt.Errorf("--pairs: %d is below 1", f.pairs)
	case f.judge == "":
		return nil
	case f.arms.Title == "":
		return errors.New("--judge: give --title FIELD, the text of documents that the judge sees")
	}
	if err := files.CheckTarget(f.judge); err != nil {
		return fmt.Errorf("--judge: %w", err)
	}
	return nil
}

func (f *compareFlags) run(ctx context.Context, stdout, stderr io.Writer) error {
	if err := f.check(); err != nil {
		return terminal.Usage(err)
	}
	log, err := evidence.ReadLog(ctx, f.log, stderr)
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
		answer, refused := errors.AsType[*answers.Error](err)
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
		pairs := evaluate.Differences(log.Queries, answered, f.pairs)
		err := files.Write(ctx, f.judge, func(w io.Writer) error { return evaluate.WriteDifferences(w, pairs) })
		if err != nil {
			return err
		}
		fmt.Fprintf(stderr, "%d pairs to be judged are in %s\n", len(pairs), f.judge)
	}
	return terminal.Print(stdout, f.json, c, c.WriteTable)
}
