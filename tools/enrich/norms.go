package enrich

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/esclient/mapping"
	"github.com/akin-search/akin/simmatrix"
)

// NormMapping returns the mapping, as JSON, that an index needs before the
// norms of a field are stored in it: the engine would make up other types.
func NormMapping(field string) []byte {
	name := esclient.NormName(field)
	return fmt.Appendf(nil, `{"properties":{%q:{"properties":{%s:{"type":"float","index":false}}},%q:{"properties":{%s:{"type":"keyword"}}}}}`,
		esclient.NormObject, quote(name), esclient.NormWeightsObject, quote(name))
}

// CheckNorms returns [NormMapping] where an index does not map the norms of a
// field as a float and the ids of their weights as a keyword, both with doc
// values, and nil where it does: what is written there would not be found, or
// be mapped as the engine sees fit.
func CheckNorms(i *mapping.Inspection, field string) (lacking []byte, err error) {
	norm, err := mapping.Find(i.Properties, esclient.NormPath(field))
	id, errID := mapping.Find(i.Properties, esclient.NormWeightsPath(field))
	fits := func(p *mapping.Property, want string) bool {
		return p != nil && p.Type == want && string(p.DocValues) != "false"
	}
	if fits(norm, "float") && fits(id, "keyword") && string(id.Index) != "false" {
		return nil, nil
	}
	return NormMapping(field), errors.Join(err, errID)
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

// NormMembers returns the norm of a field and the id of its weights, as a JSON
// object to merge into a document. A norm of 0 stands for a field without
// terms, which gets the id only; stale says that the document has a norm that
// has to go then.
func NormMembers(field, id string, norm float64, stale bool) []byte {
	name := quote(esclient.NormName(field))
	b := []byte("{")
	switch {
	case norm > 0:
		b = fmt.Appendf(b, "%q:{%s:%s},", esclient.NormObject, name, FormatNorm(norm))
	case stale:
		b = fmt.Appendf(b, "%q:{%s:null},", esclient.NormObject, name)
	}
	return fmt.Appendf(b, "%q:{%s:%s}}", esclient.NormWeightsObject, name, quote(id))
}

// FormatNorm returns a norm as the JSON number that is written into documents:
// the shortest one of the 32-bit float that the engine makes of it.
func FormatNorm(norm float64) string { return strconv.FormatFloat(norm, 'g', -1, 32) }

func quote(s string) []byte {
	b, err := json.Marshal(s)
	if err != nil {
		return []byte(`""`) // a string always has one
	}
	return b
}

// WithoutNorms returns the query for the documents that have the field and
// not the norm of these weights, as JSON; with an id of "" for all that
// have the field. Those without terms, which get the id only, are among
// them: no query tells them from those whose terms were not known when they
// were written.
func WithoutNorms(field, id string) []byte {
	has := fmt.Appendf(nil, `{"exists":{"field":%s}}`, quote(field))
	if id == "" {
		return has
	}
	return fmt.Appendf(nil, `{"bool":{"filter":[%s],"must_not":[{"bool":{"filter":[{"term":{%s:{"value":%s}}},{"exists":{"field":%s}}]}}]}}`,
		has, quote(esclient.NormWeightsPath(field)), quote(id), quote(esclient.NormPath(field)))
}

// NormsTask returns the task of giving each document that has the field its
// norm by the weights and their id, unless it has that id and a norm.
// Documents without terms count as empty.
func NormsTask(c TermReader, weights *Weights, field string) Task {
	return Task{
		Stage: "computing norms", Missing: WithoutNorms(field, weights.ID()), Every: WithoutNorms(field, ""), Value: esclient.NormPath(field),
		Fill: FromTerms(c, field, func(doc *documents.DocRef, terms []documents.TermFreq) Part {
			norm := weights.Norm(terms)
			return Part{JSON: NormMembers(field, weights.ID(), norm, doc.HasValue), Empty: norm == 0}
		}),
	}
}
