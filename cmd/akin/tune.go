package main

import (
	"github.com/spf13/cobra"

	"github.com/akin-search/akin/cmd/akin/internal/connect"
	"github.com/akin-search/akin/cmd/akin/internal/terminal"
	"github.com/akin-search/akin/cmd/akin/internal/tuning"
	"github.com/akin-search/akin/esclient"
)

func newTune() *cobra.Command {
	var cluster connect.Cluster
	cmd := tuning.Command(tuning.Cluster{
		Open: func() (*esclient.Client, string, error) {
			client, err := cluster.Open()
			return client, cluster.Index, err
		},
		Names: originNames, Serve: serveHTTP,
	})
	cmd.Args, cmd.Long = terminal.NoArgs, cmd.Long+connect.Credentials
	cluster.Register(cmd.Flags(), "URL of the cluster")
	return cmd
}
