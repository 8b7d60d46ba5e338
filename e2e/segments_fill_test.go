package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// filledDefinition is of an index without what segments are stored in.
const filledDefinition = `{"settings":{"number_of_shards":1,"number_of_replicas":0,"refresh_interval":"-1"},"mappings":{"properties":{
	"text":{"properties":{"body":{"type":"text","analyzer":"english","similarity":"boolean","fields":{"std":{"type":"text"}}}}},
	"flat":{"properties":{"text":{"type":"text"}}}}}}`

// A filledDoc is what a document has of segments, with where it was written.
type filledDoc struct {
	SeqNo  int `json:"_seq_no"`
	Source struct {
		Parts struct {
			Segments []struct {
				Text     string
				Position int
				Share    float32
			}
			By string `json:"segments_by"`
		}
	} `json:"_source"`
}

// A fillFixture is an index with texts whose segments go to parts.segments.
type fillFixture struct {
	*engine
	t     *testing.T
	index string
}

// longTexts are as people write them, and as programs do.
func longTexts() map[string]any {
	return map[string]any{
		"prose":    "A first paragraph. It has two sentences.\n\nA second one\nin two lines.\n \n\nThe third.",
		"spaces":   " \t\u00a0one\u2003two\u0085three\u2028four\u2029five\r\n\r\nsix\rseven\r\reight\v\fnine\u3000\u200bten ",
		"scripts":  "Čeština má háčky.\n\nこれは文です。これも。\n\n😀 emoji 👩‍👩‍👧 family",
		"list":     []any{"one two three four", "", []any{"five\n\nsix"}, 7.5, true, nil},
		"empty":    "",
		"blank":    "\n \n",
		"one":      "word",
		"shares":   strings.Repeat("a b c\n\nd ", 7),
		"long":     strings.Repeat("many words in lines\n and\n\n ", 1_500),
		"too many": strings.Repeat("x y\n\n", 10_001),
	}
}

// makeFilled makes an index with longTexts, some below a name with a dot.
func makeFilled(t *testing.T, e *engine, index string) *fillFixture {
	t.Helper()
	f := &fillFixture{e, t, index}
	e.makeIndex(t, index, filledDefinition)
	var docs []document
	for id, text := range longTexts() {
		fields := section{"text": section{"body": text}}
		if len(id)%2 == 0 {
			fields = section{"text.body": text}
		}
		docs = append(docs, document{id, fields})
	}
	docs = append(docs, document{"without", section{"other": "x"}})
	e.index(t, index, docs)
	return f
}

// command returns the arguments of a backfill of the index.
func (f *fillFixture) command(cluster string, args ...string) []string {
	return append([]string{"segments", "backfill", "--cluster", cluster, "--index", f.index, "--field", "text.body", "--path", "parts.segments"}, args...)
}

// backfill runs one, and returns what it says.
func (f *fillFixture) backfill(status int, args ...string) string {
	f.t.Helper()
	r := runAkin(f.t, f.command(f.url, args...)...)
	if r.status != status {
		f.t.Errorf("%q: exit status %d, want %d\n%s", args, r.status, status, r.stderr)
	}
	return r.stderr
}

// putMapping puts the mapping that a backfill without it prints.
func (f *fillFixture) putMapping() {
	f.t.Helper()
	said := f.backfill(1)
	_, body, found := strings.Cut(said, "PUT /"+f.index+"/_mapping\n")
	if !found || !strings.Contains(body, `"analyzer":"english"`) {
		f.t.Fatalf("no mapping in\n%s", said)
	}
	f.must(f.t, http.MethodPut, "/"+f.index+"/_mapping", body)
}

