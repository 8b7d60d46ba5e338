// Package embed asks a language model for the vectors of words, through
// OpenAI's embeddings API, which many programs and vendors have, or from a
// model that a cluster runs. It can store them in a file for the next time.
package embed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
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
	// batchWords is how many words are sent in a call, if the model accepts them.
	// firstWords is how many are in the first call.
	batchWords, firstWords = 256, 16
	// callsAtOnce is how many calls are in flight.
	callsAtOnce = 4
	// callTimeout limits a call: a model without a GPU needs seconds for a batch.
	callTimeout = 2 * time.Minute
	// patience is how long a call is retried while the model is overloaded.
	patience = 5 * time.Minute
	// refusedAtFirst is how many single words a model may reject before it has
	// accepted any. refusedInARow is how many it may reject in a row.
	refusedAtFirst, refusedInARow = 8, 256
	// maxQuoted is how much of an error with status 200 is shown.
	maxQuoted = 500
	// answerPerWord limits the size of an answer: 8,192 numbers of at most 32
	// bytes.
	answerPerWord = 8192 * 32
)

var (
	// ErrRefused says that a model rejects texts, or cannot compute their
	// vectors.
	ErrRefused = errors.New("the model rejects texts")
	// ErrServer says that a model answers 500: it may fail at some texts, or at
	// all.
	ErrServer = errors.New("the model fails")
)

// A Model is a language model behind an API.
type Model struct {
	// Node is the base URL of the API, "" for the cluster that is read. Path is
	// its path with the query. [Split] returns both. Client connects to the node.
	Node, Path string
	Client     *esclient.Client
	// Name is the model. Prefix is what the model needs before each text, such as
	// "query: ".
	Name, Prefix string
	// Key is sent as a bearer token, "" for none.
	Key string
	// Cache is the file that stores the vectors, "" for none.
	Cache string
	// Fits is called once the dimension of the vectors is known, at the latest
	// after the first batch. Its error ends the work.
	Fits func(dim int) error
	// Start is called before the first call, with the number of words, the least
	// number of calls, and an estimate of the tokens. Its error ends the work. A
	// word has one to three tokens; four characters make one.
	Start func(words, calls, tokens int) error
	// Tell reports that a call is repeated, and why. Calls of Tell and of progress
	// do not overlap.
	Tell func(format string, args ...any)

	timeout time.Duration // replaces callTimeout
}

// Check returns why the cache cannot be used: it belongs to another model or
// prefix, or another build uses it. It creates no file.
func (m *Model) Check() error {
	kept, err := openCache(m.Cache, m.Name, m.Prefix, false)
	return errors.Join(err, kept.close())
}

