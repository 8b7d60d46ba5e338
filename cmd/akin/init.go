package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/akin-search/akin/cmd/akin/internal/connect"
	"github.com/akin-search/akin/cmd/akin/internal/propose"
	"github.com/akin-search/akin/cmd/akin/internal/terminal"
	"github.com/akin-search/akin/configs"
)

// newInit proposes a first configuration.
func newInit() *cobra.Command {
	var cluster connect.Cluster
	var r propose.Request
	cmd := &cobra.Command{
		Use: "init --url URL", Short: "Ask a cluster what text it has, and write a configuration for it",
		Long: `init asks a cluster which indices have text fields and how those are analyzed, and
writes a configuration with an entry of matrices for each group of fields that are
analyzed alike. It says in comments why each line is there, and prints the commands
that come next. It changes nothing in the cluster. System indices, whose names begin
with a dot, are left out unless --index names them.

` + connect.Credentials,
		Example: `  akin init --url http://127.0.0.1:9200
  akin init --url http://127.0.0.1:9200 --index 'products*' --out products.yml`,
		Args: terminal.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r.Cluster, r.CAFile, r.Index = cluster.URL, cluster.CAFile, cluster.Index
			r.Credentials = os.Getenv(configs.EnvClusterUsername) != "" || os.Getenv(configs.EnvClusterAPIKey) != ""
			if err := r.Check(); err != nil {
				return terminal.Usage(err)
			}
			client, err := cluster.Open()
			if err != nil {
				return err
			}
			defer func() { _ = client.Close() }() // nothing was written
			return propose.Run(cmd.Context(), client, &r, cmd.OutOrStdout())
		},
	}
	cluster.RegisterServer(cmd.Flags(), "url", "the cluster (required)")
	cmd.Flags().StringVar(&cluster.Index, "index", "", "index, alias, data stream or pattern, or several as in a search; default all")
	cmd.Flags().StringVar(&r.Out, "out", "akin.yml", "file to write; - for standard output")
	cmd.Flags().BoolVar(&r.Force, "force", false, "replace a file that is there")
	return cmd
}
