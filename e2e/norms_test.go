package e2e

import (
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/akin-search/akin/simmatrix"
)

const (
	normsDocs       = 2100 // five bulk requests
	normsDefinition = `{"settings":{"number_of_shards":2,"number_of_replicas":0,"refresh_interval":"-1",
		"analysis":{"analyzer":{"stem":{"type":"custom","tokenizer":"standard","filter":["lowercase","porter_stem"]}}}},
	"aliases":{"akin-e2e-norms-alias":{}},
	"mappings":{"properties":{
		"body":{"type":"text","fields":{"akin":{"type":"text","analyzer":"stem"}}},
		"part":{"properties":{"title":{"type":"text"}}},
		"akin_norm":{"properties":{"body__akin":{"type":"float","index":false},"part__title":{"type":"float","index":false}}},
		"akin_norm_weights":{"properties":{"body__akin":{"type":"keyword"},"part__title":{"type":"keyword"}}}}}}`
)

// A normsFixture is an index of documents of all kinds, and a field of it that
// gets norms.
type normsFixture struct {
	*engine
	index, field string
}

// name is the field in names of other fields.
func (f *normsFixture) name() string { return strings.ReplaceAll(f.field, ".", "__") }

// normsDocuments are documents whose ids are numbers: texts and arrays of texts,
// empty ones, some with routing, and some without the fields.
func normsDocuments(from, to int, word string) (docs []document) {
	for i := from; i < to; i++ {
		var text any = fmt.Sprintf("Running dogs number%d run by group%d %s %s", i, i%17, strings.Repeat("again ", i%5), word)
		switch {
		case i%50 == 7:
			text = ""
		case i%5 == 0:
			text = []string{fmt.Sprint("several texts ", i%11), fmt.Sprint("running texts of 3.14 ", i)}
		}
		doc := section{"body": text, "part.title": text} // a name with a dot
		if i%2 == 0 {
			doc = section{"body": text, "part": section{"title": text}}
		}
		if i%50 == 9 {
			doc = section{"other": i}
		}
		if i%3 == 0 {
			doc["_routing"] = fmt.Sprint("r", i%7)
		}
		docs = append(docs, document{strconv.Itoa(i), doc})
	}
	return docs
}

// stored returns the documents that have the field, by id.
func (f *normsFixture) stored(t *testing.T) map[string]hit {
	t.Helper()
	f.refresh(t, f.index)
	docs := map[string]hit{}
	for _, h := range f.find(t, f.index, fmt.Sprintf(`{"size":10000,"_source":false,"seq_no_primary_term":true,
		"query":{"exists":{"field":%q}},"docvalue_fields":["akin_norm.%[2]s","akin_norm_weights.%[2]s"]}`, f.field, f.name())).Hits.Hits {
		docs[h.ID] = h
	}
	return docs
}

// norm returns what a document has: its norm, and the id of its weights.
func (f *normsFixture) norm(h hit) (norm float64, id string) {
	if v := h.Fields["akin_norm."+f.name()]; len(v) == 1 {
		norm, _ = v[0].(float64)
	}
	if v := h.Fields["akin_norm_weights."+f.name()]; len(v) == 1 {
		id, _ = v[0].(string)
	}
	return norm, id
}

// check compares the norms of all documents with ‖Wy‖ of the engine's own term
// vectors.
func (f *normsFixture) check(t *testing.T, weights *simmatrix.Matrix) map[string]hit {
	t.Helper()
	docs := f.stored(t)
	var hits []hit
	for _, h := range docs {
		hits = append(hits, h)
	}
	p := newSpace(t, f.engine, f.index, f.field, hits, nil, weights, weights)
	for _, h := range hits {
		norm, id := f.norm(h)
		if want := p.HardNorm(p.docs[h.ID]); id != weightsID(weights) || relative(norm, want) > 1e-6 {
			t.Fatalf("document %s has norm %v of weights %q, want %v of %q", h.ID, norm, id, want, weightsID(weights))
		}
	}
	return docs
}

func weightsID(m *simmatrix.Matrix) string { return m.Checksum()[:16] }

// backfill returns the arguments of a backfill of the documents of an alias.
func (f *normsFixture) backfill(cluster, weights string, more ...string) []string {
	return append([]string{"index", "norms", "backfill", "--cluster", cluster, "--index", f.index + "-alias", "--field", f.field, "--weights", weights}, more...)
}

