package main

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/pflag"

	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/combine"
)

// fieldFlags say which field of an index a matrix is for. Without a URL no
// cluster is asked: words are index terms.
type fieldFlags struct {
	cli.Cluster

	fields []string
	found  *combine.ProjectOptions // what the cluster says of the words; nil where nobody has asked
}

func (f *fieldFlags) register(flags *pflag.FlagSet) {
	f.Register(flags, "cluster at this URL that makes index terms of words; with --index and --field")
	flags.StringSliceVar(&f.fields, "field", nil, "text field; several must be analyzed alike")
}

// check returns what is missing: all three of the flags go together.
func (f *fieldFlags) check() error {
	if all := f.URL != "" && f.Index != "" && len(f.fields) > 0; !all && (f.URL != "" || f.Index != "" || len(f.fields) > 0) {
		return errors.New("give --cluster, --index and --field together, or none of them")
	}
	return nil
}

// ask calls question with the field and a connection to its cluster.
func (f *fieldFlags) ask(report *cli.Progress, question func(x *indexReading) error) error {
	client, err := f.Open()
	if err != nil {
		return err
	}
	defer client.Close()
	return question(&indexReading{Client: client, Scan: documents.ScanOptions{Index: f.Index, Fields: f.fields}, Report: report})
}

// lookUp asks the cluster about words, see [indexReading.LookUp].
func (f *fieldFlags) lookUp(ctx context.Context, words []string, report *cli.Progress) error {
	return f.ask(report, func(x *indexReading) (err error) {
		f.found, err = x.LookUp(ctx, words)
		return err
	})
}

// passes reports whether the index term of a word that was looked up passes the
// filter. Words without one pass, too: they go later.
func (f *fieldFlags) passes(word string, filter *combine.TermFilter) bool {
	terms := f.found.IndexTerms[word]
	return len(terms) != 1 || filter.Match(terms[0], f.found.DocFreqs[terms[0]], f.found.Docs)
}

// inDocuments reports whether a document has the index term of the word.
func (f *fieldFlags) inDocuments(word string) bool {
	terms := f.found.IndexTerms[word]
	return len(terms) == 1 && f.found.DocFreqs[terms[0]] > 0
}

// project turns the words of m into the index terms of the field, if there is
// one.
func (f *fieldFlags) project(ctx context.Context, m *simmatrix.Matrix, report *cli.Progress) (*simmatrix.Matrix, error) {
	if f.URL == "" {
		return m, nil
	}
	if f.found == nil { // the source did not need to know
		if err := f.lookUp(ctx, slices.Collect(m.Terms()), report); err != nil {
			return nil, err
		}
	}
	out, counts, err := combine.Project(m, *f.found)
	if err == nil {
		report.Tell("%d words: %d became terms of their own, %d fell on the term of another, %d are several terms, %d none; %d terms are in no document",
			counts.Words, counts.Kept, counts.Merged, counts.MultiToken, counts.NoToken, counts.Unused)
	}
	return out, err
}
