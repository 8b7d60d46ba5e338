package vectors

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/combine"
	"github.com/akin-search/akin/simmatrix/softcosine"
)

// A world is a matrix, weights, documents and queries made by chance, and the
// space that they are in.
type world struct {
	s, weights    *simmatrix.Matrix
	vocabulary    *softcosine.Vocabulary
	space         *softcosine.Space
	docs, queries [][]Coordinate
}

const unknown = "zz.unknown" // a term that neither S nor W has

func termOf(i int) string { return fmt.Sprintf("term%02d", i) }

// newWorld returns one of so many terms, the last quarter of which are in the
// weights only. Sums of similarities are about the given mass.
func newWorld(t *testing.T, seed uint64, terms int, mass float64, strength float64, options combine.SparsifyOptions) *world {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 1))
	w := &world{}
	var rows, weightRows []simmatrix.TermRow
	inS := terms * 3 / 4
	for i := range terms {
		row := simmatrix.TermRow{Term: termOf(i), DocFreq: uint32(1 + random.IntN(50))}
		if i%7 != 0 || i >= inS { // weights may lack terms of S
			weightRows = append(weightRows, row)
		}
		row.DocFreq = 3 // not what the weights say
		for j := range inS {
			if i < inS && i != j && random.Float64() < 0.3 {
				row.Neighbors = append(row.Neighbors, simmatrix.Neighbor{Term: termOf(j), Similarity: float32(2 * mass * (random.Float64() + 0.01) / float64(inS) / 0.3)})
			}
		}
		if i < inS {
			rows = append(rows, row)
		}
	}
	var err error
	if w.s, err = simmatrix.New(simmatrix.Meta{Docs: 60}, rows); err != nil {
		t.Fatal(err)
	}
	if w.s, err = combine.Sparsify(w.s, options); err != nil {
		t.Fatal(err)
	}
	if w.weights, err = simmatrix.New(simmatrix.Meta{Docs: 60}, weightRows); err != nil {
		t.Fatal(err)
	}
	text := func(length int) []Coordinate {
		counts := map[string]float64{}
		for range length {
			counts[termOf(random.IntN(terms))]++
		}
		var x []Coordinate
		for term, n := range counts {
			x = append(x, Coordinate{term, n})
		}
		return x
	}
	for range 40 {
		w.docs = append(w.docs, append(text(12), Coordinate{unknown, 2}))
		w.queries = append(w.queries, text(4))
	}
	w.queries = append(w.queries, []Coordinate{{unknown, 1}}, []Coordinate{{termOf(1), 1}, {termOf(1), 2}})
	// What the papers' definition says of the similarities that the model has.
	model, err := New(Meta{Store: SparseVector, Normalization: None, Strength: strength}, w.s, w.weights)
	check.OK(t, err)
	extra := []string{unknown}
	for i := range terms {
		extra = append(extra, termOf(i))
	}
	var similarities *softcosine.Similarities
	w.vocabulary, similarities = softcosine.FromMatrix(model.matrix, extra...)
	weights := make([]float64, w.vocabulary.Len())
	for i := range weights {
		docFreq := w.weights.Row(w.vocabulary.Term(int32(i))).DocFreq()
		weights[i] = simmatrix.IDF(int64(docFreq), 60)
	}
	if w.space, err = softcosine.NewSpace(weights, similarities); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) vector(x []Coordinate) softcosine.Vector {
	values := map[int32]float64{}
	for _, c := range x {
		i, _ := w.vocabulary.Number(c.Term)
		values[i] += c.Value
	}
	return softcosine.NewVector(values)
}

// score is what the definition says.
func (w *world) score(t *testing.T, n Normalization, x, y []Coordinate) float64 {
	t.Helper()
	switch n {
	case Hard:
		return w.space.Hard(w.vector(x), w.vector(y))
	case Soft:
		s, err := w.space.Soft(w.vector(x), w.vector(y))
		check.OK(t, err)
		return s
	default:
		return w.space.InnerProduct(w.vector(x), w.vector(y))
	}
}

