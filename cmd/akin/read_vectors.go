package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/esclient/mapping"
	"github.com/akin-search/akin/expand/vectors"
	"github.com/akin-search/akin/tools/enrich"
)

// mappingTimeout limits the change of a mapping. A busy master takes up to half
// a minute for it by default.
const mappingTimeout = 35 * time.Second

// errStore means that an index cannot store the vectors of a model.
var errStore = errors.New("it cannot store these vectors")

// checkVectorEngine returns an error that wraps [errStore] if the cluster has
// no field type for the vectors, or none with so many dimensions.
func checkVectorEngine(ctx context.Context, c documents.API, meta vectors.Meta) error {
	info, err := c.Client.Info(ctx)
	if err != nil {
		return err
	}
	if reason := refusal(info, meta); reason != "" {
		return fmt.Errorf("%s: %w: %s", info, errStore, reason)
	}
	return nil
}

func refusal(info esclient.Info, meta vectors.Meta) string {
	if info == (esclient.Info{}) {
		return "" // the cluster itself refuses what it lacks
	}
	var major, minor int
	_, _ = fmt.Sscanf(info.Version, "%d.%d", &major, &minor) // 0 if unknown
	version := 100*major + minor
	openSearch := info.Distribution == "opensearch"
	const renewed = 811 // the Elasticsearch version that supports everything
	switch meta.Store {
	case vectors.SparseVector:
		if openSearch || version < renewed {
			return "sparse_vector needs Elasticsearch 8.11 or later; --store rank_features also works with others"
		}
	case vectors.DenseVector:
		most := 1024
		switch {
		case openSearch:
			return "OpenSearch has no dense_vector; make the model with --store knn_vector"
		case major < 8:
			return "dense_vector supports kNN from Elasticsearch 8"
		case version >= renewed:
			most = 4096
		case meta.Normalization != vectors.Soft:
			return "inner products of any size need Elasticsearch 8.11 or later; make the model with --normalize soft"
		case version >= 808:
			most = 2048
		}
		if meta.Dims > most {
			return fmt.Sprintf("%d dimensions, but its dense_vector has at most %d; make the model with --dims %d", meta.Dims, most, most)
		}
	case vectors.KNNVector:
		if !openSearch {
			return "only OpenSearch has knn_vector; make the model with --store dense_vector"
		}
		if version < 213 {
			return "inner products in Lucene's kNN need OpenSearch 2.13 or later"
		}
	case vectors.RankFeatures:
		if openSearch && version < 101 || !openSearch && version < 712 {
			return "the function linear of rank_feature needs Elasticsearch 7.12 or OpenSearch 1.1, or later"
		}
	}
	return ""
}

// prepareVectors adds the mapping of the vectors to the indices that lack it,
// if write is set. Its error wraps [errStore] if an index has another mapping,
// such as other dimensions.
func prepareVectors(ctx context.Context, c documents.API, indices []mapping.Inspection, meta vectors.Meta, write bool) error {
	path, model := vectors.Path(meta.Field), vectors.ModelPath(meta.Field)
	for k := range indices {
		i := &indices[k]
		vector, err := mapping.Find(i.Properties, path)
		id, errID := mapping.Find(i.Properties, model)
		if err = cmp.Or(err, errID); err != nil {
			return fmt.Errorf("mapping of index %q: %w", i.Index, err)
		}
		if vector == nil && id == nil {
			if !write {
				continue
			}
			if meta.Store == vectors.KNNVector && i.Settings.Text("index.knn") != "true" {
				return fmt.Errorf("index %q: %w: create it with the setting index.knn, which needs the plugin k-NN", i.Index, errStore)
			}
			r := esapi.IndicesPutMappingRequest{Index: []string{esclient.Name(i.Index)}, Body: bytes.NewReader(meta.Mapping())}
			if err := c.Client.Do(ctx, esclient.Call{Request: r, Timeout: mappingTimeout}, nil); err != nil {
				return fmt.Errorf("index %q: %w: the mapping %s: %w", i.Index, errStore, meta.Mapping(), err)
			}
			continue
		}
		nothing := &mapping.Property{Type: "nothing"}
		vector, id = cmp.Or(vector, nothing), cmp.Or(id, nothing)
		dims := cmp.Or(string(vector.Dims), string(vector.Dimension), "0")
		switch {
		case vector.Type != string(meta.Store), id.Type != "keyword", dims != strconv.Itoa(meta.Dims):
			return fmt.Errorf("index %q: %w: it maps %s as %s of %s dimensions and %s as %s, the model needs %s of %d and keyword; use an index without these fields",
				i.Index, errStore, path, vector.Type, dims, model, id.Type, meta.Store, meta.Dims)
		case meta.Store == vectors.DenseVector && meta.Normalization != vectors.Soft && vector.Similarity != "max_inner_product":
			return fmt.Errorf("index %q: %w: %s has the similarity %q, vectors with the normalization %s need max_inner_product; use an index with that, or the normalization soft",
				i.Index, errStore, path, vector.Similarity, meta.Normalization)
		}
	}
	return nil
}

func coordinates(terms []documents.TermFreq) []vectors.Coordinate {
	y := make([]vectors.Coordinate, len(terms))
	for i, t := range terms {
		y[i] = vectors.Coordinate{Term: t.Term, Value: float64(t.Freq)}
	}
	return y
}

