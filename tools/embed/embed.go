// Package embed asks a language model for the vectors of words: by OpenAI's
// embeddings API, which many programs and vendors have, or by the models
// that a cluster runs itself. It can keep them in a file for the next time.
package embed

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"golang.org/x/sync/errgroup"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/simmatrix"
)

const (
	// batchWords is how many words are sent in a call, where the model takes
	// them.
	batchWords = 256
	// callsAtOnce is how many calls are under way.
	callsAtOnce = 4
	// callTimeout bounds a call: a model without a graphics card needs seconds
	// for a batch.
	callTimeout = 2 * time.Minute
	// patience is for how long a call is repeated that the model refuses for
	// now.
	patience = 5 * time.Minute
	// refusedAlone is how many words the model may refuse by themselves before
	// it has taken any.
	refusedAlone = 8
	// answerPerWord bounds an answer: 8,192 numbers of at most 32 bytes.
	answerPerWord = 8192 * 32
	// maxNumbers bounds what the vectors of all words take to 4 GiB.
	maxNumbers = 1 << 30
)

// A Model is a language model behind an API.
type Model struct {
	// Client reaches the node of the API, and Path, with the query, is where it
	// is. [Split] gets them from a URL.
	Client *esclient.Client
	Path   string
	// Name is the model, and Prefix what it wants before each text, such as
	// "query: ".
	Name, Prefix string
	// Key is sent as a bearer token; "" sends none.
	Key string
	// Cache is a file that keeps the vectors; "" is none.
	Cache string
	// Tell, unless nil, tells people that a call is made again, and why. It is
	// called by one goroutine at a time, and not while progress is.
	Tell func(format string, args ...any)
}

// Missing returns those of the words that the cache does not have. It writes
// nothing.
func (m *Model) Missing(words []string) (missing []string, err error) {
	if info, err := os.Stat(m.Cache); m.Cache == "" || errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
		return words, nil
	}
	kept, err := openCache(m.Cache, m.Name, m.Prefix, true)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, kept.close()) }()
	vectors, err := kept.get(words)
	for k, word := range words {
		if err == nil && vectors[k] == nil {
			missing = append(missing, word)
		}
	}
	return missing, err
}

// Calls returns how many calls and about how many tokens it takes to ask for
// words: a word has one to three, and four characters make one.
func (m *Model) Calls(words []string) (calls, tokens int) {
	for _, w := range words {
		tokens += 2 + (len(m.Prefix)+len(w)+3)/4
	}
	return (len(words) + batchWords - 1) / batchWords, tokens
}

