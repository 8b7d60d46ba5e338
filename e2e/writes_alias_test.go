package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// The indices of the fixture and the alias that moves from the first to the
// second, and how many documents a bulk request of it has.
const (
	movingAlias  = "akin-e2e-writes-moving"
	movedFrom    = "akin-e2e-writes-moved-from"
	movedTo      = "akin-e2e-writes-moved-to"
	movingInBulk = 10
)

const (
	movedFromDefinition = `{"settings":{"number_of_shards":1,"number_of_replicas":0},
		"aliases":{"` + movingAlias + `":{}},
		"mappings":{"dynamic":"strict","properties":{"title":{"type":"text"},
			"akin_norm":{"properties":{"title":{"type":"float","index":false}}},
			"akin_norm_weights":{"properties":{"title":{"type":"keyword"}}}}}}`
	movedToDefinition = `{"settings":{"number_of_shards":1,"number_of_replicas":0},
		"mappings":{"dynamic":"strict","properties":{"title":{"type":"text"}}}}`
)

// movingWriters write documents to the alias without pause: one by PUT, a ship
// each, and one by bulk requests, boats.
type movingWriters struct {
	// puts and bulks are how many have been answered.
	puts, bulks atomic.Int64
	// refused are the numbers of the bulk requests of which documents were
	// refused, and lost those documents. They are read when the writers have
	// stopped.
	refused []int
	lost    int

	stopping atomic.Bool // also when something has failed
	running  sync.WaitGroup
}

// startMovingWriters starts them. They end with the test, if not before.
func startMovingWriters(t *testing.T, a *akin) *movingWriters {
	t.Helper()
	w := &movingWriters{}
	t.Cleanup(w.stop)
	w.running.Go(func() { w.put(t, a) })
	w.running.Go(func() { w.bulk(t, a) })
	return w
}

// stop ends both writers and waits for the answers to what they have sent.
func (w *movingWriters) stop() {
	w.stopping.Store(true)
	w.running.Wait()
}

// await waits until both have had that many more answers.
func (w *movingWriters) await(t *testing.T, puts, bulks int64) {
	t.Helper()
	puts, bulks = w.puts.Load()+puts, w.bulks.Load()+bulks
	waitFor(t, 60*time.Second, "the writes", func() error {
		if w.stopping.Load() {
			t.FailNow()
		}
		if p, b := w.puts.Load(), w.bulks.Load(); p < puts || b < bulks {
			return fmt.Errorf("%d of %d by PUT, %d of %d by _bulk", p, puts, b, bulks)
		}
		return nil
	})
}

func (w *movingWriters) put(t *testing.T, a *akin) {
	t.Helper()
	for n := 0; !w.stopping.Load(); n++ {
		status, answer, err := a.call(t.Context(), http.MethodPut, fmt.Sprintf("/%s/_doc/put-%d", movingAlias, n), `{"title":"ship"}`)
		if err != nil || status != http.StatusCreated {
			t.Errorf("write %d is lost: %d %s %v", n, status, answer, err)
			w.stopping.Store(true)
			return
		}
		w.puts.Add(1)
	}
}

func (w *movingWriters) bulk(t *testing.T, a *akin) {
	t.Helper()
	for n := 0; !w.stopping.Load(); n++ {
		var body strings.Builder
		for i := range movingInBulk {
			fmt.Fprintf(&body, `{"index":{"_id":"bulk-%d-%d"}}`+"\n"+`{"title":"boat"}`+"\n", n, i)
		}
		status, answer, err := a.call(t.Context(), http.MethodPost, "/"+movingAlias+"/_bulk", body.String())
		if err != nil || status != http.StatusOK {
			t.Errorf("bulk request %d: %d %s %v", n, status, answer, err)
			w.stopping.Store(true)
			return
		}
		if refused := refusedForNorms(t, answer); refused > 0 {
			w.refused = append(w.refused, n)
			w.lost += refused
		}
		w.bulks.Add(1)
	}
}

