package combine

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/internal/logit"
	"github.com/akin-search/akin/simmatrix/internal/settings"
)

// ErrRegression is wrapped by errors about the data of inputs and relations.
var ErrRegression = errors.New("no regression can be fitted")

// The settings of a regression.
const (
	heldOutShare   = 0.2 // of the terms, whose pairs are for measuring and not for fitting
	regressionSeed = 1   // chooses these terms
	// ridge is λ, the penalty on coefficients. It keeps them finite where the
	// inputs separate related from unrelated pairs without a mistake, and weighs
	// less the more pairs there are.
	ridge           = 1.0
	regressionPower = 3.0 // p of an ensemble's similarity, the default of learning from documents
)

// A Coefficient of a regression.
type Coefficient struct {
	Name          string  // of the input
	Value         float64 // β: how much the log-odds of a relation grow as the similarity grows from 0 to 1
	StandardError float64 // from the curvature of the likelihood; pairs are not independent, so it is rather too small
}

// A Regression estimates how likely two terms are related from their
// similarities in several matrices.
type Regression struct {
	Intercept      Coefficient   // β_0, the log-odds of a pair with all similarities 0
	Coefficients   []Coefficient // one for each input, in their order
	Pairs, Related int           // that it was fitted to, and those of them that are related
	HeldOut        Evaluation    // on pairs that it was not fitted to
}

// An Evaluation compares estimates with relations that they were not fitted to.
// Constant is that of the share of related pairs fitted to.
type Evaluation struct {
	Pairs, Related           int
	LogLoss, ConstantLogLoss float64 // mean of −ln of the probability estimated for the truth, in nats, at least 0
	Brier, ConstantBrier     float64 // mean square of the estimate's distance from 1 (related) or 0, in [0, 1]
	AUC                      float64 // probability that a related pair is estimated above an unrelated one; a constant has 0.5
}

// similarity returns an ensemble's similarity, in [0, 1], for a pair's
// similarities in the inputs, in units of 1/65535:
//
//	s = (1/(1+exp(−z)))³,  z = ln(p/(1−p)) − ln(share/(1−share))
//
// with p the estimate and share the related part of the pairs fitted to,
// without which all s would be small. It orders pairs as p does.
func (r *Regression) similarity(units []uint16) float64 {
	prior := math.Log(float64(r.Related) / float64(r.Pairs-r.Related))
	return math.Pow(logit.Logistic(r.logOdds(units)-prior), regressionPower)
}

// fits returns an error unless the regression was fitted to these inputs.
func (r *Regression) fits(inputs []Input) error {
	if !slices.EqualFunc(r.Coefficients, inputs, func(c Coefficient, in Input) bool { return c.Name == in.Name }) {
		return errors.New("regression: fitted to inputs of other names or in another order")
	}
	return nil
}

// logOdds returns β_0 + Σ_k β_k·s_k for similarities in units of 1/65535.
func (r *Regression) logOdds(units []uint16) float64 {
	z := r.Intercept.Value
	for k, u := range units {
		z += r.Coefficients[k].Value * float64(u) / simmatrix.UnitsOfOne
	}
	return z
}

func (r *Regression) addParams(params map[string]string) {
	params["seed"], params["pairs"], params["related"] = strconv.Itoa(regressionSeed), strconv.Itoa(r.Pairs), strconv.Itoa(r.Related)
	for name, value := range map[string]float64{
		"held_out": heldOutShare, "ridge": ridge, simmatrix.PowerParam: regressionPower, "intercept": r.Intercept.Value,
		"held_out_log_loss": r.HeldOut.LogLoss, "held_out_constant_log_loss": r.HeldOut.ConstantLogLoss,
	} {
		params[name] = settings.FormatFloat(value)
	}
	for _, c := range r.Coefficients {
		params[c.Name+".coefficient"] = settings.FormatFloat(c.Value)
	}
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
