package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/akin-search/akin/e2e/check"
)

const notRememberedResult = `result="not_remembered"`

// TestAutoModeIsSoftOnceHitsAreRemembered: the first searches of an index are
// those of the mode bm25. What they find is remembered in the background, and
// then they are those of the mode soft, on one shard, on two, and in a request
// of several searches. Documents that change are not waited for.
func TestAutoModeIsSoftOnceHitsAreRemembered(t *testing.T) {
	t.Parallel()
	texts := vectorTexts(rand.New(rand.NewPCG(56, 1)))
	eachEngine(t, func(t *testing.T, e *engine) {
		for shards := 1; shards <= 2; shards++ {
			t.Run(fmt.Sprintf("%d shards", shards), func(t *testing.T) {
				index := fmt.Sprintf("akin-e2e-remembered-%d", shards)
				e.makeIndex(t, index, strings.Replace(oneShard(`"body":{"type":"text"}`), `"number_of_shards":1`, fmt.Sprintf(`"number_of_shards":%d`, shards), 1))
				e.index(t, index, texts.docs)
				a := setup(t, e, section{
					"expansion": section{"mode": "auto", "max_doc_share": 1, "matching": "same"},
					"profiles":  section{"soft": section{"mode": "soft"}, "bm25": section{"mode": "bm25"}},
					"matrices":  []section{{"name": "s", "file": build(t, "--cluster", e.url, "--index", index, "--field", "body"), "indices": []string{index}}},
				})
				text := texts.queries[5].text
				body := matchBody(text, 10)
				clauses := a.explain(t, index, body).Clauses
				check.That(t, len(clauses) == 1 && clauses[0].Reason == "not_remembered", "explained as %+v", clauses)
				as := func(profile string) []string { return scored(a.find(t, index+"?akin_profile="+profile, body)) }
				before, soft := as("bm25"), as("soft")
				check.That(t, !slices.Equal(before, soft), "the modes do not differ for %q", text)

				check.Equal(t, before, scored(a.find(t, index, body)), "the first search")
				remembered := func() error {
					if n := a.counted(t, func() { a.find(t, index, body) }, rerankedMetric, rerankedResult); n == 0 {
						return errors.New("not in order")
					}
					return nil
				}
				waitFor(t, time.Minute, "the soft order", remembered)
				check.Equal(t, soft, scored(a.find(t, index, body)), "the hits are remembered")
				several := a.must(t, http.MethodPost, "/_msearch", fmt.Sprintf("{\"index\":%q}\n%s\n{\"index\":%q}\n%s\n", index, body, index, body))
				check.Equal(t, 2, strings.Count(string(several), quote(strings.Fields(soft[0])[0])+`,"_score"`), string(several))

				e.index(t, index, texts.docs[:4]) // a few of them change
				e.refresh(t, index)
				n := a.counted(t, func() { check.Equal(t, len(soft), len(a.find(t, index, body).Hits.Hits)) }, rerankedMetric, rerankedResult)
				check.Equal(t, 1, n, "few hits are missing")

				e.index(t, index, texts.docs)
				e.refresh(t, index)
				n = a.counted(t, func() { a.find(t, index, body) }, rerankedMetric, notRememberedResult)
				check.Equal(t, 1, n, "nothing is remembered")
				waitFor(t, time.Minute, "the soft order of what was written", remembered)
				check.Equal(t, as("soft"), scored(a.find(t, index, body)))
			})
		}
	})
}

// scored returns the hits with their scores.
func scored(f *found) (hits []string) {
	for _, h := range f.Hits.Hits {
		hits = append(hits, fmt.Sprintf("%s %.5g", h.ID, h.Score))
	}
	slices.SortStableFunc(hits, func(a, b string) int { // equal scores are in any order
		_, x, _ := strings.Cut(a, " ")
		_, y, _ := strings.Cut(b, " ")
		if x != y {
			return 0
		}
		return cmp.Compare(a, b)
	})
	return hits
}

// TestHitsOfDataStreamsAreRemembered: the hits of a data stream are in the
// indices behind it. One that is made by a rollover is remembered like the
// others.
func TestHitsOfDataStreamsAreRemembered(t *testing.T) {
	t.Parallel()
	texts := vectorTexts(rand.New(rand.NewPCG(56, 2)))
	eachEngine(t, func(t *testing.T, e *engine) {
		if e.name == "elasticsearch7" { // this build has no data streams
			return
		}
		const stream = "akin-e2e-stream"
		e.must(t, http.MethodPut, "/_index_template/"+stream, `{"index_patterns":["`+stream+`"],"data_stream":{},"template":{
			"settings":{"number_of_shards":1,"number_of_replicas":0},"mappings":{"properties":{"body":{"type":"text"}}}}}`)
		t.Cleanup(func() { _, _, _ = e.call(context.Background(), http.MethodDelete, "/_data_stream/"+stream, "") })
		write := func(docs []document) {
			var lines strings.Builder
			for _, d := range docs {
				fmt.Fprintf(&lines, "{\"create\":{}}\n%s\n", toJSON(t, section{"@timestamp": "2026-01-01T00:00:00Z", "body": d.fields["body"]}))
			}
			e.must(t, http.MethodPost, "/"+stream+"/_bulk?refresh=true", lines.String())
		}
		write(texts.docs[:75])
		a := setup(t, e, section{
			"expansion": section{"mode": "auto", "max_doc_share": 1, "matching": "same", "rerank_warm_up": true},
			"profiles":  section{"soft": section{"mode": "soft"}},
			"matrices":  []section{{"name": "s", "file": build(t, "--cluster", e.url, "--index", stream, "--field", "body"), "indices": []string{stream}}},
		})
		body := matchBody(texts.queries[5].text, 10)
		inOrder := func() error {
			if n := a.counted(t, func() { a.find(t, stream, body) }, rerankedMetric, rerankedResult); n == 0 {
				return errors.New("not in order")
			}
			return nil
		}
		const patience = 3 * time.Minute // akin looks for new indices of a stream once a minute
		waitFor(t, patience, "the soft order", inOrder)
		e.must(t, http.MethodPost, "/"+stream+"/_rollover", "")
		write(texts.docs[75:150])
		waitFor(t, patience, "the soft order of both indices", inOrder)
		check.Equal(t, scored(a.find(t, stream+"?akin_profile=soft", body)), scored(a.find(t, stream, body)))
	})
}
