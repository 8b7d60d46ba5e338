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
	"github.com/akin-search/akin/e2e/matrixtest"
	"github.com/akin-search/akin/simmatrix"
)

// tenTerms returns a matrix of ten terms, each like the one before and the one
// after it.
func tenTerms(tb testing.TB) *simmatrix.Matrix {
	tb.Helper()
	rows := make([]simmatrix.TermRow, 10)
	for i := range rows {
		rows[i] = simmatrix.TermRow{Term: fmt.Sprint("term", i), DocFreq: uint32(1 + i)}
	}
	for i := range rows[1:] {
		rows[i].Neighbors = append(rows[i].Neighbors, simmatrix.Neighbor{Term: rows[i+1].Term, Similarity: 0.3})
		rows[i+1].Neighbors = append(rows[i+1].Neighbors, simmatrix.Neighbor{Term: rows[i].Term, Similarity: 0.3})
	}
	return matrixtest.New(tb, simmatrix.Meta{Docs: 60}, rows)
}

// learned returns a model for dense vectors with so many coordinates of each
// term, made up.
func learned(tb testing.TB, n Normalization, s *simmatrix.Matrix, each int) *Model {
	tb.Helper()
	sparse := check.Got(New(Meta{Store: SparseVector, Normalization: n, Strength: 1, Field: "x.y"}, s, s))(tb)
	coordinates := make([]float32, each*s.Len())
	for i := range coordinates {
		coordinates[i] = 1 / float32(i+1)
	}
	return check.Got(sparse.Dense(DenseVector, coordinates))(tb)
}

func TestModelsCheckTheirSettings(t *testing.T) {
	s := tenTerms(t)
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
		_, err := New(meta, s, s)
		check.That(t, errors.Is(err, ErrModel), "%s: %v", name, err)
	}
	unweighted, err := simmatrix.New(simmatrix.Meta{}, []simmatrix.TermRow{{Term: "a", DocFreq: 1}})
	check.OK(t, err)
	check.Error(t, ErrModel, check.ErrOf(New(good, s, unweighted)), "weights of no documents")
	sparse, err := New(good, s, s)
	check.OK(t, err)
	check.Error(t, ErrModel, check.ErrOf(sparse.Dense(DenseVector, make([]float32, 11))), "11 coordinates of ten terms")
	check.Error(t, ErrModel, check.ErrOf(sparse.Dense(DenseVector, nil)), "no coordinates")
	check.Error(t, ErrModel, check.ErrOf(sparse.Dense(RankFeatures, make([]float32, 10))), "coordinates of a sparse vector")
}

// encoded returns a model's file, and the model.
func encoded(tb testing.TB, m *Model) []byte {
	tb.Helper()
	var b bytes.Buffer
	check.OK(tb, m.Write(&b))
	return b.Bytes()
}

func TestModelFileKeepsTheModel(t *testing.T) {
	s := tenTerms(t)
	sparse, err := New(Meta{Store: SparseVector, Normalization: Hard, Strength: 1, Field: "body", Terms: 10}, s, s)
	check.OK(t, err)
	dense, line := learned(t, Soft, s, 8), learned(t, Hard, s, 1)
	check.Must(t, dense.Meta().Dims == 9 && line.Meta().Dims == 1, "%d and %d dimensions", dense.Meta().Dims, line.Meta().Dims)
	for _, m := range []*Model{sparse, dense, line} {
		file := encoded(t, m)
		got, err := Read(bytes.NewReader(file))
		check.OK(t, err)
		check.That(t, got.ID() == m.ID() && len(m.ID()) == idDigits && got.Meta() == m.Meta(), "%s %+v, want %s %+v", got.ID(), got.Meta(), m.ID(), m.Meta())
		check.That(t, bytes.Equal(encoded(t, got), file), "another file")
		for _, x := range [][]Coordinate{{{"term3", 1}, {"term7", 2}}, {{"term9", 1}, {"unknown", 1}}, {{"unknown", 1}}} {
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
	other, err := New(Meta{Store: SparseVector, Normalization: Hard, Strength: 0.9, Field: "body", Terms: 10}, s, s)
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
	s := matrixtest.New(f, simmatrix.Meta{Docs: 5}, []simmatrix.TermRow{{Term: "a", DocFreq: 1}, {Term: "b", DocFreq: 2}})
	f.Add(encoded(f, learned(f, Soft, s, 2)))
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
	sparse, err := New(Meta{Store: RankFeatures, Normalization: Hard, Strength: 1, Field: "x.y"}, s, s)
	check.OK(t, err)
	dense := learned(t, Soft, s, 2)
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
