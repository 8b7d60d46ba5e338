package main

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/pflag"

	"github.com/akin-search/akin/cmd/akin/internal/files"
	"github.com/akin-search/akin/cmd/akin/internal/reading"
	"github.com/akin-search/akin/cmd/akin/internal/terminal"
	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/shape"
)

// A target is the field of an index that a matrix is for.
type target struct {
	cluster string // URL; "" where no cluster is asked
	caFile  string
	index   string
	fields  []string
}

func (t *target) register(flags *pflag.FlagSet) {
	flags.StringVar(&t.cluster, "cluster", "", "cluster at this URL that makes index terms of words; with --index and --field")
	flags.StringVar(&t.caFile, "ca-file", "", "PEM file of the authorities that sign the cluster's certificate; default the system's")
	flags.StringVar(&t.index, "index", "", "index, or several as in a search")
	flags.StringSliceVar(&t.fields, "field", nil, "text field; several must be analyzed alike")
}

// check returns what is missing: all three of the flags go together.
func (t *target) check() error {
	given := 0
	for _, set := range []bool{t.cluster != "", t.index != "", len(t.fields) > 0} {
		if set {
			given++
		}
	}
	if given != 0 && given != 3 {
		return errors.New("give --cluster, --index and --field together, or none of them")
	}
	return nil
}

// openCluster returns a client with the credentials of the environment.
func openCluster(url, caFile string) (*esclient.Client, error) {
	ca, err := files.ReadAuthorities(caFile)
	if err != nil {
		return nil, terminal.Usage(err)
	}
	client, err := esclient.New(esclient.Options{
		URLs:     []string{url},
		CA:       ca,
		Username: os.Getenv(configs.EnvClusterUsername),
		Password: os.Getenv(configs.EnvClusterPassword),
		APIKey:   os.Getenv(configs.EnvClusterAPIKey),
	})
	if err != nil {
		return nil, terminal.Usage(err)
	}
	return client, nil
}

// lookUp asks the cluster about words, see [reading.Index.LookUp].
func (t *target) lookUp(ctx context.Context, words []string, report *terminal.Progress) (*shape.ProjectOptions, error) {
	client, err := openCluster(t.cluster, t.caFile)
	if err != nil {
		return nil, err
	}
	defer func() { _ = client.Close() }() // nothing was written
	x := &reading.Index{Client: client, Scan: documents.ScanOptions{Index: t.index, Fields: t.fields}, Report: report}
	return x.LookUp(ctx, words)
}

// project turns the words of m into the index terms that were found for them.
func (*target) project(m *simmatrix.Matrix, found *shape.ProjectOptions, report *terminal.Progress) (*simmatrix.Matrix, error) {
	out, counts, err := shape.Project(m, *found)
	if err != nil {
		return nil, err
	}
	report.Tell("%d words: %d became terms of their own, %d fell on the term of another, %d are several terms, %d none; %d terms are in no document",
		counts.Words, counts.Kept, counts.Merged, counts.MultiToken, counts.NoToken, counts.Unused)
	return out, nil
}
