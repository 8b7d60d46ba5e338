package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// advisedDocs are documents with a text in a field of an object.
func advisedDocs(n int) []document {
	words := []string{"running cars", "the rental of a car", "boats and boats", "of the", "renting houses"}
	docs := make([]document, n)
	for i := range docs {
		text := words[i%len(words)]
		docs[i] = document{strconv.Itoa(i), map[string]any{"text": map[string]any{"body": text}, "body": text}}
	}
	return docs
}

// An advice is what "akin index advise" said of a field.
type advice struct {
	commandResult

	engine *engine
	index  string
	field  string
	// weights is where the commands of the advice find the weights.
	weights string
}

// adviseOn runs the command. args are more flags of it.
func adviseOn(t *testing.T, e *engine, index, field, weights string, args ...string) advice {
	t.Helper()
	akinPath(t) // built before the command's time runs
	all := append([]string{"index", "advise", "--cluster", e.url, "--index", index, "--field", field}, args...)
	return advice{runAkin(t, all...), e, index, field, weights}
}

// wants checks that lines of the check, their spaces made one, are printed.
func (a advice) wants(t *testing.T, status int, rows ...string) {
	t.Helper()
	if a.status != status {
		t.Fatalf("status %d, want %d\n%s%s", a.status, status, a.stdout, a.stderr)
	}
	words := strings.Join(strings.Fields(a.stdout), " ")
	for _, row := range rows {
		if !strings.Contains(words, row) {
			t.Errorf("%q is not in\n%s", row, a.stdout)
		}
	}
}

// follow does all that is printed, in its order: it sends the requests as
// printed and runs the commands, except the check at the end.
func (a advice) follow(t *testing.T) {
	t.Helper()
	var request []string
	send := func() {
		if len(request) == 0 {
			return
		}
		method, path, _ := strings.Cut(strings.TrimSpace(request[0]), " ")
		a.send(t, method, path, strings.Join(request[1:], "\n"))
		request = nil
	}
	for line := range strings.SplitSeq(a.stdout, "\n") {
		command, isCommand := strings.CutPrefix(line, "# akin ")
		switch {
		case strings.HasPrefix(line, "POST /"), strings.HasPrefix(line, "PUT /"), len(request) > 0 && line != "":
			request = append(request, line)
		case isCommand && !strings.HasPrefix(command, "index advise"):
			send()
			mustAkin(t, strings.Fields(strings.ReplaceAll(command, "weights.akin", a.weights))...)
		default:
			send()
		}
	}
	send()
}

// followNew does all that is printed besides the body of a new index, which is
// called next: it creates that, sends the request that copies the documents, or
// where the engine comes without such docs, and runs the commands.
func (a advice) followNew(t *testing.T, next string, docs []document) {
	t.Helper()
	said := strings.NewReplacer("NAME", next, "weights.akin", a.weights).Replace(a.stderr)
	for line := range strings.Lines(said) {
		line = strings.TrimSpace(line)
		if command, ok := strings.CutPrefix(line, "akin "); ok {
			mustAkin(t, strings.Fields(command)...)
			continue
		}
		method, rest, _ := strings.Cut(line, " ")
		path, body, _ := strings.Cut(rest, " ")
		switch method {
		case http.MethodPut:
			if path != "/"+next {
				t.Fatalf("%s is to be created, want %s", path, next)
			}
			a.engine.makeIndex(t, next, a.stdout)
		case http.MethodPost:
			status, answer, err := a.engine.call(t.Context(), method, path+"?refresh=true", body)
			switch {
			case err != nil:
				t.Fatal(err)
			case strings.Contains(string(answer), "no handler found"), status == http.StatusMethodNotAllowed: // the name of an index there
				a.engine.index(t, next, docs)
			case status >= 300:
				t.Fatalf("%s: %d: %s", line, status, answer)
			}
		}
	}
}

