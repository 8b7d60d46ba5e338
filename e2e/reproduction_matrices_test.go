package e2e

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"slices"
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

// A reproSetting is one matrix S.
type reproSetting struct {
	matrix    string
	neighbors int     // C
	threshold float64 // θ3: of S_rel on the cosine, of S_lev on the similarity
	power     float64 // of S_rel: s = cos^power; the thesis calls it θ5
	docFreq   int     // of S_rel: terms of fewer documents have no neighbors
	seed      uint64  // of S_rel: starts the random projection; 0 is akin's own
}

// defaultSetting returns the setting from which one parameter at a time is
// varied: C = 100 as in the thesis, and akin's own recipe for the rest.
func defaultSetting(matrix string) reproSetting {
	s := reproSetting{matrix: matrix, neighbors: 100}
	if matrix == relMatrix {
		defaults := learn.DefaultCorpusOptions()
		s.power, s.docFreq = defaults.Power, defaults.MinDocFreq
	}
	return s
}

func (s reproSetting) String() string {
	text := fmt.Sprintf("%s C=%d", s.matrix, s.neighbors)
	if s.matrix != avgMatrix {
		text += fmt.Sprintf(" θ3=%g", s.threshold)
	}
	if s.matrix == relMatrix {
		text += fmt.Sprintf(" power=%g df=%d", s.power, s.docFreq)
	}
	if s.seed != 0 {
		text += fmt.Sprintf(" seed=%d", s.seed)
	}
	return text
}

// reproSeeds are other seeds than akin's own.
func reproSeeds() []uint64 { return []uint64{2, 3, 4, 5} }

// A sweep is one parameter that is varied and what becomes of S, as in the
// figures of the thesis.
type sweep struct {
	name      string // of the file of its figure
	parameter string
	title     string
	settings  []reproSetting
	label     func(reproSetting) string
	// thesis has the MAP of the soft cosine in the thesis, tables 4.1 and 4.2,
	// in %: on the test sets of 2016 and 2017, by label.
	thesis map[string][2]float64
}

// sweeps returns the five of the thesis's figures 4.1 to 4.5, in their order,
// and that of the power, which the thesis does not vary and which changes no
// density.
func sweeps() []sweep {
	neighbors := []int{1, 10, 100, 1000}
	thresholds := []float64{0.8, 0.6, 0.4, 0.2, 0}
	c := func(s *reproSetting, v int) { s.neighbors = v }
	theta := func(s *reproSetting, v float64) { s.threshold = v }
	labelC := func(s reproSetting) string { return fmt.Sprintf("C=%d", s.neighbors) }
	labelTheta := func(s reproSetting) string { return fmt.Sprintf("%g", s.threshold) }
	return []sweep{
		{
			"lev-neighbors", "S_lev, C", "S_lev: C neighbors of a term kept", varied(levMatrix, neighbors, c), labelC,
			map[string][2]float64{"C=1": {75.55, 43.27}, "C=10": {75.63, 44.77}, "C=100": {75.72, 45.34}, "C=1000": {75.80, 45.55}},
		},
		{
			"lev-threshold", "S_lev, θ3", "S_lev: similarities above θ3 kept (θ3 at the points)",
			varied(levMatrix, thresholds, theta), labelTheta,
			map[string][2]float64{"0.8": {75.67, 44.65}, "0.6": {75.81, 45.35}, "0.4": {75.88, 45.22}, "0.2": {75.72, 45.31}, "0": {75.72, 45.34}},
		},
		{
			"rel-neighbors", "S_rel, C", "S_rel: C neighbors of a term kept", varied(relMatrix, neighbors, c), labelC,
			map[string][2]float64{"C=1": {76.48, 45.29}, "C=10": {76.78, 45.67}, "C=100": {76.57, 44.31}, "C=1000": {75.42, 43.54}},
		},
		{
			"rel-threshold", "S_rel, θ3", "S_rel: cosines above θ3 kept (θ3 at the points)",
			varied(relMatrix, thresholds, theta), labelTheta,
			map[string][2]float64{"0.8": {75.30, 44.28}, "0.6": {77.41, 45.20}, "0.4": {76.38, 44.45}, "0.2": {76.57, 44.31}, "0": {76.57, 44.31}},
		},
		{
			"rel-frequency", "S_rel, df", "S_rel: terms of df documents or more",
			varied(relMatrix, []int{500, 50, 5, 3, 1}, func(s *reproSetting, v int) { s.docFreq = v }),
			func(s reproSetting) string { return fmt.Sprintf("df=%d", s.docFreq) },
			map[string][2]float64{"df=500": {75.34, 43.86}, "df=50": {77.18, 44.83}, "df=5": {76.57, 44.31}, "df=1": {77.08, 45.10}},
		},
		{
			"", "S_rel, power", "",
			varied(relMatrix, []float64{1, 2, 3, 4}, func(s *reproSetting, v float64) { s.power = v }),
			func(s reproSetting) string { return fmt.Sprintf("%g", s.power) },
			map[string][2]float64{"2": {76.57, 44.31}},
		},
	}
}

