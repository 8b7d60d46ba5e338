package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/combine"
	"github.com/akin-search/akin/tools/suggest"
)

type buildFlags struct {
	matrixFlags

	index     indexFlags
	vectors   vectorFlags
	spelling  spellingFlags
	thesaurus thesaurusFlags
	list      listFlags
	combine   combineFlags
	config    cli.Config
	name      string     // of an entry of the configuration
	source    sourceFlag // the given one
	out       string
	served    fileStorage // the file of the configuration, or out
}

// A matrixSource builds a matrix for one of the --from flags.
type matrixSource interface {
	// register adds the flags of the source.
	register(flags *pflag.FlagSet)
	// check returns everything wrong with the settings. It copies settings for all
	// sources from f.
	check(f *matrixFlags) error
	build(ctx context.Context, f *matrixFlags, report *cli.Progress) (*simmatrix.Matrix, error)
}

type sourceFlag struct {
	name  string // of the flag; ofIndex has none
	takes string // the flags only for some sources, including this one
	words bool   // has words as people write them, not index terms
	matrixSource
}

// ofIndex is the source without a flag of its own: the documents of an index.
const ofIndex = ""

func (s *sourceFlag) String() string {
	if s.name == ofIndex {
		return "an index"
	}
	return "--" + s.name
}

func (f *buildFlags) sources() []sourceFlag {
	return []sourceFlag{
		{ofIndex, "power query max-docs dimensions words exact-analysis resume max-memory " +
			"language-model embeddings embedding-model embedding-prefix embeddings-cache embedding-share dry-run acronyms joined-words", false, &f.index},
		{"from-vectors", "power recall max-words", true, &f.vectors},
		{"from-edit-distance", "formula theta1 theta2 max-distance", false, &f.spelling},
		{"from-thesaurus", "similarity weigh-by", true, &f.thesaurus},
		{"from-tsv", "", false, &f.list},
		{"from-matrices", "combine", false, &f.combine},
	}
}

func newMatrixBuild() *cobra.Command {
	f := &buildFlags{}
	cmd := &cobra.Command{
		Use: "build", Short: "Build a matrix from an index, word vectors, spelling, a thesaurus or other matrices",
		Long: `build writes a matrix file. It learns from the documents of an index, which do not
change: terms are similar if they occur next to the same terms and in the same documents.
Or it takes one of these sources:

  --from-vectors         word vectors (word2vec, GloVe, fastText; text or binary, plain or gzip)
  --from-edit-distance   terms, one per line or from a matrix file, with similar spelling
  --from-thesaurus       a synonym file of Solr or Elasticsearch, or WordNet's wn_s.pl
  --from-tsv             lines of term, TAB, term, TAB, similarity
  --from-matrices        one matrix file to change, or several to combine

Without flags, build takes cluster, index, fields and the file to write from the entry of
matrices in the configuration that "akin init" writes (--name, if there are several).

With --cluster, --index and --field, words become the index terms of a field, which is what
searches look up; those of word vectors and thesauri also by the configuration. Otherwise
words are taken as index terms. Then build filters terms, applies corrections by hand
(--overrides), and cuts each row to its --top neighbors. docs/matrices.md says which source
is good for what.

` + cli.Credentials,
		Example: `  akin matrix build
  akin matrix build --cluster http://127.0.0.1:9200 --index docs --field body --out docs.akin
  akin matrix build --from-vectors vectors.txt.gz --cluster http://127.0.0.1:9200 --index docs --field body --out docs.akin
  akin matrix build --from-matrices vectors.akin,spelling.akin --combine average --symmetric --out both.akin`,
		Args:    cli.NoArgs,
		PreRunE: f.check, RunE: f.run,
	}
	flags := cmd.Flags()
	f.register(flags)
	flags.StringVar(&f.out, "out", "", "matrix file to write; default that of the configuration")
	flags.StringVar(&f.name, "name", "", "entry of matrices in the configuration; default the only one")
	takenBy := map[string][]string{} // sources by flag name
	for _, s := range f.sources() {
		s.register(flags)
		for name := range strings.FieldsSeq(s.takes) {
			takenBy[name] = append(takenBy[name], s.String())
		}
	}
	for name, sources := range takenBy {
		flag := flags.Lookup(name)
		flag.Usage = "from " + strings.ReplaceAll(strings.Join(sources, " and "), "--from-", "") + ": " + flag.Usage
	}
	f.config.Register(cmd, &f.field.Cluster)
	return cmd
}

