package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/simmatrix/learn"
	"github.com/akin-search/akin/tools/embed"
)

// maxEmbedded bounds the words that are sent to a model: up to an hour of one
// processor.
const maxEmbedded = 500_000

// usualShare ranked best, or nearly so, over five judged collections of
// documents of some lines each.
const usualShare = 0.35

// embeddingFlags say which language model is mixed into a matrix of
// documents.
type embeddingFlags struct {
	url, model, prefix, cache, keyFile string
	share                              float64
	dryRun                             bool
}

func (f *embeddingFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.url, "embeddings", "", "send each word of the vocabulary once to the language model at this URL, and mix what it says of them into the matrix")
	flags.StringVar(&f.model, "embedding-model", "", "name of the model, where the URL does not say it")
	flags.StringVar(&f.prefix, "embedding-prefix", "", `what the model wants before each text, such as "query: "`)
	flags.StringVar(&f.keyFile, "embedding-key-file", "", "file with the key of the model; default $"+embed.EnvKey)
	flags.StringVar(&f.cache, "embeddings-cache", "", "keep the vectors of words in this file, and send only words that it does not have")
	flags.Float64Var(&f.share, "embedding-share", usualShare, "what the model counts for, above 0 and under 1; more where documents have one line each")
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
	node, _, err := embed.Split(f.url)
	if err != nil {
		errs = append(errs, fmt.Errorf("--embeddings: %w", err))
	}
	if node != "" && f.model == "" {
		errs = append(errs, errors.New("--embeddings needs --embedding-model"))
	}
	if !(f.share > 0 && f.share < 1) {
		errs = append(errs, fmt.Errorf("--embedding-share: %v is not above 0 and under 1", f.share))
	}
	return errors.Join(errs...)
}

// errDryRun ends a build that only says what it would do.
var errDryRun = errors.New("nothing was sent or written (--dry-run)")

// mix asks the model for the vectors of the vocabulary of a corpus. A term
// has the mean of those of the words that people write for it, by how often
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
	node, path, err := embed.Split(f.url)
	if err != nil {
		return nil, err
	}
	m := embed.Model{Client: cluster, Path: path, Name: f.model, Prefix: f.prefix, Cache: f.cache}
	host := "the cluster"
	if node != "" {
		u, _ := url.Parse(node) // as Split returns it
		host, m.Key = u.Host, strings.TrimSpace(os.Getenv(embed.EnvKey))
		if f.keyFile != "" {
			key, err := os.ReadFile(f.keyFile)
			if err != nil {
				return nil, cli.Usage(fmt.Errorf("--embedding-key-file: %w", err))
			}
			m.Key = strings.TrimSpace(string(key))
		}
		if m.Client, err = esclient.New(esclient.Options{URL: node}); err != nil {
			return nil, cli.Usage(fmt.Errorf("--embeddings: %w", err))
		}
		defer m.Client.Close()
	} else {
		m.Name = cmp.Or(m.Name, path)
	}
	missing, err := m.Missing(words)
	if err != nil {
		return nil, err
	}
	calls, tokens := m.Calls(missing)
	report.Tell("%d words of your index go to %s, in %d calls or more, about %d tokens; %d are in the cache",
		len(missing), host, calls, tokens, len(words)-len(missing))
	if len(words) == maxEmbedded {
		report.Tell("of %d terms only the most frequent are sent", len(terms))
	}
	if f.dryRun {
		return nil, errDryRun
	}
	m.Tell = func(format string, args ...any) { report.Tell("--embeddings: "+format, args...) }
	vectors, err := m.Vectors(ctx, words, report.Step)
	if err != nil {
		return nil, fmt.Errorf("--embeddings: %w", err)
	}
	dim, refused := 0, 0
	for _, v := range vectors {
		if dim = max(dim, len(v)); v == nil {
			refused++
		}
	}
	if refused > 0 {
		report.Tell("--embeddings: the model takes %d of the words not even alone", refused)
	}
	return &learn.Mix{Model: m.Name + " at " + host, Share: f.share, Dim: dim, Vector: func(term string) []float32 {
		var sum []float32
		for _, form := range c.Forms(term) {
			k, known := at[form.Text]
			if !known || vectors[k] == nil {
				continue
			}
			if sum == nil {
				sum = make([]float32, dim)
			}
			for d, x := range vectors[k] {
				sum[d] += float32(form.Count) * x
			}
		}
		return sum
	}}, nil
}
