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

// required returns an error for each flag without a value. namesAndValues has
// the name of each before its value.
func required(namesAndValues ...string) (err error) {
	for flag := range slices.Chunk(namesAndValues, 2) {
		if flag[1] == "" {
			err = errors.Join(err, fmt.Errorf("give --%s", flag[0]))
		}
	}
	return err
}

// openWeights opens what norms snapshot made, and refuses a similarity matrix.
func (f *indexFieldFlags) openWeights(cmd *cobra.Command, ref string, redis *cli.Redis) (*simmatrix.Matrix, error) {
	m, err := redis.Matrix(cmd.Context(), cmd.ErrOrStderr(), ref)
	if err == nil && m.Meta().MaxNeighbors > 0 {
		err = fmt.Errorf("%s is a similarity matrix, not weights: its terms have neighbors, and its document frequencies need not be those of the index; "+
			"make weights of the index with: akin norms snapshot --cluster %s --index %s --field %s --out weights.akin", ref, f.URL, f.Index, f.field)
	}
	return m, err
}

// command completes a command about the field. check reports what is wrong with
// flags of its own, and run has a connection to the cluster.
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

// reading reads the terms of the field. tooLarge is called with each document
// that has too many.
func (f *indexFieldFlags) reading(cluster documents.API, report *cli.Progress, tooLarge func(doc documents.DocRef, err error)) *enrich.Reading {
	return &enrich.Reading{Cluster: cluster, Index: f.Index, Field: f.field, Progress: report.Step, OnTooLarge: tooLarge}
}

// countable returns the concrete indices that map the field. It refuses a field
// whose terms cannot be counted, and one whose norms would be taken for those
// of another.
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
					"so that one index can have them for one of the two only, and only if the other is none of text",
					i.Index, f.field, other, esclient.NormPath(f.field))
			}
		}
	}
	return found, err
}

// checkMapping returns an error with what the mappings of some of the indices
// lack, of which lacking returns the mapping to put. The engine would map what
// is written as it sees fit.
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
	return fmt.Errorf("%s: the mapping lacks what the %s are stored in, or has it otherwise; put it first:\n  PUT /%s/_mapping\n  %s",
		cli.Some(names), what, f.Index, body)
}

type fillFlags struct {
	indexFieldFlags

	all, dryRun bool
}

const fillHelp = `Each document is updated in part, once: its _version and _seq_no go up, and ingest
pipelines do not run. One that somebody writes at the same time is left as it is written,
and done in another round. The exit status is 1 where documents are left after five
rounds, and where some fail. backfill can be stopped at any time; the same command goes on
from there.

Documents that are written later are done when it is run again, from cron for example: a
new one, and one that was written as a whole, is found by every run, and one that was
updated in part by a run with --all. What is right already is not written.`

// backfill completes the command of a backfill, which gives documents what,
// such as vectors. prepare says why they cannot be given it; it may ask the
// cluster.
func (f *fillFlags) backfill(
	cmd *cobra.Command, what string, check func() error, prepare func(cmd *cobra.Command, cluster documents.API) (filling, error),
) *cobra.Command {
	cmd.Flags().BoolVar(&f.all, "all", false, "compute all "+what+" again; documents that hold the right ones are not written")
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
	// kind and id name it, such as "weights" and their id; empty says what the
	// documents that count as such have none of.
	kind, id, empty string
	// indices are the concrete ones that have the field.
	indices []mapping.Inspection
	// end tells of what was made; it may be nil.
	end func(report *cli.Progress)
}

const maxFailuresShown = 10

func (f *fillFlags) fill(ctx context.Context, cluster documents.API, g filling, report *cli.Progress) error {
	query, err := g.task.Query(f.all)
	if err != nil {
		return err
	}
	if err := enrich.Refresh(ctx, cluster, f.Index); err != nil { // what was done a moment ago is not to be counted again
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
				report.Tell("%v; going on with what is left", err)
				return
			}
			report.Tell("%d documents were written by others meanwhile; going on with those", conflicts)
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
