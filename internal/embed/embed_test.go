package embed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"

	wants "github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/esclient"
)

// fakeVector is what the fake model answers for a text.
func fakeVector(text string) []float32 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text))
	random := rand.New(rand.NewPCG(h.Sum64(), 0))
	v := make([]float32, 8)
	for d := range v {
		v[d] = float32(random.NormFloat64())
	}
	return v
}

// A fakeModel answers as OpenAI's API does, in another order than it was asked.
type fakeModel struct {
	mu     sync.Mutex
	sizes  []int       // of the batches that were answered
	texts  []string    // that were asked for
	calls  int         // answered or not
	header http.Header // of the last call
	// refuse returns a status for some texts, 0 to answer. It may answer itself,
	// and returns -1 then.
	refuse func(w http.ResponseWriter, texts []string) (status int)
	spoil  func(data []map[string]any) any
	late   int // the calls of more texts are not answered in time, unless it is 0
}

func (f *fakeModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Model string
		Input []string
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || body.Model != "tiny" {
		http.Error(w, "bad body", http.StatusTeapot)
		return
	}
	if f.late > 0 && len(body.Input) > f.late {
		<-r.Context().Done()
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.header = r.Header.Clone()
	f.calls++
	if f.refuse != nil {
		if status := f.refuse(w, body.Input); status != 0 {
			if status > 0 {
				w.Header().Set("Retry-After", "1")
				w.WriteHeader(status)
			}
			return
		}
	}
	f.sizes, f.texts = append(f.sizes, len(body.Input)), append(f.texts, body.Input...)
	var data []map[string]any
	for k, text := range body.Input {
		data = append(data, map[string]any{"index": k, "embedding": fakeVector(text)})
	}
	slices.Reverse(data)
	answer := any(map[string]any{"data": data})
	if f.spoil != nil {
		answer = f.spoil(data)
	}
	if text, ok := answer.(string); ok {
		_, _ = w.Write([]byte(text))
		return
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// answersAll ends refusals and returns how many texts were answered so far.
// Interrupted calls may still be in work.
func (f *fakeModel) answersAll() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refuse = nil
	return len(f.texts)
}

// always refuses with a status.
func always(status int) func(http.ResponseWriter, []string) int {
	return func(http.ResponseWriter, []string) int { return status }
}

// with spoils answers: the first vector becomes this one.
func with(vector any) func([]map[string]any) any {
	return func(data []map[string]any) any {
		data[0]["embedding"] = vector
		return map[string]any{"data": data}
	}
}

// withAll spoils answers: all vectors become this one.
func withAll(vector []float32) func([]map[string]any) any {
	return func(data []map[string]any) any {
		for k := range data {
			data[k]["embedding"] = vector
		}
		return map[string]any{"data": data}
	}
}

func newModel(t *testing.T, h http.Handler) *Model {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	client := wants.Got(esclient.New(esclient.Options{URL: server.URL}))(t)
	t.Cleanup(func() { client.Close() })
	return &Model{
		Client: client, Node: server.URL, Path: "/v1/embeddings", Name: "tiny", Key: "secret-key",
		Fits:  func(int) error { return nil },
		Start: func(int, int, int) error { return nil },
		Tell:  func(string, ...any) {},
	}
}

// newCached returns a model with a cache that is not there yet.
func newCached(t *testing.T, h http.Handler) *Model {
	t.Helper()
	m := newModel(t, h)
	m.Cache = filepath.Join(t.TempDir(), "vectors.db")
	return m
}

// vectors asks for the vectors of words. Each word has its own, but for those
// that are refused.
func vectors(t *testing.T, m *Model, words []string, refused ...string) {
	t.Helper()
	got := wants.Got(m.Vectors(t.Context(), words, nil))(t)
	for k, word := range words {
		want := fakeVector(m.Prefix + word)
		if slices.Contains(refused, word) {
			want = nil
		}
		if !slices.Equal(got[k], want) {
			t.Fatalf("%s has the vector %v", word, got[k])
		}
	}
}

// wantError wants the vectors of words not to come, for these reasons.
func wantError(t *testing.T, m *Model, words []string, reasons ...string) {
	t.Helper()
	_, err := m.Vectors(t.Context(), words, nil)
	for _, want := range reasons {
		wants.Message(t, want, err)
	}
}

// missing returns how many words m would send. It sends none.
func missing(m *Model, words []string) (n int, err error) {
	dry, end := *m, errors.New("a dry run")
	dry.Start = func(missing, _, _ int) error {
		n = missing
		return end
	}
	if _, err = dry.Vectors(context.Background(), words, nil); errors.Is(err, end) {
		return n, nil
	}
	return n, err
}

func numbered(n int) []string {
	words := make([]string, n)
	for k := range words {
		words[k] = fmt.Sprint("word", k)
	}
	return words
}

func TestEveryWordGetsItsVector(t *testing.T) {
	fake := &fakeModel{}
	m := newModel(t, fake)
	m.Prefix = "query: "
	vectors(t, m, numbered(600))
	wants.That(t, len(fake.sizes) == 4 && fake.header.Get("Authorization") == "Bearer secret-key", "batches of %v, with %v", fake.sizes, fake.header)
	done := 0
	_, err := m.Vectors(t.Context(), numbered(600), func(_ string, now, total int) {
		if done = now; total != 600 {
			t.Errorf("%d of %d", now, total)
		}
	})
	if err != nil || done != 600 {
		t.Error(done, err)
	}
}

// Elasticsearch 8.19 and OpenSearch 2.19 document these bodies and answers.
func TestModelsOfClustersAreAskedInTheirOwnWords(t *testing.T) {
	for path, tt := range map[string]struct{ asked, answer string }{
		"/_inference/text_embedding/tiny": {
			`{"input":["a","b"]}`, `{"text_embedding":[{"embedding":[1,2]},{"embedding":[3,4]}]}`,
		},
		"/_ml/trained_models/tiny/_infer": {
			`{"docs":[{"text_field":"a"},{"text_field":"b"}]}`, `{"inference_results":[{"predicted_value":[1,2]},{"predicted_value":[3,4]}]}`,
		},
		"/_plugins/_ml/_predict/text_embedding/id": {
			`{"return_number":true,"target_response":["sentence_embedding"],"text_docs":["a","b"]}`,
			`{"inference_results":[{"output":[{"name":"sentence_embedding","data":[1,2]}]},{"output":[{"name":"sentence_embedding","data":[3,4]}]}]}`,
		},
	} {
		t.Run(path, func(t *testing.T) {
			m := newModel(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var got any
				_ = json.NewDecoder(r.Body).Decode(&got)
				text, _ := json.Marshal(got)
				wants.That(t, string(text) == tt.asked && r.URL.Path == path && r.Method == http.MethodPost, "%s %s %s", r.Method, r.URL, text)
				_, _ = w.Write([]byte(tt.answer))
			}))
			m.Path = path
			got, err := m.Vectors(t.Context(), []string{"a", "b"}, nil)
			if diff := cmp.Diff([][]float32{{1, 2}, {3, 4}}, got); err != nil || diff != "" {
				t.Error(err, diff)
			}
		})
	}
}