// send makes a request of the advice. The engines that come without
// _update_by_query get the documents again in its place.
func (a advice) send(t *testing.T, method, path, body string) {
	t.Helper()
	status, answer, err := a.engine.call(t.Context(), method, path, body)
	switch {
	case err != nil:
		t.Fatal(err)
	case strings.Contains(path, "/_update_by_query") && strings.Contains(string(answer), "no handler found"):
		a.engine.rewriteAll(t, a.index)
	case status >= 300:
		t.Fatalf("%s %s: %d: %s\n%s", method, path, status, answer, body)
	}
}

// rewriteAll indexes every document of an index as it is.
func (e *engine) rewriteAll(t *testing.T, index string) {
	t.Helper()
	var hits struct {
		Hits struct {
			Hits []struct {
				ID     string         `json:"_id"`
				Source map[string]any `json:"_source"`
			}
		}
	}
	answer := e.must(t, http.MethodPost, "/"+index+"/_search", `{"size":1000}`)
	if err := json.Unmarshal(answer, &hits); err != nil {
		t.Fatal(err)
	}
	var docs []document
	for _, h := range hits.Hits.Hits {
		docs = append(docs, document{h.ID, h.Source})
	}
	e.index(t, index, docs)
}

// awaitReady checks until the index is ready: _update_by_query is not waited
// for.
func (a advice) awaitReady(t *testing.T, args ...string) {
	t.Helper()
	waitFor(t, 20*time.Second, "an index that is ready", func() error {
		if r := adviseOn(t, a.engine, a.index, a.field, a.weights, args...); r.status != 0 {
			return errors.New(r.stdout + r.stderr)
		}
		return nil
	})
}

// eachAdvised runs a test on each engine with the similarity that suits it, and
// on one with both.
func eachAdvised(t *testing.T, test func(t *testing.T, e *engine, scripted string)) {
	t.Helper()
	eachEngine(t, func(t *testing.T, e *engine) {
		choices := []string{"auto"}
		if e.name == qualityEngine {
			choices = append(choices, "no") // elsewhere that is the same, or has been tried
		}
		for _, scripted := range choices {
			t.Run("scripted "+scripted, func(t *testing.T) { test(t, e, scripted) })
		}
	})
}

func TestAdviceMakesANewIndex(t *testing.T) {
	t.Parallel()
	eachAdvised(t, func(t *testing.T, e *engine, scripted string) {
		const index = "advise-new"
		e.dropIndex(index)
		a := adviseOn(t, e, index, "text.body", "", "--new", "--analyzer", "english", "--scripted", scripted)
		a.wants(t, 0)
		if want := e.scripts && scripted == "auto"; strings.Contains(a.stdout, `"scripted"`) != want {
			t.Errorf("a script: %v, want %v\n%s", !want, want, a.stdout)
		}
		e.makeIndex(t, index, a.stdout)
		adviseOn(t, e, index, "text.body", "").wants(t, 1, "ok linear field text.body.akin similarity akin_linear", "MISSING norms no document has the field")
		e.index(t, index, advisedDocs(25))
		a.weights = filepath.Join(newDir(t, "weights"), "w.akin")
		for line := range strings.Lines(a.stderr) {
			if command, ok := strings.CutPrefix(strings.TrimSpace(line), "akin norms "); ok {
				mustAkin(t, strings.Fields("norms "+strings.ReplaceAll(command, "weights.akin", a.weights))...)
			}
		}
		ready := adviseOn(t, e, index, "text.body", "", "--weights", a.weights)
		ready.wants(t, 0, "ok text in text.body.akin all 25 documents", "ok norms all 25 documents", "note norms 5 documents have no term")
		// A write that does not pass through akin.
		e.index(t, index, advisedDocs(26)[24:])
		adviseOn(t, e, index, "text.body", "", "--weights", a.weights).wants(t, 1, "MISSING norms 2 of 26 documents have none")
	})
}

