package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/combine"
)

type buildFlags struct {
	docs      indexFlags
	vectors   vectorFlags
	edit      spellingFlags
	thesaurus thesaurusFlags
	list      listFlags
	combine   combineFlags
	power     float64 // 0 is the source's own
	format    string
	field     fieldFlags
	terms     filterFlags
	rows      rowFlags
	out       string
}

// rowFlags say which neighbors a term is to have.
type rowFlags struct {
	combine.SparsifyOptions

	overrides string
	rules     *combine.Overrides // of that file
}

func (f *rowFlags) register(flags *pflag.FlagSet) {
	flags.IntVar(&f.Neighbors, "top", defaultTop, "neighbors of a term at most")
	flags.Float64Var(&f.Threshold, "min-similarity", 0, "drop similarities up to this")
	flags.BoolVar(&f.Mutual, "mutual", false, "keep only neighbors that are neighbors of each other")
	flags.BoolVar(&f.Symmetric, "symmetric", false, "make both directions alike, the rarest terms first; rows stay within --top")
	flags.BoolVar(&f.Dominant, "dominant", false, "keep the sum of a row's similarities under 1; with --symmetric the matrix is positive definite")
	flags.StringVar(&f.overrides, "overrides", "", "file of corrections by hand (see docs/matrices.md)")
}

const defaultTop = 200

