package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/akin-search/akin/e2e/check"
)

// A textModel is a language model whose vectors tell how texts are spelled.
type textModel struct {
	server  *httptest.Server
	url     string
	asked   atomic.Int64 // texts
	down    atomic.Bool
	late    atomic.Int64 // how long it takes for a search
	turned  atomic.Bool  // other vectors come under its name
	smaller atomic.Bool  // all vectors but the first one, akin's probe, have another dimension
	hangs   atomic.Bool  // it never answers
	noise   atomic.Bool  // it answers NaN
	halves  atomic.Bool  // it leaves out half of what it is asked for
}

// startTextModel starts a model on an address of its own.
func startTextModel(tb testing.TB) *textModel {
	tb.Helper()
	m := new(textModel)
	var first sync.Once
	probe := ""
	m.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct{ Input []string }
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || m.down.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		first.Do(func() { probe = asked.Input[0] })
		switch {
		case m.hangs.Load():
			<-r.Context().Done()
			return
		case m.noise.Load():
			_, _ = io.WriteString(w, `{"data":[{"index":0,"embedding":[NaN,NaN]}]}`)
			return
		case m.halves.Load():
			asked.Input = asked.Input[:len(asked.Input)/2]
		}
		m.asked.Add(int64(len(asked.Input)))
		if len(asked.Input) == 1 {
			time.Sleep(time.Duration(m.late.Load()))
		}
		data := make([]map[string]any, len(asked.Input))
		for k, text := range asked.Input {
			v := m.vector(text)
			if m.smaller.Load() && text != probe {
				v = v[:32]
			}
			data[k] = map[string]any{"index": k, "embedding": v}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"data": data})
	}))
	tb.Cleanup(func() { m.server.Close() })
	m.url = m.server.URL
	return m
}

// restart starts the model again, on its address, after its server was closed.
func (m *textModel) restart(t *testing.T) {
	t.Helper()
	again := httptest.NewUnstartedServer(m.server.Config.Handler)
	check.OK(t, again.Listener.Close())
	waitFor(t, 5*time.Second, "the port of the model", func() (err error) {
		again.Listener, err = new(net.ListenConfig).Listen(t.Context(), "tcp", strings.TrimPrefix(m.url, "http://"))
		return err
	})
	again.Start()
	m.server = again
}

func (m *textModel) vector(text string) []float64 {
	v := spelled(text)
	if m.turned.Load() {
		for k := range v {
			v[k] = 1 / (1 + v[k])
		}
	}
	return v
}

// cosineOf returns the cosine of the vectors of two texts.
func (m *textModel) cosineOf(a, b string) float64 {
	x, y := m.vector(a), m.vector(b)
	sum, xx, yy := 0.0, 0.0, 0.0
	for k := range x {
		sum += x[k] * y[k]
		xx += x[k] * x[k]
		yy += y[k] * y[k]
	}
	return sum / math.Sqrt(xx*yy)
}

// embeddingsConfig has hits ordered by the vectors of a model.
func embeddingsConfig(m *textModel, index, matrix, file string) section {
	return section{
		"expansion":  section{"rerank": "embeddings", "embeddings_weight": .5, "max_doc_share": 1, "matching": "same"},
		"embeddings": section{"url": m.url, "model": "spelling", "fields": []string{"body"}, "budget": widePatience, "file": file},
		"profiles":   section{"auto": section{"mode": "auto"}, "soft": section{"mode": "soft", "rerank": "none"}},
		"matrices":   []section{{"name": "s", "file": matrix, "indices": []string{index}}},
	}
}

// inVectorOrder returns an error unless a search is put in order.
func (a *akin) inVectorOrder(t *testing.T, index, body string) func() error {
	t.Helper()
	return func() error {
		found := 0.0
		n := a.counted(t, func() {
			found = a.counted(t, func() { a.find(t, index, body) }, "akin_cache_misses_total", `cache="embeddings"`)
		}, rerankedMetric, rerankedResult)
		if n == 0 || found > 0 {
			return errors.New("not in order, or not by all vectors")
		}
		return nil
	}
}

