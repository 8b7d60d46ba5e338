package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/softcosine"
)

const (
	normsDocs       = 2200
	normsDefinition = `{"settings":{"number_of_shards":2,"number_of_replicas":0,"refresh_interval":"-1",
		"analysis":{"analyzer":{"stem":{"type":"custom","tokenizer":"standard","filter":["lowercase","porter_stem"]}}}},
	"aliases":{"ALIAS":{}},
	"mappings":{"properties":{
		"body":{"type":"text","fields":{"akin":{"type":"text","analyzer":"stem"}}},
		"part":{"properties":{"title":{"type":"text"}}},
		"akin_norm":{"properties":{"body__akin":{"type":"float","index":false},"part__title":{"type":"float","index":false}}},
		"akin_norm_weights":{"properties":{"body__akin":{"type":"keyword"},"part__title":{"type":"keyword"}}}}}}`
)

// A normsFixture is an index of documents of all kinds on an engine.
type normsFixture struct {
	*engine
	t     *testing.T
	index string
	field string
}

// makeNorms makes the index.
func makeNorms(t *testing.T, e *engine, index, field string) *normsFixture {
	t.Helper()
	f := &normsFixture{e, t, index, field}
	e.makeIndex(t, index, f.definition())
	f.add(0, normsDocs, "")
	return f
}

func (f *normsFixture) alias() string { return f.index + "-alias" }
func (f *normsFixture) definition() string {
	return strings.ReplaceAll(normsDefinition, "ALIAS", f.alias())
}

// add adds documents of some numbers, whose ids are the numbers: texts and
// arrays of texts, empty ones, some with routing, and some without the fields.
func (f *normsFixture) add(from, to int, word string) {
	f.t.Helper()
	var body bytes.Buffer
	for i := from; i < to; i++ {
		if i%3 == 0 {
			fmt.Fprintf(&body, `{"index":{"_id":"%d","routing":"r%d"}}`+"\n", i, i%7)
		} else {
			fmt.Fprintf(&body, `{"index":{"_id":"%d"}}`+"\n", i)
		}
		var text any = fmt.Sprintf("Running dogs number%d run by group%d %s %s", i, i%17, strings.Repeat("again ", i%5), word)
		switch {
		case i%50 == 7:
			text = ""
		case i%5 == 0:
			text = []string{fmt.Sprint("several texts ", i%11), fmt.Sprint("running texts of 3.14 ", i)}
		}
		doc := map[string]any{"body": text, "part.title": text} // a name with a dot
		if i%2 == 0 {
			doc = map[string]any{"body": text, "part": map[string]any{"title": text}}
		}
		if i%50 == 9 {
			doc = map[string]any{"other": i}
		}
		body.WriteString(toJSON(f.t, doc) + "\n")
	}
	answer := f.must(f.t, http.MethodPost, "/"+f.index+"/_bulk?refresh=true", body.String())
	if bytes.Contains(answer, []byte(`"errors":true`)) {
		f.t.Fatalf("bulk: %.2000s", answer)
	}
}

// A normedDoc is a document as it is stored.
type normedDoc struct {
	ID      string `json:"_id"`
	Routing string `json:"_routing"`
	SeqNo   int    `json:"_seq_no"`
	Fields  map[string][]any
}

// norm returns the document's norm, 0 where it has none, and the id of its
// weights.
func (d *normedDoc) norm(field string) (norm float64, id string) {
	name := strings.ReplaceAll(field, ".", "__")
	if v := d.Fields["akin_norm."+name]; len(v) == 1 {
		norm, _ = v[0].(float64)
	}
	if v := d.Fields["akin_norm_weights."+name]; len(v) == 1 {
		id, _ = v[0].(string)
	}
	return norm, id
}

// stored returns the documents that have the field, by id.
func (f *normsFixture) stored() map[string]normedDoc {
	f.t.Helper()
	f.must(f.t, http.MethodPost, "/"+f.index+"/_refresh", "")
	name := strings.ReplaceAll(f.field, ".", "__")
	answer := f.must(f.t, http.MethodPost, "/"+f.index+"/_search", fmt.Sprintf(`{"size":10000,"_source":false,"seq_no_primary_term":true,
		"query":{"exists":{"field":%q}},"docvalue_fields":["akin_norm.%s","akin_norm_weights.%s"]}`, f.field, name, name))
	var page struct{ Hits struct{ Hits []normedDoc } }
	if err := json.Unmarshal(answer, &page); err != nil {
		f.t.Fatal(err)
	}
	docs := map[string]normedDoc{}
	for _, d := range page.Hits.Hits {
		docs[d.ID] = d
	}
	return docs
}

