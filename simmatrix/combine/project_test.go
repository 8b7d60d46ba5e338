package combine

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/e2e/matrixtest"
	"github.com/akin-search/akin/simmatrix"
)

// surfaceWords are the rows that the projections below start from.
func surfaceWords() []simmatrix.TermRow {
	return []simmatrix.TermRow{
		{Term: "car", Neighbors: []simmatrix.Neighbor{{Term: "cars", Similarity: 0.9}, {Term: "bus", Similarity: 0.25}, {Term: "the", Similarity: 0.125}}},
		{Term: "cars", Neighbors: []simmatrix.Neighbor{{Term: "buses", Similarity: 0.75}, {Term: "t-shirt", Similarity: 0.5}, {Term: "tram", Similarity: 0.5}}},
		{Term: "bus"},
		{Term: "buses", Neighbors: []simmatrix.Neighbor{{Term: "car", Similarity: 1}}},
		{Term: "t-shirt", Neighbors: []simmatrix.Neighbor{{Term: "car", Similarity: 1}}},
		{Term: "the"},
		{Term: "tram"},
		{Term: "unknown"},
	}
}

func analysis() map[string][]string {
	return map[string][]string{
		"car": {"car"}, "cars": {"car"}, "bus": {"bu"}, "buses": {"bu"}, // as a light stemmer has it
		"t-shirt": {"\x1ft\x1fshirt"}, "the": {}, "tram": {"tram"},
	}
}

func TestFormOfAProjectedTermIsItsWordInMostDocumentsThenItsOthers(t *testing.T) {
	m := matrixtest.New(t, simmatrix.Meta{Docs: 50}, []simmatrix.TermRow{
		{Term: "bu", DocFreq: 1, Form: "busses"}, {Term: "bus", DocFreq: 4}, {Term: "buses", DocFreq: 4}, {Term: "car", DocFreq: 3}, {Term: "cars", DocFreq: 2}, {Term: "tram"},
	})
	analyzed := map[string][]string{"bu": {"bu"}, "bus": {"bu"}, "buses": {"bu"}, "car": {"car"}, "cars": {"car"}, "tram": {"tra"}}
	got, _, err := Project(m, ProjectOptions{IndexTerms: analyzed})
	check.OK(t, err)
	// "tra" may be any word: none is counted
	want := map[string]string{"bu": simmatrix.WithForms("bu", "bus", "buses", "busses"), "car": simmatrix.WithForms("car", "car", "cars"), "tra": simmatrix.WithForms("tra", "", "tram")}
	check.Equal(t, want, maps.Collect(got.Forms()))
}

func TestShapedMatricesKeepTheirForms(t *testing.T) {
	m := matrixtest.New(t, simmatrix.Meta{Docs: 50}, []simmatrix.TermRow{
		{Term: "ga", DocFreq: 9, Form: "gas", Neighbors: []simmatrix.Neighbor{{Term: "oil", Similarity: 0.5}}},
		{Term: "oil", DocFreq: 1, Form: "oils"},
		{Term: "pipe", DocFreq: 9},
	})
	filtered, _, err := (&TermFilter{MinDocFreq: 2}).Apply(m)
	check.OK(t, err)
	sparse, err := Sparsify(m, SparsifyOptions{Neighbors: 1})
	check.OK(t, err)
	all := maps.Collect(m.Forms())
	check.Equal(t, all, maps.Collect(sparse.Forms()))
	check.Equal(t, map[string]string{"ga": "gas"}, maps.Collect(filtered.Forms()))
}

func TestProjectKeepsTermsWithoutDocumentsOutOfTheRowsOfOthers(t *testing.T) {
	m := matrixtest.New(t, simmatrix.Meta{}, surfaceWords())
	got, counts, err := Project(m, ProjectOptions{IndexTerms: analysis(), DocFreqs: map[string]uint32{"car": 7, "tram": 2}})
	check.OK(t, err)
	row := matrixtest.Of(got.Row("car"))
	check.That(t, len(row) == 1 && row[0].Term == "tram", "row of car: %v", row)
	row = matrixtest.Of(got.Row("bu"))
	check.That(t, len(row) == 1 && row[0].Term == "car" && counts.Unused == 2, "row of bu: %v, %d unused", row, counts.Unused)
	unknown, counts, err := Project(m, ProjectOptions{IndexTerms: analysis()})
	check.OK(t, err)
	all := unknown.Row("car")
	check.That(t, all.Len() == 3 && all.DocFreq() == 0 && counts.Unused == 0, "without document frequencies: %v, %d unused", matrixtest.Of(all), counts.Unused)
}

func TestProjectKeepsExpressionsOutOfRowsBelowTheirLeastSimilarity(t *testing.T) {
	m := matrixtest.New(t, simmatrix.Meta{}, surfaceWords())
	got, _, err := Project(m, ProjectOptions{IndexTerms: analysis(), MinExpression: 0.6})
	check.OK(t, err)
	check.Equal(t, []string{"bu", "tram"}, neighborsOf(got, "car"))
	check.Equal(t, []string{"car"}, neighborsOf(got, "\x1ft\x1fshirt"))
}

