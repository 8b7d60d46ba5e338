package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/combine"
)

// matrixFlags are the flags of "matrix build" for all sources.
type matrixFlags struct {
	field fieldFlags
	terms filterFlags
	rows  rowFlags
	power float64 // 0 for the source's default
}

func (f *matrixFlags) register(flags *pflag.FlagSet) {
	f.field.register(flags, "URL of the cluster that has the documents, or turns words into index terms; needs --index and --field")
	flags.Uint32Var(&f.terms.MinDocFreq, "min-df", 0, "drop terms in fewer documents; default 3 when learning from an index, where rarer terms have rows but are not neighbors")
	flags.StringVar(&f.terms.exclude, "exclude", "", "drop terms that match this regular expression")
	flags.IntVar(&f.rows.Neighbors, "top", defaultTop, "largest number of neighbors of a term")
	flags.Float64Var(&f.rows.Threshold, "min-similarity", 0, "drop similarities up to this value")
	flags.BoolVar(&f.rows.Symmetric, "symmetric", false, "make both directions equal, the rarest terms first; rows stay within --top")
	flags.BoolVar(&f.rows.Dominant, "dominant", false, "keep the sum of a row's similarities below 1; with --symmetric the matrix is positive definite")
	flags.StringVar(&f.rows.overrides, "overrides", "", "file of corrections by hand (see docs/matrices.md)")
	flags.Float64Var(&f.power, "power", 0,
		"power of the cosine; default 3 for an index; for vectors, it depends on how close words are")
}

type rowFlags struct {
	combine.SparsifyOptions

	overrides string
	rules     *combine.Overrides // read from overrides
}

const defaultTop = 200

// check replaces an invalid --top, so that the sources do not report it again.
func (f *rowFlags) check() []error {
	var errs []error
	if f.Neighbors < 1 || f.Neighbors > simmatrix.MaxNeighbors {
		errs = append(errs, fmt.Errorf("--top: %d not in [1, %d]", f.Neighbors, simmatrix.MaxNeighbors))
		f.Neighbors = defaultTop
	}
	if !(f.Threshold >= 0 && f.Threshold < 1) { // true for NaN
		errs = append(errs, fmt.Errorf("--min-similarity: %v not in [0, 1)", f.Threshold))
	}
	return errs
}

// searched returns how many neighbors to search per term: twice --top if some
// may be dropped.
func (f *rowFlags) searched() int {
	if f.overrides != "" || f.Symmetric {
		return min(2*f.Neighbors, simmatrix.MaxNeighbors)
	}
	return f.Neighbors
}

// readOverrides reads the overrides. It rejects one-way rules, except pins,
// with --symmetric.
func (f *rowFlags) readOverrides(ctx context.Context) error {
	f.rules = &combine.Overrides{}
	if f.overrides == "" {
		return nil
	}
	var err error
	if f.rules, err = readOverrides(ctx, f.overrides); err != nil || !f.Symmetric {
		return err
	}
	var errs []error
	for rule := range f.rules.All() {
		if rule.OneWay && rule.Action != combine.ActionPin {
			errs = append(errs, fmt.Errorf("%s: %v: with --symmetric a rule must go both ways", f.overrides, &rule))
		}
	}
	if len(errs) > 0 {
		return cli.Usage(errors.Join(errs...))
	}
	return nil
}

// readOverrides reads a file of overrides. Errors in the file are usage errors.
func readOverrides(ctx context.Context, path string) (*combine.Overrides, error) {
	o, err := cli.Read(ctx, path, combine.ParseOverrides)
	if errors.Is(err, combine.ErrOverrides) {
		err = cli.Usage(err)
	}
	return o, err
}

// applyOverrides applies the overrides, and reports words and pins that m
// lacks. It also returns the overrides resolved to terms of m.
// indexTerms has what the field's analyzer makes of their words, nil if that is
// not known.
func applyOverrides(m *simmatrix.Matrix, overrides *combine.Overrides, indexTerms map[string][]string, report *cli.Progress) (*simmatrix.Matrix, *combine.Overrides, error) {
	overrides, unknown, err := overrides.Resolve(m, indexTerms)
	if err != nil {
		return nil, nil, cli.Usage(err)
	}
	const most = 20 // missing words and pins reported
	for _, word := range unknown[:min(len(unknown), most)] {
		if near := m.Nearest(word); near != "" {
			report.Tell("overrides: the matrix lacks %s; did you mean %s?", cli.Visible(word), cli.Visible(near))
		}
	}
	if more := len(unknown) - most; more > 0 {
		report.Tell("overrides: and %d more words that the matrix lacks", more)
	}
	m, counts, err := overrides.Apply(m)
	if err != nil {
		return nil, nil, err
	}
	if counts.Set+counts.Banned+counts.Pinned+counts.NoEffect > 0 {
		report.Tell("overrides: %d entries set, %d banned, %d pinned, %d unchanged; %d missing terms added",
			counts.Set, counts.Banned, counts.Pinned, counts.NoEffect, counts.TermsAdded)
	}
	for _, pin := range counts.Unmet[:min(len(counts.Unmet), most)] {
		report.Tell("overrides: %v: no such entry to keep", &pin)
	}
	if more := len(counts.Unmet) - most; more > 0 {
		report.Tell("overrides: and %d more pins of missing entries", more)
	}
	return m, overrides, nil
}