// stored returns the documents by id.
func (f *fillFixture) stored() map[string]filledDoc {
	f.t.Helper()
	f.must(f.t, http.MethodPost, "/"+f.index+"/_refresh", "")
	var answer struct {
		Hits struct {
			Hits []struct {
				ID string `json:"_id"`
				filledDoc
			}
		}
	}
	decode(f.t, f.must(f.t, http.MethodPost, "/"+f.index+"/_search", `{"size":5000,"seq_no_primary_term":true,"_source":["parts"]}`), &answer)
	docs := map[string]filledDoc{}
	for _, h := range answer.Hits.Hits {
		docs[h.ID] = h.filledDoc
	}
	return docs
}

// texts returns those of the segments of a document.
func (d *filledDoc) texts() (texts []string) {
	for i, s := range d.Source.Parts.Segments {
		if texts = append(texts, s.Text); s.Position != i+1 || s.Share <= 0 || s.Share > 1 {
			texts = append(texts, fmt.Sprintf("WRONG: %+v", s))
		}
	}
	return texts
}

func TestSegmentsAreFilled(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, e *engine) {
		f := makeFilled(t, e, "akin-e2e-filled")
		f.putMapping()
		said := f.backfill(1)
		for _, want := range []string{`document "too many" of index "akin-e2e-filled"`, "too many segments: 10001, of 10000", "index.mapping.nested_objects.limit", "9 documents written, 2 of them without text", "1 failed"} {
			if !strings.Contains(said, want) {
				t.Errorf("%q is not in\n%s", want, said)
			}
		}
		docs := f.stored()
		for id, want := range map[string][]string{
			"prose": {"A first paragraph. It has two sentences.", "A second one\nin two lines.", "The third."},
			"list":  {"one two three four", "five", "six", "7.5", "true"},
			"blank": nil, "too many": nil, "without": nil,
		} {
			d := docs[id]
			if got := d.texts(); !slices.Equal(got, want) {
				t.Errorf("%s: %q, want %q", id, got, want)
			}
		}
		t.Run("again", func(t *testing.T) { f.with(t).testSettled(docs) })
		t.Run("a nested search", func(t *testing.T) {
			hits, err := e.search(t.Context(), "/"+f.index+"/_search",
				`{"query":{"nested":{"path":"parts.segments","query":{"match":{"parts.segments.text":"paragraphs"}}}}}`)
			if err != nil || !slices.Equal(hits.ids(), []string{"prose"}) { // by the analyzer of the text
				t.Errorf("%q, %v", hits.ids(), err)
			}
		})
		t.Run("a raised limit", func(t *testing.T) { f.with(t).testRaisedLimit() })
		t.Run("texts that changed", func(t *testing.T) { f.with(t).testChanged() })
		t.Run("not nested", func(t *testing.T) {
			r := runAkin(t, "segments", "backfill", "--cluster", e.url, "--index", f.index, "--field", "text.body", "--path", "flat")
			if r.status != 1 || !strings.Contains(r.stderr, "flat is mapped as object, and segments need a field that is nested") {
				t.Errorf("status %d\n%s", r.status, r.stderr)
			}
		})
	})
}

// with returns the fixture for a sub-test.
func (f *fillFixture) with(t *testing.T) *fillFixture {
	t.Helper()
	return &fillFixture{f.engine, t, f.index}
}

// testSettled checks that another backfill writes nothing.
func (f *fillFixture) testSettled(docs map[string]filledDoc) {
	for _, args := range [][]string{nil, {"--all"}, {"--dry-run"}} {
		status := 1 // as long as a document fails
		if slices.Contains(args, "--dry-run") {
			status = 0
		}
		said := f.backfill(status, args...)
		if status == 1 && !strings.Contains(said, "\n0 documents written") {
			f.t.Errorf("another backfill says\n%s", said)
		}
		if len(args) == 0 || status == 0 { // the one that fails
			f.checkMissing(said, 1)
		}
		for id, d := range f.stored() {
			if d.SeqNo != docs[id].SeqNo {
				f.t.Fatalf("%v wrote document %s again", args, id)
			}
		}
	}
}

