package e2e

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/requests"
)

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
	e.index(t, requests.Shop, docs)
	if e.scripts {
		e.index(t, requests.Shop, requestDocuments(t, "documents_modules.jsonl"))
	}
	mapping["settings"].(section)["number_of_shards"] = 2
	e.makeIndex(t, requests.Depot, toJSON(t, mapping))
	e.index(t, requests.Depot, docs)
	e.makeIndex(t, requests.Archive, oneShard(`"title":{"type":"keyword"},"body":{"type":"text","analyzer":"english"}`))
	e.index(t, requests.Archive, []document{{"a", section{"title": "red car", "body": "an old car"}}})
	s.weights = e.makeMeasured(t, docs)
	if e.scripts {
		e.must(t, http.MethodPut, "/_scripts/akin-e2e-by-title", storedTemplate)
		t.Cleanup(func() { e.dropIndex("_scripts/akin-e2e-by-title") })
	}

	forward := http.Handler(forwardTo(t, e.url))
	questions := forward
	if *update && requests.Records(e.name) {
		s.recorder = requests.NewRecorder(e.url, forward)
		questions = s.recorder
	}
	between := httptest.NewServer(s.arrivals.Before(forward, questions))
	t.Cleanup(between.Close)
	s.akin = setup(t, e, requests.Config(between.URL, build(t, "--from-tsv", requestFixture("matrix.tsv")), s.weights))
	return s
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
	e.index(t, requests.Measured, docs)
	weights := e.freezeWeights(t, requests.Measured, "body")
	for _, field := range []string{"title", "body"} {
		e.storeNorms(t, requests.Measured, field, weights, "")
	}
	return weights
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
	var s section
	decode(t, []byte(readFile(t, requestFixture(name))), &s)
	return s
}

// requestDocuments reads documents, one a line, with their ids among the fields.
func requestDocuments(t *testing.T, name string) []document {
	t.Helper()
	var docs []document
	for line := range strings.Lines(readFile(t, requestFixture(name))) {
		var fields section
		decode(t, []byte(line), &fields)
		id := fields["_id"].(string)
		delete(fields, "_id")
		docs = append(docs, document{id, fields})
	}
	return docs
}

// fillIn puts the id of a point in time of the shop's index in its place. The
// function that it returns undoes the replacement in a text.
func (s *requestSetting) fillIn(t *testing.T, f requests.File) (*requests.File, func(string) string) {
	t.Helper()
	if !strings.Contains(f.Body, requests.PIT) {
		return &f, func(text string) string { return text }
	}
	if s.pit == "" {
		s.pit = openPoint(t, s.engine, s.engine.cluster, requests.Shop)
	}
	f.Body = strings.ReplaceAll(f.Body, requests.PIT, s.pit)
	return &f, func(text string) string { return strings.ReplaceAll(text, s.pit, requests.PIT) }
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
