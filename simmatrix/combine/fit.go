package combine

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"gonum.org/v1/gonum/integrate"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/internal/logit"
	"github.com/akin-search/akin/simmatrix/internal/settings"
)

// FitRegression fits the supervised ensemble of Novotný (Vector Space
// Representations in Information Retrieval, 2017, section 4.5.3): a regression
// on the similarities s_k of a pair in several matrices, fitted to relations, a
// matrix made from a thesaurus.
//
// The sample is the entries (i, j) of the inputs whose terms both occur in
// relations; they are related if relations has the entry. Pairs with a term
// held out by a seeded hash are for measuring. The regression is logistic, with
// the penalty λ = 1, see [logit.Fit]:
//
//	p = 1/(1+exp(−β_0−Σ_k β_k·s_k))
//
// Similarities should fall towards 0 in each row, as the cube of a cosine does.
//
// Errors wrap [ErrRegression] if there are no related or no unrelated pairs to
// fit or measure, or if an input was made from the relations. Others name bad
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

// A sample is pairs of terms with similarities, and whether they are related.
type sample struct {
	inputs   int
	units    []uint16 // similarities in units of 1/65535, inputs per pair
	related  []bool   // by pair
	positive int      // number of related pairs
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

// An input counts as a copy of the relations if it is wrong on at most one in
// leakMistakes pairs of the rarer kind, of which there are at least leakPairs.
const leakMistakes, leakPairs = 100, 20

// checkLeaks rejects an input with all related pairs and no others.
func checkLeaks(inputs []Input, samples ...*sample) error {
	pairs, related := 0, 0
	mistakes := make([]int, len(inputs)) // pairs that are related but missing, or the reverse
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

// rowsAtOnce is the number of rows between checks of the context.
const rowsAtOnce = 1 << 14

// samplePairs returns pairs to fit to, and those of a share of terms to
// measure.
func samplePairs(ctx context.Context, u *union, relations *simmatrix.Matrix, share float64) (fitted, held *sample, err error) {
	known := make([]int32, len(u.terms)) // by term: its row in relations, or noRow
	out := make([]bool, len(u.terms))
	for i, t := range u.terms {
		known[i] = noRow
		if r, ok := slices.BinarySearch(relations.Table().Terms, t); ok {
			known[i], out[i] = int32(r), heldOut(t, share) //nolint:gosec // at most MaxTerms
		}
	}
	fitted, held = &sample{inputs: len(u.inputs)}, &sample{inputs: len(u.inputs)}
	g := newGatherer(u)
	related := make([]bool, relations.Len()) // to the current term; all false between two terms
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

func (r *Regression) measure(s *sample) Evaluation {
	share := float64(r.Related) / float64(r.Pairs)
	e := Evaluation{Pairs: s.pairs(), Related: s.positive}
	estimates := make([]float64, s.pairs())
	for p := range s.pairs() {
		z := r.logOdds(s.row(p))
		estimates[p] = logit.Logistic(z)
		y := 0.0
		loss := logit.Softplus(z)
		constant := -math.Log1p(-share)
		if s.related[p] {
			y = 1
			loss = logit.Softplus(-z)
			constant = -math.Log(share)
		}
		e.LogLoss += loss
		e.ConstantLogLoss += constant
		e.Brier += (estimates[p] - y) * (estimates[p] - y)
		e.ConstantBrier += (share - y) * (share - y)
	}
	n := float64(s.pairs())
	e.LogLoss /= n
	e.ConstantLogLoss /= n
	e.Brier /= n
	e.ConstantBrier /= n
	related := slices.Clone(s.related)
	stat.SortWeightedLabeled(estimates, related, nil)
	found, mistaken, _ := stat.ROC(nil, estimates, related, nil)
	e.AUC = integrate.Trapezoidal(mistaken, found) // the area under this curve is the probability; ties count half
	return e
}

// ErrRegression is wrapped by errors in inputs and relations.
var ErrRegression = errors.New("no regression can be fitted")

// Settings of a regression.
const (
	heldOutShare   = 0.2 // of the terms; their pairs are for measuring, not for fitting
	regressionSeed = 1   // selects these terms
	// ridge is λ, the penalty on coefficients. It keeps them finite if the inputs
	// separate related from unrelated pairs perfectly, and matters less the more
	// pairs there are.
	ridge           = 1.0
	regressionPower = 3.0 // p of an ensemble's similarity, the default for documents
)

// A Coefficient is a coefficient of a regression.
type Coefficient struct {
	Name          string  // of the input
	Value         float64 // β: how much the log-odds of a relation grow as the similarity goes from 0 to 1
	StandardError float64 // from the curvature of the likelihood; rather too small, as pairs are not independent
}

// A Regression estimates from two terms' similarities in several matrices how
// likely they are related.
type Regression struct {
	Intercept      Coefficient   // β_0, the log-odds of a pair with all similarities 0
	Coefficients   []Coefficient // by input, in order
	Pairs, Related int           // fitted to, and those that are related
	HeldOut        Evaluation    // on pairs that it was not fitted to
}

// An Evaluation compares estimates with relations that were not fitted to.
// Constant is for the share of related pairs fitted to.
type Evaluation struct {
	Pairs, Related           int
	LogLoss, ConstantLogLoss float64 // mean of −ln of the truth's estimated probability, in nats, at least 0
	Brier, ConstantBrier     float64 // mean squared distance of the estimate from 1 (related) or 0, in [0, 1]
	AUC                      float64 // probability that a related pair's estimate is above an unrelated one's; 0.5 for a constant
}

// similarity returns an ensemble's similarity, in [0, 1], from a pair's
// similarities in the inputs, in units of 1/65535:
//
//	s = (1/(1+exp(−z)))³,  z = ln(p/(1−p)) − ln(share/(1−share))
//
// with p the estimate and share the related part of the pairs fitted to,
// without which all s would be small. It orders pairs like p.
func (r *Regression) similarity(units []uint16) float64 {
	prior := math.Log(float64(r.Related) / float64(r.Pairs-r.Related))
	return math.Pow(logit.Logistic(r.logOdds(units)-prior), regressionPower)
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
	params["seed"] = strconv.Itoa(regressionSeed)
	params["pairs"] = strconv.Itoa(r.Pairs)
	params["related"] = strconv.Itoa(r.Related)
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
	_ = w.Flush() // a strings.Builder never fails
	fmt.Fprintf(&b, "held out: %d pairs, %d of them related\n", h.Pairs, h.Related)
	fmt.Fprintln(w, "  measure\tregression\tconstant")
	fmt.Fprintf(w, "  log loss\t%.4f\t%.4f\n", h.LogLoss, h.ConstantLogLoss)
	fmt.Fprintf(w, "  Brier score\t%.4f\t%.4f\n", h.Brier, h.ConstantBrier)
	fmt.Fprintf(w, "  AUC\t%.4f\t%.4f\n", h.AUC, 0.5)
	_ = w.Flush() // as above
	return b.String()
}
