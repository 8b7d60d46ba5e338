package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/learn"
	"github.com/akin-search/akin/simmatrix/source"
)

// A matrixSource is one of the --from flags of "matrix build".
type matrixSource struct {
	flag  string
	takes string       // the flags that go with this source but not with all
	check func() error // all that is wrong with the settings
	build func(ctx context.Context, report *cli.Progress) (*simmatrix.Matrix, error)
}

func (f *buildFlags) all() []matrixSource {
	return []matrixSource{
		{"from-index", "power query max-docs words exact-analysis spool parts dim window context-power shift " +
			"min-cooccurrence max-terms max-memory seed", f.checkIndex, f.fromIndex},
		{"from-vectors", "power recall max-words format", f.checkVectors, f.fromVectors},
		{"from-edit-distance", "formula theta1 theta2 length-ratio max-distance bytes", f.edit.options.Validate, f.fromEditDistance},
		{"from-thesaurus", "similarity expand multi-word joiner format", f.checkThesaurus, f.fromThesaurus},
		{"from-tsv", "bidirectional clamp-similarities", func() error { return nil }, f.list.readTSV},
		{"from-matrices", "combine weights relations", f.combine.check, f.fromMatrices},
	}
}

// chosen returns the source that is given, or what is wrong: none, two, or a
// flag that does not go with it.
func (f *buildFlags) chosen(flags *pflag.FlagSet) (matrixSource, error) {
	var given []matrixSource
	all := f.all()
	names := make([]string, len(all))
	own := map[string]bool{}
	for k, s := range all {
		names[k] = "--" + s.flag
		if flags.Changed(s.flag) {
			given = append(given, s)
		}
		for name := range strings.FieldsSeq(s.takes) {
			own[name] = true
		}
	}
	if len(given) != 1 {
		return matrixSource{}, errors.New("give one of " + strings.Join(names, ", "))
	}
	var errs []error
	flags.Visit(func(flag *pflag.Flag) {
		if own[flag.Name] && !slices.Contains(strings.Fields(given[0].takes), flag.Name) {
			errs = append(errs, fmt.Errorf("--%s does not go with --%s", flag.Name, given[0].flag))
		}
	})
	return given[0], errors.Join(errs...)
}

func registerSources(f *buildFlags, flags *pflag.FlagSet) {
	f.docs.register(flags)
	f.vectors.register(flags)
	f.edit.register(flags)
	f.thesaurus.register(flags)
	f.list.register(flags)
	f.combine.register(flags)
	flags.StringVar(&f.format, "format", "", "text or binary, or solr or wordnet; default what the file looks like")
	flags.Float64Var(&f.power, "power", 0,
		"power of the cosine; default 3 for an index, and for vectors by how near their words are")
	sources := map[string][]string{} // by the name of the flag
	for _, s := range f.all() {
		for name := range strings.FieldsSeq(s.takes) {
			sources[name] = append(sources[name], "--"+s.flag)
		}
	}
	for name, of := range sources {
		flag := flags.Lookup(name)
		flag.Usage = "with " + strings.Join(of, " and ") + ": " + flag.Usage
	}
}

// setNeighbors sets how many neighbors of a term the sources look for: all that
// are listed somewhere, since the rows are cut to --top in the end, and twice
// --top of what is searched for where some may fall away.
func (f *buildFlags) setNeighbors() {
	n := f.rows.Neighbors
	f.thesaurus.options.Neighbors, f.list.options.Neighbors, f.combine.options.Neighbors = simmatrix.MaxNeighbors, simmatrix.MaxNeighbors, n
	if f.rows.overrides != "" || f.rows.Symmetric {
		n = min(2*n, simmatrix.MaxNeighbors)
	}
	f.docs.options.Neighbors, f.vectors.options.Neighbors, f.edit.options.Neighbors = n, n, n
}

// vectorFlags are the flags of --from-vectors.
type vectorFlags struct {
	path    string
	options learn.VectorOptions
	reading source.ReadVectorsOptions
}

func (f *vectorFlags) register(flags *pflag.FlagSet) {
	f.options = learn.DefaultVectorOptions()
	flags.StringVar(&f.path, "from-vectors", "", "word vectors of this file")
	flags.Float64Var(&f.options.Recall, "recall", 0,
		"share of the nearest words to find, such as 0.95, for a faster search that may miss some; default all")
	flags.IntVar(&f.reading.MaxWords, "max-words", 0, "read this many words, which files have in order of frequency; default all")
}

