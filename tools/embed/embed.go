// Package embed asks a language model for the vectors of words: by OpenAI's
// embeddings API, which many programs and vendors have, or by the models
// that a cluster runs itself. It can keep them in a file for the next time.
package embed

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"golang.org/x/sync/errgroup"

	"github.com/akin-search/akin/esclient"
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
	// answerPerWord bounds an answer: 8,192 numbers of at most 32 bytes.
	answerPerWord = 8192 * 32
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
}

// Missing returns those of the words that the cache does not have.
func (m *Model) Missing(words []string) (missing []string, err error) {
	kept, err := openCache(m.Cache, m.Name, m.Prefix)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, kept.close()) }()
	vectors, err := kept.get(words)
	for k, v := range vectors {
		if v == nil {
			missing = append(missing, words[k])
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

// Vectors returns the vector of each word. It asks for those that the cache
// does not have, in batches, smaller ones where the model takes no such, and
// again where it is overloaded: after the time that Retry-After says, or
// else after a growing one. What has come is in the cache when it fails, so
// that the next try goes on. The error says what the model answered, and
// never the key.
func (m *Model) Vectors(ctx context.Context, words []string, progress simmatrix.Progress) (vectors [][]float32, err error) {
	kept, err := openCache(m.Cache, m.Name, m.Prefix)
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
	// The first batch alone tells what the model takes and what it answers.
	size, done := min(batchWords, len(missing)), 0
	if progress == nil {
		progress = func(string, int, int) {}
	}
	take := func(batch []int, got [][]float32) error {
		if err := check(got, len(batch), dim); err != nil {
			return err
		}
		dim = len(got[0])
		texts := make([]string, len(batch))
		for i, k := range batch {
			vectors[k], texts[i] = got[i], words[k]
		}
		done += len(batch)
		progress("vectors of words", done, len(missing))
		return kept.put(texts, got)
	}
	for {
		got, err := m.ask(ctx, words, missing[:size])
		if err == nil {
			if err = take(missing[:size], got); err != nil {
				return nil, err
			}
			break
		}
		if size == 1 || !tooMuch(err) {
			return nil, err
		}
		size = (size + 1) / 2
	}
	var mu sync.Mutex // of take
	group, inGroup := errgroup.WithContext(ctx)
	group.SetLimit(callsAtOnce)
	for batch := range slices.Chunk(missing[size:], size) {
		group.Go(func() error {
			got, err := m.ask(inGroup, words, batch)
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			return take(batch, got)
		})
	}
	return vectors, group.Wait()
}

// tooMuch reports whether a call may have been refused for its size.
func tooMuch(err error) bool {
	refused, ok := errors.AsType[*esclient.Error](err)
	return ok && slices.Contains([]int{http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity}, refused.Status)
}

// ask asks for the vectors of a batch, again while the model is overloaded.
func (m *Model) ask(ctx context.Context, words []string, batch []int) ([][]float32, error) {
	texts := make([]string, len(batch))
	for i, k := range batch {
		texts[i] = m.Prefix + words[k]
	}
	api := apiOf(m.Path)
	call := esclient.Call{
		Method: http.MethodPost, Path: m.Path, Body: api.ask(m.Name, texts),
		Timeout: callTimeout, Limit: int64(len(batch)) * answerPerWord,
	}
	if m.Key != "" {
		call.Header = http.Header{"Authorization": {"Bearer " + m.Key}}
	}
	return backoff.Retry(ctx, func() ([][]float32, error) {
		var a answer
		err := m.Client.Do(ctx, call, &a)
		if refused, ok := errors.AsType[*esclient.Error](err); ok {
			switch {
			case refused.Status == http.StatusUnauthorized || refused.Status == http.StatusForbidden:
				err = fmt.Errorf("%w: set %s", err, EnvKey)
			case refused.Status == http.StatusTooManyRequests || refused.Status >= http.StatusInternalServerError:
				if refused.RetryAfter > 0 {
					return nil, backoff.RetryAfter(int(refused.RetryAfter.Seconds()))
				}
				return nil, err
			}
			return nil, backoff.Permanent(err)
		}
		if err != nil {
			if strings.Contains(err.Error(), "read the answer") { // no JSON
				return nil, backoff.Permanent(err)
			}
			return nil, err
		}
		return api.vectors(&a), nil
	}, backoff.WithMaxElapsedTime(patience))
}

// EnvKey is the variable of the environment that has the key of the API.
const EnvKey = "AKIN_EMBEDDINGS_KEY"
