package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/internal/cli"
)

func newInit() *cobra.Command {
	p := &proposal{}
	cmd := &cobra.Command{
		Use: "init --cluster URL", Short: "Write a configuration for the text fields of a cluster",
		Long: `init asks a cluster which indices have text fields and how those are analyzed, and
writes a configuration with an entry of matrices for each group of fields that are
analyzed alike. Comments explain each line. init then prints the next commands. It
changes nothing in the cluster. It skips system indices, whose names begin with a dot,
unless --index names them.

` + cli.Credentials,
		Example: `  akin init --cluster http://127.0.0.1:9200
  akin init --cluster http://127.0.0.1:9200 --index 'products*' --out products.yml`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := p.check(); err != nil {
				return cli.Usage(err)
			}
			return p.run(cmd.Context(), cmd.OutOrStdout())
		},
	}
	p.RegisterServer(cmd.Flags(), "the cluster (required)")
	cli.Renamed(cmd.Flags(), "url", "--cluster")
	cmd.Flags().StringVar(&p.Index, "index", "", "index, alias, data stream or pattern, or several as in a search; default all")
	cmd.Flags().StringVar(&p.out, "out", cli.UsualConfig, "file to write; - for standard output")
	return cmd
}

func (p *proposal) check() error {
	switch {
	case p.URL == "":
		return errors.New("give --cluster URL")
	case p.out == cli.Stdout:
		return nil
	}
	if err := cli.CheckOut(p.out); err != nil {
		return err
	}
	if _, err := os.Lstat(p.out); err == nil {
		return fmt.Errorf("%s already exists: give another --out, or remove it", p.out)
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
	fmt.Fprintf(out, "Wrote %s. Read it, then run:\n", p.out)
	for _, line := range p.next() {
		fmt.Fprintf(out, "  %s\n", line)
	}
	return nil
}

func (p *proposal) write(w io.Writer) error {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("# A configuration of akin, proposed for %s.", cli.Visible(p.info.String()))
	line("# These are the keys that people set. configs/akin.yml explains all; missing ones have their\n# defaults.")
	line("#\n# Next, in this order:")
	for _, next := range p.next() {
		line("#   %s", cli.Visible(next))
	}
	defaults := configs.Default()
	line("\nlisten:\n  # Where applications connect, in place of the cluster: host:port.")
	line("  address: %s", defaults.Listen.Address)
	line("\nadmin:\n  # Where you connect: /playground, /readyz, /metrics. Other machines need a token there.")
	line("  address: %s", defaults.Admin.Address)
	line("\ncluster:")
	if p.nodes > 1 {
		line("  # The cluster has %d nodes: name more of them, so that one may be down.", p.nodes)
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
	switch {
	case p.AWS.Signs():
		line("  # All requests are signed: see docs/security.md for who may then use akin.\n  aws: {region: %s, service: %s}", scalar(p.AWS.Region), p.AWS.Service)
	case os.Getenv(configs.EnvClusterUsername) != "" || os.Getenv(configs.EnvClusterAPIKey) != "":
		line("  # Credentials for akin's own calls are never here. They come from the environment,\n  # %s and %s, or %s.",
			configs.EnvClusterUsername, configs.EnvClusterPassword, configs.EnvClusterAPIKey)
	default:
		line("  # The cluster asked for no credentials.")
	}
	line("\nredis:\n  # Where matrices without a file are, such as redis://127.0.0.1:6379. Empty: no Redis.")
	line("  url: \"\"")
	line("\nexpansion:")
	line("  # auto: a search that finds enough is only put in order; one that finds too little finds")
	line("  # more, by related words. widen always finds more, same only puts in order.")
	line("  matching: auto")
	line("  # How many hits are enough; enough_all is that of searches for all words, 10 by default.")
	line("  enough: 100")
	line("  # What a search may cost the cluster: low, normal, high, or auto, which suits the matrix.")
	line("  effort: auto")
	line("  # Searches that name no field, such as ?q=car, find related words in these.")
	line("  default_fields: %s", list(p.defaultFields()))
	line("\nanswers:\n  # true: the header X-Akin-Result says what became of a search.\n  header: true")
	line("\n# The matrix of each field. Fields that are analyzed alike share one. Remove fields that\n# nobody searches.\nmatrices:")
	for k := range p.groups {
		g := &p.groups[k]
		line("  # Analyzed by %s; %d documents.", cli.Visible(g.analyzer), g.docs)
		if g.docs == 0 {
			line("  # There are no documents to learn from yet: build the matrix once there are.")
		}
		line("  - name: %s", scalar(g.name))
		line("    indices: %s", list(g.indices))
		line("    fields: %s", list(g.fields))
		line("    # akin matrix build writes this file. akin reads it again whenever it changes.")
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
		line("#   and %d more fields", more)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// maxDefaultFields limits what a search without a field asks the cluster.
const maxDefaultFields = 10

// defaultFields returns fields with a matrix, those of the most documents
// first.
func (p *proposal) defaultFields() (fields []string) {
	groups := slices.SortedStableFunc(slices.Values(p.groups), func(a, b group) int { return cmp.Compare(b.docs, a.docs) })
	for _, g := range groups {
		for _, field := range g.fields {
			if !slices.Contains(fields, field) && !strings.ContainsAny(field, "*^") && len(fields) < maxDefaultFields {
				fields = append(fields, field)
			}
		}
	}
	return fields
}

// next returns the commands that come next. They read the file.
func (p *proposal) next() (lines []string) {
	line := func(args ...string) {
		if p.out != cli.Stdout && p.out != cli.UsualConfig {
			args = append(args, "--config", p.out)
		}
		lines = append(lines, "akin "+cli.CommandLine(args...))
	}
	for k := range p.groups {
		if len(p.groups) == 1 {
			line("matrix", "build")
		} else {
			line("matrix", "build", "--name", p.groups[k].name)
		}
	}
	line("check")
	line("serve")
	return lines
}

// plain matches strings that YAML certainly reads as strings without quotes.
var plain = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._-]{5,}$`)

// scalar returns a string as YAML, whose quoted strings have the same escapes
// as Go's.
func scalar(text string) string {
	if plain.MatchString(text) {
		return text
	}
	return strconv.Quote(text)
}
