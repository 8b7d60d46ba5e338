package vectors

import (
	"math"
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

// ModelPath returns the full name of the keyword that holds the id of the model.
func ModelPath(field string) string { return ModelObject + "." + Name(field) }
