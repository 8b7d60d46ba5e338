package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/expand/form"
	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/tools/evaluate"
	"github.com/akin-search/akin/tools/reweigh"
)

type command struct {
	config   cli.Config
	name     string // of an entry of the configuration
	field    fieldFlags
	client   *esclient.Client
	matrix   string // a file
	judged   reweigh.Judged
	searches searchCount
	out      string // the file of the profile
	maxDocs  int    // 0 for all
	tune     evaluate.TuneOptions
	asJSON   bool
	report   *cli.Progress
	stderr   io.Writer
}

func newTune() *cobra.Command {
	c := &command{searches: searchCount{Depth: measured}, tune: evaluate.TuneOptions{Settings: 300, Confidence: 0.95}}
	cmd := &cobra.Command{
		Use: "tune --judgments FILE --index INDEX --field FIELD --matrix FILE --out FILE", Short: "Find settings that rank judged queries better",
		Long: `tune tries settings on judged queries. It prints how much of the gain in nDCG@10 remains on
queries that did not choose the settings: it splits the queries into five folds and chooses
a setting for each fold on the others. It recommends a setting only if that is better than
direct search with the given confidence, there and then on the cluster itself, prints how
long a search with it takes the engine, and writes it as a profile to --out.

tune reads the terms of all documents once, at most 20 million. After that the cluster only
analyzes the queries, until it confirms a recommendation.

` + cli.Credentials,
		Example: `  akin tune --template search.json --queries queries.jsonl --judgments qrels.tsv --out tuned.yml
  akin tune --cluster http://127.0.0.1:9200 --index docs --field title,body --matrix docs.akin \
    --template search.json --queries queries.jsonl --judgments qrels.tsv --out tuned.yml`,
		Args: cli.NoArgs,
		RunE: c.run,
	}
	set := cmd.Flags()
	c.field.register(set, "URL of the cluster")
	set.StringVar(&c.matrix, "matrix", "", "matrix file; default that of the configuration")
	set.StringVar(&c.name, "name", "", "entry of matrices in the configuration; default the only one")
	c.judged.Register(set, "file of judgments (required)")
	set.StringVar(&c.searches.Template, "template", "", "file of a search body with {{query}} in a string")
	set.StringVar(&c.searches.Resume, "resume", "", "keep the scores in this file, so that an interrupted run can continue")
	set.StringVar(&c.out, "out", "", "write the profile to this file (required)")
	set.IntVar(&c.maxDocs, "max-docs", 0, "try settings on about this many documents: the judged ones, the first hits of searches, and a sample of the others; 0 for all")
	set.IntVar(&c.tune.Settings, "settings", c.tune.Settings, "settings to try")
	set.Float64Var(&c.tune.Confidence, "confidence", c.tune.Confidence, "confidence that a recommendation needs, and of the intervals")
	set.BoolVar(&c.asJSON, "json", false, "print the result as JSON")
	c.config.Register(cmd, &c.field.Cluster)
	return cmd
}

func (c *command) run(cmd *cobra.Command, _ []string) (err error) {
	ctx := cmd.Context()
	c.stderr = cmd.ErrOrStderr()
	c.report = cli.NewProgress(c.stderr)
	defer c.report.End()
	if err := c.configure(); err != nil {
		return cli.Usage(err)
	}
	if c.client, err = c.field.Open(); err != nil {
		return err
	}
	defer c.client.Close()
	b, err := c.read(ctx)
	if err != nil {
		return cli.Usage(err)
	}
	result, failed := c.search(ctx, b)
	if result == nil {
		return failed
	}
	c.report.End()
	if s := result.Recommended; s != nil {
		path, err := filepath.Abs(c.matrix)
		if err != nil {
			return err
		}
		m := configs.Matrix{Name: "tuned", Indices: []string{c.field.Index}, Fields: c.field.fields, File: path}
		err = cli.Write(ctx, c.out, func(w io.Writer) error {
			return evaluate.WriteProfile(w, s, m, "Written by akin tune.\n"+result.Summary())
		})
		if err != nil {
			return err
		}
	}
	return errors.Join(cli.Print(cmd.OutOrStdout(), c.asJSON, result, result.Print), failed)
}