// Text-embeddings-inference takes 32 texts by default, and answers 413 to more.
func TestBatchesBecomeAsSmallAsTheModelTakes(t *testing.T) {
	fake := &fakeModel{refuse: func(_ http.ResponseWriter, texts []string) int {
		if len(texts) > 32 {
			return http.StatusRequestEntityTooLarge
		}
		return 0
	}}
	vectors(t, newModel(t, fake), numbered(100))
	wants.That(t, slices.Max(fake.sizes) <= 32 && slices.Max(fake.sizes) >= 16, "batches of %v", fake.sizes)
}

// Vendors bound the tokens of a call, and refuse some words by themselves.
func TestWordsThatAreRefusedKeepNoOthersBack(t *testing.T) {
	words := numbered(2000)
	const long = 500
	for _, bad := range []int{0, 1, 400} { // in the first batch, too
		fake := &fakeModel{refuse: func(_ http.ResponseWriter, texts []string) int {
			if slices.Contains(texts, words[bad]) || slices.Contains(texts, words[long]) && len(texts) > 8 {
				return http.StatusBadRequest
			}
			return 0
		}}
		vectors(t, newModel(t, fake), words, words[bad])
		wants.That(t, fake.calls <= 60, "%d calls for %d words of which the model refuses one at %d", fake.calls, len(words), bad)
	}
}

