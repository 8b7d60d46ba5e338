package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/spf13/pflag"

	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/combine"
	"github.com/akin-search/akin/simmatrix/learn"
	"github.com/akin-search/akin/simmatrix/source"
	"github.com/akin-search/akin/simmatrix/spelling"
)

// minExpression is the least similarity of a word that the analyzer splits,
// as a neighbor in vectors and spellings, which have weak ones in any
// number.
const minExpression = 0.5

type vectorFlags struct {
	path    string
	options learn.VectorOptions
	reading source.ReadVectorsOptions
}

func (v *vectorFlags) register(flags *pflag.FlagSet) {
	v.options = learn.DefaultVectorOptions()
	flags.StringVar(&v.path, "from-vectors", "", "word vectors of this file")
	flags.Float64Var(&v.options.Recall, "recall", 0,
		"share of the nearest words to find, such as 0.95, which is faster but may miss some; default all")
	flags.IntVar(&v.reading.MaxWords, "max-words", 0, "read this many words, which files have in order of frequency; default all")
}

func (v *vectorFlags) check(f *matrixFlags) error {
	v.options.Neighbors, v.options.Power = f.rows.searched(), f.power
	if !f.field.projects { // otherwise the filters are for index terms
		v.reading.Keep = func(word string) bool { return f.terms.Match(word, 0, 0) } // the document frequency is not known yet
	}
	return errors.Join(v.options.Validate(), v.reading.Validate())
}

func (v *vectorFlags) build(ctx context.Context, f *matrixFlags, report *cli.Progress) (*simmatrix.Matrix, error) {
	report.Step("reading vectors", 0, 0)
	vectors, err := cli.Read(ctx, v.path, func(r io.Reader) (*source.Vectors, error) {
		return source.ReadVectors(r, v.reading)
	})
	if err != nil {
		return nil, err
	}
	if n := vectors.Skipped(); n != (source.SkippedWords{}) {
		report.Tell("skipped %d words that the filters leave out, %d repeated words, %d that cannot be index terms",
			n.Filtered, n.Repeated, n.Invalid)
	}
	if f.field.projects {
		if err = f.field.lookUp(ctx, vectors.Words(), report); err != nil {
			return nil, err
		}
		v.options.Keep = func(word string) bool { return f.field.passes(word, &f.terms.TermFilter) }
		v.options.Candidate = f.field.inDocuments
		f.field.found.MinExpression = minExpression
	}
	v.options.Source = "vectors " + filepath.Base(v.path)
	m, err := learn.FromVectors(ctx, vectors, v.options, report.Step)
	if err != nil {
		return nil, err
	}
	tellRecall(m, report)
	params := m.Meta().Params
	if f.power == 0 {
		report.Tell("power of the cosine, chosen by how close words are: %s", params[simmatrix.PowerParam])
	}
	if crowd := learn.Crowd(m); crowd > learn.LargestCrowd {
		report.Tell("warning: with power %s the 30th neighbor of a word has a similarity of %.2f on average. Rankings get worse above %v: "+
			"leave --power out, or raise it", params[simmatrix.PowerParam], crowd, learn.LargestCrowd)
	}
	table := *m.Table()
	table.Meta = m.Meta()
	table.Meta.Params[simmatrix.ModelParam] = filepath.Base(v.path)
	return table.Matrix()
}

type spellingFlags struct {
	path    string
	options spelling.Options
	flags   *pflag.FlagSet
}

func (s *spellingFlags) register(flags *pflag.FlagSet) {
	s.options = spelling.DefaultOptions()
	flags.StringVar(&s.path, "from-edit-distance", "", "terms from this file, one per line, or from this matrix file, by their spelling")
	s.flags = flags
	flags.StringVar((*string)(&s.options.Formula), "formula", string(s.options.Formula),
		"similarity at distance d of m characters: thesis, min(1, θ1·(1−d/m)^θ2); inverse, 1/(1+d); linear, 1−d/m; root, √(1−d/m); square, (1−d/m)²")
	flags.Float64Var(&s.options.Theta1, "theta1", s.options.Theta1, "θ1 of --formula thesis")
	flags.Float64Var(&s.options.Theta2, "theta2", s.options.Theta2, "θ2 of --formula thesis")
	flags.IntVar(&s.options.MaxDistance, "max-distance", s.options.MaxDistance, "most edits between neighbors, 1 to 4; 3 takes three times as long as 2, 4 six times")
}

func (s *spellingFlags) check(f *matrixFlags) error {
	s.options.Neighbors = f.rows.searched()
	err := s.options.Validate()
	if s.options.Formula != spelling.Thesis && (s.flags.Changed("theta1") || s.flags.Changed("theta2")) {
		err = errors.Join(err, errors.New("--theta1 and --theta2 go with --formula thesis only"))
	}
	return err
}

func (s *spellingFlags) build(ctx context.Context, f *matrixFlags, report *cli.Progress) (*simmatrix.Matrix, error) {
	report.Step("reading terms", 0, 0)
	terms, err := readTerms(ctx, s.path)
	if err != nil {
		return nil, err
	}
	keep := func(t simmatrix.Term) bool { return f.terms.Match(t.Text, t.DocFreq, 0) }
	if f.field.projects {
		words := make([]string, len(terms))
		for k, t := range terms {
			words[k] = t.Text
		}
		if err = f.field.lookUp(ctx, words, report); err != nil {
			return nil, err
		}
		keep = func(t simmatrix.Term) bool { return f.field.passes(t.Text, &f.terms.TermFilter) }
		s.options.Candidate = f.field.inDocuments
		f.field.found.MinExpression = minExpression
	}
	terms = slices.DeleteFunc(terms, func(t simmatrix.Term) bool { return !keep(t) })
	s.options.Source = "edit distance of " + filepath.Base(s.path)
	return spelling.FromTerms(ctx, terms, s.options, report.Step)
}