// sampleDocuments returns the terms of about n documents: those whose ids have
// the smallest hashes, so that the sample is reproducible.
func sampleDocuments(ctx context.Context, r *enrich.Reading, n int) ([][]vectors.Coordinate, error) {
	total, _, err := r.Count(ctx)
	if err != nil {
		return nil, err
	}
	most := float64(n) / math.Max(float64(total), 1) * math.MaxUint64
	hash := func(doc *documents.DocRef) uint64 {
		sum := sha256.Sum256([]byte(doc.ID))
		return binary.BigEndian.Uint64(sum[:])
	}
	type sampled struct {
		hash      uint64
		id, index string
		y         []vectors.Coordinate
	}
	var docs []sampled
	var mu sync.Mutex
	err = enrich.Retry(ctx, func() error { // an interrupted scan starts again
		docs = nil
		return r.Each(ctx, "reading a sample", func(doc *documents.DocRef) bool { return float64(hash(doc)) <= most },
			func(doc *documents.DocRef, terms []documents.TermFreq) error {
				mu.Lock()
				defer mu.Unlock()
				docs = append(docs, sampled{hash(doc), doc.ID, doc.Index, coordinates(terms)})
				return nil
			})
	})
	slices.SortFunc(docs, func(a, b sampled) int {
		return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.id, b.id), cmp.Compare(a.index, b.index))
	})
	out := make([][]vectors.Coordinate, len(docs))
	for i := range docs {
		out[i] = docs[i].y
	}
	return out, err
}

// vectorTask returns the task that stores documents' vectors, and adds what
// they lose to losses.
func vectorTask(c documents.API, m *vectors.Model, losses *vectorLosses) enrich.Task {
	d, field := m.Documents(), m.Meta().Field
	scan := documents.RefOptions{Value: vectors.ModelPath(field)}
	if m.Meta().Store == vectors.SparseVector { // see sameMapping
		scan.Source = []string{vectors.Path(field), vectors.ModelPath(field)}
	}
	return enrich.Task{
		Stage: "making vectors", Field: field, Done: []esclient.Object{enrich.Stamped(vectors.ModelPath(field), m.ID())}, Scan: scan,
		Fill: enrich.FromTerms(c, field, func(doc *documents.DocRef, terms []documents.TermFreq) enrich.Part {
			members, loss := d.Members(coordinates(terms), doc.HasValue)
			losses.add(&loss)
			if sameMapping(doc.Source, members) {
				return enrich.Part{Result: documents.UpdateResult{Status: documents.Unchanged}}
			}
			return enrich.Part{JSON: members, Empty: loss.Empty}
		}),
	}
}

// sameMapping reports whether a document already has the members. Since 9.2
// Elasticsearch returns a sparse vector without the array it came in and treats
// it as different, so it would write the document again and again.
func sameMapping(source, members []byte) bool {
	type vectored struct {
		Vector map[string]features `json:"akin_vector"`
		Model  map[string]string   `json:"akin_vector_model"`
	}
	var there, wanted vectored
	if json.Unmarshal(source, &there) != nil || json.Unmarshal(members, &wanted) != nil {
		return false
	}
	for _, v := range []map[string]features{there.Vector, wanted.Vector} {
		maps.DeleteFunc(v, func(_ string, f features) bool { return len(f) == 0 })
	}
	return maps.Equal(there.Model, wanted.Model) && maps.EqualFunc(there.Vector, wanted.Vector, maps.Equal)
}

// features are the features of a sparse vector, in an array or not.
type features map[string]float32

// UnmarshalJSON implements [json.Unmarshaler].
func (f *features) UnmarshalJSON(b []byte) error {
	if b = bytes.Trim(b, "[]"); len(b) == 0 {
		return nil
	}
	return json.Unmarshal(b, (*map[string]float32)(f))
}

// vectorLosses sum up what the vectors of documents lose.
type vectorLosses struct {
	mu   sync.Mutex
	docs int // with a vector
	cut  int // sparse vectors that were cut
	// sum and most are the total and the largest share left out: of the sum of
	// coordinates of a sparse vector, or of ⟨y, y⟩ of a dense one.
	sum, most float64
	largest   float64 // largest coordinate left out
}

func (l *vectorLosses) add(loss *vectors.Loss) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if loss.Empty {
		return
	}
	l.docs++
	if loss.Cut.Coordinates > 0 {
		l.cut++
	}
	share := loss.Cut.Share + loss.Dense // one of them is 0
	l.sum += share
	l.most = max(l.most, share)
	l.largest = max(l.largest, loss.Cut.Largest)
}

// Describe describes the losses, or returns "" if there are no vectors.
func (l *vectorLosses) Describe(meta vectors.Meta) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.docs == 0 {
		return ""
	}
	const percent = 100
	mean := percent * l.sum / float64(l.docs)
	if meta.Store.Dense() {
		return fmt.Sprintf("%d vectors of %d dimensions lack %.1f%% of the squares of their lengths on average, %.1f%% at most",
			l.docs, meta.Dims, mean, percent*l.most)
	}
	if l.cut == 0 {
		return fmt.Sprintf("%d vectors, none of them cut", l.docs)
	}
	to := ""
	if meta.Terms > 0 {
		to = fmt.Sprintf(" to %d terms", meta.Terms)
	}
	return fmt.Sprintf("%d vectors, %d of them cut%s: they lack %.1f%% of the sum of their values on average, %.1f%% at most; "+
		"scores are too low by %.3g times the sum of the query's values at most", l.docs, l.cut, to, mean, percent*l.most, l.largest)
}