func sparseDot(x, y []Coordinate) (sum float64) {
	values := map[string]float64{}
	for _, c := range y {
		values[c.Term] = c.Value
	}
	for _, c := range x {
		sum += c.Value * values[c.Term]
	}
	return sum
}

var normalizations = []Normalization{None, Hard, Soft}

func TestSparseVectorsScoreAsTheSpace(t *testing.T) {
	for _, options := range []combine.SparsifyOptions{{}, {Symmetric: true}} {
		w := newWorld(t, 1, 40, 3, 0.7, options)
		for _, n := range normalizations {
			m, err := New(Meta{Store: RankFeatures, Normalization: n, Strength: 0.7}, w.s, w.weights)
			check.OK(t, err)
			documents := m.Documents()
			for _, y := range w.docs {
				vector, cut := documents.Sparse(y)
				check.Must(t, cut == (Cut{}), "%s: %+v is cut", n, cut)
				for _, x := range w.queries {
					got, want := sparseDot(m.SparseQuery(x), vector), w.score(t, n, x, y)
					check.Must(t, math.Abs(got-want) <= 1e-9*max(1, want), "%s: %v · %v = %v, want %v", n, x, y, got, want)
				}
			}
		}
	}
}

func TestCutSparseVectorsStateTheirError(t *testing.T) {
	w := newWorld(t, 2, 40, 3, 1, combine.SparsifyOptions{})
	lost := 0
	for _, n := range normalizations {
		for _, c := range []int{1, 5, 20} {
			m, err := New(Meta{Store: SparseVector, Normalization: n, Strength: 1, Terms: c}, w.s, w.weights)
			check.OK(t, err)
			for _, y := range w.docs {
				vector, cut := m.Documents().Sparse(y)
				check.Must(t, len(vector) == c && cut.Share > 0 && cut.Share < 1 && cut.Coordinates != 0, "%d coordinates, want %d; %+v", len(vector), c, cut)
				for _, x := range w.queries {
					q := m.SparseQuery(x)
					bound := total(q) * cut.Largest
					missing := w.score(t, n, x, y) - sparseDot(q, vector)
					check.Must(t, missing >= -1e-9 && missing <= bound+1e-9, "%s cut to %d: the score is too low by %v, at most %v", n, c, missing, bound)
					if missing > bound/2 {
						lost++
					}
				}
			}
		}
	}
	check.That(t, lost != 0, "no score comes near to the bound")
}

// toFloat returns v as float64.
func toFloat(v []float32) []float64 {
	out := make([]float64, len(v))
	for i, x := range v {
		out[i] = float64(x)
	}
	return out
}

func TestDenseVectorsOfFullRankScoreAsTheSpace(t *testing.T) {
	for name, w := range map[string]*world{
		"dominant":            newWorld(t, 3, 40, 3, 1, combine.SparsifyOptions{Symmetric: true, Dominant: true}),
		"positive definite":   newWorld(t, 4, 40, 3, 0.2, combine.SparsifyOptions{Symmetric: true}),
		"documents of a term": newWorld(t, 5, 12, 0.4, 1, combine.SparsifyOptions{Symmetric: true, Dominant: true}),
	} {
		strength := 1.0
		if name == "positive definite" {
			strength = 0.2
		}
		for y := range w.docs {
			w.docs[y] = w.docs[y][:len(w.docs[y])-1] // what is not in the model has no coordinates
		}
		for _, n := range normalizations {
			m, err := Learn(t.Context(), Meta{Store: DenseVector, Normalization: n, Strength: strength, Dims: 64}, w.s, w.weights, w.docs, nil)
			check.Must(t, err == nil, "%s: %v", name, err)
			check.That(t, m.Meta().Dims <= 41, "%s: %d dimensions of 40 documents", name, m.Meta().Dims)
			documents := m.Documents()
			for i, y := range w.docs {
				vector, share := documents.Dense(y)
				check.Must(t, len(vector) == m.Meta().Dims && math.Abs(share-1) <= 1e-5, "%s: %d dimensions, want %d; share %v", name, len(vector), m.Meta().Dims, share)
				x := w.docs[(i+7)%len(w.docs)] // in their span
				q := m.DenseQuery(x)
				length := math.Sqrt(dot(toFloat(vector), toFloat(vector)))
				check.That(t, n != Soft || math.Abs(length-1) <= 1e-6, "%s: a document of length %v", name, length)
				got, want := dot(toFloat(q), toFloat(vector)), w.score(t, n, x, y)
				check.Must(t, math.Abs(got-want) <= 1e-5*max(1, want), "%s %s: %v, want %v", name, n, got, want)
			}
		}
	}
}

