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
	sizes  []int               // of the batches that were answered
	texts  []string            // that were asked for
	header http.Header         // of the last call
	refuse func(n int) (w int) // returns a status for a batch of n texts, 0 to answer
	spoil  func(data []map[string]any) any
}

func (f *fakeModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var body struct {
		Model string
		Input []string
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || body.Model != "tiny" {
		http.Error(w, "bad body", http.StatusTeapot)
		return
	}
	f.header = r.Header.Clone()
	if f.refuse != nil {
		if status := f.refuse(len(body.Input)); status != 0 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(status)
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

func newModel(t *testing.T, h http.Handler, path string) *Model {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	client, err := esclient.New(esclient.Options{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return &Model{
		Client: client, Node: server.URL, Path: path, Name: "tiny", Key: "secret-key",
		Fits:  func(int) error { return nil },
		Start: func(int, int, int) error { return nil },
		Tell:  func(string, ...any) {},
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
	m := newModel(t, fake, "/v1/embeddings")
	m.Prefix = "query: "
	words, done := numbered(600), 0
	vectors, err := m.Vectors(t.Context(), words, func(_ string, now, total int) {
		if done = now; total != len(words) {
			t.Errorf("%d of %d", now, total)
		}
	})
	if err != nil || done != len(words) {
		t.Fatal(done, err)
	}
	for k, w := range words {
		if !slices.Equal(vectors[k], fakeVector("query: "+w)) {
			t.Fatalf("%s has the vector of another word", w)
		}
	}
	if len(fake.sizes) != 4 || fake.header.Get("Authorization") != "Bearer secret-key" {
		t.Errorf("batches of %v, with %v", fake.sizes, fake.header)
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
				if text, _ := json.Marshal(got); string(text) != tt.asked || r.URL.Path != path || r.Method != http.MethodPost {
					t.Errorf("%s %s %s", r.Method, r.URL, text)
				}
				_, _ = w.Write([]byte(tt.answer))
			}), path)
			got, err := m.Vectors(t.Context(), []string{"a", "b"}, nil)
			if diff := cmp.Diff([][]float32{{1, 2}, {3, 4}}, got); err != nil || diff != "" {
				t.Error(err, diff)
			}
		})
	}
}

// Text-embeddings-inference takes 32 texts by default, and answers 413 to more.
func TestBatchesBecomeAsSmallAsTheModelTakes(t *testing.T) {
	fake := &fakeModel{refuse: func(n int) int {
		if n > 32 {
			return http.StatusRequestEntityTooLarge
		}
		return 0
	}}
	if _, err := newModel(t, fake, "/v1/embeddings").Vectors(t.Context(), numbered(100), nil); err != nil {
		t.Fatal(err)
	}
	if slices.Max(fake.sizes) > 32 || slices.Max(fake.sizes) < 16 {
		t.Errorf("batches of %v", fake.sizes)
	}
}

// Vendors bound the tokens of a call, and refuse some words by themselves.
func TestWordsThatAreRefusedKeepNoOthersBack(t *testing.T) {
	words := numbered(2000)
	const long = 500
	for _, bad := range []int{0, 1, 400} { // in the first batch, too
		fake, calls := &fakeModel{}, 0
		server := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			var asked struct{ Input []string }
			_ = json.Unmarshal(body, &asked)
			fake.mu.Lock()
			calls++
			fake.mu.Unlock()
			if slices.Contains(asked.Input, words[bad]) || slices.Contains(asked.Input, words[long]) && len(asked.Input) > 8 {
				w.WriteHeader(http.StatusBadRequest)
				return
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			fake.ServeHTTP(w, r)
		})
		vectors, err := newModel(t, server, "/v1/embeddings").Vectors(t.Context(), words, nil)
		if err != nil {
			t.Fatal(err)
		}
		for k := range words {
			if (vectors[k] == nil) != (k == bad) {
				t.Errorf("%s has the vector %v", words[k], vectors[k])
			}
		}
		if calls > 60 {
			t.Errorf("%d calls for %d words of which the model refuses one at %d", calls, len(words), bad)
		}
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
		if got := inTime(tt.n, tt.took); got != tt.want {
			t.Errorf("after %d words in %v: %d, want %d", tt.n, tt.took, got, tt.want)
		}
	}
}

