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

	"github.com/akin-search/akin/cmd/akin/internal/files"
	"github.com/akin-search/akin/cmd/akin/internal/terminal"
	"github.com/akin-search/akin/internal/openfile"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/learn"
	"github.com/akin-search/akin/simmatrix/source"
	"github.com/akin-search/akin/simmatrix/spelling"
)

// A matrixSource is one of the --from flags of "matrix build".
type matrixSource struct {
	flag string
	// takes names the flags that go with this source but not with all.
	takes []string
	// check returns all that is wrong with the settings.
	check func() error
	build func(ctx context.Context, report *terminal.Progress) (*simmatrix.Matrix, error)
}

// all returns the sources.
func (f *buildFlags) all() []matrixSource {
	return []matrixSource{
		{flag: "from-index", takes: f.docs.takes(), check: f.checkIndex, build: f.fromIndex},
		{
			flag: "from-vectors", takes: []string{"power", "threshold", "recall", "max-words", "format"},
			check: f.checkVectors, build: f.fromVectors,
		},
		{
			flag: "from-edit-distance", takes: []string{"formula", "theta1", "theta2", "length-ratio", "max-distance", "bytes"},
			check: f.checkEdit, build: f.fromEditDistance,
		},
		{
			flag: "from-thesaurus", takes: []string{"similarity", "expand", "multi-word", "joiner", "format"},
			check: f.checkThesaurus, build: f.fromThesaurus,
		},
		{flag: "from-tsv", takes: []string{"both-ways", "clamp"}, check: f.checkGiven, build: f.fromTSV},
		{
			flag: "from-matrix-market", takes: []string{"vocabulary", "both-ways", "clamp"},
			check: f.checkGiven, build: f.fromMatrixMarket,
		},
		{
			flag: "from-matrices", takes: []string{"combine", "weights", "relations"},
			check: f.combine.check, build: f.fromMatrices,
		},
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
		for _, name := range s.takes {
			own[name] = true
		}
	}
	if len(given) != 1 {
		return matrixSource{}, errors.New("give one of " + strings.Join(names, ", "))
	}
	var errs []error
	flags.Visit(func(flag *pflag.Flag) {
		if own[flag.Name] && !slices.Contains(given[0].takes, flag.Name) {
			errs = append(errs, fmt.Errorf("--%s does not go with --%s", flag.Name, given[0].flag))
		}
	})
	return given[0], errors.Join(errs...)
}

// registerSources defines the flags of the sources.
func (f *buildFlags) registerSources(flags *pflag.FlagSet) {
	f.docs.register(flags)
	f.registerVectors(flags)
	f.registerEdit(flags)
	f.registerThesaurus(flags)
	f.registerGiven(flags)
	flags.StringVar(&f.format, "format", "",
		"text or binary with --from-vectors, solr or wordnet with --from-thesaurus; default what the file looks like")
	f.combine.register(flags)
}

// setNeighbors tells all sources how many neighbors of a term to look for. What
// is listed somewhere is all taken: the rows are cut to --top in the end. What
// is searched for is twice as many where some may fall away, banned by hand or
// for want of room in the other's row.
func (f *buildFlags) setNeighbors() {
	n := f.sparsify.Neighbors
	f.thesaurus.Neighbors, f.given.Neighbors, f.combine.options.Neighbors = simmatrix.MaxNeighbors, simmatrix.MaxNeighbors, n
	if f.overrides != "" || f.sparsify.Symmetric {
		n = min(2*n, simmatrix.MaxNeighbors)
	}
	f.docs.options.Neighbors, f.vectors.Neighbors, f.edit.Neighbors = n, n, n
}

func (f *buildFlags) registerVectors(flags *pflag.FlagSet) {
	f.vectors = learn.DefaultVectorOptions()
	flags.StringVar(&f.paths.vectors, "from-vectors", "", "word vectors of this file")
	flags.Float64Var(&f.vectors.Threshold, "threshold", f.vectors.Threshold, "with --from-vectors: cosines up to this count as 0")
	flags.Float64Var(&f.vectors.Recall, "recall", 0,
		"with --from-vectors: share of the nearest words to find, such as 0.95, for a faster search that may miss some; default all")
	flags.IntVar(&f.reading.MaxWords, "max-words", 0,
		"with --from-vectors: read this many words, which files have in order of frequency; default all")
}

func (f *buildFlags) checkVectors() error {
	f.vectors.Power = f.power
	f.reading.Format = source.VectorsFormat(f.format)
	if f.target.cluster == "" { // else the filters are for the index terms
		f.reading.Keep = f.filter.matchWord
	}
	return errors.Join(f.vectors.Validate(), f.reading.Validate())
}

