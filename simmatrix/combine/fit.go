package combine

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/integrate"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/internal/logit"
)

// FitRegression fits the supervised ensemble of Novotný (Vector Space
// Representations in Information Retrieval, 2017, section 4.5.3): a regression
// on the similarities s_k of a pair in several matrices, fitted to relations, a
// matrix made from a thesaurus.
//
// The sample is the entries (i, j) of the inputs whose terms both occur in
// relations; they are related if relations has the entry. A share of the terms
// is held out by a seeded hash: pairs with such a term are for measuring.
// Relations are yes or no, so the regression is logistic, with the penalty
// λ = 1, see [logit.Fit]:
//
//	p = 1/(1+exp(−β_0−Σ_k β_k·s_k))
//
// Similarities should fall towards 0 in each row, as the cube of a cosine does.
//
// Errors wrap [ErrRegression] where fitting or measuring lacks related or
// unrelated pairs, or an input was made from the relations; they name bad
// inputs, or are that of ctx.
func FitRegression(ctx context.Context, inputs []Input, relations *simmatrix.Matrix) (*Regression, error) {
	if err := checkInputs(inputs); err != nil {
		return nil, err
	}
	if relations == nil {
		return nil, fmt.Errorf("%w: no relations", ErrRegression)
	}
	fitted, held, err := samplePairs(ctx, newUnion(inputs), relations, heldOutShare)
	if err != nil {
		return nil, err
	}
	if err := checkLeaks(inputs, fitted, held); err != nil {
		return nil, err
	}
	if err := errors.Join(fitted.check("fit to"), held.check("measure on")); err != nil {
		return nil, err
	}
	r := &Regression{Pairs: fitted.pairs(), Related: fitted.positive}
	for _, in := range inputs {
		r.Coefficients = append(r.Coefficients, Coefficient{Name: in.Name})
	}
	if err := r.fit(fitted, ridge); err != nil {
		return nil, err
	}
	r.HeldOut = r.measure(held)
	return r, nil
}

// A sample is pairs of terms with their similarities and whether related.
type sample struct {
	inputs   int
	units    []uint16 // similarities in units of 1/65535, inputs for each pair
	related  []bool   // one for each pair
	positive int      // number of those
}

func (s *sample) pairs() int { return len(s.related) }

// row returns the similarities of pair p in units.
func (s *sample) row(p int) []uint16 { return s.units[p*s.inputs : (p+1)*s.inputs] }

func (s *sample) add(units []uint16, related bool) {
	s.units, s.related = append(s.units, units...), append(s.related, related)
	if related {
		s.positive++
	}
}

func (s *sample) check(purpose string) error {
	if s.positive == 0 || s.positive == s.pairs() {
		return fmt.Errorf("%w: of %d pairs to %s that an input has and whose terms the relations know, %d are related: "+
			"it takes related and unrelated ones, so give more relations or more neighbors",
			ErrRegression, s.pairs(), purpose, s.positive)
	}
	return nil
}

// An input counts as a copy of the relations if it disagrees on at most one in
// leakMistakes pairs of the rarer kind, if those are at least leakPairs.
const leakMistakes, leakPairs = 100, 20

// checkLeaks refuses an input that has the related pairs and no others.
func checkLeaks(inputs []Input, samples ...*sample) error {
	pairs, related := 0, 0
	mistakes := make([]int, len(inputs)) // pairs that are related and not there, or the other way round
	for _, s := range samples {
		pairs, related = pairs+s.pairs(), related+s.positive
		for p := range s.pairs() {
			for k, units := range s.row(p) {
				if (units > 0) != s.related[p] {
					mistakes[k]++
				}
			}
		}
	}
	fewer := min(related, pairs-related)
	for k, in := range inputs {
		if fewer >= leakPairs && mistakes[k]*leakMistakes <= fewer {
			return fmt.Errorf("%w: of %d pairs input %q has the %d related ones and no others (%d apart): it was made from the relations, "+
				"which cannot judge themselves; leave it out or give other relations",
				ErrRegression, pairs, in.Name, related, mistakes[k])
		}
	}
	return nil
}

