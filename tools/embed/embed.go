// Package embed asks a language model for the vectors of words: by OpenAI's
// embeddings API, which many programs and vendors have, or by the models
// that a cluster runs itself. It can keep them in a file for the next time.
package embed

import (
	"cmp"
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
	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/simmatrix"
)

const (
	// batchWords is how many words are sent in a call, where the model takes
	// them, and firstWords how many in the first.
	batchWords, firstWords = 256, 16
	// callsAtOnce is how many calls are under way.
	callsAtOnce = 4
	// callTimeout bounds a call: a model without a graphics card needs seconds
	// for a batch.
	callTimeout = 2 * time.Minute
	// patience is for how long a call is repeated that the model refuses for
	// now.
	patience = 5 * time.Minute
	// refusedAtFirst is how many words a model may refuse by themselves that is
	// not known to have taken any, and refusedInARow how many any model may
	// between two that it takes.
	refusedAtFirst, refusedInARow = 8, 256
	// maxQuoted is how much of an error is shown that came as an answer.
	maxQuoted = 500
	// answerPerWord bounds an answer: 8,192 numbers of at most 32 bytes.
	answerPerWord = 8192 * 32
)

// A Model is a language model behind an API.
type Model struct {
	// Node, "" for the cluster that is read, and Path, with the query, are where
	// the API is. [Split] gets them from a URL. Client reaches the node.
	Node, Path string
	Client     *esclient.Client
	// Name is the model, and Prefix what it wants before each text, such as
	// "query: ".
	Name, Prefix string
	// Key is sent as a bearer token; "" sends none.
	Key string
	// Cache is a file that keeps the vectors; "" is none.
	Cache string
	// Fits is asked as soon as the dimension of the vectors is known, after the
	// first batch at the latest: an error ends the work.
	Fits func(dim int) error
	// Start is told before the first call how many words will be sent, in how many
	// calls at least and about how many tokens: an error ends the work. A word has
	// one to three tokens, and four characters make one.
	Start func(words, calls, tokens int) error
	// Tell tells people that a call is made again, and why. It is called by one
	// goroutine at a time, and not while progress is.
	Tell func(format string, args ...any)

	timeout time.Duration // of a call, if not callTimeout
}

// Check returns why the cache cannot be used: it is of another model or prefix,
// or another build uses it. It makes no file.
func (m *Model) Check() error {
	kept, err := openCache(m.Cache, m.Name, m.Prefix, false)
	return errors.Join(err, kept.close())
}