// TestNorms stores norms of a multi-field and of a field in an object, of texts
// of all kinds, and again where a backfill was interrupted.
func TestNorms(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, e *engine) {
		for _, field := range []string{"body.akin", "part.title"} {
			t.Run(field, func(t *testing.T) {
				f := &normsFixture{e, "akin-e2e-norms", field}
				e.makeIndex(t, f.index, normsDefinition)
				e.index(t, f.index, normsDocuments(0, normsDocs, ""))
				file := e.freezeWeights(t, f.index, field)
				weights := readMatrix(t, file)
				if weights.Meta().Docs != normsDocs*48/50 {
					t.Errorf("weights of %d documents, want %d: empty texts and missing ones do not count", weights.Meta().Docs, normsDocs*48/50)
				}
				e.index(t, f.index, normsDocuments(normsDocs, normsDocs+50, "unheardof")) // a word that the weights do not know
				mustAkin(t, f.backfill(e.url, file)...)
				// The index does not refresh by itself.
				visible := f.total(t, f.index, fmt.Sprintf(`{"term":{"akin_norm_weights.%s":{"value":%q}}}`, f.name(), weightsID(weights)))
				docs := f.check(t, weights)
				if want := (normsDocs + 50) * 49 / 50; visible != want || len(docs) != want {
					t.Errorf("%d documents are visible, and %d have the field, want %d", visible, len(docs), want)
				}
				for _, more := range [][]string{nil, {"--all"}, {"--dry-run"}} {
					mustAkin(t, f.backfill(e.url, file, more...)...)
					for id, d := range f.stored(t) {
						if d.SeqNo != docs[id].SeqNo {
							t.Fatalf("%v wrote document %s again", more, id)
						}
					}
				}
				f.checkInterrupted(t)
			})
		}
	})
}

// checkInterrupted ends a backfill by SIGTERM after two calls that write, and has
// the next one do the rest while others write. Backfills of segments and
// vectors are the same.
func (f *normsFixture) checkInterrupted(t *testing.T) {
	t.Helper()
	// Without rare terms the weights are others, so that every document is to do.
	file := build(t, "--from-matrices", f.freezeWeights(t, f.index, f.field), "--min-df", "3")
	weights := readMatrix(t, file)
	reached, ended := make(chan struct{}), make(chan struct{})
	var bulks atomic.Int32
	cut := between(t, f.engine, func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		if r.URL.Path == "/_bulk" {
			n := bulks.Add(1)
			if n == 5 { // Three are under way at once: akin has read the answers to two.
				close(reached)
			}
			if n > 2 {
				<-ended
				panic(http.ErrAbortHandler)
			}
		}
		forward.ServeHTTP(w, r)
	})
	cmd := exec.Command(akinPath(t), f.backfill(cut, file)...)
	cmd.Env = cleanEnvironment()
	proc, err := startProcess("backfill", newDir(t, "backfill"), cmd)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-reached:
	case <-proc.done:
		t.Fatalf("ended early\n%s", proc.tail())
	case <-time.After(time.Minute):
		t.Fatalf("no fifth bulk request\n%s", proc.tail())
	}
	proc.signal(t, syscall.SIGTERM)
	status, err := proc.wait(20 * time.Second)
	close(ended)
	if said := fileTail(proc.stderr); err != nil || status != 1 || !strings.Contains(said, "the same command goes on") || !strings.Contains(said, "1000 documents written") {
		t.Errorf("status %d, %v\n%s", status, err, proc.tail())
	}
	done, rest := map[string]int{}, []string{}
	for id, d := range f.stored(t) {
		if _, got := f.norm(d); got == weightsID(weights) {
			done[id] = d.SeqNo
		} else if n, _ := strconv.Atoi(id); d.Routing == "" && n%2 == 0 { // of a dotted name, an update would make two texts
			rest = append(rest, id)
		}
	}
	slices.Sort(rest)
	if len(done) != 1000 {
		t.Fatalf("%d documents were done by two requests", len(done))
	}
	// Of those that are left, others write one as a whole, a part of one, which keeps
	// its old norm, and delete one. All bulk requests wait for that: a part that is
	// written behind a norm leaves the norm as it is.
	var once sync.Once
	meanwhile := between(t, f.engine, func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		if r.URL.Path == "/_bulk" {
			once.Do(func() {
				const text = `"body":"written meanwhile","part":{"title":"written meanwhile"}`
				f.must(t, http.MethodPut, "/"+f.index+"/_doc/"+rest[0], "{"+text+"}")
				f.must(t, http.MethodPost, "/"+f.index+"/_update/"+rest[1], `{"doc":{`+text+`}}`)
				f.must(t, http.MethodDelete, "/"+f.index+"/_doc/"+rest[2], "")
			})
		}
		forward.ServeHTTP(w, r)
	})
	r := runAkin(t, f.backfill(meanwhile, file)...)
	if r.status != 0 || !strings.Contains(r.stderr, "written by others meanwhile") {
		t.Errorf("status %d\n%s", r.status, r.stderr)
	}
	docs := f.check(t, weights)
	for id, seqNo := range done {
		if docs[id].SeqNo != seqNo {
			t.Fatalf("document %s was done and is written again", id)
		}
	}
	one, _ := f.norm(docs[rest[0]])
	if two, _ := f.norm(docs[rest[1]]); one == 0 || one != two {
		t.Errorf("norms %v and %v of the same text", one, two)
	}
	if _, there := docs[rest[2]]; there {
		t.Error("a document came back")
	}
}
