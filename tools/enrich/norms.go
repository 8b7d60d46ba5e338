package enrich

import (
	"cmp"
	"errors"
	"math"
	"slices"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/esclient/mapping"
	"github.com/akin-search/akin/simmatrix"
)

// CheckNorms returns the mapping to put, as JSON, where an index does not map
// the norms of a field as a float and the ids of their weights as a keyword,
// both with doc values, and nil where it does: what is written there would not
// be found, or be mapped as the engine sees fit.
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

// ErrNoDocs says that a matrix cannot be weights: the number of documents that
// its document frequencies are of is not known.
var ErrNoDocs = errors.New("the matrix does not know the number of documents")

// Weights are W of a moment: the inverse document frequencies of a matrix's
// terms. They are immutable.
type Weights struct {
	matrix *simmatrix.Matrix
	docs   int64
}

// NewWeights returns the weights that a matrix makes. The error wraps
// [ErrNoDocs].
func NewWeights(m *simmatrix.Matrix) (*Weights, error) {
	docs := m.Meta().Docs
	if docs == 0 {
		return nil, ErrNoDocs
	}
	return &Weights{m, int64(min(docs, math.MaxInt64))}, nil
}

// ID returns the id of the weights, see [esclient.NormWeightsID].
func (w *Weights) ID() string { return esclient.NormWeightsID(w.matrix.Checksum()) }

// Weight returns the weight of a term, positive. A term without a row counts as
// one that a single document has.
func (w *Weights) Weight(term string) float64 {
	return simmatrix.IDF(int64(w.matrix.Row(term).DocFreq()), w.docs)
}

// Norm returns ‖Wy‖ = √Σ_t (w_t·tf_t)² for the terms of a document's field,
// each there once; 0 for no terms. It sorts the terms, so that the same
// document gives the same bits.
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
// into a document. A norm of 0 stands for a field without terms, which gets the
// id only; stale says that the document has a norm that has to go then.
func normMembers(field, id string, norm float64, stale bool) object {
	name := esclient.NormName(field)
	members := object{esclient.NormWeightsObject: object{name: id}}
	if norm > 0 {
		members[esclient.NormObject] = object{name: float32(norm)} // which the engine makes of it anyway
	} else if stale {
		members[esclient.NormObject] = object{name: nil}
	}
	return members
}

// NormsTask returns the task of giving each document that has the field its
// norm by the weights and their id, unless it has that id and a norm.
// Documents without terms count as empty. They get the id only and are always
// among those to do: no query tells them from those whose terms were not known
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
