package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/akin-search/akin/configs"
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
	if _, err := os.Lstat(p.out); err == nil {
		return fmt.Errorf("%s is there already: give another --out, or remove it", p.out)
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

func (p *proposal) write(w io.Writer) error {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("# A configuration of akin, proposed for %s %s.", cli.Visible(p.info.Distribution), cli.Visible(p.info.Version))
	line("# configs/akin.yml has all keys with their meaning; what is not here has its default.")
	line("#\n# Next, in this order:")
	for _, next := range p.next() {
		line("#   %s", cli.Visible(next))
	}
	line("\ncluster:")
	if p.nodes > 1 {
		line("  # The cluster has %d nodes: name more of them, so that one may be away.", p.nodes)
	} else {
		line("  # Where searches go.")
	}
	line("  urls: [%s]", scalar(p.URL))
	if p.CAFile != "" {
		path, err := filepath.Abs(p.CAFile)
		if err != nil {
			path = p.CAFile
		}
		line("  # The authority that signs the certificates of the nodes.\n  tls: {ca_file: %s}", scalar(path))
	}
	if os.Getenv(configs.EnvClusterUsername) != "" || os.Getenv(configs.EnvClusterAPIKey) != "" {
		line("  # Credentials for akin's own calls never stand here. They come from the environment,\n  # %s and %s, or %s.",
			configs.EnvClusterUsername, configs.EnvClusterPassword, configs.EnvClusterAPIKey)
	} else {
		line("  # The cluster asked for no credentials.")
	}
	line("\nexpansion:")
	if p.scripts {
		line("  # auto: this cluster runs scripts, so that searches are scored in the form saturated,\n  # which ranks best. Without scripts they are scored in the form grouped.")
	} else {
		line("  # auto: saturated, which ranks best, where the cluster runs scripts, else grouped. This\n  # one runs none, or did not say.")
	}
	line("  scoring: auto")
	line("  # widen also finds documents that have related words only: totals and facets grow.")
	line("  # same keeps the hits as they are, and only orders them better.")
	line("  matching: widen")
	line("\n# Which matrix is for which fields. Fields that are analyzed alike share one; take out\n# the fields that nobody searches.\nmatrices:")
	for k := range p.groups {
		g := &p.groups[k]
		line("  # Analyzed by %s; %d documents.", cli.Visible(g.analyzer), g.docs)
		if g.docs == 0 {
			line("  # There is nothing to learn from yet: build the matrix once there are documents.")
		}
		line("  - name: %s", scalar(g.name))
		line("    indices: %s", list(g.indices))
		line("    fields: %s", list(g.fields))
		line("    # Written by akin matrix build, and read again whenever it changes.")
		line("    file: %s", scalar(g.file()))
	}
	if len(p.left) > 0 {
		line("\n# Left out:")
	}
	const shown = 20
	for _, text := range p.left[:min(len(p.left), shown)] {
		line("#   %s", cli.Visible(text))
	}
	if more := len(p.left) - shown; more > 0 {
		line("#   and %d fields more", more)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (p *proposal) next() (lines []string) {
	config := p.out
	if config == cli.Stdout {
		config = "akin.yml"
	}
	for k := range p.groups {
		g := &p.groups[k]
		args := []string{"matrix", "build", "--from-index", p.URL}
		if p.CAFile != "" {
			args = append(args, "--ca-file", p.CAFile)
		}
		args = append(args, "--index", strings.Join(g.indices, ","), "--field", strings.Join(g.fields, ","),
			"--out", filepath.Join(filepath.Dir(config), g.file()))
		lines = append(lines, "akin "+cli.CommandLine(args...))
	}
	return append(lines, "akin "+cli.CommandLine("check", "--config", config), "akin "+cli.CommandLine("serve", "--config", config))
}

// plain matches what YAML takes for a string without quotes, for sure.
var plain = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._-]{5,}$`)

// scalar returns a string as YAML, which has the escapes of Go.
func scalar(text string) string {
	if plain.MatchString(text) {
		return text
	}
	return strconv.Quote(text)
}