// checkMissing checks how many documents a backfill says that there are to do.
func (f *fillFixture) checkMissing(said string, want int) {
	f.t.Helper()
	if !strings.Contains(said, fmt.Sprintf(": %d documents to do", want)) {
		f.t.Errorf("want %d documents to do:\n%s", want, said)
	}
}

func (f *fillFixture) testRaisedLimit() {
	f.must(f.t, http.MethodPut, "/"+f.index+"/_settings", `{"index.mapping.nested_objects.limit":10001}`)
	f.backfill(0)
	d := f.stored()["too many"]
	if n := len(d.texts()); n != 10_001 {
		f.t.Errorf("%d segments", n)
	}
}

// testChanged changes a text by a partial update, and cuts in other ways.
func (f *fillFixture) testChanged() {
	f.must(f.t, http.MethodDelete, "/"+f.index+"/_doc/too%20many", "")
	f.must(f.t, http.MethodPost, "/"+f.index+"/_update/prose", `{"doc":{"text":{"body":"Changed. In part."}}}`)
	f.must(f.t, http.MethodPost, "/"+f.index+"/_update/blank", `{"doc":{"text":{"body":"Not blank."}}}`)
	f.must(f.t, http.MethodPost, "/"+f.index+"/_update/scripts", `{"doc":{"text":{"body":" "}}}`)
	f.must(f.t, http.MethodPost, "/"+f.index+"/_update/one", `{"doc":{"parts":{"segments":[]}}}`)
	f.checkMissing(f.backfill(0), 1) // the one whose segments are gone
	f.must(f.t, http.MethodPost, "/"+f.index+"/_update/shares", `{"doc":{"text.body":null}}`)
	for _, tt := range []struct {
		args []string
		want []string
	}{
		{[]string{"--all"}, []string{"Changed. In part."}},
		{[]string{"--by", "sentences"}, []string{"Changed.", "In part."}},
		{[]string{"--by", "windows:2:1"}, []string{"Changed. In", "In part."}},
	} {
		f.backfill(0, tt.args...)
		docs := f.stored()
		d := docs["prose"]
		if got := d.texts(); !slices.Equal(got, tt.want) {
			f.t.Errorf("%v: %q, want %q", tt.args, got, tt.want)
		}
		f.checkMissing(f.backfill(0, append(slices.DeleteFunc(tt.args, func(arg string) bool { return arg == "--all" }), "--dry-run")...), 0)
		filled, blanked, gone := docs["blank"], docs["scripts"], docs["one"]
		if len(filled.texts()) == 0 || len(blanked.texts()) != 0 || len(gone.texts()) != 1 {
			f.t.Errorf("%v: %q of what was blank, %q of what is, %q of what was lost", tt.args, filled.texts(), blanked.texts(), gone.texts())
		}
	}
	if d := f.stored()["shares"]; len(d.texts()) != 0 {
		f.t.Errorf("without a text %q", d.texts())
	}
}

