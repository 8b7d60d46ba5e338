package learn

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/internal/settings"
)

// Settings of the approximate search.
const (
	// exactTerms is the most terms of a corpus, without rare ones, that are all
	// compared with each other. The 67,000 words of seven collections take 22 s of
	// processor time compared with each other and 8 s searched for the share
	// corpusRecall of neighbors; with a model mixed in 42 s and 24 s. The more
	// dimensions, the less they cluster: with 958 it is 84 s and 59 s.
	exactTerms   = 30_000
	corpusRecall = 0.95

	cellsPerRoot   = 2    // cells for each √n
	trainedPerCell = 64   // vectors per cell that the centers are fitted to
	trainingRounds = 8    // of k-means
	recallSample   = 1000 // vectors that the recall is measured with
)

// A cellIndex groups vectors by nearness, like an inverted file: a search looks
// only into the cells with the nearest centers.
type cellIndex struct {
	centers *panels  // with the cells' numbers as ids
	shown   *panels  // the candidates; each cell begins a new panel
	first   []int    // first panel of each cell in shown, and the number of panels
	of      []uint32 // by vector
}

// An approximation is how vectors were searched, and how well.
type approximation struct {
	target        float64
	cells, probes int
	recall        float64
}

// nearestApproximately is nearest among the members of as few cells as find the
// share target of a sample's neighbors. A second sample measures the recall.
func (p *panels) nearestApproximately(ctx context.Context, opts nearestOptions, target float64, progress simmatrix.Progress) (simmatrix.Entries, approximation, error) {
	random := rand.New(rand.NewPCG(1, 1)) //nolint:gosec // has to give the same numbers every time
	drawn := make([]uint32, p.vectors)
	for i := range drawn {
		drawn[i] = uint32(i)
	}
	random.Shuffle(len(drawn), func(i, j int) { drawn[i], drawn[j] = drawn[j], drawn[i] })
	size := min(recallSample, len(drawn))
	one := p.pick(drawn[len(drawn)-size:]) // centers start at the first ones
	other := p.pick(drawn[max(0, len(drawn)-2*size):][:size])

	c, err := newCells(ctx, p, drawn, progress)
	if err != nil {
		return simmatrix.Entries{}, approximation{}, err
	}
	c.gather(p, opts.candidates)
	probes, err := c.probesFor(ctx, one, opts, target)
	if err != nil {
		return simmatrix.Entries{}, approximation{}, err
	}
	order := slices.Clone(p.ids[:p.next]) // by cell: they look into the same ones
	slices.SortFunc(order, func(a, b uint32) int { return cmp.Or(cmp.Compare(c.of[a], c.of[b]), cmp.Compare(a, b)) })
	found, err := p.nearestAmong(ctx, order, opts, func() show { return c.showNearest(probes) },
		simmatrix.NewStage(progress, "neighbors", p.vectors))
	if err != nil {
		return simmatrix.Entries{}, approximation{}, err
	}
	recall, err := c.recall(ctx, other, opts, &found)
	return found, approximation{target: target, cells: c.centers.vectors, probes: probes, recall: recall}, err
}

// describe adds an approximation to the settings of a matrix.
func (a *approximation) describe(params map[string]string) {
	params["approximate"], params["recall"] = settings.FormatFloat(a.target), strconv.FormatFloat(a.recall, 'f', 4, 64)
	params["cells"], params["probes"] = strconv.Itoa(a.cells), strconv.Itoa(a.probes)
}

// newCells fits centers to the first drawn vectors by spherical k-means
// (Dhillon and Modha, 2001) and assigns all vectors of p to cells.
func newCells(ctx context.Context, p *panels, drawn []uint32, progress simmatrix.Progress) (*cellIndex, error) {
	count := min(int(math.Ceil(cellsPerRoot*math.Sqrt(float64(p.vectors)))), p.vectors)
	training := p.pick(drawn[:min(trainedPerCell*count, len(drawn))])
	centers := newPanels(p.dim, count)
	var vector []float32
	for k := range count {
		vector = training.appendVector(vector[:0], k)
		centers.add(uint32(k), vector)
	}
	of := make([]uint32, p.vectors)
	st := simmatrix.NewStage(progress, "cells", trainingRounds+1)
	for range trainingRounds {
		if err := training.assign(ctx, centers, of); err != nil {
			return nil, err
		}
		centers = training.means(centers, of)
		st.Add(1)
	}
	if err := p.assign(ctx, centers, of); err != nil {
		return nil, err
	}
	st.Add(1)
	return &cellIndex{centers: centers, of: of}, nil
}

// assign sets of, by id, to the nearest center of each vector in p.
func (p *panels) assign(ctx context.Context, centers *panels, of []uint32) error {
	return p.search(ctx, nil, 1, lowest, centers.showAll, func(id uint32, best []candidate) { of[id] = best[0].id() }, nil)
}

