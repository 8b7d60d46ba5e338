// Command akin is a proxy for Elasticsearch and OpenSearch that makes searches
// find and rank documents with related words.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9/logging"
	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/internal/serve"
	"github.com/akin-search/akin/tools/evaluate"
)

// Exit statuses.
const (
	exitFailure = 1
	// exitUsage is for mistakes of the user: flags, arguments, configuration.
	exitUsage = 2
	// exitBelow is for arms that miss a condition of eval --fail-under.
	exitBelow = 3
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run executes one command line and returns the exit status. The first SIGINT
// or SIGTERM ends the command gracefully, a second one at once.
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
	if next := cli.Next(err); next != "" {
		fmt.Fprintf(stderr, "next: %s\n", next)
	}
	if _, ok := errors.AsType[cli.UsageError](err); ok {
		return exitUsage
	}
	if _, ok := errors.AsType[evaluate.BelowError](err); ok {
		return exitBelow
	}
	return exitFailure
}

func newRoot() *cobra.Command {
	root := cli.Group(&cobra.Command{
		Use: "akin", Short: "Make every search understand related words",
		Long: `akin stands in front of Elasticsearch or OpenSearch. It reads each search, looks up
the neighbors of its terms in a term-similarity matrix, and adds them to the query
with fractional boosts. Applications keep their clients and change one address.`,
		Example: `  akin demo                       see it work, with nothing else installed
  akin init --cluster URL         write a configuration for your cluster
  akin matrix build               learn a matrix from your own index
  akin serve --config akin.yml    stand in front of your cluster`,
		SilenceUsage: true, SilenceErrors: true,
		Version: thisBuild().String(),
	}, newServe(), newInit(), newCheck(), newExpand(), newMatrix(), newIndexCommands(), newEmbeddings(), newTune(), newDemo(), newReady(), newMan(),
		newEval(), newCompare(), newSuggest(), newVersion(), moved("norms"), moved("segments"), moved("vectors"))
	root.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return cli.Usage(err) })
	return root
}

func newServe() *cobra.Command {
	f := &servedFlags{}
	cmd := &cobra.Command{
		Use: "serve [--config FILE]", Short: "Stand in front of a cluster and expand its searches",
		Long: `serve forwards every request to the cluster and expands the searches among them.
If anything fails, the original request is sent. The admin port has /healthz,
/readyz, /metrics, the page /playground, POST /_akin/expand/{index} and GET
/_akin/explanations; the last three show the texts of searches. With
admin.token_file set, they require that token.
SIGHUP reads FILE again without losing a request. SIGTERM and SIGINT end serve
gracefully, which takes some seconds (shutdown.delay); a second one ends it at once.

With --cluster and --matrix it needs no file: the matrix is for all text fields, and
all keys have their defaults. ` + cli.Credentials,
		Example: `  akin serve
  akin serve --config configs/akin.yml
  akin serve --cluster http://127.0.0.1:9200 --matrix docs.akin`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, file, err := f.load(cmd.Context(), cmd.Flags().Changed("config"))
			if err != nil {
				return cli.Usage(err)
			}
			return serve.Run(cmd.Context(), file, serve.Options{Config: cfg, Build: thisBuild(), Stdout: cmd.OutOrStdout(), Suggestions: suggestionsOf}, cmd.ErrOrStderr())
		},
	}
	f.register(cmd.Flags())
	return cmd
}

// servedFlags name a configuration file, or in its place a cluster and a
// matrix.
type servedFlags struct {
	config, matrix string
	cluster        cli.Cluster
}

func (f *servedFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.config, "config", cli.UsualConfig, "configuration file")
	f.cluster.RegisterServer(flags, "the cluster, in place of a configuration file")
	flags.StringVar(&f.matrix, "matrix", "", "matrix file for all text fields, with --cluster")
}

