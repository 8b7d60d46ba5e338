package enrich

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
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
// with doc values, and with soft also the soft norms and their ids. Without it
// searches would not find the norms, or the engine would choose a mapping
// itself.
func CheckNorms(i *mapping.Inspection, field string, soft bool) (lacking []byte, err error) {
	types := map[string]string{esclient.NormObject: "float", esclient.NormWeightsObject: "keyword"}
	if soft {
		types[esclient.SoftNormObject], types[esclient.SoftNormMatrixObject] = "float", "keyword"
	}
	name := esclient.NormName(field)
	fit := true
	properties := object{}
	for of, want := range types {
		p, err := mapping.Find(i.Properties, of+"."+name)
		if err != nil {
			return nil, err
		}
		property := object{"type": want}
		if want == "float" {
			property["index"] = false
		}
		properties[of] = object{"properties": object{name: property}}
		fit = fit && p != nil && p.Type == want && string(p.DocValues) != "false" && (want == "float" || string(p.Index) != "false")
	}
	if fit {
		return nil, nil
	}
	return encode(object{"properties": properties})
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
		docs = 0
		docFreqs = map[string]uint32{}
		bytes = 0
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

// A SoftNorm computes √((Wy)ᵀS(Wy)), by which the soft cosine measure divides a
// document. It depends on S as well as on W. It is immutable.
type SoftNorm struct {
	weights *Weights
	table   *simmatrix.Table
	id      string
}

// NewSoftNorm returns the soft norm by weights W and a matrix S.
func NewSoftNorm(weights *Weights, s *simmatrix.Matrix) *SoftNorm {
	return &SoftNorm{weights, s.Table(), esclient.SoftNormID(weights.ID(), s.Checksum())}
}

// ID returns the id of weights and matrix, see [esclient.SoftNormID].
func (n *SoftNorm) ID() string { return n.id }

// Of returns √((Wy)ᵀS(Wy)) = √Σ_ij (w_i·tf_i) s_ij (w_j·tf_j), with s_ii = 1,
// for the unique terms of a document's field, 0 for none. It is at least ‖Wy‖,
// because no s_ij is negative. Like [Weights.Norm] it sorts the terms.
func (n *SoftNorm) Of(terms []documents.TermFreq) float64 {
	norm := n.weights.Norm(terms)
	sum, values := norm*norm, make(map[uint32]float64, len(terms))
	for _, t := range terms {
		if i, ok := slices.BinarySearch(n.table.Terms, t.Term); ok {
			values[uint32(i)] = n.weights.Weight(t.Term) * float64(t.Freq) //nolint:gosec // a matrix has fewer rows
		}
	}
	for _, t := range terms {
		i, ok := slices.BinarySearch(n.table.Terms, t.Term)
		if !ok {
			continue
		}
		row := 0.0
		cols, sims := n.table.Row(i)
		for k, col := range cols {
			row += float64(simmatrix.FromUnits(sims[k])) * values[col]
		}
		sum += values[uint32(i)] * row //nolint:gosec // as above
	}
	return math.Sqrt(sum)
}

// normMembers returns the norm of a field and the id of what it depends on, to
// merge into a document, in the two objects. With a norm of 0, for a field
// without terms, it returns only the id. stale says that the document then has
// a norm to remove.
func normMembers(norms, ids, field, id string, norm float64, stale bool) object {
	name := esclient.NormName(field)
	members := object{ids: object{name: id}}
	if norm > 0 {
		members[norms] = object{name: float32(norm)} // the engine converts it anyway
	} else if stale {
		members[norms] = object{name: nil}
	}
	return members
}

// NormsTask returns the task that stores in each document with the field its
// norm and the id of the weights, and unless soft is nil also its soft norm and
// the id of weights and matrix. Documents that have all are done. Documents
// without terms count as empty. They get only the ids, and every run processes
// them again: no query can tell them from documents whose terms were unknown
// when they were written.
func NormsTask(c Cluster, weights *Weights, soft *SoftNorm, field string) Task {
	done := []object{Stamped(esclient.NormWeightsPath(field), weights.ID()), esclient.ExistsQuery(esclient.NormPath(field))}
	if soft != nil {
		done = append(done, Stamped(esclient.SoftNormMatrixPath(field), soft.ID()), esclient.ExistsQuery(esclient.SoftNormPath(field)))
	}
	return Task{
		Stage: "computing norms", Field: field, Done: []object{{"bool": object{"filter": done}}},
		Scan: documents.RefOptions{Value: esclient.NormPath(field)},
		Fill: FromTerms(c, field, func(doc *documents.DocRef, terms []documents.TermFreq) Part {
			norm := weights.Norm(terms)
			members := normMembers(esclient.NormObject, esclient.NormWeightsObject, field, weights.ID(), norm, doc.HasValue)
			if soft != nil {
				maps.Copy(members, normMembers(esclient.SoftNormObject, esclient.SoftNormMatrixObject, field, soft.ID(), soft.Of(terms), doc.HasValue))
			}
			return newPart(members, norm == 0)
		}),
	}
}