func readTerms(ctx context.Context, path string) ([]simmatrix.Term, error) {
	return cli.Read(ctx, path, func(r io.Reader) (terms []simmatrix.Term, err error) {
		in := bufio.NewReaderSize(r, 1<<20)
		if !simmatrix.IsEncoded(in) {
			return source.ReadTerms(in)
		}
		m, err := simmatrix.Decode(in)
		if err != nil {
			return nil, err
		}
		for term, row := range m.Rows() {
			terms = append(terms, simmatrix.Term{Text: term, DocFreq: row.DocFreq()})
		}
		return terms, nil
	})
}

type thesaurusFlags struct {
	path    string
	weighBy string // a matrix file
	options source.ThesaurusOptions
	words   *simmatrix.Matrix // over the words of the file
	long    simmatrix.Tally   // entries of too many words
}

func (t *thesaurusFlags) register(flags *pflag.FlagSet) {
	t.options = source.DefaultThesaurusOptions()
	flags.StringVar(&t.path, "from-thesaurus", "", "synonym file of Solr or Elasticsearch, or WordNet's wn_s.pl")
	flags.StringVar(&t.weighBy, "weigh-by", "", "matrix file of the index: take its similarities for the synonyms, and leave out those it does not use alike")
	flags.Float64Var(&t.options.Similarity, "similarity", t.options.Similarity, "similarity of synonyms if the file has none")
}

func (t *thesaurusFlags) check(*matrixFlags) error {
	t.options.Neighbors = simmatrix.MaxNeighbors // rows are cut at the end
	return t.options.Validate()
}

func (t *thesaurusFlags) build(ctx context.Context, f *matrixFlags, report *cli.Progress) (*simmatrix.Matrix, error) {
	report.Step("reading the thesaurus", 0, 0)
	t.options.File = filepath.Base(t.path)
	t.options.Source = "thesaurus " + t.options.File
	if f.field.projects {
		t.options.Splits = func(terms []string) (func(term string) bool, error) {
			err := f.field.lookUp(ctx, terms, report)
			return func(term string) bool {
				return slices.ContainsFunc(f.field.found.IndexTerms[term], simmatrix.IsExpression)
			}, err
		}
	}
	var counts source.ThesaurusCounts
	m, err := cli.Read(ctx, t.path, func(r io.Reader) (m *simmatrix.Matrix, err error) {
		m, counts, err = source.ReadThesaurus(r, t.options)
		return m, err
	})
	if err == nil {
		report.Tell("%s: %d groups, %d rules; %d terms in %d pairs, %d of them repeated",
			counts.Format, counts.Groups, counts.Rules, counts.Terms, counts.Pairs, counts.Duplicates)
	}
	t.words = m
	t.long = simmatrix.Tally{Kind: fmt.Sprintf("entries of more than %d words", simmatrix.MaxExpressionTerms)}
	if counts.Skipped > 0 {
		t.long.LeftOut = []simmatrix.Counted{{N: counts.Skipped, Some: counts.Examples}}
	}
	return m, err
}

// weigh gives the synonyms, already index terms, the similarities of the matrix
// of --weigh-by, if there is one.
func (t *thesaurusFlags) weigh(ctx context.Context, m *simmatrix.Matrix, report *cli.Progress) (*simmatrix.Matrix, error) {
	if t.weighBy == "" {
		return m, nil
	}
	docs, err := cli.ReadMatrix(ctx, t.weighBy)
	if err != nil {
		return nil, err
	}
	m, counts, err := combine.Weigh(m, docs)
	if err == nil {
		report.Tell("weighed by %s: %d exact entries, %d kept, %d dropped, such as %q", t.weighBy, counts.Exact, counts.Kept, counts.Dropped, counts.Lost)
	}
	return m, err
}

// tally adds to a matrix how many exact and similar entries are left of those
// in the file.
func (t *thesaurusFlags) tally(m *simmatrix.Matrix, field *fieldFlags) (*simmatrix.Matrix, error) {
	if t.words == nil {
		return m, nil
	}
	exact, similar := combine.TallyThesaurus(t.words, m, func(word string) []string {
		if field.found == nil {
			return []string{word}
		}
		return field.found.IndexTerms[word]
	})
	var tallies []simmatrix.Tally
	for _, tally := range []simmatrix.Tally{exact, similar, t.long} {
		if !tally.Empty() {
			tallies = append(tallies, tally)
		}
	}
	return combine.WithTallies(m, tallies...)
}

type listFlags struct{ tsv string } // path

func (l *listFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&l.tsv, "from-tsv", "", "lines of term, TAB, term, TAB, similarity")
}

func (*listFlags) check(*matrixFlags) error { return nil }

func (l *listFlags) build(ctx context.Context, _ *matrixFlags, report *cli.Progress) (*simmatrix.Matrix, error) {
	report.Step("reading similarities", 0, 0)
	return cli.Read(ctx, l.tsv, func(r io.Reader) (*simmatrix.Matrix, error) {
		return source.ReadTSV(r, "list "+filepath.Base(l.tsv))
	})
}

// tellRecall says how many of the true neighbors a matrix has, if its were
// searched approximately.
func tellRecall(m *simmatrix.Matrix, report *cli.Progress) {
	if recall := m.Meta().Params["recall"]; recall != "" {
		report.Tell("recall of the approximate search, measured: %s", recall)
	}
}
