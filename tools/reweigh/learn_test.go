package reweigh

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/e2e/matrixtest"
	"github.com/akin-search/akin/simmatrix"
)

var testOptions = Options{Strength: 0.25, Added: 30, MaxShare: 0.5, Unit: "click"}

// topics returns a collection of topics, searches for them, and S. Documents of
// topic k that are useful have good<k>, which S knows, and new<k>, which it does
// not; others have misleading, which S takes for a neighbor of each topic.
// useful says whether opinions follow that.
func topics(tb testing.TB, useful func(good bool) bool) (*Collection, []Search, *simmatrix.Matrix) {
	tb.Helper()
	const n, each = 12, 10
	c := NewCollection()
	var searches []Search
	rows := []simmatrix.TermRow{{Term: "misleading", DocFreq: n * each}}
	for k := range n {
		topic, good, fresh := fmt.Sprintf("topic%02d", k), fmt.Sprintf("good%02d", k), fmt.Sprintf("new%02d", k)
		rows = append(rows, simmatrix.TermRow{Term: good, DocFreq: each}, simmatrix.TermRow{Term: fresh, DocFreq: each},
			simmatrix.TermRow{Term: topic, DocFreq: each, Form: topic + "s", Neighbors: []simmatrix.Neighbor{{Term: "misleading", Similarity: 0.42}, {Term: good, Similarity: 0.4}}})
		opinions := map[string]Opinion{}
		for d := range each {
			for i, terms := range [][]string{{good, fresh}, {"misleading"}} {
				id := fmt.Sprintf("%s-%d-%d", topic, d, i)
				check.OK(tb, c.Add(id, [][]string{terms, slices.Repeat([]string{"filler"}, (7*d+3*i+k)%6), {topic}}))
				if useful(i == 0) && d < each/2 { // of the others nobody has an opinion
					opinions[id] = Opinion{Gain: 1, Count: 3}
				}
			}
		}
		for range 4 { // as many users, one of which each fold has
			searches = append(searches, Search{Terms: []string{topic}, Documents: opinions})
		}
	}
	return c, searches, matrixtest.New(tb, simmatrix.Meta{Source: "by hand", Docs: 2 * n * each}, rows)
}

func TestMisleadingNeighborsAreLoweredAndNewOnesFound(t *testing.T) {
	c, searches, m := topics(t, func(good bool) bool { return good })
	r := check.Got(Learn(t.Context(), m, c, searches, testOptions, nil))(t)
	found := map[string]simmatrix.Neighbor{}
	for n := range r.Matrix.Row("topic03").All() {
		found[n.Term] = n
	}
	origins := r.Matrix.Meta().Origins
	s := found["misleading"].Similarity
	check.That(t, s < 0.42, "misleading: similarity %v, want less than 0.42", s)
	s = found["good03"].Similarity
	check.That(t, s >= 0.4, "good: similarity %v, want 0.4 or more", s)
	if n := found["new03"]; n.Similarity == 0 || !cmp.Equal(describe(origins, n), []string{"learned: 60 clicks"}) { // 4 searches, 5 documents, 3 clicks
		t.Errorf("new: %+v from %q", n, describe(origins, n))
	}
	check.Equal(t, "topic03s", r.Matrix.Form("topic03"))
	check.That(t, r.After > r.Before && r.New == 12 && r.Scaled != 0, "%+v", r)
}

// describe returns what an entry comes from.
func describe(origins []string, n simmatrix.Neighbor) []string {
	var names []string
	for k, name := range origins {
		if n.Origins>>k&1 == 1 {
			names = append(names, name)
		}
	}
	return simmatrix.DescribeOrigins(names)
}

func TestWithoutEvidenceTheMatrixStays(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	c, searches, m := topics(t, func(bool) bool { return random.IntN(2) == 0 })
	for i := range searches { // what one user finds useful tells nothing of the next
		opinions := map[string]Opinion{}
		for range 3 {
			opinions[fmt.Sprintf("topic%02d-%d-%d", random.IntN(12), random.IntN(10), random.IntN(2))] = Opinion{1, 1}
		}
		searches[i].Documents = opinions
	}
	for name, searches := range map[string][]Search{"chance": searches, "none": nil, "unknown documents": {{Terms: []string{"topic01"}, Documents: map[string]Opinion{"?": {1, 1}}}}} {
		t.Run(name, func(t *testing.T) {
			other := *c
			other.docs = slices.Clone(c.docs)
			for d := range other.docs {
				other.docs[d] = slices.Clone(c.docs[d])
			}
			r, err := Learn(t.Context(), m, &other, searches, testOptions, nil)
			check.That(t, err == nil && r.Matrix == m, "%+v, %v", r, err)
		})
	}
}

func TestOverridesStayAsTheyAre(t *testing.T) {
	c, searches, plain := topics(t, func(good bool) bool { return good })
	var rows []simmatrix.TermRow
	for term, row := range plain.Rows() {
		changed := simmatrix.TermRow{Term: term, DocFreq: row.DocFreq()}
		for n := range row.All() {
			n.Origins = 1
			if term == "topic03" {
				n.Origins = 2
			}
			changed.Neighbors = append(changed.Neighbors, n)
		}
		rows = append(rows, changed)
	}
	m := matrixtest.New(t, simmatrix.Meta{Origins: []string{"index", simmatrix.OriginOverrides}}, rows)
	r := check.Got(Learn(t.Context(), m, c, searches, testOptions, nil))(t)
	for n := range r.Matrix.Row("topic03").All() {
		check.That(t, n.Term != "misleading" || n.Similarity == simmatrix.QuantizeSimilarity(0.42), "%+v", n)
	}
	check.That(t, r.Scaled != 0, "nothing else was learned")
}

