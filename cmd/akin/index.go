package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/akin-search/akin/cmd/akin/internal/advise"
	"github.com/akin-search/akin/cmd/akin/internal/connect"
	"github.com/akin-search/akin/cmd/akin/internal/terminal"
	"github.com/akin-search/akin/norms"
)

func newIndex() *cobra.Command {
	return commandGroup(&cobra.Command{
		Use: "index", Short: "Say what an index must have",
		Long: `Mode bm25 and mode soft need nothing of an index. Mode hard needs a field whose score
is linear, and a number in each document.`,
		Example: `  akin index advise --cluster http://127.0.0.1:9200 --index docs --field body`,
	}, newIndexAdvise())
}

func newIndexAdvise() *cobra.Command {
	var f advise.Request
	var cluster connect.Cluster
	var redis connect.Redis
	cmd := &cobra.Command{
		Use: "advise", Short: "Print what mode hard needs of an index, and check it",
		Long: `advise checks what mode hard needs of an index to rank by a field: a field of the same
text and analyzers whose score is linear in the term frequency, two fields for the
norms of the documents, and a norm in each document. It prints what it finds, and then
what to send to the cluster and which commands to run, as the developer tools of Kibana
and OpenSearch Dashboards take it. It changes nothing itself. The exit status is 0 where
mode hard can be used, and 1 where something is missing. Where the texts are long, 300
terms or more on average, it also prints the mapping for their segments.

With --new it prints the body of the request that creates such an index, as JSON. Where
the index is there already, that is one like it, to reindex into: the way for indices that
cannot be closed. Nothing is checked then.

The score is linear with a scripted similarity, which is exact, or, where the cluster
takes no scripts there, with BM25 with k1 10,000 and b 0, which is 0.1 % off for ten
occurrences and 0.3 % for thirty. --scripted says which; auto asks the cluster.

` + matrixHelp + ` So is WEIGHTS of --weights.`,
		Example: `  akin index advise --cluster http://127.0.0.1:9200 --index docs --field body --new --analyzer english
  akin index advise --cluster http://127.0.0.1:9200 --index docs --field body
  akin index advise --cluster http://127.0.0.1:9200 --index docs --field body --weights weights.akin`,
		Args: terminal.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.Cluster, f.Index = cluster.URL, cluster.Index
			if err := checkAdvise(&f); err != nil {
				return terminal.Usage(err)
			}
			client, err := cluster.Open()
			if err != nil {
				return err
			}
			defer func() { _ = client.Close() }() // nothing was written
			if f.Weights != "" {
				m, err := openMatrix(cmd.Context(), cmd.ErrOrStderr(), f.Weights, &redis)
				if err != nil {
					return err
				}
				if _, err := norms.NewWeights(m); err != nil {
					return fmt.Errorf("%s: %w", f.Weights, err)
				}
				f.WeightsID = norms.ID(m.Checksum())
			}
			return advise.Run(cmd.Context(), client, f, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	redis.RegisterServer(cmd)
	flags := cmd.Flags()
	cluster.Register(flags, "URL of the cluster")
	flags.StringVar(&f.Field, "field", "", "text field that is searched")
	flags.StringVar(&f.Weights, "weights", "", "check that the norms are by these weights; default any, the same in all documents")
	flags.BoolVar(&f.JSON, "json", false, "print the checks as JSON")
	flags.BoolVar(&f.New, "new", false, "print the body that creates an index")
	flags.StringVar(&f.Analyzer, "analyzer", "", "with --new, for an index that is not there: analyzer of the field; default the cluster's")
	flags.StringVar(&f.Scripted, "scripted", "auto", "print a scripted similarity: auto, yes or no")
	return cmd
}

// checkAdvise returns all that is wrong with the flags.
func checkAdvise(f *advise.Request) error {
	var errs []error
	fail := func(bad bool, text string) {
		if bad {
			errs = append(errs, errors.New(text))
		}
	}
	fail(f.Cluster == "" || f.Index == "" || f.Field == "", "give --cluster, --index and --field")
	fail(f.Scripted != "auto" && f.Scripted != "yes" && f.Scripted != "no", "--scripted: "+f.Scripted+" is none of auto, yes, no")
	fail(f.Analyzer != "" && !f.New, "--analyzer goes with --new only")
	fail(f.Weights != "" && f.New, "--weights does not go with --new")
	return errors.Join(errs...)
}
