// Package logit fits logistic regressions.
package logit

import (
	"context"
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
)

// ErrFit is wrapped by the errors of [Fit] about the examples.
var ErrFit = errors.New("no logistic regression can be fitted")

// Examples are what a regression is fitted to.
type Examples struct {
	N, Features int
	// Read puts the features of example i into x and returns its y: whether it is
	// one of those that are looked for.
	Read func(i int, x []float64) (y bool)
}

// A Model estimates y from the features x of an example:
//
//	P(y | x) = 1/(1+exp(−β_0−Σ_k β_k·x_k))
//
// The errors are standard errors from the curvature of the likelihood.
type Model struct {
	Intercept, InterceptError float64   // β_0
	Coefficients, Errors      []float64 // β
}

const (
	maxSteps = 100 // of Newton's method, which takes about ten
	// converged is the relative gain at which Newton's method stops: above the
	// rounding error of the sum, and so small that one more step leaves nothing.
	converged = 1e-10
	// roundingError is the share of a mean below which a deviation is none.
	roundingError = 1e-12
)

// Fit fits β by Newton's method. It minimizes
//
//	Σ ln(1+exp(z)) − y·z + λ/2 · Σ_k (σ_k·β_k)²,  z = β_0 + Σ_k β_k·x_k
//
// over the examples, with y 1 or 0, σ_k the standard deviation of feature k, so
// that its scale does not matter, and the penalty λ = ridge above 0, the usual
// one of logistic regression, which keeps β finite. Errors wrap [ErrFit], as
// where all y are the same or a feature is not finite, or are that of ctx.
func Fit(ctx context.Context, e Examples, ridge float64) (*Model, error) {
	l, err := newLikelihood(e, ridge)
	if err != nil {
		return nil, err
	}
	beta := make([]float64, e.Features+1) // over standardized features, β_0 last
	beta[e.Features] = math.Log(l.share / (1 - l.share))
	at := l.at(beta)
	for range maxSteps {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		var chol mat.Cholesky
		var step mat.VecDense
		if !chol.Factorize(at.curvature) || chol.SolveVecTo(&step, at.slope) != nil {
			return nil, fmt.Errorf("%w: the curvature is not positive definite", ErrFit)
		}
		if decrement := mat.Dot(&step, at.slope) / 2; decrement <= converged*(1+at.value) {
			return l.model(stepped(beta, 1, &step), &chol), nil
		}
		if beta, at, err = l.descend(beta, at, &step); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%w: no maximum after %d steps", ErrFit, maxSteps)
}

// A likelihood is the penalized negative log-likelihood of examples.
type likelihood struct {
	Examples

	ridge           float64
	share           float64   // of y
	mean, deviation []float64 // of each feature; the deviation of a constant is set to 1, and its β becomes 0
}

func newLikelihood(e Examples, ridge float64) (*likelihood, error) {
	l := &likelihood{Examples: e, ridge: ridge, mean: make([]float64, e.Features), deviation: make([]float64, e.Features)}
	x, n, positive := make([]float64, e.Features), float64(e.N), 0
	for i := range e.N {
		if e.Read(i, x) {
			positive++
		}
		for k, v := range x {
			l.mean[k] += v / n
		}
	}
	if positive == 0 || positive == e.N {
		return nil, fmt.Errorf("%w: %d of %d examples are positive", ErrFit, positive, e.N)
	}
	l.share = float64(positive) / n
	for i := range e.N {
		e.Read(i, x)
		for k, v := range x {
			l.deviation[k] += (v - l.mean[k]) * (v - l.mean[k]) / n
		}
	}
	for k := range l.deviation {
		l.deviation[k] = math.Sqrt(l.deviation[k])
		if math.IsNaN(l.deviation[k]) || math.IsInf(l.deviation[k], 0) {
			return nil, fmt.Errorf("%w: feature %d is not finite", ErrFit, k)
		}
		if l.deviation[k] <= roundingError*math.Abs(l.mean[k]) {
			l.deviation[k] = 1
		}
	}
	return l, nil
}

// A point is a likelihood at some coefficients.
type point struct {
	value     float64
	slope     *mat.VecDense // the gradient
	curvature *mat.SymDense // the Hessian, positive definite
}

// at returns value, gradient and Hessian at beta.
func (l *likelihood) at(beta []float64) point {
	size := len(beta)
	slope, curvature := make([]float64, size), make([]float64, size*size) // the upper triangle
	x := make([]float64, size)
	x[l.Features] = 1
	value := 0.0
	for i := range l.N {
		y, z := 0.0, beta[l.Features]
		if l.Read(i, x[:l.Features]) {
			y = 1
		}
		for k := range l.Features {
			x[k] = (x[k] - l.mean[k]) / l.deviation[k]
			z += beta[k] * x[k]
		}
		p := Logistic(z)
		value += Softplus(z) - y*z
		for a := range size {
			slope[a] += (p - y) * x[a]
			for b := a; b < size; b++ {
				curvature[a*size+b] += p * (1 - p) * x[a] * x[b]
			}
		}
	}
	for k := range l.Features {
		value += l.ridge / 2 * beta[k] * beta[k]
		slope[k] += l.ridge * beta[k]
		curvature[k*size+k] += l.ridge
	}
	return point{value, mat.NewVecDense(size, slope), mat.NewSymDense(size, curvature)}
}

// descend goes a step, or a part of it where all of it is too far.
func (l *likelihood) descend(beta []float64, from point, step *mat.VecDense) ([]float64, point, error) {
	for length := 1.0; length > 1e-10; length /= 2 {
		next := stepped(beta, length, step)
		if to := l.at(next); to.value < from.value {
			return next, to, nil
		}
	}
	return nil, point{}, fmt.Errorf("%w: the likelihood does not grow", ErrFit)
}

func stepped(beta []float64, length float64, step *mat.VecDense) []float64 {
	next := make([]float64, len(beta))
	for k := range beta {
		next[k] = beta[k] - length*step.AtVec(k)
	}
	return next
}

// model turns β of standardized features into that of the features, with errors
// from the inverse of the curvature.
func (l *likelihood) model(beta []float64, chol *mat.Cholesky) *Model {
	var covariance mat.SymDense
	_ = chol.InverseTo(&covariance) // returns a condition error only, and Solve has succeeded
	m := &Model{Intercept: beta[l.Features]}
	unscaled := mat.NewVecDense(len(beta), nil) // β_0 as a sum of the others
	unscaled.SetVec(l.Features, 1)
	for k, deviation := range l.deviation {
		m.Coefficients = append(m.Coefficients, beta[k]/deviation)
		m.Errors = append(m.Errors, math.Sqrt(covariance.At(k, k))/deviation)
		m.Intercept -= m.Coefficients[k] * l.mean[k]
		unscaled.SetVec(k, -l.mean[k]/deviation)
	}
	m.InterceptError = math.Sqrt(mat.Inner(unscaled, &covariance, unscaled))
	return m
}

// Logistic returns 1/(1+exp(−z)).
func Logistic(z float64) float64 { return 1 / (1 + math.Exp(-z)) }

// Softplus returns ln(1+exp(z)) without overflow.
func Softplus(z float64) float64 { return max(z, 0) + math.Log1p(math.Exp(-math.Abs(z))) }
