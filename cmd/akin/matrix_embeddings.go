package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/internal/embed"
	"github.com/akin-search/akin/simmatrix/learn"
	"github.com/akin-search/akin/simmatrix/source"
)

// maxEmbedded is how many words are sent to a model, which takes up to an hour
// of one processor. maxNumbers is how many numbers all vectors have together, 4
// GiB.
const maxEmbedded, maxNumbers = 500_000, 1 << 30

// The share of a model in a similarity. usualShare ranked best, or nearly, on
// five judged collections with documents of some lines, and shortShare on the
// same collections cut to one sentence, which have less to learn from. The cut
// ones gained 8.1 % of MAP with 0.5 and 7.2 % with 0.35, the whole ones 7.5 and
// 8.0 %.
const (
	usualShare = 0.35
	shortShare = 0.5
	short      = 20 // documents with at most this many terms on average are short
)

type embeddingFlags struct {
	builtin string // the value of --language-model
	url     string
	model   embed.Model
	share   float64
	dryRun  bool
}

func (f *embeddingFlags) register(flags *pflag.FlagSet) {
	f.registerModel(flags)
	flags.Float64Var(&f.share, "embedding-share", 0,
		"share of the model or of the built-in words in a similarity, above 0 and below 1; default 0.35, or 0.5 if documents have at most 20 terms on average")
	flags.BoolVar(&f.dryRun, "dry-run", false, "print what would be sent to the model, and send and write nothing")
}

// registerModel adds the flags that name the model or its vectors.
func (f *embeddingFlags) registerModel(flags *pflag.FlagSet) {
	flags.StringVar(&f.builtin, "language-model", builtinModel,
		builtinModel+" mixes in the similarities of the English words that akin contains, if the documents are English; "+noModel+" mixes in nothing")
	flags.StringVar(&f.url, "embeddings", "", "send each word of the vocabulary once to the language model at this URL, or read word vectors from file:PATH, and mix their similarities into the matrix")
	flags.StringVar(&f.model.Name, "embedding-model", "", "name of the model, if the URL does not contain it")
	flags.StringVar(&f.model.Prefix, "embedding-prefix", "", `what the model needs before each text, such as "query: "`)
	flags.StringVar(&f.model.Cache, "embeddings-cache", "", "keep the vectors of words in this file, and send only words that it does not have")
}

// check checks everything but the model itself, before the index is read.
// caFile has the authorities for the model's certificate, "" stands for the
// system's.
func (f *embeddingFlags) check(flags *pflag.FlagSet, caFile string) error {
	var errs []error
	path, isFile := f.file()
	for _, name := range []string{"embedding-share", "dry-run", "embedding-model", "embedding-prefix", "embeddings-cache"} {
		switch {
		case !flags.Changed(name):
		case f.url == "" && (name != "embedding-share" || f.builtin != builtinModel):
			errs = append(errs, fmt.Errorf("--%s needs --embeddings", name))
		case isFile && name != "embedding-share" && name != "dry-run":
			errs = append(errs, fmt.Errorf("--%s is for a model, and --embeddings names a file", name))
		}
	}
	switch {
	case flags.Changed("language-model") && f.builtin != builtinModel && f.builtin != noModel:
		errs = append(errs, fmt.Errorf("--language-model: %q is neither %s nor %s", f.builtin, builtinModel, noModel))
	case f.url != "" && flags.Changed("language-model"):
		errs = append(errs, errors.New("--language-model does not go with --embeddings, which takes the place of the built-in words"))
	}
	switch {
	case isFile:
		if _, err := os.Stat(path); err != nil {
			errs = append(errs, fmt.Errorf("--embeddings: %w", err))
		}
	case f.url != "":
		errs = append(errs, f.checkModel(caFile))
	}
	return errors.Join(errs...)
}

// checkShare checks --embedding-share of a single matrix.
func (f *embeddingFlags) checkShare(flags *pflag.FlagSet) error {
	if flags.Changed("embedding-share") && !(f.share > 0 && f.share < 1) {
		return fmt.Errorf("--embedding-share: %v is not above 0 and below 1", f.share)
	}
	return nil
}

func (f *embeddingFlags) checkModel(caFile string) (err error) {
	m := &f.model
	m.Node, m.Path, err = embed.Split(f.url)
	switch {
	case err != nil:
		return fmt.Errorf("--embeddings: %w", err)
	case m.Node == "":
		m.Name = cmp.Or(m.Name, m.Path)
	case m.Name == "" && !embed.NamesModel(m.Path):
		return errors.New("--embeddings needs --embedding-model")
	default:
		m.Name = cmp.Or(m.Name, m.Path)
		ca, errCA := cli.ReadAuthorities(caFile)
		key, given := os.LookupEnv(embed.EnvKey)
		if m.Key = strings.TrimSpace(key); given && m.Key == "" {
			err = errors.New("$" + embed.EnvKey + " is empty")
		}
		if err = errors.Join(errCA, err); err != nil {
			return err
		}
		if m.Client, err = esclient.New(esclient.Options{URL: m.Node, CA: ca, Outside: true}); err != nil {
			return fmt.Errorf("--embeddings: %w", err)
		}
	}
	if m.Cache != "" {
		if err = cli.CheckTarget(m.Cache); err == nil {
			err = m.Check()
		}
	}
	return err
}

// file returns the file of word vectors given in place of a model.
func (f *embeddingFlags) file() (path string, ok bool) { return strings.CutPrefix(f.url, "file:") }

// errDryRun ends a build with --dry-run.
var errDryRun = errors.New("nothing was sent or written (--dry-run)")

