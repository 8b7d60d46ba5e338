package e2e

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/akin-search/akin/simmatrix/softcosine"
)

// The experiments of the thesis's chapter 3: threads cut into title, text and
// ten comments. They are steps of TestReproduction.

// Ways to rank, as tables 3.2 and 3.3 call them.
const (
	handcrafted     = "Handcrafted"
	unsegmentedText = "Unsegmented"
	machineLearning = "Machine learning"
)

const okapiLetters = "Okapi BM25"

// A segmentSetting is one system of chapter 3.
type segmentSetting struct {
	approach  string
	filter    string // a key of segmentFilters, "" for none
	letters   string // of results and queries, as "bfx.nfx"
	terms     string // a key of segmentTermWeights, "" for none
	operators softcosine.Aggregate
	slope     float64
	// threads says that statistics are those of whole threads.
	threads bool
	// s is S, the identity where it has no neighbors; allWords keeps stop words.
	s        segmentSimilarities
	allWords bool
}

// segmentSimilarities are S: the C nearest neighbors of a term that
// defaultSetting(relMatrix) finds, s = cos^power, made symmetric or not.
type segmentSimilarities struct {
	neighbors int
	power     float64
	asBuilt   bool
}

// chosenSimilarities are what train part 2 chooses for the primary system.
func chosenSimilarities() segmentSimilarities { return segmentSimilarities{neighbors: 10, power: 1} }

func (s segmentSimilarities) String() string {
	text := fmt.Sprintf("C=%d power=%g", s.neighbors, s.power)
	if s.asBuilt {
		text += " as built"
	}
	return text
}

// String names the setting in the golden file.
func (s segmentSetting) String() string {
	text := "segments: " + cmp.Or(s.filter, "no filter") + " " + s.letters
	if s.terms != "" {
		text += " " + s.terms
	}
	switch s.approach {
	case handcrafted:
		text += fmt.Sprintf(" (%s, %s, %s)", s.operators.Result, s.operators.Query, orderName(s.operators))
	default:
		text += " (" + strings.ToLower(s.approach) + ")"
	}
	if s.slope != 0 {
		text += fmt.Sprintf(" s=%g", s.slope)
	}
	if s.threads {
		text += " idf of threads"
	}
	if s.s.neighbors != 0 {
		text += " S_rel " + s.s.String()
	}
	if s.allWords {
		text += " all words"
	}
	return text
}

func orderName(a softcosine.Aggregate) string {
	if a.QueryFirst {
		return "query-first"
	}
	return "result-first"
}

func segmentFilters() map[string]softcosine.Filter {
	return map[string]softcosine.Filter{
		"": softcosine.Unfiltered, "FirstPara": softcosine.FirstPara, "FirstTwoPara": softcosine.FirstTwoPara,
		"BestSentence 0": softcosine.BestSentence(0),
	}
}

// segmentTermWeights are those of results and of queries. Godwin's are only of
// results, as 3.4.2 has the length operator for queries.
func segmentTermWeights() map[string][2]softcosine.TermWeights {
	return map[string][2]softcosine.TermWeights{
		"": {}, "Murata A": {softcosine.MurataA, softcosine.MurataA}, "Murata B": {softcosine.MurataB, softcosine.MurataB},
		"Godwin": {softcosine.Godwin, nil},
	}
}

// The systems that everything else is compared with.
var (
	primarySegments = segmentSetting{
		approach: handcrafted, letters: "bfx.nfx",
		operators: softcosine.Aggregate{Result: softcosine.WavgGodwin, Query: softcosine.WavgLength},
	}
	primaryUnsegmented = segmentSetting{approach: unsegmentedText, letters: "bfx.nfx"}
)

// A segmentRow is a row of table 3.2 or 3.3 with its MAP there, in %: on the
// test sets of 2016 and 2017, 0 where the table has none.
type segmentRow struct {
	segmentSetting
	thesis [2]float64
}

const firstSlope = 0.3 // s before tuning, as Singhal et al. have it

