package combine

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/akin-search/akin/simmatrix"
)

// WeighCounts are what became of the entries of a thesaurus in [Weigh].
type WeighCounts struct {
	Exact   int      // kept as they were
	Kept    int      // similarities of the index
	Dropped int      // the index does not use both sides alike
	Lost    []string // the first three pairs dropped, as people read them
}

const (
	// weighedCosine is how alike both sides of an entry with an expression must be
	// in the index, and weighedSimilarity what the entry then counts.
	weighedCosine, weighedSimilarity = 0.4, 0.5
	lostExamples                     = 3
)

// Weigh gives the entries of a thesaurus, over index terms, the similarity that
// the documents of docs give them, and drops those that have none: a thesaurus
// knows all senses of a word, an index has few. Exact entries stay. An entry of
// two words gets the similarity in docs. One with an expression counts 0.5 if
// its sides have a soft cosine of 0.4 or more,
//
//	Σ_ij w_i w_j c_ij / √(Σ_ii' w_i w_i' c_ii' · Σ_jj' w_j w_j' c_jj'),  w = idf, c = s^(1/p)
//
// over the words of each, or if a word of its source is in no document.
func Weigh(thesaurus, docs *simmatrix.Matrix) (*simmatrix.Matrix, WeighCounts, error) {
	t := thesaurus.Table()
	var counts WeighCounts
	g := newWeigher(docs)
	out := &simmatrix.Table{Meta: t.Meta, Terms: t.Terms, DocFreqs: t.DocFreqs, Forms: t.Forms, Entries: simmatrix.NewEntries(len(t.Terms), len(t.Cols), t.Origins != nil)}
	out.Meta.Params = maps.Clone(t.Meta.Params)
	if out.Meta.Params == nil {
		out.Meta.Params = map[string]string{}
	}
	out.Meta.Params["weigh_by"] = docs.Checksum()[:16]
	var row []simmatrix.Entry
	for i, term := range t.Terms {
		row = row[:0]
		cols, sims := t.Row(i)
		for k, col := range cols {
			e := simmatrix.Entry{Col: col, Units: sims[k], Origins: t.OriginsAt(i, k)}
			if e.Units == simmatrix.UnitsOfOne {
				counts.Exact++
			} else if s := g.similarity(term, t.Terms[col]); s > 0 {
				counts.Kept++
				e.Units = simmatrix.ToUnits(s)
			} else {
				counts.Dropped++
				if len(counts.Lost) < lostExamples {
					counts.Lost = append(counts.Lost, t.Written(term)+" – "+t.Written(t.Terms[col]))
				}
				continue
			}
			row = append(row, e)
		}
		out.AppendRow(row)
	}
	m, err := out.Matrix()
	if err != nil {
		return nil, counts, fmt.Errorf("weigh a thesaurus: %w", err)
	}
	return m, counts, nil
}

type weigher struct {
	docs    *simmatrix.Matrix
	power   float64
	docFreq func(word string) uint32
}

func newWeigher(docs *simmatrix.Matrix) *weigher {
	return &weigher{docs: docs, power: docs.Table().Meta.Power(), docFreq: func(word string) uint32 { return docs.Row(word).DocFreq() }}
}

// similarity returns that of an entry, 0 to drop it.
func (g *weigher) similarity(term, neighbor string) float64 {
	a, b := slices.Collect(simmatrix.WordsOf(term)), slices.Collect(simmatrix.WordsOf(neighbor))
	if len(a) == 1 && len(b) == 1 {
		return g.stored(term, neighbor)
	}
	absent := slices.ContainsFunc(a, func(word string) bool { return g.docFreq(word) == 0 })
	if len(a) > 1 && absent || g.cosine(a, b) >= weighedCosine {
		return weighedSimilarity
	}
	return 0
}

// stored returns s_ij in docs, of both directions the larger.
func (g *weigher) stored(a, b string) (s float64) {
	for _, pair := range [][2]string{{a, b}, {b, a}} {
		for n := range g.docs.Row(pair[0]).All() {
			if n.Term == pair[1] {
				s = max(s, float64(n.Similarity))
			}
		}
	}
	return s
}

func (g *weigher) cosine(a, b []string) float64 {
	return g.product(a, b) / math.Sqrt(max(g.product(a, a)*g.product(b, b), math.SmallestNonzeroFloat64))
}

func (g *weigher) product(a, b []string) (sum float64) {
	n := int64(g.docs.Table().Meta.Docs) //nolint:gosec // a number of documents
	for _, x := range a {
		for _, y := range b {
			c := 1.0
			if x != y {
				c = math.Pow(g.stored(x, y), 1/g.power)
			}
			sum += c * simmatrix.IDF(int64(g.docFreq(x)), n) * simmatrix.IDF(int64(g.docFreq(y)), n)
		}
	}
	return sum
}
