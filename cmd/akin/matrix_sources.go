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

	"github.com/spf13/cobra"
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
	flag  string
	takes string       // the flags that go with this source but not with all
	check func() error // all that is wrong with the settings
	build func(ctx context.Context, report *terminal.Progress) (*simmatrix.Matrix, error)
}

// all returns the sources.
func (f *buildFlags) all() []matrixSource {
	return []matrixSource{
		{"from-index", "power query max-docs words exact-analysis spool parts dim window context-power shift " +
			"min-cooccurrence max-terms max-memory seed", f.checkIndex, f.fromIndex},
		{"from-vectors", "power threshold recall max-words format", f.checkVectors, f.fromVectors},
		{"from-edit-distance", "formula theta1 theta2 length-ratio max-distance bytes", f.checkEdit, f.fromEditDistance},
		{"from-thesaurus", "similarity expand multi-word joiner format", f.checkThesaurus, f.fromThesaurus},
		{"from-tsv", "bidirectional clamp-similarities", f.checkList, f.fromTSV},
		{"from-matrix-market", "vocabulary bidirectional clamp-similarities", f.checkList, f.fromMatrixMarket},
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

// registerSources defines the flags of the sources.
func registerSources(f *buildFlags, cmd *cobra.Command) {
	flags := cmd.Flags()
	f.docs.register(flags)
	registerVectors(f, flags)
	registerEdit(f, flags)
	registerThesaurus(f, flags)
	registerLists(f, flags)
	flags.StringVar(&f.format, "format", "", "text or binary, or solr or wordnet; default what the file looks like")
	flags.Float64Var(&f.power, "power", f.vectors.Power, "power of the cosine")
	f.combine.register(flags)
	renamedFlags(cmd, map[string]string{
		"both-ways": "bidirectional", "clamp": "clamp-similarities", "min-runes": "min-length", "max-runes": "max-length",
		"keep": "include", "drop": "exclude",
	})
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
	n := f.sparsify.Neighbors
	f.thesaurus.Neighbors, f.list.Neighbors, f.combine.options.Neighbors = simmatrix.MaxNeighbors, simmatrix.MaxNeighbors, n
	if f.overrides != "" || f.sparsify.Symmetric {
		n = min(2*n, simmatrix.MaxNeighbors)
	}
	f.docs.options.Neighbors, f.vectors.Neighbors, f.edit.Neighbors = n, n, n
}

func registerVectors(f *buildFlags, flags *pflag.FlagSet) {
	f.vectors = learn.DefaultVectorOptions()
	flags.StringVar(&f.paths.vectors, "from-vectors", "", "word vectors of this file")
	flags.Float64Var(&f.vectors.Threshold, "threshold", f.vectors.Threshold, "cosines up to this count as 0")
	flags.Float64Var(&f.vectors.Recall, "recall", 0,
		"share of the nearest words to find, such as 0.95, for a faster search that may miss some; default all")
	flags.IntVar(&f.reading.MaxWords, "max-words", 0, "read this many words, which files have in order of frequency; default all")
}

func (f *buildFlags) checkVectors() error {
	f.vectors.Power = f.power
	f.reading.Format = source.VectorsFormat(f.format)
	if f.target.cluster == "" { // else the filters are for the index terms
		f.reading.Keep = func(word string) bool { return f.filter.Match(word, 0, 0) } // its frequency is not known yet
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

func registerEdit(f *buildFlags, flags *pflag.FlagSet) {
	f.edit = spelling.DefaultOptions()
	flags.StringVar(&f.paths.edit, "from-edit-distance", "", "the terms of this file, one on a line, or of this matrix file, by their spelling")
	flags.StringVar(&f.formula, "formula", string(f.edit.Formula), "power, reciprocal, linear, root or square")
	flags.Float64Var(&f.edit.Theta1, "theta1", f.edit.Theta1, "with --formula power, θ1 in θ1·(1 − distance/length)^θ2")
	flags.Float64Var(&f.edit.Theta2, "theta2", f.edit.Theta2, "with --formula power, θ2")
	flags.Float64Var(&f.edit.LengthRatio, "length-ratio", f.edit.LengthRatio, "a neighbor is at most this many times as long")
	flags.IntVar(&f.edit.MaxDistance, "max-distance", f.edit.MaxDistance, "largest distance of neighbors")
	flags.BoolVar(&f.edit.Bytes, "bytes", false, "count bytes, not characters")
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
	return files.Read(ctx, path, func(r io.Reader) (result T, err error) {
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

func registerThesaurus(f *buildFlags, flags *pflag.FlagSet) {
	f.thesaurus = source.DefaultThesaurusOptions()
	flags.StringVar(&f.paths.thesaurus, "from-thesaurus", "", "synonym file of Solr or Elasticsearch, or WordNet's wn_s.pl")
	flags.Float64Var(&f.thesaurus.Similarity, "similarity", f.thesaurus.Similarity, "similarity of synonyms where the file has none")
	flags.BoolVar(&f.thesaurus.Expand, "expand", f.thesaurus.Expand,
		"all of a group are each other's synonyms; else the first is that of the rest")
	flags.StringVar(&f.multiWord, "multi-word", string(f.thesaurus.MultiWord), "skip entries of several words, or join them")
	flags.StringVar(&f.thesaurus.Joiner, "joiner", f.thesaurus.Joiner, "with --multi-word join, what stands between the words")
}

func (f *buildFlags) checkThesaurus() error {
	f.thesaurus.MultiWord, f.thesaurus.Format = source.MultiWord(f.multiWord), source.ThesaurusFormat(f.format)
	return f.thesaurus.Validate()
}

func (f *buildFlags) fromThesaurus(ctx context.Context, report *terminal.Progress) (*simmatrix.Matrix, error) {
	report.Step("reading the thesaurus", 0, 0)
	f.thesaurus.Source = "thesaurus " + filepath.Base(f.paths.thesaurus)
	var counts source.ThesaurusCounts
	m, err := files.Read(ctx, f.paths.thesaurus, func(r io.Reader) (m *simmatrix.Matrix, err error) {
		m, counts, err = source.ReadThesaurus(r, f.thesaurus)
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

func registerLists(f *buildFlags, flags *pflag.FlagSet) {
	f.list = source.DefaultListOptions()
	flags.StringVar(&f.paths.tsv, "from-tsv", "", "lines of term, TAB, term, TAB, similarity")
	flags.StringVar(&f.paths.market, "from-matrix-market", "", "a MatrixMarket file; needs --vocabulary")
	flags.StringVar(&f.paths.vocabulary, "vocabulary", "", "the terms of its rows, one on a line")
	flags.BoolVar(&f.list.Symmetric, "bidirectional", false, "each entry counts in both directions")
	flags.BoolVar(&f.list.Clamp, "clamp-similarities", false,
		"take similarities under 0 as 0 and above 1 as 1, which otherwise are errors")
}

func (f *buildFlags) checkList() error {
	err := f.list.Validate()
	if (f.paths.market == "") != (f.paths.vocabulary == "") {
		err = errors.Join(err, errors.New("give --from-matrix-market and --vocabulary together"))
	}
	return err
}

func (f *buildFlags) fromTSV(ctx context.Context, report *terminal.Progress) (*simmatrix.Matrix, error) {
	report.Step("reading similarities", 0, 0)
	f.list.Source = "list " + filepath.Base(f.paths.tsv)
	return files.Read(ctx, f.paths.tsv, func(r io.Reader) (*simmatrix.Matrix, error) { return source.ReadTSV(r, f.list) })
}

func (f *buildFlags) fromMatrixMarket(ctx context.Context, report *terminal.Progress) (*simmatrix.Matrix, error) {
	report.Step("reading similarities", 0, 0)
	f.list.Source = "matrix " + filepath.Base(f.paths.market)
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
	m, err := source.ReadMatrixMarket(market, vocabulary, f.list)
	switch {
	case errors.Is(err, source.ErrVocabulary), errors.Is(err, simmatrix.ErrNoVocabulary):
		return nil, fmt.Errorf("%s: %w", f.paths.vocabulary, err)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", f.paths.market, err)
	}
	return m, nil
}
