package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/internal/demo"
	"github.com/akin-search/akin/internal/embed"
	"github.com/akin-search/akin/internal/serve"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/learn"
	"github.com/akin-search/akin/simmatrix/store"
)

const demoIndices = "help,catalogue,knowledge"

func newDemo() *cobra.Command {
	var once bool
	var place demoPlace
	var model configs.Embeddings
	cmd := &cobra.Command{
		Use: "demo", Short: "See akin work, with nothing else installed",
		Long: `demo starts a small search engine in this process, fills it with three indices of
short texts, learns a matrix from them, and puts akin in front. It shows six searches
without and with akin, the added terms, nDCG@10 over all judged queries, and what would help
the searches without hits of a recorded hour. Then it keeps running, so that you can try
your own searches.

With --embeddings it also shows each search with its first hits ordered by a language
model, which gets the texts of the demo; its key is taken from $` + embed.EnvKey + `.`,
		Example: `  akin demo
  akin demo --once
  akin demo --port 9280
  akin demo --listen 0.0.0.0 --port 9280
  akin demo --embeddings http://127.0.0.1:8080/v1/embeddings --embedding-model all-minilm`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if model.URL == "" && model.Model != "" {
				return cli.Usage(errors.New("--embedding-model needs --embeddings"))
			}
			model.Key = configs.NewSecret(strings.TrimSpace(os.Getenv(embed.EnvKey)))
			return runDemo(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), once, place, model)
		},
	}
	cmd.Flags().BoolVar(&once, "once", false, "exit after the figures")
	cmd.Flags().StringVar(&place.host, "listen", "127.0.0.1", "address without a port; in a container 0.0.0.0, and the playground's address has a password")
	cmd.Flags().IntVar(&place.port, "port", 0, "port of akin; the playground gets the next one and the engine the one after (default free ports)")
	cmd.Flags().StringVar(&model.URL, "embeddings", "", "URL of a server of a language model that orders the first hits, see docs/modes.md")
	cmd.Flags().StringVar(&model.Model, "embedding-model", "", "name of the model, unless the URL names it")
	cmd.AddCommand(newDemoLoad())
	return cmd
}

func newDemoLoad() *cobra.Command {
	var cluster cli.Cluster
	cmd := &cobra.Command{
		Use: "load --cluster URL", Short: "Index the demo corpus in your cluster",
		Long:    "load creates the indices " + demoIndices + " and fills them. It does not change an existing index.",
		Example: `  akin demo load --cluster http://127.0.0.1:9200`,
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cluster.URL == "" {
				return cli.Usage(errors.New("give --cluster URL"))
			}
			client, err := cluster.Open()
			if err != nil {
				return err
			}
			defer client.Close()
			return loadDemo(cmd.Context(), client, cmd.ErrOrStderr())
		},
	}
	cluster.RegisterServer(cmd.Flags(), "the cluster (required)")
	cli.Renamed(cmd.Flags(), "url", "--cluster")
	return cmd
}

const demoMapping = `{"settings":{"number_of_shards":1,"number_of_replicas":0},` +
	`"mappings":{"properties":{"title":{"type":"text","analyzer":"english"},"body":{"type":"text","analyzer":"english"}}}}`

// loadDemo creates and fills the indices of the demo corpus. It does not change
// an existing index, which may belong to somebody.
func loadDemo(ctx context.Context, client *esclient.Client, report io.Writer) error {
	cluster := documents.API{Client: client}
	for _, index := range demo.Indices() {
		created, err := cluster.CreateIndex(ctx, index, []byte(demoMapping))
		if err != nil {
			return err
		}
		if !created {
			fmt.Fprintf(report, "%s: exists already, not changed\n", index)
			continue
		}
		var docs []documents.Document
		for _, d := range demo.Docs(index) {
			docs = append(docs, documents.Document{ID: d.ID, Source: map[string]string{"title": d.Title, "body": d.Body}})
		}
		if err := cluster.Index(ctx, index, docs); err != nil {
			return err
		}
		fmt.Fprintf(report, "%s: %d texts\n", index, len(docs))
	}
	return nil
}