// vectors returns the documents' term frequencies as the engine has them.
func (f *normsFixture) vectors(docs map[string]normedDoc) map[string]map[string]float64 {
	f.t.Helper()
	var asked []section
	for id, d := range docs {
		one := section{"_index": f.index, "_id": id, "fields": []string{f.field}}
		if d.Routing != "" {
			one["routing"] = d.Routing
		}
		asked = append(asked, one)
	}
	answer := f.must(f.t, http.MethodPost, "/_mtermvectors", toJSON(f.t, section{"docs": asked}))
	var all struct {
		Docs []struct {
			ID      string `json:"_id"`
			Vectors map[string]struct {
				Terms map[string]struct {
					Freq float64 `json:"term_freq"`
				}
			} `json:"term_vectors"`
		}
	}
	if err := json.Unmarshal(answer, &all); err != nil {
		f.t.Fatal(err)
	}
	freqs := map[string]map[string]float64{}
	for _, d := range all.Docs {
		freqs[d.ID] = map[string]float64{}
		for term, v := range d.Vectors[f.field].Terms {
			freqs[d.ID][term] = v.Freq
		}
	}
	return freqs
}

// check checks that all documents have their norms.
func (f *normsFixture) check(weights string) map[string]normedDoc {
	f.t.Helper()
	docs := f.stored()
	if wrong := f.wrong(weights, docs); len(wrong) > 0 {
		f.t.Fatalf("%d of %d documents are wrong: %s", len(wrong), len(docs), strings.Join(wrong[:min(len(wrong), 5)], "; "))
	}
	return docs
}

// wrong compares the norms of documents with ‖Wy‖ of the engine's own term
// vectors, and says which are others.
func (f *normsFixture) wrong(weights string, docs map[string]normedDoc) (wrong []string) {
	f.t.Helper()
	m, id := readWeights(f.t, weights)
	vectors := f.vectors(docs)
	var unknown []string
	for _, terms := range vectors {
		for term := range terms {
			if m.Row(term).IsZero() {
				unknown = append(unknown, term)
			}
		}
	}
	vocabulary, s := softcosine.FromMatrix(m, unknown...)
	idf := make([]float64, vocabulary.Len())
	for i := range idf {
		idf[i] = simmatrix.IDF(int64(m.Row(vocabulary.Term(int32(i))).DocFreq()), int64(m.Meta().Docs))
	}
	space, err := softcosine.NewSpace(idf, s)
	if err != nil {
		f.t.Fatal(err)
	}
	for docID, d := range docs {
		y := map[int32]float64{}
		for term, freq := range vectors[docID] {
			number, _ := vocabulary.Number(term)
			y[number] = freq
		}
		want := space.HardNorm(softcosine.NewVector(y))
		norm, gotID := d.norm(f.field)
		if gotID != id || math.Abs(norm-want) > 1e-6*want {
			wrong = append(wrong, fmt.Sprintf("document %s has norm %v of weights %q, want %v of %q", docID, norm, gotID, want, id))
		}
	}
	return wrong
}

// readWeights reads a matrix file and returns it with its id as weights.
func readWeights(t *testing.T, file string) (*simmatrix.Matrix, string) {
	t.Helper()
	r, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	m, err := simmatrix.Decode(r)
	if err != nil {
		t.Fatal(err)
	}
	return m, m.Checksum()[:16]
}

// snapshot makes weights.
func (f *normsFixture) snapshot() string {
	f.t.Helper()
	out := filepath.Join(newDir(f.t, "weights"), "weights.akin")
	mustAkin(f.t, "norms", "snapshot", "--cluster", f.url, "--index", f.index, "--field", f.field, "--out", out)
	return out
}

// withoutRare returns weights of only those terms that are in so many documents:
// others, so that every document is to do.
func withoutRare(t *testing.T, weights, minDocFreq string) string {
	t.Helper()
	out := filepath.Join(newDir(t, "weights"), "weights.akin")
	mustAkin(t, "matrix", "build", "--from-matrices", weights, "--min-df", minDocFreq, "--out", out)
	return out
}

// command returns the arguments of a backfill.
func (f *normsFixture) command(cluster, weights string, args ...string) []string {
	return append([]string{"norms", "backfill", "--cluster", cluster, "--index", f.alias(), "--field", f.field, "--weights", weights}, args...)
}