func TestSlowModelGetsWhatItCanAnswerInTime(t *testing.T) {
	for _, tt := range []struct {
		n, want int
		took    time.Duration
	}{
		{16, 256, 10 * time.Millisecond},
		{16, 15, 16 * time.Second}, // one word a second: 15 of them four times within a minute
		{256, 1, 2 * time.Hour},
		{256, 256, 0},
	} {
		wants.Equal(t, tt.want, inTime(tt.n, tt.took), "after", tt.n, tt.took)
	}
}

// A model that was fast may meet long words, or other work.
func TestBatchesThatAreAnsweredTooLateBecomeSmaller(t *testing.T) {
	m := newModel(t, &fakeModel{late: 20})
	m.timeout = 300 * time.Millisecond
	vectors(t, m, numbered(60))
}

// What one server answers to all words must not get into the cache.
func TestTheSameVectorForAllWordsEndsTheBuild(t *testing.T) {
	fake := &fakeModel{spoil: withAll([]float32{1, 2, 3, 4, 5, 6, 7, 8})}
	wantError(t, newModel(t, fake), numbered(100), "the same vector")
	wants.Equal(t, 1, len(fake.sizes), "batches of", fake.sizes)
}

// One word of which a model computes no number costs only that word.
func TestAWordWithoutNumbersIsLeftOut(t *testing.T) {
	const bad = "w777"
	words := numbered(1000)
	words[0], words[777] = bad, bad
	for _, answer := range []func(w http.ResponseWriter){
		func(w http.ResponseWriter) { // as Ollama
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, `{"error":{"message":"failed to encode response: json: unsupported value: NaN"}}`)
		},
		func(w http.ResponseWriter) { _, _ = io.WriteString(w, `{"data":[{"index":0,"embedding":[1,null]}]}`) },
	} {
		vectors(t, newModel(t, &fakeModel{refuse: func(w http.ResponseWriter, texts []string) int {
			if !slices.Contains(texts, bad) {
				return 0
			}
			answer(w)
			return -1
		}}), words, bad)
	}
}

// A batch that a model knows nothing of is no reason to end where it knew others.
func TestABatchOfOneVectorIsTakenOnceOthersDiffered(t *testing.T) {
	fake := &fakeModel{}
	fake.spoil = func(data []map[string]any) any {
		if fake.calls == 1 {
			return map[string]any{"data": data}
		}
		return withAll(make([]float32, 8))(data)
	}
	_, err := newModel(t, fake).Vectors(t.Context(), numbered(200), nil)
	wants.That(t, err == nil && fake.calls >= 2, "%v after %d calls", err, fake.calls)
}

// A build that is interrupted while four batches are under way goes on: only
// what was under way is sent again.
func TestAnInterruptedBuildGoesOnFromItsCache(t *testing.T) {
	for _, taken := range []bool{false, true} { // the model is taken away
		fake := &fakeModel{}
		m := newCached(t, fake)
		words := numbered(3000)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		fake.refuse = func(http.ResponseWriter, []string) int {
			if taken && len(fake.texts) > 1200 {
				return http.StatusNotFound
			}
			return 0
		}
		if _, err := m.Vectors(ctx, words, func(_ string, done, _ int) {
			if !taken && done > 1200 {
				stop()
			}
		}); err == nil {
			t.Fatal("it was not interrupted")
		}
		kept := fake.answersAll()
		left, err := missing(m, words)
		lost := left - (len(words) - kept)
		wants.That(t, err == nil && lost >= 0 && lost <= callsAtOnce*batchWords, "%d of %d are missing after %d: %v", left, len(words), kept, err)
		vectors(t, m, words)
		again := fake.answersAll() - len(words)
		wants.That(t, again >= 0 && again <= callsAtOnce*batchWords, "%d words were sent twice", again)
	}
}

