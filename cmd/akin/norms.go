package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
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
file, "norms backfill" computes and stores the lengths of the documents that are there.
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

// open returns the documents of the flags, and the concrete indices that map
// the field. It refuses a field whose terms cannot be counted, and one whose
// norms would be taken for those of another.
func (f *normsFlags) open(ctx context.Context) (_ *normsIndex, indices []string, err error) {
	client, err := openCluster(f.cluster, f.caFile)
	if err != nil {
		return nil, nil, err
	}
	found, err := client.Countable(ctx, f.index, f.field)
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
	if err != nil {
		_ = client.Close() // nothing was written
		return nil, nil, err
	}
	return &normsIndex{client: client, index: f.index, field: f.field}, indices, nil
}

// A normsIndex gives norms the documents of an index expression.
type normsIndex struct {
	client       *esclient.Client
	index, field string
}

var (
	_ norms.Reader  = (*normsIndex)(nil)
	_ norms.Updater = (*normsIndex)(nil)
)

// close ends the client.
func (x *normsIndex) close() { _ = x.client.Close() } // every write has been answered

// count returns how many documents match a query.
func (x *normsIndex) count(ctx context.Context, query []byte) (int, error) {
	n, err := x.client.CountMatching(ctx, x.index, query)
	return int(n), err
}

// Docs implements [norms.Reader].
func (x *normsIndex) Docs(ctx context.Context, query []byte, fn func(docs []norms.Doc) error) error {
	var failed error
	o := esclient.RefOptions{Index: x.index, Query: query, Value: norms.NormPath(x.field)}
	err := x.client.ScanRefs(ctx, o, func(refs []esclient.DocRef) error {
		docs := make([]norms.Doc, len(refs))
		for i, r := range refs {
			docs[i] = norms.Doc{
				Index: r.Index, ID: r.ID, Routing: r.Routing,
				SeqNo: r.SeqNo, PrimaryTerm: r.PrimaryTerm, Version: r.Version, HasNorm: r.HasValue,
			}
		}
		failed = fn(docs)
		return failed
	})
	if failed != nil {
		return failed // not an error of the cluster
	}
	return passing(err)
}

// Terms implements [norms.Reader].
func (x *normsIndex) Terms(ctx context.Context, docs []norms.Doc) ([]norms.DocTerms, error) {
	refs := make([]esclient.DocRef, len(docs))
	for i := range docs {
		refs[i] = docRef(&docs[i])
	}
	found, err := x.client.TermFreqs(ctx, x.field, refs)
	if err != nil {
		return nil, passing(err)
	}
	all := make([]norms.DocTerms, len(found))
	for i, d := range found {
		all[i] = norms.DocTerms{Found: d.Found, Version: d.Version, Err: d.Err, Terms: normTerms(d.Fields[x.field])}
	}
	return all, nil
}

// normTerms returns terms as norms has them.
func normTerms(terms []esclient.TermFreq) []norms.TermFreq {
	own := make([]norms.TermFreq, len(terms))
	for i, t := range terms {
		own[i] = norms.TermFreq(t)
	}
	return own
}

// Refresh implements [norms.Updater]. Who may write but not refresh does
// without: the index refreshes by itself.
func (x *normsIndex) Refresh(ctx context.Context) error {
	err := x.client.Refresh(ctx, x.index)
	if refusal, ok := errors.AsType[*esclient.Error](err); ok && refusal.Status == http.StatusForbidden {
		return nil
	}
	return passing(err)
}

// Update implements [norms.Updater].
func (x *normsIndex) Update(ctx context.Context, updates []norms.Update) ([]norms.Outcome, error) {
	all := make([]esclient.DocUpdate, len(updates))
	for i := range updates {
		all[i] = esclient.DocUpdate{Doc: docRef(&updates[i].Doc), Part: updates[i].Part}
	}
	results, err := x.client.UpdateDocs(ctx, all)
	if err != nil {
		return nil, passing(err)
	}
	outcomes := make([]norms.Outcome, len(results))
	for i, r := range results {
		outcomes[i] = norms.Outcome{Status: updateStatus(r.Status), Err: r.Err}
	}
	return outcomes, nil
}

func docRef(d *norms.Doc) esclient.DocRef {
	return esclient.DocRef{
		Index: d.Index, ID: d.ID, Routing: d.Routing, SeqNo: d.SeqNo, PrimaryTerm: d.PrimaryTerm, Version: d.Version,
	}
}

func updateStatus(s esclient.UpdateStatus) norms.Status {
	switch s {
	case esclient.Updated:
		return norms.StatusWritten
	case esclient.Unchanged:
		return norms.StatusUnchanged
	case esclient.Conflict:
		return norms.StatusConflict
	case esclient.Gone:
		return norms.StatusGone
	case esclient.Busy:
		return norms.StatusBusy
	case esclient.Refused:
	}
	return norms.StatusRefused
}

// passing marks the errors of a cluster that may pass, and those of answers
// that are too large.
func passing(err error) error {
	switch {
	case errors.Is(err, esclient.ErrTooLarge):
		return fmt.Errorf("%w: %w", norms.ErrTooLarge, err)
	case err != nil && esclient.Interrupted(err):
		return fmt.Errorf("%w: %w", norms.ErrInterrupted, err)
	}
	return err
}
