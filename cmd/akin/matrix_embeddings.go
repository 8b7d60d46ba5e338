package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/simmatrix/learn"
	"github.com/akin-search/akin/simmatrix/source"
	"github.com/akin-search/akin/tools/embed"
)

// maxEmbedded bounds the words that are sent to a model: up to an hour of one
// processor.
const maxEmbedded = 500_000

// betterWords says what a model brings to those who have none, measured over
// five judged collections (docs/matrices.md).
const betterWords = "A language model, asked once for each word when a matrix is built, finds better\n" +
	"related words: see --embeddings in akin matrix build --help.\n"

// What a model counts for: usualShare ranked best, or nearly so, over five
// judged collections of documents of some lines, and shortShare over the same
// cut to one sentence, from which there is less to learn (docs/matrices.md).
const (
	usualShare = 0.35
	shortShare = 0.5
	short      = 20 // terms that a document has on average, up to which it is short
)

// embeddingFlags say which language model is mixed into a matrix of
// documents.
type embeddingFlags struct {
	url, model, prefix, cache, keyFile string
	share                              float64
	dryRun                             bool
}

func (f *embeddingFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.url, "embeddings", "", "send each word of the vocabulary once to the language model at this URL, or take its word vectors of file:PATH, and mix what they say into the matrix")
	flags.StringVar(&f.model, "embedding-model", "", "name of the model, where the URL does not say it")
	flags.StringVar(&f.prefix, "embedding-prefix", "", `what the model wants before each text, such as "query: "`)
	flags.StringVar(&f.keyFile, "embedding-key-file", "", "file with the key of the model; default $"+embed.EnvKey)
	flags.StringVar(&f.cache, "embeddings-cache", "", "keep the vectors of words in this file, and send only words that it does not have")
	flags.Float64Var(&f.share, "embedding-share", 0,
		"what the model counts for, above 0 and under 1; default 0.35, or 0.5 where documents have 20 terms or fewer on average")
	flags.BoolVar(&f.dryRun, "dry-run", false, "say what would be sent to the model, and send and write nothing")
}

func (f *embeddingFlags) check(flags *pflag.FlagSet) error {
	var errs []error
	if f.url == "" {
		for _, name := range []string{"embedding-model", "embedding-prefix", "embedding-key-file", "embeddings-cache", "embedding-share", "dry-run"} {
			if flags.Changed(name) {
				errs = append(errs, fmt.Errorf("--%s needs --embeddings", name))
			}
		}
		return errors.Join(errs...)
	}
	if path, ok := f.file(); ok {
		for _, name := range []string{"embedding-model", "embedding-prefix", "embedding-key-file", "embeddings-cache"} {
			if flags.Changed(name) {
				errs = append(errs, fmt.Errorf("--%s is for a model, and --embeddings names a file", name))
			}
		}
		if _, err := os.Stat(path); err != nil {
			errs = append(errs, fmt.Errorf("--embeddings: %w", err))
		}
		return errors.Join(append(errs, f.checkShare(flags))...)
	}
	node, _, err := embed.Split(f.url)
	if err != nil {
		errs = append(errs, fmt.Errorf("--embeddings: %w", err))
	}
	if node != "" && f.model == "" {
		errs = append(errs, errors.New("--embeddings needs --embedding-model"))
	}
	return errors.Join(append(errs, f.checkShare(flags))...)
}

func (f *embeddingFlags) checkShare(flags *pflag.FlagSet) error {
	if !flags.Changed("embedding-share") || f.share > 0 && f.share < 1 {
		return nil
	}
	return fmt.Errorf("--embedding-share: %v is not above 0 and under 1", f.share)
}

// file returns the file of word vectors that stands in the place of a model.
func (f *embeddingFlags) file() (path string, ok bool) { return strings.CutPrefix(f.url, "file:") }

// errDryRun ends a build that only says what it would do.
var errDryRun = errors.New("nothing was sent or written (--dry-run)")

