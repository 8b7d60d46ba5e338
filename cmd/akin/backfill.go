package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/esclient/mapping"
	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/tools/enrich"
)

// fillFlags are the flags of the commands that give documents what they lack.
type fillFlags struct {
	indexFieldFlags

	all, dryRun bool
}

// fillHelp is what these commands have in common.
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

// A filling is what documents are given.
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

// fill gives documents what they lack, or counts those that lack it.
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
	switch {
	case !f.dryRun && docs == 0:
		return nil
	case !f.dryRun:
		return f.run(ctx, cluster, g, int(docs), report)
	}
	for _, i := range g.indices {
		docs, err := cluster.Count(ctx, i.Index, query)
		if err != nil {
			return err
		}
		report.Tell("  %s: %d", i.Index, docs)
	}
	return nil
}

const maxFailuresShown = 10

func (f *fillFlags) run(ctx context.Context, cluster documents.API, g filling, docs int, report *cli.Progress) error {
	shown := 0
	counts, err := enrich.Run(ctx, cluster, g.task, enrich.Options{
		Index: f.Index, All: f.all, Workers: f.workers, Docs: docs, Progress: report.Step,
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
	if counts.Unanswered > 0 {
		report.Tell("up to %d more documents were under way and got no answer: they may be written, too", counts.Unanswered)
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if ctx.Err() != nil || err != nil && documents.Interrupted(err) {
		return fmt.Errorf("%w; the same command goes on with the rest", err)
	}
	return err
}
