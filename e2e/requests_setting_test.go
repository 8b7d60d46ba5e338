package e2e

import (
	"bufio"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// The indices that the files of testdata/requests search.
const (
	shopIndex    = "akin-e2e-shop"    // one shard
	depotIndex   = "akin-e2e-depot"   // two shards
	archiveIndex = "akin-e2e-archive" // title is no text, and body is analyzed in another way
	// measuredIndex has weights and norms for the modes hard and soft.
	measuredIndex = "akin-e2e-measured"
)

const archiveDefinition = `{"settings":{"number_of_shards":1,"number_of_replicas":0},"mappings":{"properties":{
	"title":{"type":"keyword"},"body":{"type":"text","analyzer":"english"}}}}`

// measuredDefinition is what akin index advise says, without the linear
// similarity itself.
const measuredDefinition = `{"settings":{"number_of_shards":1,"number_of_replicas":0,"index.similarity.akin_linear":LINEAR},
	"mappings":{"dynamic":false,"properties":{
	"akin_norm":{"properties":{"title":{"type":"float","index":false},"body":{"type":"float","index":false}}},
	"akin_norm_weights":{"properties":{"title":{"type":"keyword"},"body":{"type":"keyword"}}},
	"title":{"type":"text","fields":{"akin":{"type":"text","similarity":"akin_linear","norms":false,"index_options":"freqs"}}},
	"body":{"type":"text","fields":{"akin":{"type":"text","similarity":"akin_linear","norms":false,"index_options":"freqs"}}},
	"tags":{"type":"keyword"},"price":{"type":"integer"}}}}`

// requestProfiles are what a file can name in "# profile".
var requestProfiles = section{
	"grouped":           section{"scoring": "grouped"},
	"saturated":         section{"scoring": "saturated"},
	"rescore":           section{"scoring": "saturated", "phase": "rescore"},
	"auto":              section{"scoring": "auto", "phase": "auto"},
	"same":              section{"matching": "same"},
	"same-saturated":    section{"matching": "same", "scoring": "saturated"},
	"same-grouped":      section{"matching": "same", "scoring": "grouped"},
	"related":           section{"highlight": "related"},
	"related-saturated": section{"highlight": "related", "scoring": "saturated"},
	"normalized":        section{"normalize_score": true},
	"phrases":           section{"phrases": true},
	"rescorers":         section{"rescore_queries": true},
	"few":               section{"max_added_terms": 3},
	"short":             section{"max_query_terms": 2},
	"disabled":          section{"enabled": false},
	"hard":              section{"mode": "hard"},
	"soft":              section{"mode": "soft", "soft_weight": 1},
	"segments":          section{"segments": []section{{"field": "body", "path": "parts", "text": "parts.name"}}},
	"segments-replace":  section{"segments": []section{{"field": "body", "path": "parts", "text": "parts.name", "combine": "replace"}}},
	"segments-first": section{"segments": []section{{
		"field": "body", "path": "parts", "text": "parts.name", "position": "parts.size", "aggregate": "first-heavy", "inner_hits": 1,
	}}},
	"segments-saturated": section{
		"segments": []section{{"field": "body", "path": "parts", "text": "parts.name", "aggregate": "avg"}}, "scoring": "saturated", "highlight": "related",
	},
	// Of one hit, so that the digits of scores do not matter.
	"feedback":      section{"feedback": section{"documents": 1, "terms": 3}, "max_doc_share": 0.5},
	"same-feedback": section{"feedback": section{"documents": 1, "terms": 3}, "max_doc_share": 0.5, "matching": "same"},
}

// A requestSetting is an engine with the indices of the corpus and akin in
// front of it, with something between them that writes down what arrives.
type requestSetting struct {
	engine  *engine
	akin    *akin
	record  *arrivals
	changed []string // files that only akin made the engine refuse
	pit     string
}

func newRequestSetting(t *testing.T, e *engine) *requestSetting {
	t.Helper()
	s := &requestSetting{engine: e, record: &arrivals{}}
	mapping := requestMapping(t, e)
	docs := requestDocuments(t, "documents.jsonl")
	e.makeIndex(t, shopIndex, toJSON(t, mapping))
	e.indexRouted(t, shopIndex, docs)
	if e.scripts {
		e.indexRouted(t, shopIndex, requestDocuments(t, "documents_modules.jsonl"))
	}
	mapping["settings"].(section)["number_of_shards"] = 2
	e.makeIndex(t, depotIndex, toJSON(t, mapping))
	e.indexRouted(t, depotIndex, docs)
	e.makeIndex(t, archiveIndex, archiveDefinition)
	e.index(t, archiveIndex, []document{{"a", section{"title": "red car", "body": "an old car"}}})
	weights := e.makeMeasured(t, docs)
	if e.scripts {
		e.must(t, http.MethodPut, "/_scripts/akin-e2e-by-title", storedTemplate)
		t.Cleanup(func() { e.dropIndex("_scripts/akin-e2e-by-title") })
	}

	between := httptest.NewServer(s.record.before(t, e.url))
	t.Cleanup(between.Close)
	matrix := filepath.Join(newDir(t, "matrix"), "main.akin")
	mustAkin(t, "matrix", "build", "--from-tsv", requestFixture("matrix.tsv"), "--out", matrix)
	s.akin = startAkin(t, section{
		"cluster": section{"urls": []string{between.URL}},
		"expansion": section{
			"budget": widePatience, "scoring": "linear", "phase": "query", "default_fields": []string{"body"}, "templates": true,
		},
		"profiles": requestProfiles,
		"matrices": []section{{"name": "main", "file": matrix, "fields": []string{
			"title", "body", "english", "note", "label", "cjk", "flag", "heading", "tags", "price", "parts.name", "synonyms", "grams", "review", "title.raw", "ghost",
		}}},
		"weights": []section{{"name": "weights", "file": weights, "indices": []string{measuredIndex}}},
	})
	s.akin.awaitMatrix(t, "main")
	s.akin.awaitWeights(t, "weights")
	return s
}

// awaitWeights waits until akin serves a version of the named weights.
func (a *akin) awaitWeights(t *testing.T, name string) {
	t.Helper()
	waitFor(t, 20*time.Second, "weights "+name, func() error {
		if a.metric(t, "akin_weights_info", `weights="`+name+`"`) != 1 {
			return errors.New("not served")
		}
		return nil
	})
}

// makeMeasured makes the index for the modes hard and soft, with the norms
// of its documents, and returns the file of the weights.
func (e *engine) makeMeasured(t *testing.T, docs []document) string {
	t.Helper()
	linear := `{"type":"BM25","k1":"10000","b":"0"}`
	if e.scripts {
		linear = `{"type":"scripted","script":{"source":"return query.boost * doc.freq;"}}`
	}
	e.makeIndex(t, measuredIndex, strings.Replace(measuredDefinition, "LINEAR", linear, 1))
	e.indexRouted(t, measuredIndex, docs)
	files := hardFiles{weights: filepath.Join(newDir(t, "weights"), "weights.akin")}
	e.freezeWeights(t, measuredIndex, files)
	mustAkin(t, "norms", "backfill", "--cluster", e.url, "--index", measuredIndex, "--field", "title", "--weights", files.weights)
	e.storeNorms(t, measuredIndex, files)
	return files.weights
}

// storedTemplate is a search template that the corpus names.
const storedTemplate = `{"script":{"lang":"mustache","source":"{\"query\":{\"match\":{\"title\":\"{{words}}\"}},\"size\":{{size}}}"}}`

func requestFixture(name string) string {
	return filepath.Join("testdata", "requests", "fixture", name)
}

// requestMapping returns the definition of the index, with what needs modules
// where the engine has them.
func requestMapping(t *testing.T, e *engine) section {
	t.Helper()
	plain, modules := readSection(t, "mapping.json"), readSection(t, "mapping_modules.json")
	if !e.scripts {
		return plain
	}
	maps.Copy(plain["settings"].(section), modules["settings"].(section))
	more := modules["mappings"].(section)["properties"].(section)
	maps.Copy(plain["mappings"].(section)["properties"].(section), more)
	return plain
}

func readSection(t *testing.T, name string) section {
	t.Helper()
	content, err := os.ReadFile(requestFixture(name))
	if err != nil {
		t.Fatal(err)
	}
	var s section
	if err := json.Unmarshal(content, &s); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return s
}

// requestDocuments reads documents, one a line, with their ids among the fields.
func requestDocuments(t *testing.T, name string) []document {
	t.Helper()
	file, err := os.Open(requestFixture(name))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var docs []document
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var fields section
		if err := json.Unmarshal(lines.Bytes(), &fields); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		id := fields["_id"].(string)
		delete(fields, "_id")
		docs = append(docs, document{id, fields})
	}
	return docs
}

