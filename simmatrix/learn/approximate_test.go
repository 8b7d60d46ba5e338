package learn

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/simmatrix"
)

// clusteredVectors returns vectors of length 1 around topics, which are around
// fewer themes, with a direction that all share: roughly what word vectors
// look like.
func clusteredVectors(random *rand.Rand, rows, dim int) *vectorTable {
	draw := func(share float64, around []float64) []float64 {
		v := make([]float64, dim)
		for d := range v {
			v[d] = share * random.NormFloat64() / math.Sqrt(float64(d+1)) // the first dimensions matter most
			if around != nil {
				v[d] += around[d]
			}
		}
		return v
	}
	themes := make([][]float64, 4+rows/500)
	all := draw(0.3, nil)
	for k := range themes {
		themes[k] = draw(0.8, all)
	}
	topics := make([][]float64, 4+rows/20)
	for k := range topics {
		topics[k] = draw(1, themes[random.IntN(len(themes))])
	}
	t := &vectorTable{rows: rows, dim: dim, values: make([]float32, rows*dim)}
	for i := range rows {
		scaleTo(t.row(i), draw(1, topics[random.IntN(len(topics))]), 1)
	}
	return t
}

// asPanels returns the vectors with their rows as ids.
func (t *vectorTable) asPanels() *panels {
	p := newPanels(t.dim, t.rows)
	for i := range t.rows {
		p.add(uint32(i), t.row(i))
	}
	return p
}

// shareFound returns the share of the entries of want that are in got, and
// fails where a pair of both has another similarity in got.
func shareFound(t *testing.T, want, got *simmatrix.Entries) float64 {
	t.Helper()
	hits := 0
	for i := range len(want.Offsets) - 1 {
		sims := map[uint32]uint16{}
		cols, s := got.Row(i)
		for k, col := range cols {
			sims[col] = s[k]
		}
		check.Must(t, len(sims) == len(cols), "row %d has a neighbor twice: %v", i, cols)
		cols, s = want.Row(i)
		for k, col := range cols {
			if sim, ok := sims[col]; ok {
				hits++
				if sim != s[k] {
					t.Fatalf("row %d, neighbor %d: %d units, exact %d", i, col, sim, s[k])
				}
			}
		}
	}
	return float64(hits) / float64(len(want.Cols))
}

func TestMeasuredRecallIsTheRecall(t *testing.T) {
	random := rand.New(rand.NewPCG(21, 1))
	opts := nearestOptions{neighbors: 20, power: 1}
	for _, tt := range []struct {
		name      string
		table     *vectorTable
		target    float64
		tolerance float64 // of the measured recall
		fewer     float64 // share of the cells that suffices
	}{
		// Up to 1,000 vectors the sample is all of them.
		{"clusters, all in the sample", clusteredVectors(random, recallSample, 24), 0.9, 0.00005, 0.5},
		{"clusters, all in the sample, low target", clusteredVectors(random, recallSample, 24), 0.5, 0.00005, 0.2},
		{"noise, all in the sample", unitVectors(random, 700, 24), 0.9, 0.00005, 1},
		{"clusters", clusteredVectors(random, 6000, 24), 0.9, 0.02, 0.3},
		{"clusters, high target", clusteredVectors(random, 6000, 24), 0.99, 0.01, 0.7},
		{"noise", unitVectors(random, 4000, 24), 0.9, 0.02, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := tt.table.asPanels()
			want := exactly(t, p, opts)
			got, how, err := p.nearestApproximately(t.Context(), opts, tt.target, nil)
			check.OK(t, err)
			recall := shareFound(t, &want, &got)
			check.That(t, math.Abs(how.recall-recall) <= tt.tolerance, "measured recall %v, true recall %v", how.recall, recall)
			check.That(t, recall >= tt.target-0.02, "recall %v, target %v", recall, tt.target)
			check.That(t, float64(how.probes) <= tt.fewer*float64(how.cells), "%d of %d cells probed", how.probes, how.cells)
		})
	}
}

// The probes are the fewest that reach the target on one sample, so measured
// with that sample the recall would never be below it.
func TestRecallIsMeasuredWithOtherVectorsThanTheProbesAreChosenWith(t *testing.T) {
	p := clusteredVectors(rand.New(rand.NewPCG(22, 2)), 3*recallSample, 12).asPanels()
	for target := 0.8; target < 1; target += 0.01 {
		_, how, err := p.nearestApproximately(t.Context(), nearestOptions{neighbors: 10, power: 1}, target, nil)
		check.OK(t, err)
		if how.recall < target {
			return
		}
	}
	t.Error("the target was always reached")
}

// exactly returns what a search of all pairs finds.
func exactly(tb testing.TB, p *panels, opts nearestOptions) simmatrix.Entries {
	tb.Helper()
	return check.Got(p.nearest(tb.Context(), opts, nil))(tb)
}

func TestACellWithoutVectorsKeepsItsCenter(t *testing.T) {
	p := unitVectors(rand.New(rand.NewPCG(26, 1)), 5, 3).asPanels()
	centers := p.pick([]uint32{3, 4})
	means := p.means(centers, []uint32{0, 0, 0, 0, 0})
	check.Equal(t, p.appendVector(nil, 4), means.appendVector(nil, 1), "center")
}

