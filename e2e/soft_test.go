package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/softcosine"
)

// softWindow is how many hits the mode soft orders by default.
const softWindow = 100

const (
	rerankedMetric = "akin_reranked_total"
	rerankedResult = `result="reranked"`
)

// softConfig has all hits ordered, however long that takes, with a profile
// that ranks in the mode bm25.
func softConfig(e *engine, matrix string) section {
	return section{
		"cluster":   section{"urls": []string{e.url}},
		"expansion": section{"mode": "soft", "soft_weight": 1, "budget": "10s"},
		"profiles": section{
			"bm25": section{"mode": "bm25"},
		},
		"matrices": []section{{"name": "s", "file": matrix}},
	}
}

// TestSoftModeScoresAreTheMeasure ranks all judged queries in the mode soft.
// The scores have to be those that softcosine computes from the same files
// and from the terms of the index, and the order theirs.
func TestSoftModeScoresAreTheMeasure(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, e *engine) {
		for _, name := range usualCollections {
			// With weights of their own, and with those in the rows of S.
			t.Run(name, func(t *testing.T) { testSoftMode(t, e, loadCollection(t, name), name == "med") })
		}
	})
}

func testSoftMode(t *testing.T, e *engine, c *collection, frozen bool) {
	t.Helper()
	index, matrix := e.judged(t, c)
	files := hardFiles{matrix: matrix, weights: filepath.Join(newDir(t, "soft"), "w.akin")}
	config := softConfig(e, files.matrix)
	if frozen {
		mustAkin(t, "norms", "snapshot", "--cluster", e.url, "--index", index, "--field", "body", "--out", files.weights)
		config["weights"] = []section{{"name": "w", "file": files.weights}}
	} else {
		files.weights = files.matrix
	}
	a := startAkin(t, config)
	a.awaitMatrix(t, "s")
	checkSoftScores(t, e, a, index, c, files)
	checkSoftPages(t, e, a, index, c)
}

// checkSoftScores compares every hit of the window with the measure.
func checkSoftScores(t *testing.T, e *engine, a *akin, index string, c *collection, files hardFiles) {
	t.Helper()
	known := newHardSpace(t, e, index, c, files)
	weights := make([]float64, known.space.Len())
	for i := range weights {
		weights[i] = known.space.Weight(int32(i))
	}
	space, err := softcosine.NewSpace(weights, known.space.Similarities())
	if err != nil {
		t.Fatal(err)
	}
	worst := 0.0
	for _, q := range c.queries {
		hits, err := a.search(t.Context(), "/"+index+"/_search", pageBody(q.text, 0, softWindow))
		if err != nil {
			t.Fatal(err)
		}
		counts := map[string]int{}
		for _, term := range known.analyze(t, q.text) {
			counts[term]++
		}
		x, before := known.vector(counts), math.Inf(1)
		for i, hit := range hits.Hits.Hits {
			want, err := space.Soft(x, known.docs[hit.ID])
			if err != nil {
				t.Fatal(err)
			}
			worst = max(worst, math.Abs(hit.Score-want))
			if !(math.Abs(hit.Score-want) <= 1e-6) || hit.Score > before {
				t.Fatalf("query %s, hit %d, document %s: score %v behind %v, the measure is %v", q.id, i, hit.ID, hit.Score, before, want)
			}
			before = hit.Score
		}
	}
	if n := int(a.metric(t, rerankedMetric, rerankedResult)); n != len(c.queries) {
		t.Errorf("%d of %d searches were reranked", n, len(c.queries))
	}
	t.Logf("%d queries, largest deviation %.2g", len(c.queries), worst)
}

// pageBody is a search for a page of hits.
func pageBody(text string, from, size int) string {
	return fmt.Sprintf(`{"query":{"match":{"body":%s}},"from":%d,"size":%d,"_source":false}`, quote(text), from, size)
}