// TestEmbeddingsOrderTheFirstHits: the first search keeps the engine's order.
// Once the vectors of its hits are made, they are ordered by the formula, on one
// shard and on two; an explanation has what it took. A document that changes
// keeps its place until it has a vector again. Another akin with the same store
// asks the model for no document. Where the model fails or is late, the engine's
// order goes out.
func TestEmbeddingsOrderTheFirstHits(t *testing.T) {
	t.Parallel()
	texts := vectorTexts(rand.New(rand.NewPCG(56, 3)))
	eachEngine(t, func(t *testing.T, e *engine) {
		for shards := 1; shards <= 2; shards++ {
			t.Run(fmt.Sprintf("%d shards", shards), func(t *testing.T) {
				index := fmt.Sprintf("akin-e2e-embeddings-%d", shards)
				e.makeIndex(t, index, strings.Replace(oneShard(`"body":{"type":"text"}`), `"number_of_shards":1`, fmt.Sprintf(`"number_of_shards":%d`, shards), 1))
				e.index(t, index, texts.docs)
				model, file := startTextModel(t), filepath.Join(t.TempDir(), "vectors.db")
				matrix := build(t, "--cluster", e.url, "--index", index, "--field", "body")
				config, same := embeddingsConfig(model, index, matrix, file), embeddingsConfig(model, index, matrix, "")
				if shards > 1 {
					config = same
					config["redis"] = ownRedis(t).section()
				}
				a := setup(t, e, config)
				a.awaitModel(t)
				text := texts.queries[5].text
				body := matchBody(text, softWindow)
				engine := a.find(t, index+"?akin=no-embeddings", body)
				check.Equal(t, engine.ids(), a.find(t, index, body).ids(), "no vector is made yet")
				waitFor(t, time.Minute, "the order by vectors", a.inVectorOrder(t, index, body))
				checkVectorOrder(t, model, texts.docs, engine, engine, a.find(t, index, body), text)
				check.Equal(t, a.find(t, index, body).ids()[10:20], a.find(t, index, pageBody(text, 10, 10)).ids(), "a page")
				inAuto := index + "?akin_profile=auto"
				waitFor(t, time.Minute, "the soft cosine", func() error {
					a.find(t, inAuto, body)
					if clause := a.explain(t, inAuto, body).Clauses[0]; clause.Phase != "rerank" {
						return fmt.Errorf("explained as %+v", clause)
					}
					return nil
				})
				// Without a rescore in each shard, other hits may be the first hundred.
				waitFor(t, time.Minute, "the order by vectors behind it", a.inVectorOrder(t, inAuto, body))
				checkVectorOrder(t, model, texts.docs, engine, a.find(t, index+"?akin_profile=soft", body), a.find(t, inAuto, body), text)

				asked := model.asked.Load()
				if shards == 1 {
					same = embeddingsConfig(model, index, matrix, copyOf(t, file))
				}
				again := setup(t, e, same)
				again.awaitModel(t)
				waitFor(t, time.Minute, "the order by vectors of the store", again.inVectorOrder(t, index, body))
				check.That(t, model.asked.Load()-asked <= 2, "the model made %d vectors again", model.asked.Load()-asked) // of the probe and the search

				e.index(t, index, texts.docs[:4])
				e.refresh(t, index)
				waitFor(t, time.Minute, "the order by vectors of what was written", a.inVectorOrder(t, index, body))

				model.down.Store(true)
				other := matchBody(texts.queries[6].text, 10)
				check.Equal(t, a.find(t, index+"?akin=no-embeddings", other).ids(), a.find(t, index, other).ids(), "the model is down")
				check.That(t, a.metric(t, rerankedMetric, `result="model"`) > 0, "nothing counts the failure")
			})
		}
	})
}