// configure takes from the configuration what no flag says of index, fields and
// matrix.
func (c *command) configure() error {
	if c.name == "" && c.field.Index != "" && len(c.field.fields) > 0 && c.matrix != "" {
		return nil
	}
	entry, err := c.config.Matrix(c.name)
	if entry == nil {
		return err
	}
	c.matrix = cmp.Or(c.matrix, entry.File)
	return c.field.configure(entry)
}

func (c *command) read(ctx context.Context) (*tuneBench, error) {
	if c.field.Index == "" || len(c.field.fields) == 0 || c.matrix == "" || c.out == "" {
		return nil, errors.New("give --index, --field, --matrix and --out")
	}
	if err := cli.CheckTarget(c.out); err != nil {
		return nil, err
	}
	for _, read := range []string{c.matrix, c.judged.Judgments, c.judged.Queries, c.searches.Template, c.searches.Resume} {
		if read != "" && cli.Same(read, c.out) {
			return nil, fmt.Errorf("--out: the input %s would be written over: choose another file", c.out)
		}
	}
	b := &tuneBench{Log: c.stderr}
	if err := c.queries(ctx, b); err != nil {
		return nil, err
	}
	var err error
	if b.Matrix, err = cli.ReadMatrix(ctx, c.matrix); err != nil {
		return nil, err
	}
	return b, errors.Join(c.tune.Validate(len(b.Bodies)), checkTunable(c.field.fields, b.Bodies))
}

// queries reads the judged queries with a relevant document. Settings do not
// change the measure of other queries.
func (c *command) queries(ctx context.Context, b *tuneBench) error {
	set, err := c.judged.Read(ctx)
	if err != nil {
		return err
	}
	template, err := c.searches.ReadTemplate(ctx, "")
	if err != nil {
		return err
	}
	deep, err := (&searchCount{Template: c.searches.Template, Depth: evaluated}).ReadTemplate(ctx, "")
	if err != nil {
		return err
	}
	for _, q := range set.Queries {
		if len(evaluate.Relevant(set.Grades[q.ID])) == 0 {
			continue
		}
		body, err := template.Body(q)
		if err != nil {
			return err
		}
		b.Bodies, b.Grades = append(b.Bodies, body), append(b.Grades, set.Grades[q.ID])
		if body, err = deep.Body(q); err != nil {
			return err
		}
		b.Deep = append(b.Deep, body)
	}
	if left := len(set.Queries) - len(b.Bodies); left > 0 {
		c.report.Tell("%d of %d queries have no relevant document and are left out", left, len(set.Queries))
	}
	if unknown := set.Unknown(); len(unknown) > 0 {
		c.report.Tell("warning: judgments of %d unknown queries are left out: %s", len(unknown), cli.Some(unknown))
	}
	return nil
}

// search returns the result of tuning. With an error it is one that the cluster
// did not confirm, or nil.
func (c *command) search(ctx context.Context, b *tuneBench) (*evaluate.TuneResult, error) {
	if err := c.searches.Open(); err != nil {
		return nil, err
	}
	defer c.searches.Close()
	part, err := c.part(ctx, b)
	if err != nil {
		return nil, err
	}
	docs, err := loadDocuments(ctx, c.client, c.field.Index, c.field.fields, part, c.report.Step)
	if err != nil {
		docs.Close()
		return nil, err
	}
	if part != nil {
		c.report.Tell("settings are tried on %d documents; one of %d is in the sample of the others", len(docs.ids), part.each)
	}
	defer docs.Close()
	var stop func()
	if b.URL, stop, err = docs.Engine.Serve(ctx, "127.0.0.1:0"); err != nil {
		return nil, err
	}
	defer stop()
	if err := c.compare(ctx, b, docs, part != nil); err != nil {
		return nil, err
	}
	c.tune.Progress = c.report.Step
	b.Kept, b.plan = c.searches.Kept, c.plan(b, docs)
	result, err := evaluate.Tune(ctx, len(b.Bodies), evaluate.NewSpace(), c.tune, b.Score)
	if err != nil {
		return nil, fmt.Errorf("%w\nwith --resume FILE the scores are kept, and the same command goes on from there", err)
	}
	usual := expand.DefaultProfile()
	if result.DefaultsSent, err = b.Expansion(ctx, &usual); err == nil {
		result.TunedSent, err = b.Expansion(ctx, &result.Setting)
	}
	if err != nil {
		return nil, err
	}
	if result.Recommended == nil {
		return result, nil
	}
	err = b.Confirm(ctx, result, armOptions{Cluster: c.field.Cluster, Log: c.stderr}, c.client, func(_ string, done, total int) {
		c.report.Step("confirming on the cluster", done, total)
	})
	if err != nil {
		result.NotConfirmed()
		return result, fmt.Errorf("the recommendation is not confirmed: %w", err)
	}
	return result, nil
}