// varied returns the defaults of a matrix with one parameter at each value.
func varied[T any](matrix string, values []T, set func(*reproSetting, T)) []reproSetting {
	settings := make([]reproSetting, 0, len(values))
	for _, v := range values {
		s := defaultSetting(matrix)
		set(&s, v)
		settings = append(settings, s)
	}
	return settings
}

// headlineSettings are measured in every run.
func headlineSettings() []reproSetting {
	return []reproSetting{defaultSetting(relMatrix), defaultSetting(levMatrix), defaultSetting(avgMatrix)}
}

// sweptSettings are those of all sweeps that are no headline, each once.
func sweptSettings() []reproSetting {
	var settings []reproSetting
	for _, s := range sweeps() {
		for _, setting := range s.settings {
			if !slices.Contains(headlineSettings(), setting) && !slices.Contains(settings, setting) {
				settings = append(settings, setting)
			}
		}
	}
	slices.SortStableFunc(settings, func(a, b reproSetting) int {
		// Settings that are cut from one matrix come together.
		return cmp.Or(cmp.Compare(a.matrix, b.matrix), cmp.Compare(a.docFreq, b.docFreq))
	})
	return settings
}

// A forumMatrices builds matrices from the texts of the forum.
type forumMatrices struct {
	corpus     *learn.Corpus
	vocabulary *softcosine.Vocabulary
	docFreqs   []int64 // by term of the vocabulary
	docs       int64
	known      int // terms of the texts; those after them are only in questions
	widest     widestMatrix
	rel        [][]edge // of defaultSetting(relMatrix), once headlines has run
}

// A widestMatrix is the one matrix that the settings of a sweep are cut from:
// as many neighbors as any of them has, with the cosines themselves.
type widestMatrix struct {
	of   reproSetting
	rows [][]edge // by term, nearest first
}

type edge struct {
	to  int32
	sim float64
}

func newForumMatrices(f *forum) *forumMatrices {
	m, texts := &forumMatrices{}, learn.NewTexts()
	freqs := map[string]int64{}
	var terms []string
	for _, document := range f.texts {
		texts.AddTerms(document...)
		seen := map[string]bool{}
		for _, term := range slices.Concat(document...) {
			if freqs[term] == 0 {
				terms = append(terms, term)
			}
			if !seen[term] {
				seen[term] = true
				freqs[term]++
			}
		}
	}
	m.corpus, m.docs, m.known = texts.Corpus(nil), int64(texts.Docs()), len(terms)
	for _, part := range []string{trainPart, devPart} {
		for _, q := range f.parts[part] {
			terms = append(terms, q.terms...) // the vocabulary takes each once
		}
	}
	m.vocabulary = softcosine.NewVocabulary(terms...)
	m.docFreqs = make([]int64, m.vocabulary.Len())
	for i := range m.docFreqs {
		m.docFreqs[i] = freqs[m.vocabulary.Term(int32(i))]
	}
	return m
}

// weights returns W, the idf of every term.
func (m *forumMatrices) weights() []float64 {
	w := make([]float64, len(m.docFreqs))
	for i, df := range m.docFreqs {
		w[i] = simmatrix.IDF(df, m.docs)
	}
	return w
}

// vector returns the frequencies of terms.
func (m *forumMatrices) vector(terms []string) softcosine.Vector {
	counts := map[int32]float64{}
	for _, term := range terms {
		number, _ := m.vocabulary.Number(term)
		counts[number]++
	}
	return softcosine.NewVector(counts)
}

