package judging

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/akin-search/akin/cmd/akin/internal/evidence"
	"github.com/akin-search/akin/cmd/akin/internal/files"
	"github.com/akin-search/akin/cmd/akin/internal/terminal"
	"github.com/akin-search/akin/evaluate/judged"
)

func newJudgments() *cobra.Command {
	var in evidence.Judged
	var log, format, out string
	cmd := &cobra.Command{
		Use: "judgments --judgments FILE --format FORMAT --out FILE", Short: "Give judged queries to another program",
		Long: `judgments reads what akin eval reads, or the queries that akin compare reads, and
writes them in the format of another program:
  quepid                CSV from which Quepid imports ratings into a case
  workbench-judgments   the body of PUT _plugins/_search_relevance/judgments and
  workbench-queries     of PUT _plugins/_search_relevance/query_sets, for OpenSearch's
                        Search Relevance Workbench
  csv                   query_id,query,document,grade
What these programs export is read by its content: by akin eval --judgments a case of
Quepid and its ratings, as CSV or JSON, and the answer to GET
_plugins/_search_relevance/judgments/ID.`,
		Example: `  akin judgments --queries queries.jsonl --judgments qrels.tsv --format quepid --out case.csv
  akin judgments --log queries.txt --format workbench-queries --out query-set.json`,
		Args: terminal.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if (in.Judgments == "") == (log == "") || !slices.Contains(judged.Formats, format) {
				return terminal.Usage(fmt.Errorf("give --judgments or --log, and --format with one of %s", strings.Join(judged.Formats, ", ")))
			}
			if err := files.CheckOut(out); err != nil {
				return terminal.Usage(err)
			}
			set, err := readSet(cmd, &in, log)
			if err != nil {
				return err
			}
			var refused []judged.Query
			err = files.Write(cmd.Context(), out, func(w io.Writer) (err error) {
				refused, err = set.Write(w, format)
				return err
			})
			for _, q := range refused {
				fmt.Fprintf(cmd.ErrOrStderr(), "left out, the format does not take it: %q\n", q.ID)
			}
			return err
		},
	}
	in.Register(cmd.Flags())
	cmd.Flags().StringVar(&log, "log", "", "file of queries without judgments, in place of --judgments")
	cmd.Flags().StringVar(&format, "format", "", "what to write: "+strings.Join(judged.Formats, ", ")+" (required)")
	cmd.Flags().StringVar(&out, "out", "", "file to write (required)")
	return cmd
}

// readSet reads a judged set, or the queries of a log.
func readSet(cmd *cobra.Command, in *evidence.Judged, log string) (*judged.Set, error) {
	if log == "" {
		return in.Read(cmd.Context())
	}
	asked, err := evidence.ReadLog(cmd.Context(), log, cmd.ErrOrStderr())
	if err != nil {
		return nil, err
	}
	return &judged.Set{Queries: asked.Queries}, nil
}
