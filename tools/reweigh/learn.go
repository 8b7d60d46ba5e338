// Package reweigh learns which entries of a matrix help to rank and which
// mislead, from searches and from what users or judges thought of their
// documents.
//
// It changes S in two ways. First, it scales the entries that lead to a term j
// by a factor in [0, 2],
//
//	s'_ij = f_j s_ij
//
// that lowers the logistic loss of all pairs of a better and a worse document
// of a search, with an L2 penalty towards 1. The factor depends only on j: with
// few judgments a pair i, j seldom occurs twice, but a misleading j occurs with
// many i. Second, terms of searches get new neighbors: terms of useful
// documents. Searches that it did not learn from decide which changes to keep.
//
// Users look at the first hits more often than at later ones, so a click on a
// later hit means more (clicks.go). How often users look at a rank is its
// propensity, 1 for the first. Clicks are weighted by the inverse (Joachims,
// Swaminathan and Schnabel, Unbiased Learning-to-Rank with Biased Feedback,
// 2017).
package reweigh

import (
	"context"
	"errors"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/akin-search/akin/simmatrix"
)

// A Result is what was learned.
type Result struct {
	// Matrix is the given one if nothing was learned.
	Matrix *simmatrix.Matrix
	// Searches is how many searches were used. The others have no terms, or no
	// useful document in the collection.
	Searches int
	Changes

	// Before and After are the mean nDCG@10 of the searches when they were held
	// out, a quarter at a time.
	Before, After float64
}

// The settings of learning, the same for all collections that they were tested
// on.
const (
	folds     = 4    // one is held out at a time
	maxEpochs = 12   // steps of gradient descent; held-out searches choose how many
	rate      = 0.01 // step size
	pull      = 0.1  // L2: how much of a factor's distance from 1 is removed, times rate
	// minDocuments is the smallest number of documents to learn a factor from.
	minDocuments = 5
)

func scales() []float64 { return []float64{0, 0.3, 0.6, 1.2} }

// Learn returns m improved for searches of a collection, which must not be used
// again. The same searches in the same order give the same bytes. It returns an
// error if ctx ends, or if m already has the largest number of origins.
func Learn(ctx context.Context, m *simmatrix.Matrix, c *Collection, searches []Search, o Options, progress simmatrix.Progress) (*Result, error) {
	if len(m.Table().Meta.Origins) == simmatrix.MaxOrigins {
		return nil, errors.New("the matrix already has the largest number of origins: learning would add one")
	}
	c.finish()
	l := &learner{Collection: c, matrix: m, options: o, hasRow: make([]bool, len(c.terms))}
	for term := range m.Terms() {
		if i, ok := c.ids[term]; ok {
			l.hasRow[i] = true
		}
	}
	all := make([]*search, len(searches))
	err := l.each(ctx, len(searches), simmatrix.NewStage(progress, "ranking", len(searches)), func(i int, s *scorer) { all[i] = l.prepare(searches[i], s) })
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(s *search) bool { return s == nil })
	result := &Result{Matrix: m, Searches: len(all)}
	if len(all) < folds {
		return result, nil
	}
	learned, err := l.learn(ctx, all, result, progress)
	if err != nil || learned == nil {
		return result, err
	}
	result.Matrix, result.Changes, err = l.apply(learned, len(all))
	return result, err
}

func (l *learner) learn(ctx context.Context, all []*search, result *Result, progress simmatrix.Progress) (*model, error) {
	epochs, tried := trials{}, trials{}
	stage := simmatrix.NewStage(progress, "learning", 2*folds+1)
	for f := range folds {
		rest, held := split(all, f)
		_, err := l.fit(ctx, rest, maxEpochs, func(epoch int, m *model) error { return l.try(ctx, &epochs, epoch, held, m) })
		if err != nil {
			return nil, err
		}
		stage.Add(1)
	}
	steps := epochs.best()
	for f := range folds {
		rest, held := split(all, f)
		m, err := l.fit(ctx, rest, steps, nil)
		if err != nil {
			return nil, err
		}
		if m.pairs, err = l.propose(ctx, rest); err != nil {
			return nil, err
		}
		for k, scale := range scales() {
			m.scale = scale
			if err := l.try(ctx, &tried, k, held, m); err != nil {
				return nil, err
			}
		}
		stage.Add(1)
	}
	scale := tried.best()
	result.Before, result.After = stat.Mean(epochs[0], nil), stat.Mean(tried[scale], nil)
	if steps == 0 && scale == 0 {
		return nil, nil
	}
	m, err := l.fit(ctx, all, steps, nil)
	if err != nil {
		return nil, err
	}
	if m.scale = scales()[scale]; m.scale > 0 {
		m.pairs, err = l.propose(ctx, all)
	}
	stage.Add(1)
	return m, err
}