func TestTruncatedDenseVectorsStateTheirError(t *testing.T) {
	w := newWorld(t, 6, 40, 3, 0.2, combine.SparsifyOptions{Symmetric: true})
	shares := map[int]float64{}
	for _, dims := range []int{3, 9, 21} {
		m, err := Learn(t.Context(), Meta{Store: KNNVector, Normalization: Soft, Strength: 0.2, Dims: dims}, w.s, w.weights, w.docs, nil)
		check.OK(t, err)
		check.Must(t, m.Meta().Dims == dims, "%d dimensions, want %d", m.Meta().Dims, dims)
		for _, y := range w.docs {
			vector, share := m.Documents().Dense(y)
			shares[dims] += share
			check.Must(t, share > 0 && share <= 1, "share %v", share)
			for _, x := range w.queries {
				q := m.DenseQuery(x)
				if q == nil {
					continue
				}
				_, queryShare := m.Documents().Dense(x)
				// The query has unit length in the store, and √share of it in the space.
				got, want := dot(toFloat(q), toFloat(vector))*math.Sqrt(queryShare), w.score(t, Soft, x, y)
				bound := math.Sqrt((1 - share) * (1 - queryShare))
				check.Must(t, math.Abs(got-want) <= bound+1e-6, "%d dimensions: %v, want %v within %v", dims, got, want, bound)
			}
		}
	}
	check.That(t, shares[3] < shares[9] && shares[9] < shares[21], "more dimensions do not have more: %v", shares)
}