// segmentRows returns the rows of both tables, each system once.
func segmentRows() []segmentRow {
	rows := []segmentRow{
		{operated("FirstTwoPara", "dpc.ann", softcosine.Max, softcosine.WavgLength, true), [2]float64{77.25}},
		{operated("", "bfx.nfx", softcosine.WavgGodwin, softcosine.WavgGodwin, false), [2]float64{77.23}},
		{operated("FirstTwoPara", "dpc.ann", softcosine.Max, softcosine.WavgLength, false), [2]float64{77.09}},
		{operated("FirstTwoPara", "nfc.dfc", softcosine.Avg, softcosine.Min, false), [2]float64{77.00}},
		{operated("FirstTwoPara", "Lpc.ann", softcosine.WavgLength, softcosine.Max, true), [2]float64{76.96}},
		{operated("BestSentence 0", okapiLetters, softcosine.Avg, softcosine.Max, false), [2]float64{0, 49.20}},
		{operated("BestSentence 0", okapiLetters, softcosine.Avg, softcosine.WavgGodwin, false), [2]float64{0, 48.87}},
		{operated("BestSentence 0", okapiLetters, softcosine.Avg, softcosine.Max, true), [2]float64{0, 48.79}},
		{operated("BestSentence 0", "bfx.nfx", softcosine.Max, softcosine.WavgGodwin, false), [2]float64{0, 48.76}},
		{primarySegments, [2]float64{76.77, 47.45}},
		{segmentSetting{approach: unsegmentedText, filter: "FirstTwoPara", letters: "Lfb.bfc", terms: "Murata B", slope: firstSlope}, [2]float64{76.58}},
		{segmentSetting{approach: unsegmentedText, filter: "FirstTwoPara", letters: "Lpu.Lpc", terms: "Murata A", slope: firstSlope}, [2]float64{0, 48.75}},
		{segmentSetting{approach: machineLearning, filter: "FirstPara", letters: "nfc.lfc"}, [2]float64{75.63}},
		{segmentSetting{approach: machineLearning, filter: "FirstTwoPara", letters: "bfx.nfx"}, [2]float64{0, 46.90}},
		{segmentSetting{approach: unsegmentedText, filter: "FirstTwoPara", letters: "bfx.nfx"}, [2]float64{75.21, 44.67}},
		{segmentSetting{approach: unsegmentedText, filter: "FirstPara", letters: "bfx.nfx"}, [2]float64{}}, // title and text, see 3.5
		{primaryUnsegmented, [2]float64{73.94, 36.82}},
		{segmentSetting{approach: unsegmentedText, letters: "bfx.nfx", terms: "Godwin"}, [2]float64{70.28, 37.18}},
	}
	rows[3].terms, rows[8].terms = "Murata B", "Murata A"
	return rows
}

// operated returns a handcrafted system.
func operated(filter, letters string, result, query softcosine.Operator, queryFirst bool) segmentSetting {
	return segmentSetting{
		approach: handcrafted, filter: filter, letters: letters,
		operators: softcosine.Aggregate{Result: result, Query: query, QueryFirst: queryFirst},
	}
}

// segmentSweep returns the settings of S that train part 2 chooses from.
func segmentSweep() []segmentSimilarities {
	var sweep []segmentSimilarities
	for _, c := range []int{1, 10, 100} {
		for _, power := range []float64{1, 2, 3, 4} {
			sweep = append(sweep, segmentSimilarities{neighbors: c, power: power})
		}
	}
	return sweep
}

// sweptLetters are the weightings that S is measured within: the primary one,
// the same with the soft cosine on the side of results, which ranks, and the
// soft cosine of frequencies.
func sweptLetters() []string { return []string{"bfx.nfx", "bfc.nfc", "nfc.nfc"} }

func (s segmentSetting) with(letters string, of segmentSimilarities) segmentSetting {
	s.letters, s.s = letters, of
	return s
}

func (s segmentSetting) withAllWords() segmentSetting {
	s.allWords = true
	return s
}

// A slopeCurve is one of figure 3.4: a system whose norm is pivoted.
type slopeCurve struct {
	label string
	segmentSetting
}

func slopeCurves() []slopeCurve {
	primary, learned := primarySegments, segmentSetting{approach: machineLearning, filter: "FirstTwoPara"}
	curves := []slopeCurve{}
	for _, norm := range []string{"u", "b"} {
		primary.letters, learned.letters = "bf"+norm+".nfx", "bf"+norm+".nfx"
		curves = append(curves, slopeCurve{"Godwin and length, " + primary.letters, primary}, slopeCurve{"regression, " + learned.letters, learned})
	}
	return append(curves,
		slopeCurve{"unsegmented, Lfb.bfc, Murata B", segmentSetting{approach: unsegmentedText, filter: "FirstTwoPara", letters: "Lfb.bfc", terms: "Murata B"}},
		slopeCurve{"unsegmented, Lpu.Lpc, Murata A", segmentSetting{approach: unsegmentedText, filter: "FirstTwoPara", letters: "Lpu.Lpc", terms: "Murata A"}})
}