// chosen returns the given source, or that of an index. It returns an error if
// there are several, or a flag that does not go with it.
func (f *buildFlags) chosen(flags *pflag.FlagSet) (sourceFlag, error) {
	var given []sourceFlag
	var names []string
	all := f.sources()
	own := map[string]bool{}
	for _, s := range all {
		if s.name != ofIndex {
			names = append(names, s.String())
		}
		if flags.Changed(s.name) {
			given = append(given, s)
		}
		for name := range strings.FieldsSeq(s.takes) {
			own[name] = true
		}
	}
	switch len(given) {
	case 0:
		given = all[:1] // that of an index
	case 1:
	default:
		return sourceFlag{}, errors.New("give one of " + strings.Join(names, ", "))
	}
	var errs []error
	flags.Visit(func(flag *pflag.Flag) {
		if own[flag.Name] && !slices.Contains(strings.Fields(given[0].takes), flag.Name) {
			errs = append(errs, fmt.Errorf("--%s does not go with %v", flag.Name, &given[0]))
		}
	})
	return given[0], errors.Join(errs...)
}

func (f *buildFlags) check(cmd *cobra.Command, _ []string) (err error) {
	flags := cmd.Flags()
	f.source, err = f.chosen(flags)
	configured := f.configure()
	errs := append([]error{err, configured}, slices.Concat(checkEmpty(flags), f.checkInputs(flags), f.rows.check())...)
	errs = append(errs, f.terms.parse(), f.index.embeddings.check(flags, f.field.CAFile), f.index.embeddings.checkShare(flags), f.index.found.check(flags, f.index.words || f.index.exactAnalysis, f.rows.Symmetric))
	if flags.Changed("power") && f.power == 0 {
		errs = append(errs, errors.New("--power: 0 is not above 0"))
	}
	if f.source.name != ofIndex {
		given := flags.Changed("cluster") || flags.Changed("index") || flags.Changed("field")
		if given && !f.field.known() {
			errs = append(errs, errors.New("give --cluster, --index and --field together, or none of them"))
		}
		f.field.projects = f.field.known() && (given || f.source.words)
	}
	if configured == nil { // else what the configuration has would be asked for
		errs = append(errs, cli.CheckOut(f.out))
		if f.source.matrixSource != nil {
			errs = append(errs, f.source.check(&f.matrixFlags))
		}
	}
	return cli.Usage(errors.Join(errs...))
}

// configure takes from the configuration what no flag says of field and file.
func (f *buildFlags) configure() error {
	f.served.path = f.out
	if f.name == "" && f.out != "" && f.field.known() {
		return nil
	}
	entry, err := f.config.Matrix(f.name)
	if entry != nil {
		f.served.path = entry.File
		f.out = cmp.Or(f.out, entry.File)
		err = f.field.configure(entry)
	}
	if f.name == "" && f.out != "" && f.source.name != ofIndex && !f.source.words {
		return nil // this source can do without
	}
	return err
}