func TestDenseVectorsNeedAPositiveDefiniteMatrix(t *testing.T) {
	meta := Meta{Store: DenseVector, Normalization: Soft, Strength: 1, Dims: 8}
	w := newWorld(t, 7, 40, 3, 1, combine.SparsifyOptions{})
	check.Error(t, ErrNotSymmetric, check.ErrOf(Learn(t.Context(), meta, w.s, w.weights, w.docs, nil)), "a matrix that is not symmetric")
	// a and b are like c, and not like each other: √2 times their similarity is more than 1.
	s, err := simmatrix.New(simmatrix.Meta{}, []simmatrix.TermRow{
		{Term: "a", Neighbors: []simmatrix.Neighbor{{Term: "c", Similarity: 0.9}}},
		{Term: "b", Neighbors: []simmatrix.Neighbor{{Term: "c", Similarity: 0.9}}},
		{Term: "c", Neighbors: []simmatrix.Neighbor{{Term: "a", Similarity: 0.9}, {Term: "b", Similarity: 0.9}}},
	})
	check.OK(t, err)
	docs := [][]Coordinate{{{"a", 1}, {"b", 2}}, {{"c", 1}}}
	_, err = Learn(t.Context(), meta, s, w.weights, docs, nil)
	// The eigenvalues are 1 and 1 ± 0.9·√2.
	if no, ok := errors.AsType[*NotPositiveError](err); !ok || no.Enough != 0.78 || !strings.Contains(err.Error(), "-0.27") || !strings.Contains(err.Error(), "strength of about 0.78 or less") {
		t.Errorf("a matrix that is not positive definite: %v", err)
	}
	meta.Strength = 0.78
	check.Error(t, nil, check.ErrOf(Learn(t.Context(), meta, s, w.weights, docs, nil)), "with the strength that the error names")
	// One term is like 400 others: the eigenvalues are 1 and 1 ± 20·0.9.
	hub := simmatrix.TermRow{Term: "hub"}
	var star []simmatrix.TermRow
	for i := range 400 {
		term := fmt.Sprintf("t%03d", i)
		hub.Neighbors = append(hub.Neighbors, simmatrix.Neighbor{Term: term, Similarity: 0.9})
		star = append(star, simmatrix.TermRow{Term: term, Neighbors: []simmatrix.Neighbor{{Term: "hub", Similarity: 0.9}}})
	}
	wide, err := simmatrix.New(simmatrix.Meta{}, append(star, hub))
	check.OK(t, err)
	meta.Strength = 0.1 // 0.1·20·0.9 = 1.8
	docs = append(docs, []Coordinate{{"hub", 1}})
	for meta.Strength > 0.001 {
		_, err = Learn(t.Context(), meta, wide, w.weights, docs, nil)
		no, ok := errors.AsType[*NotPositiveError](err)
		if !ok {
			break
		}
		meta.Strength = no.Enough
	}
	check.That(t, err == nil && meta.Strength >= 0.053 && meta.Strength <= 0.056, "a wide matrix with a strength of %v: %v", meta.Strength, err)
	check.Error(t, ErrNoDocuments, check.ErrOf(Learn(t.Context(), meta, s, w.weights, [][]Coordinate{{{unknown, 1}}}, nil)), "without documents")
}

func TestModelsCheckTheirSettings(t *testing.T) {
	w := newWorld(t, 8, 12, 1, 1, combine.SparsifyOptions{})
	good := Meta{Store: SparseVector, Normalization: Soft, Strength: 1}
	for name, change := range map[string]func(m *Meta){
		"store":           func(m *Meta) { m.Store = "nested" },
		"normalization":   func(m *Meta) { m.Normalization = "l2" },
		"terms":           func(m *Meta) { m.Terms = -1 },
		"sparse with dim": func(m *Meta) { m.Dims = 8 },
		"dense without":   func(m *Meta) { m.Store = KNNVector },
		"one and its end": func(m *Meta) { m.Store, m.Dims = DenseVector, 1 },
		"too many":        func(m *Meta) { m.Store, m.Dims = KNNVector, MaxDims+1 },
		"not learned":     func(m *Meta) { m.Store, m.Dims = KNNVector, 64 },
		"strength":        func(m *Meta) { m.Strength = math.NaN() },
	} {
		meta := good
		change(&meta)
		_, err := New(meta, w.s, w.weights)
		check.That(t, errors.Is(err, ErrModel), "%s: %v", name, err)
	}
	unweighted, err := simmatrix.New(simmatrix.Meta{}, []simmatrix.TermRow{{Term: "a", DocFreq: 1}})
	check.OK(t, err)
	check.Error(t, ErrModel, check.ErrOf(New(good, w.s, unweighted)), "weights of no documents")
}

// encoded returns a model's file, and the model.
func encoded(tb testing.TB, m *Model) []byte {
	tb.Helper()
	var b bytes.Buffer
	check.OK(tb, m.Write(&b))
	return b.Bytes()
}

