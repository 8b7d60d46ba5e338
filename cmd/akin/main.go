// Command akin is a proxy for Elasticsearch and OpenSearch that makes searches
// find and rank documents with related words.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9/logging"
	"github.com/spf13/cobra"

	"github.com/akin-search/akin/cmd/akin/internal/connect"
	"github.com/akin-search/akin/cmd/akin/internal/judging"
	"github.com/akin-search/akin/cmd/akin/internal/server"
	"github.com/akin-search/akin/cmd/akin/internal/terminal"
	"github.com/akin-search/akin/cmd/akin/internal/tuning"
	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/evaluate"
)

// Exit statuses.
const (
	exitFailure = 1
	// exitUsage is for what the user wrote: flags, arguments, configuration.
	exitUsage = 2
	// exitBelow is for arms that do not reach what eval --fail-under asks for.
	exitBelow = 3
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run executes one command line and returns the exit status. The first SIGINT
// or SIGTERM ends the command in good order, a second one at once.
func run(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	logging.Disable() // go-redis prints every failed dial; the row store reports each change once
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		err = fmt.Errorf("interrupted: %w", err)
	}
	fmt.Fprintf(stderr, "akin: %v\n", err)
	if next := connect.Next(err); next != "" {
		fmt.Fprintf(stderr, "next: %s\n", next)
	}
	if _, ok := errors.AsType[terminal.UsageError](err); ok {
		return exitUsage
	}
	if _, ok := errors.AsType[evaluate.BelowError](err); ok {
		return exitBelow
	}
	return exitFailure
}

func newRoot() *cobra.Command {
	root := commandGroup(&cobra.Command{
		Use: "akin", Short: "Make every search understand related words",
		Long: `akin stands in front of Elasticsearch or OpenSearch. It reads each search, looks up
the neighbors of its terms in a term-similarity matrix, and adds them to the query
with fractional boosts. Applications keep their clients and change one address.`,
		Example: `  akin demo                       see it work, with nothing else installed
  akin matrix build --help        learn a matrix from your own index
  akin serve --config akin.yml    stand in front of your cluster`,
		SilenceUsage: true, SilenceErrors: true,
		Version: buildVersion(),
	}, newServe(), newInit(), newCheck(), newMatrix(), newNorms(), newSegments(), newVectors(), tuning.Command(), newDemo(), newReady(), newVersion(), newMan())
	root.AddCommand(judging.Commands(buildVersion())...)
	root.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return terminal.Usage(err) })
	return root
}

func newServe() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use: "serve --config FILE", Short: "Stand in front of a cluster and expand its searches",
		Long: `serve forwards every request to the cluster and expands the searches among them.
Whatever goes wrong, the original request goes on. The admin port has /healthz,
/readyz, /metrics, the page /playground, POST /_akin/expand/{index} and GET
/_akin/explanations; the last three show the texts of searches, to those who know
its token (admin.token_file) where there is one.
SIGHUP reads FILE again without losing a request. SIGTERM and SIGINT end serve in
good order, which takes some seconds (shutdown.delay); a second one ends it at once.`,
		Example: `  akin serve --config configs/akin.yml`,
		Args:    terminal.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file == "" {
				return terminal.Usage(errors.New("give --config FILE"))
			}
			cfg, err := configs.Load(cmd.Context(), file)
			if err != nil {
				return terminal.Usage(err)
			}
			return server.Run(cmd.Context(), file, cfg, thisBuild(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVar(&file, "config", "", "configuration file (required)")
	return cmd
}

// commandGroup makes cmd a command that only holds others.
func commandGroup(cmd *cobra.Command, commands ...*cobra.Command) *cobra.Command {
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		meant := ""
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			meant = fmt.Sprintf("; did you mean %s?", strings.Join(near, " or "))
		}
		return terminal.Usage(fmt.Errorf("no command %q%s; see %s --help", args[0], meant, cmd.CommandPath()))
	}
	cmd.Args, cmd.SuggestionsMinimumDistance = cobra.ArbitraryArgs, 2
	cmd.AddCommand(commands...)
	return cmd
}