const lowest = -math.MaxFloat32

// means returns the mean direction of each center's vectors, or the center.
func (p *panels) means(centers *panels, of []uint32) *panels {
	sums := make([]float64, centers.vectors*p.dim)
	var vector []float32
	for place, id := range p.ids[:p.next] {
		vector = p.appendVector(vector[:0], place)
		for d, x := range vector {
			sums[int(of[id])*p.dim+d] += float64(x)
		}
	}
	means := newPanels(p.dim, centers.vectors)
	for k := range centers.vectors {
		vector = centers.appendVector(vector[:0], k)
		sum := sums[k*p.dim : (k+1)*p.dim]
		if slices.ContainsFunc(sum, func(x float64) bool { return x != 0 }) {
			scaleTo(vector, sum, 1)
		}
		means.add(uint32(k), vector)
	}
	return means
}

// gather sets the vectors that are shown to those of p in ids, nil for all.
func (c *cellIndex) gather(p *panels, ids []uint32) {
	if ids == nil {
		ids = p.ids[:p.next]
	}
	cells := make([][]uint32, c.centers.vectors)
	for _, id := range ids {
		cells[c.of[id]] = append(cells[c.of[id]], id)
	}
	panels := 0
	for _, members := range cells {
		c.first = append(c.first, panels)
		panels += (len(members) + tileCols - 1) / tileCols
	}
	c.first = append(c.first, panels)
	c.shown = newPanels(p.dim, panels*tileCols)
	var vector []float32
	for _, members := range cells {
		for _, id := range members {
			vector = p.appendVector(vector[:0], int(id))
			c.shown.add(id, vector)
		}
		c.shown.next = len(c.shown.ids) // the next cell begins a new panel
	}
}

func (c *cellIndex) showNearest(probes int) show {
	guide := newSearcher(c.centers.dim, probes, lowest)
	visitors := make([][]int, c.centers.vectors) // by cell: the vectors of the block that look into it
	return func(s *searcher) {
		guide.follow(s)
		guide.load(guide.all)
		guide.scan(c.centers, 0, c.centers.len())
		for _, i := range s.all {
			for _, center := range guide.best[i].ranked() {
				visitors[center.id()] = append(visitors[center.id()], i)
			}
		}
		for cell, rows := range visitors {
			if len(rows) > 0 {
				s.load(rows)
				s.scan(c.shown, c.first[cell], c.first[cell+1])
				visitors[cell] = rows[:0]
			}
		}
	}
}

// exact returns the true rows of the sample, by their place in it.
func (c *cellIndex) exact(ctx context.Context, sample *panels, opts nearestOptions) ([][]simmatrix.Entry, error) {
	rows := make([][]simmatrix.Entry, sample.vectors)
	at := sample.places()
	err := sample.search(ctx, nil, min(opts.neighbors+1, len(c.of)), 0, c.shown.showAll,
		func(id uint32, best []candidate) { rows[at[id]] = opts.row(id, best) }, nil)
	return rows, err
}

// probesFor returns in how many cells the target share of neighbors is.
func (c *cellIndex) probesFor(ctx context.Context, sample *panels, opts nearestOptions, target float64) (int, error) {
	rows, err := c.exact(ctx, sample, opts)
	if err != nil {
		return 0, err
	}
	ranks := make([][]int, sample.vectors) // of each neighbor's cell
	at := sample.places()
	err = sample.search(ctx, nil, c.centers.vectors, lowest, c.centers.showAll, func(id uint32, best []candidate) {
		rankOf := make([]int, len(best))
		for rank, center := range best {
			rankOf[center.id()] = rank
		}
		for _, e := range rows[at[id]] {
			ranks[at[id]] = append(ranks[at[id]], rankOf[c.of[e.Col]])
		}
	}, nil)
	if err != nil {
		return 0, err
	}
	all := slices.Concat(ranks...)
	if len(all) == 0 {
		return 1, nil
	}
	slices.Sort(all)
	return 1 + all[int(math.Ceil(target*float64(len(all))))-1], nil
}

func (c *cellIndex) recall(ctx context.Context, sample *panels, opts nearestOptions, found *simmatrix.Entries) (float64, error) {
	rows, err := c.exact(ctx, sample, opts)
	if err != nil {
		return 0, err
	}
	hits, total := 0, 0
	foundFor := make([]int, len(c.of)) // by vector: the last row of the sample, from 1, that found it
	for k, row := range rows {
		cols, _ := found.Row(int(sample.ids[k]))
		for _, col := range cols {
			foundFor[col] = k + 1
		}
		for _, e := range row {
			if foundFor[e.Col] == k+1 {
				hits++
			}
		}
		total += len(row)
	}
	if total == 0 {
		return 1, nil
	}
	return float64(hits) / float64(total), nil
}
