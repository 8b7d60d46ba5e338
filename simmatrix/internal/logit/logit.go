// Package logit fits logistic regressions.
package logit

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// ErrFit is wrapped by errors of [Fit].
var ErrFit = errors.New("no logistic regression can be fitted")

// A Model estimates y from the features x of an example:
//
//	P(y | x) = 1/(1+exp(−β_0−Σ_k β_k·x_k))
//
// Errors are standard errors from the curvature of the likelihood.
type Model struct {
	Intercept, InterceptError float64   // β_0
	Coefficients, Errors      []float64 // β
}

const (
	maxSteps = 100 // of Newton's method, which takes about ten
	// converged is the relative gain at which Newton's method stops: above the
	// sum's rounding error, and so small that one more step gains nothing.
	converged = 1e-10
	// roundingError is the share of a mean below which a deviation counts as 0.
	roundingError = 1e-12
)

// Fit fits β to examples, the rows of x. It minimizes by Newton's method
//
//	Σ ln(1+exp(z)) − y·z + λ/2 · Σ_k (σ_k·β_k)²,  z = β_0 + Σ_k β_k·x_k
//
// with y 1 or 0. σ_k is the standard deviation of feature k, so that its scale
// does not matter. λ = ridge, above 0, is the usual penalty of logistic
// regression and keeps β finite. It returns an error if all y are equal or a
// feature is not finite.
func Fit(x *mat.Dense, y []bool, ridge float64) (*Model, error) {
	n, features := x.Dims()
	l := &likelihood{x: &mat.Dense{}, y: make([]float64, n), ridge: ridge}
	for i, is := range y {
		if is {
			l.y[i] = 1
		}
	}
	share := stat.Mean(l.y, nil)
	if share == 0 || share == 1 {
		return nil, fmt.Errorf("%w: all of %d examples are of one kind", ErrFit, n)
	}
	l.x.Augment(x, mat.NewDense(n, 1, slices.Repeat([]float64{1}, n)))
	mean, deviation := make([]float64, features), make([]float64, features)
	for k := range features {
		values := mat.Col(nil, k, x)
		mean[k], deviation[k] = stat.PopMeanStdDev(values, nil)
		if math.IsNaN(deviation[k]) || math.IsInf(deviation[k], 0) {
			return nil, fmt.Errorf("%w: feature %d is not finite", ErrFit, k)
		}
		if deviation[k] <= roundingError*math.Abs(mean[k]) {
			deviation[k] = 1 // all values are equal: β_k becomes 0
		}
		for i, v := range values {
			l.x.Set(i, k, (v-mean[k])/deviation[k])
		}
	}
	beta := mat.NewVecDense(features+1, nil)
	beta.SetVec(features, math.Log(share/(1-share)))
	value := l.value(beta)
	for range maxSteps {
		var chol mat.Cholesky
		var step mat.VecDense
		slope := l.slope(beta)
		if !chol.Factorize(l.curvature(beta)) || chol.SolveVecTo(&step, slope) != nil {
			return nil, fmt.Errorf("%w: the curvature is not positive definite", ErrFit)
		}
		if mat.Dot(&step, slope)/2 <= converged*(1+value) {
			beta.SubVec(beta, &step)
			return model(beta, mean, deviation, &chol), nil
		}
		if beta, value = l.descend(beta, value, &step); beta == nil {
			return nil, fmt.Errorf("%w: the likelihood does not grow", ErrFit)
		}
	}
	return nil, fmt.Errorf("%w: no maximum after %d steps", ErrFit, maxSteps)
}

// A likelihood is the penalized negative log-likelihood of examples, by β of
// standardized features, β_0 last.
type likelihood struct {
	x     *mat.Dense // with a last column of 1
	y     []float64
	ridge float64
}

// descend takes a step, shortened if too long; nil if nothing is better.
func (l *likelihood) descend(beta *mat.VecDense, value float64, step *mat.VecDense) (*mat.VecDense, float64) {
	for length := 1.0; length > 1e-10; length /= 2 {
		var next mat.VecDense
		next.AddScaledVec(beta, -length, step)
		if lower := l.value(&next); lower < value {
			return &next, lower
		}
	}
	return nil, value
}

func (l *likelihood) z(beta *mat.VecDense) []float64 {
	var z mat.VecDense
	z.MulVec(l.x, beta)
	return z.RawVector().Data
}

func (l *likelihood) value(beta *mat.VecDense) (sum float64) {
	for i, z := range l.z(beta) {
		sum += Softplus(z) - l.y[i]*z
	}
	for k := range beta.Len() - 1 {
		sum += l.ridge / 2 * beta.AtVec(k) * beta.AtVec(k)
	}
	return sum
}

// slope returns the gradient.
func (l *likelihood) slope(beta *mat.VecDense) *mat.VecDense {
	residuals := l.z(beta)
	for i, z := range residuals {
		residuals[i] = Logistic(z) - l.y[i]
	}
	slope := &mat.VecDense{}
	slope.MulVec(l.x.T(), mat.NewVecDense(len(residuals), residuals))
	for k := range beta.Len() - 1 {
		slope.SetVec(k, slope.AtVec(k)+l.ridge*beta.AtVec(k))
	}
	return slope
}

// curvature returns the Hessian.
func (l *likelihood) curvature(beta *mat.VecDense) *mat.SymDense {
	weighted := mat.DenseCopyOf(l.x)
	for i, z := range l.z(beta) {
		p := Logistic(z)
		floats.Scale(math.Sqrt(p*(1-p)), weighted.RawRowView(i))
	}
	curvature := &mat.SymDense{}
	curvature.SymOuterK(1, weighted.T())
	for k := range beta.Len() - 1 {
		curvature.SetSym(k, k, curvature.At(k, k)+l.ridge)
	}
	return curvature
}

// model converts β of standardized features; errors are from the curvature.
func model(beta *mat.VecDense, mean, deviation []float64, chol *mat.Cholesky) *Model {
	var covariance mat.SymDense
	_ = chol.InverseTo(&covariance) // only a condition error, and a system was solved
	last := len(mean)
	m := &Model{Intercept: beta.AtVec(last)}
	unscaled := mat.NewVecDense(last+1, nil) // β_0 as a sum of the others
	unscaled.SetVec(last, 1)
	for k, d := range deviation {
		m.Coefficients = append(m.Coefficients, beta.AtVec(k)/d)
		m.Errors = append(m.Errors, math.Sqrt(covariance.At(k, k))/d)
		m.Intercept -= m.Coefficients[k] * mean[k]
		unscaled.SetVec(k, -mean[k]/d)
	}
	m.InterceptError = math.Sqrt(mat.Inner(unscaled, &covariance, unscaled))
	return m
}

// Logistic returns 1/(1+exp(−z)).
func Logistic(z float64) float64 { return 1 / (1 + math.Exp(-z)) }

// Softplus returns ln(1+exp(z)) without overflow.
func Softplus(z float64) float64 { return max(z, 0) + math.Log1p(math.Exp(-math.Abs(z))) }