// A model that was fast may meet long words, or other work.
func TestBatchesThatAreAnsweredTooLateBecomeSmaller(t *testing.T) {
	fake := &fakeModel{}
	late := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var asked struct{ Input []string }
		_ = json.Unmarshal(body, &asked)
		if len(asked.Input) > 20 {
			<-r.Context().Done()
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		fake.ServeHTTP(w, r)
	})
	m := newModel(t, late, "/v1/embeddings")
	m.timeout = 300 * time.Millisecond
	vectors, err := m.Vectors(t.Context(), numbered(60), nil)
	if err != nil || slices.ContainsFunc(vectors, func(v []float32) bool { return len(v) == 0 }) {
		t.Errorf("%v, batches of %v", err, fake.sizes)
	}
}

// What one server answers to all words must not get into the cache.
func TestTheSameVectorForAllWordsEndsTheBuild(t *testing.T) {
	fake := &fakeModel{spoil: func(data []map[string]any) any {
		for k := range data {
			data[k]["embedding"] = []float32{1, 2, 3, 4, 5, 6, 7, 8}
		}
		return map[string]any{"data": data}
	}}
	if _, err := newModel(t, fake, "/v1/embeddings").Vectors(t.Context(), numbered(100), nil); err == nil || !strings.Contains(err.Error(), "the same vector") {
		t.Errorf("got %v", err)
	}
	if len(fake.sizes) != 1 {
		t.Errorf("batches of %v", fake.sizes)
	}
}

// One word of which a model computes no number costs only that word.
func TestAWordWithoutNumbersIsLeftOut(t *testing.T) {
	const bad = "w777"
	words := numbered(1000)
	words[0], words[777] = bad, bad
	for name, answer := range map[string]func(w http.ResponseWriter){
		"as Ollama": func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, `{"error":{"message":"failed to encode response: json: unsupported value: NaN"}}`)
		},
		"as null": func(w http.ResponseWriter) {
			_, _ = io.WriteString(w, `{"data":[{"index":0,"embedding":[1,null]}]}`)
		},
	} {
		fake := &fakeModel{}
		m := newModel(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if bytes.Contains(body, []byte(`"`+bad+`"`)) {
				answer(w)
				return
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			fake.ServeHTTP(w, r)
		}), "/v1/embeddings")
		vectors, err := m.Vectors(t.Context(), words, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for k, v := range vectors {
			if (len(v) == 0) != (words[k] == bad) {
				t.Errorf("%s: %s has %d numbers", name, words[k], len(v))
			}
		}
	}
}

// A batch that a model knows nothing of is no reason to end where it knew others.
func TestABatchOfOneVectorIsTakenOnceOthersDiffered(t *testing.T) {
	calls := 0
	fake := &fakeModel{spoil: func(data []map[string]any) any {
		if calls++; calls > 1 {
			for k := range data {
				data[k]["embedding"] = make([]float32, 8)
			}
		}
		return map[string]any{"data": data}
	}}
	if _, err := newModel(t, fake, "/v1/embeddings").Vectors(t.Context(), numbered(200), nil); err != nil || calls < 2 {
		t.Errorf("%v after %d calls", err, calls)
	}
}

