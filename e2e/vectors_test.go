package e2e

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/akin-search/akin/expand/vectors"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/combine"
)

// vectorStores are the stores of the engines as they are started here: those of
// Elasticsearch 8 and 9 have only the core of the server, and that of 7 is too
// old for any.
var vectorStores = map[string][]vectors.Store{
	"opensearch2": {vectors.RankFeatures}, "opensearch3": {vectors.RankFeatures},
	"elasticsearch8": {vectors.SparseVector, vectors.DenseVector}, "elasticsearch9": {vectors.SparseVector, vectors.DenseVector},
}

const vectorWords = 80

// vectorWord is a word of the documents: some have a dot, which engines read as
// a path in the name of a feature.
func vectorWord(i int) string {
	if i%10 == 0 {
		return strconv.Itoa(i) + ".5"
	}
	return "word" + strconv.Itoa(i)
}

// vectorTexts returns documents, some without a term, and queries of these
// words.
func vectorTexts(random *rand.Rand) *collection {
	text := func(words int) string {
		var b strings.Builder
		for range words {
			b.WriteString(vectorWord(int(random.ExpFloat64()*vectorWords/4)%vectorWords) + " ")
		}
		return b.String()
	}
	c := &collection{name: "vectors"}
	for i := range 150 {
		var body any = text(5 + i%40)
		switch {
		case i%50 == 7:
			body = "?!"
		case i%5 == 0:
			body = []string{text(4), text(9)}
		}
		c.docs = append(c.docs, document{strconv.Itoa(i), section{"body": body}})
	}
	c.docs = append(c.docs, document{"other", section{"title": "no body"}})
	for i := range 25 {
		c.queries = append(c.queries, judgedQuery{id: strconv.Itoa(i), text: text(1 + i%6)})
	}
	return c
}

// vectorSimilarities returns a matrix over the words, symmetric and dominant, in
// which some have a neighbor that no document has.
func vectorSimilarities(t *testing.T, random *rand.Rand) *simmatrix.Matrix {
	t.Helper()
	var rows []simmatrix.TermRow
	for i := range vectorWords + 5 {
		row := simmatrix.TermRow{Term: vectorWord(i), DocFreq: 1}
		for range 6 {
			if j := random.IntN(vectorWords + 5); j != i {
				row.Neighbors = append(row.Neighbors, simmatrix.Neighbor{Term: vectorWord(j), Similarity: random.Float32()*0.4 + 0.01})
			}
		}
		slices.SortFunc(row.Neighbors, func(a, b simmatrix.Neighbor) int { return cmp.Compare(a.Term, b.Term) })
		row.Neighbors = slices.CompactFunc(row.Neighbors, func(a, b simmatrix.Neighbor) bool { return a.Term == b.Term })
		rows = append(rows, row)
	}
	m, err := simmatrix.New(simmatrix.Meta{}, rows)
	if err == nil {
		m, err = combine.Sparsify(m, combine.SparsifyOptions{Symmetric: true, Dominant: true})
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestVectorsScoreByTheSoftCosine gives documents their vectors, which lose
// nothing, and compares akin's scores in the mode vectors with the soft cosine
// that softcosine computes from S, W and the terms of the documents.
func TestVectorsScoreByTheSoftCosine(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, e *engine) {
		for _, store := range vectorStores[e.name] {
			t.Run(string(store), func(t *testing.T) { checkVectors(t, e, store) })
		}
	})
}

// TestVectorsScoreInOpenSearchsKNN is the same for knn_vector.
func TestVectorsScoreInOpenSearchsKNN(t *testing.T) {
	long(t)
	t.Parallel()
	if e := theEngine(t, "opensearch2"); e != nil {
		checkVectors(t, e, vectors.KNNVector)
	}
}