// Vectors returns the vector of each word, nil or empty for a word that the
// model refuses. It sends the words that the cache does not have: 16, then in
// batches of 256, fewer where the model is slow, four at a time. It halves a
// batch that the model refuses as too large, or answers too late after others.
// If the model is overloaded or the network fails, it sends the batch again
// after the time that Retry-After says, else after a growing one, for at most
// five minutes. The cache keeps each batch as it comes, so that the next try
// goes on where this one failed, and at the end the words that were refused.
// The error says what the model answered, without the key.
func (m *Model) Vectors(ctx context.Context, words []string, progress simmatrix.Progress) (vectors [][]float32, err error) {
	kept, err := openCache(m.Cache, m.Name, m.Prefix, false)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(m.explain(err), kept.close()) }()
	vectors, dim, err := kept.get(words)
	if err != nil {
		return nil, err
	}
	if dim > 0 {
		if err := m.Fits(dim); err != nil {
			return nil, err
		}
	}
	missing, tokens, differ := m.lacking(words, vectors)
	if err := m.Start(len(missing), (len(missing)+batchWords-1)/batchWords, tokens); err != nil || len(missing) == 0 {
		return vectors, err
	}
	if kept.db == nil {
		if kept, err = openCache(m.Cache, m.Name, m.Prefix, true); err != nil {
			return nil, err
		}
	}
	var mu sync.Mutex                             // of Tell, progress, and the variables that follow, dim and vectors
	done, largest := 0, 0                         // words that are settled, and the size of the largest batch that was answered
	refused, refusal := []string(nil), error(nil) // words, and what was said to the last
	inARow, alone := 0, true                      // of the refused, and whether only one batch is under way
	again := func(err error, pause time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		m.Tell("again in %v: %v", pause.Round(time.Second), m.explain(err))
	}
	// take keeps what the model answers to a batch.
	take := func(batch []int, got [][]float32) error {
		mu.Lock()
		defer mu.Unlock()
		alike, err := check(got, len(batch), dim)
		switch differ = differ || !alike; {
		case err != nil:
			return err
		case !differ && len(batch) >= firstWords: // the cache would keep them; a few words may be the same to a model
			return errors.New("the model answers with the same vector for all words: look at its name and at how it is served")
		}
		if dim == 0 {
			dim = len(got[0])
			if err := m.Fits(dim); err != nil {
				return err
			}
		}
		texts := make([]string, len(batch))
		for i, k := range batch {
			vectors[k], texts[i] = got[i], words[k]
		}
		done, largest, inARow = done+len(batch), max(largest, len(batch)), 0
		progress.Report("vectors of words", done, len(missing))
		return kept.put(texts, got, dim)
	}
	var inHalves func(ctx context.Context, batch []int) error
	inHalves = func(ctx context.Context, batch []int) error {
		mu.Lock()
		first, halves := alone && largest == 0, largest > 0 && len(batch) > 1
		mu.Unlock()
		got, err := m.ask(ctx, words, batch, first, halves, again)
		late := errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil
		switch {
		case err == nil:
			return take(batch, got)
		case !tooMuch(err) && (!late || !halves) && !noNumber(err):
			return err
		case len(batch) == 1:
			mu.Lock()
			defer mu.Unlock()
			done, inARow, refusal = done+1, inARow+1, err
			if r, ok := errors.AsType[*esclient.Error](err); !ok || r.Status != http.StatusRequestTimeout { // which is no fault of the word
				refused = append(refused, words[batch[0]])
			}
			if dim == 0 && inARow == refusedAtFirst || inARow == refusedInARow {
				return err
			}
			return nil
		}
		if err := inHalves(ctx, batch[:len(batch)/2]); err != nil {
			return err
		}
		return inHalves(ctx, batch[len(batch)/2:])
	}
	// Two batches go alone. By the first akin learns how fast the model is, and
	// where it is no model or the key is wrong, little else is sent; by the second
	// how many words it takes.
	size, rest := firstWords, missing
	for k := 0; k < 2 && len(rest) > 0; k++ {
		n, began := min(size, len(rest)), time.Now()
		if err := inHalves(ctx, rest[:n]); err != nil {
			return nil, err
		}
		size, rest = inTime(n, time.Since(began)), rest[n:]
	}
	size, alone = max(1, min(size, largest)), false
	group, inGroup := errgroup.WithContext(ctx)
	group.SetLimit(callsAtOnce)
	for batch := range slices.Chunk(rest, size) {
		group.Go(func() error { return inHalves(inGroup, batch) })
	}
	if err = group.Wait(); err == nil && dim == 0 && noNumber(refusal) {
		err = refusal
	}
	if err != nil || largest == 0 {
		return vectors, err
	}
	// Only now: a model that took others refuses these for what they are.
	return vectors, kept.put(refused, make([][]float32, len(refused)), dim)
}

// lacking returns the words without a vector, about how many tokens they are,
// and whether any two of the vectors that are known differ.
func (m *Model) lacking(words []string, vectors [][]float32) (missing []int, tokens int, differ bool) {
	var some []float32
	for k, v := range vectors {
		switch {
		case v == nil:
			missing = append(missing, k)
			tokens += 2 + (len(m.Prefix)+len(words[k])+3)/4
		case len(v) > 0:
			differ = differ || some != nil && !slices.Equal(v, some)
			some = v
		}
	}
	return missing, tokens, differ
}

// inTime returns how many words to send in a call where n took so long: at most
// 256, and so few that four calls, if one processor answers them all, take
// half of the time that a call has.
func inTime(n int, took time.Duration) int {
	return max(1, int(min(batchWords, float64(n)*float64(callTimeout/2)/float64(callsAtOnce*max(took, 1)))))
}

// noNumber reports whether a model has computed what is no number of one of the
// words: Ollama answers with 500 then (ollama/ollama#15582), others write null.
func noNumber(err error) bool {
	refused, ok := errors.AsType[*esclient.Error](err)
	return errors.Is(err, errNoNumber) || ok && strings.Contains(refused.Reason, "NaN")
}