func TestModelFileKeepsTheModel(t *testing.T) {
	w := newWorld(t, 9, 30, 1, 1, combine.SparsifyOptions{Symmetric: true, Dominant: true})
	sparse, err := New(Meta{Store: SparseVector, Normalization: Hard, Strength: 1, Field: "body", Terms: 10}, w.s, w.weights)
	check.OK(t, err)
	dense, err := Learn(t.Context(), Meta{Store: DenseVector, Normalization: Soft, Strength: 1, Dims: 9}, w.s, w.weights, w.docs, nil)
	check.OK(t, err)
	line, err := Learn(t.Context(), Meta{Store: DenseVector, Normalization: Hard, Strength: 1, Dims: 9}, w.s, w.weights, w.docs[:1], nil)
	check.Must(t, err == nil && line.Meta().Dims == 1, "%v: %d dimensions of one document", err, line.Meta().Dims)
	for _, m := range []*Model{sparse, dense, line} {
		file := encoded(t, m)
		got, err := Read(bytes.NewReader(file))
		check.OK(t, err)
		check.That(t, got.ID() == m.ID() && len(m.ID()) == idDigits && got.Meta() == m.Meta(), "%s %+v, want %s %+v", got.ID(), got.Meta(), m.ID(), m.Meta())
		check.That(t, bytes.Equal(encoded(t, got), file), "another file")
		for _, x := range w.queries {
			if m == sparse {
				check.Equal(t, m.SparseQuery(x), got.SparseQuery(x))
			} else if diff := cmp.Diff(m.DenseQuery(x), got.DenseQuery(x)); diff != "" {
				t.Error(diff)
			}
		}
		for cut := 0; cut < len(file); cut += 1 + cut/200 {
			_, err := Read(bytes.NewReader(file[:cut]))
			check.Must(t, errors.Is(err, ErrFormat), "cut to %d bytes: %v", cut, err)
			broken := bytes.Clone(file)
			broken[cut] ^= 4
			check.Must(t, check.ErrOf(Read(bytes.NewReader(broken))) != nil, "byte %d changed: no error", cut)
		}
		check.Error(t, ErrFormat, check.ErrOf(Read(bytes.NewReader(append(file, 0)))), "with a byte more")
	}
	dense.vectors[3] = float32(math.NaN())
	check.Error(t, ErrFormat, check.ErrOf(Read(bytes.NewReader(encoded(t, dense)))), "a coordinate that is no number")
	other, err := New(Meta{Store: SparseVector, Normalization: Hard, Strength: 0.9, Field: "body", Terms: 10}, w.s, w.weights)
	check.That(t, err == nil && other.ID() != sparse.ID(), "another strength has the same id, %v", err)
}

func TestFeaturesKeepNineBits(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	for range 10_000 {
		v := math.Exp(20*random.Float64() - 10)
		f := Feature(v)
		if math.Float32bits(f)&(1<<15-1) != 0 { // Lucene cuts these off
			t.Fatalf("%v has more bits", f)
		}
		e := math.Abs(float64(f)-v) / v
		check.Must(t, e <= 1.0/512, "%v becomes %v: an error of %v", v, f, e)
	}
}

func TestFeatureNamesHaveNoDots(t *testing.T) {
	for term, want := range map[string]string{"car": "car", "e.g.": "e%2Eg%2E", "100%2E": "100%252E", "": ""} {
		check.Equal(t, want, FeatureName(term), term)
	}
}

func FuzzRead(f *testing.F) {
	w, err := simmatrix.New(simmatrix.Meta{Docs: 5}, []simmatrix.TermRow{{Term: "a", DocFreq: 1}, {Term: "b", DocFreq: 2}})
	check.OK(f, err)
	m, err := Learn(f.Context(), Meta{Store: DenseVector, Normalization: Soft, Strength: 1, Dims: 3}, w, w, [][]Coordinate{{{"a", 1}}, {{"b", 2}}}, nil)
	check.OK(f, err)
	f.Add(encoded(f, m))
	f.Fuzz(func(t *testing.T, file []byte) {
		m, err := Read(bytes.NewReader(file))
		check.That(t, err != nil || bytes.Equal(encoded(t, m), file), "it is not what is written")
	})
}

