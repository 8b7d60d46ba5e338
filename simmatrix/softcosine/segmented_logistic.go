package softcosine

import (
	"fmt"

	"gonum.org/v1/gonum/mat"

	"github.com/akin-search/akin/simmatrix/internal/logit"
)

// ErrLogistic is wrapped by errors of [FitLogistic].
var ErrLogistic = logit.ErrFit

// A Logistic estimates from the scores of all pairs of nuggets whether a result
// is relevant (the thesis, 3.3.3 and equation 3.1):
//
//	P(relevant | x) = 1 / (1 + exp(−β_0 − βᵀx))
//
// All matrices must have the same numbers of rows and columns.
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
	return logit.Logistic(z)
}

// FitLogistic fits β to examples with the penalty 1, see [logit.Fit]. Errors
// wrap [ErrLogistic]: examples of only one kind, of different lengths, or with
// features that are not finite.
func FitLogistic(examples [][]float64, relevant []bool) (Logistic, error) {
	if len(relevant) != len(examples) || len(examples) == 0 {
		return Logistic{}, fmt.Errorf("%w: %d examples, %d judgments", ErrLogistic, len(examples), len(relevant))
	}
	features := len(examples[0])
	if features == 0 {
		return Logistic{}, fmt.Errorf("%w: examples without features", ErrLogistic)
	}
	x := mat.NewDense(len(examples), features, nil)
	for i, example := range examples {
		if len(example) != features {
			return Logistic{}, fmt.Errorf("%w: %d features in an example, %d in another", ErrLogistic, len(example), features)
		}
		x.SetRow(i, example)
	}
	m, err := logit.Fit(x, relevant, 1)
	if err != nil {
		return Logistic{}, err
	}
	return Logistic{m.Intercept, m.Coefficients}, nil
}
