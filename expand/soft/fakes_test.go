package soft

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/simmatrix"
)

// A fakeMatrix holds rows in memory, for S and for W.
type fakeMatrix struct {
	version string
	docs    int64
	rows    map[string]simmatrix.Row
	err     error

	mu    sync.Mutex
	calls int
	asked int
}

func (m *fakeMatrix) Version() string { return m.version }

func (*fakeMatrix) Checksum() string { return "checksum" }

func (m *fakeMatrix) ID() string { return m.version }

func (m *fakeMatrix) Docs() int64 { return m.docs }

func (*fakeMatrix) Power() float64 { return 1 }
func (*fakeMatrix) Model() string  { return "" }

func (*fakeMatrix) Expressions() func(string) bool { return nil }

func (*fakeMatrix) Nearest(string) ([]string, float32) { return nil, 0 }

func (m *fakeMatrix) Rows(_ context.Context, terms []string, rows []simmatrix.Row) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls++
	m.asked += len(terms)
	for k, t := range terms {
		rows[k] = m.rows[t]
	}
	return m.err
}

// set packs a row.
func (m *fakeMatrix) set(tb testing.TB, term string, docFreq uint32, similar map[string]float64) {
	tb.Helper()
	var list []simmatrix.Neighbor
	for t, s := range similar {
		list = append(list, simmatrix.Neighbor{Term: t, Similarity: simmatrix.QuantizeSimilarity(s)})
	}
	slices.SortFunc(list, func(a, b simmatrix.Neighbor) int {
		return cmp.Or(cmp.Compare(b.Similarity, a.Similarity), cmp.Compare(a.Term, b.Term))
	})
	row, err := simmatrix.PackRow(docFreq, list)
	check.OK(tb, err)
	if m.rows == nil {
		m.rows = map[string]simmatrix.Row{}
	}
	m.rows[term] = row
}

// A docName names a document of fakeVectors.
type docName struct{ index, id string }

// fakeVectors are documents: for each of them its version and, by field, its
// terms.
type fakeVectors struct {
	mu       sync.Mutex
	docs     map[docName]map[string]map[string]int64
	versions map[docName]int64 // others have 1
	err      error
	failed   map[docName]error // of single documents
	panics   bool
	// wait, unless nil, holds every call until it is closed or the call ends.
	wait  chan struct{}
	calls [][]documents.VectorRequest
	// uuids are those of indices, unreadable the fields that are not readable,
	// and asked is how often each of them was asked for.
	uuids       map[string]string
	unreadable  map[string]bool
	askedUUIDs  []string
	askedFields []string
	// seqNos are those of documents, named the numbers that Named was asked for, and
	// means the mean lengths of fields.
	seqNos map[docName]int64
	named  [][]int64
	means  map[string]float64
	// namedErr is what Named fails with.
	namedErr error
	// most, unless 0, is how many documents are not too much for one call.
	most int
}

// add adds a document and returns the hit of it.
func (f *fakeVectors) add(id string, fields map[string]map[string]int64) expand.Hit {
	f.docs[docName{"i", id}] = fields
	return expand.Hit{Index: "i", ID: id, Version: 1}
}

func (f *fakeVectors) Named(_ context.Context, index string, seqNos []int64) ([]documents.DocRef, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.named = append(f.named, slices.Clone(seqNos))
	var docs []documents.DocRef
	for name := range f.docs {
		if seqNo, ok := f.seqNos[name]; ok && name.index == index && slices.Contains(seqNos, seqNo) {
			docs = append(docs, documents.DocRef{Index: index, ID: name.id, SeqNo: seqNo, PrimaryTerm: 1, Version: max(f.versions[name], 1)})
		}
	}
	return docs, f.namedErr
}

func (f *fakeVectors) UUIDs(_ context.Context, indices, ids []string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for k, index := range indices {
		f.askedUUIDs = append(f.askedUUIDs, index)
		ids[k] = f.uuids[index]
	}
	return nil
}

func (f *fakeVectors) Readable(_ context.Context, index, field string) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.askedFields = append(f.askedFields, index+"."+field)
	return !f.unreadable[field], nil
}

func (f *fakeVectors) DocVectors(ctx context.Context, docs []documents.VectorRequest) ([]documents.DocTerms, error) {
	f.mu.Lock()
	f.calls = append(f.calls, docs)
	wait := f.wait
	f.mu.Unlock()
	if wait != nil {
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if f.panics {
		panic("a mistake")
	}
	if f.err != nil {
		return nil, f.err
	}
	if f.most > 0 && len(docs) > f.most {
		return nil, fmt.Errorf("so many: %w", esclient.ErrTooLarge)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]documents.DocTerms, len(docs))
	for i, d := range docs {
		key := docName{d.Index, d.ID}
		fields, ok := f.docs[key]
		if out[i].Err = f.failed[key]; !ok || out[i].Err != nil {
			continue
		}
		out[i] = documents.DocTerms{Found: true, Version: max(f.versions[key], 1), Fields: map[string][]documents.TermFreq{}, MeanLengths: f.means}
		for _, name := range d.Fields {
			var terms []documents.TermFreq
			for text, n := range fields[name] {
				terms = append(terms, documents.TermFreq{Term: text, Freq: n})
			}
			out[i].Fields[name] = terms
		}
	}
	return out, nil
}

func (f *fakeVectors) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.calls)
}

// by returns what hits are ordered by, without sums.
func by(fields []expand.RerankField) *expand.Rerank { return &expand.Rerank{Fields: fields} }

// softs returns the soft cosines of scores.
func softs(scores []expand.HitScore) []float64 {
	out := make([]float64, len(scores))
	for k := range scores {
		out[k] = scores[k].Soft
	}
	return out
}

// recalled returns the comparison of hits whose terms are remembered.
func recalled(t *testing.T, r *Reranker, fields []expand.RerankField, hits []expand.Hit) *window {
	t.Helper()
	w, err := r.open(fields, hits)
	check.OK(t, err)
	if known, err := w.recall(t.Context()); !known || err != nil {
		t.Fatalf("remembered: %v, %v", known, err)
	}
	return w
}

// forgetSquares has the squares of hits forgotten, which are of an index without
// a UUID.
func forgetSquares(r *Reranker, fields []expand.RerankField, hits []expand.Hit) {
	for i := range fields {
		for _, hit := range hits {
			r.memory.vectors.settle(r.memory.docKey(vectorKey{hit, "", fields[i].Field}), 0, 0)
		}
	}
}