// learned returns a matrix of the corpus with the recipe of akin. It does not
// read the setting's threshold.
func (m *forumMatrices) learned(tb testing.TB, setting reproSetting) *simmatrix.Matrix {
	tb.Helper()
	options := learn.DefaultCorpusOptions()
	options.RareTerms = false // the paper has none
	options.Neighbors, options.Power, options.MinDocFreq = setting.neighbors, setting.power, setting.docFreq
	options.Seed = cmp.Or(setting.seed, options.Seed)
	matrix, err := learn.FromCorpus(tb.Context(), m.corpus, options, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return matrix
}

// learnedWith returns S of a setting without a threshold, as the builder makes it.
func (m *forumMatrices) learnedWith(tb testing.TB, setting reproSetting) *softcosine.Similarities {
	tb.Helper()
	return m.similarities(tb, m.rows(m.learned(tb, setting)), itself)
}

// itself is the similarity as it was built.
func itself(e edge) float64 { return e.sim }

// spelled returns a matrix of edit distances over all terms of the texts.
func (m *forumMatrices) spelled(tb testing.TB, neighbors int) *simmatrix.Matrix {
	tb.Helper()
	terms := make([]simmatrix.Term, m.known)
	for i := range terms {
		terms[i] = simmatrix.Term{Text: m.vocabulary.Term(int32(i)), DocFreq: uint32(m.docFreqs[i])}
	}
	options := source.DefaultSpellingOptions() // θ1 = 1.8, θ2 = 5, θ4 = 1.5, as in the thesis
	options.MaxDistance, options.Neighbors = source.MaxDistance, neighbors
	matrix, err := source.FromSpelling(tb.Context(), terms, options, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return matrix
}

// headlines returns the headline matrices, made only by the builders.
func (m *forumMatrices) headlines(tb testing.TB) map[reproSetting]*softcosine.Similarities {
	tb.Helper()
	rel := m.learned(tb, defaultSetting(relMatrix))
	lev := m.spelled(tb, defaultSetting(levMatrix).neighbors)
	m.rel = m.rows(rel)
	options := combine.Options{Rule: combine.RuleAverage, Neighbors: defaultSetting(avgMatrix).neighbors}
	avg, err := combine.Combine(tb.Context(), []combine.Input{{Name: relMatrix, Matrix: rel}, {Name: levMatrix, Matrix: lev}}, options, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return map[reproSetting]*softcosine.Similarities{
		defaultSetting(relMatrix): m.similarities(tb, m.rel, itself),
		defaultSetting(levMatrix): m.similarities(tb, m.rows(lev), itself),
		defaultSetting(avgMatrix): m.similarities(tb, m.rows(avg), itself),
	}
}

// swept returns S of a swept setting. Those that differ in C, θ3 and power are
// cut from one wider matrix, of which only the last is kept.
func (m *forumMatrices) swept(tb testing.TB, setting reproSetting) *softcosine.Similarities {
	tb.Helper()
	if setting.docFreq != defaultSetting(setting.matrix).docFreq {
		return m.learnedWith(tb, setting)
	}
	// 1,000 is the most neighbors of a sweep, power 1 the cosine itself.
	of := reproSetting{matrix: setting.matrix, neighbors: 1000, power: 1, docFreq: setting.docFreq}
	if m.widest.of != of {
		m.widest = widestMatrix{of: of}
		if of.matrix == levMatrix {
			m.widest.rows = m.rows(m.spelled(tb, of.neighbors))
		} else {
			m.widest.rows = m.rows(m.learned(tb, of))
		}
	}
	rows := make([][]edge, len(m.widest.rows))
	for i, row := range m.widest.rows {
		rows[i] = row[:min(setting.neighbors, len(row))]
	}
	power := max(setting.power, 1) // S_lev has none
	return m.similarities(tb, rows, func(e edge) float64 {
		if e.sim <= setting.threshold {
			return 0
		}
		return math.Pow(e.sim, power)
	})
}

// rows returns the rows of a matrix by the numbers of the vocabulary.
func (m *forumMatrices) rows(matrix *simmatrix.Matrix) [][]edge {
	rows := make([][]edge, m.vocabulary.Len())
	for term, row := range matrix.Rows() {
		i, _ := m.vocabulary.Number(term)
		rows[i] = make([]edge, 0, row.Len())
		for neighbor := range row.All() {
			j, _ := m.vocabulary.Number(neighbor.Term)
			rows[i] = append(rows[i], edge{j, float64(neighbor.Similarity)})
		}
	}
	return rows
}

// similarities returns S with the given value of each edge.
func (m *forumMatrices) similarities(tb testing.TB, rows [][]edge, value func(edge) float64) *softcosine.Similarities {
	tb.Helper()
	s, err := softcosine.NewSimilarities(m.vocabulary.Len(), entriesOf(rows, value))
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// entriesOf yields the entries in the order of S, in which it need not sort.
func entriesOf(rows [][]edge, value func(edge) float64) iter.Seq2[[2]int32, float64] {
	return func(yield func([2]int32, float64) bool) {
		var sorted []edge
		for i, row := range rows {
			sorted = append(sorted[:0], row...)
			slices.SortFunc(sorted, func(a, b edge) int { return cmp.Compare(a.to, b.to) })
			for _, e := range sorted {
				if !yield([2]int32{int32(i), e.to}, value(e)) {
					return
				}
			}
		}
	}
}
