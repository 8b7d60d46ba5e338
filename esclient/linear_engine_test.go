package esclient

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/esclient/mapping"
)

// TestLinearScoresAreWhatLinearSays compares the scores of a real engine, for a
// term that occurs 1 to 30 times, with what Linear tells of them: BM25's within
// 0.3 %, a script's within a millionth.
func TestLinearScoresAreWhatLinearSays(t *testing.T) {
	e := newEngine(t)
	// Elasticsearch 8 and later as built for these tests has no painless.
	scripts := e.Client.Do(t.Context(), Call{
		Request: esapi.ScriptsPainlessExecuteRequest{Body: JSON(Object{"script": Object{"source": "1"}})},
	}, nil) == nil
	kinds := map[string]Object{"bm25": {"type": "BM25", "k1": 10000, "b": 0}}
	if scripts {
		kinds["script"] = Object{"type": "scripted", "script": Object{"source": mapping.LinearScript}}
	}
	if e.Distribution == "opensearch" && strings.HasPrefix(e.Version, "3.") {
		kinds["legacy"] = Object{"type": "LegacyBM25", "k1": 10000, "b": 0}
	}
	c := NewCached(e.Client, CacheOptions{AnalysisBytes: 4 << 20, StatisticsBytes: 4 << 20, TTL: time.Minute})
	t.Cleanup(c.Close)
	for kind, settings := range kinds {
		t.Run(kind, func(t *testing.T) {
			name := "linear-" + kind
			e.Create(t, name, Object{"number_of_shards": 1, "number_of_replicas": 0, "similarity": Object{"akin_linear": settings}},
				Object{"properties": Object{
					"body": Object{"type": "text", "analyzer": "english", "fields": Object{"akin": Object{
						"type": "text", "analyzer": "english", "similarity": "akin_linear", "norms": false, "index_options": "freqs",
					}}},
					"akin_norm":         Object{"properties": Object{"body": Object{"type": "float", "index": false}}},
					"akin_norm_weights": Object{"properties": Object{"body": Object{"type": "keyword"}}},
				}})
			ask := func() (Linear, error) {
				c.Forget(e.At(name))
				return c.Linear(t.Context(), at(e.At(name)), "body", normPath, weightsPath, weightsID)
			}
			check.Error(t, ErrNoNorms, check.ErrOf(ask()))
			const most, docs = 30, 33 // fewer than one in ten without the norm
			var all []Object
			for i := range docs {
				text := "other words" + strings.Repeat(" cars", (i+1)%(most+1))
				id := weightsID
				if i >= most {
					id = "another"
				}
				all = append(all, Object{"body": text, "akin_norm": Object{"body": i + 1}, "akin_norm_weights": Object{"body": id}})
			}
			e.Put(t, name, all...)
			l, err := ask()
			check.OK(t, err)
			check.That(t, l.Field == "body.akin" && l.Scripted == (kind == "script") && l.Missing == (most+1)/2.0, "%+v", l)
			check.Error(t, ErrNoNorms, check.ErrOf(c.Linear(t.Context(), at(e.At(name)), "body", normPath, weightsPath, "another")))
			e.checkScores(t, name, l)
			// Linear goes by the version where the probe tells nothing.
			scale, err := e.about(e.At(name), l.Field).probeLinear(t.Context())
			check.That(t, l.Scripted || err == nil && math.Abs(scale/10_000-l.Factor) <= 1e-9, "the probe tells of the scale %g; %v", scale, err)
		})
	}
}

// checkScores compares the scores of "car" in all documents that hold it.
func (e *engine) checkScores(t *testing.T, name string, l Linear) {
	t.Helper()
	freqs, n, err := e.DocFreqs(t.Context(), e.At(name), l.Field, []string{"car"})
	check.OK(t, err)
	idf, bound := math.Log1p((float64(n-freqs[0])+0.5)/(float64(freqs[0])+0.5)), 3e-3
	if l.Scripted {
		idf, bound = 1, 1e-6
	}
	var answer struct {
		Hits struct {
			Hits []struct {
				Score  float64 `json:"_score"`
				Source struct {
					Body string `json:"body"`
				} `json:"_source"`
			} `json:"hits"`
		} `json:"hits"`
	}
	const boost = 1.7
	err = e.Client.Do(t.Context(), Call{Request: esapi.SearchRequest{Index: []string{e.At(name)}, Body: JSON(Object{
		"size": 100, "query": Object{"term": Object{l.Field: Object{"value": "car", "boost": boost}}},
	})}}, &answer)
	check.Must(t, err == nil && len(answer.Hits.Hits) == int(freqs[0]) && freqs[0] != 0, "%d hits of %d: %v", len(answer.Hits.Hits), freqs[0], err)
	worst := 0.0
	for _, hit := range answer.Hits.Hits {
		tf := strings.Count(hit.Source.Body, "cars")
		worst = max(worst, math.Abs(hit.Score/(boost*l.Factor*idf*float64(tf))-1))
	}
	check.That(t, worst <= bound, "a score is off by %g, at most %g is allowed; %+v", worst, bound, l)
	t.Logf("scores are off by %.2g at most", worst)
}