// A build that is interrupted while four batches are under way goes on: only
// what was under way is sent again.
func TestAnInterruptedBuildGoesOnFromItsCache(t *testing.T) {
	fake := &fakeModel{}
	m := newModel(t, fake, "/v1/embeddings")
	m.Cache = filepath.Join(t.TempDir(), "vectors.db")
	words := numbered(3000)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	if _, err := m.Vectors(ctx, words, func(_ string, done, _ int) {
		if done > 1200 {
			stop()
		}
	}); err == nil {
		t.Fatal("it was not interrupted")
	}
	vectors, err := m.Vectors(t.Context(), words, nil)
	if err != nil || slices.ContainsFunc(vectors, func(v []float32) bool { return len(v) == 0 }) {
		t.Error(err)
	}
	if again := len(fake.texts) - len(words); again < 0 || again > callsAtOnce*batchWords {
		t.Errorf("%d words were sent twice", again)
	}
}

func TestModelThatRefusesEverythingIsSoonLeftAlone(t *testing.T) {
	calls := 0
	fake := &fakeModel{refuse: func(int) int { calls++; return http.StatusBadRequest }}
	if _, err := newModel(t, fake, "/v1/embeddings").Vectors(t.Context(), numbered(2000), nil); err == nil || calls > 30 {
		t.Errorf("%v after %d calls", err, calls)
	}
}

func TestPatienceEndsWithWhatTheModelAnswered(t *testing.T) {
	m := newModel(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = w.Write([]byte(`{"error":{"type":"insufficient_quota","message":"pay for secret-key first"}}`))
	}), "/v1/embeddings")
	_, err := m.Vectors(t.Context(), []string{"a"}, nil)
	for _, want := range []string{"429", "insufficient_quota", "pay for … first", "asks to wait 1h0m0s, and akin waits no longer than 5m0s"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestOverloadedModelIsAskedAgain(t *testing.T) {
	for _, status := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
		refused := 0
		fake := &fakeModel{refuse: func(int) int {
			if refused++; refused <= 2 {
				return status
			}
			return 0
		}}
		if _, err := newModel(t, fake, "/v1/embeddings").Vectors(t.Context(), []string{"a"}, nil); err != nil || refused != 3 {
			t.Errorf("%d: %v after %d calls", status, err, refused)
		}
	}
}

