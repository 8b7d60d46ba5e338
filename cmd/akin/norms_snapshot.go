package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/akin-search/akin/cmd/akin/internal/files"
	"github.com/akin-search/akin/cmd/akin/internal/terminal"
	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/norms"
	"github.com/akin-search/akin/simmatrix"
)

// snapshotFlags are the flags of "norms snapshot".
type snapshotFlags struct {
	normsFlags

	minDocFreq uint32
	maxTerms   int
	maxMemory  string
	memory     configs.Bytes
	out        string
}

func newNormsSnapshot() *cobra.Command {
	var f snapshotFlags
	cmd := &cobra.Command{
		Use:   "snapshot --cluster URL --index INDEX --field FIELD --out FILE",
		Short: "Freeze the weights of the terms of a field in a file",
		Long: `snapshot reads the terms of every document, as the index itself makes them, and writes
how many documents hold each: the weights of "norms backfill" and of mode hard. The index
is only read. The file is a matrix without neighbors and can be pushed to Redis as one.
The same documents give the same file.

A term that the file does not have counts as one of a single document: --min-df 2 makes
the file smaller and changes no weight.

` + normsCredentials,
		Example: `  akin norms snapshot --cluster http://127.0.0.1:9200 --index docs --field body --out weights.akin
  akin norms snapshot --cluster http://127.0.0.1:9200 --index docs --field body.akin --min-df 2 --out weights.akin
  akin matrix push --redis redis://127.0.0.1:6379 --name docs-weights --activate weights.akin`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.parse(); err != nil {
				return terminal.Usage(err)
			}
			return f.run(cmd.Context(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	f.register(flags)
	flags.Uint32Var(&f.minDocFreq, "min-df", 1, "leave out terms in fewer documents")
	flags.IntVar(&f.maxTerms, "max-terms", 0, "keep the terms in most documents alone, this many; default all")
	flags.StringVar(&f.maxMemory, "max-memory", "4GB", "memory to get along with")
	flags.StringVar(&f.out, "out", "", "file to write (required)")
	return cmd
}

// parse returns all that is wrong with the flags.
func (f *snapshotFlags) parse() error {
	errs := f.check()
	if f.maxTerms < 0 {
		errs = append(errs, fmt.Errorf("--max-terms: %d is negative", f.maxTerms))
	}
	var err error
	if f.memory, err = configs.ParseBytes(f.maxMemory); err != nil {
		errs = append(errs, fmt.Errorf("--max-memory: %w", err))
	} else if f.memory < minMemory {
		errs = append(errs, errors.New("--max-memory: at least 64MiB"))
	}
	if f.out == "" {
		errs = append(errs, errors.New("give --out FILE"))
	} else {
		errs = append(errs, files.CheckTarget(f.out))
	}
	return errors.Join(errs...)
}

// countingShare of --max-memory is what the terms may take while they are
// counted; to make the file of them takes about three times as much.
const countingShare = 0.2

func (f *snapshotFlags) run(ctx context.Context, stderr io.Writer) error {
	client, _, err := f.open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }() // nothing was written
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(int64(collectingShare * float64(f.memory))))
	docs, err := client.CountMatching(ctx, f.index, norms.Missing(f.field, ""))
	if err != nil {
		return err
	}
	report := terminal.NewProgress(stderr)
	defer report.End()
	passedOver := 0
	m, err := norms.Snapshot(ctx, client, norms.SnapshotOptions{
		Index: f.index, Field: f.field, Source: "index " + f.index + ", field " + f.field,
		MinDocFreq: f.minDocFreq, MaxTerms: f.maxTerms, MaxMemory: int64(countingShare * float64(f.memory)),
		Workers: f.workers, Docs: int(docs), Progress: report.Step,
		OnTooLarge: func(doc esclient.DocRef, err error) {
			if passedOver++; passedOver <= maxFailuresShown {
				report.Tell("document %q of index %q is not counted: %v", doc.ID, doc.Index, err)
			}
		},
	})
	if errors.Is(err, simmatrix.ErrMemory) {
		err = fmt.Errorf("%w: raise --max-memory %s", err, f.maxMemory)
	}
	if err != nil {
		return fmt.Errorf("field %q of %q: %w", f.field, f.index, err)
	}
	if err := files.Write(ctx, f.out, func(w io.Writer) error { return simmatrix.Encode(w, m) }); err != nil {
		return err
	}
	if passedOver > 0 {
		report.Tell("%d documents are not counted, for they have too many terms", passedOver)
	}
	report.Tell("%s: weights %s of %d terms, from %d documents", f.out, norms.ID(m.Checksum()), m.Len(), m.Meta().Docs)
	return nil
}
