package combine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/internal/parallel"
	"github.com/akin-search/akin/simmatrix/internal/settings"
)

// A Rule is how [Matrices] makes one similarity of several.
type Rule string

// The rules of ensembles, with s_k the similarity that input k gives a pair, 0
// where it has no such entry.
const (
	// RuleAverage is Σ_k s_k / K over the K inputs.
	RuleAverage Rule = "average"
	// RuleMinimum is min_k s_k: only pairs that all inputs have are kept.
	RuleMinimum Rule = "minimum"
	// RuleMaximum is max_k s_k.
	RuleMaximum Rule = "maximum"
	// RuleWeighted is Σ_k w_k·s_k / Σ_k w_k with the weights of the inputs.
	RuleWeighted Rule = "weighted"
	// RuleRegression is what a fitted [Regression] makes of them.
	RuleRegression Rule = "regression"
)

// An Input is one matrix of an ensemble.
type Input struct {
	// Name says in a word or two where the similarities come from. It becomes
	// one of [simmatrix.Meta.Origins], and is not [simmatrix.OriginOverrides].
	Name string
	// Matrix is over the same index terms as the others, or over some of them.
	Matrix *simmatrix.Matrix
	// Weight is w_k, above 0 and finite. Only [RuleWeighted] reads it.
	Weight float64
}

// Options are the settings of [Matrices].
type Options struct {
	// Source becomes Meta.Source.
	Source string
	// Rule makes one similarity of several.
	Rule Rule
	// Neighbors is C, the largest number of neighbors of a term, 1 to
	// [simmatrix.MaxNeighbors].
	Neighbors int
	// Regression was fitted to the same inputs in the same order. Only
	// [RuleRegression] reads it.
	Regression *Regression
	// Protect reports the pairs that come before all others in their row; nil
	// is none. It is called by several goroutines at once.
	Protect func(term, neighbor string) bool
}

// DefaultOptions returns the maximum with Neighbors 200. Over a matrix learned
// from documents and one of edit distances the maximum ranked five judged
// collections better than either and than the average; a regression ranked them
// better still.
func DefaultOptions() Options {
	return Options{Source: "ensemble", Rule: RuleMaximum, Neighbors: 200}
}

// Validate reports every setting that is out of range.
func (o *Options) Validate() error {
	errs := []error{settings.InRange("neighbors", o.Neighbors, simmatrix.MaxNeighbors)}
	switch o.Rule {
	case RuleAverage, RuleMinimum, RuleMaximum, RuleWeighted:
	case RuleRegression:
		if o.Regression == nil {
			errs = append(errs, errors.New("rule: regression: none is fitted"))
		}
	default:
		errs = append(errs, fmt.Errorf("rule: %q is not average, minimum, maximum, weighted or regression", o.Rule))
	}
	return errors.Join(errs...)
}

// Matrices makes one matrix of several by a rule (Novotný, Vector Space
// Representations in Information Retrieval, 2017, section 4.5.3).
//
// The candidates of a term are its neighbors in any input. Ordered by their
// best rank in an input, ties by the combined similarity, then by term, the
// first Neighbors of them become the row; protected pairs go first. A rank is
// one plus the number of neighbors that are more similar. Pairs whose combined
// similarity is 0 are no candidates. An entry that an input lacks is 0, also
// for terms that it lacks.
//
// The terms are those of all inputs. Document frequencies and Meta.Docs are the
// largest that an input has. The origins of an entry are the inputs that have
// the pair; their own origins are dropped.
//
// The same inputs give the same bytes. Matrices returns an error that names
// every bad setting and input, and the error of ctx soon after it ends. It
// takes about 14 bytes for each entry of the result.
func Matrices(ctx context.Context, inputs []Input, opts Options, progress simmatrix.Progress) (*simmatrix.Matrix, error) {
	combine, err := opts.combiner(inputs)
	if err := errors.Join(err, opts.Validate(), checkInputs(inputs)); err != nil {
		return nil, err
	}
	u := newUnion(inputs)
	entries, err := parallel.Rows(ctx, len(u.terms), 512, true, func() func(i int) []simmatrix.Entry {
		g := newGatherer(u)
		return func(i int) []simmatrix.Entry { return g.combinedRow(i, combine, opts.Neighbors, opts.Protect) }
	}, parallel.NewStage(progress, "combining", len(u.terms)))
	if err != nil {
		return nil, err
	}
	m := &simmatrix.Table{
		Meta:     simmatrix.Meta{Source: opts.Source, Params: opts.params(inputs), Origins: u.names(), Docs: u.docs},
		Terms:    u.terms,
		DocFreqs: u.docFreqs,
		Entries:  entries,
	}
	return m.Matrix()
}