func TestModelThatRefusesEverythingIsSoonLeftAlone(t *testing.T) {
	for taken, most := range map[int]int{0: 30, 1: 1000} {
		fake := &fakeModel{}
		fake.refuse = func(http.ResponseWriter, []string) int {
			if fake.calls <= taken {
				return 0
			}
			return http.StatusBadRequest
		}
		_, err := newModel(t, fake).Vectors(t.Context(), numbered(5000), nil)
		wants.That(t, err != nil && fake.calls <= most, "%v after %d calls, of which %d were answered", err, fake.calls, taken)
	}
}

func TestOverloadedModelIsAskedAgain(t *testing.T) {
	for _, status := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
		fake := &fakeModel{}
		fake.refuse = func(http.ResponseWriter, []string) int {
			if fake.calls <= 2 {
				return status
			}
			return 0
		}
		if vectors(t, newModel(t, fake), []string{"a"}); fake.calls != 3 {
			t.Errorf("%d: %d calls", status, fake.calls)
		}
	}
}

func TestBadAnswersOfAModelEndTheBuild(t *testing.T) {
	for name, tt := range map[string]struct {
		fake *fakeModel
		want string
	}{
		"no key":            {&fakeModel{refuse: always(http.StatusUnauthorized)}, EnvKey},
		"no such model":     {&fakeModel{refuse: always(http.StatusNotFound)}, "404"},
		"HTML":              {&fakeModel{spoil: func([]map[string]any) any { return "<html>" }}, "check the URL"},
		"Ollama's own API":  {&fakeModel{spoil: func([]map[string]any) any { return `{"model":"tiny","embeddings":[[1],[2]]}` }}, "use /v1/embeddings"},
		"half a batch":      {&fakeModel{spoil: func(d []map[string]any) any { return map[string]any{"data": d[1:]} }}, "vectors for 2 texts"},
		"a text twice":      {&fakeModel{spoil: func(d []map[string]any) any { d[0]["index"] = 0; return map[string]any{"data": d} }}, "0 vectors"},
		"other dimensions":  {&fakeModel{spoil: with([]float32{1, 2})}, "of 8 and of 2 numbers"},
		"no numbers":        {&fakeModel{spoil: with([]float32{})}, "empty"},
		"an error with 200": {&fakeModel{spoil: func([]map[string]any) any { return `{"error":{"message":"tiny is loading, secret-key"}}` }}, "answers 200: "},
		"nothing with 200":  {&fakeModel{spoil: func([]map[string]any) any { return "" }}, "the model at http://127.0.0.1"},
		"zeros":             {&fakeModel{spoil: withAll(make([]float32, 8))}, "only with zeros"},
		"null":              {&fakeModel{spoil: with([]any{1, nil, 2, 3, 4, 5, 6, 7})}, "null"},
		"infinite":          {&fakeModel{spoil: with([]float64{1e38, 0, 0, 0, 0, 0, 0, 1e39})}, "read the answer"},
		"NaN, which is not": {&fakeModel{spoil: func([]map[string]any) any { return `{"data":[{"index":0,"embedding":[NaN]}]}` }}, "read the answer"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newModel(t, tt.fake).Vectors(t.Context(), []string{"a", "b"}, nil)
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "secret-key") || strings.Contains(err.Error(), "cluster") {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}

func TestDamagedCacheIsSaidToBe(t *testing.T) {
	m := newCached(t, &fakeModel{})
	vectors(t, m, numbered(2000))
	whole := wants.Got(os.ReadFile(m.Cache))(t)
	for name, damaged := range map[string][]byte{
		"half of it": whole[:len(whole)/2],
		"its pages":  slices.Concat(whole[:4*os.Getpagesize()], bytes.Repeat([]byte{0xff}, len(whole)-4*os.Getpagesize())),
	} {
		m.Cache = filepath.Join(t.TempDir(), name)
		wants.OK(t, os.WriteFile(m.Cache, damaged, 0o600))
		wantError(t, m, numbered(2000), "damaged: remove it")
	}
}

func TestModelThatIsNotThereIsNotAskedAgain(t *testing.T) {
	server := httptest.NewServer(nil)
	m := newModel(t, &fakeModel{})
	client := wants.Got(esclient.New(esclient.Options{URL: server.URL}))(t)
	defer client.Close()
	server.Close()
	m.Client, m.Node = client, server.URL
	m.Tell = func(format string, args ...any) { t.Errorf(format, args...) }
	wantError(t, m, []string{"a"}, "the model at "+server.URL)
}

func TestLookingForMissingWordsWritesNothing(t *testing.T) {
	m := newCached(t, &fakeModel{})
	if n, err := missing(m, []string{"a"}); err != nil || n != 1 {
		t.Error(n, err)
	}
	wants.OK(t, m.Check())
	if _, err := os.Stat(m.Cache); err == nil {
		t.Error("there is a cache, of a model that was never asked")
	}
	wants.OK(t, os.WriteFile(m.Cache, nil, 0o600))
	if n, err := missing(m, []string{"a"}); err != nil || n != 1 {
		t.Error("of an empty file:", n, err)
	}
}

func TestFilesThatAreNoCacheAreRefused(t *testing.T) {
	m := newCached(t, &fakeModel{})
	wants.OK(t, os.WriteFile(m.Cache, bytes.Repeat([]byte("no cache "), 2000), 0o600))
	wantError(t, m, []string{"a"}, m.Cache)
	err := m.Check()
	wants.That(t, err != nil, "no error")
}

func TestCacheOfAnotherModelIsRefused(t *testing.T) {
	m := newCached(t, &fakeModel{})
	vectors(t, m, []string{"a"})
	for _, change := range []func(m *Model){func(m *Model) { m.Name = "other" }, func(m *Model) { m.Prefix = "query: " }} {
		other := *m
		change(&other)
		wantError(t, &other, []string{"a"}, "choose another file")
		wants.Message(t, "choose another file", other.Check(), other.Name, other.Prefix)
	}
	// A model of the same name that has become another one shows by its dimension.
	other := newModel(t, &fakeModel{spoil: with([]float32{1})})
	other.Cache = m.Cache
	wantError(t, other, []string{"a", "b"}, "of 8 and of 1 numbers")
	wantError(t, other, []string{"b"}, "of 8 and of 1 numbers") // which the cache knows
}

// A first call with a wrong name must not keep the right one out.
func TestCacheOfAModelThatNeverAnsweredIsThatOfAny(t *testing.T) {
	fake := &fakeModel{refuse: always(http.StatusNotFound)}
	m := newCached(t, fake)
	m.Name = "mistyped"
	wantError(t, m, []string{"a"}, "")
	m.Name, fake.refuse = "tiny", nil
	vectors(t, m, []string{"a"})
}

// Files of before the dimension and refused words were kept.
func TestOldCachesAreReadable(t *testing.T) {
	m := newCached(t, &fakeModel{})
	vectors(t, m, []string{"a"})
	db, err := bbolt.Open(m.Cache, 0o600, nil)
	wants.OK(t, err)
	err = db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(aboutBucket).Delete([]byte("dimension")) })
	wants.OK(t, errors.Join(err, db.Close()))
	vectors(t, m, []string{"a", "b"})
}

