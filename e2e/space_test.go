package e2e

import (
	"maps"
	"net/http"
	"slices"
	"testing"

	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/softcosine"
)

// A space computes the measures from S, W and the terms that an index has of
// documents, without the engine's scores.
type space struct {
	*softcosine.Space

	e            *engine
	index, field string
	vocabulary   *softcosine.Vocabulary
	docs         map[string]softcosine.Vector
}

// newSpace reads the documents with the ids of hits and the queries that are to
// be compared.
func newSpace(t *testing.T, e *engine, index, field string, hits []hit, queries []judgedQuery, s, weights *simmatrix.Matrix) *space {
	t.Helper()
	p := &space{e: e, index: index, field: field, docs: map[string]softcosine.Vector{}}
	counts, terms := map[string]map[string]float64{}, map[string]bool{}
	for some := range slices.Chunk(hits, 200) {
		maps.Copy(counts, p.termVectors(t, some))
	}
	for _, q := range queries {
		counts["query "+q.id] = p.analyze(t, q.text)
	}
	for _, of := range counts {
		for term := range of {
			terms[term] = true
		}
	}
	var similarities *softcosine.Similarities
	p.vocabulary, similarities = softcosine.FromMatrix(s, slices.Sorted(maps.Keys(terms))...)
	w := make([]float64, p.vocabulary.Len())
	for i := range w {
		w[i] = simmatrix.IDF(int64(weights.Row(p.vocabulary.Term(int32(i))).DocFreq()), int64(weights.Meta().Docs))
	}
	var err error
	if p.Space, err = softcosine.NewSpace(w, similarities); err != nil {
		t.Fatal(err)
	}
	for id, of := range counts {
		p.docs[id] = p.vector(of)
	}
	return p
}

// query returns the vector of a query that the space was made with.
func (p *space) query(q judgedQuery) softcosine.Vector { return p.docs["query "+q.id] }

// vector makes a vector of known terms.
func (p *space) vector(terms map[string]float64) softcosine.Vector {
	values := map[int32]float64{}
	for term, n := range terms {
		if i, ok := p.vocabulary.Number(term); ok {
			values[i] = n
		}
	}
	return softcosine.NewVector(values)
}

// termVectors returns the frequencies of the terms that the index has of documents.
func (p *space) termVectors(t *testing.T, hits []hit) map[string]map[string]float64 {
	t.Helper()
	docs := make([]section, len(hits))
	for i, h := range hits {
		docs[i] = section{"_index": p.index, "_id": h.ID, "fields": []string{p.field}, "positions": false, "offsets": false, "field_statistics": false}
		if h.Routing != "" {
			docs[i]["routing"] = h.Routing
		}
	}
	answer := ask[struct {
		Docs []struct {
			ID      string `json:"_id"`
			Vectors map[string]struct {
				Terms map[string]struct {
					Freq float64 `json:"term_freq"`
				}
			} `json:"term_vectors"`
		}
	}](t, p.e.cluster, http.MethodPost, "/_mtermvectors", toJSON(t, section{"docs": docs}))
	counts := map[string]map[string]float64{}
	for _, d := range answer.Docs {
		counts[d.ID] = map[string]float64{}
		for term, v := range d.Vectors[p.field].Terms {
			counts[d.ID][term] = v.Freq
		}
	}
	return counts
}

// analyze returns the frequencies of the index terms of a text.
func (p *space) analyze(t *testing.T, text string) map[string]float64 {
	t.Helper()
	answer := ask[struct{ Tokens []struct{ Token string } }](t, p.e.cluster, http.MethodPost, "/"+p.index+"/_analyze",
		toJSON(t, section{"field": p.field, "text": text}))
	counts := map[string]float64{}
	for _, token := range answer.Tokens {
		counts[token.Token]++
	}
	return counts
}

// asHits returns documents as hits.
func asHits(docs []document) []hit {
	hits := make([]hit, len(docs))
	for i, d := range docs {
		hits[i].ID = d.id
	}
	return hits
}