func slopes() []float64 { return []float64{0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1} }

// A segmentForum is the forum with its threads as nuggets.
type segmentForum struct {
	questions        map[string][]forumQuestion
	queries          map[string][]softcosine.Document
	results          map[string][][]softcosine.Document
	nuggets, threads *softcosine.Statistics
	matrices         *forumMatrices
	rel              [][]edge // of defaultSetting(relMatrix)
}

// newSegmentForum counts the statistics over the unlabeled texts, each a nugget
// (3.4.1), and over whole threads.
func newSegmentForum(f *forum, m *forumMatrices, rel [][]edge) *segmentForum {
	out := &segmentForum{
		questions: f.parts, queries: map[string][]softcosine.Document{}, results: map[string][][]softcosine.Document{}, matrices: m, rel: rel,
	}
	var nuggets, threads []softcosine.Nugget
	for k, document := range f.texts {
		whole := m.nugget(slices.Concat(document...))
		if k < f.unlabeled {
			nuggets = append(nuggets, whole)
		} else {
			threads = append(threads, whole)
		}
	}
	out.nuggets, out.threads = softcosine.Count(m.vocabulary.Len(), nuggets), softcosine.Count(m.vocabulary.Len(), threads)
	for part, questions := range f.parts {
		for _, q := range questions {
			out.queries[part] = append(out.queries[part], m.document(q.texts))
			var results []softcosine.Document
			for _, c := range q.candidates {
				results = append(results, m.document(c.texts))
			}
			out.results[part] = append(out.results[part], results)
		}
	}
	return out
}

// nugget has the length of its terms with blanks between them.
func (m *forumMatrices) nugget(terms []string) softcosine.Nugget {
	n := softcosine.Nugget{Bytes: int64(len(strings.Join(terms, " ")))}
	for _, term := range terms {
		number, _ := m.vocabulary.Number(term)
		n.Terms = append(n.Terms, number)
	}
	return n
}

func (m *forumMatrices) document(texts [][]string) softcosine.Document {
	var d softcosine.Document
	for _, terms := range texts {
		d = append(d, m.nugget(terms))
	}
	return d
}

// similarities returns S of a setting.
func (f *segmentForum) similarities(tb testing.TB, of segmentSimilarities) *softcosine.Similarities {
	tb.Helper()
	rows := make([][]edge, len(f.rel))
	for i, row := range f.rel {
		rows[i] = row[:min(of.neighbors, len(row))]
	}
	learned := defaultSetting(relMatrix).power
	s := f.matrices.similarities(tb, rows, func(e edge) float64 { return math.Pow(e.sim, of.power/learned) })
	if of.asBuilt {
		return s
	}
	return s.Symmetrized()
}

// scorer returns what scores nuggets in a setting.
func (f *segmentForum) scorer(tb testing.TB, setting segmentSetting, s *softcosine.Similarities) *softcosine.Scorer {
	tb.Helper()
	st := *f.nuggets
	if setting.threads {
		st = *f.threads
	}
	st.Slope = setting.slope
	if setting.letters == okapiLetters {
		// k1, k3 and b are those that the thesis found for operators, 3.4.3.
		scorer, err := softcosine.NewOkapi(softcosine.OkapiParameters{K1: 1.2, K3: 0, B: 0.75}, &st, s)
		if err != nil {
			tb.Fatal(err)
		}
		return scorer
	}
	result, query, err := softcosine.ParseSMARTPair(setting.letters)
	if err != nil {
		tb.Fatal(err)
	}
	terms := segmentTermWeights()[setting.terms]
	scorer, err := softcosine.NewStandard(softcosine.Weighting{Letters: result, Terms: terms[0]}, softcosine.Weighting{Letters: query, Terms: terms[1]}, &st, s)
	if err != nil {
		tb.Fatal(err)
	}
	return scorer
}