func TestCacheThatAnotherBuildUsesIsSaidToBe(t *testing.T) {
	m := newCached(t, &fakeModel{})
	db := wants.Got(bbolt.Open(m.Cache, 0o600, nil))(t)
	defer db.Close()
	wants.Message(t, "another build uses it", m.Check())
}

func TestRefusedWordsAreSentOnce(t *testing.T) {
	bad := []string{"word3", "word299"}
	m := newCached(t, &fakeModel{refuse: func(_ http.ResponseWriter, texts []string) int {
		if slices.ContainsFunc(texts, func(text string) bool { return slices.Contains(bad, text) }) {
			return http.StatusBadRequest
		}
		return 0
	}})
	words := numbered(300)
	// Alone they may be refused for another reason.
	vectors(t, m, bad, bad...)
	if n, err := missing(m, bad); err != nil || n != 2 {
		t.Error(n, err)
	}
	vectors(t, m, words, bad...)
	n, err := missing(m, words)
	wants.That(t, err == nil && n == 0, "%d words are sent again: %v", n, err)
	vectors(t, m, words, bad...)
}

func TestErrorsSayWhetherATextOrTheModelFails(t *testing.T) {
	for status, want := range map[int]struct{ refused, server bool }{
		http.StatusBadRequest: {refused: true}, http.StatusInternalServerError: {server: true}, http.StatusTooManyRequests: {}, http.StatusServiceUnavailable: {},
	} {
		m := newModel(t, &fakeModel{refuse: func(http.ResponseWriter, []string) int { return status }})
		_, err := m.Once(t.Context(), []string{"text"})
		wants.That(t, err != nil && errors.Is(err, ErrRefused) == want.refused && errors.Is(err, ErrServer) == want.server, "%d: %v", status, err)
	}
	for answer, want := range map[string]error{`[NaN,1]`: ErrRefused, `[1,-Infinity]`: ErrRefused, `[null,1]`: ErrRefused, `[0,0]`: nil} {
		m := newModel(t, &fakeModel{refuse: func(w http.ResponseWriter, _ []string) int {
			_, _ = io.WriteString(w, `{"data":[{"index":0,"embedding":`+answer+`}]}`)
			return -1
		}})
		_, err := m.Once(t.Context(), []string{"text"})
		wants.Error(t, want, err)
	}
	m := newModel(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "Not a model") }))
	_, err := m.Once(t.Context(), []string{"text"})
	wants.That(t, err != nil && !errors.Is(err, ErrRefused), "a page is no number: %v", err)
}

