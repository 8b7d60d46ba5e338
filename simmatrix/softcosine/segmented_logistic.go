package softcosine

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
)

// ErrLogistic is wrapped by the errors of [FitLogistic].
var ErrLogistic = errors.New("no logistic regression can be fitted")

// A Logistic estimates from the scores of all pairs of nuggets whether a result
// is relevant (the thesis, 3.3.3 and equation 3.1):
//
//	P(relevant | x) = 1 / (1 + exp(−β_0 − βᵀx))
//
// All matrices have to have as many rows, and as many columns, as each other.
type Logistic struct {
	Intercept    float64   // β_0
	Coefficients []float64 // β
}

// Probability returns the estimate for features x of [Matrix.Features].
func (l Logistic) Probability(x []float64) float64 {
	z := l.Intercept
	for k, beta := range l.Coefficients {
		z += beta * x[k]
	}
	return 1 / (1 + math.Exp(-z))
}

// Newton's method takes about ten steps.
const (
	maxSteps      = 100
	converged     = 1e-10 // relative gain of a step
	roundingError = 1e-12 // of a mean, is no deviation
)

// FitLogistic fits β to examples by Newton's method. It minimizes
//
//	Σ ln(1 + exp(−y·(β_0 + βᵀx))) + ½·Σ_k (σ_k·β_k)²,  y = ±1
//
// with σ_k the standard deviation of feature k, so that its scale does not
// matter. The penalty, the usual one of logistic regression, keeps β finite.
// Errors wrap [ErrLogistic]: examples of one kind only, of different lengths,
// or with features that are not finite.
func FitLogistic(examples [][]float64, relevant []bool) (Logistic, error) {
	n, positive := len(examples), 0
	for _, r := range relevant {
		if r {
			positive++
		}
	}
	if len(relevant) != n || positive == 0 || positive == n {
		return Logistic{}, fmt.Errorf("%w: %d examples, %d judgments, %d of them relevant", ErrLogistic, n, len(relevant), positive)
	}
	x, mean, deviation, err := standardized(examples)
	if err != nil {
		return Logistic{}, err
	}
	size := len(mean) + 1 // β_0 first
	beta := mat.NewVecDense(size, nil)
	value, slope, curvature := likelihood(x, relevant, beta)
	for range maxSteps {
		var chol mat.Cholesky
		var step mat.VecDense
		if !chol.Factorize(curvature) || chol.SolveVecTo(&step, slope) != nil {
			return Logistic{}, fmt.Errorf("%w: the curvature is not positive definite", ErrLogistic)
		}
		gain := mat.Dot(&step, slope) / 2
		if gain <= converged*(1+value) {
			return original(beta, mean, deviation), nil
		}
		for share := 1.0; share > converged; share /= 2 { // a whole step may be too far
			var next mat.VecDense
			next.AddScaledVec(beta, -share, &step)
			if v, s, c := likelihood(x, relevant, &next); v < value {
				beta, value, slope, curvature = &next, v, s, c
				break
			}
		}
	}
	return Logistic{}, fmt.Errorf("%w: no minimum after %d steps", ErrLogistic, maxSteps)
}

// standardized returns the features with mean 0 and deviation 1, behind a 1
// for β_0. One that is the same in all examples becomes 0.
func standardized(examples [][]float64) (x *mat.Dense, mean, deviation []float64, err error) {
	n, features := len(examples), len(examples[0])
	mean, deviation = make([]float64, features), make([]float64, features)
	x = mat.NewDense(n, features+1, nil)
	for i, example := range examples {
		if len(example) != features {
			return nil, nil, nil, fmt.Errorf("%w: %d features in an example, %d in another", ErrLogistic, len(example), features)
		}
		x.Set(i, 0, 1)
		for k, v := range example {
			mean[k] += v / float64(n)
		}
	}
	for k := range features {
		for _, example := range examples {
			deviation[k] += (example[k] - mean[k]) * (example[k] - mean[k]) / float64(n)
		}
		deviation[k] = math.Sqrt(deviation[k])
		if math.IsNaN(deviation[k]) || math.IsInf(deviation[k], 0) {
			return nil, nil, nil, fmt.Errorf("%w: feature %d is not finite", ErrLogistic, k)
		}
		if deviation[k] <= roundingError*math.Abs(mean[k]) {
			deviation[k] = 1
		}
		for i, example := range examples {
			x.Set(i, k+1, (example[k]-mean[k])/deviation[k])
		}
	}
	return x, mean, deviation, nil
}

// original returns β for the features as they were.
func original(beta *mat.VecDense, mean, deviation []float64) Logistic {
	l := Logistic{Intercept: beta.AtVec(0)}
	for k := range mean {
		c := beta.AtVec(k+1) / deviation[k]
		l.Coefficients = append(l.Coefficients, c)
		l.Intercept -= c * mean[k]
	}
	return l
}

// likelihood returns what is minimized, its gradient and its Hessian.
func likelihood(x *mat.Dense, relevant []bool, beta *mat.VecDense) (float64, *mat.VecDense, *mat.SymDense) {
	n, size := x.Dims()
	var z mat.VecDense
	z.MulVec(x, beta)
	value, slope, curvature := 0.0, mat.NewVecDense(size, nil), mat.NewSymDense(size, nil)
	for k := 1; k < size; k++ { // the penalty, not on β_0
		b := beta.AtVec(k)
		value += b * b / 2
		slope.SetVec(k, b)
		curvature.SetSym(k, k, 1)
	}
	for i := range n {
		p, y := 1/(1+math.Exp(-z.AtVec(i))), 0.0
		if relevant[i] {
			y = 1
		}
		value += max(z.AtVec(i), 0) + math.Log1p(math.Exp(-math.Abs(z.AtVec(i)))) - y*z.AtVec(i)
		slope.AddScaledVec(slope, p-y, x.RowView(i))
		curvature.SymRankOne(curvature, p*(1-p), x.RowView(i))
	}
	return value, slope, curvature
}
