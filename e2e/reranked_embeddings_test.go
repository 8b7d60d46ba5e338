package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/akin-search/akin/e2e/check"
)

// A textModel is a language model whose vectors tell how texts are spelled.
type textModel struct {
	url     string
	asked   atomic.Int64 // texts
	down    atomic.Bool
	late    atomic.Int64 // how long it takes for a search
	turned  atomic.Bool  // other vectors come under its name
	smaller atomic.Bool  // and these, of another dimension
}

// startTextModel starts a model on an address of its own.
func startTextModel(t *testing.T) *textModel {
	t.Helper()
	m := new(textModel)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct{ Input []string }
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || m.down.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		m.asked.Add(int64(len(asked.Input)))
		if len(asked.Input) == 1 {
			time.Sleep(time.Duration(m.late.Load()))
		}
		data := make([]map[string]any, len(asked.Input))
		for k, text := range asked.Input {
			data[k] = map[string]any{"index": k, "embedding": m.vector(text)}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"data": data})
	}))
	t.Cleanup(server.Close)
	m.url = server.URL
	return m
}

func (m *textModel) vector(text string) []float64 {
	v := spelled(text)
	if m.turned.Load() {
		for k := range v {
			v[k] = 1 / (1 + v[k])
		}
	}
	if m.smaller.Load() {
		v = v[:32]
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
				matrix := build(t, "--from-index", e.url, "--index", index, "--field", "body")
				a := setup(t, e, embeddingsConfig(model, index, matrix, file))
				a.awaitModel(t)
				text := texts.queries[5].text
				body := matchBody(text, 50)
				engine := a.find(t, index+"?akin=no-embeddings", body)
				check.Equal(t, engine.ids(), a.find(t, index, body).ids(), "no vector is made yet")
				waitFor(t, time.Minute, "the order by vectors", a.inVectorOrder(t, index, body))
				checkVectorOrder(t, model, texts.docs, engine, a.find(t, index, body), text)
				check.Equal(t, a.find(t, index, body).ids()[10:20], a.find(t, index, pageBody(text, 10, 10)).ids(), "a page")

				asked := model.asked.Load()
				again := setup(t, e, embeddingsConfig(model, index, matrix, copyOf(t, file)))
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

// awaitModel waits until the model of the embeddings has answered.
func (a *akin) awaitModel(t *testing.T) {
	t.Helper()
	waitFor(t, time.Minute, "the language model", func() error {
		if !a.logged(t, "the language model answers") {
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

// checkVectorOrder compares hits with the engine's first hundred in the order of
// (1 − w) score / largest score + w cosine.
func checkVectorOrder(t *testing.T, m *textModel, docs []document, engine, got *found, text string) {
	t.Helper()
	blended := map[string]float64{}
	largest, least := engine.Hits.Hits[0].Score, engine.Hits.Hits[len(engine.Hits.Hits)-1].Score
	of := map[string]string{}
	for _, d := range docs {
		if several, ok := d.fields["body"].([]string); ok {
			of[d.id] = strings.Join(several, " ")
		} else {
			of[d.id], _ = d.fields["body"].(string)
		}
	}
	for _, h := range engine.Hits.Hits {
		blended[h.ID] = .5*h.Score/largest + .5*m.cosineOf(text, of[h.ID])
	}
	moved := 0
	for i, h := range got.Hits.Hits {
		want, ok := blended[h.ID]
		if !ok {
			continue // it comes from behind the engine's page
		}
		check.That(t, math.Abs(max(least, largest*want)-h.Score) < .02*largest, "hit %d, %s: %v, want %v", i, h.ID, h.Score, largest*want)
		if h.ID != engine.Hits.Hits[i].ID {
			moved++
		}
	}
	check.That(t, moved > 0, "no hit has moved")
}