// checkSoftPages makes sure that the pages in the window are one list, and
// that an answer differs from the engine's own to the same query in nothing but
// the order and the scores of its hits.
func checkSoftPages(t *testing.T, e *engine, a *akin, index string, c *collection) {
	t.Helper()
	for _, q := range c.queries[:10] {
		whole := a.must(t, http.MethodPost, "/"+index+"/_search", pageBody(q.text, 0, softWindow))
		var paged []string
		for from := 0; from < softWindow; from += 30 {
			hits, err := a.search(t.Context(), "/"+index+"/_search", pageBody(q.text, from, min(30, softWindow-from)))
			if err != nil {
				t.Fatal(err)
			}
			paged = append(paged, hits.ids()...)
		}
		var hits hitList
		if err := json.Unmarshal(whole, &hits); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(paged, hits.ids()) {
			t.Errorf("query %s: the pages have %v, the window has %v", q.id, paged, hits.ids())
		}
		var sent struct{ Query json.RawMessage }
		if err := json.Unmarshal(a.explain(t, index, pageBody(q.text, 0, softWindow)).Body, &sent); err != nil {
			t.Fatal(err)
		}
		plain := e.must(t, http.MethodPost, "/"+index+"/_search", fmt.Sprintf(`{"size":%d,"_source":false,"query":%s}`, softWindow, sent.Query))
		if got, want := withoutOrder(whole), withoutOrder(plain); got != want {
			t.Errorf("query %s: got %.1000s\nwant %.1000s", q.id, got, want)
		}
	}
}

var (
	softTook   = regexp.MustCompile(`"took":\d+`)
	softScore  = regexp.MustCompile(`score":[0-9.Ee-]+`)
	softNumber = regexp.MustCompile(`,"(_version|_seq_no|_primary_term)":\d+`)
	softHit    = regexp.MustCompile(`\{"_index"[^{}]*\}`)
)

// withoutOrder returns an answer without what may differ, its hits sorted.
func withoutOrder(answer []byte) string {
	text := softTook.ReplaceAllString(string(answer), `"took":0`)
	text = softNumber.ReplaceAllString(softScore.ReplaceAllString(text, `score":0`), "")
	hits := softHit.FindAllString(text, -1)
	slices.Sort(hits)
	return softHit.ReplaceAllString(text, "{}") + strings.Join(hits, "\n")
}

// softReasons are searches that stay in the engine's order.
var softReasons = []struct{ name, parameters, body, reason string }{
	{"sort", "", `{"query":{"match":{"body":"flow"}},"sort":["_doc"]}`, "sort"},
	{"another query scores", "", `{"query":{"bool":{"must":[{"match":{"body":"flow"}}],"should":[{"exists":{"field":"body"}}]}}}`, "other_scores"},
	{"functions", "", `{"query":{"function_score":{"query":{"match":{"body":"flow"}},"boost":2}}}`, "other_scores"},
	{"min_score", "", `{"query":{"match":{"body":"flow"}},"min_score":0.1}`, "min_score"},
	{"rescore", "", `{"query":{"match":{"body":"flow"}},"rescore":{"query":{"rescore_query":{"match":{"body":"wing"}}}}}`, "rescore"},
	{"search_after", "", `{"query":{"match":{"body":"flow"}},"sort":["_doc"],"search_after":[1]}`, "search_after"},
	{"no ids", "", `{"query":{"match":{"body":"flow"}},"stored_fields":"_none_","_source":false}`, "answer_members"},
	{"filtered", "?filter_path=hits.hits._id", `{"query":{"match":{"body":"flow"}}}`, "answer_members"},
}