func TestAdviceMakesAnExistingIndexReady(t *testing.T) {
	t.Parallel()
	eachAdvised(t, func(t *testing.T, e *engine, scripted string) {
		const index = "advise-existing"
		e.makeIndex(t, index, `{"settings":{"number_of_shards":2,"number_of_replicas":0,"analysis":{"analyzer":{
			"own":{"type":"custom","tokenizer":"standard","filter":["lowercase","stop"]}}}},
			"mappings":{"dynamic":"strict","properties":{"body":{"type":"text"},"text":{"properties":{"body":{"type":"text",
			"analyzer":"own","search_analyzer":"simple","store":true,"fields":{"raw":{"type":"keyword","ignore_above":10},"std":{"type":"text"}}}}}}}}`)
		e.index(t, index, advisedDocs(25))
		dir := newDir(t, "weights")
		for _, field := range []string{"text.body", "text.body.std", "body"} { // a multi-field has none of its own
			a := adviseOn(t, e, index, field, filepath.Join(dir, field), "--scripted", scripted)
			a.wants(t, 1, "MISSING linear field", "MISSING akin_norm."+strings.ReplaceAll(field, ".", "__")+" not mapped", "MISSING norms")
			a.follow(t)
			a.awaitReady(t, "--weights", a.weights)
			if strings.Contains(a.stdout, "_close") != (field == "text.body") {
				t.Errorf("the index is closed for a similarity that is there, or not for one that is not:\n%s", a.stdout)
			}
		}
	})
}

func TestAdviceMakesAnIndexLikeAnother(t *testing.T) {
	t.Parallel()
	eachAdvised(t, func(t *testing.T, e *engine, scripted string) {
		const index, next = "advise-old", "advise-next"
		e.makeIndex(t, index, `{"settings":{"number_of_shards":2,"number_of_replicas":0,"refresh_interval":"7s","max_ngram_diff":4,"analysis":{
			"filter":{"few":{"type":"stop","stopwords":["few"]}},
			"analyzer":{"own":{"type":"custom","tokenizer":"standard","filter":["lowercase"]},"few":{"type":"custom","tokenizer":"standard","filter":["few"]}}},
			"similarity":{"akin_linear":{"type":"BM25","k1":1.2}}},
			"mappings":{"properties":{"body":{"type":"text","analyzer":"own","fields":{"akin":{"type":"text"}}},
			"akin_norm":{"properties":{"body":{"type":"long"}}}}}}`)
		adviseOn(t, e, index, "body", "").wants(t, 1, "WRONG akin_norm.body mapped as long", "cannot be made ready")
		a := adviseOn(t, e, index, "body", filepath.Join(newDir(t, "weights"), "w.akin"), "--new", "--scripted", scripted)
		a.wants(t, 0)
		e.index(t, index, advisedDocs(10)) // which is not ready itself
		a.followNew(t, next, advisedDocs(10))
		adviseOn(t, e, next, "body", a.weights, "--weights", a.weights).wants(t, 0,
			"ok linear field body.akin", "ok akin_norm.body float", "analyzer own", "ok norms all 10 documents")
	})
}