// TestSearchesKeepTheirHitsWhateverTheModelDoes breaks the model in turn. Each
// search then finds what it finds without, does not wait for the model beyond
// its budget, and is counted. So it is over an alias of two indices with the
// same ids, one of which comes later, and after a restart of akin while the
// model fails.
func TestSearchesKeepTheirHitsWhateverTheModelDoes(t *testing.T) {
	t.Parallel()
	texts := vectorTexts(rand.New(rand.NewPCG(56, 5)))
	eachEngine(t, func(t *testing.T, e *engine) {
		const first, second, alias = "akin-e2e-model-000001", "akin-e2e-model-000002", "akin-e2e-model"
		definition := strings.Replace(oneShard(`"body":{"type":"text"}`), `{`, `{"aliases":{"`+alias+`":{}},`, 1)
		e.makeIndex(t, first, definition)
		e.index(t, first, texts.docs)
		model := startTextModel(t)
		config := embeddingsConfig(model, "akin-e2e-model-*", build(t, "--cluster", e.url, "--index", first, "--field", "body"), filepath.Join(t.TempDir(), "vectors.db"))
		const budget = 300 * time.Millisecond
		config["embeddings"].(section)["budget"] = budget.String()
		a := setup(t, e, config)
		a.awaitModel(t)
		whole := matchBody(texts.queries[5].text, softWindow)
		keeps := func(a *akin, what, text string) {
			t.Helper()
			body := matchBody(text, softWindow) // of which vectors change the order alone
			want, got := a.find(t, alias+"?akin=no-embeddings", body).ids(), a.find(t, alias, body).ids()
			slices.Sort(want)
			slices.Sort(got)
			check.Equal(t, want, got, what)
		}
		counts := func(a *akin) float64 {
			sum := a.metric(t, "akin_clauses_total", `reason="no_embeddings"`) // once akin knows that the model fails
			for _, result := range []string{"model", "model_late", "model_rejects", "not_remembered"} {
				sum += a.metric(t, rerankedMetric, `result="`+result+`"`)
			}
			return sum
		}
		n := 5
		for what, broken := range map[string]*atomic.Bool{
			"it is down": &model.down, "it hangs": &model.hangs, "it answers other dimensions": &model.smaller, "it answers NaN": &model.noise, "it answers half a batch": &model.halves,
		} {
			waitFor(t, time.Minute, "the order by vectors", a.inVectorOrder(t, alias, whole))
			broken.Store(true)
			before := counts(a)
			for range 3 { // after five failures in a row the model is not asked
				n++
				began := time.Now()
				keeps(a, what, texts.queries[n].text) // a text without a vector
				check.That(t, time.Since(began) < 10*budget, "%s: two searches took %v", what, time.Since(began))
			}
			check.That(t, counts(a)-before >= 3, "%s: %v of 3 searches are counted", what, counts(a)-before)
			broken.Store(false)
		}

		waitFor(t, time.Minute, "the order by vectors", a.inVectorOrder(t, alias, whole))
		e.makeIndex(t, second, definition)
		e.index(t, second, texts.docs[len(texts.docs)/2:]) // with the same ids
		e.refresh(t, second)
		keeps(a, "a rollover", texts.queries[5].text)
		waitFor(t, time.Minute, "the order by vectors of both indices", a.inVectorOrder(t, alias, whole))
		keeps(a, "both indices", texts.queries[5].text)

		model.down.Store(true)
		config["embeddings"].(section)["file"] = copyOf(t, config["embeddings"].(section)["file"].(string))
		again := setup(t, e, config)
		keeps(again, "a restart without the model", texts.queries[5].text)
		model.down.Store(false)
		waitFor(t, time.Minute, "the order by vectors after the restart", again.inVectorOrder(t, alias, whole))
	})
}

