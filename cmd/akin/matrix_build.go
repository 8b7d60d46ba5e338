package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/simmatrix"
)

// buildFlags are the flags of "matrix build".
type buildFlags struct {
	fromIndex, fromVectors string

	cluster       string
	caFile        string
	index         string
	fields        []string
	out           string
	exactAnalysis bool

	corpus    simmatrix.CorpusOptions
	threshold float64
}

func newMatrixBuild() *cobra.Command {
	f := buildFlags{corpus: simmatrix.DefaultCorpusOptions()}
	cmd := &cobra.Command{
		Use:   "build",
		Short: "Learn a matrix from an index or from word vectors",
		Long: `build writes a matrix file, from one of two sources.

From an index, terms are similar that occur beside the same terms and in the same
documents: positive pointwise mutual information over a window and latent semantic
analysis, each reduced by a truncated singular value decomposition; the similarity
is a power of the mean of the two cosines. Nothing is written to the index.

From a file of word vectors (word2vec or GloVe text, plain or gzip) it is a power
of the cosine. With --cluster, --index and --field the words are turned into the
index terms of that field, which is what searches look up; without them they are
taken for index terms as they are.

Credentials for the cluster come from ` + configs.EnvClusterUsername + ` and ` + configs.EnvClusterPassword + ` or
from ` + configs.EnvClusterAPIKey + `.`,
		Example: `  akin matrix build --from-index http://127.0.0.1:9200 --index docs --field body --out docs.akin
  akin matrix build --from-vectors vectors.txt.gz --cluster http://127.0.0.1:9200 --index docs --field body --out docs.akin`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := errors.Join(f.check(), f.misplaced(cmd.Flags().Changed)); err != nil {
				return usageError{err}
			}
			return f.run(cmd.Context(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.fromIndex, "from-index", "", "learn from the documents of the cluster at this URL")
	flags.StringVar(&f.fromVectors, "from-vectors", "", "take the vectors of this file")
	flags.StringVar(&f.cluster, "cluster", "", "with --from-vectors: cluster that analyzes the words")
	flags.StringVar(&f.caFile, "ca-file", "", "PEM file of the authorities that sign the cluster's certificate; default the system's")
	flags.StringVar(&f.index, "index", "", "index, or several as in a search")
	flags.StringSliceVar(&f.fields, "field", nil, "text field; several must be analyzed alike")
	flags.StringVar(&f.out, "out", "", "matrix file to write (required)")
	flags.BoolVar(&f.exactAnalysis, "exact-analysis", false,
		"with --from-index: let the cluster analyze each document whole, for analyzers that look at more than one word; slower")
	flags.IntVar(&f.corpus.Neighbors, "top", f.corpus.Neighbors, "neighbors of a term at most")
	flags.Float64Var(&f.corpus.Power, "power", f.corpus.Power, "power of the cosine")
	flags.Float64Var(&f.threshold, "threshold", 0, "with --from-vectors: cosines up to this count as 0")
	flags.IntVar(&f.corpus.MinDocFreq, "min-df", f.corpus.MinDocFreq, "with --from-index: documents that a term must occur in")
	flags.IntVar(&f.corpus.Dimensions, "dim", f.corpus.Dimensions, "with --from-index: dimensions of each decomposition")
	flags.IntVar(&f.corpus.Window, "window", f.corpus.Window, "with --from-index: distance up to which terms co-occur")
	flags.Uint64Var(&f.corpus.Seed, "seed", f.corpus.Seed, "with --from-index: seed of the randomised decomposition")
	return cmd
}

// check returns all that is wrong with the flags.
func (f *buildFlags) check() error {
	var errs []error
	fail := func(bad bool, text string) {
		if bad {
			errs = append(errs, errors.New(text))
		}
	}
	fail((f.fromIndex == "") == (f.fromVectors == ""), "give one of --from-index and --from-vectors")
	fail(f.out == "", "give --out FILE")
	fail(f.fromIndex != "" && (f.index == "" || len(f.fields) == 0), "--from-index needs --index and --field")
	given := 0
	for _, set := range []bool{f.cluster != "", f.index != "", len(f.fields) > 0} {
		if set {
			given++
		}
	}
	fail(f.fromVectors != "" && given != 0 && given != 3, "--from-vectors takes --cluster, --index and --field together")
	fail(f.exactAnalysis && len(f.fields) > 1, "--exact-analysis takes one --field: build a matrix for each")
	vectors := f.vectorOptions()
	if err := vectors.Validate(); err != nil {
		errs = append(errs, err)
	} else if err := f.corpus.Validate(); err != nil { // it has the same settings and more
		errs = append(errs, err)
	}
	if f.out != "" {
		errs = append(errs, checkTarget(f.out))
	}
	return errors.Join(errs...)
}

// misplaced returns the flags that were given and do not belong to the source.
func (f *buildFlags) misplaced(given func(name string) bool) error {
	source, others := "--from-index", []string{"cluster", "threshold"}
	if f.fromVectors != "" {
		source, others = "--from-vectors", []string{"exact-analysis", "min-df", "dim", "window", "seed"}
	}
	var errs []error
	for _, name := range others {
		if given(name) {
			errs = append(errs, fmt.Errorf("--%s does not go with %s", name, source))
		}
	}
	return errors.Join(errs...)
}

func (f *buildFlags) vectorOptions() simmatrix.VectorOptions {
	options := simmatrix.DefaultVectorOptions()
	options.Source, options.Neighbors, options.Power, options.Threshold = "vectors", f.corpus.Neighbors, f.corpus.Power, f.threshold
	return options
}

func (f *buildFlags) run(ctx context.Context, stderr io.Writer) error {
	report := newProgress(stderr)
	defer report.end()
	m, err := f.build(ctx, report)
	if err != nil {
		return err
	}
	if err := writeFile(ctx, f.out, func(w io.Writer) error { return simmatrix.Encode(w, m) }); err != nil {
		return err
	}
	report.end()
	meta := m.Meta()
	fmt.Fprintf(stderr, "%s: %d terms, %d neighbors, from %d documents\n", f.out, meta.Terms, meta.NonZeros, meta.Docs)
	return nil
}

func (f *buildFlags) build(ctx context.Context, report *progress) (*simmatrix.Matrix, error) {
	if f.fromIndex != "" {
		client, err := openCluster(f.fromIndex, f.caFile)
		if err != nil {
			return nil, err
		}
		defer func() { _ = client.Close() }() // nothing was written
		corpus, err := f.readIndex(ctx, client, report)
		if err != nil {
			return nil, err
		}
		f.corpus.Source = "index " + f.index + ", field " + strings.Join(f.fields, ", ")
		return simmatrix.FromCorpus(ctx, corpus, f.corpus, report.step)
	}
	file, err := os.Open(f.fromVectors)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // nothing was written
	report.step("reading vectors", 0, 0)
	vectors, err := simmatrix.ReadVectors(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.fromVectors, err)
	}
	m, err := simmatrix.FromVectors(ctx, vectors, f.vectorOptions(), report.step)
	if err != nil || f.cluster == "" {
		return m, err
	}
	return f.project(ctx, m, report)
}

// openCluster returns a client with the credentials of the environment.
func openCluster(url, caFile string) (*esclient.Client, error) {
	ca, err := readCA(caFile)
	if err != nil {
		return nil, err
	}
	client, err := esclient.New(esclient.Options{
		URLs:     []string{url},
		CA:       ca,
		Username: os.Getenv(configs.EnvClusterUsername),
		Password: os.Getenv(configs.EnvClusterPassword),
		APIKey:   os.Getenv(configs.EnvClusterAPIKey),
	})
	if err != nil {
		return nil, usageError{err}
	}
	return client, nil
}

// readIndex reads the documents once and returns them as index terms.
func (f *buildFlags) readIndex(ctx context.Context, client *esclient.Client, report *progress) (*simmatrix.Corpus, error) {
	total, err := client.Count(ctx, f.index)
	if err != nil {
		return nil, err
	}
	if f.exactAnalysis {
		corpus, done := simmatrix.NewCorpus(), 0
		err := client.ExactTerms(ctx, f.index, f.fields, func(_ string, terms [][]string) error {
			corpus.AddDocument(slices.Concat(terms...))
			done++
			report.step("reading documents", done, int(total))
			return nil
		})
		return corpus, err
	}
	texts, done := simmatrix.NewTexts(), 0
	err = client.Scan(ctx, f.index, f.fields, func(_ string, values []string) error {
		texts.Add(values...)
		done++
		report.step("reading documents", done, int(total))
		return nil
	})
	if err != nil {
		return nil, err
	}
	terms, err := f.analyze(ctx, client, texts.Words(), report)
	if err != nil {
		return nil, err
	}
	return texts.Corpus(terms), nil
}

// wordsAtOnce is how many words are analyzed between two reports of progress.
const wordsAtOnce = 5000

// analyze returns the index terms of each word, by the analyzer of the fields.
func (f *buildFlags) analyze(ctx context.Context, client *esclient.Client, words []string, report *progress) ([][]string, error) {
	terms := make([][]string, 0, len(words))
	for batch := range slices.Chunk(words, wordsAtOnce) {
		report.step("analyzing words", len(terms), len(words))
		analyzed, err := client.AnalyzeWords(ctx, f.index, f.fields[0], batch)
		if err != nil {
			return nil, err
		}
		terms = append(terms, analyzed...)
	}
	report.step("analyzing words", len(terms), len(words))
	sample := words[:min(len(words), wordsAtOnce)]
	for _, field := range f.fields[1:] {
		other, err := client.AnalyzeWords(ctx, f.index, field, sample)
		if err != nil {
			return nil, err
		}
		for k := range sample {
			if !slices.Equal(other[k], terms[k]) {
				return nil, fmt.Errorf("the fields %s and %s are not analyzed alike (%q is %q and %q): build a matrix for each",
					f.fields[0], field, sample[k], terms[k], other[k])
			}
		}
	}
	return terms, nil
}

// project turns the words of m into index terms of the field.
func (f *buildFlags) project(ctx context.Context, m *simmatrix.Matrix, report *progress) (*simmatrix.Matrix, error) {
	client, err := openCluster(f.cluster, f.caFile)
	if err != nil {
		return nil, err
	}
	defer func() { _ = client.Close() }() // nothing was written
	words := slices.Collect(m.Terms())
	analyzed, err := f.analyze(ctx, client, words, report)
	if err != nil {
		return nil, err
	}
	options := simmatrix.ProjectOptions{
		IndexTerms: make(map[string][]string, len(words)),
		DocFreqs:   make(map[string]uint32, len(words)),
	}
	var terms []string
	for k, word := range words {
		options.IndexTerms[word] = analyzed[k]
		if len(analyzed[k]) == 1 {
			terms = append(terms, analyzed[k][0])
		}
	}
	slices.Sort(terms)
	terms = slices.Compact(terms)
	done := 0
	for batch := range slices.Chunk(terms, wordsAtOnce) {
		report.step("counting documents", done, len(terms))
		docFreqs := make([]int64, len(batch))
		docs, err := client.DocFreqs(ctx, f.index, f.fields[0], batch, docFreqs)
		if err != nil {
			return nil, err
		}
		options.Docs = uint64(max(docs, 0))
		for k, term := range batch {
			options.DocFreqs[term] = uint32(min(max(docFreqs[k], 0), math.MaxUint32))
		}
		done += len(batch)
	}
	out, counts, err := simmatrix.Project(m, options)
	if err != nil {
		return nil, err
	}
	report.end()
	fmt.Fprintf(report.w, "%d words: %d became terms of their own, %d fell on the term of another, %d are several terms, %d none; %d terms are in no document\n",
		counts.Words, counts.Kept, counts.Merged, counts.MultiToken, counts.NoToken, counts.Unused)
	return out, nil
}
