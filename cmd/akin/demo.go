package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/akin-search/akin/cmd/akin/internal/connect"
	"github.com/akin-search/akin/cmd/akin/internal/server"
	"github.com/akin-search/akin/cmd/akin/internal/terminal"
	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/demo"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/evaluate/measure"
	"github.com/akin-search/akin/proxy/explain"
	"github.com/akin-search/akin/proxy/playground"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/learn"
	"github.com/akin-search/akin/simmatrix/rowstore"
)

// demoIndices is the index expression of the whole demo corpus.
const demoIndices = "help,catalogue,knowledge"

func newDemo() *cobra.Command {
	var once bool
	cmd := &cobra.Command{
		Use: "demo", Short: "See akin work, with nothing else installed",
		Long: `demo starts a small search engine in this process, fills it with three indices of
short texts, learns a matrix from them, and puts akin in front. It shows what five
searches find without and with akin, the terms that were added, and nDCG@10 over
all judged queries, then stays up for you to try.`,
		Example: `  akin demo
  akin demo --once`,
		Args: terminal.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runDemo(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), once)
		},
	}
	cmd.Flags().BoolVar(&once, "once", false, "exit after the figures")
	cmd.AddCommand(newDemoLoad())
	return cmd
}

// newDemoLoad returns the command that loads the demo corpus into a cluster.
func newDemoLoad() *cobra.Command {
	var cluster connect.Cluster
	cmd := &cobra.Command{
		Use: "load --url URL", Short: "Index the demo corpus in a cluster of yours",
		Long:    "load creates the indices " + demoIndices + " and fills them. It does not change one that exists already.",
		Example: `  akin demo load --url http://127.0.0.1:9200`,
		Args:    terminal.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cluster.URL == "" {
				return terminal.Usage(errors.New("give --url URL"))
			}
			client, err := cluster.Open()
			if err != nil {
				return err
			}
			defer func() { _ = client.Close() }() // nothing was written
			return loadDemo(cmd.Context(), client, cmd.ErrOrStderr())
		},
	}
	cluster.RegisterServer(cmd.Flags(), "url", "the cluster (required)")
	return cmd
}

const demoMapping = `{"settings":{"number_of_shards":1,"number_of_replicas":0},` +
	`"mappings":{"properties":{"title":{"type":"text","analyzer":"english"},"body":{"type":"text","analyzer":"english"}}}}`

// loadDemo creates and fills the indices of the demo corpus. It does not touch
// one that exists already, which may be somebody's own.
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

// learnDemo learns a matrix from the indices of the demo corpus.
func learnDemo(ctx context.Context, client *esclient.Client) (*simmatrix.Matrix, error) {
	build := buildFlags{
		field: fieldFlags{Cluster: connect.Cluster{Index: demoIndices}, fields: []string{"title", "body"}},
		docs:  indexFlags{options: learn.DefaultCorpusOptions()},
	}
	corpus, err := build.readIndex(ctx, build.index(client, terminal.NewProgress(io.Discard)))
	if err != nil {
		return nil, err
	}
	build.docs.options.Source = "demo corpus"
	return learn.FromCorpus(ctx, corpus, build.docs.options, nil)
}

func demoConfig(engine string) *configs.Config {
	cfg := configs.Default()
	cfg.Listen.Address, cfg.Admin.Address = "127.0.0.1:0", "127.0.0.1:0"
	cfg.Cluster.URLs = []string{engine}
	cfg.Matrices = []configs.Matrix{{Name: "demo", Indices: []string{"*"}, Fields: []string{"*"}}}
	cfg.Expansion.Budget = configs.Duration(time.Second) // the first searches find the caches cold
	cfg.Expansion.DefaultFields = []string{"title", "body"}
	return cfg
}

func runDemo(ctx context.Context, stdout, stderr io.Writer, once bool) error {
	engine, stopEngine, err := serveHTTP(ctx, demo.NewEngine())
	if err != nil {
		return err
	}
	defer stopEngine()
	client, err := esclient.New(esclient.Options{URL: engine})
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }() // nothing was written
	began := time.Now()
	if err := loadDemo(ctx, client, io.Discard); err != nil {
		return err
	}
	m, err := learnDemo(ctx, client)
	if err != nil {
		return err
	}
	took := time.Since(began)
	cfg := demoConfig(engine)
	log := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	a, err := server.New(ctx, server.Options{
		Config: cfg, Files: map[string]rowstore.Loader{"demo": rowstore.InMemory(m)}, Log: log, Version: buildVersion(),
	})
	if err != nil {
		return err
	}
	defer a.Close()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	clients, admin, err := server.Listen(ctx, cfg)
	if err != nil {
		return err
	}
	if !once {
		fmt.Fprintf(stdout, "Playground: http://%s%s#index=catalogue&q=nappies\n\n", admin.Addr(), playground.Page)
	}
	fmt.Fprintf(stdout, "Loaded %d texts and learned %d terms with %d neighbors in %.1f s.\n",
		m.Meta().Docs, m.Meta().Terms, m.Meta().NonZeros, took.Seconds())
	served := make(chan error, 1)
	go func() { served <- a.Serve(ctx, clients, admin) }()
	show := demoShow{
		engine: engine, akin: "http://" + clients.Addr().String(), admin: "http://" + admin.Addr().String(),
		client: &http.Client{Timeout: 5 * time.Second}, out: stdout,
	}
	err = show.run(ctx)
	if err == nil && !once {
		fmt.Fprintf(stdout, invitation, show.akin, show.engine, show.admin)
		<-ctx.Done()
	}
	stop()
	return errors.Join(err, <-served)
}

