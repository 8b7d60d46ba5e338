package e2e

import (
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// The fixture of the tests that look at single searches: an index in which
// "car" and "boat" have related words, and two matrices that disagree on
// which. Document ids are the words of the document, joined by a hyphen.
const relatedIndex = "akin-e2e-related"

const relatedDefinition = `{"settings":{"number_of_shards":1,"number_of_replicas":0},
	"mappings":{"properties":{"body":{"type":"text"},"title":{"type":"text"},"n":{"type":"integer"},
		"parts":{"type":"nested","properties":{"body":{"type":"text"}}}}}}`

// Matrix A relates car to automobile and boat to ship; matrix B relates car
// to lorry and boat to canoe.
const (
	vectorsA = `car 1 0 0 0 0 0
automobile 0.9 0.1 0 0 0 0
boat 0 0 1 0 0 0
ship 0 0 0.9 0.1 0 0
lorry 0 0 0 0 1 0
canoe 0 0 0 0 0 1
`
	vectorsB = `car 1 0 0 0 0 0
lorry 0.9 0.1 0 0 0 0
boat 0 0 1 0 0 0
canoe 0 0 0.9 0.1 0 0
automobile 0 0 0 0 1 0
ship 0 0 0 0 0 1
`
)

// relatedDocuments are the six single words, some in pairs, and enough others
// for an added term to be as rare as it has to be.
func relatedDocuments() []document {
	texts := []string{
		"car", "car red", "car automobile", "automobile", "lorry", "boat", "boat blue", "boat ship", "ship", "canoe",
	}
	for i := range 50 {
		texts = append(texts, fmt.Sprintf("filler %d", i))
	}
	docs := make([]document, 0, len(texts))
	for i, text := range texts {
		docs = append(docs, document{
			strings.ReplaceAll(text, " ", "-"),
			map[string]any{"body": text, "title": text, "n": i, "parts": []section{{"body": text}}},
		})
	}
	return docs
}

// makeRelated makes the index of the fixture on e. Tests that run at the same
// time share it, so that only those that run by themselves may change it.
func makeRelated(t *testing.T, e *engine) {
	t.Helper()
	e.shareIndex(t, relatedIndex, func() {
		e.remakeIndex(t, relatedIndex, relatedDefinition)
		e.index(t, relatedIndex, relatedDocuments())
	})
}

// relatedFiles are the files of matrices by their vectors.
var relatedFiles sync.Map

// relatedFile returns the file of the matrix of the vectors, which is built
// once.
func relatedFile(t *testing.T, vectors string) string {
	t.Helper()
	if file, built := relatedFiles.Load(vectors); built {
		return fmt.Sprint(file)
	}
	in := writeFile(t, "vectors.txt", vectors)
	out := filepath.Join(filepath.Dir(in), "matrix.akin")
	mustAkin(t, "matrix", "build", "--from-vectors", in, "--out", out)
	relatedFiles.Store(vectors, out)
	return out
}

// pushMatrix pushes a matrix file, makes it active and returns the version.
func pushMatrix(t *testing.T, redis *redisServer, name, file string) string {
	t.Helper()
	return strings.TrimSpace(mustAkin(t, "matrix", "push", "--redis", redis.url, "--name", name, "--activate", file))
}

// widePatience is a budget that a busy machine does not exceed.
const widePatience = "10s"

// serveRelated starts akin before e with the matrix of a file for all
// indices and fields. Keys of expansion may be overridden.
func serveRelated(t *testing.T, e *engine, file string, expansion section, fields ...string) *akin {
	t.Helper()
	options := section{"budget": widePatience}
	maps.Copy(options, expansion)
	matrix := section{"name": "main", "file": file}
	if fields != nil {
		matrix["fields"] = fields
	}
	a := startAkin(t, section{
		"cluster":   section{"urls": []string{e.url}},
		"expansion": options,
		"matrices":  []section{matrix},
	})
	a.awaitMatrix(t, "main")
	return a
}

// relatedSearch is a search for words in body.
func relatedSearch(words string) string {
	return `{"query":{"match":{"body":` + quote(words) + `}},"size":100,"_source":false}`
}

const relatedPath = "/" + relatedIndex + "/_search"

// searchRelated searches the index of the fixture, which has to succeed.
func (c cluster) searchRelated(t *testing.T, body string) hitList {
	t.Helper()
	hits, err := c.search(t.Context(), relatedPath, body)
	if err != nil {
		t.Fatal(err)
	}
	return hits
}

// sortedIDs returns the ids of the hits in alphabetical order.
func sortedIDs(h hitList) []string {
	ids := h.ids()
	slices.Sort(ids)
	return ids
}

// relatedQueries have "car" in every kind of clause that is expanded.
var relatedQueries = []struct{ name, query string }{
	{"match", `{"match":{"body":"car"}}`},
	{"match with options", `{"match":{"body":{"query":"car boat","operator":"or","boost":2}}}`},
	{"match and", `{"match":{"body":{"query":"car red","operator":"and"}}}`},
	{"multi_match best_fields", `{"multi_match":{"query":"car","fields":["body^2","title"]}}`},
	{"multi_match most_fields", `{"multi_match":{"query":"car","fields":["body","title"],"type":"most_fields"}}`},
	{"bool must", `{"bool":{"must":[{"match":{"body":"car"}}],"filter":[{"range":{"n":{"lt":40}}}]}}`},
	{"bool should", `{"bool":{"should":[{"match":{"body":"car"}},{"match":{"title":"boat"}}]}}`},
	{"bool must_not keeps out", `{"bool":{"must":{"match":{"body":"car"}},"must_not":[{"match":{"body":"red"}}]}}`},
	{"dis_max", `{"dis_max":{"queries":[{"match":{"body":"car"}},{"match":{"title":"car"}}],"tie_breaker":0.3}}`},
	{"nested", `{"nested":{"path":"parts","query":{"match":{"parts.body":"car"}},"score_mode":"max"}}`},
	{"function_score", `{"function_score":{"query":{"match":{"body":"car"}},"weight":2}}`},
}

// relatedScorings are the settings of scoring that an engine is tried with.
func relatedScorings(e *engine) []string {
	if !e.scripts {
		return []string{"auto", "linear"}
	}
	return []string{"auto", "linear", "grouped"}
}

func TestWidenFindsDocumentsWithRelatedWords(t *testing.T) {
	file := relatedFile(t, vectorsA)
	eachEngine(t, func(t *testing.T, e *engine) {
		makeRelated(t, e)
		for _, scoring := range relatedScorings(e) {
			a := serveRelated(t, e, file, section{"scoring": scoring})
			for _, q := range relatedQueries {
				t.Run(scoring+" "+q.name, func(t *testing.T) { checkWidened(t, e, a, q.query) })
			}
		}
	})
}

// checkWidened compares a search through akin with the direct one: nothing is
// lost, and a document with only a related word comes in, below every
// document with the original word as well as the related one.
func checkWidened(t *testing.T, e *engine, a *akin, query string) {
	t.Helper()
	body := `{"size":100,"query":` + query + `}`
	before, through := e.searchRelated(t, body), a.searchRelated(t, body)
	ids := through.ids()
	for _, id := range before.ids() {
		if !slices.Contains(ids, id) {
			t.Errorf("lost %s: directly %v, through akin %v", id, before.ids(), ids)
		}
	}
	if strings.Contains(query, `"and"`) {
		return // both words are asked for, and no document has automobile and red
	}
	both, related := slices.Index(ids, "car-automobile"), slices.Index(ids, "automobile")
	if related < 0 || both < 0 || both > related {
		t.Errorf("want car-automobile before automobile: %v", ids)
	}
	if slices.Contains(ids, "lorry") || slices.Contains(ids, "canoe") {
		t.Errorf("unrelated documents are found: %v", ids)
	}
	if got, want := through.Hits.Total.Value, len(ids); got != want {
		t.Errorf("total = %d, hits = %d", got, want)
	}
}

func TestSameKeepsTheSetOfHitsAndChangesTheirOrder(t *testing.T) {
	file := relatedFile(t, vectorsA)
	eachEngine(t, func(t *testing.T, e *engine) {
		makeRelated(t, e)
		for _, scoring := range relatedScorings(e) {
			a := serveRelated(t, e, file, section{"scoring": scoring, "matching": "same"})
			for _, q := range relatedQueries {
				t.Run(scoring+" "+q.name, func(t *testing.T) { checkSameSet(t, e, a, q.query) })
			}
			rewritten := a.metric(t, requestsMetric, rewrittenOutcome)
			if rewritten < float64(len(relatedQueries)-1) { // "match and" may stay as it is
				t.Errorf("%s: %v of %d searches were rewritten", scoring, rewritten, len(relatedQueries))
			}
		}
	})
}

// checkSameSet compares hits, total and an aggregation of a search through
// akin with the direct one, and looks for the document with both words first.
func checkSameSet(t *testing.T, e *engine, a *akin, query string) {
	t.Helper()
	body := `{"size":100,"query":` + query + `}`
	before, through := e.searchRelated(t, body), a.searchRelated(t, body)
	if want, got := sortedIDs(before), sortedIDs(through); !slices.Equal(want, got) {
		t.Errorf("hits directly %v, through akin %v", want, got)
	}
	if want, got := before.Hits.Total.Value, through.Hits.Total.Value; got != want {
		t.Errorf("total directly %d, through akin %d", want, got)
	}
	ids := through.ids()
	both, red := slices.Index(ids, "car-automobile"), slices.Index(ids, "car-red")
	if both >= 0 && red >= 0 && both > red {
		t.Errorf("want car-automobile before car-red, which is as long: %v", ids)
	}
	const aggregations = `"aggs":{"sum":{"sum":{"field":"n"}},"count":{"value_count":{"field":"n"}}}`
	counted := `{"size":1,"query":` + query + `,` + aggregations + `}`
	path := relatedPath + "?filter_path=aggregations,hits.total"
	want, got := e.must(t, http.MethodPost, path, counted), a.must(t, http.MethodPost, path, counted)
	if string(want) != string(got) {
		t.Errorf("aggregations directly %s, through akin %s", want, got)
	}
}

// TestEveryWayToSendASearchIsExpanded sends the same search in every way that
// is read, and in one that asks for the plain answer.
func TestEveryWayToSendASearchIsExpanded(t *testing.T) {
	file := relatedFile(t, vectorsA)
	body := relatedSearch("car")
	post := func(target string) rawRequest {
		return rawRequest{method: "POST", target: target, header: []string{jsonType}, body: body}
	}
	requests := map[string]rawRequest{
		"POST":             post(relatedPath),
		"GET with a body":  {method: "GET", target: relatedPath, header: []string{jsonType}, body: body},
		"chunked":          {method: "POST", target: relatedPath, header: []string{jsonType}, body: body, chunked: true},
		"gzip":             {method: "POST", target: relatedPath, header: []string{jsonType, "Content-Encoding: gzip"}, body: gzipped(t, body)},
		"gzip answer":      {method: "POST", target: relatedPath, header: []string{jsonType, "Accept-Encoding: gzip"}, body: body},
		"charset":          {method: "POST", target: relatedPath, header: []string{jsonType + "; charset=UTF-8"}, body: body},
		"q":                {method: "GET", target: relatedPath + "?q=car&df=body&size=100"},
		"q, default field": {method: "GET", target: relatedPath + "?size=100&q=car"},
		"q with POST":      {method: "POST", target: relatedPath + "?df=body&size=100&q=car"},
		"escaped index":    post("/%61kin-e2e-related/_search"),
		"wildcard":         post("/akin-e2e-rel*/_search"),
		"date math":        post("/%3Cakin-e2e-related%3E/_search"),
		"list":             post("/" + relatedIndex + ",akin-e2e-rel*/_search"),
		"alias":            post("/akin-e2e-alias/_search"),
		"trailing slash":   post(relatedPath + "/"),
		"scroll":           post(relatedPath + "?scroll=1m"),
	}
	eachEngine(t, func(t *testing.T, e *engine) {
		makeRelated(t, e)
		e.must(t, "PUT", "/"+relatedIndex+"/_alias/akin-e2e-alias", "")
		a := serveRelated(t, e, file, section{"default_fields": []string{"body"}})
		for name, r := range requests {
			t.Run(name, func(t *testing.T) {
				before := a.metric(t, requestsMetric, rewrittenOutcome)
				answer := exchange(t, a.url, r)
				if got := answer.stable(t); answer.status != "200 OK" || !strings.Contains(got, `"_id":"automobile"`) {
					t.Errorf("%s %s: %s", r.method, r.target, got)
				}
				if n := a.metric(t, requestsMetric, rewrittenOutcome) - before; n != 1 {
					t.Errorf("not counted as rewritten:\n%s", requestMetrics(t, a))
				}
			})
		}
		off := post(relatedPath)
		off.header = append(off.header, "X-Akin: off")
		if got := exchange(t, a.url, off).body; strings.Contains(got, `"_id":"automobile"`) {
			t.Errorf("expanded in spite of X-Akin: off: %s", got)
		}
	})
}
