package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/akin-search/akin/cmd/akin/internal/files"
	"github.com/akin-search/akin/cmd/akin/internal/terminal"
	"github.com/akin-search/akin/evaluate/clicks"
)

func newPreference() *cobra.Command {
	var impressions, clicked string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "preference --impressions FILE --clicks FILE", Short: "Say which arm of a trial users prefer",
		Long: `preference joins the interleaved pages that akin serve has logged (log.impressions)
with what users clicked, and says for each trial which arm they prefer, if that is known.
Both files are lines of JSON. A click is {"query_id":"…","clicked":["document"]}, with the
id that the search had in the header X-Akin-Query-Id, or in ext.ubi.query_id.

delta is (wins of the second arm + ties/2) / searches with clicks − 1/2. An arm is
preferred where the 95 % interval of delta is wholly on its side of zero.`,
		Example: `  akin preference --impressions pages.jsonl --clicks clicks.jsonl`,
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if impressions == "" || clicked == "" {
				return terminal.Usage(errors.New("give --impressions FILE and --clicks FILE"))
			}
			pages, err := files.Read(cmd.Context(), impressions, clicks.ReadPages)
			if err != nil {
				return err
			}
			j, err := files.Read(cmd.Context(), clicked, pages.Judge)
			if err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(j)
			}
			return printJudgment(cmd.OutOrStdout(), j)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&impressions, "impressions", "", "log of interleaved pages (required)")
	flags.StringVar(&clicked, "clicks", "", "clicks (required)")
	flags.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// printJudgment prints a table, and what could not be counted.
func printJudgment(w io.Writer, j *clicks.Judgment) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "trial\tfirst arm\tsecond arm\tsearches\tclicked\twins 1st\twins 2nd\tties\tdelta\t95 % interval\tpreferred")
	for _, p := range j.Preferences {
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%+.3f\t%+.3f to %+.3f\t%s\n", p.Trial, p.Arms[0], p.Arms[1],
			p.Searches, p.Clicked, p.Wins[0], p.Wins[1], p.Ties, p.Delta, p.Low, p.High, cmp.Or(p.Preferred(), "not known yet"))
	}
	fmt.Fprintf(table, "\nNot counted: %d clicks for unknown searches, %d on documents that were not shown, %d unreadable lines.\n",
		j.Unknown, j.NotShown, j.Unreadable)
	return table.Flush()
}