func TestProjectTakesAllTermsOfAWordButNotThoseThatTheOtherWordHasToo(t *testing.T) {
	m := matrixtest.New(t, simmatrix.Meta{}, []simmatrix.TermRow{
		{Term: "cab", Neighbors: []simmatrix.Neighbor{{Term: "cars", Similarity: 1}}},
		{Term: "car", Neighbors: []simmatrix.Neighbor{{Term: "cars", Similarity: 1}}},
		{Term: "cars", Neighbors: []simmatrix.Neighbor{{Term: "cab", Similarity: 1}, {Term: "car", Similarity: 1}}},
	})
	got, _, err := Project(m, ProjectOptions{IndexTerms: map[string][]string{"cab": {"cab"}, "car": {"car"}, "cars": {"cars", "car"}}})
	check.OK(t, err)
	check.Equal(t, []string{"car", "cars"}, neighborsOf(got, "cab"))
	check.Equal(t, []string{"cab"}, neighborsOf(got, "car"))
	check.Equal(t, []string{"cab", "car"}, neighborsOf(got, "cars"))
}

// Words may be spelled like those of expressions.
func TestProjectHasTheTermsOfExpressionsThatDocumentsHave(t *testing.T) {
	m := matrixtest.New(t, simmatrix.Meta{}, surfaceWords())
	got, counts, err := Project(m, ProjectOptions{IndexTerms: analysis(), DocFreqs: map[string]uint32{"car": 7, "shirt": 3}})
	check.OK(t, err)
	shirt := got.Row("shirt")
	check.That(t, shirt.DocFreq() == 3 && shirt.Len() == 0 && !got.Has("t"), "shirt in %d documents, %d neighbors", shirt.DocFreq(), shirt.Len())
	check.That(t, counts.Terms == 3 && counts.Expressions == 1, "%+v", counts)
}

func neighborsOf(m *simmatrix.Matrix, term string) (neighbors []string) {
	for n := range m.Row(term).All() {
		neighbors = append(neighbors, n.Term)
	}
	slices.Sort(neighbors)
	return neighbors
}

func TestProjectRefusesTermsThatCannotHaveARow(t *testing.T) {
	m := matrixtest.New(t, simmatrix.Meta{}, surfaceWords())
	for _, bad := range []string{"", "\xff", strings.Repeat("a", simmatrix.MaxTermBytes+1)} {
		_, _, err := Project(m, ProjectOptions{IndexTerms: map[string][]string{"car": {bad}}})
		check.Error(t, simmatrix.ErrInvalid, err, bad)
	}
}

// FuzzProject checks random projections against the definition: every s_tu is
// the maximum over all pairs of words, and comes from all they come from.
func FuzzProject(f *testing.F) {
	for seed := range uint64(50) {
		f.Add(seed, uint8(seed))
	}
	f.Fuzz(func(t *testing.T, seed uint64, words uint8) {
		random := rand.New(rand.NewPCG(seed, 4))
		m := matrixtest.Random(t, random, 2+int(words)%25)
		indexTerms, docFreqs := map[string][]string{}, map[string]uint32(nil)
		for w := range m.Terms() {
			for range max(0, random.IntN(10)-7) + min(1, random.IntN(10)) { // mostly one
				if term := "i" + strconv.Itoa(random.IntN(8)); !slices.Contains(indexTerms[w], term) {
					indexTerms[w] = append(indexTerms[w], term)
				}
			}
		}
		if random.IntN(2) == 0 {
			docFreqs = map[string]uint32{"i1": 3, "i2": 0, "i3": 9, "i5": 1, "i7": 2}
		}
		got, counts, err := Project(m, ProjectOptions{IndexTerms: indexTerms, DocFreqs: docFreqs, Docs: 10})
		check.OK(t, err)
		if counts.Words != m.Len() || counts.Terms != got.Len() || counts.Expressions != 0 {
			t.Fatalf("counts %+v of %d words, %d terms", counts, m.Len(), got.Len())
		}
		checkProjection(t, m, got, indexTerms, docFreqs)
	})
}

func checkProjection(t *testing.T, m, got *simmatrix.Matrix, indexTerms map[string][]string, docFreqs map[string]uint32) {
	t.Helper()
	best := map[string]map[string]simmatrix.Neighbor{}
	for w, row := range m.Rows() {
		for n := range row.All() {
			for _, from := range indexTerms[w] {
				for _, to := range indexTerms[n.Term] {
					if slices.Contains(indexTerms[n.Term], from) || docFreqs != nil && docFreqs[to] == 0 {
						continue
					}
					if best[from] == nil {
						best[from] = map[string]simmatrix.Neighbor{}
					}
					u := best[from][to]
					best[from][to] = simmatrix.Neighbor{
						Term: to, DocFreq: docFreqs[to],
						Similarity: max(u.Similarity, n.Similarity), Origins: u.Origins | n.Origins,
					}
				}
			}
		}
	}
	most := 1
	for _, terms := range indexTerms {
		most = max(most, len(terms))
	}
	for term, row := range got.Rows() {
		want := min(len(best[term]), most*int(m.Meta().MaxNeighbors))
		check.Must(t, row.Len() == want && row.DocFreq() == docFreqs[term], "%d neighbors of %q, want %d; df %d", row.Len(), term, want, row.DocFreq())
		least := float32(0)
		for n := range row.All() {
			if best[term][n.Term] != n {
				t.Fatalf("s(%s, %s) = %+v, want %+v", term, n.Term, n, best[term][n.Term])
			}
			least = n.Similarity
			delete(best[term], n.Term)
		}
		for u, n := range best[term] { // those cut off
			check.Must(t, n.Similarity <= least, "s(%s, %s) = %v is missing", term, u, n.Similarity)
		}
	}
}