func TestBadAnswersOfAModelEndTheBuild(t *testing.T) {
	with := func(vector any) func([]map[string]any) any {
		return func(data []map[string]any) any {
			data[0]["embedding"] = vector
			return map[string]any{"data": data}
		}
	}
	for name, tt := range map[string]struct {
		fake *fakeModel
		want string
	}{
		"no key":           {&fakeModel{refuse: func(int) int { return http.StatusUnauthorized }}, EnvKey},
		"no such model":    {&fakeModel{refuse: func(int) int { return http.StatusNotFound }}, "404"},
		"HTML":             {&fakeModel{spoil: func([]map[string]any) any { return "<html>" }}, "look at the URL"},
		"Ollama's own API": {&fakeModel{spoil: func([]map[string]any) any { return `{"model":"tiny","embeddings":[[1],[2]]}` }}, "use /v1/embeddings"},
		"half a batch":     {&fakeModel{spoil: func(d []map[string]any) any { return map[string]any{"data": d[1:]} }}, "vectors for 2 texts"},
		"a text twice":     {&fakeModel{spoil: func(d []map[string]any) any { d[0]["index"] = 0; return map[string]any{"data": d} }}, "0 vectors"},
		"other dimensions": {&fakeModel{spoil: with([]float32{1, 2})}, "of 8 and of 2 numbers"},
		"no numbers":       {&fakeModel{spoil: with([]float32{})}, "empty"},
		"an error with 200": {&fakeModel{spoil: func([]map[string]any) any {
			return `{"error":{"message":"tiny is loading, secret-key"}}`
		}}, "answers 200: "},
		"nothing with 200": {&fakeModel{spoil: func([]map[string]any) any { return "" }}, "the model at http://127.0.0.1"},
		"zeros": {&fakeModel{spoil: func(d []map[string]any) any {
			d[0]["embedding"], d[1]["embedding"] = make([]float32, 8), make([]float32, 8)
			return map[string]any{"data": d}
		}}, "zeros only"},
		"null":              {&fakeModel{spoil: with([]any{1, nil, 2, 3, 4, 5, 6, 7})}, "null"},
		"infinite":          {&fakeModel{spoil: with([]float64{1e38, 0, 0, 0, 0, 0, 0, 1e39})}, "read the answer"},
		"NaN, which is not": {&fakeModel{spoil: func([]map[string]any) any { return `{"data":[{"index":0,"embedding":[NaN]}]}` }}, "read the answer"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newModel(t, tt.fake, "/v1/embeddings").Vectors(t.Context(), []string{"a", "b"}, nil)
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "secret-key") || strings.Contains(err.Error(), "cluster") {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}

func TestInterruptedWorkGoesOnFromTheCache(t *testing.T) {
	answered := 0
	fake := &fakeModel{refuse: func(int) int {
		if answered++; answered == 2 {
			return http.StatusNotFound // the model is taken away
		}
		return 0
	}}
	m := newModel(t, fake, "/v1/embeddings")
	m.Cache = filepath.Join(t.TempDir(), "vectors.db")
	words := numbered(500)
	if _, err := m.Vectors(t.Context(), words, nil); err == nil {
		t.Fatal("no error")
	}
	kept := len(fake.texts)
	left, err := missing(m, words)
	if err != nil || left != len(words)-kept || kept == 0 {
		t.Errorf("%d of %d are missing after %d: %v", left, len(words), kept, err)
	}
	again, err := m.Vectors(t.Context(), words, nil)
	if err != nil || len(fake.texts) != len(words) {
		t.Fatalf("%d texts were sent for %d words: %v", len(fake.texts), len(words), err)
	}
	for k, w := range words {
		if !slices.Equal(again[k], fakeVector(w)) {
			t.Fatalf("%s has the vector of another word", w)
		}
	}
}

func TestDamagedCacheIsSaidToBe(t *testing.T) {
	m := newModel(t, &fakeModel{}, "/v1/embeddings")
	m.Cache = filepath.Join(t.TempDir(), "vectors.db")
	if _, err := m.Vectors(t.Context(), numbered(2000), nil); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(m.Cache)
	if err != nil {
		t.Fatal(err)
	}
	for name, damaged := range map[string][]byte{
		"half of it": whole[:len(whole)/2],
		"its pages":  slices.Concat(whole[:4*os.Getpagesize()], bytes.Repeat([]byte{0xff}, len(whole)-4*os.Getpagesize())),
	} {
		m.Cache = filepath.Join(t.TempDir(), "vectors.db")
		if err := os.WriteFile(m.Cache, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Vectors(t.Context(), numbered(2000), nil); err == nil || !strings.Contains(err.Error(), "damaged: remove it") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestModelThatIsNotThereIsNotAskedAgain(t *testing.T) {
	server := httptest.NewServer(nil)
	m := newModel(t, &fakeModel{}, "/v1/embeddings")
	client, err := esclient.New(esclient.Options{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	server.Close()
	m.Client, m.Node = client, server.URL
	m.Tell = func(format string, args ...any) { t.Errorf(format, args...) }
	if _, err := m.Vectors(t.Context(), []string{"a"}, nil); err == nil || !strings.Contains(err.Error(), "the model at "+server.URL) {
		t.Error(err)
	}
}

func TestLookingForMissingWordsWritesNothing(t *testing.T) {
	m := newModel(t, &fakeModel{}, "/v1/embeddings")
	m.Cache = filepath.Join(t.TempDir(), "vectors.db")
	if n, err := missing(m, []string{"a"}); err != nil || n != 1 {
		t.Error(n, err)
	}
	if err := m.Check(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(m.Cache); err == nil {
		t.Error("there is a cache, of a model that was never asked")
	}
	if err := os.WriteFile(m.Cache, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if n, err := missing(m, []string{"a"}); err != nil || n != 1 {
		t.Error("of an empty file:", n, err)
	}
}

func TestFilesThatAreNoCacheAreRefused(t *testing.T) {
	m := newModel(t, &fakeModel{}, "/v1/embeddings")
	m.Cache = filepath.Join(t.TempDir(), "vectors.db")
	if err := os.WriteFile(m.Cache, bytes.Repeat([]byte("no cache "), 2000), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Vectors(t.Context(), []string{"a"}, nil); err == nil || !strings.Contains(err.Error(), m.Cache) {
		t.Error(err)
	}
	if err := m.Check(); err == nil {
		t.Error("no error")
	}
}

func second(_ [][]float32, err error) error { return err }

func TestCacheOfAnotherModelIsRefused(t *testing.T) {
	m := newModel(t, &fakeModel{}, "/v1/embeddings")
	m.Cache = filepath.Join(t.TempDir(), "vectors.db")
	if _, err := m.Vectors(t.Context(), []string{"a"}, nil); err != nil {
		t.Fatal(err)
	}
	for _, change := range []func(m *Model){func(m *Model) { m.Name = "other" }, func(m *Model) { m.Prefix = "query: " }} {
		other := *m
		change(&other)
		for _, err := range []error{second(other.Vectors(t.Context(), []string{"a"}, nil)), other.Check()} {
			if err == nil || !strings.Contains(err.Error(), "name another file") {
				t.Errorf("%s with %q: %v", other.Name, other.Prefix, err)
			}
		}
	}
	// A model of the same name that has become another one shows by its dimension.
	fake := &fakeModel{spoil: func(data []map[string]any) any {
		data[0]["embedding"] = []float32{1}
		return map[string]any{"data": data}
	}}
	other := newModel(t, fake, "/v1/embeddings")
	other.Cache = m.Cache
	if _, err := other.Vectors(t.Context(), []string{"a", "b"}, nil); err == nil || !strings.Contains(err.Error(), "of 8 and of 1 numbers") {
		t.Error(err)
	}
}

// A first call with a wrong name must not keep the right one out.
func TestCacheOfAModelThatNeverAnsweredIsThatOfAny(t *testing.T) {
	fake := &fakeModel{refuse: func(int) int { return http.StatusNotFound }}
	m := newModel(t, fake, "/v1/embeddings")
	m.Name, m.Cache = "mistyped", filepath.Join(t.TempDir(), "vectors.db")
	if _, err := m.Vectors(t.Context(), []string{"a"}, nil); err == nil {
		t.Fatal("no error")
	}
	m.Name, fake.refuse = "tiny", nil
	if _, err := m.Vectors(t.Context(), []string{"a"}, nil); err != nil {
		t.Error(err)
	}
}

func TestCacheKnowsTheDimensionOfItsVectors(t *testing.T) {
	m := newModel(t, &fakeModel{}, "/v1/embeddings")
	m.Cache = filepath.Join(t.TempDir(), "vectors.db")
	if _, err := m.Vectors(t.Context(), []string{"a"}, nil); err != nil {
		t.Fatal(err)
	}
	other := newModel(t, &fakeModel{spoil: func(data []map[string]any) any {
		data[0]["embedding"] = []float32{1}
		return map[string]any{"data": data}
	}}, "/v1/embeddings")
	other.Cache = m.Cache
	if _, err := other.Vectors(t.Context(), []string{"b"}, nil); err == nil || !strings.Contains(err.Error(), "of 8 and of 1 numbers") {
		t.Error(err)
	}
}

// Files of before the dimension and refused words were kept.
func TestOldCachesAreReadable(t *testing.T) {
	m := newModel(t, &fakeModel{}, "/v1/embeddings")
	m.Cache = filepath.Join(t.TempDir(), "vectors.db")
	if _, err := m.Vectors(t.Context(), []string{"a"}, nil); err != nil {
		t.Fatal(err)
	}
	db, err := bbolt.Open(m.Cache, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(aboutBucket).Delete([]byte("dimension")) })
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	if got, err := m.Vectors(t.Context(), []string{"a", "b"}, nil); err != nil || !slices.Equal(got[0], fakeVector("a")) || !slices.Equal(got[1], fakeVector("b")) {
		t.Error(got, err)
	}
}

func TestCacheThatAnotherBuildUsesIsSaidToBe(t *testing.T) {
	m := newModel(t, &fakeModel{}, "/v1/embeddings")
	m.Cache = filepath.Join(t.TempDir(), "vectors.db")
	db, err := bbolt.Open(m.Cache, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := m.Check(); err == nil || !strings.Contains(err.Error(), "another build uses it") {
		t.Error(err)
	}
}

func TestRefusedWordsAreSentOnce(t *testing.T) {
	fake := &fakeModel{}
	bad := []string{"word3", "word299"}
	m := newModel(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		for _, word := range bad {
			if bytes.Contains(body, []byte(`"`+word+`"`)) {
				w.WriteHeader(http.StatusBadRequest)
				return
			}
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		fake.ServeHTTP(w, r)
	}), "/v1/embeddings")
	m.Cache = filepath.Join(t.TempDir(), "vectors.db")
	words := numbered(300)
	// Alone they may be refused for another reason.
	if _, err := m.Vectors(t.Context(), bad, nil); err != nil {
		t.Fatal(err)
	}
	if n, err := missing(m, bad); err != nil || n != 2 {
		t.Error(n, err)
	}
	if _, err := m.Vectors(t.Context(), words, nil); err != nil {
		t.Fatal(err)
	}
	if n, err := missing(m, words); err != nil || n != 0 {
		t.Errorf("%d words are sent again: %v", n, err)
	}
	vectors, err := m.Vectors(t.Context(), words, nil)
	if err != nil {
		t.Fatal(err)
	}
	for k, word := range words {
		if (len(vectors[k]) == 0) != slices.Contains(bad, word) {
			t.Errorf("%s has the vector %v", word, vectors[k])
		}
	}
}

func TestModelThatBeginsToRefuseEverythingIsLeftAlone(t *testing.T) {
	calls, taken := 0, false
	fake := &fakeModel{refuse: func(int) int {
		if calls++; !taken {
			taken = true
			return 0
		}
		return http.StatusBadRequest
	}}
	if _, err := newModel(t, fake, "/v1/embeddings").Vectors(t.Context(), numbered(5000), nil); err == nil || calls > 1000 {
		t.Errorf("%v after %d calls", err, calls)
	}
}

func TestNothingMoreIsSentOfWhatDoesNotFit(t *testing.T) {
	fake, end := &fakeModel{}, errors.New("too large")
	m := newModel(t, fake, "/v1/embeddings")
	m.Cache = filepath.Join(t.TempDir(), "vectors.db")
	if _, err := m.Vectors(t.Context(), []string{"a"}, nil); err != nil {
		t.Fatal(err)
	}
	asked := 0
	m.Fits = func(dim int) error {
		if asked = dim; dim == 8 {
			return end
		}
		return nil
	}
	words := numbered(1000)
	if _, err := m.Vectors(t.Context(), words, nil); !errors.Is(err, end) || len(fake.texts) != 1 {
		t.Errorf("%v after %d texts, with the dimension %d in the cache", err, len(fake.texts), asked)
	}
	m.Cache = ""
	if _, err := m.Vectors(t.Context(), words, nil); !errors.Is(err, end) || len(fake.texts) != 1+firstWords {
		t.Errorf("%v after %d texts, of dimension %d", err, len(fake.texts), asked)
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
		if got != want || err != nil && strings.Contains(err.Error(), "pass") {
			t.Errorf("%s: %q, %v, want %q", text, got, err, want)
		}
	}
}