// backfill runs one that has to succeed and returns what it says.
func (f *normsFixture) backfill(weights string, args ...string) string {
	f.t.Helper()
	r := runAkin(f.t, f.command(f.url, weights, args...)...)
	if r.status != 0 {
		f.t.Fatalf("exit status %d\n%s", r.status, r.stderr)
	}
	return r.stderr
}

// tap starts a proxy before the engine that calls before ahead of each bulk
// request, with its number from 1, and passes the request on if it says so. No
// request goes on while before is at work.
func (f *normsFixture) tap(before func(n int) bool) string {
	f.t.Helper()
	target, err := url.Parse(f.url)
	if err != nil {
		f.t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	var mu sync.Mutex
	bulks := 0
	pass := func() bool {
		mu.Lock()
		defer mu.Unlock()
		bulks++
		return before(bulks)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/_bulk" && !pass() {
			panic(http.ErrAbortHandler)
		}
		proxy.ServeHTTP(w, r)
	}))
	f.t.Cleanup(server.Close)
	return server.URL
}

// interrupt runs the command of a backfill until its third call that writes,
// and ends it by SIGTERM during that. It returns what the backfill said.
func (f *normsFixture) interrupt(command func(cluster string) []string) string {
	f.t.Helper()
	reached, ended := make(chan struct{}), make(chan struct{})
	cluster := f.tap(func(n int) bool {
		if n == 3 {
			close(reached)
			<-ended
		}
		return n < 3
	})
	cmd := exec.Command(akinPath(f.t), command(cluster)...)
	cmd.Env = cleanEnvironment()
	proc, err := startProcess("backfill", newDir(f.t, "backfill"), cmd)
	if err != nil {
		f.t.Fatal(err)
	}
	select {
	case <-reached:
	case <-proc.done:
		f.t.Fatalf("ended early\n%s", proc.tail())
	case <-time.After(time.Minute):
		f.t.Fatalf("no third bulk request\n%s", proc.tail())
	}
	proc.signal(f.t, syscall.SIGTERM)
	status, err := proc.wait(20 * time.Second)
	close(ended)
	said := fileTail(proc.stderr)
	if err != nil || status != 1 || !strings.Contains(said, "the same command goes on") {
		f.t.Errorf("status %d, %v\n%s", status, err, proc.tail())
	}
	return said
}

func TestNorms(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, e *engine) {
		for _, field := range []string{"body.akin", "part.title"} {
			t.Run(field, func(t *testing.T) {
				f := makeNorms(t, e, "akin-e2e-norms", field)
				weights := f.snapshot()
				if m, _ := readWeights(t, weights); m.Meta().Docs != normsDocs*48/50 {
					t.Errorf("weights of %d documents, want %d: empty texts and missing ones do not count", m.Meta().Docs, normsDocs*48/50)
				}
				f.add(normsDocs, normsDocs+50, "unheardof") // a word that the weights do not know
				f.backfill(weights)
				f.checkVisible(weights)
				docs := f.check(weights)
				if len(docs) != (normsDocs+50)*49/50 {
					t.Errorf("%d documents have the field", len(docs))
				}
				f.checkSettled(weights, docs)
				t.Run("killed in the middle", func(t *testing.T) { f.with(t).testKilled() })
				t.Run("during writes", func(t *testing.T) { f.with(t).testDuringWrites() })
			})
		}
	})
}

// checkVisible checks that a search finds what a backfill wrote, in an index that
// does not refresh by itself.
func (f *normsFixture) checkVisible(weights string) {
	f.t.Helper()
	_, id := readWeights(f.t, weights)
	answer := f.must(f.t, http.MethodPost, "/"+f.index+"/_count",
		fmt.Sprintf(`{"query":{"term":{"akin_norm_weights.%s":{"value":%q}}}}`, strings.ReplaceAll(f.field, ".", "__"), id))
	var found struct{ Count int }
	decode(f.t, answer, &found)
	if want := (normsDocs + 50) * 49 / 50; found.Count != want {
		f.t.Errorf("%d of %d documents are visible", found.Count, want)
	}
}

// with returns the fixture for a sub-test.
func (f *normsFixture) with(t *testing.T) *normsFixture {
	t.Helper()
	return &normsFixture{f.engine, t, f.index, f.field}
}

