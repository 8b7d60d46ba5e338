package e2e

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/akin-search/akin/expand/vectors"
)

// TestFillingOfVectorsIsInterrupted goes on with what an interrupted backfill
// has left, and begins again where the file has another model by then. An index
// that is filled at once has the same vectors.
func TestFillingOfVectorsIsInterrupted(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(17, 6))
	c := vectorTexts(random)
	matrix := writeSimilarities(t, random)
	var docs []document
	for i := range 2100 {
		docs = append(docs, document{strconv.Itoa(i), c.docs[i%150].fields})
	}
	eachEngine(t, func(t *testing.T, e *engine) {
		if !slices.Contains(vectorStores[e.name], vectors.SparseVector) {
			return // all engines are filled alike
		}
		files := hardFiles{matrix, filepath.Join(newDir(t, "vectors"), "w.akin")}
		var indices []*vectorIndex
		for _, index := range []string{"akin-e2e-vectors-cut-off", "akin-e2e-vectors-whole"} {
			e.makeIndex(t, index, `{"settings":{"number_of_shards":1,"number_of_replicas":0},"mappings":{"properties":{"body":{"type":"text"}}}}`)
			e.index(t, index, docs)
			indices = append(indices, &vectorIndex{hardSpace: &hardSpace{e: e, index: index}, files: files})
		}
		v, whole := indices[0], indices[1]
		e.freezeWeights(t, v.index, files)
		store := []string{"--store", string(vectors.SparseVector), "--terms"}
		path := filepath.Join(newDir(t, "vectors"), "model.akin")
		interrupt := func() (done map[string]int) {
			norms := &normsFixture{e, t, v.index, "body"}
			said := norms.interrupt(func(cluster string) []string { return v.command(cluster, path) })
			v.read(t, path)
			if done = v.written(t); len(done) != 1000 || !strings.Contains(said, "1000 documents written") {
				t.Errorf("%d documents are done by two requests\n%s", len(done), said)
			}
			return done
		}
		check := func() {
			t.Helper()
			if of := v.models(t); len(of) != 1 || of[whole.model.ID()] != 2100 {
				t.Errorf("documents by model %v, want 2100 of %s", of, whole.model.ID())
			}
			want := whole.vectors(t)
			if got := v.vectors(t); len(want) != 2100-42 || !maps.EqualFunc(got, want, maps.Equal) {
				t.Errorf("%d vectors are not the %d of an index that was filled at once", len(got), len(want))
			}
		}
		v.make(t, path, append(store, "30")...)
		done := interrupt()
		if said := v.backfill(t, path); !strings.Contains(said, "\n1100 documents written") {
			t.Errorf("the rest: %s", said)
		}
		whole.fill(t, append(store, "30")...)
		check()
		now := v.written(t)
		for id, seqNo := range done {
			if now[id] != seqNo {
				t.Fatalf("document %s was done and is written again", id)
			}
		}

		v.make(t, path, append(store, "10")...)
		interrupt()
		v.make(t, path, append(store, "3")...)
		if said := v.backfill(t, path); !strings.Contains(said, "\n2100 documents written") {
			t.Errorf("another model: %s", said)
		}
		whole.fill(t, append(store, "3")...)
		check()
	})
}

// written returns the sequence numbers of the documents with vectors of the
// model, or without terms for one, by id.
func (v *vectorIndex) written(t *testing.T) map[string]int {
	t.Helper()
	v.e.must(t, http.MethodPost, "/"+v.index+"/_refresh", "")
	answer := v.e.must(t, http.MethodPost, "/"+v.index+"/_search", fmt.Sprintf(`{"size":5000,"_source":false,"seq_no_primary_term":true,
		"query":{"term":{%q:{"value":%q}}}}`, vectors.ModelPath("body"), v.model.ID()))
	var found struct {
		Hits struct {
			Hits []struct {
				ID    string `json:"_id"`
				SeqNo int    `json:"_seq_no"`
			}
		}
	}
	decode(t, answer, &found)
	seqNos := map[string]int{}
	for _, h := range found.Hits.Hits {
		seqNos[h.ID] = h.SeqNo
	}
	return seqNos
}
