package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/norms"
)

func newNorms() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "norms",
		Short: "Store the lengths of documents, for mode hard",
		Long: `For mode hard each document holds a number, ‖Wy‖: the length of its vector of term
frequencies, each weighted by the rarity of the term. The weights are frozen in a file, so
that the lengths stay right while documents come and go: "norms snapshot" writes that
file, "norms backfill" computes and stores the lengths of the documents that are there,
and with --follow of those that are written later.
The similarities of terms are not in it; they may change at any time.

"akin index advise" says what the index needs before.`,
		Example: `  akin norms snapshot --cluster http://127.0.0.1:9200 --index docs --field body --out weights.akin
  akin norms backfill --cluster http://127.0.0.1:9200 --index docs --field body --weights weights.akin`,
		Args: noSuchCommand,
		RunE: showHelp,
	}
	cmd.AddCommand(newNormsSnapshot(), newNormsBackfill())
	return cmd
}

// normsCredentials says where the credentials come from.
const normsCredentials = `Credentials for the cluster come from ` + configs.EnvClusterUsername + ` and ` + configs.EnvClusterPassword + ` or
from ` + configs.EnvClusterAPIKey + `.`

// normsFlags say which field of which index is meant.
type normsFlags struct {
	cluster, caFile, index, field string
	workers                       int
}

func (f *normsFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.cluster, "cluster", "", "URL of the cluster (required)")
	flags.StringVar(&f.caFile, "ca-file", "", "PEM file of the authorities that sign the cluster's certificate; default the system's")
	flags.StringVar(&f.index, "index", "", "index, alias, data stream, or several as in a search (required)")
	flags.StringVar(&f.field, "field", "", "text field (required)")
	flags.IntVar(&f.workers, "workers", norms.DefaultWorkers, "batches of 500 documents under way at the same time, 1 to "+strconv.Itoa(maxWorkers))
}

// maxWorkers keeps what a command asks of a cluster, and holds of its answers,
// within reason.
const maxWorkers = 32

// check returns all that is wrong with the flags.
func (f *normsFlags) check() []error {
	var errs []error
	for _, required := range []struct{ name, value string }{{"cluster", f.cluster}, {"index", f.index}, {"field", f.field}} {
		if required.value == "" {
			errs = append(errs, fmt.Errorf("give --%s", required.name))
		}
	}
	if f.workers < 1 || f.workers > maxWorkers {
		errs = append(errs, fmt.Errorf("--workers: %d not in 1 to %d", f.workers, maxWorkers))
	}
	return errs
}

// open connects to the cluster of the flags, and returns the concrete indices
// that map the field.
func (f *normsFlags) open(ctx context.Context) (_ *esclient.Client, indices []string, err error) {
	client, err := openCluster(f.cluster, f.caFile)
	if err != nil {
		return nil, nil, err
	}
	if indices, err = f.countable(ctx, client, f.index); err != nil {
		_ = client.Close() // nothing was written
		return nil, nil, err
	}
	return client, indices, nil
}

// countable returns the concrete indices of an expression that map the field.
// It refuses a field whose terms cannot be counted, and one whose norms would
// be taken for those of another.
func (f *normsFlags) countable(ctx context.Context, client *esclient.Client, index string) (indices []string, err error) {
	found, err := client.Countable(ctx, index, f.field)
	for _, i := range found {
		indices = append(indices, i.Name)
		for _, other := range i.Texts {
			if other != f.field && norms.Name(other) == norms.Name(f.field) {
				err = fmt.Errorf("index %q has the text fields %q and %q: their lengths would have one name, %s, "+
					"so that one index can have them for one of the two only, and only if the other is none of text",
					i.Name, f.field, other, norms.NormPath(f.field))
			}
		}
	}
	return indices, err
}
