package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/esclient/mapping"
	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/tools/enrich"
)

type indexFieldFlags struct {
	cli.Cluster

	field string
}

// required returns an error for each flag with an empty value. Its arguments
// are names and values in turn.
func required(namesAndValues ...string) (err error) {
	for flag := range slices.Chunk(namesAndValues, 2) {
		if flag[1] == "" {
			err = errors.Join(err, fmt.Errorf("give --%s", flag[0]))
		}
	}
	return err
}

// openWeights opens weights of index norms snapshot. It rejects a similarity
// matrix.
func (f *indexFieldFlags) openWeights(cmd *cobra.Command, ref string, redis *cli.Redis) (*simmatrix.Matrix, error) {
	m, err := redis.Matrix(cmd.Context(), cmd.ErrOrStderr(), ref)
	if err == nil && m.Meta().MaxNeighbors > 0 {
		err = fmt.Errorf("%s is a similarity matrix, not weights: its terms have neighbors, and its document frequencies may not be those of the index; "+
			"make weights of the index with: akin index norms snapshot --cluster %s --index %s --field %s --out weights.akin", ref, f.URL, f.Index, f.field)
	}
	return m, err
}

// openSimilarities opens a similarity matrix. It rejects weights.
func (*indexFieldFlags) openSimilarities(cmd *cobra.Command, ref string, redis *cli.Redis) (*simmatrix.Matrix, error) {
	m, err := redis.Matrix(cmd.Context(), cmd.ErrOrStderr(), ref)
	if err == nil && m.Meta().MaxNeighbors == 0 {
		err = fmt.Errorf("%s has no similarities: give --matrix a file of akin matrix build, and --weights one of akin index norms snapshot", ref)
	}
	return m, err
}

// command completes a command for the field. check returns what is wrong with
// the command's own flags. run gets a connection to the cluster.
func (f *indexFieldFlags) command(
	cmd *cobra.Command, check func() error, run func(cmd *cobra.Command, cluster documents.API, report *cli.Progress) error,
) *cobra.Command {
	flags := cmd.Flags()
	f.Register(flags, "URL of the cluster (required, as are --index and --field)")
	flags.StringVar(&f.field, "field", "", "text field")
	cmd.Args = cli.NoArgs
	cmd.PreRunE = func(*cobra.Command, []string) error {
		return cli.Usage(errors.Join(required("cluster", f.URL, "index", f.Index, "field", f.field), check()))
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		client, err := f.Open()
		if err != nil {
			return err
		}
		defer client.Close()
		report := cli.NewProgress(cmd.ErrOrStderr())
		defer report.End()
		return run(cmd, documents.API{Client: client}, report)
	}
	return cmd
}

// reading returns a reading of the field's terms. tooLarge is called for each
// document with too many terms.
func (f *indexFieldFlags) reading(cluster documents.API, report *cli.Progress, tooLarge func(doc documents.DocRef, err error)) *enrich.Reading {
	return &enrich.Reading{Cluster: cluster, Index: f.Index, Field: f.field, Progress: report.Step, OnTooLarge: tooLarge}
}

// countable returns the concrete indices that map the field. It rejects a field
// whose terms cannot be counted, and one whose norms would have the same name
// as another field's.
func (f *indexFieldFlags) countable(ctx context.Context, cluster documents.API) ([]mapping.Inspection, error) {
	found, err := cluster.Countable(ctx, f.Index, f.field)
	for _, i := range found {
		texts, err := i.OwnTexts()
		if err != nil {
			return nil, fmt.Errorf("mapping of index %q: %w", i.Index, err)
		}
		for _, other := range texts {
			if other != f.field && esclient.NormName(other) == esclient.NormName(f.field) {
				return nil, fmt.Errorf("index %q has the text fields %q and %q: their lengths would have one name, %s, "+
					"so an index can store them for only one of the two, and only if the other is not a text field",
					i.Index, f.field, other, esclient.NormPath(f.field))
			}
		}
	}
	return found, err
}