// TestAdviceMendsWhatIsWrong starts from indices that have all that is needed,
// but wrong.
func TestAdviceMendsWhatIsWrong(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		similarity, multi string
		rows              []string
		closes            bool
	}{
		"k1 of 1.2": {
			`{"type":"BM25","k1":1.2,"b":0.5,"discount_overlaps":true}`, `,"analyzer":"english"`,
			[]string{"MISSING linear field", "BM25 with k1 1.2 and b 0.5", "ok norms all 10 documents", "ok text in body.akin"},
			true,
		},
		"another analyzer": {
			`{"type":"BM25","k1":10000,"b":0}`, ``,
			[]string{"MISSING linear field", `its analyzer is "default", that of the field is "english"`},
			false,
		},
		"no frequencies": {
			`{"type":"BM25","k1":10000,"b":0}`, `,"analyzer":"english","index_options":"docs"`,
			[]string{"MISSING linear field", "index_options"},
			false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			eachAdvised(t, func(t *testing.T, e *engine, scripted string) {
				const index = "advise-wrong"
				e.makeIndex(t, index, `{"settings":{"number_of_shards":1,"number_of_replicas":0,"similarity":{"akin_linear":`+test.similarity+`}},
					"mappings":{"properties":{"body":{"type":"text","analyzer":"english","fields":{"akin":{"type":"text","similarity":"akin_linear"`+test.multi+`}}},
					"akin_norm":{"properties":{"body":{"type":"float","index":false}}},"akin_norm_weights":{"properties":{"body":{"type":"keyword"}}}}}}`)
				e.index(t, index, advisedDocs(10))
				weights := filepath.Join(newDir(t, "weights"), "w.akin")
				flags := []string{"--cluster", e.url, "--index", index, "--field", "body"}
				mustAkin(t, append([]string{"norms", "snapshot", "--out", weights}, flags...)...)
				mustAkin(t, append([]string{"norms", "backfill", "--weights", weights}, flags...)...)
				a := adviseOn(t, e, index, "body", weights, "--weights", weights, "--scripted", scripted)
				a.wants(t, 1, test.rows...)
				if strings.Contains(a.stdout, "_close") != test.closes || strings.Contains(a.stdout, "norms backfill") {
					t.Errorf("more or less is advised than is needed:\n%s", a.stdout)
				}
				a.follow(t)
				a.awaitReady(t, "--weights", weights)
			})
		})
	}
}

// TestHalfFilledFieldIsFilled adds the field that scores linearly to an index
// whose documents have their norms, and has some of them written again.
func TestHalfFilledFieldIsFilled(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engine) {
		const index = "advise-half"
		const stored = `"akin_norm":{"properties":{"body":{"type":"float","index":false}}},"akin_norm_weights":{"properties":{"body":{"type":"keyword"}}}`
		e.makeIndex(t, index, `{"settings":{"number_of_shards":1,"number_of_replicas":0,"similarity":{"akin_linear":{"type":"BM25","k1":20000,"b":0}}},
			"mappings":{"properties":{"body":{"type":"text"},`+stored+`}}}`)
		docs := advisedDocs(10)
		for i := range docs {
			docs[i].fields["akin_norm"] = map[string]any{"body": i + 1}
			docs[i].fields["akin_norm_weights"] = map[string]any{"body": "0123456789abcdef"}
		}
		e.index(t, index, docs)
		e.must(t, http.MethodPut, "/"+index+"/_mapping", `{"properties":{"body":{"type":"text","fields":{"akin":{"type":"text","similarity":"akin_linear","norms":false}}}}}`)
		e.index(t, index, docs[:6])
		a := adviseOn(t, e, index, "body", "")
		a.wants(t, 1, "note k1 20000", "MISSING text in body.akin 4 of 10 documents", "ok norms all 10 documents, by the weights 0123456789abcdef (10)")
		if n := strings.Count(a.stdout, "POST /"); n != 1 {
			t.Errorf("%d requests, want only _update_by_query:\n%s", n, a.stdout)
		}
		a.follow(t)
		a.awaitReady(t)
		docs[3].fields["akin_norm_weights"] = map[string]any{"body": "fedcba9876543210"}
		e.index(t, index, docs[3:4])
		mixed := adviseOn(t, e, index, "body", "")
		mixed.wants(t, 1, fmt.Sprintf("WRONG norms not all are by the same weights: %s (9), %s (1)", "0123456789abcdef", "fedcba9876543210"),
			"norms backfill --cluster "+e.url+" --index advise-half --field body --weights FILE")
		if strings.Contains(mixed.stdout, "akin norms snapshot") {
			t.Errorf("a third kind of weights is advised:\n%s", mixed.stdout)
		}
	})
}