// TestSoftModeLeavesSomeSearchesInTheEnginesOrder makes sure that they are
// then those of the mode bm25 to the byte, and that it says why.
func TestSoftModeLeavesSomeSearchesInTheEnginesOrder(t *testing.T) {
	e, index, matrix := smallSoft(t)
	config := softConfig(e, matrix)
	expansion, _ := config["expansion"].(section)
	expansion["normalize_score"] = true // so that searches with min_score are rewritten
	expansion["max_doc_share"] = 1
	a := startAkin(t, config)
	a.awaitMatrix(t, "s")
	for _, c := range softReasons {
		t.Run(c.name, func(t *testing.T) {
			explained := a.explain(t, index+c.parameters, c.body)
			if reasons := fmt.Sprint(explained.Clauses); !strings.Contains(reasons, c.reason) {
				t.Errorf("explained as %s, want the reason %s", reasons, c.reason)
			}
			and := "?"
			if c.parameters != "" {
				and = c.parameters + "&"
			}
			got := a.must(t, http.MethodPost, "/"+index+"/_search"+and+"akin=explain", c.body)
			want := a.must(t, http.MethodPost, "/"+index+"/_search"+and+"akin_profile=bm25", c.body)
			if got, want := softTook.ReplaceAllString(string(got), ""), softTook.ReplaceAllString(string(want), ""); got != want {
				t.Errorf("got %s\nwant %s", got, want)
			}
		})
	}
	lines := "{}\n" + `{"query":{"match":{"body":"flow"}}}` + "\n"
	answer := a.must(t, http.MethodPost, "/"+index+"/_msearch?filter_path=responses.hits.hits", lines)
	if strings.Contains(string(answer), "_seq_no") || !strings.Contains(string(answer), `"_id"`) {
		t.Errorf("_msearch: %s", answer)
	}
	if n := a.metric(t, rerankedMetric); n != 0 {
		t.Errorf("%v searches were to be reranked, want none", n)
	}
}

// smallSoft returns an engine, an index of a few documents in it, and a matrix
// file for that.
func smallSoft(t *testing.T) (e *engine, index, matrix string) {
	t.Helper()
	e = oneEngine(t)
	index, matrix = makeSmallSoft(t, e)
	return e, index, matrix
}

// TestSoftModeLeavesNoNumbersInAggregations has hits in an aggregation, into
// which Elasticsearch 9 writes sequence numbers when those of hits are asked for.
func TestSoftModeLeavesNoNumbersInAggregations(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engine) {
		index, matrix := makeSmallSoft(t, e)
		a := startAkin(t, softConfig(e, matrix))
		a.awaitMatrix(t, "s")
		answer := a.must(t, http.MethodPost, "/"+index+"/_search", `{"query":{"match":{"body":"flow"}},"aggs":{"h":{"top_hits":{"_source":false}}}}`)
		if n := a.metric(t, rerankedMetric, rerankedResult); n != 1 || !bytes.Contains(answer, []byte(`"aggregations"`)) {
			t.Errorf("%v searches were reranked: %s", n, answer)
		}
		if bytes.Contains(answer, []byte(`"_seq_no"`)) || bytes.Contains(answer, []byte(`"_primary_term"`)) {
			t.Errorf("sequence numbers in %s", answer)
		}
	})
}

// makeSmallSoft makes an index of a few documents and a matrix file for it.
func makeSmallSoft(t *testing.T, e *engine) (index, matrix string) {
	t.Helper()
	index = "akin-e2e-soft"
	e.makeIndex(t, index, `{"settings":{"number_of_shards":2,"number_of_replicas":0},
		"mappings":{"properties":{"body":{"type":"text","analyzer":"whitespace","fields":{"en":{"type":"text","analyzer":"english"}}},
		"title":{"type":"text","analyzer":"whitespace"},"notes":{"type":"text"},"copied":{"type":"text","copy_to":"copy"},"copy":{"type":"text"}}}}`)
	matrix = filepath.Join(newDir(t, "matrix"), "s.akin")
	writeSoftMatrix(t, matrix)
	var docs []document
	for i, text := range []string{"flow wing", "stream air", "blade stream air stream", "air", "flow air flow", "wing blade"} {
		docs = append(docs, document{strconv.Itoa(i), map[string]any{"body": text, "title": text, "copied": text}})
	}
	e.index(t, index, docs)
	return index, matrix
}

