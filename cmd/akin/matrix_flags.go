package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/spf13/pflag"

	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/combine"
)

// matrixFlags are those flags of "matrix build" that are not for one source
// alone.
type matrixFlags struct {
	field fieldFlags
	terms filterFlags
	rows  rowFlags
	power float64 // 0 is the source's own
}

func (f *matrixFlags) register(flags *pflag.FlagSet) {
	f.field.Register(flags, "cluster at this URL that makes index terms of words; with --index and --field")
	flags.StringSliceVar(&f.field.fields, "field", nil, "text field; several must be analyzed alike")
	flags.Uint32Var(&f.terms.MinDocFreq, "min-df", 0, "leave out terms in fewer documents; default 3 with --from-index, where they are only nobody's neighbors")
	flags.StringVar(&f.terms.exclude, "exclude", "", "leave out terms that this regular expression matches")
	flags.IntVar(&f.rows.Neighbors, "top", defaultTop, "neighbors of a term at most")
	flags.Float64Var(&f.rows.Threshold, "min-similarity", 0, "drop similarities up to this")
	flags.BoolVar(&f.rows.Symmetric, "symmetric", false, "make both directions alike, the rarest terms first; rows stay within --top")
	flags.BoolVar(&f.rows.Dominant, "dominant", false, "keep the sum of a row's similarities under 1; with --symmetric the matrix is positive definite")
	flags.StringVar(&f.rows.overrides, "overrides", "", "file of corrections by hand (see docs/matrices.md)")
	flags.Float64Var(&f.power, "power", 0,
		"power of the cosine; default 3 for an index, and for vectors by how near their words are")
}

type rowFlags struct {
	combine.SparsifyOptions

	overrides string
	rules     *combine.Overrides // of that file
}

const defaultTop = 200

// check sets right what is wrong, so that the sources, which get it too, do not
// say it again.
func (f *rowFlags) check() []error {
	var errs []error
	if f.Neighbors < 1 || f.Neighbors > simmatrix.MaxNeighbors {
		errs = append(errs, fmt.Errorf("--top: %d not in [1, %d]", f.Neighbors, simmatrix.MaxNeighbors))
		f.Neighbors = defaultTop
	}
	if !(f.Threshold >= 0 && f.Threshold < 1) { // written so that NaN fails
		errs = append(errs, fmt.Errorf("--min-similarity: %v not in [0, 1)", f.Threshold))
	}
	return errs
}

// searched is how many neighbors of a term are searched for: twice --top where
// some may fall away.
func (f *rowFlags) searched() int {
	if f.overrides != "" || f.Symmetric {
		return min(2*f.Neighbors, simmatrix.MaxNeighbors)
	}
	return f.Neighbors
}

// readOverrides reads the overrides, none without --overrides. Those that make
// the two directions of a pair differ do not go with --symmetric.
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
			errs = append(errs, fmt.Errorf("%s: %v: with --symmetric a rule has to be both ways", f.overrides, &rule))
		}
	}
	if len(errs) > 0 {
		return cli.Usage(errors.Join(errs...))
	}
	return nil
}

// readOverrides reads a file of overrides. What is wrong in it is a mistake of
// the user.
func readOverrides(ctx context.Context, path string) (*combine.Overrides, error) {
	o, err := cli.Read(ctx, path, combine.ParseOverrides)
	if errors.Is(err, combine.ErrOverrides) {
		err = cli.Usage(err)
	}
	return o, err
}

// applyOverrides applies them and tells which words and pins ask for what m
// lacks. It returns them with the terms of m, too.
func applyOverrides(m *simmatrix.Matrix, overrides *combine.Overrides, report *cli.Progress) (*simmatrix.Matrix, *combine.Overrides, error) {
	overrides, unknown, err := overrides.Resolve(m)
	if err != nil {
		return nil, nil, cli.Usage(err)
	}
	const most = 20 // that are named of the words and pins that the matrix lacks
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
		report.Tell("overrides: %d entries set, %d banned, %d pinned, %d as they were; %d terms added that the matrix lacked",
			counts.Set, counts.Banned, counts.Pinned, counts.NoEffect, counts.TermsAdded)
	}
	for _, pin := range counts.Unmet[:min(len(counts.Unmet), most)] {
		report.Tell("overrides: %v: there is no such entry to keep", &pin)
	}
	if more := len(counts.Unmet) - most; more > 0 {
		report.Tell("overrides: and %d more pins of entries that are not there", more)
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

// fieldFlags say which field of an index a matrix is for. Without a URL no
// cluster is asked: words are index terms.
type fieldFlags struct {
	cli.Cluster

	fields []string
	found  *combine.ProjectOptions // what the cluster says of the words; nil where nobody has asked
}

// check returns what is missing: all three of the flags go together.
func (f *fieldFlags) check() error {
	if all := f.URL != "" && f.Index != "" && len(f.fields) > 0; !all && (f.URL != "" || f.Index != "" || len(f.fields) > 0) {
		return errors.New("give --cluster, --index and --field together, or none of them")
	}
	return nil
}

// lookUp asks the cluster about words, see [indexReading.LookUp].
func (f *fieldFlags) lookUp(ctx context.Context, words []string, report *cli.Progress) error {
	client, err := f.Open()
	if err != nil {
		return err
	}
	defer client.Close()
	x := &indexReading{Client: client, Scan: documents.ScanOptions{Index: f.Index, Fields: f.fields}, Report: report}
	f.found, err = x.LookUp(ctx, words)
	return err
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