func (f *buildFlags) checkVectors() error {
	v := &f.vectors
	v.options.Power, v.reading.Format = f.power, source.VectorsFormat(f.format)
	if f.field.URL == "" { // else the filters are for the index terms
		v.reading.Keep = func(word string) bool { return f.terms.Match(word, 0, 0) } // its frequency is not known yet
	}
	return errors.Join(v.options.Validate(), v.reading.Validate())
}

func (f *buildFlags) fromVectors(ctx context.Context, report *cli.Progress) (*simmatrix.Matrix, error) {
	report.Step("reading vectors", 0, 0)
	v := &f.vectors
	vectors, err := cli.Read(ctx, v.path, func(r io.Reader) (*source.Vectors, error) {
		return source.ReadVectors(r, v.reading)
	})
	if err != nil {
		return nil, err
	}
	if n := vectors.Skipped(); n != (source.SkippedWords{}) {
		report.Tell("skipped %d words that the filters leave out, %d that came before, %d that cannot be index terms",
			n.Filtered, n.Repeated, n.Invalid)
	}
	if f.field.URL != "" {
		if err = f.field.lookUp(ctx, vectors.Words(), report); err != nil {
			return nil, err
		}
		v.options.Keep = func(word string) bool { return f.field.passes(word, &f.terms) }
		v.options.Candidate = f.field.inDocuments
	}
	v.options.Source = "vectors " + filepath.Base(v.path)
	m, err := learn.FromVectors(ctx, vectors, v.options, report.Step)
	if err != nil {
		return nil, err
	}
	params := m.Meta().Params
	if v.options.Recall > 0 {
		report.Tell("recall of the approximate search, measured: %s", params["recall"])
	}
	if f.power == 0 {
		report.Tell("power of the cosine, chosen by how near the words are: %s", params["power"])
	}
	if crowd := learn.Crowd(m); crowd > learn.LargestCrowd {
		report.Tell("warning: with power %s the 30th neighbor of a word has a similarity of %.2f on average. Rankings get worse above %v: "+
			"leave --power out, or raise it", params["power"], crowd, learn.LargestCrowd)
	}
	return m, nil
}

// spellingFlags are the flags of --from-edit-distance.
type spellingFlags struct {
	path    string
	options source.SpellingOptions
}

func (f *spellingFlags) register(flags *pflag.FlagSet) {
	f.options = source.DefaultSpellingOptions()
	flags.StringVar(&f.path, "from-edit-distance", "", "the terms of this file, one on a line, or of this matrix file, by their spelling")
	flags.StringVar((*string)(&f.options.Formula), "formula", string(f.options.Formula), "power, reciprocal, linear, root or square")
	flags.Float64Var(&f.options.Theta1, "theta1", f.options.Theta1, "with --formula power, θ1 in θ1·(1 − distance/length)^θ2")
	flags.Float64Var(&f.options.Theta2, "theta2", f.options.Theta2, "with --formula power, θ2")
	flags.Float64Var(&f.options.LengthRatio, "length-ratio", f.options.LengthRatio, "a neighbor is at most this many times as long")
	flags.IntVar(&f.options.MaxDistance, "max-distance", f.options.MaxDistance, "largest distance of neighbors")
	flags.BoolVar(&f.options.Bytes, "bytes", false, "count bytes, not characters")
}

func (f *buildFlags) fromEditDistance(ctx context.Context, report *cli.Progress) (*simmatrix.Matrix, error) {
	report.Step("reading terms", 0, 0)
	terms, err := readTerms(ctx, f.edit.path)
	if err != nil {
		return nil, err
	}
	keep := func(t simmatrix.Term) bool { return f.terms.Match(t.Text, t.DocFreq, 0) }
	if f.field.URL != "" {
		words := make([]string, len(terms))
		for k, t := range terms {
			words[k] = t.Text
		}
		if err = f.field.lookUp(ctx, words, report); err != nil {
			return nil, err
		}
		keep = func(t simmatrix.Term) bool { return f.field.passes(t.Text, &f.terms) }
		f.edit.options.Candidate = f.field.inDocuments
	}
	terms = slices.DeleteFunc(terms, func(t simmatrix.Term) bool { return !keep(t) })
	f.edit.options.Source = "edit distance of " + filepath.Base(f.edit.path)
	return source.FromSpelling(ctx, terms, f.edit.options, report.Step)
}

