package e2e

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"github.com/akin-search/akin/simmatrix/softcosine"
)

// How the thesis makes one score of a thread.
const (
	unsegmentedWay = "unsegmented"
	handcraftedWay = "handcrafted" // M_uv by two operators
	learnedWay     = "machine learning"
)

// okapiBM25 stands for letters. Its parameters are those that the thesis found
// for operators, 3.4.3.
const okapiBM25 = "Okapi BM25"

// A segmentSystem is a row of tables 3.2 and 3.3 of the thesis, with its MAP on
// the test sets of 2016 and 2017.
type segmentSystem struct {
	way, filter, letters, terms string
	operators                   softcosine.Aggregate
	thesis                      string
}

// The primary system of the thesis, and the same weights without segments.
var (
	primarySystem = segmentSystem{way: handcraftedWay, letters: "bfx.nfx", operators: operatedBy(softcosine.WavgGodwin, softcosine.WavgLength), thesis: "76.77 | 47.45"}
	wholeSystem   = segmentSystem{way: unsegmentedWay, letters: "bfx.nfx", thesis: "73.94 | 36.82"}
)

func operatedBy(result, query softcosine.Operator) softcosine.Aggregate {
	return softcosine.Aggregate{Result: result, Query: query}
}

// segmentSystems are the systems of the tables that differ in more than
// letters: the best ones, the primary one, and those that contrast with it.
func segmentSystems() []segmentSystem {
	return []segmentSystem{
		primarySystem,
		{way: handcraftedWay, letters: "bfx.nfx", operators: operatedBy(softcosine.WavgGodwin, softcosine.WavgGodwin), thesis: "77.23 | "},
		{way: handcraftedWay, filter: "FirstTwoPara", letters: "dpc.ann", operators: operatedBy(softcosine.Max, softcosine.WavgLength), thesis: "77.09 | "},
		{way: handcraftedWay, filter: "FirstTwoPara", letters: "nfc.dfc", terms: "Murata B", operators: operatedBy(softcosine.Avg, softcosine.Min), thesis: "77.00 | "},
		{way: handcraftedWay, filter: "BestSentence 0", letters: okapiBM25, operators: operatedBy(softcosine.Avg, softcosine.Max), thesis: " | 49.20"},
		{way: learnedWay, filter: "FirstTwoPara", letters: "bfx.nfx", thesis: " | 46.90"},
		{way: learnedWay, filter: "FirstPara", letters: "nfc.lfc", thesis: "75.63 | "},
		{way: unsegmentedWay, filter: "FirstTwoPara", letters: "Lpu.Lpc", terms: "Murata A", thesis: " | 48.75"},
		{way: unsegmentedWay, filter: "FirstTwoPara", letters: "bfx.nfx", thesis: "75.21 | 44.67"},
		wholeSystem,
		{way: unsegmentedWay, letters: "bfx.nfx", terms: "Godwin", thesis: "70.28 | 37.18"},
	}
}

// columns are the name of a system in the table.
func (s segmentSystem) columns() []string {
	weights := s.letters
	if s.terms != "" {
		weights += ", " + s.terms
	}
	return []string{s.way, cmp.Or(s.filter, "–"), weights, cmp.Or(string(s.operators.Result), "–"), cmp.Or(string(s.operators.Query), "–")}
}

func (s segmentSystem) String() string { return strings.Join(s.columns(), " | ") }

// segmentFilters keep what represents a document, by name.
var segmentFilters = map[string]softcosine.Filter{
	"": softcosine.Unfiltered, "FirstPara": softcosine.FirstPara, "FirstTwoPara": softcosine.FirstTwoPara, "BestSentence 0": softcosine.BestSentence(0),
}

// segmentTerms weigh terms of results and of queries: places say something in
// threads only.
var segmentTerms = map[string][2]softcosine.TermWeights{
	"": {}, "Murata A": {softcosine.MurataA, softcosine.MurataA}, "Murata B": {softcosine.MurataB, softcosine.MurataB}, "Godwin": {softcosine.Godwin, nil},
}

// scorer returns what scores nuggets. The statistics are those of the unlabeled
// texts, each a nugget.
func (w *forumWords) scorer(t *testing.T, f *forum, of segmentSystem, s *softcosine.Similarities) *softcosine.Scorer {
	t.Helper()
	var texts []softcosine.Nugget
	for _, document := range f.texts[:f.unlabeled] {
		texts = append(texts, w.nuggets(document)...)
	}
	st := softcosine.Count(w.Len(), texts)
	st.Slope = 0.3 // where the thesis begins
	var scorer *softcosine.Scorer
	var err error
	if of.letters == okapiBM25 {
		scorer, err = softcosine.NewOkapi(softcosine.OkapiParameters{K1: 1.2, K3: 0, B: 0.75}, st, s)
	} else {
		var result, query softcosine.SMART
		if result, query, err = softcosine.ParseSMARTPair(of.letters); err != nil {
			t.Fatal(err)
		}
		terms := segmentTerms[of.terms]
		scorer, err = softcosine.NewStandard(softcosine.Weighting{Letters: result, Terms: terms[0]}, softcosine.Weighting{Letters: query, Terms: terms[1]}, st, s)
	}
	if err != nil {
		t.Fatal(err)
	}
	return scorer
}

// system compares threads with their comments as the thesis's chapter 3 does:
// cut into title, text and ten comments, or whole. A regression is fitted to
// train part 2.
func (w *forumWords) system(t *testing.T, f *forum, of segmentSystem, s *softcosine.Similarities) forumMeasure {
	t.Helper()
	scorer, filter := w.scorer(t, f, of, s), segmentFilters[of.filter]
	matrix := func(q forumQuestion, c forumCandidate) softcosine.Matrix {
		m, err := scorer.Matrix(filter(w.nuggets(q.texts)), filter(w.nuggets(c.texts)))
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	switch of.way {
	case unsegmentedWay:
		return func(q forumQuestion, c forumCandidate) float64 {
			score, err := scorer.Unsegmented(filter(w.nuggets(q.texts)), filter(w.nuggets(c.texts)))
			if err != nil {
				t.Fatal(err)
			}
			return score
		}
	case learnedWay:
		var examples [][]float64
		var relevant []bool
		for _, q := range f.parts[trainPart] {
			for _, c := range q.candidates {
				examples, relevant = append(examples, matrix(q, c).Features()), append(relevant, c.relevant)
			}
		}
		fitted, err := softcosine.FitLogistic(examples, relevant)
		if err != nil {
			t.Fatal(err)
		}
		return func(q forumQuestion, c forumCandidate) float64 { return fitted.Probability(matrix(q, c).Features()) }
	default:
		return func(q forumQuestion, c forumCandidate) float64 { return of.operators.Score(matrix(q, c)) }
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

// segmentTable shows the systems. What a regression was fitted to, it is not
// measured on.
func segmentTable(all forumFigures) string {
	var b strings.Builder
	b.WriteString("| way | filter | weights | ⊖ | ⊕ | train part 2 | dev | thesis, 2016 test | thesis, 2017 test |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, s := range segmentSystems() {
		train := fmt.Sprintf("%.2f", 100*all[trainPart][s.String()])
		if s.way == learnedWay {
			train = "–"
		}
		fmt.Fprintf(&b, "| %s | %s | %.2f | %s |\n", s, train, 100*all[devPart][s.String()], s.thesis)
	}
	return b.String()
}
