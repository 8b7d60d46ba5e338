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
	"testing"
	"time"

	"github.com/akin-search/akin/e2e/requests"
)

const archiveDefinition = `{"settings":{"number_of_shards":1,"number_of_replicas":0},"mappings":{"properties":{
	"title":{"type":"keyword"},"body":{"type":"text","analyzer":"english"}}}}`

// measuredDefinition is what docs/modes.md says, without the linear similarity
// itself.
const measuredDefinition = `{"settings":{"number_of_shards":1,"number_of_replicas":0,"index.similarity.akin_linear":LINEAR},
	"mappings":{"dynamic":false,"properties":{
	"akin_norm":{"properties":{"title":{"type":"float","index":false},"body":{"type":"float","index":false}}},
	"akin_norm_weights":{"properties":{"title":{"type":"keyword"},"body":{"type":"keyword"}}},
	"title":{"type":"text","fields":{"akin":{"type":"text","similarity":"akin_linear","norms":false,"index_options":"freqs"}}},
	"body":{"type":"text","fields":{"akin":{"type":"text","similarity":"akin_linear","norms":false,"index_options":"freqs"}}},
	"tags":{"type":"keyword"},"price":{"type":"integer"}}}}`

// A requestSetting is an engine with the indices of the corpus and akin in
// front of it, with something between them that writes down what arrives.
type requestSetting struct {
	engine   *engine
	akin     *akin
	arrivals requests.Arrivals
	recorder *requests.Recorder // nil where the engine's answers are not recorded
	weights  string             // their file
	changed  []string           // files that only akin made the engine refuse
	pit      string
}

func newRequestSetting(t *testing.T, e *engine) *requestSetting {
	t.Helper()
	s := &requestSetting{engine: e}
	mapping := requestMapping(t, e)
	docs := requestDocuments(t, "documents.jsonl")
	e.makeIndex(t, requests.Shop, toJSON(t, mapping))
	e.indexRouted(t, requests.Shop, docs)
	if e.scripts {
		e.indexRouted(t, requests.Shop, requestDocuments(t, "documents_modules.jsonl"))
	}
	mapping["settings"].(section)["number_of_shards"] = 2
	e.makeIndex(t, requests.Depot, toJSON(t, mapping))
	e.indexRouted(t, requests.Depot, docs)
	e.makeIndex(t, requests.Archive, archiveDefinition)
	e.index(t, requests.Archive, []document{{"a", section{"title": "red car", "body": "an old car"}}})
	s.weights = e.makeMeasured(t, docs)
	if e.scripts {
		e.must(t, http.MethodPut, "/_scripts/akin-e2e-by-title", storedTemplate)
		t.Cleanup(func() { e.dropIndex("_scripts/akin-e2e-by-title") })
	}

	forward := forwardTo(t, e.url)
	questions := forward
	if *update && requests.Records(e.name) {
		s.recorder = requests.NewRecorder(e.url, forward)
		questions = s.recorder
	}
	between := httptest.NewServer(s.arrivals.Before(forward, questions))
	t.Cleanup(between.Close)
	matrix := filepath.Join(newDir(t, "matrix"), "main.akin")
	mustAkin(t, "matrix", "build", "--from-tsv", requestFixture("matrix.tsv"), "--out", matrix)
	s.akin = startAkin(t, requests.Config(between.URL, matrix, s.weights))
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
	e.makeIndex(t, requests.Measured, strings.Replace(measuredDefinition, "LINEAR", linear, 1))
	e.indexRouted(t, requests.Measured, docs)
	files := hardFiles{weights: filepath.Join(newDir(t, "weights"), "weights.akin")}
	e.freezeWeights(t, requests.Measured, files)
	mustAkin(t, "norms", "backfill", "--cluster", e.url, "--index", requests.Measured, "--field", "title", "--weights", files.weights)
	e.storeNorms(t, requests.Measured, files)
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

// fillIn puts the id of a point in time of the shop's index in its place. The
// function that it returns undoes the replacement in a text.
func (s *requestSetting) fillIn(t *testing.T, f requests.File) (*requests.File, func(string) string) {
	t.Helper()
	if !strings.Contains(f.Body, requests.PIT) {
		return &f, func(text string) string { return text }
	}
	if s.pit == "" {
		s.pit = s.engine.openPIT(t)
	}
	f.Body = strings.ReplaceAll(f.Body, requests.PIT, s.pit)
	return &f, func(text string) string { return strings.ReplaceAll(text, s.pit, requests.PIT) }
}

// openPIT opens a point in time of the shop's index for as long as the test.
func (e *engine) openPIT(t *testing.T) string {
	t.Helper()
	path := "/" + requests.Shop + "/_pit?keep_alive=5m"
	if e.family == "opensearch" {
		path = "/" + requests.Shop + "/_search/point_in_time?keep_alive=5m"
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

// forwardTo returns a handler that hands everything on to an engine.
func forwardTo(t *testing.T, engine string) http.Handler {
	t.Helper()
	target, err := url.Parse(engine)
	if err != nil {
		t.Fatal(err)
	}
	return &httputil.ReverseProxy{
		Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 16},
		Rewrite: func(pr *httputil.ProxyRequest) {
			pr.SetURL(target)
			pr.Out.URL.RawQuery = pr.In.URL.RawQuery
		},
	}
}

// requestFiles reads the files of testdata/requests.
func requestFiles(t *testing.T) []requests.File {
	t.Helper()
	files, err := requests.Files(filepath.Join("testdata", "requests"), *update)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// writeRecording records what the engine answers to akin, where that is asked
// for and files are replayed by it.
func (s *requestSetting) writeRecording(t *testing.T) {
	t.Helper()
	if s.recorder == nil {
		return
	}
	if err := s.recorder.Write(t.Context(), requestFixture("recorded"), s.engine.name, s.pit, requestFixture("matrix.tsv"), s.weights); err != nil {
		t.Error(err)
	}
}