func readTerms(ctx context.Context, path string) ([]simmatrix.Term, error) {
	return readMatrixOr(ctx, path, source.ReadTerms, func(m *simmatrix.Matrix) []simmatrix.Term {
		terms := make([]simmatrix.Term, 0, m.Len())
		for term, row := range m.Rows() {
			terms = append(terms, simmatrix.Term{Text: term, DocFreq: row.DocFreq()})
		}
		return terms
	})
}

// readMatrixOr reads a file that is a matrix, or else what read makes of it.
func readMatrixOr[T any](ctx context.Context, path string, read func(io.Reader) (T, error), of func(*simmatrix.Matrix) T) (T, error) {
	return cli.Read(ctx, path, func(r io.Reader) (result T, err error) {
		in := bufio.NewReaderSize(r, 1<<20)
		if !simmatrix.IsEncoded(in) {
			return read(in)
		}
		m, err := simmatrix.Decode(in)
		if err == nil {
			result = of(m)
		}
		return result, err
	})
}

// thesaurusFlags are the flags of --from-thesaurus.
type thesaurusFlags struct {
	path    string
	options source.ThesaurusOptions
}

func (f *thesaurusFlags) register(flags *pflag.FlagSet) {
	f.options = source.DefaultThesaurusOptions()
	flags.StringVar(&f.path, "from-thesaurus", "", "synonym file of Solr or Elasticsearch, or WordNet's wn_s.pl")
	flags.Float64Var(&f.options.Similarity, "similarity", f.options.Similarity, "similarity of synonyms where the file has none")
	flags.BoolVar(&f.options.Expand, "expand", f.options.Expand,
		"all of a group are each other's synonyms; else the first is that of the rest")
	flags.StringVar((*string)(&f.options.MultiWord), "multi-word", string(f.options.MultiWord), "skip entries of several words, or join them")
	flags.StringVar(&f.options.Joiner, "joiner", f.options.Joiner, "with --multi-word join, what stands between the words")
}

func (f *buildFlags) checkThesaurus() error {
	f.thesaurus.options.Format = source.ThesaurusFormat(f.format)
	return f.thesaurus.options.Validate()
}

func (f *buildFlags) fromThesaurus(ctx context.Context, report *cli.Progress) (*simmatrix.Matrix, error) {
	report.Step("reading the thesaurus", 0, 0)
	f.thesaurus.options.Source = "thesaurus " + filepath.Base(f.thesaurus.path)
	var counts source.ThesaurusCounts
	m, err := cli.Read(ctx, f.thesaurus.path, func(r io.Reader) (m *simmatrix.Matrix, err error) {
		m, counts, err = source.ReadThesaurus(r, f.thesaurus.options)
		return m, err
	})
	if err == nil {
		report.Tell("%s: %d groups, %d rules; %d terms in %d pairs, %d of them given again",
			counts.Format, counts.Groups, counts.Rules, counts.Terms, counts.Pairs, counts.Duplicates)
		if n := counts.Skipped + counts.Joined; n > 0 {
			report.Tell("entries of several words, such as %q: %d skipped, %d joined", counts.Examples, counts.Skipped, counts.Joined)
		}
	}
	return m, err
}

// listFlags are the flags of --from-tsv.
type listFlags struct {
	tsv     string // path
	options source.ListOptions
}

func (f *listFlags) register(flags *pflag.FlagSet) {
	f.options = source.DefaultListOptions()
	flags.StringVar(&f.tsv, "from-tsv", "", "lines of term, TAB, term, TAB, similarity")
	flags.BoolVar(&f.options.Symmetric, "bidirectional", false, "each entry counts in both directions")
	flags.BoolVar(&f.options.Clamp, "clamp-similarities", false,
		"take similarities under 0 as 0 and above 1 as 1, which otherwise are errors")
}

func (f *listFlags) readTSV(ctx context.Context, report *cli.Progress) (*simmatrix.Matrix, error) {
	report.Step("reading similarities", 0, 0)
	f.options.Source = "list " + filepath.Base(f.tsv)
	return cli.Read(ctx, f.tsv, func(r io.Reader) (*simmatrix.Matrix, error) { return source.ReadTSV(r, f.options) })
}