func (f *buildFlags) fromVectors(ctx context.Context, report *terminal.Progress) (*simmatrix.Matrix, error) {
	report.Step("reading vectors", 0, 0)
	vectors, err := files.Read(ctx, f.paths.vectors, func(r io.Reader) (*source.Vectors, error) {
		return source.ReadVectors(r, f.reading)
	})
	if err != nil {
		return nil, err
	}
	if n := vectors.Skipped(); n != (source.SkippedWords{}) {
		report.Tell("skipped %d words that the filters leave out, %d that came before, %d that cannot be index terms",
			n.Filtered, n.Repeated, n.Invalid)
	}
	if f.target.cluster != "" {
		if f.found, err = f.target.lookUp(ctx, vectors.Words(), report); err != nil {
			return nil, err
		}
		f.vectors.Keep = func(word string) bool { return f.filter.matchFound(word, f.found) }
		f.vectors.Candidate = func(word string) bool { return inDocuments(word, f.found) }
	}
	f.vectors.Source = "vectors " + filepath.Base(f.paths.vectors)
	m, err := learn.FromVectors(ctx, vectors, f.vectors, report.Step)
	if err == nil && f.vectors.Recall > 0 {
		report.Tell("recall of the approximate search, measured: %s", m.Meta().Params["recall"])
	}
	return m, err
}

func (f *buildFlags) registerEdit(flags *pflag.FlagSet) {
	f.edit = spelling.DefaultOptions()
	flags.StringVar(&f.paths.edit, "from-edit-distance", "", "the terms of this file, one on a line, or of this matrix file, by their spelling")
	flags.StringVar(&f.formula, "formula", string(f.edit.Formula),
		"with --from-edit-distance: power, reciprocal, linear, root or square")
	flags.Float64Var(&f.edit.Theta1, "theta1", f.edit.Theta1, "with --formula power: θ1 in θ1·(1 − distance/length)^θ2")
	flags.Float64Var(&f.edit.Theta2, "theta2", f.edit.Theta2, "with --formula power: θ2")
	flags.Float64Var(&f.edit.LengthRatio, "length-ratio", f.edit.LengthRatio,
		"with --from-edit-distance: a neighbor is at most this many times as long")
	flags.IntVar(&f.edit.MaxDistance, "max-distance", f.edit.MaxDistance, "with --from-edit-distance: largest distance of neighbors")
	flags.BoolVar(&f.edit.Bytes, "bytes", false, "with --from-edit-distance: count bytes, not characters")
}

func (f *buildFlags) checkEdit() error {
	f.edit.Formula = spelling.Formula(f.formula)
	return f.edit.Validate()
}

func (f *buildFlags) fromEditDistance(ctx context.Context, report *terminal.Progress) (*simmatrix.Matrix, error) {
	report.Step("reading terms", 0, 0)
	terms, err := readTerms(ctx, f.paths.edit)
	if err != nil {
		return nil, err
	}
	keep := func(t simmatrix.Term) bool { return f.filter.Match(t.Text, t.DocFreq, 0) }
	if f.target.cluster != "" {
		words := make([]string, len(terms))
		for k, t := range terms {
			words[k] = t.Text
		}
		if f.found, err = f.target.lookUp(ctx, words, report); err != nil {
			return nil, err
		}
		keep = func(t simmatrix.Term) bool { return f.filter.matchFound(t.Text, f.found) }
		f.edit.Candidate = func(word string) bool { return inDocuments(word, f.found) }
	}
	terms = slices.DeleteFunc(terms, func(t simmatrix.Term) bool { return !keep(t) })
	f.edit.Source = "edit distance of " + filepath.Base(f.paths.edit)
	return spelling.FromTerms(ctx, terms, f.edit, report.Step)
}

// readTerms reads a list of terms, or the terms of a matrix file.
func readTerms(ctx context.Context, path string) ([]simmatrix.Term, error) {
	return files.Read(ctx, path, func(r io.Reader) ([]simmatrix.Term, error) {
		in := bufio.NewReaderSize(r, 1<<20)
		if !simmatrix.IsEncoded(in) {
			return source.ReadTerms(in)
		}
		m, err := simmatrix.Decode(in)
		if err != nil {
			return nil, err
		}
		terms := make([]simmatrix.Term, 0, m.Len())
		for term, row := range m.Rows() {
			terms = append(terms, simmatrix.Term{Text: term, DocFreq: row.DocFreq()})
		}
		return terms, nil
	})
}