func learnDemo(ctx context.Context, client *esclient.Client) (*simmatrix.Matrix, error) {
	options := learn.DefaultCorpusOptions()
	options.Source = "demo corpus"
	// With the usual 100 dimensions, few words of 645 texts are related: nDCG@10
	// of the judged queries rises by 16.5 %, with 50 dimensions by 19.5 %.
	options.Dimensions = 50
	report := cli.NewProgress(io.Discard)
	x := &indexReading{Client: client, Scan: documents.ScanOptions{Index: demoIndices, Fields: []string{"title", "body"}}, Report: report}
	texts, _, err := x.Texts(ctx)
	if err != nil {
		return nil, err
	}
	terms, err := x.Analyze(ctx, texts.Words())
	if err != nil {
		return nil, err
	}
	corpus := texts.Corpus(terms)
	if err := mixOwnWords(corpus, &options, 0, report); err != nil {
		return nil, err
	}
	return learnMatrix(ctx, corpus, options, report)
}

// A demoPlace is where the demo listens: on port and the next two, or on free
// ports if port is 0.
type demoPlace struct {
	host string
	port int
}

// address returns that of a server, at a distance from the first port.
func (p demoPlace) address(behind int) string {
	port := p.port
	if port > 0 {
		port += behind
	}
	return net.JoinHostPort(p.host, strconv.Itoa(port))
}

// reached returns how a program on this machine reaches a server that may
// listen on all addresses.
func reached(server string) string {
	for _, all := range []string{"//0.0.0.0:", "//[::]:"} {
		server = strings.Replace(server, all, "//127.0.0.1:", 1)
	}
	return server
}

// demoConfig returns the configuration of an akin at a place, with a language
// model if that has a URL. If other machines reach it, its admin port asks
// for a token. The matrix and the searches without hits are in files of folder.
func demoConfig(engine string, place demoPlace, folder string, model configs.Embeddings) *configs.Config {
	cfg := configs.Default()
	cfg.Listen.Address, cfg.Admin.Address = place.address(0), place.address(1)
	if cfg.Admin.Exposed() {
		cfg.Admin.Token = configs.NewSecret(rand.Text())
	}
	cfg.Cluster.URLs = []string{engine}
	cfg.Matrices = []configs.Matrix{{Name: "demo", Indices: []string{"*"}, Fields: []string{"*"}, File: filepath.Join(folder, "demo.akin")}}
	cfg.Searches.File = filepath.Join(folder, "searches.json")
	cfg.Expansion.Budget = configs.Duration(time.Second) // the first searches find cold caches
	cfg.Expansion.DefaultFields = []string{"title", "body"}
	cfg.Expansion.Mode = expand.ModeBM25 // in the mode auto the order would change while one looks at it
	same := configs.Profile{Enabled: true, Profile: cfg.Expansion.Profile}
	same.Matching = expand.Same
	cfg.Profiles[sameProfile] = same
	if model.URL != "" {
		model.Size = cfg.Embeddings.Size
		model.Fields = cfg.Expansion.DefaultFields
		model.Budget = configs.Duration(5 * time.Second) // each search of the demo is to show the order
		cfg.Embeddings = model
		byModel := configs.Profile{Enabled: true, Profile: cfg.Expansion.Profile}
		byModel.Rerank = expand.ByEmbeddings
		cfg.Profiles[modelProfile] = byModel
	}
	return cfg
}