// refusedForNorms returns how many documents of a bulk request were refused
// for the members that hold norms. Nothing else may have become of them but
// that they were created.
func refusedForNorms(t *testing.T, answer []byte) (refused int) {
	t.Helper()
	var got struct {
		Items []map[string]struct {
			Status int
			Error  struct{ Reason string }
		}
	}
	if err := json.Unmarshal(answer, &got); err != nil || len(got.Items) != movingInBulk {
		t.Errorf("bulk: %d documents, want %d: %v: %s", len(got.Items), movingInBulk, err, answer)
	}
	for _, item := range got.Items {
		switch about := item["index"]; {
		case about.Status == http.StatusCreated:
		case about.Status == http.StatusBadRequest && strings.Contains(about.Error.Reason, "akin_norm"):
			refused++
		default:
			t.Errorf("bulk: %d %s", about.Status, about.Error.Reason)
		}
	}
	return refused
}

// countHits returns how many documents of some indices match a query.
func (c cluster) countHits(t *testing.T, indices, query string) (n int) {
	t.Helper()
	var got struct{ Count int }
	answer := c.must(t, http.MethodPost, "/"+indices+"/_count", `{"query":`+query+`}`)
	if err := json.Unmarshal(answer, &got); err != nil {
		t.Fatal(err)
	}
	return got.Count
}

// An alias moves from an index that keeps norms to one that refuses documents
// with them, while clients write to the alias.
func TestAliasMovesToAStrictIndexWithoutNormsWhileDocumentsAreWritten(t *testing.T) {
	e := oneEngine(t)
	e.makeIndex(t, movedFrom, movedFromDefinition)
	e.makeIndex(t, movedTo, movedToDefinition)
	e.index(t, movedFrom, []document{{"old", section{"title": "a red car"}}})
	file := filepath.Join(t.TempDir(), "weights.akin")
	mustAkin(t, "norms", "snapshot", "--cluster", e.url, "--index", movedFrom, "--field", "title", "--out", file)
	a := serveWrites(t, e.url, file)

	w := startMovingWriters(t, a)
	w.await(t, 20, 10)
	e.must(t, http.MethodPost, "/_aliases", `{"actions":[{"remove":{"index":"`+movedFrom+`","alias":"`+movingAlias+`"}},
		{"add":{"index":"`+movedTo+`","alias":"`+movingAlias+`"}}]}`)
	w.await(t, 50, 25)
	w.stop()

	if len(w.refused) > 1 {
		t.Errorf("documents of the bulk requests %v were refused, want those of one at most", w.refused)
	}
	const both = movedFrom + "," + movedTo
	e.must(t, http.MethodPost, "/"+both+"/_refresh", "")
	if got, want := e.countHits(t, both, `{"match":{"title":"ship"}}`), int(w.puts.Load()); got != want {
		t.Errorf("%d documents were written by PUT, want %d", got, want)
	}
	if got, want := e.countHits(t, both, `{"match":{"title":"boat"}}`), movingInBulk*int(w.bulks.Load())-w.lost; got != want {
		t.Errorf("%d documents were written by _bulk, want %d", got, want)
	}
	if n := e.countHits(t, movedTo, `{"match":{"title":"ship"}}`); n < 25 { // of 50; those that were under way may have gone to the old one
		t.Errorf("%d documents were written to the new index by PUT", n)
	}
	without := `{"bool":{"must":{"match":{"title":"ship boat"}},"must_not":{"exists":{"field":"akin_norm_weights.title"}}}}`
	if n := e.countHits(t, movedFrom, without); n != 0 {
		t.Errorf("%d documents of the old index have no norms", n)
	}
	if n := a.metric(t, "akin_norm_documents_total", `result="refused"`); n != float64(w.lost) {
		t.Errorf("%v documents were counted as refused, want %d", n, w.lost)
	}
	if n := a.metric(t, "akin_norm_refused_writes_total", `original="refused"`); n != 0 {
		t.Errorf("the originals of %v writes were refused", n)
	}
}