// load returns the configuration and its file, "" where there is none to read
// again.
func (f *servedFlags) load(ctx context.Context, configGiven bool) (cfg *configs.Config, file string, err error) {
	switch {
	case (f.cluster.URL == "") != (f.matrix == ""), f.matrix != "" && configGiven:
		return nil, "", errors.New("give --config FILE, or --cluster URL and --matrix FILE")
	case f.matrix != "":
		cfg, err = configs.LoadText(ctx, "the command line", servedText(&f.cluster, f.matrix))
		return cfg, "", err
	}
	cfg, err = configs.Load(ctx, f.config)
	return cfg, f.config, err
}

// servedText returns a configuration for a cluster and one matrix file.
func servedText(cluster *cli.Cluster, matrix string) []byte {
	text := fmt.Appendf(nil, "cluster: {urls: [%q], tls: {ca_file: %q}", cluster.URL, cluster.CAFile)
	if cluster.AWS.Signs() {
		text = fmt.Appendf(text, ", aws: {region: %q, service: %q}", cluster.AWS.Region, cluster.AWS.Service)
	}
	return fmt.Appendf(text, "}\nmatrices: [{name: main, indices: ['*'], fields: ['*'], file: %q}]\n", matrix)
}

// newIndexCommands groups the commands that store in documents what some modes
// need.
func newIndexCommands() *cobra.Command {
	return cli.Group(&cobra.Command{
		Use: "index", Short: "Store lengths, segments or vectors in the documents of an index",
		Long: `Some modes of searches need more in each document than its text. These commands compute
that and store it: norms, the lengths of documents, for the modes hard and softcosine;
segments, the passages of long documents; vectors, for the mode vectors.`,
		Example: `  akin index norms snapshot --index docs --field body --out weights.akin
  akin index segments backfill --index docs --field body --dry-run`,
	}, newNorms(), newSegments(), newVectors())
}

// moved returns a command that only names the one in its place.
func moved(name string) *cobra.Command {
	return &cobra.Command{
		Use: name, Hidden: true, DisableFlagParsing: true,
		RunE: func(*cobra.Command, []string) error {
			return cli.Usage(fmt.Errorf("this is akin index %s now", name))
		},
	}
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version, as --version does",
		Example: `  akin version`,
		Args:    cli.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			fmt.Fprintf(cmd.OutOrStdout(), "%s %s\n", cmd.Root().Name(), cmd.Root().Version)
		},
	}
}

// newReady returns the command for health checks: the container image has no
// other program for them.
func newReady() *cobra.Command {
	var admin string
	cmd := &cobra.Command{
		Use: "ready", Short: "Ask a running akin whether it is ready",
		Long: `ready asks /readyz of the admin port and prints the answer. It fails if akin
does not answer within two seconds or cannot forward requests. Use it for the
health checks of containers.`,
		Example: `  akin ready --admin http://127.0.0.1:9281`,
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			answer, code, err := askReady(cmd.Context(), admin)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s\n", strings.TrimSpace(string(answer)))
			if code != http.StatusOK {
				return errors.New("not ready")
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&admin, "admin", "http://127.0.0.1:9281", "the admin port")
	return cmd
}

// A readiness is what an answer to /readyz says of why searches may not be
// expanded as configured, and of vectors of a language model.
type readiness struct {
	Reasons    []string
	Embeddings []struct {
		Index     string
		Documents int
	}
}

// askReady returns the answer of an admin port to /readyz.
func askReady(ctx context.Context, admin string) (answer []byte, code int, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(admin, "/")+"/readyz", nil)
	if err != nil {
		return nil, 0, cli.Usage(fmt.Errorf("--admin: %w", err))
	}
	response, err := (&http.Client{Timeout: 2 * time.Second}).Do(request)
	if err != nil {
		return nil, 0, fmt.Errorf("%w; is this the admin port of a running akin?", err)
	}
	defer response.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(response.Body, 64<<10))
	return answer, response.StatusCode, err
}

func newMan() *cobra.Command {
	return &cobra.Command{
		Use: "man FOLDER", Short: "Write a manual page for each command", Hidden: true,
		Args: cli.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil { //nolint:gosec // anyone may read documents
				return err
			}
			return doc.GenManTree(cmd.Root(), &doc.GenManHeader{Section: "1", Source: "akin"}, args[0])
		},
	}
}
