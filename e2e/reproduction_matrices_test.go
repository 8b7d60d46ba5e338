package e2e

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/combine"
	"github.com/akin-search/akin/simmatrix/learn"
	"github.com/akin-search/akin/simmatrix/softcosine"
	"github.com/akin-search/akin/simmatrix/source"
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
	options.RareTerms, options.Neighbors = false, reproNeighbors // the paper has no rare terms
	set(&options)
	matrix, err := learn.FromCorpus(t.Context(), m.corpus, options, nil)
	if err != nil {
		t.Fatal(err)
	}
	return matrix
}

// spelled returns a matrix of edit distances.
func (m *forumMatrices) spelled(t *testing.T, neighbors int) *simmatrix.Matrix {
	t.Helper()
	spelling := source.DefaultSpellingOptions() // θ1 = 1.8, θ2 = 5, θ4 = 1.5, as in the thesis
	spelling.MaxDistance, spelling.Neighbors = source.MaxDistance, neighbors
	matrix, err := source.FromSpelling(t.Context(), m.terms, spelling, nil)
	if err != nil {
		t.Fatal(err)
	}
	return matrix
}

// measures returns all that is ranked by, by name.
func (m *forumMatrices) measures(t *testing.T) map[string]forumMeasure {
	t.Helper()
	rel := m.learned(t, func(*learn.CorpusOptions) {})
	lev := m.spelled(t, reproNeighbors)
	average := combine.Options{Rule: combine.RuleAverage, Neighbors: reproNeighbors}
	avg, err := combine.Combine(t.Context(), []combine.Input{{Name: relMatrix, Matrix: rel}, {Name: levMatrix, Matrix: lev}}, average, nil)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]forumMeasure{}
	for name, matrix := range map[string]*simmatrix.Matrix{relMatrix: rel, levMatrix: lev, avgMatrix: avg} {
		w := m.words(t, matrix)
		all[name+" "+hardMeasure] = w.measure(t, func(x, y softcosine.Vector) (float64, error) { return w.asBuilt.Hard(x, y), nil })
		all[name+" "+softMeasure] = w.measure(t, w.symmetric.Soft)
		all[name+" "+innerMeasure] = w.measure(t, func(x, y softcosine.Vector) (float64, error) { return w.asBuilt.InnerProduct(x, y), nil })
		if name == relMatrix {
			all[plainCosine] = w.measure(t, func(x, y softcosine.Vector) (float64, error) { return w.asBuilt.Cosine(x, y), nil })
			none := softcosine.Identity(w.Len())
			all[unsegmentedText], all[segmentedText] = w.segments(t, m.forum, none, true), w.segments(t, m.forum, none, false)
		}
	}
	few := m.words(t, m.learned(t, func(o *learn.CorpusOptions) { o.Neighbors, o.Power = 10, 1 }))
	all[segmentsWithS] = few.segments(t, m.forum, few.symmetric.Similarities(), false)
	return all
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

// segments compares threads with their comments as the thesis's chapter 3 does:
// cut into title, text and ten comments, or whole. The statistics are those of
// the unlabeled texts, each a nugget.
func (w *forumWords) segments(t *testing.T, f *forum, s *softcosine.Similarities, whole bool) forumMeasure {
	t.Helper()
	var texts []softcosine.Nugget
	for _, document := range f.texts[:f.unlabeled] {
		texts = append(texts, w.nuggets(document)...)
	}
	result, query, err := softcosine.ParseSMARTPair("bfx.nfx")
	if err != nil {
		t.Fatal(err)
	}
	scorer, err := softcosine.NewStandard(softcosine.Weighting{Letters: result}, softcosine.Weighting{Letters: query}, softcosine.Count(w.Len(), texts), s)
	if err != nil {
		t.Fatal(err)
	}
	operators := softcosine.Aggregate{Result: softcosine.WavgGodwin, Query: softcosine.WavgLength}
	return func(q forumQuestion, c forumCandidate) float64 {
		if whole {
			score, err := scorer.Unsegmented(w.nuggets(q.texts), w.nuggets(c.texts))
			if err != nil {
				t.Fatal(err)
			}
			return score
		}
		matrix, err := scorer.Matrix(w.nuggets(q.texts), w.nuggets(c.texts))
		if err != nil {
			t.Fatal(err)
		}
		return operators.Score(matrix)
	}
}

// nuggets have the length of their terms with blanks between them.
func (w *forumWords) nuggets(texts [][]string) softcosine.Document {
	var d softcosine.Document
	for _, terms := range texts {
		d = append(d, softcosine.Nugget{Bytes: int64(len(strings.Join(terms, " "))), Terms: w.numbers(terms)})
	}
	return d
}
