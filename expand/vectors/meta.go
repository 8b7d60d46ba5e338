package vectors

import (
	"errors"
	"fmt"
	"slices"
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

// A Normalization says what the inner product is divided by.
type Normalization string

// The normalizations.
const (
	None Normalization = "none" // nothing
	Hard Normalization = "hard" // ‖Wx‖·‖Wy‖
	Soft Normalization = "soft" // √⟨x, x⟩·√⟨y, y⟩: the soft cosine measure
)

// Meta says what the vectors of a model are.
type Meta struct {
	Store         Store         `json:"store"`
	Normalization Normalization `json:"normalization"`
	// Field is the text field that the model is for.
	Field string `json:"field"`
	// Terms is the most coordinates of a document's sparse vector, 0 for all.
	Terms int `json:"terms,omitempty"`
	// Dims is the number of dimensions of a dense vector, as stored, 0 else.
	Dims int `json:"dims,omitempty"`
	// Strength, λ in (0, 1], scales the similarities of different terms.
	Strength float64 `json:"strength"`
	// Matrix and Weights are the checksums of S and W as they were given.
	Matrix  string `json:"matrix"`
	Weights string `json:"weights"`
}

// Bounds of a [Meta].
const (
	MaxDims  = 16_000 // OpenSearch has fields of no more
	MaxTerms = 100_000
)

// ErrModel says that something cannot be a model.
var ErrModel = errors.New("invalid model")

// Check returns all that is wrong with the settings; the error wraps
// [ErrModel].
func (m *Meta) Check() error {
	var errs []error
	if !slices.Contains(Stores, m.Store) {
		errs = append(errs, fmt.Errorf("%w: %q is no field type for vectors: take one of %q", ErrModel, m.Store, Stores))
	}
	switch m.Normalization {
	case None, Hard, Soft:
	default:
		errs = append(errs, fmt.Errorf("%w: normalization %q is not none, hard or soft", ErrModel, m.Normalization))
	}
	if m.Terms < 0 || m.Terms > MaxTerms {
		errs = append(errs, fmt.Errorf("%w: %d terms of a document not in 0 to %d", ErrModel, m.Terms, MaxTerms))
	}
	if dense := m.Store.Dense(); dense && (m.rank() < 1 || m.Dims > MaxDims) || !dense && m.Dims != 0 {
		errs = append(errs, fmt.Errorf("%w: %d dimensions of a %s, not in 2 to %d (1 without the normalization soft), and 0 for sparse vectors", ErrModel, m.Dims, m.Store, MaxDims))
	}
	if !(m.Strength > 0 && m.Strength <= 1) {
		errs = append(errs, fmt.Errorf("%w: strength %v not in (0, 1]", ErrModel, m.Strength))
	}
	return errors.Join(errs...)
}

// rank is the number of coordinates of a term: a soft dense vector has one
// more.
func (m *Meta) rank() int {
	if m.Dims > 0 && m.Normalization == Soft {
		return m.Dims - 1
	}
	return m.Dims
}

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
