// Package vectors makes vectors of texts, for vector fields of an engine, so
// that its plain scores are those of the soft vector space model,
//
//	⟨x, y⟩ = (Wx)ᵀ·S·(Wy)
//
// divided as the [Normalization] says. S is part of the documents' vectors, so
// unlike in other modes these must be rewritten when S changes. A [Model] has
// S, W and, for dense vectors, the coordinates of terms. Its id is stored in
// each document, next to the vector.
//
//   - Sparse vectors have a coordinate per term: the query has Wx and the
//     document SWy, cut to its largest coordinates. [Cut] states the error.
//   - Dense vectors are the latent semantic analysis of the documents in an
//     orthonormal basis, which package enrich learns.
//
// Sources: Novotný 2017, Vector Space Representations in Information Retrieval
// (the thesis), sections 4.4.2 and 4.6.2; Novotný 2018, Implementation Notes
// for the Soft Cosine Measure (the notes), section 4.
//
// The package has no I/O.
package vectors

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/akin-search/akin/simmatrix"
)

// A Model makes vectors. It is immutable and safe for concurrent use.
type Model struct {
	meta    Meta
	table   *simmatrix.Table // S, with document frequencies for W
	matrix  *simmatrix.Matrix
	vectors []float32 // rank coordinates per term, for dense vectors
	id      string
}

// New returns a model for sparse vectors with the rows of s, similarities
// scaled by the strength, and the document frequencies of weights, a matrix as
// from "index norms snapshot". A term that weights lacks counts as in one
// document. The error wraps [ErrModel].
func New(meta Meta, s, weights *simmatrix.Matrix) (*Model, error) {
	meta.Matrix, meta.Weights = s.Checksum(), weights.Checksum()
	if err := meta.Check(); err != nil {
		return nil, err
	}
	if meta.Store.Dense() {
		return nil, fmt.Errorf("%w: a %s has to be learned", ErrModel, meta.Store)
	}
	if weights.Meta().Docs == 0 {
		return nil, fmt.Errorf("%w: the weights do not know the number of documents", ErrModel)
	}
	var rows []simmatrix.TermRow
	for term, row := range s.Rows() {
		t := simmatrix.TermRow{Term: term, DocFreq: weights.Row(term).DocFreq()}
		for n := range row.All() {
			n.Similarity = float32(float64(n.Similarity) * meta.Strength)
			n.Origins = 0
			t.Neighbors = append(t.Neighbors, n)
		}
		rows = append(rows, t)
	}
	known := s.Table().Terms
	for term, row := range weights.Rows() {
		if _, ok := slices.BinarySearch(known, term); !ok {
			rows = append(rows, simmatrix.TermRow{Term: term, DocFreq: row.DocFreq()})
		}
	}
	m, err := simmatrix.New(simmatrix.Meta{Source: "model of vectors", Docs: weights.Meta().Docs}, rows)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrModel, err)
	}
	return newModel(meta, m, nil)
}

// Dense returns a model for dense vectors with the S and W of m, whose terms
// have these coordinates: term after term in the order of [Model.Matrix], the
// same number of each. The error wraps [ErrModel].
func (m *Model) Dense(store Store, coordinates []float32) (*Model, error) {
	meta := m.meta
	meta.Store = store
	meta.Dims = len(coordinates) / max(m.Len(), 1)
	if meta.Normalization == Soft {
		meta.Dims++
	}
	if !store.Dense() || len(coordinates) != m.Len()*meta.Rank() {
		return nil, fmt.Errorf("%w: %d coordinates of %d terms for a %s", ErrModel, len(coordinates), m.Len(), store)
	}
	if err := meta.Check(); err != nil {
		return nil, err
	}
	return newModel(meta, m.matrix, coordinates)
}

// newModel computes the id.
func newModel(meta Meta, m *simmatrix.Matrix, vectors []float32) (*Model, error) {
	model := &Model{meta: meta, matrix: m, table: m.Table(), vectors: vectors}
	sum, err := model.write(io.Discard)
	model.id = idOf(sum)
	return model, err
}

// Meta returns the description of the vectors.
func (m *Model) Meta() Meta { return m.meta }

// ID returns the first 16 hexadecimal digits of the model's checksum: documents
// with another id have vectors of another S, W or setting.
func (m *Model) ID() string { return m.id }

// Matrix returns S, its similarities scaled by the strength, with the document
// frequencies that W is made of.
func (m *Model) Matrix() *simmatrix.Matrix { return m.matrix }

// Len returns the number of terms in the model.
func (m *Model) Len() int { return m.matrix.Len() }

// A place is a coordinate with its term's row, -1 for an unknown term, which is
// similar to no other.
type place struct {
	Coordinate

	row int
}

// weigh returns Wx in ascending order of terms. It adds up repeated terms.
func (m *Model) weigh(x []Coordinate) []place {
	y := make([]place, 0, len(x))
	for _, c := range x {
		p := place{c, -1}
		docFreq := uint32(0)
		if i, ok := slices.BinarySearch(m.table.Terms, c.Term); ok {
			p.row, docFreq = i, m.table.DocFreqs[i]
		}
		p.Value *= simmatrix.IDF(int64(docFreq), int64(min(m.table.Meta.Docs, math.MaxInt64)))
		y = append(y, p)
	}
	slices.SortStableFunc(y, func(a, b place) int { return cmp.Compare(a.Term, b.Term) })
	last := -1
	for _, p := range y {
		if last >= 0 && y[last].Term == p.Term {
			y[last].Value += p.Value
			continue
		}
		last++
		y[last] = p
	}
	return y[:last+1]
}