// checkSettled checks that another backfill writes nothing, and that one of
// documents without their norms does those.
func (f *normsFixture) checkSettled(weights string, docs map[string]normedDoc) {
	f.t.Helper()
	for _, args := range [][]string{nil, {"--all"}, {"--dry-run"}} {
		said := f.backfill(weights, args...)
		// It looks at documents that have an id of weights and no norm, each time.
		if args == nil && !strings.Contains("\n"+said, "\n0 documents written") {
			f.t.Errorf("another backfill says\n%s", said)
		}
		for id, d := range f.stored() {
			if d.SeqNo != docs[id].SeqNo {
				f.t.Fatalf("%v wrote document %s again", args, id)
			}
		}
	}
}

func (f *normsFixture) testKilled() {
	weights := withoutRare(f.t, f.snapshot(), "3")
	_, id := readWeights(f.t, weights)
	said := f.interrupt(func(cluster string) []string { return f.command(cluster, weights) })
	if want := "\n1000 documents written"; !strings.Contains("\n"+said, want) {
		f.t.Errorf("%q is not in\n%s", want, said)
	}
	before := map[string]int{}
	for docID, d := range f.stored() {
		if _, got := d.norm(f.field); got == id {
			before[docID] = d.SeqNo
		}
	}
	if len(before) != 1000 {
		f.t.Errorf("%d documents were done by two requests", len(before))
	}
	f.backfill(weights)
	docs := f.check(weights)
	for docID, seqNo := range before {
		if docs[docID].SeqNo != seqNo {
			f.t.Fatalf("document %s was done and is written again", docID)
		}
	}
}

func (f *normsFixture) testDuringWrites() {
	weights := withoutRare(f.t, f.snapshot(), "4")
	cluster := f.tap(func(n int) bool {
		if n > 1 {
			return true
		}
		// A whole document, a part of one, which keeps its old norm, and one that goes.
		const text = `"body":"written meanwhile","part":{"title":"written meanwhile"}`
		f.must(f.t, http.MethodPut, "/"+f.index+"/_doc/1", "{"+text+"}")
		f.must(f.t, http.MethodPost, "/"+f.index+"/_update/2", `{"doc":{`+text+`}}`)
		f.must(f.t, http.MethodDelete, "/"+f.index+"/_doc/4", "")
		return true
	})
	r := runAkin(f.t, f.command(cluster, weights)...)
	if r.status != 0 || !strings.Contains(r.stderr, "written by others meanwhile") {
		f.t.Errorf("status %d\n%s", r.status, r.stderr)
	}
	docs := f.check(weights)
	if _, there := docs["4"]; there {
		f.t.Error("a document came back")
	}
	one, two := docs["1"], docs["2"]
	norm, _ := one.norm(f.field)
	if other, _ := two.norm(f.field); norm == 0 || norm != other {
		f.t.Errorf("norms %v and %v of the same text", norm, other)
	}
}

// TestNormsOfAFewDocumentsAreNone stores norms by weights that most documents
// do not have: a backfill that is half done, and other weights on the way in.
// The mode hard takes them only where nearly all documents have them.
func TestNormsOfAFewDocumentsAreNone(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, e *engine) {
		const index = "akin-e2e-norms-few"
		docs := relatedDocuments()
		e.makeHardIndex(t, index, hardSetting{shards: 1}, "standard", docs[:len(docs)/2])
		files := hardFiles{relatedFile(t, vectorsA), filepath.Join(newDir(t, "weights"), "w.akin")}
		e.freezeWeights(t, index, files)
		reason := func() string {
			t.Helper()
			a := startHardAkin(t, e, files, nil) // which remembers nothing
			clauses := a.explain(t, index, relatedSearch("car")).Clauses
			if len(clauses) != 1 {
				t.Fatalf("%+v", clauses)
			}
			return clauses[0].Reason
		}
		expect := func(when, want string) {
			t.Helper()
			if got := reason(); got != want {
				t.Errorf("%s: reason %q, want %q", when, got, want)
			}
		}
		expect("before a backfill", "no_norms")
		e.storeNorms(t, index, files)
		expect("all documents", "")
		e.index(t, index, docs[len(docs)/2:])
		expect("half of the documents", "no_norms")
		e.storeNorms(t, index, files)
		expect("the other half", "")
		e.index(t, index, docs[:3])
		expect("three documents written past it", "")
		snapshot := filepath.Join(newDir(t, "weights"), "all.akin")
		mustAkin(t, "norms", "snapshot", "--cluster", e.url, "--index", index, "--field", "body", "--out", snapshot)
		other := hardFiles{files.matrix, withoutRare(t, snapshot, "3")}
		first := files
		files = other
		expect("weights that no document has", "no_norms")
		e.storeNorms(t, index, other)
		expect("other weights", "")
		files = first
		expect("the old weights", "no_norms")
	})
}