// mix returns what the model says of the vocabulary of a corpus. A term has
// the mean of the vectors of the words that people write for it, by how often
// they do.
func (f *embeddingFlags) mix(ctx context.Context, c *learn.Corpus, o *learn.CorpusOptions, cluster *esclient.Client, report *cli.Progress) (*learn.Mix, error) {
	terms, err := c.Vocabulary(o)
	if err != nil {
		return nil, err
	}
	// The most frequent terms are sent where there are too many.
	slices.SortStableFunc(terms, func(a, b string) int { return cmp.Compare(c.DocFreq(b), c.DocFreq(a)) })
	at := map[string]int{} // of a word among words
	var words []string
	for _, term := range terms {
		for _, form := range c.Forms(term) {
			if _, known := at[form.Text]; !known && len(words) < maxEmbedded {
				at[form.Text] = len(words)
				words = append(words, form.Text)
			}
		}
	}
	if len(words) == maxEmbedded {
		report.Tell("of %d terms only the most frequent have vectors", len(terms))
	}
	mix := &learn.Mix{Share: f.share}
	if length := c.MeanLength(); mix.Share == 0 {
		if mix.Share = usualShare; length <= short {
			mix.Share = shortShare
		}
		report.Tell("the model counts for %v: documents have %.0f terms on average (--embedding-share)", mix.Share, length)
	}
	var vectors [][]float32 // of words, nil where the model has none
	if path, ok := f.file(); ok {
		mix.Model = filepath.Base(path)
		vectors, err = f.read(ctx, path, at, report)
	} else {
		mix.Model, vectors, err = f.ask(ctx, words, cluster, report)
	}
	if err != nil {
		return nil, err
	}
	for _, v := range vectors {
		mix.Dim = max(mix.Dim, len(v))
	}
	mix.Vector = func(term string) []float32 {
		var sum []float32
		for _, form := range c.Forms(term) {
			k, known := at[form.Text]
			if !known || vectors[k] == nil {
				continue
			}
			if sum == nil {
				sum = make([]float32, mix.Dim)
			}
			for d, x := range vectors[k] {
				sum[d] += float32(form.Count) * x
			}
		}
		return sum
	}
	return mix, nil
}

// read returns the vectors of a file, of the words and at the places of at.
func (f *embeddingFlags) read(ctx context.Context, path string, at map[string]int, report *cli.Progress) ([][]float32, error) {
	report.Step("reading vectors", 0, 0)
	wanted := source.ReadVectorsOptions{Keep: func(word string) bool { _, ok := at[word]; return ok }}
	file, err := cli.Read(ctx, path, func(r io.Reader) (*source.Vectors, error) { return source.ReadVectors(r, wanted) })
	if err != nil {
		return nil, fmt.Errorf("--embeddings: %w", err)
	}
	report.Tell("%s has vectors of %d of the %d words of your index", path, file.Len(), len(at))
	if f.dryRun {
		return nil, errDryRun
	}
	vectors := make([][]float32, len(at))
	for k, word := range file.Words() {
		vectors[at[word]] = file.Vector(k)
	}
	return vectors, nil
}

// ask returns the name of the model and its vectors of words.
func (f *embeddingFlags) ask(ctx context.Context, words []string, cluster *esclient.Client, report *cli.Progress) (name string, _ [][]float32, err error) {
	node, path, err := embed.Split(f.url)
	if err != nil {
		return "", nil, err
	}
	m := embed.Model{Client: cluster, Path: path, Name: f.model, Prefix: f.prefix, Cache: f.cache}
	host := "the cluster"
	if node != "" {
		u, _ := url.Parse(node) // as Split returns it
		host, m.Key = u.Host, strings.TrimSpace(os.Getenv(embed.EnvKey))
		if f.keyFile != "" {
			key, err := os.ReadFile(f.keyFile)
			if err != nil {
				return "", nil, cli.Usage(fmt.Errorf("--embedding-key-file: %w", err))
			}
			m.Key = strings.TrimSpace(string(key))
		}
		if m.Client, err = esclient.New(esclient.Options{URL: node}); err != nil {
			return "", nil, cli.Usage(fmt.Errorf("--embeddings: %w", err))
		}
		defer m.Client.Close()
	} else {
		m.Name = cmp.Or(m.Name, path)
	}
	missing, err := m.Missing(words)
	if err != nil {
		return "", nil, err
	}
	calls, tokens := m.Calls(missing)
	report.Tell("%d words of your index go to %s, in %d calls or more, about %d tokens; %d are in the cache",
		len(missing), host, calls, tokens, len(words)-len(missing))
	if f.dryRun {
		return "", nil, errDryRun
	}
	m.Tell = func(format string, args ...any) { report.Tell("--embeddings: "+format, args...) }
	vectors, err := m.Vectors(ctx, words, report.Step)
	if err != nil {
		return "", nil, fmt.Errorf("--embeddings: %w", err)
	}
	refused := 0
	for _, v := range vectors {
		if v == nil {
			refused++
		}
	}
	if refused > 0 {
		report.Tell("--embeddings: the model takes %d of the words not even alone", refused)
	}
	return m.Name + " at " + host, vectors, nil
}