func (f *buildFlags) registerThesaurus(flags *pflag.FlagSet) {
	f.thesaurus = source.DefaultThesaurusOptions()
	flags.StringVar(&f.paths.thesaurus, "from-thesaurus", "", "synonym file of Solr or Elasticsearch, or WordNet's wn_s.pl")
	flags.Float64Var(&f.thesaurus.Similarity, "similarity", f.thesaurus.Similarity,
		"with --from-thesaurus: similarity of synonyms where the file names none")
	flags.BoolVar(&f.thesaurus.Expand, "expand", f.thesaurus.Expand,
		"with --from-thesaurus: all of a group are each other's synonyms; else the first is that of the rest")
	flags.StringVar(&f.multiWord, "multi-word", string(f.thesaurus.MultiWord), "with --from-thesaurus: skip entries of several words, or join them")
	flags.StringVar(&f.thesaurus.Joiner, "joiner", f.thesaurus.Joiner, "with --multi-word join: what stands between the words")
}

func (f *buildFlags) checkThesaurus() error {
	f.thesaurus.MultiWord, f.thesaurus.Format = source.MultiWord(f.multiWord), source.ThesaurusFormat(f.format)
	return f.thesaurus.Validate()
}

func (f *buildFlags) fromThesaurus(ctx context.Context, report *terminal.Progress) (*simmatrix.Matrix, error) {
	report.Step("reading the thesaurus", 0, 0)
	f.thesaurus.Source = "thesaurus " + filepath.Base(f.paths.thesaurus)
	m, counts, err := readThesaurus(ctx, f.paths.thesaurus, f.thesaurus)
	if err == nil {
		report.Tell("%s: %d groups, %d rules; %d terms in %d pairs, %d of them given again",
			counts.Format, counts.Groups, counts.Rules, counts.Terms, counts.Pairs, counts.Duplicates)
		if n := counts.Skipped + counts.Joined; n > 0 {
			report.Tell("entries of several words, such as %q: %d skipped, %d joined", counts.Examples, counts.Skipped, counts.Joined)
		}
	}
	return m, err
}

func readThesaurus(
	ctx context.Context, path string, options source.ThesaurusOptions,
) (m *simmatrix.Matrix, counts source.ThesaurusCounts, err error) {
	m, err = files.Read(ctx, path, func(r io.Reader) (*simmatrix.Matrix, error) {
		m, c, err := source.ReadThesaurus(r, options)
		counts = c
		return m, err
	})
	return m, counts, err
}

func (f *buildFlags) registerGiven(flags *pflag.FlagSet) {
	f.given = source.DefaultListOptions()
	flags.StringVar(&f.paths.tsv, "from-tsv", "", "lines of term, TAB, term, TAB, similarity")
	flags.StringVar(&f.paths.market, "from-matrix-market", "", "a MatrixMarket file; needs --vocabulary")
	flags.StringVar(&f.paths.vocabulary, "vocabulary", "", "with --from-matrix-market: its terms, one on a line")
	flags.BoolVar(&f.given.Symmetric, "both-ways", false, "with --from-tsv and --from-matrix-market: each entry counts both ways")
	flags.BoolVar(&f.given.Clamp, "clamp", false,
		"with --from-tsv and --from-matrix-market: take similarities under 0 as 0 and above 1 as 1, which else are errors")
}

func (f *buildFlags) checkGiven() error {
	err := f.given.Validate()
	if (f.paths.market == "") != (f.paths.vocabulary == "") {
		err = errors.Join(err, errors.New("give --from-matrix-market and --vocabulary together"))
	}
	return err
}

func (f *buildFlags) fromTSV(ctx context.Context, report *terminal.Progress) (*simmatrix.Matrix, error) {
	report.Step("reading similarities", 0, 0)
	f.given.Source = "list " + filepath.Base(f.paths.tsv)
	return files.Read(ctx, f.paths.tsv, func(r io.Reader) (*simmatrix.Matrix, error) { return source.ReadTSV(r, f.given) })
}

func (f *buildFlags) fromMatrixMarket(ctx context.Context, report *terminal.Progress) (*simmatrix.Matrix, error) {
	report.Step("reading similarities", 0, 0)
	f.given.Source = "matrix " + filepath.Base(f.paths.market)
	market, err := openfile.Open(ctx, f.paths.market)
	if err != nil {
		return nil, err
	}
	defer market.Close() // nothing was written
	vocabulary, err := openfile.Open(ctx, f.paths.vocabulary)
	if err != nil {
		return nil, err
	}
	defer vocabulary.Close() // as above
	m, err := source.ReadMatrixMarket(market, vocabulary, f.given)
	switch {
	case errors.Is(err, source.ErrVocabulary), errors.Is(err, simmatrix.ErrNoVocabulary):
		return nil, fmt.Errorf("%s: %w", f.paths.vocabulary, err)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", f.paths.market, err)
	}
	return m, nil
}