// part returns the part of the documents that settings are tried on, nil for
// all. The first hits are those of direct search and of searches with related
// words: only in order, and finding as much as they can.
func (c *command) part(ctx context.Context, b *tuneBench) (*tunePart, error) {
	if c.maxDocs == 0 {
		return nil, nil
	}
	total, err := documents.API{Client: c.client}.Count(ctx, c.field.Index, nil)
	if err != nil || total <= int64(c.maxDocs) {
		return nil, err
	}
	whole := map[string]bool{}
	for _, grades := range b.Grades {
		for id := range grades {
			whole[id] = true
		}
	}
	same, wide := expand.DefaultProfile(), expand.DefaultProfile()
	same.Matching = expand.Same
	wide.Matching, wide.Effort = expand.Widen, form.High
	for k, how := range []*expand.Profile{nil, &same, &wide} {
		c.report.Step("first hits of three ways to search", k, 3)
		arm, end := directArm(c.client, c.field.Index), func() {}
		if how != nil {
			arm, end, err = candidateArm(ctx, armOptions{Cluster: c.field.Cluster, Log: c.stderr}, *how, b.Matrix)
		}
		var answers []evaluate.Answer
		if err == nil {
			answers, err = rank(ctx, arm, b.Deep)
		}
		end()
		if err != nil {
			return nil, err
		}
		for _, answer := range answers {
			for _, hit := range answer.Hits {
				whole[hit.ID] = true
			}
		}
	}
	return newTunePart(whole, c.maxDocs, int(total))
}

// compare warns if rankings without the cluster differ from the cluster's.
func (c *command) compare(ctx context.Context, b *tuneBench, docs *tuneDocuments, sampled bool) error {
	missing := map[string]bool{}
	for _, grades := range b.Grades {
		for id, grade := range grades {
			if grade > 0 && !docs.ids[id] {
				missing[id] = true
			}
		}
	}
	if len(missing) > 0 {
		c.report.Tell("warning: %d relevant documents are not in %s, and count as not found: %s",
			len(missing), c.field.Index, cli.Some(slices.Sorted(maps.Keys(missing))))
	}
	const compared, tolerated = 20, 1e-3
	worst, err := b.Difference(ctx, c.client, c.field.Index, compared)
	switch {
	case err != nil:
	case sampled:
		c.report.Tell("scores in the part differ from the cluster's by up to %.1f %%", 100*worst)
	case worst > tolerated:
		c.report.Tell("warning: scores differ from the cluster's by up to %.1f %%: it has several shards, deleted documents, several terms at one position, "+
			"or the searches use other fields. tune chooses settings by its own scores.", 100*worst)
	}
	return err
}

// plan returns a hash of everything besides the setting that a score depends
// on.
func (c *command) plan(b *tuneBench, docs *tuneDocuments) string {
	hash := sha256.New()
	fmt.Fprintln(hash, c.field.Index, c.field.fields, c.maxDocs, len(docs.ids), docs.terms)
	for i, body := range b.Bodies {
		fmt.Fprintf(hash, "%q %v\n", body, b.Grades[i]) // maps are printed in the order of their keys
	}
	fmt.Fprintln(hash, b.Matrix.Checksum())
	return hex.EncodeToString(hash.Sum(nil))
}