// Vectors returns the vector of each word, nil or empty for a word that the
// model rejects. It sends the words that the cache lacks: 16, then batches of
// 256, or fewer if the model is slow, four at a time. It halves a batch that
// the model rejects as too large, or answers too late after it has answered
// others. If the model is overloaded or the network fails, it retries the batch
// after the time in Retry-After, or else with exponential back-off, for at most
// five minutes. It stores each batch in the cache at once, so that a later run
// continues after a failure, and at the end the rejected words. The error
// contains the model's answer, without the key.
func (m *Model) Vectors(ctx context.Context, words []string, progress simmatrix.Progress) (vectors [][]float32, err error) {
	kept, err := openCache(m.Cache, m.Name, m.Prefix, false)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(m.explain(err), kept.close()) }()
	vectors, dim, err := m.known(kept, words)
	if err != nil {
		return nil, err
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
	var mu sync.Mutex                             // guards Tell, progress, the variables below, dim and vectors
	done, largest := 0, 0                         // finished words, and the size of the largest answered batch
	refused, refusal := []string(nil), error(nil) // rejected words, and the error for the last one
	inARow, alone := 0, true                      // of the rejected words, and whether only one batch is in flight
	again := func(err error, pause time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		m.Tell("again in %v: %v", pause.Round(time.Second), m.explain(err))
	}
	// take stores the vectors of a batch.
	take := func(batch []int, got [][]float32) error {
		mu.Lock()
		defer mu.Unlock()
		alike, err := check(got, len(batch), dim)
		differ = differ || !alike
		switch {
		case err != nil:
			return err
		case !differ && len(batch) >= firstWords: // do not cache them; a model may give a few words the same vector
			return errors.New("the model answers with the same vector for all words: check its name and how it is served")
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
		done += len(batch)
		largest = max(largest, len(batch))
		inARow = 0
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
			done++
			inARow++
			refusal = err
			if r, ok := errors.AsType[*esclient.Error](err); !ok || r.Status != http.StatusRequestTimeout { // a timeout is not the word's fault
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
	// The first two batches go alone. The first shows how fast the model is; if it
	// is not a model or the key is wrong, little else is sent. The second shows
	// how many words it accepts.
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
	// Store them only now: the model accepted others, so it rejects these for
	// their content.
	return vectors, kept.put(refused, make([][]float32, len(refused)), dim)
}

// known returns the vectors in the cache, nil for other words, and their
// dimension, 0 without any.
func (m *Model) known(kept *cache, words []string) (vectors [][]float32, dim int, err error) {
	vectors, dim, err = kept.get(words)
	if err == nil && dim > 0 {
		err = m.Fits(dim)
	}
	return vectors, dim, err
}

// lacking returns the words without a vector, an estimate of their tokens, and
// whether two known vectors differ.
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

// inTime returns how many words to send in a call if n words took a given time:
// at most 256, and few enough that four calls on one processor take half of the
// call timeout.
func inTime(n int, took time.Duration) int {
	return max(1, int(min(batchWords, float64(n)*float64(callTimeout/2)/float64(callsAtOnce*max(took, 1)))))
}

// noNumber reports whether a model has computed NaN for a word. Ollama then
// answers with 500 (ollama/ollama#15582), others write null, and what Python
// writes, NaN or Infinity, is no JSON.
func noNumber(err error) bool {
	refused, ok := errors.AsType[*esclient.Error](err)
	return errors.Is(err, errNoNumber) || ok && strings.Contains(refused.Reason, "NaN") ||
		err != nil && noJSONNumber.MatchString(err.Error())
}

// noJSONNumber matches the error of a NaN or an Infinity within an answer.
var noJSONNumber = regexp.MustCompile(`invalid character '[NI]'.* within "/`)

// tooMuch reports whether the model may have rejected a call for its size.
func tooMuch(err error) bool {
	refused, ok := errors.AsType[*esclient.Error](err)
	return ok && slices.Contains([]int{
		http.StatusBadRequest, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity,
	}, refused.Status)
}

// Once returns the vectors of texts by one call, for what cannot wait longer
// than ctx. Prefix is not added, and nothing is cached. The error has no part
// of a text, and wraps [ErrRefused] if the model rejects the texts, which may
// be too long, and [ErrServer] if it answers 500.
func (m *Model) Once(ctx context.Context, texts []string) ([][]float32, error) {
	vectors, err := m.call(ctx, texts)
	if err == nil {
		_, err = check(vectors, len(texts), 0)
	}
	if errors.Is(err, errZeros) { // the texts may have no vector
		err = nil
	}
	if err == nil {
		return vectors, nil
	}
	told := err
	refused, ok := errors.AsType[*esclient.Error](err)
	if ok { // its reason may quote the texts
		told = m.explain(&esclient.Error{Status: refused.Status, RetryAfter: refused.RetryAfter})
	}
	switch {
	case tooMuch(err), noNumber(err):
		return nil, fmt.Errorf("%w: %w", ErrRefused, told)
	case ok && refused.Status == http.StatusInternalServerError:
		return nil, fmt.Errorf("%w: %w", ErrServer, told)
	}
	return nil, told
}

// ask asks for the vectors of a batch, and retries while the model is
// overloaded. first says that the model has answered nothing yet; then a
// failing connection means a wrong URL. halves says that the caller splits the
// batch if the answer is late.
func (m *Model) ask(ctx context.Context, words []string, batch []int, first, halves bool, again backoff.Notify) ([][]float32, error) {
	texts := make([]string, len(batch))
	for i, k := range batch {
		texts[i] = m.Prefix + words[k]
	}
	vectors, err := backoff.Retry(ctx, func() ([][]float32, error) {
		got, err := m.call(ctx, texts)
		refused, _ := errors.AsType[*esclient.Error](err)
		switch {
		case err == nil:
			return got, nil
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

// call asks once.
func (m *Model) call(ctx context.Context, texts []string) ([][]float32, error) {
	request := esclient.HTTPRequest{Method: http.MethodPost, Path: m.Path, Body: esclient.JSON(body(m.Path, m.Name, texts))}
	if m.Key != "" {
		request.Header = http.Header{"Authorization": {"Bearer " + m.Key}}
	}
	var a answer
	call := esclient.Call{Request: request, Timeout: cmp.Or(m.timeout, callTimeout), Limit: int64(len(texts)) * answerPerWord}
	err := m.Client.Do(ctx, call, &a)
	switch {
	case err != nil:
		return nil, err
	case a.Embeddings != nil:
		return nil, errors.New("the model answers like Ollama's /api/embed: use /v1/embeddings")
	case len(a.Error) > 0 && a.Error.Kind() != 'n':
		return nil, &esclient.Error{Status: http.StatusOK, Reason: string(a.Error[:min(len(a.Error), maxQuoted)])}
	}
	return a.vectors(), nil
}

// explain adds what to do to a model's error, and removes the key, which some
// models quote. It does not change an error of the cluster that is read, whose
// advice is right.
func (m *Model) explain(err error) error {
	if err != nil && strings.Contains(err.Error(), "invalid character '<'") {
		return fmt.Errorf("%w: that is a web page, not JSON: check the URL, which usually ends with /v1/embeddings", err)
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
		text = append(text, "check the path in the URL and the name of the model")
	case refused.RetryAfter > patience:
		text = append(text, fmt.Sprintf("it asks to wait %v, and akin waits no longer than %v: build again later", refused.RetryAfter, patience))
	case refused.Status == http.StatusTooManyRequests:
		text = append(text, "it is overloaded, or your quota is used up")
	}
	return errors.New(strings.Join(text, ": "))
}

// EnvKey is the environment variable with the key of the API.
const EnvKey = "AKIN_EMBEDDINGS_KEY"
