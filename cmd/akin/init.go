package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/akin-search/akin/internal/cli"
)

func newInit() *cobra.Command {
	p := &proposal{}
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
			if err := p.check(); err != nil {
				return cli.Usage(err)
			}
			return p.run(cmd.Context(), cmd.OutOrStdout())
		},
	}
	p.RegisterServer(cmd.Flags(), "url", "the cluster (required)")
	cmd.Flags().StringVar(&p.Index, "index", "", "index, alias, data stream or pattern, or several as in a search; default all")
	cmd.Flags().StringVar(&p.out, "out", "akin.yml", "file to write; - for standard output")
	cmd.Flags().BoolVar(&p.force, "force", false, "replace a file that is there")
	return cmd
}

func (p *proposal) check() error {
	switch {
	case p.URL == "":
		return errors.New("give --url URL of your cluster")
	case p.out == cli.Stdout:
		return nil
	}
	if err := cli.CheckOut(p.out); err != nil {
		return err
	}
	if _, err := os.Lstat(p.out); err == nil && !p.force {
		return fmt.Errorf("%s is there already: give another --out, or --force to replace it", p.out)
	}
	return nil
}

func (p *proposal) run(ctx context.Context, out io.Writer) error {
	client, err := p.Open()
	if err != nil {
		return err
	}
	defer client.Close()
	if err := p.ask(ctx, client); err != nil {
		return err
	}
	if p.out == cli.Stdout {
		return p.write(out)
	}
	if err := cli.Write(ctx, p.out, p.write); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s is written. Look through it, then:\n", p.out)
	for _, line := range p.next() {
		fmt.Fprintf(out, "  %s\n", line)
	}
	fmt.Fprint(out, "\n"+betterWords)
	return nil
}