// TestEmbeddingsWarmMakesTheVectorsOfAllDocuments: each text goes to the model
// once, and akin finds its vector at the start.
func TestEmbeddingsWarmMakesTheVectorsOfAllDocuments(t *testing.T) {
	t.Parallel()
	texts := vectorTexts(rand.New(rand.NewPCG(56, 4)))
	eachEngine(t, func(t *testing.T, e *engine) {
		const index = "akin-e2e-embeddings-warm"
		e.makeIndex(t, index, oneShard(`"body":{"type":"text"}`))
		e.index(t, index, texts.docs)
		e.index(t, index, []document{{"none", map[string]any{"other": "no text"}}})
		e.refresh(t, index)
		model := startTextModel(t)
		config := embeddingsConfig(model, index, build(t, "--cluster", e.url, "--index", index, "--field", "body"), filepath.Join(t.TempDir(), "vectors.db"))
		config["cluster"] = section{"urls": []string{e.url}}
		path := writeFile(t, "akin.yml", toJSON(t, config))
		mustAkin(t, "embeddings", "warm", "--config", path)
		asked := model.asked.Load()
		check.That(t, asked > 100 && asked <= int64(len(texts.docs))+2, "%d texts for %d documents", asked, len(texts.docs))
		mustAkin(t, "embeddings", "warm", "--config", path)
		check.That(t, model.asked.Load()-asked <= 2, "%d more than the probe", model.asked.Load()-asked)

		config["expansion"].(section)["rerank_warm_up"] = true
		a := setup(t, e, config)
		waitFor(t, time.Minute, "the vectors of all documents", func() error {
			if n := a.metric(t, "akin_embeddings_documents"); int(n) != len(texts.docs)+1 {
				return fmt.Errorf("there are %v", n)
			}
			return nil
		})
		check.OK(t, a.inVectorOrder(t, index, matchBody(texts.queries[5].text, 10))())
		check.That(t, model.asked.Load()-asked <= 4, "the model made vectors again")
	})
}

// awaitModel waits until the model of the embeddings has answered.
func (a *akin) awaitModel(tb testing.TB) {
	tb.Helper()
	waitFor(tb, time.Minute, "the language model", func() error {
		if !a.logged(tb, "the language model answers") {
			return errors.New("it has not answered")
		}
		return nil
	})
}

// copyOf returns a copy of a file that another process has open.
func copyOf(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	check.OK(t, err)
	return writeFile(t, "copy.db", string(data))
}

// checkVectorOrder compares hits with those of before, the first hundred as the
// engine or the soft cosine orders them, in the order of (1 − w) score / largest
// score + w cosine, moved into the range of the engine's scores. What the soft
// cosine scores is cut off at the lowest of these, so that only the order above
// is compared.
func checkVectorOrder(t *testing.T, m *textModel, docs []document, engine, before, got *found, text string) {
	t.Helper()
	of, blended := map[string]string{}, map[string]float64{}
	for _, d := range docs {
		if several, ok := d.fields["body"].([]string); ok {
			of[d.id] = strings.Join(several, " ")
		} else {
			of[d.id], _ = d.fields["body"].(string)
		}
	}
	most, least := math.Inf(-1), math.Inf(1)
	hits := before.Hits.Hits
	highest, lowest := engine.Hits.Hits[0].Score, engine.Hits.Hits[len(hits)-1].Score
	known := map[string]bool{}
	for _, h := range hits {
		b := .5*h.Score/hits[0].Score + .5*m.cosineOf(text, of[h.ID])
		blended[h.ID], most, least = b, max(most, b), min(least, b)
		known[h.ID] = h.Score > lowest
	}
	check.Equal(t, len(hits), len(got.Hits.Hits))
	moved, last := 0, math.Inf(1)
	for i, h := range got.Hits.Hits {
		want := lowest + (highest-lowest)*(blended[h.ID]-least)/(most-least)
		switch {
		case engine == before:
			check.That(t, math.Abs(want-h.Score) < .03*highest, "hit %d, %s: %v, want %v", i, h.ID, h.Score, want)
		case known[h.ID]:
			check.That(t, blended[h.ID] < last+.02, "hit %d, %s has %v behind %v", i, h.ID, blended[h.ID], last)
			last = blended[h.ID]
		}
		if h.ID != hits[i].ID {
			moved++
		}
	}
	check.That(t, moved > 0, "no hit has moved")
}
