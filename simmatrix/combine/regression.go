package combine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/internal/settings"
)

// ErrRegression is wrapped by the errors of [FitRegression] that say what the
// inputs and the relations lack.
var ErrRegression = errors.New("no regression can be fitted")

// RegressionOptions are the settings of [FitRegression].
type RegressionOptions struct {
	// HeldOut is the share of the terms, in (0, 1), whose pairs the regression
	// is measured on and not fitted to.
	HeldOut float64
	// Seed chooses the terms that are held out.
	Seed uint64
	// Ridge is λ, above 0: how much a coefficient costs. It keeps
	// coefficients finite where the inputs tell related from unrelated pairs
	// without a mistake, and weighs less the more pairs there are.
	Ridge float64
	// Power is p of [Regression.Similarity], above 0. The fit does not depend
	// on it.
	Power float64
}

// DefaultRegressionOptions returns HeldOut 0.2, Seed 1, Ridge 1 and Power 3,
// the power that [learn.DefaultCorpusOptions] has for cosines.
func DefaultRegressionOptions() RegressionOptions {
	return RegressionOptions{HeldOut: 0.2, Seed: 1, Ridge: 1, Power: 3}
}

// Validate reports every setting that is out of range.
func (o *RegressionOptions) Validate() error {
	var errs []error
	if !(o.HeldOut > 0 && o.HeldOut < 1) { // written so that NaN fails, as below
		errs = append(errs, fmt.Errorf("held out: %v not in (0, 1)", o.HeldOut))
	}
	if !(o.Ridge > 0) || math.IsInf(o.Ridge, 1) {
		errs = append(errs, fmt.Errorf("ridge: %v is not above 0", o.Ridge))
	}
	if !(o.Power > 0) || math.IsInf(o.Power, 1) {
		errs = append(errs, fmt.Errorf("power: %v is not above 0", o.Power))
	}
	return errors.Join(errs...)
}

// A Coefficient of a regression.
type Coefficient struct {
	// Name is that of the input.
	Name string
	// Value is β: how much the log-odds of a relation grow as the similarity
	// that the input gives grows from 0 to 1.
	Value float64
	// StandardError is that of Value, from the curvature of the likelihood. It
	// takes the pairs for independent, so that it is rather too small.
	StandardError float64
}

// A Regression estimates from the similarities that several matrices give a
// pair of terms how likely the two are related.
type Regression struct {
	// Options are what it was fitted with.
	Options RegressionOptions
	// Intercept is β_0, the log-odds of a pair with all similarities 0.
	Intercept Coefficient
	// Coefficients are one for each input, in their order.
	Coefficients []Coefficient
	// Pairs and Related are the number of pairs that it was fitted to, and of
	// those among them that are related.
	Pairs, Related int
	// HeldOut tells how well it does on pairs that it was not fitted to.
	HeldOut Evaluation
}

// An Evaluation compares estimates with relations that they were not fitted to.
// Constant is what the share of the related pairs fitted to would get for every
// pair.
type Evaluation struct {
	// Pairs and Related are the number of pairs, and of those related.
	Pairs, Related int
	// LogLoss is the mean of −ln of the probability given to what is so, in
	// nats, from 0.
	LogLoss, ConstantLogLoss float64
	// Brier is the mean square of the estimate's distance from 1 for related
	// and 0 for unrelated pairs, in [0, 1].
	Brier, ConstantBrier float64
	// AUC is the probability that a related pair is estimated higher than an
	// unrelated one, in [0, 1]; a constant has 0.5.
	AUC float64
}

// FitRegression fits the supervised ensemble of Novotný (Vector Space
// Representations in Information Retrieval, 2017, section 4.5.3): a regression
// on the similarities s_k that several matrices give a pair, fitted to
// relations, a matrix made from a thesaurus. An input that has the related
// pairs of the sample and none of the others, but for one in a hundred, was
// made from the relations and is refused (not where fewer than 20 pairs are
// related or unrelated).
//
// The sample are the entries (i, j) that an input has and whose terms relations
// both knows, as related where relations has the entry. A share of the terms is
// held out by a seeded hash; pairs with such a term are measured and not fitted
// to. Relations are yes or no, so the regression is logistic. It maximizes, by
// Newton's method, the likelihood of
//
//	p = 1/(1+exp(−β_0−Σ_k β_k·s_k))
//
// less the penalty Ridge/2 · Σ_k (σ_k·β_k)², with σ_k the standard deviation of
// s_k over the pairs, so that the scale of an input does not matter.
// Similarities should go down towards 0 in each row, as the cube of a cosine
// does.
//
// Errors wrap [ErrRegression] where there is no related or no unrelated pair to
// fit to or to measure on and where an input is the relations, name settings
// and inputs that cannot be taken, or are that of ctx. It takes 2 bytes for
// each input and pair.
func FitRegression(ctx context.Context, inputs []Input, relations *simmatrix.Matrix, opts RegressionOptions) (*Regression, error) {
	if err := errors.Join(opts.Validate(), checkInputs(inputs)); err != nil {
		return nil, err
	}
	if relations == nil {
		return nil, fmt.Errorf("%w: no relations", ErrRegression)
	}
	fitted, held, err := samplePairs(ctx, newUnion(inputs), relations, opts)
	if err != nil {
		return nil, err
	}
	if err := checkLeaks(inputs, fitted, held); err != nil {
		return nil, err
	}
	if err := errors.Join(fitted.check("fit to"), held.check("measure on")); err != nil {
		return nil, err
	}
	r := &Regression{Options: opts, Pairs: fitted.pairs(), Related: fitted.positive}
	for _, in := range inputs {
		r.Coefficients = append(r.Coefficients, Coefficient{Name: in.Name})
	}
	if err := r.fit(ctx, fitted); err != nil {
		return nil, err
	}
	r.HeldOut = r.measure(held)
	return r, nil
}