// serveHTTP serves h on a free port until stop is called.
func serveHTTP(ctx context.Context, h http.Handler) (url string, stop func(), err error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l) // ends with ErrServerClosed
	}()
	return "http://" + l.Addr().String(), func() {
		_ = server.Close()
		<-done
	}, nil
}

const (
	shownQueries  = 5  // are compared in full
	shownHits     = 5  // of each of them
	rankedHits    = 10 // the depth of nDCG
	columnWidth   = 44 // of a title
	maxDemoAnswer = 1 << 20
)

// A demoShow compares searches without and with akin over HTTP, as a user's
// application would do them.
type demoShow struct {
	engine, akin, admin string
	client              *http.Client
	out                 io.Writer
}

// compared is one judged query with the hits of both sides.
type compared struct {
	query         demo.Query
	plain, better []hit
	gain          float64
}

type hit struct {
	ID     string `json:"_id"`
	Source struct {
		Title string `json:"title"`
	} `json:"_source"`
}

// run prints the comparison.
func (s *demoShow) run(ctx context.Context) error {
	queries := demo.Queries()
	all := make([]compared, len(queries))
	var without, with float64
	for i, q := range queries {
		plain, err := s.search(ctx, s.engine, q)
		if err != nil {
			return err
		}
		better, err := s.search(ctx, s.akin, q)
		if err != nil {
			return err
		}
		before, after := measure.NDCG(idsOf(plain), q.Judgments, rankedHits), measure.NDCG(idsOf(better), q.Judgments, rankedHits)
		without += before
		with += after
		all[i] = compared{q, plain, better, after - before}
	}
	for _, c := range pick(all) {
		if err := s.show(ctx, c); err != nil {
			return err
		}
	}
	n := float64(len(queries))
	_, err := fmt.Fprintf(s.out, "\nnDCG@%d over %d judged queries: %.3f without akin, %.3f with akin (%+.1f %%)\n",
		rankedHits, len(queries), without/n, with/n, 100*(with/without-1))
	return err
}

func idsOf(hits []hit) (ids []string) {
	for _, h := range hits {
		ids = append(ids, h.ID)
	}
	return ids
}

// pick returns the queries to show: those with the largest gain, and last the
// one with the smallest, so that one also sees where akin does not help.
func pick(all []compared) []compared {
	slices.SortStableFunc(all, func(a, b compared) int { return cmp.Compare(b.gain, a.gain) })
	return append(all[:shownQueries-1], all[len(all)-1])
}

func demoBody(q demo.Query, size int) string {
	text, _ := json.Marshal(q.Text) // a string always has a JSON form
	return fmt.Sprintf(`{"size":%d,"query":{"multi_match":{"query":%s,"fields":["title","body"]}}}`, size, text)
}

func (s *demoShow) search(ctx context.Context, base string, q demo.Query) ([]hit, error) {
	var answer struct {
		Hits struct {
			Hits []hit `json:"hits"`
		} `json:"hits"`
	}
	err := s.post(ctx, base+"/"+q.Index+"/_search", demoBody(q, rankedHits), &answer)
	return answer.Hits.Hits, err
}

func (s *demoShow) post(ctx context.Context, url, body string, answer any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := s.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxDemoAnswer))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: status %d: %s", url, resp.StatusCode, bytes.TrimSpace(data))
	}
	return json.Unmarshal(data, answer)
}

// show prints the hits of one query side by side, relevant ones marked, and
// the terms that were added.
func (s *demoShow) show(ctx context.Context, c compared) error {
	var answer struct {
		Clauses []explain.ShownClause `json:"clauses"`
	}
	if err := s.post(ctx, s.admin+"/_akin/expand/"+c.query.Index, demoBody(c.query, shownHits), &answer); err != nil {
		return err
	}
	fmt.Fprintf(s.out, "\n%q in %s\n", c.query.Text, c.query.Index)
	fmt.Fprintf(s.out, "    %-*s    %s\n", columnWidth+2, "without akin", "with akin")
	for i := range shownHits {
		fmt.Fprintf(s.out, " %d  %s    %s\n", i+1, cell(c, c.plain, i), strings.TrimRight(cell(c, c.better, i), " "))
	}
	fmt.Fprintf(s.out, "    added: %s\n", addedTerms(answer.Clauses))
	return nil
}

// cell returns hit i in the width of its column, with a + where it is relevant.
func cell(c compared, hits []hit, i int) string {
	var h hit
	if i < len(hits) {
		h = hits[i]
	}
	mark := " "
	if c.query.Judgments[h.ID] > 0 {
		mark = "+"
	}
	return fmt.Sprintf("%s %-*.*s", mark, columnWidth, columnWidth, h.Source.Title)
}

// addedTerms lists the strongest added terms, each with the term it comes from.
func addedTerms(clauses []explain.ShownClause) string {
	const shown = 6
	var parts []string
	seen := map[string]bool{}
	for _, c := range clauses {
		for _, a := range c.Added {
			if len(parts) < shown && !seen[a.Term] {
				seen[a.Term] = true
				from := cmp.Or(c.Words[a.From], a.From)
				parts = append(parts, fmt.Sprintf("%s (%s %.2f)", cmp.Or(a.Word, a.Term), from, a.Similarity))
			}
		}
	}
	if parts == nil {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}

// invitation says how to go on, with the URLs of akin, the engine and the admin
// port.
const invitation = `
Try it yourself. A search with akin, and the same search without:

  curl -s '%[1]s/knowledge/_search?pretty&q=car+hire'
  curl -s '%[2]s/knowledge/_search?pretty&q=car+hire'

What akin makes of a search, and why:

  curl -s -X POST '%[3]s/_akin/expand/knowledge?q=car+hire'

Ctrl-C ends the demo.
`
