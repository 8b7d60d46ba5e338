package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/internal/cli"
)

func newInit() *cobra.Command {
	var cluster cli.Cluster
	var r initRequest
	cmd := &cobra.Command{
		Use: "init --url URL", Short: "Ask a cluster what text it has, and write a configuration for it",
		Long: `init asks a cluster which indices have text fields and how those are analyzed, and
writes a configuration with an entry of matrices for each group of fields that are
analyzed alike. It says in comments why each line is there, and prints the commands
that come next. It changes nothing in the cluster. System indices, whose names begin
with a dot, are left out unless --index names them.

` + cli.Credentials,
		Example: `  akin init --url http://127.0.0.1:9200
  akin init --url http://127.0.0.1:9200 --index 'products*' --out products.yml`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r.Cluster, r.CAFile, r.Index = cluster.URL, cluster.CAFile, cluster.Index
			r.Credentials = os.Getenv(configs.EnvClusterUsername) != "" || os.Getenv(configs.EnvClusterAPIKey) != ""
			if err := r.Check(); err != nil {
				return cli.Usage(err)
			}
			client, err := cluster.Open()
			if err != nil {
				return err
			}
			defer func() { _ = client.Close() }() // nothing was written
			return runInit(cmd.Context(), client, &r, cmd.OutOrStdout())
		},
	}
	cluster.RegisterServer(cmd.Flags(), "url", "the cluster (required)")
	cmd.Flags().StringVar(&cluster.Index, "index", "", "index, alias, data stream or pattern, or several as in a search; default all")
	cmd.Flags().StringVar(&r.Out, "out", "akin.yml", "file to write; - for standard output")
	cmd.Flags().BoolVar(&r.Force, "force", false, "replace a file that is there")
	return cmd
}

// Check returns what is wrong with the request.
func (r *initRequest) Check() error {
	switch {
	case r.Cluster == "":
		return errors.New("give --url URL of your cluster")
	case r.Out == cli.Stdout:
		return nil
	}
	if err := cli.CheckOut(r.Out); err != nil {
		return err
	}
	if there, err := cli.Exists(r.Out); err != nil || there && !r.Force {
		return errors.Join(err, fmt.Errorf("%s is there already: give another --out, or --force to replace it", r.Out))
	}
	return nil
}

// runInit asks the cluster, writes the file, and prints on out what to do next.
func runInit(ctx context.Context, client *esclient.Client, r *initRequest, out io.Writer) error {
	p := &proposal{initRequest: r}
	if err := p.ask(ctx, client); err != nil {
		return err
	}
	if r.Out == cli.Stdout {
		return p.write(out)
	}
	if err := cli.Write(ctx, r.Out, p.write); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s is written. Look through it, then:\n", r.Out)
	for _, line := range p.next() {
		fmt.Fprintf(out, "  %s\n", line)
	}
	return nil
}