// checkVectors compares the scores of the vectors in a store.
func checkVectors(t *testing.T, e *engine, store vectors.Store) {
	t.Helper()
	random := rand.New(rand.NewPCG(17, 4))
	c, s := vectorTexts(random), vectorSimilarities(t, random)
	if !store.Dense() {
		c.queries = append(c.queries, judgedQuery{id: "unheard", text: "word3 unheard"}) // which makes the query longer
	}
	index, matrix, model := "akin-e2e-vectors-"+strings.ReplaceAll(string(store), "_", "-"), encodedFile(t, s), newPath(t, "model.akin")
	definition := oneShard(`"body":{"type":"text"},"uid":{"type":"keyword"}`)
	if store == vectors.KNNVector {
		definition = strings.Replace(definition, `"settings":{`, `"settings":{"index.knn":true,`, 1)
	}
	e.makeIndex(t, index, definition)
	e.index(t, index, withIDs(c.docs))
	weights := e.freezeWeights(t, index, "body")
	fill := func(terms, want string) {
		t.Helper()
		mustAkin(t, append([]string{
			"index", "vectors", "model", "--matrix", matrix, "--weights", weights, "--out", model, "--store", string(store), "--strength", "1", "--terms", terms, "--dims", "500",
		}, e.of(index, "body")...)...)
		r := runAkin(t, append([]string{"index", "vectors", "backfill", "--model", model}, e.of(index, "body")...)...)
		if r.status != 0 || !strings.Contains(r.stderr, want) {
			t.Errorf("%s terms: status %d, want %q in\n%s", terms, r.status, want, r.stderr)
		}
	}
	if !store.Dense() { // the vectors of another model are replaced
		fill("3", "150 documents written, 3 of them without terms")
		fill("3", ": 0 documents to do")
	}
	fill("0", "150 documents written, 3 of them without terms")
	a := setupWide(t, e, section{
		"expansion": section{"mode": "vectors", "soft_weight": 1, "max_doc_share": 1, "rerank_window": 200},
		"profiles":  section{"blend": section{"soft_weight": 0.3}, "same": section{"matching": "same"}, "few": section{"rerank_window": 5}},
		"matrices":  matrices("s", matrix),
		"vectors":   []string{model},
	})
	p := newSpace(t, e, index, "body", asHits(c.docs), c.queries, s, readMatrix(t, weights))
	for _, q := range c.queries {
		checkVectorScores(t, e, a, p, store, q, c.docs)
	}
	if store == vectors.RankFeatures && e.name == qualityEngine { // which has neural-search
		for _, q := range c.queries {
			checkNeuralSparse(t, e, a, index, q.text)
		}
	}
	a.checkExplained(t, index, relatedSearch("word3"), "vectors", "query", "")
	checkOtherModels(t, e, a, index)
	checkNoFallback(t, a)
}

// checkNeuralSparse compares what akin writes for a text in vectors with the
// same vector as the tokens of a neural_sparse query: the order and the scores
// are equal.
func checkNeuralSparse(t *testing.T, e *engine, a *akin, index, text string) {
	t.Helper()
	tokens, field := map[string]float64{}, ""
	var walk func(v any)
	var features []any
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, x := range v {
				walk(x)
			}
		case map[string]any:
			if f, ok := v["rank_feature"].(map[string]any); ok {
				name := f["field"].(string)
				field = "akin_vector.body"
				boost, boosted := f["boost"].(float64)
				if !boosted {
					boost = 1
				}
				tokens[strings.TrimPrefix(name, field+".")] = boost
				features = append(features, v)
				return
			}
			for _, x := range v {
				walk(x)
			}
		}
	}
	var body any
	if err := json.Unmarshal(a.explain(t, index, listBody(text, 200)).Body, &body); err != nil {
		t.Fatal(err)
	}
	if walk(body); len(tokens) == 0 {
		t.Errorf("%q: no vector in %v", text, body)
		return
	}
	plain := e.find(t, index, toJSON(t, section{"size": 200, "query": section{"bool": section{"should": features}}}))
	sparse := e.find(t, index, toJSON(t, section{"size": 200, "query": section{"neural_sparse": section{field: section{"query_tokens": tokens}}}}))
	if fmt.Sprint(plain.ids()) != fmt.Sprint(sparse.ids()) {
		t.Errorf("%q: neural_sparse finds %v, rank_feature %v", text, sparse.ids(), plain.ids())
	}
	for id, score := range plain.scores() {
		if got := sparse.scores()[id]; math.Abs(got-score) > 1e-5*score {
			t.Errorf("%q: %s scores %v by neural_sparse, %v by rank_feature", text, id, got, score)
		}
	}
}

