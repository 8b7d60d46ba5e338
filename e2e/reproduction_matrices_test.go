package e2e

import (
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/combine"
	"github.com/akin-search/akin/simmatrix/learn"
	"github.com/akin-search/akin/simmatrix/softcosine"
	"github.com/akin-search/akin/simmatrix/spelling"
)

// The matrices of the thesis, section 4.5.
const (
	relMatrix = "S_rel" // similar contexts, equation 4.6
	levMatrix = "S_lev" // similar spelling, equation 4.5
	avgMatrix = "S_avg" // the average of the two
)

// Each matrix has C = 100 neighbors of a term, as in the thesis.
const reproNeighbors = 100

// A forumMeasure scores a candidate of a question.
type forumMeasure func(forumQuestion, forumCandidate) float64

// forumMatrices has what matrices are built from.
type forumMatrices struct {
	forum    *forum
	corpus   *learn.Corpus
	docs     int64
	terms    []simmatrix.Term // of the texts
	docFreqs map[string]int64
}

func newForumMatrices(f *forum) *forumMatrices {
	m, texts := &forumMatrices{forum: f, docFreqs: map[string]int64{}}, learn.NewTexts()
	for _, document := range f.texts {
		texts.AddTerms(document...)
		for _, term := range slices.Compact(slices.Sorted(slices.Values(slices.Concat(document...)))) {
			m.docFreqs[term]++
		}
	}
	m.corpus, m.docs = texts.Corpus(nil), int64(texts.Docs())
	for _, term := range slices.Sorted(maps.Keys(m.docFreqs)) {
		m.terms = append(m.terms, simmatrix.Term{Text: term, DocFreq: uint32(m.docFreqs[term])})
	}
	return m
}

// learned returns a matrix by akin's own recipe.
func (m *forumMatrices) learned(t *testing.T, set func(*learn.CorpusOptions)) *simmatrix.Matrix {
	t.Helper()
	options := learn.DefaultCorpusOptions()
	options.Copies = true                                        // as the papers do
	options.RareTerms, options.Neighbors = false, reproNeighbors // the paper has no rare terms
	set(&options)
	matrix, err := learn.FromCorpus(t.Context(), m.corpus, options, nil)
	if err != nil {
		t.Fatal(err)
	}
	return matrix
}

// ofTheThesis returns the matrices by name.
func (m *forumMatrices) ofTheThesis(t *testing.T) map[string]*simmatrix.Matrix {
	t.Helper()
	rel := m.learned(t, func(*learn.CorpusOptions) {})
	lev := m.spelled(t, spelling.Thesis, reproNeighbors)
	average := combine.Options{Rule: combine.RuleAverage, Neighbors: reproNeighbors}
	avg, err := combine.Combine(t.Context(), []combine.Input{{Name: relMatrix, Matrix: rel}, {Name: levMatrix, Matrix: lev}}, average, nil)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]*simmatrix.Matrix{relMatrix: rel, levMatrix: lev, avgMatrix: avg}
}

// measures returns all that is ranked by, by name.
func (m *forumMatrices) measures(t *testing.T) map[string]forumMeasure {
	t.Helper()
	all := map[string]forumMeasure{}
	maps.Copy(all, m.spellings(t))
	for name, matrix := range m.ofTheThesis(t) {
		w := m.words(t, matrix)
		all[name+" "+hardMeasure] = w.measure(t, func(x, y softcosine.Vector) (float64, error) { return w.asBuilt.Hard(x, y), nil })
		all[name+" "+softMeasure] = w.measure(t, w.symmetric.Soft)
		all[name+" "+innerMeasure] = w.measure(t, func(x, y softcosine.Vector) (float64, error) { return w.asBuilt.InnerProduct(x, y), nil })
		if name == relMatrix {
			all[plainCosine] = w.measure(t, func(x, y softcosine.Vector) (float64, error) { return w.asBuilt.Cosine(x, y), nil })
			all[name+" "+dotStore] = w.measure(t, func(x, y softcosine.Vector) (float64, error) {
				stored, err := w.symmetric.DotDocument(y)
				return w.symmetric.DotQuery(x).Dot(stored), err
			})
			all[name+" "+cosineStore] = w.measure(t, func(x, y softcosine.Vector) (float64, error) {
				stored, err := w.symmetric.CosineDocument(y)
				return w.symmetric.CosineQuery(x).Dot(stored), err
			})
			none := softcosine.Identity(w.Len())
			all[unsegmentedText], all[segmentedText] = w.system(t, m.forum, wholeSystem, none), w.system(t, m.forum, primarySystem, none)
			for _, of := range segmentSystems() {
				all[of.String()] = w.system(t, m.forum, of, none)
			}
		}
	}
	few := m.words(t, m.learned(t, func(o *learn.CorpusOptions) { o.Neighbors, o.Power = 10, 1 }))
	all[segmentsWithS] = few.system(t, m.forum, primarySystem, few.symmetric.Similarities())
	return all
}

