package enrich

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/esclient/mapping"
	"github.com/akin-search/akin/simmatrix"
)

// CheckNorms returns the mapping to add, as JSON, unless an index maps the
// norms of a field as a float and the ids of their weights as a keyword, both
// with doc values. Without it searches would not find the norms, or the engine
// would choose a mapping itself.
func CheckNorms(i *mapping.Inspection, field string) (lacking []byte, err error) {
	norm, err := mapping.Find(i.Properties, esclient.NormPath(field))
	id, errID := mapping.Find(i.Properties, esclient.NormWeightsPath(field))
	fits := func(p *mapping.Property, want string) bool {
		return p != nil && p.Type == want && string(p.DocValues) != "false"
	}
	if err = errors.Join(err, errID); err != nil || fits(norm, "float") && fits(id, "keyword") && string(id.Index) != "false" {
		return nil, err
	}
	name := esclient.NormName(field)
	return encode(object{"properties": object{
		esclient.NormObject:        object{"properties": object{name: object{"type": "float", "index": false}}},
		esclient.NormWeightsObject: object{"properties": object{name: object{"type": "keyword"}}},
	}})
}

// ErrNoTerms means that there are no terms to make weights from.
var ErrNoTerms = errors.New("no document has terms in the field")

// SnapshotOptions configure [Snapshot].
type SnapshotOptions struct {
	// Source describes where the documents come from.
	Source string
	// MaxMemory limits the bytes of the terms during counting; making the matrix
	// takes about three times as much. 0 means no limit.
	MaxMemory int64
}

// Snapshot counts the documents of each term of a field. It returns a matrix
// with a row for each term and no neighbors. Its Docs is the number of
// documents with terms in the field. The same documents give the same matrix.
// The error wraps [simmatrix.ErrMemory] if the limit is too small, and
// [ErrNoTerms] if no document has terms.
func Snapshot(ctx context.Context, r *Reading, o SnapshotOptions) (*simmatrix.Matrix, error) {
	const termBytes = 56 // approximate memory of a counted term besides its text
	var mu sync.Mutex    // guards the variables below
	var docs uint64
	var docFreqs map[string]uint32
	var bytes int64
	count := func(_ *documents.DocRef, terms []documents.TermFreq) error {
		mu.Lock()
		defer mu.Unlock()
		if len(terms) > 0 {
			docs++
		}
		for _, t := range terms {
			n, known := docFreqs[t.Term]
			if n == math.MaxUint32 || len(t.Term) > simmatrix.MaxTermBytes {
				continue // engines allow neither
			}
			if known {
				docFreqs[t.Term] = n + 1
				continue
			}
			docFreqs[strings.Clone(t.Term)] = 1
			bytes += int64(len(t.Term)) + termBytes
		}
		if o.MaxMemory > 0 && bytes > o.MaxMemory {
			return fmt.Errorf("%w: the %d terms of the first %d documents take %d MB", simmatrix.ErrMemory, len(docFreqs), docs, bytes>>20)
		}
		return nil
	}
	err := Retry(ctx, func() error { // an interrupted scan starts again, and so do the counts
		docs, docFreqs, bytes = 0, map[string]uint32{}, 0
		return r.Each(ctx, "counting terms", nil, count)
	})
	if err != nil {
		return nil, err
	}
	var rows []simmatrix.TermRow
	for term, docFreq := range docFreqs {
		if term != "" {
			rows = append(rows, simmatrix.TermRow{Term: term, DocFreq: docFreq})
		}
	}
	docFreqs = nil
	if len(rows) == 0 {
		return nil, ErrNoTerms
	}
	params := map[string]string{"kind": "weights", "field": r.Field}
	return simmatrix.New(simmatrix.Meta{Source: o.Source, Params: params, Docs: docs}, rows)
}

// ErrNoDocs means that a matrix cannot be weights, because it lacks the number
// of documents.
var ErrNoDocs = errors.New("the matrix lacks the number of documents")

// Weights are frozen weights W: the inverse document frequencies of a matrix's
// terms. They are immutable.
type Weights struct {
	matrix *simmatrix.Matrix
	docs   int64
}

// NewWeights returns the weights of a matrix. The error wraps [ErrNoDocs].
func NewWeights(m *simmatrix.Matrix) (*Weights, error) {
	docs := m.Meta().Docs
	if docs == 0 {
		return nil, ErrNoDocs
	}
	return &Weights{m, int64(min(docs, math.MaxInt64))}, nil
}

// ID returns the id of the weights, see [esclient.NormWeightsID].
func (w *Weights) ID() string { return esclient.NormWeightsID(w.matrix.Checksum()) }

// Weight returns the positive weight of a term. A term without a row counts as
// if one document contained it.
func (w *Weights) Weight(term string) float64 {
	return simmatrix.IDF(int64(w.matrix.Row(term).DocFreq()), w.docs)
}

// Norm returns ‖Wy‖ = √Σ_t (w_t·tf_t)² for the unique terms of a document's
// field, 0 for none. It sorts the terms, so that the same document gives the
// same bits.
func (w *Weights) Norm(terms []documents.TermFreq) float64 {
	slices.SortFunc(terms, func(a, b documents.TermFreq) int { return cmp.Compare(a.Term, b.Term) })
	sum := 0.0
	for _, t := range terms {
		v := w.Weight(t.Term) * float64(t.Freq)
		sum += v * v
	}
	return math.Sqrt(sum)
}

// normMembers returns the norm of a field and the id of its weights, to merge
// into a document. With a norm of 0, for a field without terms, it returns only
// the id. stale says that the document then has a norm to remove.
func normMembers(field, id string, norm float64, stale bool) object {
	name := esclient.NormName(field)
	members := object{esclient.NormWeightsObject: object{name: id}}
	if norm > 0 {
		members[esclient.NormObject] = object{name: float32(norm)} // the engine converts it anyway
	} else if stale {
		members[esclient.NormObject] = object{name: nil}
	}
	return members
}

// NormsTask returns the task that stores in each document with the field its
// norm and the id of the weights. Documents that have both are done. Documents
// without terms count as empty. They get only the id, and every run processes
// them again: no query can tell them from documents whose terms were unknown
// when they were written.
func NormsTask(c Cluster, weights *Weights, field string) Task {
	done := object{"bool": object{"filter": []object{
		Stamped(esclient.NormWeightsPath(field), weights.ID()), esclient.ExistsQuery(esclient.NormPath(field)),
	}}}
	return Task{
		Stage: "computing norms", Field: field, Done: []object{done}, Scan: documents.RefOptions{Value: esclient.NormPath(field)},
		Fill: FromTerms(c, field, func(doc *documents.DocRef, terms []documents.TermFreq) Part {
			norm := weights.Norm(terms)
			return newPart(normMembers(field, weights.ID(), norm, doc.HasValue), norm == 0)
		}),
	}
}
