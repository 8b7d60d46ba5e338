package main

import (
	"context"
	"errors"

	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/learn"
	"github.com/akin-search/akin/tools/words"
)

// The values of --language-model.
const (
	builtinModel = "builtin"
	noModel      = "none"
)

// leastKnown is the share of a text that has to be words with rows of their own
// in the built-in words, or the text is not English enough for them: English
// collections have 73 to 96 %, an Italian one 21 %.
const leastKnown = 0.5

// ownWords are the words that akin contains.
type ownWords struct {
	*words.Words

	known float64 // the share of a corpus's words that are among them, without function words
}

// readOwnWords returns the built-in words. If a corpus is English enough for
// them, its function words become only contexts of others.
func readOwnWords(c *learn.Corpus) (w *ownWords, english bool, err error) {
	w = &ownWords{}
	if w.Words, err = words.Builtin(); err != nil {
		return nil, false, err
	}
	isFunction := words.FunctionWords()
	w.known = c.Share(w.Has, isFunction)
	if w.known < leastKnown {
		return w, false, nil
	}
	c.OnlyContexts(isFunction)
	return w, true, nil
}

// mixOwnWords adds the built-in words to o, at a share of similarities or, if
// that is 0, at the usual one, and makes function words only contexts of
// others. It adds nothing, and says why, if the corpus is not English or if
// memory does not suffice. Else mixture says whether they count.
func mixOwnWords(c *learn.Corpus, o *learn.CorpusOptions, share float64, report *cli.Progress) error {
	w, english, err := readOwnWords(c)
	if err != nil {
		return err
	}
	if !english {
		report.Tell("built-in words are left out: they are English, and only %.0f %% of the words of the documents are among them, under %.0f %%; "+
			"a model of their language serves as well (--embeddings)", 100*w.known, 100*leastKnown)
		return nil
	}
	mixed := *o
	mixed.Mix = &learn.Mix{Model: w.String(), Origin: w.String(), Share: share, Dim: w.Dim()}
	if share == 0 {
		mixed.Mix.Share, _ = usualShareOf(c)
	}
	mixed.Mix.Vector = func(term string) []float32 {
		return meanOfForms(c.Forms(term), w.Dim(), func(word string) ([]float32, float64) {
			v := w.Vector(word)
			return v, float64(min(len(v), 1))
		})
	}
	if o.MaxMemory > 0 {
		_, err := c.Vocabulary(&mixed)
		if errors.Is(err, simmatrix.ErrMemory) {
			report.Tell("built-in words are left out, for lack of memory: %v", err)
			return nil
		}
		if err != nil {
			return err
		}
	}
	*o = mixed
	return nil
}

// learnMatrix is [learn.FromCorpus], with mixture for the matrix.
func learnMatrix(ctx context.Context, c *learn.Corpus, o learn.CorpusOptions, report *cli.Progress) (*simmatrix.Matrix, error) {
	learned, err := learn.Learn(ctx, c, o, report.Step)
	if err != nil {
		return nil, err
	}
	return mixture(ctx, learned, o.Neighbors, o.Power, o.Mix, report)
}

// mixture is [learn.Learned.Matrix]. It says what built-in words count for; if
// too few words of the corpus are among them to mix them in, it says so and
// makes the matrix without them.
func mixture(ctx context.Context, learned *learn.Learned, neighbors int, power float64, mix *learn.Mix, report *cli.Progress) (*simmatrix.Matrix, error) {
	m, err := learned.Matrix(ctx, neighbors, power, mix, report.Step)
	builtin := mix != nil && mix.Origin != ""
	switch {
	case builtin && errors.Is(err, learn.ErrFewWords):
		report.Tell("built-in words are left out: too few words of the documents are among them, or all are too much alike")
		m, err = learned.Matrix(ctx, neighbors, power, nil, report.Step)
	case builtin && err == nil:
		report.Tell("%s count for %v of similarities (--language-model, --embedding-share)", mix.Origin, mix.Share)
	}
	return m, err
}