// writeSoftMatrix writes S and the frequencies that W comes from.
func writeSoftMatrix(t *testing.T, path string) {
	t.Helper()
	similar := func(term string, s float32) simmatrix.Neighbor {
		return simmatrix.Neighbor{Term: term, Similarity: s, DocFreq: 10}
	}
	m, err := simmatrix.New(simmatrix.Meta{Source: "test", Docs: 100}, []simmatrix.TermRow{
		{Term: "air", DocFreq: 10, Neighbors: []simmatrix.Neighbor{similar("flow", .3)}},
		{Term: "blade", DocFreq: 10, Neighbors: []simmatrix.Neighbor{similar("wing", .5)}},
		{Term: "flow", DocFreq: 10, Neighbors: []simmatrix.Neighbor{similar("stream", .8), similar("air", .1)}},
		{Term: "stream", DocFreq: 10, Neighbors: []simmatrix.Neighbor{similar("flow", .8)}},
		{Term: "wing", DocFreq: 10, Neighbors: []simmatrix.Neighbor{similar("blade", .5)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := simmatrix.Encode(&file, m); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestSoftModeLeavesSourcesAsTheyAre looks for the bytes of a source in an
// answer. Engines format the numbers again where they filter an answer.
func TestSoftModeLeavesSourcesAsTheyAre(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engine) {
		index, matrix := makeSmallSoft(t, e)
		const source = `{"body": "flow flow flow", "price":10.50,"big":12345678901234567890.123,"e":"\u00e9"}`
		e.must(t, http.MethodPut, "/"+index+"/_doc/odd?refresh=true", source)
		a := startAkin(t, softConfig(e, matrix))
		a.awaitMatrix(t, "s")
		answer := a.must(t, http.MethodPost, "/"+index+"/_search", `{"query":{"match":{"body":"flow"}}}`)
		if n := a.metric(t, rerankedMetric, rerankedResult); n != 1 || !bytes.Contains(answer, []byte(source)) {
			t.Errorf("%v reranked, %s has not %s", n, answer, source)
		}
	})
}

// TestSoftModeWithWrites searches while documents change. Whenever the hits
// come in the order of the measure it has to be that of their texts.
func TestSoftModeWithWrites(t *testing.T) {
	e, index, matrix := smallSoft(t)
	a := startAkin(t, softConfig(e, matrix))
	a.awaitMatrix(t, "s")
	ctx, cancel := context.WithCancel(t.Context())
	var writing sync.WaitGroup
	writing.Go(func() {
		words := []string{"flow", "stream", "air", "wing", "blade"}
		for n := 0; ctx.Err() == nil; n++ {
			text := strings.Repeat(words[n%5]+" ", 1+n%7) + words[(n/5)%5]
			_, _, _ = e.call(ctx, http.MethodPut, fmt.Sprintf("/%s/_doc/%d?refresh=true", index, n%6), toJSON(t, map[string]any{"body": text}))
		}
	})
	t.Cleanup(func() { cancel(); writing.Wait() })
	stable := map[string]float64{} // the scores of texts
	ordered, before := 0, 0.0
	for n := 0; n < 400 && ordered < 150; n++ {
		answer := a.must(t, http.MethodPost, "/"+index+"/_search", `{"query":{"match":{"body":"flow wing"}}}`)
		now := a.metric(t, rerankedMetric, rerankedResult)
		if now == before {
			continue // a document has changed in between
		}
		before = now
		ordered++
		var hits struct {
			Hits struct {
				Hits []struct {
					Score  float64               `json:"_score"`
					Source struct{ Body string } `json:"_source"`
				}
			}
		}
		if err := json.Unmarshal(answer, &hits); err != nil {
			t.Fatal(err)
		}
		for _, hit := range hits.Hits.Hits {
			if was, ok := stable[hit.Source.Body]; ok && was != hit.Score {
				t.Fatalf("%q has the scores %v and %v", hit.Source.Body, was, hit.Score)
			}
			stable[hit.Source.Body] = hit.Score
		}
	}
	if ordered < 20 || len(stable) < 10 {
		t.Errorf("%d searches with %d texts were reranked: too few to tell", ordered, len(stable))
	}
	t.Logf("%d searches were reranked, %d texts", ordered, len(stable))
}

// TestSoftModeLooksIntoFields compares several fields and kinds of fields.
func TestSoftModeLooksIntoFields(t *testing.T) {
	e, index, matrix := smallSoft(t)
	a := startAkin(t, softConfig(e, matrix))
	a.awaitMatrix(t, "s")
	for _, c := range []struct{ name, body, result string }{
		{"two fields", `{"query":{"multi_match":{"query":"flow","fields":["title^3","body"]}}}`, "reranked"},
		{"a field that no hit has", `{"query":{"multi_match":{"query":"flow","fields":["title","notes"]}}}`, "reranked"},
		{"a multi-field", `{"query":{"match":{"body.en":"flow"}}}`, "reranked"},
		// Elasticsearch 8 returns the terms of targets of copy_to, others do not.
		{"copied to", `{"query":{"match":{"copy":"flow"}}}`, "no_terms|reranked"},
		{"without neighbors", `{"query":{"match":{"body":"unheard flow"}}}`, "reranked"},
		{"nothing found", `{"query":{"match":{"body":"unheard"}}}`, "no_hits"},
		{"filters with it", `{"query":{"bool":{"must":[{"match":{"body":"flow"}}],"filter":[{"exists":{"field":"title"}}]}}}`, "reranked"},
	} {
		t.Run(c.name, func(t *testing.T) {
			counted := func() (n float64) {
				for result := range strings.SplitSeq(c.result, "|") {
					n += a.metric(t, rerankedMetric, `result="`+result+`"`)
				}
				return n
			}
			before := counted()
			answer := a.must(t, http.MethodPost, "/"+index+"/_search", c.body)
			if counted() != before+1 {
				t.Errorf("not counted as %s", c.result)
			}
			if strings.Contains(string(answer), "_seq_no") || strings.Contains(string(answer), "_version") {
				t.Errorf("%s has what was not asked for", answer)
			}
		})
	}
}

// TestSoftModePagesAreAllHits reads all pages of a search, in and behind the
// window and across its end. Together they have to be all hits, each once.
func TestSoftModePagesAreAllHits(t *testing.T) {
	e, index, matrix := smallSoft(t)
	words, rng := []string{"flow", "stream", "air", "wing", "blade"}, rand.New(rand.NewPCG(6, 5))
	var docs []document
	for i := range 400 {
		var text []string
		for range 1 + rng.IntN(5) {
			text = append(text, words[rng.IntN(len(words))])
		}
		for range rng.IntN(30) {
			text = append(text, "w"+strconv.Itoa(rng.IntN(50)))
		}
		docs = append(docs, document{"p" + strconv.Itoa(i), map[string]any{"body": strings.Join(text, " ")}})
	}
	e.index(t, index, docs)
	config := softConfig(e, matrix)
	profiles, _ := config["profiles"].(section)
	for _, scoring := range []string{"auto", "grouped", "linear"} {
		profiles[scoring] = section{"mode": "soft", "scoring": scoring, "max_doc_share": 1}
		profiles[scoring+"30"] = section{"mode": "soft", "scoring": scoring, "max_doc_share": 1, "rerank_window": 30}
	}
	profiles["blended30"] = section{"soft_weight": 0.2, "max_doc_share": 1, "rerank_window": 30}
	delete(profiles, "bm25")
	a := startAkin(t, config)
	a.awaitMatrix(t, "s")
	for profile := range profiles {
		t.Run(profile, func(t *testing.T) {
			for _, size := range []int{20, 7} {
				checkAllPages(t, a, "/"+index+"/_search?akin_profile="+profile, size)
			}
		})
	}
	if a.metric(t, rerankedMetric, rerankedResult) == 0 {
		t.Error("no page was reranked")
	}
}

// checkAllPages reads a search in pages of a size.
func checkAllPages(t *testing.T, a *akin, path string, size int) {
	t.Helper()
	seen := map[string]int{}
	total := size
	for from := 0; from < total; from += size {
		hits, err := a.search(t.Context(), path, pageBody("flow wing", from, size))
		if err != nil {
			t.Fatal(err)
		}
		total = hits.Hits.Total.Value
		if n := len(hits.Hits.Hits); n != min(size, total-from) {
			t.Errorf("%d hits behind %d of %d", n, from, total)
		}
		for _, id := range hits.ids() {
			seen[id]++
		}
	}
	if total < 200 || len(seen) != total {
		t.Errorf("pages of %d have %d different hits of %d", size, len(seen), total)
	}
}