func TestAMatrixWithAllOriginsIsRefused(t *testing.T) {
	c, searches, _ := topics(t, func(good bool) bool { return good })
	m := matrixtest.New(t, simmatrix.Meta{Origins: []string{"a", "b", "c", "d", "e", "f", "g", "h"}}, nil)
	check.That(t, check.ErrOf(Learn(t.Context(), m, c, searches, testOptions, nil)) != nil, "no error")
}

// TestLogLikelihoodRatio has the bigram "the swiss" of Dunning's table 1, which
// he gives 270.72.
func TestLogLikelihoodRatio(t *testing.T) {
	c := cell{useful: 110, others: 2442}
	all := cell{useful: 110 + 111, others: 2442 + 29114}
	got := c.ratio(&all)
	check.That(t, math.Abs(got-270.72) <= 0.01, "%.2f", got)
}

func TestSlopesAreDerivatives(t *testing.T) {
	c, searches, m := topics(t, func(good bool) bool { return good })
	c.finish()
	l := &learner{Collection: c, matrix: m, options: testOptions}
	s := newScorer(c, testOptions.Strength)
	p := l.prepare(searches[0], s)
	loss := func(model *model) (sum float64) {
		scores, _ := s.scores(p.origins, l.choose(p, model), p.ranked)
		for a := range p.ranked {
			for b := range p.ranked {
				if d := p.ranked[a].gain - p.ranked[b].gain; d > 0 {
					sum += d * math.Log1p(math.Exp(scores[b]-scores[a])) / p.ideal
				}
			}
		}
		return sum
	}
	model := &model{factors: make([]float64, len(c.terms))}
	for _, g := range l.slopes(p, model, s) {
		const step = 1e-5
		model.factors[g.term] = step
		up := loss(model)
		model.factors[g.term] = -step
		down := loss(model)
		model.factors[g.term] = 0
		want := (down - up) / (2 * step)
		check.That(t, math.Abs(g.by-want) <= 1e-4*math.Abs(want) && want != 0, "%s: %v, want %v", c.terms[g.term], g.by, want)
	}
}

func TestEvidenceAddsUp(t *testing.T) {
	all, bits := evidence([]string{"index"}, "click")
	for count, want := range map[int]string{1: "learned: 1 click", 31: "learned: 31 clicks", 127: "learned: 127 clicks", 5000: "learned: 127 clicks"} {
		var names []string
		for k, name := range all {
			if bits(count)>>(1+k)&1 == 1 {
				names = append(names, name)
			}
		}
		got := simmatrix.DescribeOrigins(names)
		check.That(t, cmp.Equal(got, []string{want}), "%d: %q, want %q", count, got, want)
	}
}

// FuzzLearnedMatrices checks that similarities at most double, and that whatever
// is learned makes a matrix.
func FuzzLearnedMatrices(f *testing.F) {
	f.Add(uint64(1), uint8(20), uint8(12))
	f.Fuzz(func(t *testing.T, seed uint64, docs, queries uint8) {
		random := rand.New(rand.NewPCG(seed, 0))
		m := matrixtest.Random(t, random, 30)
		terms := slices.Collect(m.Terms())
		draw := func(n int) (drawn []string) {
			for range n {
				drawn = append(drawn, terms[random.IntN(len(terms))])
			}
			return drawn
		}
		c := NewCollection()
		for d := range docs {
			check.OK(t, c.Add(strconv.Itoa(int(d)), [][]string{draw(8), {fmt.Sprintf("rare%d", d/3)}}))
		}
		var searches []Search
		for q := range queries {
			s := Search{Terms: append(draw(2), fmt.Sprintf("rare%d", q%4)), Documents: map[string]Opinion{}}
			for range 4 {
				s.Documents[strconv.Itoa(random.IntN(int(docs)+1))] = Opinion{random.Float64(), 1}
			}
			searches = append(searches, s)
		}
		r, err := Learn(t.Context(), m, c, searches, testOptions, nil)
		if err != nil {
			t.Skip(err) // it has all origins
		}
		for term, row := range r.Matrix.Rows() {
			before := map[string]float32{}
			for n := range m.Row(term).All() {
				before[n.Term] = n.Similarity
			}
			for n := range row.All() {
				s, ok := before[n.Term]
				check.That(t, !ok || n.Similarity <= 2*s+1e-4, "%s %s: %v, before %v", term, n.Term, n.Similarity, s)
			}
		}
	})
}

// TestLengthsAreThoseOfTheEngine has lengths by Lucene's SmallFloat.
func TestLengthsAreThoseOfTheEngine(t *testing.T) {
	for n, want := range map[float64]float64{0: 0, 23: 23, 24: 24, 39: 39, 40: 40, 41: 40, 42: 42, 55: 54, 56: 56, 59: 56, 100: 96, 1000: 984} {
		check.Equal(t, want, storedLength(n), n)
	}
}
