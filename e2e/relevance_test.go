package e2e

import (
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
)

// judgedIndex is the definition of an index for a judged collection: as a
// user makes one, and in one shard so that scores do not depend on where a
// document lies.
const judgedIndex = `{"settings":{"number_of_shards":1,"number_of_replicas":0},
	"mappings":{"properties":{"body":{"type":"text","analyzer":"english"}}}}`

// A floor is the least gain over the direct search, in hundredths.
type floor struct {
	engine, collection, form string
	measure                  int // in measureNames
	gain                     float64
}

const (
	mapMeasure  = 0
	ndcgMeasure = 1
)

// floors are the gains that akin promises with its defaults. They lie under
// what the defaults were measured to give (testdata/rank_stats.txt).
var floors = []floor{
	{"opensearch2", "med", "saturated", mapMeasure, 12},
	{"opensearch2", "med", "saturated", ndcgMeasure, 2},
	{"opensearch2", "cran", "saturated", mapMeasure, 2.5},
	{"opensearch2", "cran", "saturated", ndcgMeasure, 2.5},
	{"elasticsearch8", "med", "grouped", mapMeasure, 10},
	{"elasticsearch8", "med", "grouped", ndcgMeasure, 0},
	{"elasticsearch8", "cran", "grouped", mapMeasure, 2},
	{"elasticsearch8", "cran", "grouped", ndcgMeasure, 0},
}

// TestRelevance indexes judged collections, learns S from those indices, and
// ranks the judged queries directly and through akin.
func TestRelevance(t *testing.T) {
	collections := []*collection{loadCollection(t, "med"), loadCollection(t, "cran")}
	redis := commonRedis(t)
	stats := rankStats{}
	pushed := map[string]bool{} // by family
	for _, e := range allEngines(t) {
		t.Run(e.name, func(t *testing.T) {
			e.require(t)
			for _, c := range collections {
				index := "akin-e2e-" + c.name
				e.makeIndex(t, index, judgedIndex)
				e.index(t, index, c.docs)
				if !pushed[e.family] {
					learnMatrix(t, e, index, redis)
				}
				stats[rankKey{e.name, c.name, direct}] = rankQueries(t, e.cluster, index, c)
			}
			pushed[e.family] = true
			for scoring, form := range formsOf(e) {
				a := startAkin(t, relevanceConfig(e, redis, scoring))
				for _, c := range collections {
					a.awaitMatrix(t, matrixName(e, "akin-e2e-"+c.name))
				}
				for _, c := range collections {
					stats[rankKey{e.name, c.name, form}] = rankThroughAkin(t, a, c, form)
				}
			}
		})
	}
	checkFloors(t, stats)
	checkRankStats(t, stats)
	t.Log("\n" + formatRankStats(stats))
}

// formsOf maps the settings of `scoring` to measure on an engine to the forms
// that they have to come to there.
func formsOf(e *engine) map[string]string {
	if !e.scripts {
		return map[string]string{"auto": "grouped"}
	}
	forms := map[string]string{"auto": "saturated"}
	if e.name == "opensearch2" {
		maps.Copy(forms, map[string]string{"grouped": "grouped", "linear": "linear"})
	}
	return forms
}

// matrixName is the name in Redis of the matrix of an index. Engines of a
// family analyze alike and share it.
func matrixName(e *engine, index string) string { return index + "-" + e.family }

// learnMatrix builds S from the index with the defaults and makes it active.
func learnMatrix(t *testing.T, e *engine, index string, redis *redisServer) {
	t.Helper()
	file := filepath.Join(newDir(t, "matrix"), index+".akin")
	mustAkin(t, "matrix", "build", "--from-index", e.url, "--index", index, "--field", "body", "--out", file)
	version := mustAkin(t, "matrix", "push", "--redis", redis.url, "--name", matrixName(e, index), "--activate", file)
	if strings.TrimSpace(version) == "" {
		t.Error("akin matrix push prints no version")
	}
}

// relevanceConfig serves the judged indices. The budget is wide, for what is
// measured here is quality: no search may go out unexpanded.
func relevanceConfig(e *engine, redis *redisServer, scoring string) section {
	var matrices []section
	for _, index := range []string{"akin-e2e-med", "akin-e2e-cran"} {
		matrices = append(matrices, section{
			"name": matrixName(e, index), "indices": []string{index}, "fields": []string{"body"},
		})
	}
	return section{
		"cluster":   section{"urls": []string{e.url}},
		"expansion": section{"scoring": scoring, "budget": "10s"},
		"matrices":  matrices,
		"redis":     section{"url": redis.url, "timeout": "1s"},
	}
}

// rankThroughAkin ranks the queries through akin and makes sure that every
// one was rewritten, in the form that was expected.
func rankThroughAkin(t *testing.T, a *akin, c *collection, form string) measures {
	t.Helper()
	index := "akin-e2e-" + c.name
	before := a.metric(t, requestsMetric, rewrittenOutcome)
	m := rankQueries(t, a.cluster, index, c)
	if n := int(a.metric(t, requestsMetric, rewrittenOutcome) - before); n != len(c.queries) {
		t.Errorf("%s: %d of %d searches were rewritten", c.name, n, len(c.queries))
	}
	e := a.explain(t, index, matchBody(c.queries[0].text))
	if len(e.Clauses) != 1 || e.Clauses[0].Form != form || len(e.Clauses[0].Added) == 0 {
		t.Errorf("%s: explained as %+v, want one clause of the form %s", c.name, e.Clauses, form)
	}
	return m
}

// matchBody is a search for all documents that match text.
func matchBody(text string) string {
	return `{"query":{"match":{"body":` + quote(text) + `}},"size":1500,"_source":false}`
}

// rankQueries searches for every judged query and returns the mean measures.
func rankQueries(t *testing.T, c cluster, index string, judged *collection) measures {
	t.Helper()
	perQuery := make([]measures, len(judged.queries))
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(4)
	for i, q := range judged.queries {
		group.Go(func() error {
			hits, err := c.search(ctx, "/"+index+"/_search?filter_path=hits.hits._id,_shards", matchBody(q.text))
			if err != nil {
				return fmt.Errorf("query %s: %w", q.id, err)
			}
			perQuery[i] = measure(hits.ids(), q.grades)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	return meanMeasures(perQuery)
}

// checkFloors fails the test for every promised gain that was not reached.
func checkFloors(t *testing.T, stats rankStats) {
	t.Helper()
	for _, f := range floors {
		base, ran := stats[rankKey{f.engine, f.collection, direct}]
		got, measured := stats[rankKey{f.engine, f.collection, f.form}]
		if !ran {
			continue // the engine is not one of this run
		}
		if !measured {
			t.Errorf("%s %s: the form %s was not measured", f.engine, f.collection, f.form)
			continue
		}
		if gain := gainOver(got.all()[f.measure], base.all()[f.measure]); gain < f.gain {
			t.Errorf("%s %s %s: %s %+.2f %%, want at least %+.1f %%", f.engine, f.collection, f.form,
				measureNames[f.measure], gain, f.gain)
		}
	}
}