// tooMuch reports whether the model may have refused a call for its size.
func tooMuch(err error) bool {
	refused, ok := errors.AsType[*esclient.Error](err)
	return ok && slices.Contains([]int{
		http.StatusBadRequest, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity,
	}, refused.Status)
}

// ask asks for the vectors of a batch, again while the model is overloaded.
// First says that it has answered nothing yet, and then a connection that fails
// is a mistake in the URL; halves, that a part of the batch is asked for where
// the answer is late.
func (m *Model) ask(ctx context.Context, words []string, batch []int, first, halves bool, again backoff.Notify) ([][]float32, error) {
	texts := make([]string, len(batch))
	for i, k := range batch {
		texts[i] = m.Prefix + words[k]
	}
	call := esclient.Call{
		Method: http.MethodPost, Path: m.Path, Body: body(m.Path, m.Name, texts),
		Timeout: cmp.Or(m.timeout, callTimeout), Limit: int64(len(batch)) * answerPerWord,
	}
	if m.Key != "" {
		call.Header = http.Header{"Authorization": {"Bearer " + m.Key}}
	}
	vectors, err := backoff.Retry(ctx, func() ([][]float32, error) {
		var a answer
		err := m.Client.Do(ctx, call, &a)
		refused, _ := errors.AsType[*esclient.Error](err)
		switch {
		case err == nil && a.Embeddings != nil:
			return nil, backoff.Permanent(errors.New("the model answers as Ollama's /api/embed does: use /v1/embeddings"))
		case err == nil && len(a.Error) > 0 && a.Error.Kind() != 'n':
			return nil, backoff.Permanent(&esclient.Error{Status: http.StatusOK, Reason: string(a.Error[:min(len(a.Error), maxQuoted)])})
		case err == nil:
			return a.vectors(), nil
		case !documents.Interrupted(err), tooMuch(err), noNumber(err), halves && errors.Is(err, context.DeadlineExceeded), first && refused == nil && !errors.Is(err, context.DeadlineExceeded):
			return nil, backoff.Permanent(err)
		case refused != nil && refused.RetryAfter > 0:
			return nil, fmt.Errorf("%w: %w", err, &backoff.RetryAfterError{Duration: max(refused.RetryAfter, time.Second)})
		}
		return nil, err
	}, backoff.WithMaxElapsedTime(patience), backoff.WithNotify(again))
	if _, ok := errors.AsType[*esclient.Error](err); err != nil && !ok && m.Node != "" {
		err = fmt.Errorf("the model at %s: %w", m.Node, err)
	}
	return vectors, err
}

// explain says what a model answered that refused a call, without the key,
// which some quote, and what to do. It leaves a refusal of the cluster that is
// read as it is: the advice for the cluster is right there.
func (m *Model) explain(err error) error {
	if err != nil && strings.Contains(err.Error(), "invalid character '<'") {
		return fmt.Errorf("%w: that is a web page, not JSON: look at the URL, which mostly ends with /v1/embeddings", err)
	}
	refused, ok := errors.AsType[*esclient.Error](err)
	if !ok || m.Node == "" {
		return err
	}
	text := []string{fmt.Sprintf("the model at %s answers %d", m.Node, refused.Status)}
	for _, part := range []string{refused.Type, refused.Reason} {
		if m.Key != "" {
			part = strings.ReplaceAll(part, m.Key, "…")
		}
		if part != "" {
			text = append(text, part)
		}
	}
	switch {
	case refused.Status == http.StatusUnauthorized, refused.Status == http.StatusForbidden:
		text = append(text, "give its key in $"+EnvKey)
	case refused.Status == http.StatusNotFound:
		text = append(text, "look at the path in the URL and at the name of the model")
	case refused.RetryAfter > patience:
		text = append(text, fmt.Sprintf("it asks to wait %v, and akin waits no longer than %v: build again later", refused.RetryAfter, patience))
	case refused.Status == http.StatusTooManyRequests:
		text = append(text, "it is overloaded, or your share of it is used up")
	}
	return errors.New(strings.Join(text, ": "))
}

// EnvKey is the variable of the environment that has the key of the API.
const EnvKey = "AKIN_EMBEDDINGS_KEY"
