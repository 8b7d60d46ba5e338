package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"math"
	"slices"
	"sync"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/expand/vectors"
	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/tools/enrich"
)

func coordinates(terms []documents.TermFreq) []vectors.Coordinate {
	y := make([]vectors.Coordinate, len(terms))
	for i, t := range terms {
		y[i] = vectors.Coordinate{Term: t.Term, Value: float64(t.Freq)}
	}
	return y
}

// sampleDocuments returns the terms of about n documents: those whose ids have
// the smallest hashes, so that they are the same every time.
func sampleDocuments(ctx context.Context, r *enrich.Reading, n int) ([][]vectors.Coordinate, error) {
	total, _, err := r.Count(ctx)
	if err != nil {
		return nil, err
	}
	most := float64(n) / math.Max(float64(total), 1) * math.MaxUint64
	hash := func(doc *documents.DocRef) uint64 {
		h := fnv.New64a()
		_, _ = io.WriteString(h, doc.ID) // a hash takes all
		return scatter(h.Sum64())
	}
	type sampled struct {
		hash      uint64
		id, index string
		y         []vectors.Coordinate
	}
	var docs []sampled
	var mu sync.Mutex
	err = enrich.Retry(ctx, func() error { // a scan that is interrupted begins again
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

// scatter spreads hashes of like texts over all numbers (the last step of
// MurmurHash3).
func scatter(h uint64) uint64 {
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// vectorTask returns what gives documents their vectors, and adds up in losses
// what these have lost.
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

// sameMapping reports whether a document has the members already. From 9.2,
// Elasticsearch gives back a sparse vector without the array that it came in,
// and takes it for another one: it would write the document over and over.
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

// features are those of a sparse vector, in an array or not.
type features map[string]float32

// UnmarshalJSON implements [json.Unmarshaler].
func (f *features) UnmarshalJSON(b []byte) error {
	if b = bytes.Trim(b, "[]"); len(b) == 0 {
		return nil
	}
	return json.Unmarshal(b, (*map[string]float32)(f))
}

// vectorLosses add up what the vectors of documents have lost.
type vectorLosses struct {
	mu   sync.Mutex
	docs int // with a vector
	cut  int // sparse ones that are cut
	// sum and most are the shares that are left out: of the sum of the coordinates
	// of a sparse vector, and of ⟨y, y⟩ of a dense one.
	sum, most float64
	largest   float64 // coordinate left out
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
	l.sum, l.most, l.largest = l.sum+share, max(l.most, share), max(l.largest, loss.Cut.Largest)
}

func (l *vectorLosses) tell(report *cli.Progress, meta vectors.Meta) {
	if lost := l.Describe(meta); lost != "" {
		report.Tell("%s", lost)
	}
}

// Describe says in words what was lost, "" where there is no vector.
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
		"a score is too low by %.3g times the sum of the query's values at most", l.docs, l.cut, to, mean, percent*l.most, l.largest)
}