// scores returns M_uv of every candidate of every question of a part, or, of
// unsegmented text, its score.
func (f *segmentForum) scores(tb testing.TB, part string, setting segmentSetting, s *softcosine.Similarities) (matrices [][]softcosine.Matrix, whole [][]float64) {
	tb.Helper()
	scorer, filter := f.scorer(tb, setting, s), segmentFilters()[setting.filter]
	for k, query := range f.queries[part] {
		var row []softcosine.Matrix
		var scores []float64
		for _, result := range f.results[part][k] {
			var m softcosine.Matrix
			var score float64
			var err error
			if setting.approach == unsegmentedText {
				score, err = scorer.Unsegmented(filter(query), filter(result))
			} else {
				m, err = scorer.Matrix(filter(query), filter(result))
			}
			if err != nil {
				tb.Fatal(err)
			}
			row, scores = append(row, m), append(scores, score)
		}
		matrices, whole = append(matrices, row), append(whole, scores)
	}
	return matrices, whole
}

// precisions returns the average precisions of a part.
func (f *segmentForum) precisions(tb testing.TB, part string, setting segmentSetting, s *softcosine.Similarities) []float64 {
	tb.Helper()
	matrices, scores := f.scores(tb, part, setting, s)
	switch setting.approach {
	case handcrafted:
		scores = scored(matrices, func(_ int, m softcosine.Matrix) float64 { return setting.operators.Score(m) })
	case machineLearning:
		scores = f.estimated(tb, part, setting, s, matrices)
	}
	all := make([]float64, len(scores))
	for k, q := range f.questions[part] {
		all[k] = rerankedPrecision(q, scores[k])
	}
	return all
}

func scored(matrices [][]softcosine.Matrix, of func(question int, m softcosine.Matrix) float64) [][]float64 {
	scores := make([][]float64, len(matrices))
	for k, row := range matrices {
		for _, m := range row {
			scores[k] = append(scores[k], of(k, m))
		}
	}
	return scores
}

// folds is in how many parts the questions of train part 2 are cut, each to be
// ranked by a regression that is fitted to the others.
const folds = 5

// estimated returns the estimates of a regression that is fitted to train part
// 2, without the fold of the question where that is ranked.
func (f *segmentForum) estimated(tb testing.TB, part string, setting segmentSetting, s *softcosine.Similarities, matrices [][]softcosine.Matrix) [][]float64 {
	tb.Helper()
	if part == devPart {
		train, _ := f.scores(tb, trainPart, setting, s)
		l := f.fitted(tb, train, -1)
		return scored(matrices, func(_ int, m softcosine.Matrix) float64 { return l.Probability(m.Features()) })
	}
	var fits []softcosine.Logistic
	for fold := range folds {
		fits = append(fits, f.fitted(tb, matrices, fold))
	}
	return scored(matrices, func(k int, m softcosine.Matrix) float64 { return fits[k%folds].Probability(m.Features()) })
}

// fitted returns the regression over train part 2 without a fold.
func (f *segmentForum) fitted(tb testing.TB, train [][]softcosine.Matrix, without int) softcosine.Logistic {
	tb.Helper()
	var examples [][]float64
	var relevant []bool
	for k, row := range train {
		for c, m := range row {
			if k%folds != without {
				examples, relevant = append(examples, m.Features()), append(relevant, f.questions[trainPart][k].candidates[c].relevant)
			}
		}
	}
	l, err := softcosine.FitLogistic(examples, relevant)
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

// newChapter3Tokenizer returns the preprocessing of 3.4.1: lower case, no
// images and addresses, split at white space and punctuation, and only tokens
// of 2 to 15 characters, stop words with them.
func newChapter3Tokenizer() func(text string) []string {
	left := regexp.MustCompile(`<img[^>]*>|\[img_assist[^\]]*\]|https?://\S+|www\.\S+`)
	return func(text string) []string {
		terms := strings.FieldsFunc(left.ReplaceAllString(strings.ToLower(text), " "), func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsNumber(r)
		})
		return slices.DeleteFunc(terms, func(term string) bool {
			n := utf8.RuneCountInString(term)
			return n < 2 || n > 15
		})
	}
}

// segmentContrasts are the differences that get an interval, and that have to
// be there: of MAP, at least.
func segmentContrasts() []segmentContrast {
	withS := primarySegments.with(primarySegments.letters, chosenSimilarities())
	return []segmentContrast{
		{"segments minus unsegmented", primarySegments, primaryUnsegmented, 0.02},
		{"segments with S minus segments", withS, primarySegments, 0},
	}
}

type segmentContrast struct {
	name         string
	better, than segmentSetting
	least        float64
}