func split(all []*search, fold int) (rest, held []*search) {
	for i, s := range all {
		if i%folds == fold {
			held = append(held, s)
		} else {
			rest = append(rest, s)
		}
	}
	return rest, held
}

// trials are the nDCG of the same searches under several settings, by setting.
// The first setting changes nothing.
type trials [][]float64

func (l *learner) try(ctx context.Context, t *trials, setting int, held []*search, m *model) error {
	for len(*t) <= setting {
		*t = append(*t, nil)
	}
	found := make([]float64, len(held))
	err := l.each(ctx, len(held), nil, func(i int, s *scorer) { found[i] = l.ndcg(held[i], m, s) })
	(*t)[setting] = append((*t)[setting], found...)
	return err
}

// best returns the setting with the largest mean gain minus half its standard
// error, or 0 if none is above 0.
func (t trials) best() int {
	best, most := 0, 0.0
	for k, found := range t {
		gain, deviation := stat.MeanStdDev(floats.SubTo(make([]float64, len(found)), found, t[0]), nil)
		if sure := gain - stat.StdErr(deviation, float64(len(found)))/2; sure > most {
			best, most = k, sure
		}
	}
	return best
}

// fit learns factors in the given number of steps. It calls after, which may be
// nil, before the first step and after each one.
func (l *learner) fit(ctx context.Context, train []*search, steps int, after func(step int, m *model) error) (*model, error) {
	m := &model{factors: make([]float64, len(l.terms)), counts: make([]int, len(l.terms))}
	for step := 0; ; step++ {
		if after != nil {
			if err := after(step, m); err != nil {
				return nil, err
			}
		}
		if step == steps {
			return m, nil
		}
		parts := make([][]slope, len(train))
		if err := l.each(ctx, len(train), nil, func(i int, s *scorer) { parts[i] = l.slopes(train[i], m, s) }); err != nil {
			return nil, err
		}
		sums, uses := make([]float64, len(l.terms)), make([]int, len(l.terms))
		clear(m.counts)
		for _, part := range parts { // in order, so that the sums are reproducible
			for _, g := range part {
				sums[g.term] += g.by
				uses[g.term] += g.documents
				m.counts[g.term] += g.count
			}
		}
		for j := range sums {
			if uses[j] >= minDocuments {
				m.factors[j] += rate * (sums[j] - pull*m.factors[j])
			}
		}
	}
}

// A slope is how much the loss of a search falls if the factor of a term grows,
// from how many documents with the term, and from how many clicks or judgments.
type slope struct {
	term             int32
	by               float64
	documents, count int
}

// slopes returns the slopes of the terms added to a search. The loss of
// documents a and b with gains g_a > g_b and scores r is
//
//	(g_a − g_b) ln(1 + e^(r_b − r_a)) / DCG of the best ranking
func (l *learner) slopes(p *search, m *model, s *scorer) []slope {
	more := l.choose(p, m)
	scores, y := s.scores(p.origins, more, p.ranked)
	force := make([]float64, len(p.ranked)) // how much the loss falls if a score grows
	for a := range p.ranked {
		for b := range p.ranked {
			if d := p.ranked[a].gain - p.ranked[b].gain; p.ranked[a].gain > 0 && d > 0 {
				f := d / (1 + math.Exp(scores[a]-scores[b])) / p.ideal
				force[a] += f
				force[b] -= f
			}
		}
	}
	at := make(map[int32]int, len(more))
	slopes := make([]slope, len(more))
	for k, c := range more {
		at[c.term], slopes[k].term = k, c.term
	}
	for d, g := range p.ranked {
		if force[d] == 0 {
			continue
		}
		for _, t := range l.docs[g.doc] {
			k, ok := at[t.at]
			if !ok {
				continue
			}
			// dscore = (k1+1) x_i idf_i dy/(1+y)², and y contains β_ij tf/K, which is
			// linear in f_j.
			saturated := 1 + y[d*len(p.origins)+more[k].origin]
			slopes[k].by += force[d] * (k1 + 1) * s.strength * more[k].v / m.factor(t.at) * float64(t.freq) / (saturated * saturated)
			slopes[k].documents++
			slopes[k].count = p.count
		}
	}
	return slopes
}