// rowsAtOnce is how many rows come between two checks of the context.
const rowsAtOnce = 1 << 14

// samplePairs returns the pairs to fit to, and those of a share of the terms to
// measure on.
func samplePairs(ctx context.Context, u *union, relations *simmatrix.Matrix, share float64) (fitted, held *sample, err error) {
	known := make([]int32, len(u.terms)) // the row of each term in relations, noRow where it has none
	out := make([]bool, len(u.terms))
	for i, t := range u.terms {
		known[i] = noRow
		if r, ok := slices.BinarySearch(relations.Table().Terms, t); ok {
			known[i], out[i] = int32(r), heldOut(t, share) //nolint:gosec // at most MaxTerms
		}
	}
	fitted, held = &sample{inputs: len(u.inputs)}, &sample{inputs: len(u.inputs)}
	g := newGatherer(u)
	related := make([]bool, relations.Len()) // to the current term; all false between two
	for i := range u.terms {
		if i%rowsAtOnce == 0 && ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		if known[i] == noRow {
			continue
		}
		cols, _ := relations.Table().Row(int(known[i]))
		for _, col := range cols {
			related[col] = true
		}
		for _, n := range g.gather(i) {
			switch r := known[n.col]; {
			case r == noRow:
			case out[i] || out[n.col]:
				held.add(n.units[:held.inputs], related[r])
			default:
				fitted.add(n.units[:fitted.inputs], related[r])
			}
		}
		for _, col := range cols {
			related[col] = false
		}
	}
	return fitted, held, nil
}

func heldOut(term string, share float64) bool {
	sum := sha256.Sum256(append(binary.LittleEndian.AppendUint64(nil, regressionSeed), term...))
	return float64(binary.LittleEndian.Uint64(sum[:])) < share*math.MaxUint64
}

// fit sets the coefficients.
func (r *Regression) fit(s *sample, ridge float64) error {
	x := mat.NewDense(s.pairs(), s.inputs, nil)
	for p := range s.pairs() {
		for k, units := range s.row(p) {
			x.Set(p, k, float64(units)/simmatrix.UnitsOfOne)
		}
	}
	m, err := logit.Fit(x, s.related, ridge)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrRegression, err)
	}
	r.Intercept = Coefficient{"(intercept)", m.Intercept, m.InterceptError}
	for k := range r.Coefficients {
		r.Coefficients[k].Value, r.Coefficients[k].StandardError = m.Coefficients[k], m.Errors[k]
	}
	return nil
}

// measure compares estimates with the relations of a sample.
func (r *Regression) measure(s *sample) Evaluation {
	share := float64(r.Related) / float64(r.Pairs)
	e := Evaluation{Pairs: s.pairs(), Related: s.positive}
	estimates := make([]float64, s.pairs())
	for p := range s.pairs() {
		z := r.logOdds(s.row(p))
		estimates[p] = logit.Logistic(z)
		y, loss, constant := 0.0, logit.Softplus(z), -math.Log1p(-share)
		if s.related[p] {
			y, loss, constant = 1, logit.Softplus(-z), -math.Log(share)
		}
		e.LogLoss += loss
		e.ConstantLogLoss += constant
		e.Brier += (estimates[p] - y) * (estimates[p] - y)
		e.ConstantBrier += (share - y) * (share - y)
	}
	n := float64(s.pairs())
	e.LogLoss, e.ConstantLogLoss, e.Brier, e.ConstantBrier = e.LogLoss/n, e.ConstantLogLoss/n, e.Brier/n, e.ConstantBrier/n
	related := slices.Clone(s.related)
	stat.SortWeightedLabeled(estimates, related, nil)
	found, mistaken, _ := stat.ROC(nil, estimates, related, nil)
	e.AUC = integrate.Trapezoidal(mistaken, found) // the area under this curve is the probability; ties count half
	return e
}