func TestApproximateSearchOfDegenerateVectors(t *testing.T) {
	same := &vectorTable{rows: 100, dim: 4, values: make([]float32, 400)}
	for i := range same.values {
		same.values[i] = 0.5
	}
	for _, tt := range []struct {
		name      string
		table     *vectorTable
		neighbors int // of every row
	}{
		{"one vector", unitVectors(rand.New(rand.NewPCG(1, 1)), 1, 3), 0},
		{"zeros", &vectorTable{rows: 100, dim: 3, values: make([]float32, 300)}, 0},
		{"all the same", same, 7},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, how, err := tt.table.asPanels().nearestApproximately(t.Context(), nearestOptions{neighbors: 7, power: 1}, 0.9, nil)
			check.OK(t, err)
			for i := range tt.table.rows {
				cols, _ := got.Row(i)
				check.That(t, len(cols) == tt.neighbors, "row %d: %v", i, cols)
			}
			check.That(t, how.probes >= 1 && how.probes <= how.cells && how.recall >= 0 && how.recall <= 1, "%+v", how)
		})
	}
}

func TestApproximateSearchIsTheSameOnAnyNumberOfProcessors(t *testing.T) {
	p := clusteredVectors(rand.New(rand.NewPCG(27, 1)), 2500, 12).asPanels()
	var first simmatrix.Entries
	var firstHow approximation
	for _, processors := range []int{1, 3} {
		old := runtime.GOMAXPROCS(processors)
		got, how, err := p.nearestApproximately(t.Context(), nearestOptions{neighbors: 9, power: 2}, 0.8, nil)
		runtime.GOMAXPROCS(old)
		check.OK(t, err)
		if processors == 1 {
			first, firstHow = got, how
		}
		diff := gocmp.Diff(first, got, gocmp.AllowUnexported(simmatrix.Entries{}))
		check.That(t, diff == "" && how == firstHow, "%d processors: %+v, %+v, %s", processors, firstHow, how, diff)
	}
}

func TestApproximateSearchHeedsTheContext(t *testing.T) {
	p := clusteredVectors(rand.New(rand.NewPCG(28, 1)), 3000, 8).asPanels()
	for _, stop := range []string{"cells", "neighbors"} {
		ctx, cancel := context.WithCancel(t.Context())
		var stages []string
		_, _, err := p.nearestApproximately(ctx, nearestOptions{neighbors: 5, power: 1}, 0.9, func(stage string, done, total int) {
			if !slices.Contains(stages, stage) {
				stages = append(stages, stage)
			}
			if stage == stop && done > 0 && done < total {
				cancel()
			}
		})
		check.That(t, errors.Is(err, context.Canceled) && stages[len(stages)-1] == stop, "%v in %v", err, stages)
		cancel()
	}
}

// namedVectors is a vectorSet.
type namedVectors struct {
	vectorTable
	words []string
}

func (v *namedVectors) Words() []string        { return v.words }
func (v *namedVectors) Dim() int               { return v.dim }
func (v *namedVectors) Vector(k int) []float32 { return v.row(k) }

func TestFromVectorsReportsTheRecallOfAnApproximateSearch(t *testing.T) {
	table := clusteredVectors(rand.New(rand.NewPCG(29, 1)), 2000, 10)
	v := &namedVectors{vectorTable: *table}
	for i := range table.rows {
		v.words = append(v.words, fmt.Sprintf("word%04d", i))
	}
	opts := VectorOptions{Neighbors: 10, Power: 2, Recall: 0.9}
	approximate, err := FromVectors(t.Context(), v, opts, nil)
	check.OK(t, err)
	opts.Recall = 0
	exact, err := FromVectors(t.Context(), v, opts, nil)
	check.OK(t, err)
	params := approximate.Meta().Params
	recall, err := strconv.ParseFloat(params["recall"], 64)
	found := shareFound(t, &exact.Table().Entries, &approximate.Table().Entries)
	check.That(t, err == nil && math.Abs(recall-found) <= 0.03, "recall %q, true recall %v", params["recall"], found)
	if params["approximate"] != "0.9" || params["cells"] != "90" { // ⌈2·√2000⌉
		t.Errorf("%v", params)
	}
	if probes, err := strconv.Atoi(params["probes"]); err != nil || probes < 1 || probes > 90 {
		t.Errorf("probes %q", params["probes"])
	}
	for _, name := range []string{"approximate", "recall", "cells", "probes"} {
		value, ok := exact.Meta().Params[name]
		check.That(t, !ok, "the exact search says %s: %s", name, value)
	}
	for _, bad := range []float64{-0.1, 1, math.NaN()} {
		opts.Recall = bad
		check.Message(t, "recall: ", check.ErrOf(FromVectors(t.Context(), v, opts, nil)), bad)
	}
}

func TestManyTermsAreSearchedApproximately(t *testing.T) {
	for words, approximate := range map[int]bool{exactTerms - 1: false, exactTerms + 1: true} {
		random := rand.New(rand.NewPCG(3, 1))
		c := newCorpus()
		for word := range words { // a document of each and some others
			doc := []string{fmt.Sprintf("w%d", word)}
			for range 3 {
				doc = append(doc, fmt.Sprintf("w%d", random.IntN(words)))
			}
			c.addDocument(doc)
		}
		o := DefaultCorpusOptions()
		o.MinDocFreq, o.Dimensions, o.Neighbors = 1, 4, 10
		m := mustLearn(t, c, o)
		recall, told := m.Meta().Params["recall"]
		check.Equal(t, approximate, told, words)
		if told {
			share, err := strconv.ParseFloat(recall, 64)
			check.That(t, err == nil && share > 0.9 && share <= 1, "recall %q", recall)
		}
	}
}
