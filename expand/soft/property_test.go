package soft

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/softcosine"
)

// A randomCase is a search, its hits, W and S.
type randomCase struct {
	fields  []expand.RerankField
	hits    []expand.Hit
	vectors *fakeVectors
	matrix  *fakeMatrix
	weights *fakeMatrix // nil where W is of the matrix
	similar map[string]map[string]float64
	docFreq map[string]uint32
}

func term(i int) string { return fmt.Sprintf("t%d", i) }

// newCase returns a case of some terms, some of which S does not hold.
func newCase(tb testing.TB, rng *rand.Rand) *randomCase {
	tb.Helper()
	n := 2 + rng.IntN(30)
	c := &randomCase{
		vectors: &fakeVectors{docs: map[docName]map[string]map[string]int64{}},
		matrix:  &fakeMatrix{version: fmt.Sprint("m@", rng.Uint64()), docs: int64(1 + rng.IntN(1000))},
		similar: map[string]map[string]float64{}, docFreq: map[string]uint32{},
	}
	w := c.matrix
	if rng.IntN(2) == 0 {
		c.weights = &fakeMatrix{version: fmt.Sprint("w@", rng.Uint64()), docs: int64(1 + rng.IntN(1000))}
		w = c.weights
	}
	for i := range n {
		row := map[string]float64{}
		for range rng.IntN(12) {
			if k := rng.IntN(n + 3); k != i { // some have no row themselves
				row[term(k)] = float64(simmatrix.QuantizeSimilarity(rng.Float64()))
			}
		}
		docFreq := uint32(rng.IntN(int(w.docs)))
		c.similar[term(i)], c.docFreq[term(i)] = row, docFreq
		if c.weights != nil {
			c.weights.set(tb, term(i), docFreq, nil)
			docFreq = 7 // means nothing
		}
		c.matrix.set(tb, term(i), docFreq, row)
	}
	for f := range 1 + rng.IntN(3) {
		field := expand.RerankField{Field: fmt.Sprint("f", f), Boost: math.Exp(rng.NormFloat64()), Similarities: c.matrix}
		if c.weights != nil {
			field.Weights = c.weights
		}
		for i, x := range someTerms(rng, n+3, 5) {
			field.Terms, field.Freqs = append(field.Terms, i), append(field.Freqs, float64(x)/float64(1+rng.IntN(2)))
		}
		c.fields = append(c.fields, field)
	}
	for k := range 1 + rng.IntN(8) {
		doc := map[string]map[string]int64{}
		for i := range c.fields {
			doc[c.fields[i].Field] = someTerms(rng, n+3, 20)
		}
		c.hits = append(c.hits, expand.Hit{Index: "i", ID: strconv.Itoa(k), SeqNo: int64(k), PrimaryTerm: 1, Version: 1})
		c.vectors.docs[docName{"i", strconv.Itoa(k)}] = doc
	}
	return c
}

// someTerms returns up to most of n terms with frequencies.
func someTerms(rng *rand.Rand, n, most int) map[string]int64 {
	out := map[string]int64{}
	for range rng.IntN(most + 1) {
		out[term(rng.IntN(n))] = int64(1 + rng.IntN(4))
	}
	return out
}

// space returns the one space of the pairs of a field and a term, and the
// number of each.
func (c *randomCase) space(tb testing.TB) (*softcosine.Space, map[string]int32) {
	tb.Helper()
	numbers := map[string]int32{}
	var weights []float64
	w := c.matrix
	if c.weights != nil {
		w = c.weights
	}
	number := func(f *expand.RerankField, t string) int32 {
		name := f.Field + "." + t
		n, ok := numbers[name]
		if !ok {
			n = int32(len(numbers))
			numbers[name] = n
			weights = append(weights, math.Sqrt(f.Boost)*simmatrix.IDF(int64(c.docFreq[t]), w.docs))
		}
		return n
	}
	entries := map[[2]int32]float64{}
	for i := range c.fields {
		f := &c.fields[i]
		for k := range 40 {
			number(f, term(k))
		}
		for t, row := range c.similar {
			for other, s := range row {
				entries[[2]int32{number(f, t), number(f, other)}] = s
			}
		}
	}
	s, err := softcosine.NewSimilarities(len(numbers), maps.All(entries))
	check.OK(tb, err)
	space, err := softcosine.NewSpace(weights, s)
	check.OK(tb, err)
	return space, numbers
}

func TestScoresAreTheSoftCosine(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 1))
	for n := range 1500 {
		c := newCase(t, rng)
		r := New(Options{Vectors: c.vectors, Bytes: 1 << 20, TTL: time.Minute})
		space, numbers := c.space(t)
		x := map[int32]float64{}
		for i := range c.fields {
			for k, text := range c.fields[i].Terms {
				x[numbers[c.fields[i].Field+"."+text]] = c.fields[i].Freqs[k]
			}
		}
		some := c.hits[:1+rng.IntN(len(c.hits))]
		for turn, hits := range [][]expand.Hit{some, c.hits, c.hits} { // cold, partly, and warm
			got, err := r.Scores(t.Context(), by(c.fields), hits)
			check.OK(t, err)
			for k, hit := range hits {
				y := map[int32]float64{}
				for field, terms := range c.vectors.docs[docName{"i", hit.ID}] {
					for text, freq := range terms {
						y[numbers[field+"."+text]] = float64(freq)
					}
				}
				want, err := space.Soft(softcosine.NewVector(x), softcosine.NewVector(y))
				check.OK(t, err)
				check.Must(t, math.Abs(got[k].Soft-want) <= 1e-9 && !math.IsNaN(got[k].Soft), "case %d, turn %d: hit %s has %+v, want %v", n, turn, hit.ID, got[k], want)
			}
		}
		r.Close()
	}
}