func TestNothingMoreIsSentOfWhatDoesNotFit(t *testing.T) {
	fake, end := &fakeModel{}, errors.New("too large")
	m := newCached(t, fake)
	vectors(t, m, []string{"a"})
	m.Fits = func(dim int) error {
		if dim == 8 {
			return end
		}
		return nil
	}
	for texts, cache := range map[int]string{1: m.Cache, 1 + firstWords: ""} {
		fake.texts = fake.texts[:1]
		m.Cache = cache
		_, err := m.Vectors(t.Context(), numbered(1000), nil)
		wants.That(t, errors.Is(err, end) && len(fake.texts) == texts, "%v after %d texts, want %d", err, len(fake.texts), texts)
	}
}

func TestURLsOfModels(t *testing.T) {
	for text, want := range map[string]string{
		"http://127.0.0.1:1":                     "http://127.0.0.1:1 /v1/embeddings",
		"http://127.0.0.1:1/v1/":                 "http://127.0.0.1:1 /v1/embeddings",
		"https://h/api/embed?version=1":          "https://h /api/embed?version=1",
		"_inference/text_embedding/tiny":         " /_inference/text_embedding/tiny",
		"/_ml/trained_models/tiny/_infer":        " /_ml/trained_models/tiny/_infer",
		"http://user:pass@h/v1":                  "error",
		"ftp://h":                                "error",
		"tiny":                                   "error",
		"http://[::1":                            "error",
		"_plugins/_ml/_predict/text_embedding/x": " /_plugins/_ml/_predict/text_embedding/x",
	} {
		node, path, err := Split(text)
		got := node + " " + path
		if err != nil {
			got = "error"
		}
		wants.That(t, got == want && (err == nil || !strings.Contains(err.Error(), "pass")), "%s: %q, %v, want %q", text, got, err, want)
	}
}