type filterFlags struct {
	combine.TermFilter

	exclude string // a regular expression
}

func (f *filterFlags) parse() (err error) {
	if f.exclude == "" {
		return nil
	}
	if f.Drop, err = regexp.Compile(f.exclude); err != nil {
		err = fmt.Errorf("--exclude: %w", err)
	}
	return err
}

// fieldFlags say which field of an index a matrix is for.
type fieldFlags struct {
	cli.Cluster

	fields   []string
	projects bool                    // turns the words of a source into index terms; else they are taken as such
	found    *combine.ProjectOptions // the cluster's answer about the words; nil before lookUp
}

// register adds the flags; usage is that of --cluster.
func (f *fieldFlags) register(flags *pflag.FlagSet, usage string) {
	f.Register(flags, usage)
	flags.StringSliceVar(&f.fields, "field", nil, "text field; several must be analyzed alike")
}

// known reports whether there is a field to ask about.
func (f *fieldFlags) known() bool { return f.URL != "" && f.Index != "" && len(f.fields) > 0 }

// configure takes index and fields from an entry of matrices, unless flags name
// them; nil for no entry.
func (f *fieldFlags) configure(entry *configs.Matrix) (err error) {
	if entry == nil {
		return nil
	}
	f.Index = cmp.Or(f.Index, strings.Join(entry.Indices, ","))
	if len(f.fields) == 0 {
		f.fields, err = cli.Fields(entry)
	}
	return err
}

// lookUp asks the cluster about words, see [indexReading.LookUp].
func (f *fieldFlags) lookUp(ctx context.Context, words []string, report *cli.Progress) error {
	return f.ask(report, func(x *indexReading) (err error) {
		f.found, err = x.LookUp(ctx, words)
		return err
	})
}

// indexTerms returns what the analyzer makes of each word, nil without a field
// to ask about.
func (f *fieldFlags) indexTerms(ctx context.Context, words []string, report *cli.Progress) (map[string][]string, error) {
	if !f.known() || len(words) == 0 {
		return nil, nil
	}
	terms := make(map[string][]string, len(words))
	return terms, f.ask(report, func(x *indexReading) error {
		readings, err := x.Readings(ctx, words)
		for k := range readings {
			terms[words[k]] = readings[k]
		}
		return err
	})
}

func (f *fieldFlags) ask(report *cli.Progress, question func(x *indexReading) error) error {
	client, err := f.Open()
	if err != nil {
		return err
	}
	defer client.Close()
	return question(&indexReading{Client: client, Scan: documents.ScanOptions{Index: f.Index, Fields: f.fields}, Report: report})
}

// passes reports whether a term of a looked-up word passes the filter. Words
// without one pass; project drops them.
func (f *fieldFlags) passes(word string, filter *combine.TermFilter) bool {
	terms := f.found.IndexTerms[word]
	return len(terms) == 0 || slices.ContainsFunc(terms, func(term string) bool { return filter.Match(term, f.found.DocFreqs[term], f.found.Docs) })
}

// inDocuments reports whether a document contains a term of the word.
func (f *fieldFlags) inDocuments(word string) bool {
	return slices.ContainsFunc(f.found.IndexTerms[word], f.found.InDocuments)
}

// project turns the words of m into index terms of the field, if one is given.
func (f *fieldFlags) project(ctx context.Context, m *simmatrix.Matrix, report *cli.Progress) (*simmatrix.Matrix, error) {
	if !f.projects {
		return m, nil
	}
	if f.found == nil { // the source did not need it
		if err := f.lookUp(ctx, slices.Collect(m.Terms()), report); err != nil {
			return nil, err
		}
	}
	out, counts, err := combine.Project(m, *f.found)
	if err == nil {
		report.Tell("%d words: they are %d terms and %d expressions; %d are neither; no document has %d",
			counts.Words, counts.Terms, counts.Expressions, counts.LeftOut, counts.Unused)
	}
	return out, err
}