// missedSegments describes the differences that are not as large as they have
// to be.
func (all reproFigures) missedSegments() []string {
	var missed []string
	for _, c := range segmentContrasts() {
		for _, part := range []string{trainPart, devPart} {
			if d := all[c.better.String()][part] - all[c.than.String()][part]; !(d > c.least) {
				missed = append(missed, fmt.Sprintf("%s on %s: %.4f, want more than %g", c.name, part, d, c.least))
			}
		}
	}
	return missed
}

// measureSegments notes the precisions of settings that share S.
func (r *reproduction) measureSegments(t *testing.T, f *segmentForum, of segmentSimilarities, settings ...segmentSetting) {
	t.Helper()
	s := softcosine.Identity(f.matrices.vocabulary.Len())
	if of.neighbors != 0 {
		s = f.similarities(t, of)
	}
	for _, setting := range settings {
		for part := range f.questions {
			r.note(setting.String(), part, f.precisions(t, part, setting, s))
		}
	}
}

// segments measures what the goals are about.
func (r *reproduction) segments(t *testing.T) {
	t.Helper()
	f := newSegmentForum(r.forum, r.matrices, r.matrices.rel)
	r.measureSegments(t, f, segmentSimilarities{}, primarySegments, primaryUnsegmented)
	of := chosenSimilarities()
	r.measureSegments(t, f, of, primarySegments.with(primarySegments.letters, of))
	for _, c := range segmentContrasts() {
		figures := map[string]float64{}
		for part := range r.parts {
			d := compareMeans(r.precisions[c.better.String()][part], r.precisions[c.than.String()][part])
			figures[part], figures[part+lowEnd], figures[part+highEnd] = d.mean, d.low, d.high
		}
		r.figures[c.name] = figures
	}
}

// allSegments measures every setting of chapter 3, also with all words.
func (r *reproduction) allSegments(t *testing.T) {
	t.Helper()
	words := loadForumAs(t, newChapter3Tokenizer())
	m := newForumMatrices(words)
	for _, f := range []*segmentForum{
		newSegmentForum(r.forum, r.matrices, r.matrices.rel),
		newSegmentForum(words, m, m.rows(m.learned(t, defaultSetting(relMatrix)))),
	} {
		named := func(s segmentSetting) segmentSetting {
			s.allWords = f.matrices == m
			return s
		}
		for _, row := range segmentRows() {
			r.measureSegments(t, f, segmentSimilarities{}, named(row.segmentSetting))
		}
		for _, letters := range sweptLetters() {
			none := segmentSimilarities{}
			r.measureSegments(t, f, none, named(primaryUnsegmented.with(letters, none)), named(primarySegments.with(letters, none)))
		}
		for _, of := range segmentSweep() {
			for _, letters := range sweptLetters() {
				r.measureSegments(t, f, of, named(primarySegments.with(letters, of)))
			}
		}
		byThreads, wholeByThreads := named(primarySegments), named(primaryUnsegmented)
		byThreads.threads, wholeByThreads.threads = true, true
		r.measureSegments(t, f, segmentSimilarities{}, byThreads, wholeByThreads)
	}
	f := newSegmentForum(r.forum, r.matrices, r.matrices.rel)
	asBuilt := chosenSimilarities()
	asBuilt.asBuilt = true
	r.measureSegments(t, f, asBuilt, primarySegments.with(primarySegments.letters, asBuilt))
	for _, curve := range slopeCurves() {
		for _, curve.slope = range slopes() {
			r.measureSegments(t, f, segmentSimilarities{}, curve.segmentSetting)
		}
	}
	r.discriminativeness(t, f)
}

// The rows of figure 3.2.
const (
	titleRow = "segments: regression, question's title"
	textRow  = "segments: regression, question's text"
)

// discriminativeness notes |β| of the comments, as in figure 3.2.
func (r *reproduction) discriminativeness(t *testing.T, f *segmentForum) {
	t.Helper()
	train, _ := f.scores(t, trainPart, primarySegments, softcosine.Identity(f.matrices.vocabulary.Len()))
	l := f.fitted(t, train, -1)
	columns := len(l.Coefficients) / 2
	for row, name := range []string{titleRow, textRow} {
		r.figures[name] = map[string]float64{}
		for comment := range columns - 2 {
			r.figures[name][fmt.Sprintf("comment %02d", comment+1)] = math.Abs(l.Coefficients[row*columns+2+comment])
		}
	}
}