// indexRouted is index for documents of which some have a routing.
func (c cluster) indexRouted(t *testing.T, index string, docs []document) {
	t.Helper()
	var body strings.Builder
	for _, d := range docs {
		action := section{"_id": d.id}
		if r, ok := d.fields["_routing"]; ok {
			action["routing"] = r
			delete(d.fields, "_routing")
		}
		body.WriteString(toJSON(t, section{"index": action}) + "\n" + toJSON(t, d.fields) + "\n")
	}
	answer := c.must(t, http.MethodPost, "/"+index+"/_bulk?refresh=true", body.String())
	if strings.Contains(string(answer), `"errors":true`) {
		t.Fatalf("bulk: %.2000s", answer)
	}
}

// fillIn puts the id of a point in time of the shop's index in the place of
// {{pit}}. The function that it returns undoes the replacement in a text.
func (s *requestSetting) fillIn(t *testing.T, f requestFile) (requestFile, func(string) string) {
	t.Helper()
	const place = "{{pit}}"
	if !strings.Contains(f.body, place) {
		return f, func(text string) string { return text }
	}
	if s.pit == "" {
		s.pit = s.engine.openPIT(t)
	}
	f.body = strings.ReplaceAll(f.body, place, s.pit)
	return f, func(text string) string { return strings.ReplaceAll(text, s.pit, place) }
}