func TestMembersReplaceWhatADocumentHas(t *testing.T) {
	s, err := simmatrix.New(simmatrix.Meta{Docs: 4}, []simmatrix.TermRow{
		{Term: "a", DocFreq: 1, Neighbors: []simmatrix.Neighbor{{Term: "b.c", Similarity: 0.5}}},
		{Term: "b.c", DocFreq: 1, Neighbors: []simmatrix.Neighbor{{Term: "a", Similarity: 0.5}}},
	})
	check.OK(t, err)
	meta := Meta{Store: RankFeatures, Normalization: Hard, Strength: 1, Field: "x.y"}
	sparse, err := New(meta, s, s)
	check.OK(t, err)
	meta.Store, meta.Dims, meta.Normalization = DenseVector, 3, Soft
	dense, err := Learn(t.Context(), meta, s, s, [][]Coordinate{{{"a", 1}}, {{"b.c", 1}}}, nil)
	check.OK(t, err)
	a := []Coordinate{{"a", 1}}
	for _, tt := range []struct {
		name  string
		m     *Model
		y     []Coordinate
		stale bool
		want  string // of the vector
	}{
		// An array, for an object would be merged with what is there.
		{"sparse", sparse, a, true, `"akin_vector":{"x__y":[{"a":1,"b%2Ec":0.5}]},`},
		{"sparse without terms", sparse, nil, false, ``},
		{"sparse that had terms", sparse, nil, true, `"akin_vector":{"x__y":[]},`},
		{"dense without terms", dense, nil, false, ``},
		{"dense that had terms", dense, nil, true, `"akin_vector":{"x__y":null},`},
	} {
		got, loss := tt.m.Documents().Members(tt.y, tt.stale)
		check.Equal(t, "{"+tt.want+`"akin_vector_model":{"x__y":"`+tt.m.ID()+`"}}`, string(got), tt.name, got)
		check.That(t, loss.Empty == (tt.y == nil), "%s: empty %v", tt.name, loss.Empty)
	}
	var stored struct {
		Vector map[string][]float64 `json:"akin_vector"`
	}
	got, _ := dense.Documents().Members(a, false)
	if err := json.Unmarshal(got, &stored); err != nil || len(stored.Vector["x__y"]) != 3 {
		t.Errorf("dense: %s, %v", got, err)
	}
	for _, m := range []Meta{sparse.Meta(), dense.Meta(), {Store: KNNVector, Field: "x.y", Dims: 3, Normalization: None}} {
		mapping := m.Mapping()
		check.That(t, json.Valid(mapping) && strings.Contains(string(mapping), `{"x__y":{"type":"`+string(m.Store)+`"`), "mapping %s", mapping)
		if m.Store == DenseVector && !strings.Contains(string(m.Mapping()), `"m":16,"ef_construction":100`) { // which not all versions have defaults for
			t.Errorf("%s", m.Mapping())
		}
	}
}

// Names of features may have 32,766 bytes, and a dot takes three.
func TestTermsThatAreTooLongForTheEnginesAreLeftOut(t *testing.T) {
	weights, err := simmatrix.New(simmatrix.Meta{Docs: 9}, []simmatrix.TermRow{{Term: "a", DocFreq: 1}})
	check.OK(t, err)
	m, err := New(Meta{Store: RankFeatures, Normalization: None, Field: "body", Strength: 1}, weights, weights)
	check.OK(t, err)
	fits, dots, long := strings.Repeat("x", maxName), strings.Repeat(".", maxName/3+1), strings.Repeat("x", maxName+1)
	all, _ := m.Documents().Sparse([]Coordinate{{"a", 1}, {"b", 1}})
	vector, cut := m.Documents().Sparse([]Coordinate{{"a", 1}, {fits, 1}, {dots, 3}, {long, 2}})
	check.That(t, len(vector) == 2 && vector[0] == all[0] && vector[1].Term == fits, "%.100v", vector)
	w := all[0].Value
	check.That(t, cut.Coordinates == 2 && math.Abs(cut.Largest-3*w) <= 1e-9 && math.Abs(cut.Share-5.0/7) <= 1e-9, "%+v, of coordinates that are a multiple of %v", cut, w)
}