// runDemo shows searches. Unless once is set, it then waits until ctx ends. The
// user's own searches go to a second akin, so that the playground lists only
// these.
func runDemo(ctx context.Context, stdout, stderr io.Writer, once bool, place demoPlace, model configs.Embeddings) (err error) {
	engine, stopEngine, err := demo.NewEngine().Serve(ctx, place.address(2))
	if err != nil {
		return err
	}
	defer stopEngine()
	engine = reached(engine)
	client, err := esclient.New(esclient.Options{URL: engine})
	if err != nil {
		return err
	}
	defer client.Close()
	began := time.Now()
	if err := loadDemo(ctx, client, io.Discard); err != nil {
		return err
	}
	m, err := learnDemo(ctx, client)
	if err != nil {
		return err
	}
	took := time.Since(began)
	folder, err := os.MkdirTemp("", "akin-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	tour := demoConfig(engine, demoPlace{host: "127.0.0.1"}, folder, model)
	if err := errors.Join(cli.WriteMatrix(ctx, tour.Matrices[0].File, m), writeDemoSearches(ctx, tour.Searches.File)); err != nil {
		return err
	}
	var akin, admin string
	if !once {
		cfg := demoConfig(engine, place, folder, model)
		cfg.Searches.Collect = true
		var end func() error
		if akin, admin, end, err = serveHere(ctx, cfg, nil, stderr, false); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, end()) }()
		akin, admin = reached(akin), reached(admin)
		if token := cfg.Admin.Token.Reveal(); token != "" {
			admin = strings.Replace(admin, "//", "//demo:"+token+"@", 1)
		}
	}
	fmt.Fprintf(stdout, "Loaded %d texts and learned %d terms with %d neighbors in %.1f s.\n",
		m.Meta().Docs, m.Meta().Terms, m.Meta().NonZeros, took.Seconds())
	show := demoTour{Engine: engine, Out: stdout, ByModel: model.URL != ""}
	var end func() error
	if show.Akin, show.Admin, end, err = serveHere(ctx, tour, nil, stderr, false); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	if show.ByModel {
		if err := awaitVectors(ctx, show.Admin, m.Meta().Docs, stderr); err != nil {
			return err
		}
	}
	first, err := show.Run(ctx)
	if err == nil {
		err = show.suggest(ctx, tour)
	}
	if err != nil || once {
		return err
	}
	show.Invite(first, akin, admin)
	<-ctx.Done()
	return nil
}

// awaitVectors waits until an akin has vectors of all documents.
func awaitVectors(ctx context.Context, admin string, docs uint64, stderr io.Writer) error {
	progress := cli.NewProgress(stderr)
	defer progress.End()
	for {
		var state readiness
		answer, _, err := askReady(ctx, admin)
		if err == nil {
			err = json.Unmarshal(answer, &state)
		}
		if k := slices.IndexFunc(state.Reasons, func(why string) bool { return strings.HasPrefix(why, "model: ") }); k >= 0 {
			err = fmt.Errorf("--embeddings: %s", state.Reasons[k])
		}
		if err != nil {
			return err
		}
		made, all := 0, int(min(docs, math.MaxInt32))
		for _, index := range state.Embeddings {
			made += index.Documents
		}
		if progress.Step("vectors of texts", made, all); made >= all {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// serveHere runs an akin with one matrix in this process, until end is called;
// nil for the matrices of the configuration.
// inProcess says that its cluster is here, too.
func serveHere(ctx context.Context, cfg *configs.Config, m *simmatrix.Matrix, log io.Writer, inProcess bool) (akin, admin string, end func() error, err error) {
	var files map[string]store.Loader
	if m != nil {
		files = map[string]store.Loader{cfg.Matrices[0].Name: store.InMemory(m)}
	}
	a, err := serve.New(ctx, serve.Options{
		Config: cfg, Files: files, Build: thisBuild(), InProcess: inProcess, Suggestions: suggestionsOf,
		Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		return "", "", nil, err
	}
	clients, adminPort, err := serve.Listen(ctx, cfg)
	if err != nil {
		a.Close()
		return "", "", nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() {
		err := a.Serve(ctx, clients, adminPort)
		a.Close()
		served <- err
	}()
	return "http://" + clients.Addr().String(), "http://" + adminPort.Addr().String(), func() error {
		stop()
		return <-served
	}, nil
}
