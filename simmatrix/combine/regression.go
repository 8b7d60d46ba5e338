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

// ErrRegression is wrapped by the errors of [FitRegression] about the data of
// inputs and relations.
var ErrRegression = errors.New("no regression can be fitted")

// RegressionOptions are the settings of [FitRegression].
type RegressionOptions struct {
	// HeldOut is the share of the terms, in (0, 1), whose pairs are for
	// measuring and not for fitting.
	HeldOut float64
	// Seed chooses the terms that are held out.
	Seed uint64
	// Ridge is λ, above 0: the penalty on coefficients. It keeps them finite
	// where the inputs separate related from unrelated pairs without a mistake,
	// and weighs less the more pairs there are.
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
	// Value is β: how much the log-odds of a relation grow as the input's
	// similarity grows from 0 to 1.
	Value float64
	// StandardError is that of Value, from the curvature of the likelihood. It
	// treats the pairs as independent, so that it is rather too small.
	StandardError float64
}

// A Regression estimates how likely two terms are related from their
// similarities in several matrices.
type Regression struct {
	// Options are what it was fitted with.
	Options RegressionOptions
	// Intercept is β_0, the log-odds of a pair with all similarities 0.
	Intercept Coefficient
	// Coefficients has one for each input, in their order.
	Coefficients []Coefficient
	// Pairs and Related are the number of pairs that it was fitted to, and of
	// those among them that are related.
	Pairs, Related int
	// HeldOut measures it on pairs that it was not fitted to.
	HeldOut Evaluation
}

// An Evaluation compares estimates with relations that they were not fitted to.
// Constant is the result of a constant estimate, the share of related pairs
// among those fitted to.
type Evaluation struct {
	// Pairs and Related are the number of pairs, and of those related.
	Pairs, Related int
	// LogLoss is the mean of −ln of the probability estimated for the truth, in
	// nats, at least 0.
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
// on the similarities s_k of a pair in several matrices, fitted to relations, a
// matrix made from a thesaurus. An input that agrees with the relations on all
// but one in a hundred pairs of the sample was made from them and is refused
// (unless fewer than 20 pairs are related or unrelated).
//
// The sample is the entries (i, j) of the inputs whose terms both occur in
// relations; they are related if relations has the entry. A share of the terms
// is held out by a seeded hash: pairs with such a term are for measuring.
// Relations are yes or no, so the regression is logistic. It maximizes, by
// Newton's method, the likelihood of
//
//	p = 1/(1+exp(−β_0−Σ_k β_k·s_k))
//
// less the penalty Ridge/2 · Σ_k (σ_k·β_k)², with σ_k the standard deviation of
// s_k over the pairs, so that the scale of an input does not matter.
// Similarities should fall towards 0 in each row, as the cube of a cosine does.
//
// Errors wrap [ErrRegression] where fitting or measuring lacks related or
// unrelated pairs or an input is a copy of the relations; they name bad
// settings and inputs, or are that of ctx. It takes 2 bytes for each input and
// pair.
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

// Probability returns the estimate, in (0, 1), for a pair's similarities in the
// inputs, in their order, 0 where an input lacks it. It panics if there are
// more similarities than inputs.
func (r *Regression) Probability(similarities []float64) float64 {
	return logistic(r.logOdds(inUnits(similarities)))
}

// Similarity returns an ensemble's similarity, in [0, 1], for a pair's
// similarities in the inputs:
//
//	s = (1/(1+exp(−z)))^Power,  z = ln(p/(1−p)) − ln(share/(1−share))
//
// with p of [Regression.Probability] and share the related part of the pairs
// fitted to, without which all s would be small. It orders pairs as p does.
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

// softplus returns ln(1+exp(z)) without overflow.
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