// Vectors returns the vector of each word, nil for those that the model refuses
// by themselves. It asks for those that the cache does not have, in batches,
// which it halves where the model refuses one as too large, and again where the
// model is overloaded or the network fails: after the time that Retry-After
// says, or else after a growing one, for five minutes at most. What has come is
// in the cache when it fails, so that the next try goes on. The error says what
// the model answered, without the key.
func (m *Model) Vectors(ctx context.Context, words []string, progress simmatrix.Progress) (vectors [][]float32, err error) {
	kept, err := openCache(m.Cache, m.Name, m.Prefix, false)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, kept.close()) }()
	vectors, err = kept.get(words)
	if err != nil {
		return nil, err
	}
	var missing []int
	dim := 0
	for k, v := range vectors {
		if v == nil {
			missing = append(missing, k)
		}
		dim = max(dim, len(v))
	}
	if len(missing) == 0 {
		return vectors, nil
	}
	done := 0
	var mu sync.Mutex // of take, of what it changes, and of Tell
	again := func(err error, pause time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		if m.Tell != nil {
			m.Tell("again in %v: %s", pause.Round(time.Second), m.hide(err.Error()))
		}
	}
	take := func(batch []int, got [][]float32) error {
		mu.Lock()
		defer mu.Unlock()
		if err := check(got, len(batch), dim); err != nil {
			return err
		}
		if dim = len(got[0]); len(words)*dim > maxNumbers {
			return fmt.Errorf("%d words of %d numbers each are more than %d: lower --max-terms", len(words), dim, maxNumbers)
		}
		texts := make([]string, len(batch))
		for i, k := range batch {
			vectors[k], texts[i] = got[i], words[k]
		}
		done += len(batch)
		progress.Report("vectors of words", done, len(missing))
		return kept.put(texts, got)
	}
	largest, alone := 0, 0 // the largest batch that was answered, and words that were refused by themselves
	var inHalves func(ctx context.Context, batch []int) error
	inHalves = func(ctx context.Context, batch []int) error {
		got, err := m.ask(ctx, words, batch, again)
		switch {
		case err == nil:
			mu.Lock()
			largest = max(largest, len(batch))
			mu.Unlock()
			return take(batch, got)
		case !tooMuch(err):
			return err
		case len(batch) == 1:
			mu.Lock()
			defer mu.Unlock()
			if alone++; largest == 0 && alone == refusedAlone {
				return err
			}
			return nil // the model does not take this word
		}
		if err := inHalves(ctx, batch[:len(batch)/2]); err != nil {
			return err
		}
		return inHalves(ctx, batch[len(batch)/2:])
	}
	// The first batch goes alone: it tells how many words the model takes, and
	// where it is no model or the key is wrong, little else is sent.
	size := min(batchWords, len(missing))
	began := time.Now()
	if err := inHalves(ctx, missing[:size]); err != nil {
		return nil, err
	}
	rest := missing[size:]
	size = max(largest, 1)
	if took := callsAtOnce * time.Since(began); took > callTimeout/2 { // one processor
		size = max(1, int(float64(size)*float64(callTimeout/2)/float64(took)))
	}
	group, inGroup := errgroup.WithContext(ctx)
	group.SetLimit(callsAtOnce)
	for batch := range slices.Chunk(rest, size) {
		group.Go(func() error { return inHalves(inGroup, batch) })
	}
	return vectors, group.Wait()
}

// tooMuch reports whether the model may have refused a call for its size.
func tooMuch(err error) bool {
	refused, ok := errors.AsType[*esclient.Error](err)
	return ok && slices.Contains([]int{
		http.StatusBadRequest, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity,
	}, refused.Status)
}

// ask asks for the vectors of a batch, again while the model is overloaded.
func (m *Model) ask(ctx context.Context, words []string, batch []int, again backoff.Notify) ([][]float32, error) {
	texts := make([]string, len(batch))
	for i, k := range batch {
		texts[i] = m.Prefix + words[k]
	}
	call := esclient.Call{
		Method: http.MethodPost, Path: m.Path, Body: body(m.Path, m.Name, texts),
		Timeout: callTimeout, Limit: int64(len(batch)) * answerPerWord,
	}
	if m.Key != "" {
		call.Header = http.Header{"Authorization": {"Bearer " + m.Key}}
	}
	vectors, err := backoff.Retry(ctx, func() ([][]float32, error) {
		var a answer
		err := m.Client.Do(ctx, call, &a)
		refused, _ := errors.AsType[*esclient.Error](err)
		switch {
		case err == nil:
			return a.vectors(), nil
		case !documents.Interrupted(err) || tooMuch(err):
			return nil, backoff.Permanent(err)
		case refused != nil && refused.RetryAfter > 0:
			return nil, fmt.Errorf("%w: %w", err, &backoff.RetryAfterError{Duration: max(refused.RetryAfter, time.Second)})
		}
		return nil, err
	}, backoff.WithMaxElapsedTime(patience), backoff.WithNotify(again))
	refused, ok := errors.AsType[*esclient.Error](err)
	if !ok {
		return vectors, err
	}
	told := *refused
	told.Type, told.Reason = m.hide(told.Type), m.hide(told.Reason)
	err = fmt.Errorf("the model: %w", &told)
	if told.Status == http.StatusUnauthorized || told.Status == http.StatusForbidden {
		err = fmt.Errorf("%w: is its key in %s?", err, EnvKey)
	}
	return nil, err
}

// hide takes the key out of a text: some models quote one that is wrong.
func (m *Model) hide(text string) string {
	if m.Key == "" {
		return text
	}
	return strings.ReplaceAll(text, m.Key, "…")
}

// EnvKey is the variable of the environment that has the key of the API.
const EnvKey = "AKIN_EMBEDDINGS_KEY"