// openPIT opens a point in time of the shop's index for as long as the test.
func (e *engine) openPIT(t *testing.T) string {
	t.Helper()
	path := "/" + shopIndex + "/_pit?keep_alive=5m"
	if e.family == "opensearch" {
		path = "/" + shopIndex + "/_search/point_in_time?keep_alive=5m"
	}
	var answer struct {
		ID    string
		PITID string `json:"pit_id"`
	}
	if err := json.Unmarshal(e.must(t, http.MethodPost, path, ""), &answer); err != nil {
		t.Fatal(err)
	}
	return answer.ID + answer.PITID
}

// requestMark is the X-Opaque-Id of the requests to write down; akin's own
// questions to the cluster do not have it.
const requestMark = "akin-e2e-corpus"

// arrivals are in front of an engine and record the marked requests.
type arrivals struct {
	mu   sync.Mutex
	seen []arrived
}

func (r *arrivals) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = nil
}

func (r *arrivals) taken() []arrived {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen
}

// before returns a handler that hands everything on to the engine.
func (r *arrivals) before(t *testing.T, engine string) http.Handler {
	t.Helper()
	target, err := url.Parse(engine)
	if err != nil {
		t.Fatal(err)
	}
	forward := &httputil.ReverseProxy{
		Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 16},
		Rewrite: func(pr *httputil.ProxyRequest) {
			pr.SetURL(target)
			pr.Out.URL.RawQuery = pr.In.URL.RawQuery
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, in *http.Request) {
		// akin renders templates, and asks for the version and for the first hits, in the client's name.
		prepares := in.URL.Path == "/" || strings.HasSuffix(in.URL.Path, "/_render/template") ||
			strings.Contains(in.URL.RawQuery, "hits.hits._primary_term")
		if in.Header.Get("X-Opaque-Id") == requestMark && !prepares {
			body := readAll(in)
			in.Body = http.NoBody
			if body != "" {
				in.Body = readCloser{strings.NewReader(body)}
			}
			r.mu.Lock()
			r.seen = append(r.seen, arrived{in.Method, in.URL.RequestURI(), body})
			r.mu.Unlock()
		}
		forward.ServeHTTP(w, in)
	})
}

// A readCloser is a body in memory.
type readCloser struct{ *strings.Reader }

// Close does nothing.
func (readCloser) Close() error { return nil }
