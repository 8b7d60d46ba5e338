package norms

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/simmatrix"
)

// The objects of a document that hold its norms and the ids of the weights that
// they were computed with, a member for each field.
const (
	// Object holds the norms: floats with doc values.
	Object = "akin_norm"
	// WeightsObject holds the ids of the weights: keywords.
	WeightsObject = "akin_norm_weights"
)

// Name returns the name that a field's norm and id have within the two objects:
// the field's full name with "__" for every ".". Fields that differ in nothing
// else, such as a.b and a__b, share a name; one index can have norms for one of
// them only.
func Name(field string) string { return strings.ReplaceAll(field, ".", "__") }

// NormPath returns the full name of the doc value that holds ‖Wy‖ of a field.
func NormPath(field string) string { return Object + "." + Name(field) }

// WeightsPath returns the full name of the keyword that holds the id of the
// weights of a field's norm. A document that has it and no norm has no terms in
// the field.
func WeightsPath(field string) string { return WeightsObject + "." + Name(field) }

// Mapping returns what to put as the mapping of an index, as JSON, before the
// norms of a field are stored in it. Without it the engine would make up other
// types for the two fields.
func Mapping(field string) []byte {
	name := Name(field)
	return fmt.Appendf(nil, `{"properties":{%q:{"properties":{%s:{"type":"float","index":false}}},%q:{"properties":{%s:{"type":"keyword"}}}}}`,
		Object, quote(name), WeightsObject, quote(name))
}

// idDigits of a checksum tell weights apart.
const idDigits = 16

// ID returns the id of weights from the checksum of their matrix: its first 16
// hexadecimal digits, or all of it where it is shorter. It is the same whether
// the matrix comes from a file or from Redis.
func ID(checksum string) string { return checksum[:min(len(checksum), idDigits)] }

// ErrNoDocs says that a matrix cannot be weights: it does not tell of how many
// documents its document frequencies are.
var ErrNoDocs = errors.New("the matrix does not know the number of documents")

// Weights are W of a moment: the inverse document frequencies of a matrix's
// terms. The neighbors in the matrix are not looked at. They are immutable and
// safe for use by any number of goroutines.
type Weights struct {
	id       string
	docs     int64
	docFreqs map[string]uint32
}

// NewWeights returns the weights that a matrix makes. It keeps the terms of m
// and not its entries. The error wraps [ErrNoDocs].
func NewWeights(m *simmatrix.Matrix) (*Weights, error) {
	docs := m.Meta().Docs
	if docs == 0 {
		return nil, ErrNoDocs
	}
	w := &Weights{id: ID(m.Checksum()), docs: int64(min(docs, math.MaxInt64)), docFreqs: make(map[string]uint32, m.Len())}
	for term, row := range m.Rows() {
		w.docFreqs[term] = row.DocFreq()
	}
	return w, nil
}

// ID returns the id of the weights, see [ID].
func (w *Weights) ID() string { return w.id }

// Weight returns the weight of a term, positive. A term without a row counts as
// one that a single document has.
func (w *Weights) Weight(term string) float64 { return simmatrix.IDF(int64(w.docFreqs[term]), w.docs) }

// Norm returns ‖Wy‖ = √Σ_t (w_t·tf_t)² for the terms of a document's field, in
// which no term is there twice; 0 for no terms. It sums in ascending byte order
// of the terms, so that the same document gives the same bits, and sorts terms
// for that.
func (w *Weights) Norm(terms []esclient.TermFreq) float64 {
	slices.SortFunc(terms, func(a, b esclient.TermFreq) int { return cmp.Compare(a.Term, b.Term) })
	sum := 0.0
	for _, t := range terms {
		v := w.Weight(t.Term) * float64(t.Freq)
		sum += v * v
	}
	return math.Sqrt(sum)
}

// Members returns the two members to merge into a document, as a JSON object:
// the norm of a field and the id of the weights that it was computed with. A
// norm of 0 stands for a field without terms, which gets the id only; stale
// says that the document holds a norm that has to go then.
func Members(field, id string, norm float64, stale bool) []byte {
	name := quote(Name(field))
	b := []byte("{")
	switch {
	case norm > 0:
		b = fmt.Appendf(b, "%q:{%s:%s},", Object, name, FormatNorm(norm))
	case stale:
		b = fmt.Appendf(b, "%q:{%s:null},", Object, name)
	}
	return fmt.Appendf(b, "%q:{%s:%s}}", WeightsObject, name, quote(id))
}

// FormatNorm returns a norm as the JSON number that is written into documents:
// the shortest one of the 32-bit float that the engine makes of it.
func FormatNorm(norm float64) string {
	return strconv.FormatFloat(norm, 'g', -1, 32)
}

// quote returns s as a JSON string; what is not UTF-8 in it is replaced.
func quote(s string) []byte {
	b, err := json.Marshal(s)
	if err != nil {
		return []byte(`""`) // a string always has one
	}
	return b
}

// Missing returns the query for the documents that have the field and not the
// norm of these weights, as JSON; those without terms, which get the id only,
// are among them, since no query tells them from those whose terms were not
// known when they were written. With an id of "" it is for all that have the
// field.
func Missing(field, id string) []byte {
	has := fmt.Appendf(nil, `{"exists":{"field":%s}}`, quote(field))
	if id == "" {
		return has
	}
	return fmt.Appendf(nil, `{"bool":{"filter":[%s],"must_not":[{"bool":{"filter":[{"term":{%s:{"value":%s}}},{"exists":{"field":%s}}]}}]}}`,
		has, quote(WeightsPath(field)), quote(id), quote(NormPath(field)))
}