func newMatrixBuild() *cobra.Command {
	f := &buildFlags{}
	cmd := &cobra.Command{
		Use: "build", Short: "Build a matrix from an index, word vectors, spelling, a thesaurus or other matrices",
		Long: `build writes a matrix file from one source:

  --from-index           the documents of an index, which are only read: terms are similar
                         that occur next to the same terms and in the same documents
  --from-vectors         word vectors (word2vec, GloVe, fastText; text or binary, plain or gzip)
  --from-edit-distance   terms, one on a line, or those of a matrix file: similar spelling
  --from-thesaurus       a synonym file of Solr or Elasticsearch, or WordNet's wn_s.pl
  --from-tsv             lines of term, TAB, term, TAB, similarity
  --from-matrices        one matrix file to work over, or several to combine

Words become the index terms of a field, which is what searches look up, with --cluster,
--index and --field; without them they are taken for index terms as they are. Then terms
are filtered, corrections by hand (--overrides) are applied, and each row is cut to its
--top neighbors. docs/matrices.md says which source is good for what.

` + cli.Credentials,
		Example: `  akin matrix build --from-index http://127.0.0.1:9200 --index docs --field body --out docs.akin
  akin matrix build --from-vectors vectors.txt.gz --cluster http://127.0.0.1:9200 --index docs --field body --out docs.akin
  akin matrix build --from-matrices vectors.akin,spelling.akin --combine average --symmetric --out both.akin`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			source, err := f.check(cmd.Flags())
			if err != nil {
				return cli.Usage(err)
			}
			return f.run(cmd.Context(), source, cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	registerSources(f, flags)
	f.field.register(flags)
	f.terms.register(flags)
	f.rows.register(flags)
	flags.StringVar(&f.out, "out", "", "matrix file to write (required)")
	return cmd
}

func (f *buildFlags) check(flags *pflag.FlagSet) (matrixSource, error) {
	source, err := f.chosen(flags)
	errs := append([]error{err}, slices.Concat(checkEmpty(flags), f.checkInputs(flags), f.rows.check())...)
	f.setNeighbors()
	errs = append(append(errs, cli.CheckOut(f.out)), f.terms.parse()...)
	if flags.Changed("power") && f.power == 0 {
		errs = append(errs, errors.New("--power: 0 is not above 0"))
	}
	if source.check != nil {
		errs = append(errs, source.check())
	}
	if source.flag != "from-index" {
		errs = append(errs, f.field.check())
	}
	return source, errors.Join(errs...)
}

func (f *buildFlags) run(ctx context.Context, source matrixSource, stderr io.Writer) error {
	report := cli.NewProgress(stderr)
	defer report.End()
	m, err := f.build(ctx, source, report)
	if err != nil {
		return err
	}
	if err := writeMatrix(ctx, f.out, m); err != nil {
		return err
	}
	if err := f.docs.spooled.Remove(); err != nil {
		return err
	}
	meta, from := m.Meta(), ""
	if meta.Docs > 0 {
		from = fmt.Sprintf(", from %d documents", meta.Docs)
	}
	report.Tell("%s: %d terms, %d neighbors%s", f.out, meta.Terms, meta.NonZeros, from)
	return nil
}

// build is the way from the source to the matrix that is written.
func (f *buildFlags) build(ctx context.Context, source matrixSource, report *cli.Progress) (*simmatrix.Matrix, error) {
	if err := f.rows.readOverrides(ctx); err != nil {
		return nil, err
	}
	m, err := source.build(ctx, report)
	if err != nil {
		return nil, err
	}
	if m, err = f.field.project(ctx, m, report); err != nil {
		return nil, err
	}
	if len(f.combine.paths) > 1 {
		if err := f.adviseEnsemble(ctx, report); err != nil {
			return nil, err
		}
	}
	if m, err = f.terms.apply(m, report); err != nil {
		return nil, err
	}
	if m, f.rows.rules, err = applyOverrides(m, f.rows.rules, report); err != nil {
		return nil, err
	}
	f.rows.Protect = f.rows.rules.Protects
	return combine.Sparsify(m, f.rows.SparsifyOptions)
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

// maxUnmet is how many pins and words are named that the matrix lacks.
const maxUnmet = 20

// applyOverrides applies them and tells which words and pins ask for what m
// lacks. It returns them with the terms of m, too.
func applyOverrides(m *simmatrix.Matrix, overrides *combine.Overrides, report *cli.Progress) (*simmatrix.Matrix, *combine.Overrides, error) {
	overrides, unknown, err := overrides.Resolve(m)
	if err != nil {
		return nil, nil, cli.Usage(err)
	}
	for k, word := range unknown {
		if k == maxUnmet {
			report.Tell("overrides: and %d more words that the matrix lacks", len(unknown)-maxUnmet)
			break
		}
		if near := m.Nearest(word); near != "" {
			report.Tell("overrides: the matrix lacks %s; did you mean %s?", cli.Visible(word), cli.Visible(near))
		}
	}
	m, counts, err := overrides.Apply(m)
	if err != nil {
		return nil, nil, err
	}
	if counts.Set+counts.Banned+counts.Pinned+counts.NoEffect > 0 {
		report.Tell("overrides: %d entries set, %d banned, %d pinned, %d as they were; %d terms added that the matrix lacked",
			counts.Set, counts.Banned, counts.Pinned, counts.NoEffect, counts.TermsAdded)
	}
	for k, pin := range counts.Unmet {
		if k == maxUnmet {
			report.Tell("overrides: and %d more pins of entries that are not there", len(counts.Unmet)-maxUnmet)
			break
		}
		report.Tell("overrides: %v: there is no such entry to keep", &pin)
	}
	return m, overrides, nil
}

// checkEmpty names the flags that are given with nothing in them.
func checkEmpty(flags *pflag.FlagSet) []error {
	var errs []error
	flags.Visit(func(flag *pflag.Flag) {
		empty := flag.Value.String() == ""
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			empty = len(list.GetSlice()) == 0
		}
		if empty && flag.Name != "joiner" && flag.Name != "out" { // words may be joined by nothing; --out is checked elsewhere
			errs = append(errs, fmt.Errorf("--%s is empty", flag.Name))
		}
	})
	return errs
}

// inputs are the flags that name a file to read, but for --from-matrices.
const inputs = "from-vectors from-edit-distance from-thesaurus from-tsv relations overrides ca-file"

// checkInputs names the files to read that are not there and those that --out
// would replace. It may replace a matrix to work over, which has been read
// then.
func (f *buildFlags) checkInputs(flags *pflag.FlagSet) []error {
	var errs []error
	check := func(flag, path string) {
		switch info, err := os.Stat(path); {
		case err != nil:
			errs = append(errs, fmt.Errorf("--%s: %w", flag, err))
		case info.IsDir():
			errs = append(errs, fmt.Errorf("--%s: %s is a folder", flag, path))
		case f.out != "" && flag != "from-matrices" && cli.Same(f.out, path):
			errs = append(errs, fmt.Errorf("--out: %s is the file of --%s: name another", f.out, flag))
		}
	}
	for flag := range strings.FieldsSeq(inputs) {
		if path := flags.Lookup(flag).Value.String(); path != "" {
			check(flag, path)
		}
	}
	for _, path := range f.combine.paths {
		check("from-matrices", path)
	}
	return errs
}

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

// filterFlags say which terms a matrix is to have.
type filterFlags struct {
	combine.TermFilter

	include, exclude string // regular expressions
}

func (f *filterFlags) register(flags *pflag.FlagSet) {
	flags.Uint32Var(&f.MinDocFreq, "min-df", 0, "leave out terms in fewer documents; default 3 with --from-index, where they are only nobody's neighbors")
	flags.Float64Var(&f.MaxDocShare, "max-df-share", 0, "leave out terms in more than this share of the documents")
	flags.IntVar(&f.MinRunes, "min-length", 0, "leave out terms of fewer characters")
	flags.IntVar(&f.MaxRunes, "max-length", 0, "leave out terms of more characters")
	flags.BoolVar(&f.NoDigits, "no-digits", false, "leave out terms that start with a digit")
	flags.StringVar(&f.include, "include", "", "leave out terms that this regular expression does not match")
	flags.StringVar(&f.exclude, "exclude", "", "leave out terms that this regular expression matches")
}

// parse reads the regular expressions and returns all that is wrong.
func (f *filterFlags) parse() []error {
	errs := []error{f.Validate()}
	compile := func(flag, text string) (parsed *regexp.Regexp) {
		var err error
		if text == "" {
			return nil
		}
		if parsed, err = regexp.Compile(text); err != nil {
			errs = append(errs, fmt.Errorf("--%s: %w", flag, err))
		}
		return parsed
	}
	f.Keep, f.Drop = compile("include", f.include), compile("exclude", f.exclude)
	return errs
}

// apply leaves the terms out of m.
func (f *filterFlags) apply(m *simmatrix.Matrix, report *cli.Progress) (*simmatrix.Matrix, error) {
	if f.MaxDocShare > 0 && m.Meta().Docs == 0 {
		report.Tell("--max-df-share: nobody knows the number of documents, so that it leaves nothing out")
	}
	filtered, dropped, err := f.Apply(m)
	if err == nil && dropped > 0 {
		report.Tell("%d terms are left out by the filters", dropped)
	}
	return filtered, err
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
	defer func() { _ = client.Close() }() // nothing was written
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
func (f *fieldFlags) passes(word string, filter *filterFlags) bool {
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