// checkVectorScores compares the hits of a query in all profiles with the measure.
func checkVectorScores(t *testing.T, e *engine, a *akin, p *space, store vectors.Store, q judgedQuery, docs []document) {
	t.Helper()
	body := listBody(q.text, 200)
	plain, alone := e.find(t, p.index, body).scores(), a.find(t, p.index, body).scores()
	same, blend := a.find(t, p.index+"?akin_profile=same", body).scores(), a.find(t, p.index+"?akin_profile=blend", body).scores()
	smallest, largest := math.Inf(1), 0.0
	for _, d := range docs {
		if p.docs[d.id].Len() == 0 {
			if _, ok := alone[d.id]; ok {
				t.Errorf("query %s: document %s, which has no terms, is a hit", q.id, d.id)
			}
			continue
		}
		want, err := p.Soft(p.query(q), p.docs[d.id])
		if err != nil {
			t.Fatal(err)
		}
		found, near := plain[d.id] > 0, want > 1e-6
		switch {
		case store == vectors.KNNVector:
			want, near = 1+want, true
		case store.Dense():
			want, near = (1+want)/2, true
		}
		if got, ok := alone[d.id]; ok != (found || near) || near && math.Abs(got-want) > 0.003*want {
			t.Errorf("query %s, document %s: found %t, score %v, the measure is %v", q.id, d.id, ok, got, want)
		}
		if got, ok := same[d.id]; ok != found || ok && math.Abs(got-want) > 0.003*want {
			t.Errorf("query %s, document %s, matching same: found %t, score %v, the measure is %v", q.id, d.id, ok, got, want)
		}
		if near { // the blend is BM25 and a constant times the measure
			smallest, largest = min(smallest, (blend[d.id]-plain[d.id])/want), max(largest, (blend[d.id]-plain[d.id])/want)
		}
	}
	if !(smallest > 0.5 && largest < 1.01*smallest) {
		t.Errorf("query %s: what a blend adds to BM25 is %v to %v times the measure", q.id, smallest, largest)
	}
}

// checkOtherModels searches with as many nearest documents as there are whose
// vectors are the best ones by another model, and in an index without vectors.
func checkOtherModels(t *testing.T, e *engine, a *akin, index string) {
	t.Helper()
	const others, query = 5, "word3"
	bare := index + "-bare"
	e.makeIndex(t, bare, oneShard(`"body":{"type":"text"},"uid":{"type":"keyword"}`))
	e.index(t, bare, withIDs([]document{{"bare", section{"body": query}}}))
	best := a.find(t, index, listBody(query, 1)).ids()[0]
	// Named, vectors are shown by engines, too, that leave them out of sources.
	var source map[string]map[string]json.RawMessage
	decode(t, e.find(t, index, `{"_source":["`+vectors.Object+`.body"],"query":{"term":{"uid":"`+best+`"}}}`).Hits.Hits[0].Source, &source)
	var docs []document
	for i := range others {
		docs = append(docs, document{fmt.Sprint("other", i), section{
			"body": "nothing", vectors.Object: section{"body": source[vectors.Object]["body"]}, vectors.ModelObject: section{"body": "another"},
		}})
	}
	e.index(t, index, withIDs(docs))
	hits := a.find(t, index+","+bare+"?akin_profile=few", listBody(query, 200))
	if n := len(hits.ids()); n < others || !hits.has(best) || !hits.has("bare") || slices.ContainsFunc(hits.ids(), func(id string) bool { return strings.HasPrefix(id, "other") && id != "other" }) {
		t.Errorf("%d hits next to vectors of another model: %v", n, hits.ids())
	}
}