// Probability returns the estimate, in (0, 1), for the similarities that the
// inputs give a pair, in their order, 0 where an input does not have it. It
// panics where there are more similarities than inputs.
func (r *Regression) Probability(similarities []float64) float64 {
	return logistic(r.logOdds(inUnits(similarities)))
}

// Similarity returns what an ensemble makes of the similarities that the inputs
// give a pair, in [0, 1]:
//
//	s = (1/(1+exp(−z)))^Power,  z = ln(p/(1−p)) − ln(share/(1−share))
//
// with p of [Regression.Probability] and share the related part of the pairs
// fitted to, without which all s would be small. The order of the pairs is that
// of p.
func (r *Regression) Similarity(similarities []float64) float64 {
	return r.similarity(inUnits(similarities))
}

func (r *Regression) similarity(units []uint16) float64 {
	prior := math.Log(float64(r.Related) / float64(r.Pairs-r.Related))
	return math.Pow(logistic(r.logOdds(units)-prior), r.Options.Power)
}

func inUnits(similarities []float64) []uint16 {
	units := make([]uint16, len(similarities))
	for k, s := range similarities {
		units[k] = uint16(math.Round(min(max(s, 0), 1) * simmatrix.UnitsOfOne))
	}
	return units
}

// combiner returns the rule of an ensemble, or an error where the inputs are
// not those that the regression was fitted to.
func (r *Regression) combiner(inputs []Input) (combiner, error) {
	same := slices.EqualFunc(r.Coefficients, inputs, func(c Coefficient, in Input) bool { return c.Name == in.Name })
	if !same {
		return nil, errors.New("regression: fitted to inputs of other names or in another order")
	}
	return r.similarity, nil
}

// logOdds returns β_0 + Σ_k β_k·s_k for similarities in units of 1/65535.
func (r *Regression) logOdds(units []uint16) float64 {
	z := r.Intercept.Value
	for k, u := range units {
		z += r.Coefficients[k].Value * float64(u) / simmatrix.UnitsOfOne
	}
	return z
}

func logistic(z float64) float64 { return 1 / (1 + math.Exp(-z)) }

// softplus returns ln(1+exp(z)), which does not overflow.
func softplus(z float64) float64 { return max(z, 0) + math.Log1p(math.Exp(-math.Abs(z))) }

func (r *Regression) addParams(params map[string]string) {
	params["held_out"], params["seed"] = settings.FormatFloat(r.Options.HeldOut), strconv.FormatUint(r.Options.Seed, 10)
	params["ridge"], params["power"] = settings.FormatFloat(r.Options.Ridge), settings.FormatFloat(r.Options.Power)
	params["pairs"], params["related"] = strconv.Itoa(r.Pairs), strconv.Itoa(r.Related)
	params["intercept"] = settings.FormatFloat(r.Intercept.Value)
	for _, c := range r.Coefficients {
		params[c.Name+".coefficient"] = settings.FormatFloat(c.Value)
	}
	params["held_out_log_loss"] = settings.FormatFloat(r.HeldOut.LogLoss)
	params["held_out_constant_log_loss"] = settings.FormatFloat(r.HeldOut.ConstantLogLoss)
}

// String returns the coefficients and the held-out error as a small table.
func (r *Regression) String() string {
	var b strings.Builder
	h := &r.HeldOut
	fmt.Fprintf(&b, "fitted to %d pairs, %d of them related\n", r.Pairs, r.Related)
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "  coefficient\tvalue\tstandard error")
	for _, c := range append([]Coefficient{r.Intercept}, r.Coefficients...) {
		fmt.Fprintf(w, "  %s\t%.4f\t%.4f\n", c.Name, c.Value, c.StandardError)
	}
	_ = w.Flush() // a strings.Builder takes everything
	fmt.Fprintf(&b, "held out: %d pairs, %d of them related\n", h.Pairs, h.Related)
	fmt.Fprintln(w, "  measure\tregression\tconstant")
	fmt.Fprintf(w, "  log loss\t%.4f\t%.4f\n", h.LogLoss, h.ConstantLogLoss)
	fmt.Fprintf(w, "  Brier score\t%.4f\t%.4f\n", h.Brier, h.ConstantBrier)
	fmt.Fprintf(w, "  AUC\t%.4f\t%.4f\n", h.AUC, 0.5)
	_ = w.Flush() // as above
	return b.String()
}