// checkMapping returns an error that says what the mappings of the indices
// lack. lacking returns the mapping to add to an index. Without it the engine
// would choose a mapping itself.
func (f *indexFieldFlags) checkMapping(indices []mapping.Inspection, what string, lacking func(i *mapping.Inspection) ([]byte, error)) error {
	var names []string
	var body []byte
	for k := range indices {
		lacks, err := lacking(&indices[k])
		if err != nil {
			return err
		}
		if lacks != nil {
			names, body = append(names, indices[k].Index), lacks
		}
	}
	if names == nil {
		return nil
	}
	return fmt.Errorf("%s: the mapping lacks the fields for the %s, or maps them differently; put this first:\n  PUT /%s/_mapping\n  %s",
		cli.Some(names), what, f.Index, body)
}

type fillFlags struct {
	indexFieldFlags

	all, dryRun bool
}

const fillHelp = `Each document gets one partial update: its _version and _seq_no go up, and ingest pipelines
do not run. A document that somebody else writes at the same time is left for another
round. The exit status is 1 if documents are left after five rounds, or if some fail. You
can stop backfill at any time; the same command continues from there.

Run it again, from cron for example, for documents written later. Every run finds new
documents and those written as a whole. Only a run with --all finds those updated in part.
Documents that are already right are not written.`

// backfill completes the command of a backfill that stores what, such as
// vectors, in documents. prepare returns an error if that is not possible; it
// may ask the cluster.
func (f *fillFlags) backfill(
	cmd *cobra.Command, what string, check func() error, prepare func(cmd *cobra.Command, cluster documents.API) (filling, error),
) *cobra.Command {
	cmd.Flags().BoolVar(&f.all, "all", false, "compute all "+what+" again; documents that already have the right ones are not written")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "count the documents to do, in each index, and write nothing")
	return f.command(cmd, check, func(cmd *cobra.Command, cluster documents.API, report *cli.Progress) error {
		g, err := prepare(cmd, cluster)
		if err != nil {
			return err
		}
		err = f.fill(cmd.Context(), cluster, g, report)
		if g.end != nil {
			g.end(report)
		}
		return err
	})
}

type filling struct {
	task enrich.Task
	// kind and id describe it, such as "weights" and their id. empty is what the
	// documents counted as empty lack.
	kind, id, empty string
	// indices are the concrete indices with the field.
	indices []mapping.Inspection
	// end reports what was done; it may be nil.
	end func(report *cli.Progress)
}

const maxFailuresShown = 10

func (f *fillFlags) fill(ctx context.Context, cluster documents.API, g filling, report *cli.Progress) error {
	query, err := g.task.Query(f.all)
	if err != nil {
		return err
	}
	if err := enrich.Refresh(ctx, cluster, f.Index); err != nil { // do not count what was just done
		return err
	}
	docs, err := cluster.Count(ctx, f.Index, query)
	if err != nil {
		return err
	}
	report.Tell("%s %s: %d documents to do", g.kind, g.id, docs)
	if f.dryRun {
		for _, i := range g.indices {
			docs, err := cluster.Count(ctx, i.Index, query)
			if err != nil {
				return err
			}
			report.Tell("  %s: %d", i.Index, docs)
		}
		return nil
	}
	if docs == 0 {
		return nil
	}
	shown := 0
	counts, err := enrich.Run(ctx, cluster, g.task, enrich.Options{
		Index: f.Index, All: f.all, Docs: int(docs), Progress: report.Step,
		OnFailure: func(doc documents.DocRef, err error) {
			if shown++; shown <= maxFailuresShown {
				report.Tell("document %q of index %q: %v", doc.ID, doc.Index, err)
			}
		},
		OnRound: func(conflicts int, err error) {
			if err != nil {
				report.Tell("%v; continuing with the rest", err)
				return
			}
			report.Tell("%d documents were written by others meanwhile; trying those again", conflicts)
		},
	})
	report.Tell("%d documents written, %d of them without %s; %d unchanged, %d deleted meanwhile, %d conflicts left, %d failed",
		counts.Written, counts.Empty, g.empty, counts.Unchanged, counts.Gone, counts.Conflicts, counts.Failed)
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if ctx.Err() != nil || err != nil && documents.Interrupted(err) {
		return fmt.Errorf("%w; the same command goes on with the rest", err)
	}
	return err
}
