package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/esclient/mapping"
	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/tools/enrich"
)

// indexFieldFlags say which field of which indices is meant.
type indexFieldFlags struct {
	cli.Cluster

	field   string
	workers int
}

func (f *indexFieldFlags) register(flags *pflag.FlagSet) {
	f.Register(flags, "URL of the cluster (required, as are --index and --field)")
	flags.StringVar(&f.field, "field", "", "text field")
	flags.IntVar(&f.workers, "workers", enrich.DefaultWorkers, "batches of 500 documents under way at the same time, 1 to "+strconv.Itoa(maxWorkers))
}

// maxWorkers bounds what a command asks of a cluster, and keeps of its answers.
const maxWorkers = 32

func (f *indexFieldFlags) check() error {
	err := required("cluster", f.URL, "index", f.Index, "field", f.field)
	if f.workers < 1 || f.workers > maxWorkers {
		err = errors.Join(err, fmt.Errorf("--workers: %d not in 1 to %d", f.workers, maxWorkers))
	}
	return err
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
	f.register(cmd.Flags())
	cmd.Args = cli.NoArgs
	cmd.PreRunE = func(*cobra.Command, []string) error { return cli.Usage(errors.Join(f.check(), check())) }
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
	return &enrich.Reading{Cluster: cluster, Index: f.Index, Field: f.field, Workers: f.workers, Progress: report.Step, OnTooLarge: tooLarge}
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
