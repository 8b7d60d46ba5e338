package e2e

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// With rerank_warm_up no search has to ask the cluster for the terms of its
// hits, on an index of one shard and of two, whose hits have other names.
func TestWarmUpReadsTheTermsOfAllDocuments(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, e *engine) {
		c := loadCollection(t, "med")
		_, matrix := e.judged(t, c)
		for name, shards := range map[string]string{"akin-e2e-warm-1": "1", "akin-e2e-warm-2": "2"} {
			e.remakeIndex(t, name, strings.Replace(judgedIndex, `"number_of_shards":1`, `"number_of_shards":`+shards, 1))
			e.index(t, name, withIDs(c.docs))
		}
		// By this name, which has a matrix, too, hits of both come together.
		e.must(t, "PUT", "/akin-e2e-warm-1,akin-e2e-warm-2/_alias/akin-e2e-warm-all", "")
		config := softConfig(e, matrix)
		config["matrices"] = []section{{"name": "s", "file": matrix, "indices": []string{"akin-e2e-warm-*"}}}
		config["expansion"].(section)["rerank_warm_up"] = true
		a := startAkin(t, config)
		a.awaitMatrix(t, "s")
		waitFor(t, 2*time.Minute, "the terms of all documents", func() error {
			for _, line := range a.logLines(t) {
				if line["msg"] == "terms of documents are remembered" {
					return nil
				}
			}
			return errors.New("not read yet")
		})
		misses := func() float64 { return a.metric(t, "akin_cache_misses_total", `cache="vectors"`) }
		before := misses()
		if before < float64(2*len(c.docs)) {
			t.Errorf("%v terms of documents were read, of %d documents", before, 2*len(c.docs))
		}
		for _, name := range []string{"akin-e2e-warm-1", "akin-e2e-warm-2"} {
			for _, q := range c.queries[:10] {
				if _, err := a.search(t.Context(), "/"+name+"/_search", pageBody(q.text, 0, 10)); err != nil {
					t.Fatal(err)
				}
			}
			if n := misses() - before; n != 0 {
				t.Errorf("%s: %v hits of 10 searches had to be asked for", name, n)
			}
		}
		if n := a.metric(t, rerankedMetric, rerankedResult); n != 20 {
			t.Errorf("%v searches were reranked", n)
		}
	})
}
