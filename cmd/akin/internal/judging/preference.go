package judging

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/akin-search/akin/cmd/akin/internal/connect"
	"github.com/akin-search/akin/cmd/akin/internal/evidence"
	"github.com/akin-search/akin/cmd/akin/internal/files"
	"github.com/akin-search/akin/cmd/akin/internal/terminal"
	"github.com/akin-search/akin/evaluate/clicks"
)

// preferenceFlags are the flags of "preference".
type preferenceFlags struct {
	cluster             connect.Cluster
	impressions, clicks string
	ubi, asJSON         bool
}

func newPreference() *cobra.Command {
	var f preferenceFlags
	cmd := &cobra.Command{
		Use: "preference --impressions FILE --clicks FILE", Short: "Say which arm of a trial users prefer",
		Long: `preference joins the interleaved pages that akin serve has logged (log.impressions)
with what users clicked, and says for each trial which arm they prefer, if that is known.
Both files are lines of JSON. A click is {"query_id":"…","clicked":["document"]}, with the
id that the search had in the header X-Akin-Query-Id, or in ext.ubi.query_id. With --ubi
and --cluster clicks come from the index ubi_events of OpenSearch's User Behavior Insights.

delta is (wins of the second arm + ties/2) / searches with clicks − 1/2. An arm is
preferred where the 95 % interval of delta is wholly on its side of zero.

` + connect.Credentials,
		Example: `  akin preference --impressions pages.jsonl --clicks clicks.jsonl`,
		Args:    terminal.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.impressions == "" || f.ubi == (f.clicks != "") || f.ubi != (f.cluster.URL != "") {
				return terminal.Usage(errors.New("give --impressions FILE and --clicks FILE, or for the second --ubi and --cluster URL"))
			}
			j, err := f.judge(cmd.Context())
			if err != nil {
				return err
			}
			if f.asJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(j)
			}
			return printJudgment(cmd.OutOrStdout(), j)
		},
	}
	flags := cmd.Flags()
	f.cluster.RegisterServer(flags, "cluster", "URL of the cluster, for --ubi")
	flags.StringVar(&f.impressions, "impressions", "", "log of interleaved pages (required)")
	flags.StringVar(&f.clicks, "clicks", "", "clicks")
	flags.BoolVar(&f.ubi, "ubi", false, "read the clicks from ubi_events of the cluster")
	flags.BoolVar(&f.asJSON, "json", false, "print JSON")
	return cmd
}

func (f *preferenceFlags) judge(ctx context.Context) (*clicks.Judgment, error) {
	pages, err := files.Read(ctx, f.impressions, clicks.ReadPages)
	if err != nil {
		return nil, err
	}
	if !f.ubi {
		return files.Read(ctx, f.clicks, pages.Judge)
	}
	client, err := f.cluster.Open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = client.Close() }() // nothing was written
	clicked, err := evidence.Clicks(ctx, client)
	if err != nil {
		return nil, err
	}
	j, err := pages.Judge(clicked)
	if err != nil {
		err = fmt.Errorf("ubi_events: %w", err)
	}
	return j, err
}

// printJudgment prints a table, and what could not be counted.
func printJudgment(w io.Writer, j *clicks.Judgment) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "trial\tfirst arm\tsecond arm\tsearches\tclicked\twins 1st\twins 2nd\tties\tdelta\t95 % interval\tpreferred")
	name := terminal.Visible
	for _, p := range j.Preferences {
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%+.3f\t%+.3f to %+.3f\t%s\n", name(p.Trial), name(p.Arms[0]), name(p.Arms[1]),
			p.Searches, p.Clicked, p.Wins[0], p.Wins[1], p.Ties, p.Delta, p.Low, p.High, cmp.Or(name(p.Preferred()), "not known yet"))
	}
	fmt.Fprintf(table, "\nNot counted: %d clicks for unknown searches%s, %d on documents that were not shown%s, %d unreadable lines.\n",
		len(j.Unknown), named(j.Unknown), len(j.NotShown), named(j.NotShown), j.Unreadable)
	return table.Flush()
}

// named returns some names in brackets, "" for none.
func named(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return " (" + terminal.Some(names) + ")"
}
