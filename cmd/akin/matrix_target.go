package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"

	"github.com/spf13/pflag"

	"github.com/akin-search/akin/cmd/akin/internal/files"
	"github.com/akin-search/akin/cmd/akin/internal/terminal"
	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/esclient"
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

// warn tells of fields whose index terms are no words. It keeps silent where
// the cluster does not say: what needs the fields fails then by itself.
func (t *target) warn(ctx context.Context, client *esclient.Client, report *terminal.Progress) {
	for _, field := range t.fields {
		if what, err := client.NotWords(ctx, t.index, field); err == nil && what != "" {
			report.Tell("warning: the terms of field %s are no words, because of its %s: their neighbors are no related words. "+
				"Learn from a field that is analyzed into words. Searches of %s are not expanded unless fields in matrices names it in full.", field, what, field)
		}
	}
}

// wordsAtOnce is how many words are analyzed between two reports of progress.
const wordsAtOnce = 5000

// analyze returns the index terms of each word, by the analyzer of the fields.
func (t *target) analyze(ctx context.Context, client *esclient.Client, words []string, report *terminal.Progress) ([][]string, error) {
	terms := make([][]string, 0, len(words))
	for batch := range slices.Chunk(words, wordsAtOnce) {
		report.Step("analyzing words", len(terms), len(words))
		analyzed, err := client.AnalyzeWords(ctx, t.index, t.fields[0], batch)
		if err != nil {
			return nil, err
		}
		terms = append(terms, analyzed...)
	}
	report.Step("analyzing words", len(terms), len(words))
	sample := words[:min(len(words), wordsAtOnce)]
	for _, field := range t.fields[1:] {
		other, err := client.AnalyzeWords(ctx, t.index, field, sample)
		if err != nil {
			return nil, err
		}
		for k := range sample {
			if !slices.Equal(other[k], terms[k]) {
				return nil, fmt.Errorf("the fields %s and %s are not analyzed alike (%q is %q and %q): build a matrix for each",
					t.fields[0], field, sample[k], terms[k], other[k])
			}
		}
	}
	return terms, nil
}

// lookUp asks the cluster what index terms the words give, and how many
// documents have those.
func (t *target) lookUp(ctx context.Context, words []string, report *terminal.Progress) (*shape.ProjectOptions, error) {
	client, err := openCluster(t.cluster, t.caFile)
	if err != nil {
		return nil, err
	}
	defer func() { _ = client.Close() }() // nothing was written
	analyzed, err := t.analyze(ctx, client, words, report)
	if err != nil {
		return nil, err
	}
	found := &shape.ProjectOptions{IndexTerms: make(map[string][]string, len(words))}
	var terms []string
	for k, word := range words {
		found.IndexTerms[word] = analyzed[k]
		if len(analyzed[k]) == 1 {
			terms = append(terms, analyzed[k][0])
		}
	}
	slices.Sort(terms)
	terms = slices.Compact(terms)
	if found.DocFreqs, found.Docs, err = t.docFreqs(ctx, client, terms, report); err != nil {
		return nil, err
	}
	return found, nil
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

// docFreqs returns the document frequencies of the terms, and N. With several
// fields both are the largest that one of them has.
func (t *target) docFreqs(ctx context.Context, client *esclient.Client, terms []string, report *terminal.Progress) (map[string]uint32, uint64, error) {
	docFreqs, docs := make(map[string]uint32, len(terms)), uint64(0)
	for _, field := range t.fields {
		done := 0
		for batch := range slices.Chunk(terms, wordsAtOnce) {
			report.Step("counting documents with "+field, done, len(terms))
			counts := make([]int64, len(batch))
			n, err := client.DocFreqs(ctx, t.index, field, batch, counts)
			if err != nil {
				return nil, 0, err
			}
			docs = max(docs, uint64(max(n, 0)))
			for k, term := range batch {
				docFreqs[term] = max(docFreqs[term], uint32(min(max(counts[k], 0), math.MaxUint32)))
			}
			done += len(batch)
		}
	}
	return docFreqs, docs, nil
}