func TestFillingOfSegmentsIsInterrupted(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, e *engine) {
		f := makeFilled(t, e, "akin-e2e-interrupted")
		f.putMapping()
		f.backfill(1)
		var docs []document
		for i := range 2200 {
			docs = append(docs, document{strconv.Itoa(i), section{"text": section{"body": fmt.Sprintf("Text %d.\n\nAnd more.", i)}}})
		}
		e.index(t, f.index, docs)
		norms := &normsFixture{e, t, f.index, "text.body"}
		norms.interrupt(func(cluster string) []string { return f.command(cluster) })
		before := f.stored()
		// The rest, while others write: one document as a whole, and one that goes.
		cluster := norms.tap(func(n int) bool {
			if n == 1 {
				f.must(t, http.MethodPut, "/"+f.index+"/_doc/1699", `{"text":{"body":"Written\n\nby\n\nothers"}}`)
				f.must(t, http.MethodDelete, "/"+f.index+"/_doc/1698", "")
			}
			return true
		})
		r := runAkin(t, f.command(cluster)...)
		if r.status != 1 || !strings.Contains(r.stderr, "written by others meanwhile") || !strings.Contains(r.stderr, "1 failed") {
			t.Errorf("status %d\n%s", r.status, r.stderr)
		}
		done := 0
		after := f.stored()
		for id, d := range after {
			if before[id].Source.Parts.By != "" {
				if done++; d.SeqNo != before[id].SeqNo {
					t.Fatalf("document %s was done and is written again", id)
				}
			}
			if n := len(d.Source.Parts.Segments); len(id) < 5 && id != "1699" && strings.Trim(id, "0123456789") == "" && n != 2 {
				t.Fatalf("document %s has %d segments", id, n)
			}
		}
		others := after["1699"]
		if _, there := after["1698"]; there || len(others.texts()) != 3 || done < 1000 || done > 1020 {
			t.Errorf("%d documents were done; 1699: %q, 1698: %v", done, others.texts(), there)
		}
	})
}

// A document of another index would be taken for one without text, and be
// stamped as done.
func TestTextsUnderOtherNamesAreNotFilled(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, e *engine) {
		const own, other = "akin-e2e-named-own", "akin-e2e-named-other"
		const nested = `"segments":{"type":"nested","properties":{"text":{"type":"text"},"position":{"type":"integer"},"share":{"type":"float"}}},"segments_by":{"type":"keyword"}`
		e.makeIndex(t, own, `{"mappings":{"properties":{"text":{"properties":{"body":{"type":"text"}}},`+nested+`}}}`)
		e.index(t, own, []document{{"1", section{"text": section{"body": "One.\n\nTwo."}}}})
		args := []string{"segments", "backfill", "--cluster", e.url, "--index", "akin-e2e-named-*", "--field", "text.body"}
		mustAkin(t, args...)
		e.makeIndex(t, other, `{"mappings":{"properties":{"text":{"type":"keyword","fields":{"body":{"type":"text"}}},`+nested+`}}}`)
		e.index(t, other, []document{{"1", section{"text": "One.\n\nTwo."}}})
		if r := runAkin(t, args...); r.status != 1 || !strings.Contains(r.stderr, "name the indices one by one") {
			t.Errorf("status %d\n%s", r.status, r.stderr)
		}
		if got := e.must(t, http.MethodGet, "/"+other+"/_doc/1", ""); strings.Contains(string(got), "segments_by") {
			t.Errorf("stamped: %s", got)
		}
		args[5] = other
		mustAkin(t, args...)
		if got := e.must(t, http.MethodGet, "/"+other+"/_doc/1", ""); !strings.Contains(string(got), `"Two."`) {
			t.Errorf("not cut: %s", got)
		}
	})
}

// TestBackfillSaysWhatTheLimitOfNestedDocumentsIs has few nested documents in an
// index, of which another field has some: the engine refuses the segments.
func TestBackfillSaysWhatTheLimitOfNestedDocumentsIs(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, e *engine) {
		f := &fillFixture{e, t, "akin-e2e-nested-limit"}
		e.makeIndex(t, f.index, strings.Replace(strings.Replace(filledDefinition, `"settings":{`, `"settings":{"index.mapping.nested_objects.limit":5,`, 1),
			`"flat":`, `"others":{"type":"nested"},"flat":`, 1))
		f.putMapping()
		others := []section{{"a": 1}, {"a": 2}, {"a": 3}}
		e.index(t, f.index, []document{
			{"fits", section{"text.body": "One.\n\nTwo.", "others": others}},
			{"too many", section{"text.body": "One.\n\nTwo.\n\nThree.", "others": others}},
		})
		if said := f.backfill(1); !strings.Contains(said, "1 failed") || !strings.Contains(said, "index.mapping.nested_objects.limit") {
			t.Errorf("the backfill says\n%s", said)
		}
	})
}