// norm returns the divisor of Wx.
func (m *Model) norm(wx []place) float64 {
	switch m.meta.Normalization {
	case Soft:
		return math.Sqrt(m.square(wx))
	case Hard:
		sum := 0.0
		for _, p := range wx {
			sum += p.Value * p.Value
		}
		return math.Sqrt(sum)
	default:
		return 1
	}
}

// square returns ⟨x, x⟩ for Wx.
func (m *Model) square(wx []place) float64 {
	values := make(map[uint32]float64, len(wx))
	for _, p := range wx {
		if p.row >= 0 {
			values[uint32(p.row)] = p.Value //nolint:gosec // a matrix has fewer rows
		}
	}
	sum := 0.0
	for _, p := range wx {
		sum += p.Value * p.Value
		if p.row < 0 {
			continue
		}
		cols, sims := m.table.Row(p.row)
		for k, col := range cols {
			sum += p.Value * float64(simmatrix.FromUnits(sims[k])) * values[col]
		}
	}
	return sum
}

// SparseQuery returns the vector of a query with these term frequencies: Wx,
// divided by its norm, in ascending order of terms. The score is the sum, over
// its terms, of the products with the values in a document's vector.
func (m *Model) SparseQuery(x []Coordinate) []Coordinate {
	wx := m.weigh(x)
	norm := m.norm(wx)
	var q []Coordinate
	for _, p := range wx {
		if p.Value > 0 {
			q = append(q, Coordinate{p.Term, p.Value / norm})
		}
	}
	return q
}

// project returns Σ w_i·x_i·T_i, the coordinates of a text.
func (m *Model) project(wx []place) []float64 {
	z := make([]float64, m.meta.Rank(), m.meta.Dims)
	for _, p := range wx {
		if p.row < 0 {
			continue
		}
		for k, t := range m.vectors[p.row*len(z) : (p.row+1)*len(z)] {
			z[k] += p.Value * float64(t)
		}
	}
	return z
}

// DenseQuery returns the vector of a query with these term frequencies; nil if
// the model knows none of them. With [Soft] it has unit length and 0 in the
// last dimension (the notes, theorem 4.3).
func (m *Model) DenseQuery(x []Coordinate) []float32 {
	wx := m.weigh(x)
	z := m.project(wx)
	length := math.Sqrt(dot(z, z))
	if length == 0 {
		return nil
	}
	if m.meta.Normalization == Soft {
		return append(narrow(z, length), 0)
	}
	return narrow(z, m.norm(wx))
}

func dot(x, y []float64) float64 {
	sum := 0.0
	for k, v := range x {
		sum += v * y[k]
	}
	return sum
}

// narrow returns z divided by a number, with capacity for one more.
func narrow(z []float64, by float64) []float32 {
	out := make([]float32, len(z), len(z)+1)
	for k, v := range z {
		out[k] = float32(v / by)
	}
	return out
}

// A Store is the type of the field with the vectors.
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

// Dense reports whether a store is for dense vectors.
func (s Store) Dense() bool { return s == DenseVector || s == KNNVector }

// A Normalization is the divisor of the inner product.
type Normalization string

// The normalizations.
const (
	None Normalization = "none" // nothing
	Hard Normalization = "hard" // ‖Wx‖·‖Wy‖
	Soft Normalization = "soft" // √⟨x, x⟩·√⟨y, y⟩: the soft cosine measure
)

// Meta describes the vectors of a model.
type Meta struct {
	Store         Store         `json:"store"`
	Normalization Normalization `json:"normalization"`
	// Field is the text field that the model is for.
	Field string `json:"field"`
	// Terms limits the coordinates of a document's sparse vector; 0 means all.
	Terms int `json:"terms,omitempty"`
	// Dims is the number of stored dimensions of a dense vector, else 0.
	Dims int `json:"dims,omitempty"`
	// Strength, λ in (0, 1], scales the similarities of different terms.
	Strength float64 `json:"strength"`
	// Matrix and Weights are the checksums of S and W as given.
	Matrix  string `json:"matrix"`
	Weights string `json:"weights"`
}

// Limits of a [Meta].
const (
	MaxDims  = 16_000 // OpenSearch allows no more
	MaxTerms = 100_000
)

// ErrModel says that a model is invalid.
var ErrModel = errors.New("invalid model")

// Check returns all errors in the settings; they wrap [ErrModel].
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
	if dense := m.Store.Dense(); dense && (m.Rank() < 1 || m.Dims > MaxDims) || !dense && m.Dims != 0 {
		errs = append(errs, fmt.Errorf("%w: %d dimensions of a %s, not in 2 to %d (1 without the normalization soft), and 0 for sparse vectors", ErrModel, m.Dims, m.Store, MaxDims))
	}
	if !(m.Strength > 0 && m.Strength <= 1) {
		errs = append(errs, fmt.Errorf("%w: strength %v not in (0, 1]", ErrModel, m.Strength))
	}
	return errors.Join(errs...)
}

// Rank is the number of coordinates of a term: a soft dense vector has one more
// dimension.
func (m *Meta) Rank() int {
	if m.Dims > 0 && m.Normalization == Soft {
		return m.Dims - 1
	}
	return m.Dims
}

// Mapping returns the mapping, as JSON, that an index needs for vectors of a
// model.
func (m *Meta) Mapping() []byte {
	var vector string
	switch m.Store {
	case DenseVector:
		similarity := "max_inner_product"
		if m.Normalization == Soft {
			similarity = "dot_product" // of unit vectors
		}
		// Without a type the engine stores coordinates as integers. The first
		// versions with it require both numbers, later versions' defaults.
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
