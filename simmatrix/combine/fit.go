package combine

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/internal/parallel"
)

// FitRegression fits the supervised ensemble of Novotný (Vector Space
// Representations in Information Retrieval, 2017, section 4.5.3): a regression
// on the similarities s_k of a pair in several matrices, fitted to relations, a
// matrix made from a thesaurus.
//
// The sample is the entries (i, j) of the inputs whose terms both occur in
// relations; they are related if relations has the entry. A share of the terms
// is held out by a seeded hash: pairs with such a term are for measuring.
// Relations are yes or no, so the regression is logistic. It maximizes, by
// Newton's method, the likelihood of
//
//	p = 1/(1+exp(−β_0−Σ_k β_k·s_k))
//
// less the penalty λ/2 · Σ_k (σ_k·β_k)², with σ_k the standard deviation of
// s_k over the pairs and λ = 1, so that the scale of an input does not matter.
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
	if err := r.fit(ctx, fitted, ridge); err != nil {
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

// pairsAtOnce is how many rows or pairs come between two checks of the context.
const pairsAtOnce = 1 << 14

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
		if i%pairsAtOnce == 0 && ctx.Err() != nil {
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

const (
	maxSteps = 100 // of Newton's method, which takes about ten
	// converged is the relative gain at which Newton's method stops: above the
	// rounding error of the sum, and so small that one more step leaves nothing.
	converged = 1e-10
)

// fit sets the coefficients, over standardized similarities.
func (r *Regression) fit(ctx context.Context, s *sample, ridge float64) error {
	l := newLikelihood(s, ridge)
	beta := make([]float64, s.inputs+1) // the intercept last
	share := float64(s.positive) / float64(s.pairs())
	beta[s.inputs] = math.Log(share / (1 - share))
	at, err := l.at(ctx, beta)
	if err != nil {
		return err
	}
	for range maxSteps {
		var chol mat.Cholesky
		if !chol.Factorize(at.curvature) {
			return fmt.Errorf("%w: the curvature is not positive definite", ErrRegression)
		}
		var step mat.VecDense
		if err := chol.SolveVecTo(&step, at.slope); err != nil {
			return fmt.Errorf("%w: %w", ErrRegression, err)
		}
		if decrement := mat.Dot(&step, at.slope) / 2; decrement <= converged*(1+at.value) {
			r.setCoefficients(l, stepped(beta, 1, &step), &chol)
			return nil
		}
		if beta, at, err = l.descend(ctx, beta, at, &step); err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: no maximum after %d steps", ErrRegression, maxSteps)
}

// setCoefficients turns the coefficients of standardized similarities into
// those of the similarities, with errors from the inverse of the curvature.
func (r *Regression) setCoefficients(l *likelihood, beta []float64, chol *mat.Cholesky) {
	var covariance mat.SymDense
	_ = chol.InverseTo(&covariance) // returns a condition error only, and Solve has succeeded
	last := len(beta) - 1
	r.Intercept = Coefficient{Name: "(intercept)", Value: beta[last]}
	unscaled := mat.NewVecDense(len(beta), nil) // the intercept as a sum of the coefficients
	unscaled.SetVec(last, 1)
	for k := range r.Coefficients {
		c := &r.Coefficients[k]
		c.Value = beta[k] / l.deviation[k]
		c.StandardError = math.Sqrt(covariance.At(k, k)) / l.deviation[k]
		r.Intercept.Value -= c.Value * l.mean[k]
		unscaled.SetVec(k, -l.mean[k]/l.deviation[k])
	}
	r.Intercept.StandardError = math.Sqrt(mat.Inner(unscaled, &covariance, unscaled))
}

// A likelihood is the penalized negative log-likelihood of a sample.
type likelihood struct {
	*sample
	ridge           float64
	mean, deviation []float64 // of the similarities of each input
}

func newLikelihood(s *sample, ridge float64) *likelihood {
	l := &likelihood{sample: s, ridge: ridge, mean: make([]float64, s.inputs), deviation: make([]float64, s.inputs)}
	n := float64(s.pairs())
	for k := range s.inputs {
		sum := 0.0
		for p := range s.pairs() {
			sum += float64(s.row(p)[k])
		}
		mean, squares := sum/n, 0.0
		for p := range s.pairs() {
			d := float64(s.row(p)[k]) - mean
			squares += d * d
		}
		l.mean[k], l.deviation[k] = mean/simmatrix.UnitsOfOne, math.Sqrt(squares/n)/simmatrix.UnitsOfOne
		if l.deviation[k] == 0 {
			l.deviation[k] = 1 // every pair has the same: its coefficient becomes 0
		}
	}
	return l
}

// A point is a likelihood at some coefficients.
type point struct {
	value     float64
	slope     *mat.VecDense // the gradient
	curvature *mat.SymDense // the Hessian, positive definite
}

// at returns value, gradient and Hessian at beta:
//
//	Σ ln(1+exp(z)) − y·z + λ/2 · Σ_k β_k²,  z = β_0 + Σ_k β_k·x_k
//
// Blocks of pairs are summed in order, whatever the number of processors.
func (l *likelihood) at(ctx context.Context, beta []float64) (point, error) {
	size := len(beta)
	sums := make([][]float64, (l.pairs()+pairsAtOnce-1)/pairsAtOnce)
	err := parallel.EachBlock(ctx, l.pairs(), pairsAtOnce, func() func(lo, hi int) {
		x := make([]float64, size)
		return func(lo, hi int) {
			sum := make([]float64, 1+size+size*size)
			for p := lo; p < hi; p++ {
				l.add(sum, p, beta, x)
			}
			sums[lo/pairsAtOnce] = sum
		}
	})
	if err != nil {
		return point{}, err
	}
	total := make([]float64, 1+size+size*size)
	for _, sum := range sums {
		for k, v := range sum {
			total[k] += v
		}
	}
	to := point{value: total[0], slope: mat.NewVecDense(size, total[1:1+size]), curvature: mat.NewSymDense(size, total[1+size:])}
	for k := range l.inputs {
		to.value += l.ridge / 2 * beta[k] * beta[k]
		to.slope.SetVec(k, to.slope.AtVec(k)+l.ridge*beta[k])
		to.curvature.SetSym(k, k, to.curvature.At(k, k)+l.ridge)
	}
	return to, nil
}

// add adds value, gradient and upper triangle of the Hessian of pair p to sum.
func (l *likelihood) add(sum []float64, p int, beta, x []float64) {
	size := len(beta)
	z := beta[l.inputs]
	for k, u := range l.row(p) {
		x[k] = (float64(u)/simmatrix.UnitsOfOne - l.mean[k]) / l.deviation[k]
		z += beta[k] * x[k]
	}
	x[l.inputs] = 1
	estimate, y := logistic(z), 0.0
	if l.related[p] {
		y = 1
	}
	weight := estimate * (1 - estimate)
	slope, curvature := sum[1:1+size], sum[1+size:]
	sum[0] += softplus(z) - y*z
	for a := range size {
		slope[a] += (estimate - y) * x[a]
		for b := a; b < size; b++ {
			curvature[a*size+b] += weight * x[a] * x[b]
		}
	}
}

func (l *likelihood) descend(ctx context.Context, beta []float64, from point, step *mat.VecDense) ([]float64, point, error) {
	for length := 1.0; length > 1e-10; length /= 2 {
		next := stepped(beta, length, step)
		to, err := l.at(ctx, next)
		if err != nil {
			return nil, point{}, err
		}
		if to.value < from.value {
			return next, to, nil
		}
	}
	return nil, point{}, fmt.Errorf("%w: the likelihood does not grow", ErrRegression)
}

func stepped(beta []float64, length float64, step *mat.VecDense) []float64 {
	next := make([]float64, len(beta))
	for k := range beta {
		next[k] = beta[k] - length*step.AtVec(k)
	}
	return next
}

// measure compares estimates with the relations of a sample.
func (r *Regression) measure(s *sample) Evaluation {
	type estimate struct {
		p       float64
		related bool
	}
	share := float64(r.Related) / float64(r.Pairs)
	e := Evaluation{Pairs: s.pairs(), Related: s.positive}
	estimates := make([]estimate, s.pairs())
	for p := range s.pairs() {
		z := r.logOdds(s.row(p))
		estimates[p] = estimate{logistic(z), s.related[p]}
		y, loss, constant := 0.0, softplus(z), -math.Log1p(-share)
		if s.related[p] {
			y, loss, constant = 1, softplus(-z), -math.Log(share)
		}
		e.LogLoss += loss
		e.ConstantLogLoss += constant
		e.Brier += (estimates[p].p - y) * (estimates[p].p - y)
		e.ConstantBrier += (share - y) * (share - y)
	}
	n := float64(s.pairs())
	e.LogLoss, e.ConstantLogLoss, e.Brier, e.ConstantBrier = e.LogLoss/n, e.ConstantLogLoss/n, e.Brier/n, e.ConstantBrier/n
	slices.SortFunc(estimates, func(a, b estimate) int { return cmp.Compare(a.p, b.p) })
	below, wins := 0.0, 0.0 // unrelated pairs with a smaller estimate; the sum of them over the related ones
	for lo := 0; lo < len(estimates); {
		hi, related := lo, 0.0
		for ; hi < len(estimates) && estimates[hi].p == estimates[lo].p; hi++ {
			if estimates[hi].related {
				related++
			}
		}
		unrelated := float64(hi-lo) - related
		wins += related * (below + unrelated/2) // ties count half
		below += unrelated
		lo = hi
	}
	e.AUC = wins / (float64(s.positive) * below)
	return e
}