// spelled returns S_lev by a formula, with θ1 = 1.8, θ2 = 5 and θ4 = 1.5 as in
// the thesis.
func (m *forumMatrices) spelled(t *testing.T, formula spelling.Formula, neighbors int) *simmatrix.Matrix {
	t.Helper()
	options := spelling.DefaultOptions()
	options.Formula, options.MaxDistance, options.Neighbors = formula, spelling.MaxDistance, neighbors
	matrix, err := spelling.FromTerms(t.Context(), m.terms, options, nil)
	if err != nil {
		t.Fatal(err)
	}
	return matrix
}

// spellings returns the measures of S_lev by Sidorov's formulas, by [levBy].
func (m *forumMatrices) spellings(t *testing.T) map[string]forumMeasure {
	t.Helper()
	linear, all := m.spelled(t, spelling.Linear, reproNeighbors), map[string]forumMeasure{}
	for formula, matrix := range map[spelling.Formula]*simmatrix.Matrix{
		spelling.Inverse: m.spelled(t, spelling.Inverse, reproNeighbors), spelling.Linear: linear,
		// A search takes ten seconds, and would find the neighbors of the linear one.
		spelling.Root:   transformed(t, linear, math.Sqrt),
		spelling.Square: transformed(t, linear, func(s float64) float64 { return s * s }),
	} {
		w := m.words(t, matrix)
		all[levBy(formula)+" "+hardMeasure] = w.measure(t, func(x, y softcosine.Vector) (float64, error) { return w.asBuilt.Hard(x, y), nil })
		all[levBy(formula)+" "+softMeasure] = w.measure(t, w.symmetric.Soft)
	}
	return all
}

// levBy is the name of S_lev by a formula: without it for that of the thesis.
func levBy(formula spelling.Formula) string {
	if formula == spelling.Thesis {
		return levMatrix
	}
	return levMatrix + " " + string(formula)
}

// transformed returns the matrix with f of each similarity.
func transformed(t *testing.T, m *simmatrix.Matrix, f func(float64) float64) *simmatrix.Matrix {
	t.Helper()
	var rows []simmatrix.TermRow
	for term, row := range m.Rows() {
		to := simmatrix.TermRow{Term: term}
		for n := range row.All() {
			n.Similarity = float32(f(float64(n.Similarity)))
			to.Neighbors = append(to.Neighbors, n)
		}
		rows = append(rows, to)
	}
	matrix, err := simmatrix.New(simmatrix.Meta{}, rows)
	if err != nil {
		t.Fatal(err)
	}
	return matrix
}

// forumWords numbers all terms of the forum for a matrix.
type forumWords struct {
	*softcosine.Vocabulary
	// The soft cosine is that of ½(S+Sᵀ), the others are of S as it was built.
	asBuilt, symmetric *softcosine.Space
}

func (m *forumMatrices) words(t *testing.T, matrix *simmatrix.Matrix) *forumWords {
	t.Helper()
	var terms []string
	for _, term := range m.terms {
		terms = append(terms, term.Text)
	}
	for _, questions := range m.forum.parts {
		for _, q := range questions {
			terms = append(terms, q.terms...)
		}
	}
	v, s := softcosine.FromMatrix(matrix, terms...)
	weights := make([]float64, v.Len())
	for i := range weights {
		weights[i] = simmatrix.IDF(m.docFreqs[v.Term(int32(i))], m.docs)
	}
	w := &forumWords{Vocabulary: v}
	var err error
	if w.asBuilt, err = softcosine.NewSpace(weights, s); err != nil {
		t.Fatal(err)
	}
	if w.symmetric, err = softcosine.NewSpace(weights, s.Symmetrized()); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *forumWords) numbers(terms []string) []int32 {
	numbers := make([]int32, len(terms))
	for k, term := range terms {
		numbers[k], _ = w.Number(term)
	}
	return numbers
}

// vector returns the frequencies of terms.
func (w *forumWords) vector(terms []string) softcosine.Vector {
	counts := map[int32]float64{}
	for _, number := range w.numbers(terms) {
		counts[number]++
	}
	return softcosine.NewVector(counts)
}

// measure compares titles and texts as a whole.
func (w *forumWords) measure(t *testing.T, of func(x, y softcosine.Vector) (float64, error)) forumMeasure {
	t.Helper()
	return func(q forumQuestion, c forumCandidate) float64 {
		score, err := of(w.vector(q.terms), w.vector(c.terms()))
		if err != nil {
			t.Fatal(err)
		}
		return score
	}
}