// A combiner makes one similarity in [0, 1] of those of a pair in each input,
// in units of 1/65535.
type combiner func(units []uint16) float64

func (o *Options) combiner(inputs []Input) (combiner, error) {
	switch o.Rule {
	case RuleMinimum:
		return func(units []uint16) float64 { return float64(slices.Min(units)) / simmatrix.UnitsOfOne }, nil
	case RuleMaximum:
		return func(units []uint16) float64 { return float64(slices.Max(units)) / simmatrix.UnitsOfOne }, nil
	case RuleAverage:
		weights := make([]float64, len(inputs))
		for k := range weights {
			weights[k] = 1
		}
		return weightedMean(weights), nil
	case RuleWeighted:
		weights := make([]float64, len(inputs))
		var errs []error
		for k, in := range inputs {
			if weights[k] = in.Weight; !(in.Weight > 0) || math.IsInf(in.Weight, 1) { // written so that NaN fails
				errs = append(errs, fmt.Errorf("input %q: weight %v is not above 0 and finite", in.Name, in.Weight))
			}
		}
		return weightedMean(weights), errors.Join(errs...)
	case RuleRegression:
		if o.Regression == nil {
			return nil, nil // Validate reports it
		}
		return o.Regression.combiner(inputs)
	}
	return nil, nil // Validate reports it
}

// weightedMean returns the mean with weights above 0 and finite. It scales them
// in place so that no sum is infinite.
func weightedMean(weights []float64) combiner {
	total, largest := 0.0, slices.Max(append([]float64{0}, weights...))
	for k := range weights {
		weights[k] /= largest
		total += weights[k]
	}
	return func(units []uint16) float64 {
		sum := 0.0
		for k, w := range weights {
			sum += w * float64(units[k])
		}
		return sum / total / simmatrix.UnitsOfOne
	}
}

func checkInputs(inputs []Input) error {
	if err := settings.InRange("inputs", len(inputs), simmatrix.MaxOrigins); err != nil {
		return err
	}
	var errs []error
	for k, in := range inputs {
		if in.Matrix == nil {
			errs = append(errs, fmt.Errorf("input %q has no matrix", in.Name))
		}
		if in.Name == "" || slices.ContainsFunc(inputs[:k], func(other Input) bool { return other.Name == in.Name }) {
			errs = append(errs, fmt.Errorf("name %q of an input: empty or repeated", in.Name))
		}
		if in.Name == simmatrix.OriginOverrides {
			errs = append(errs, fmt.Errorf("name %q of an input: the entries that overrides set are called so; give it another name", in.Name))
		}
	}
	return errors.Join(errs...)
}

// params describes how the ensemble and its inputs were made.
func (o *Options) params(inputs []Input) map[string]string {
	params := map[string]string{"rule": string(o.Rule), "neighbors": strconv.Itoa(o.Neighbors)}
	for _, in := range inputs {
		for name, value := range in.Matrix.Table().Meta.Params {
			params[in.Name+"."+name] = value
		}
		params[in.Name+".source"] = in.Matrix.Table().Meta.Source
		if o.Rule == RuleWeighted {
			params[in.Name+".weight"] = settings.FormatFloat(in.Weight)
		}
	}
	if o.Rule == RuleRegression {
		o.Regression.addParams(params)
	}
	return params
}