func (f *buildFlags) run(cmd *cobra.Command, _ []string) error {
	ctx, report := cmd.Context(), cli.NewProgress(cmd.ErrOrStderr())
	defer report.End()
	m, err := f.build(ctx, report)
	if errors.Is(err, errDryRun) {
		report.Tell("%v", err)
		return nil
	}
	if err != nil {
		return err
	}
	if m, err = f.served.publish(ctx, f.out, m); err != nil {
		return err
	}
	if err := f.index.spooled.Remove(); err != nil {
		return err
	}
	meta, from := m.Meta(), ""
	for _, line := range simmatrix.Tallies(meta.Params) {
		report.Tell("%s", line)
	}
	if vectors := meta.Vectors(); vectors != "" {
		report.Tell("vectors of words: %s", vectors)
	}
	if accepted := meta.Params[suggest.Param]; accepted != "" {
		report.Tell("accepted by people: %s", accepted)
	}
	if warning := meta.CrowdingWarning(); warning != "" {
		report.Tell("warning: %s", warning)
	}
	if meta.Docs > 0 {
		from = fmt.Sprintf(", from %d documents", meta.Docs)
	}
	report.Tell("%s: %d terms, %d neighbors%s", f.out, meta.Terms, meta.NonZeros, from)
	return nil
}

func (f *buildFlags) build(ctx context.Context, report *cli.Progress) (*simmatrix.Matrix, error) {
	if err := f.rows.readOverrides(ctx); err != nil {
		return nil, err
	}
	m, err := f.source.build(ctx, &f.matrixFlags, report)
	if err != nil {
		return nil, err
	}
	if m, err = f.field.project(ctx, m, report); err != nil {
		return nil, err
	}
	if m, err = f.thesaurus.weigh(ctx, m, report); err == nil {
		m, err = f.thesaurus.tally(m, &f.field)
	}
	if err != nil {
		return nil, err
	}
	m, dropped, err := f.terms.Apply(m)
	if err != nil {
		return nil, err
	}
	if dropped > 0 {
		report.Tell("the filters drop %d terms", dropped)
	}
	var indexTerms map[string][]string
	if !f.index.words {
		if indexTerms, err = f.field.indexTerms(ctx, f.rows.rules.Words(), report); err != nil {
			return nil, err
		}
	}
	if m, f.rows.rules, err = applyOverrides(m, f.rows.rules, indexTerms, report); err != nil {
		return nil, err
	}
	f.rows.Protect = f.rows.rules.Protects
	return combine.Sparsify(m, f.rows.SparsifyOptions)
}

func checkEmpty(flags *pflag.FlagSet) []error {
	var errs []error
	flags.Visit(func(flag *pflag.Flag) {
		empty := flag.Value.String() == ""
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			empty = len(list.GetSlice()) == 0
		}
		if empty && flag.Name != "out" { // checked elsewhere
			errs = append(errs, fmt.Errorf("--%s is empty", flag.Name))
		}
	})
	return errs
}

// inputs are the flags with a file to read, except --from-matrices and
// --embeddings.
const inputs = "from-vectors from-edit-distance from-thesaurus from-tsv weigh-by overrides ca-file"

// checkInputs returns an error for each missing input file, and for each that
// --out would replace. --out may replace an input matrix, which is read before.
func (f *buildFlags) checkInputs(flags *pflag.FlagSet) []error {
	var errs []error
	check := func(flag, path string) {
		switch info, err := os.Stat(path); {
		case err != nil:
			errs = append(errs, fmt.Errorf("--%s: %w", flag, err))
		case info.IsDir():
			errs = append(errs, fmt.Errorf("--%s: %s is a folder", flag, path))
		}
	}
	keep := func(flag, path string) {
		if f.out != "" && path != "" && cli.Same(f.out, path) {
			errs = append(errs, fmt.Errorf("--out: %s is the file of --%s: choose another", f.out, flag))
		}
	}
	vectors, _ := f.index.embeddings.file()
	keep("embeddings", vectors)
	keep("embeddings-cache", f.index.embeddings.model.Cache)
	for flag := range strings.FieldsSeq(inputs) {
		if path := flags.Lookup(flag).Value.String(); path != "" {
			check(flag, path)
			keep(flag, path)
		}
	}
	for _, path := range f.combine.paths {
		check("from-matrices", path)
	}
	if path := f.combine.relations(); path != "" {
		check("combine", path)
		keep("combine", path)
	}
	return errs
}
