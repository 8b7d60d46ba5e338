package vectors

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A Store is the type of the field that holds the vectors.
type Store string

// The stores.
const (
	SparseVector Store = "sparse_vector" // Elasticsearch 8.11 and later
	RankFeatures Store = "rank_features" // both families
	DenseVector  Store = "dense_vector"  // Elasticsearch 8 and later
	KNNVector    Store = "knn_vector"    // OpenSearch with its plugin k-NN
)

// Stores are all of them.
var Stores = []Store{SparseVector, RankFeatures, DenseVector, KNNVector}

// Dense reports whether a store holds dense vectors.
func (s Store) Dense() bool { return s == DenseVector || s == KNNVector }

// FeatureName returns the name of a term among the features of a sparse vector:
// the engines read a dot as a path, so that it is written %2E, and % as %25.
func FeatureName(term string) string {
	return strings.NewReplacer("%", "%25", ".", "%2E").Replace(term)
}

// maxName is how many bytes of a term Lucene takes, and so of the name of a
// feature.
const maxName = 32_766

// storable reports whether the name of a term is not too long for a feature.
func storable(term string) bool {
	return len(term) <= maxName/len("%25") || len(FeatureName(term)) <= maxName
}

// Feature returns what the field of a sparse vector is given for a value: the
// nearest number of 9 significant bits, which are what Lucene's FeatureField
// keeps, by cutting off the others. The error is at most 2⁻⁹ of the value.
func Feature(value float64) float32 {
	const cutBits = 15
	bits := math.Float32bits(float32(value))
	return math.Float32frombits((bits + 1<<(cutBits-1)) >> cutBits << cutBits)
}

// The objects of a document that hold its vectors and the ids of the models
// that made them, a member for each field.
const (
	Object      = "akin_vector"
	ModelObject = "akin_vector_model"
)

// Name returns the name of a field within the two objects: its full name with
// "__" for every ".".
func Name(field string) string { return strings.ReplaceAll(field, ".", "__") }

// Path returns the full name of the field that holds the vectors of a field.
func Path(field string) string { return Object + "." + Name(field) }

// ModelPath returns the full name of the keyword that holds the id of the
// model.
func ModelPath(field string) string { return ModelObject + "." + Name(field) }

// Mapping returns the mapping, as JSON, that an index needs before vectors of a
// model are stored in it.
func (m *Meta) Mapping() []byte {
	var vector string
	switch m.Store {
	case DenseVector:
		similarity := "max_inner_product"
		if m.Normalization == Soft {
			similarity = "dot_product" // of unit vectors
		}
		// Without a type the engine makes integers of the coordinates. The first
		// versions with it want both numbers, which are the defaults of later ones.
		vector = fmt.Sprintf(`{"type":"dense_vector","dims":%d,"index":true,"similarity":%q,"index_options":{"type":"hnsw","m":16,"ef_construction":100}}`, m.Dims, similarity)
	case KNNVector:
		vector = fmt.Sprintf(`{"type":"knn_vector","dimension":%d,"method":{"name":"hnsw","engine":"lucene","space_type":"innerproduct"}}`, m.Dims)
	default:
		vector = fmt.Sprintf(`{"type":%q}`, m.Store)
	}
	name := quote(Name(m.Field))
	return fmt.Appendf(nil, `{"properties":{%q:{"properties":{%s:%s}},%q:{"properties":{%s:{"type":"keyword"}}}}}`,
		Object, name, vector, ModelObject, name)
}

// Missing returns the query for the documents that have the field and no
// vectors of the model with an id, as JSON; with an id of "" for all that have
// the field.
func Missing(field, id string) []byte {
	has := fmt.Appendf(nil, `{"exists":{"field":%s}}`, quote(field))
	if id == "" {
		return has
	}
	return fmt.Appendf(nil, `{"bool":{"filter":[%s],"must_not":[{"term":{%s:{"value":%s}}}]}}`, has, quote(ModelPath(field)), quote(id))
}

func quote(s string) []byte {
	b, err := json.Marshal(s)
	if err != nil {
		return []byte(`""`) // a string always has one
	}
	return b
}

// Features returns a sparse vector as the JSON object of its features.
func Features(x []Coordinate) []byte {
	b := []byte{'{'}
	for _, c := range x {
		if f := Feature(c.Value); f > 0 && !math.IsInf(float64(f), 0) {
			b = append(append(b, quote(FeatureName(c.Term))...), ':')
			b = append(strconv.AppendFloat(b, float64(f), 'g', -1, 32), ',')
		}
	}
	return append(bytes.TrimSuffix(b, []byte{','}), '}')
}

// Array returns a dense vector as a JSON array.
func Array(x []float32) []byte {
	b := []byte{'['}
	for _, v := range x {
		b = append(strconv.AppendFloat(b, float64(v), 'g', -1, 32), ',')
	}
	return append(bytes.TrimSuffix(b, []byte{','}), ']')
}

// A Loss is what a document's vector has lost.
type Loss struct {
	Cut   Cut     // of a sparse one
	Dense float64 // the share of ⟨y, y⟩ that a dense one has not
	Empty bool    // it has no coordinates, and is not stored
}

// Members returns the vector of a document with the given frequencies of terms,
// and the id of the model, as a JSON object to merge into the document. A
// sparse vector stands in an array: an object would be merged with the one that
// is there. stale says that the document has a vector, which has to go even
// where it gets no other.
func (d Documents) Members(y []Coordinate, stale bool) ([]byte, Loss) {
	var vector []byte
	var loss Loss
	if d.meta.Store.Dense() {
		z, share := d.Dense(y)
		loss = Loss{Empty: z == nil, Dense: 1 - share}
		vector = Array(z)
		if loss.Empty {
			vector = []byte("null")
		}
	} else {
		x, cut := d.Sparse(y)
		loss = Loss{Empty: len(x) == 0, Cut: cut}
		vector = slices.Concat([]byte{'['}, Features(x), []byte{']'})
		if loss.Empty {
			vector = []byte("[]")
		}
	}
	name := quote(Name(d.meta.Field))
	b := []byte{'{'}
	if !loss.Empty || stale {
		b = fmt.Appendf(b, "%q:{%s:%s},", Object, name, vector)
	}
	return fmt.Appendf(b, "%q:{%s:%s}}", ModelObject, name, quote(d.id)), loss
}