// mix adds a model's vectors for the vocabulary of a corpus to o. The vector of
// a term is the mean of the vectors of its written forms, each scaled to length
// 1 and weighted by frequency.
func (f *embeddingFlags) mix(ctx context.Context, c *learn.Corpus, o *learn.CorpusOptions, cluster *esclient.Client, report *cli.Progress) error {
	terms, err := c.Vocabulary(o)
	if err != nil {
		return err
	}
	// If there are too many terms, the most frequent ones are sent.
	slices.SortStableFunc(terms, func(a, b string) int { return cmp.Compare(c.DocFreq(b), c.DocFreq(a)) })
	at := map[string]int{} // indices in words
	var words []string
	for _, term := range terms {
		for _, form := range c.Forms(term) {
			if _, known := at[form.Text]; !known {
				at[form.Text] = len(words)
				words = append(words, form.Text)
			}
		}
	}
	mix := &learn.Mix{Share: f.share}
	if mix.Share == 0 {
		var length float64
		mix.Share, length = usualShareOf(c)
		report.Tell("the model counts for %v: documents have %.0f terms on average, and %d or fewer make it %v (--embedding-share)", mix.Share, length, short, shortShare)
	}
	o.Mix = mix
	var vectors [][]float32 // of the first words; nil or empty for none
	if path, ok := f.file(); ok {
		mix.Model = filepath.Base(path)
		vectors, err = f.read(ctx, path, at, report)
	} else {
		vectors, err = f.ask(ctx, words, c, o, cluster, report)
	}
	if err != nil {
		return err
	}
	// A model gives the same vector to many words that it cannot read, which would
	// make them neighbors of each other. A few words may rightly share one, such
	// as two spellings of a word.
	const fewAlike = 30
	seed := maphash.MakeSeed()
	hashes := make([]uint64, len(vectors))
	alike := map[uint64]int{}
	for k, v := range vectors {
		var h maphash.Hash
		h.SetSeed(seed)
		for _, x := range v {
			maphash.WriteComparable(&h, x)
		}
		hashes[k] = h.Sum64()
		alike[hashes[k]]++
	}
	lengths, known := make([]float64, len(words)), 0 // lengths of the used vectors, and their number
	for k, v := range vectors {
		mix.Dim = max(mix.Dim, len(v))
		if alike[hashes[k]] > fewAlike {
			continue
		}
		for _, x := range v {
			lengths[k] += float64(x) * float64(x)
		}
		if lengths[k] = math.Sqrt(lengths[k]); lengths[k] > 0 {
			known++
		}
	}
	report.Tell("%d of %d words have a vector of their own; for the others only the documents count", known, len(words))
	mix.Vector = func(term string) []float32 {
		return meanOfForms(c.Forms(term), mix.Dim, func(word string) ([]float32, float64) {
			k := at[word]
			if lengths[k] == 0 {
				return nil, 0
			}
			return vectors[k], lengths[k]
		})
	}
	return nil
}

// usualShareOf returns the usual share of a model for a corpus, whose documents
// have so many terms on average.
func usualShareOf(c *learn.Corpus) (share, length float64) {
	if length = c.MeanLength(); length <= short {
		return shortShare, length
	}
	return usualShare, length
}

// meanOfForms returns the mean of the vectors of forms, each scaled to length 1
// and weighted by count; nil if none has one. vector returns that of a word
// with its length, 0 for none.
func meanOfForms(forms []learn.Form, dim int, vector func(word string) ([]float32, float64)) (mean []float32) {
	total := 0.0
	for _, form := range forms {
		v, length := vector(form.Text)
		if length == 0 {
			continue
		}
		if mean == nil {
			mean = make([]float32, dim)
		}
		count := float64(form.Count)
		total += count
		for d, x := range v { // the running mean
			mean[d] += float32(count / total * (float64(x)/length - float64(mean[d])))
		}
	}
	return mean
}

// read returns the vectors of words in a file, at the indices in at.
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

// ask returns the model's vectors of words. It fails if learning with them
// would take more memory than o allows.
func (f *embeddingFlags) ask(ctx context.Context, words []string, c *learn.Corpus, o *learn.CorpusOptions, cluster *esclient.Client, report *cli.Progress) ([][]float32, error) {
	m, host := f.model, "the cluster"
	if m.Node == "" {
		m.Client = cluster
	} else {
		_, host, _ = strings.Cut(m.Node, "://")
		defer m.Client.Close()
	}
	o.Mix.Model = m.Name + " at " + host
	if len(words) > maxEmbedded {
		report.Tell("of %d words only those of the most frequent terms get vectors: %d", len(words), maxEmbedded)
		words = words[:maxEmbedded]
	}
	m.Fits = func(dim int) error {
		o.Mix.Dim = dim
		if len(words)*dim > maxNumbers {
			return fmt.Errorf("%d words of %d numbers each are more than %d: raise --min-df", len(words), dim, maxNumbers)
		}
		_, err := c.Vocabulary(o)
		return err
	}
	m.Start = func(missing, calls, tokens int) error {
		report.Tell("%d words of your index go to %s, in %d calls or more, about %d tokens; %d are in the cache",
			missing, host, calls, tokens, len(words)-missing)
		if f.dryRun {
			return errDryRun
		}
		return nil
	}
	m.Tell = func(format string, args ...any) { report.Tell("--embeddings: "+format, args...) }
	vectors, err := m.Vectors(ctx, words, report.Step)
	if err != nil && !errors.Is(err, errDryRun) {
		err = fmt.Errorf("--embeddings: %w", err)
	}
	return vectors, err
}
