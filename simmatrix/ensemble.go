package simmatrix

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
)

// A Rule is how [Combine] makes one similarity of several.
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
	// one of [Meta.Origins], and is not [OriginOverrides].
	Name string
	// Matrix is over the same index terms as the others, or over some of them.
	Matrix *Matrix
	// Weight is w_k, above 0 and finite. Only [RuleWeighted] reads it.
	Weight float64
}

// CombineOptions are the settings of [Combine].
type CombineOptions struct {
	// Source becomes Meta.Source.
	Source string
	// Rule makes one similarity of several.
	Rule Rule
	// Neighbors is C, the largest number of neighbors of a term, 1 to
	// [MaxNeighbors].
	Neighbors int
	// Regression was fitted to the same inputs in the same order. Only
	// [RuleRegression] reads it.
	Regression *Regression
	// Protect tells the pairs that have their place in the row before all
	// others; nil is none. It is called by several goroutines at once.
	Protect func(term, neighbor string) bool
}

// DefaultCombineOptions returns the maximum with Neighbors 200, as many as the
// matrices have that [DefaultCorpusOptions] and [DefaultVectorOptions] make.
// Over a matrix learnt from documents and one of edit distances the maximum
// ranked five judged collections better than either and than the average, which
// weakens what one input alone has; a regression ranked them better still.
func DefaultCombineOptions() CombineOptions {
	return CombineOptions{Source: "ensemble", Rule: RuleMaximum, Neighbors: 200}
}

// Validate reports every setting that is out of range.
func (o *CombineOptions) Validate() error {
	errs := []error{inRange("neighbors", o.Neighbors, MaxNeighbors)}
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

// Combine makes one matrix of several by a rule (Novotný, Vector Space
// Representations in Information Retrieval, 2017, section 4.5.3).
//
// The candidates of a term are its neighbors in any input. Ordered by the best
// rank that each has in an input, ties by the combined similarity, then by
// term, the first Neighbors of them become the row, in descending similarity;
// pairs that Protect tells go before all others. A
// rank is one plus the number of neighbors that are more similar, so that
// neighbors of one similarity share it. Pairs whose combined similarity is 0
// are no candidates.
//
// What an input does not have is similarity 0, also of terms that it does not
// know: nothing tells a pair that a source has judged unlike from one that it
// could not judge, and rows of terms that few inputs know would otherwise hold
// larger similarities than the rest.
//
// The terms are those of all inputs. Document frequencies and Meta.Docs are the
// largest that an input has. An entry comes from the inputs that have the pair;
// what they have for origins themselves goes.
//
// The same inputs give the same bytes on any number of processors. Combine
// returns an error that names every setting and input that it cannot take, and
// the error of ctx soon after it ends. It holds about 14 bytes for each entry
// of the result, beside the inputs.
func Combine(ctx context.Context, inputs []Input, opts CombineOptions, progress Progress) (*Matrix, error) {
	combine, err := opts.combiner(inputs)
	if err := errors.Join(err, opts.Validate(), checkInputs(inputs)); err != nil {
		return nil, err
	}
	u := newUnion(inputs)
	parts := make([]entries, (len(u.terms)+combinedAtOnce-1)/combinedAtOnce)
	stage := newStage(progress, "combining", len(u.terms))
	err = eachBlock(ctx, len(u.terms), combinedAtOnce, func() func(lo, hi int) {
		g := newGatherer(u)
		return func(lo, hi int) {
			part := newEntries(hi-lo, true)
			for i := lo; i < hi; i++ {
				part.appendRow(g.combinedRow(i, combine, opts.Neighbors, opts.Protect))
			}
			parts[lo/combinedAtOnce] = part
			stage.add(hi - lo)
		}
	})
	if err != nil {
		return nil, err
	}
	m := &Matrix{
		meta:     Meta{Source: opts.Source, Params: opts.params(inputs), Origins: u.names(), Docs: u.docs},
		terms:    u.terms,
		docFreqs: u.docFreqs,
		entries:  concatenate(parts),
	}
	if err := m.finish(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return m, nil
}

// combinedAtOnce is the number of rows of a block.
const combinedAtOnce = 512

// concatenate puts the rows of parts one after the other. It uses parts up.
func concatenate(parts []entries) entries {
	rows, total := 0, 0
	for k := range parts {
		rows += len(parts[k].offsets) - 1
		total += len(parts[k].cols)
	}
	all := newEntries(rows, true)
	all.cols, all.sims, all.origins = make([]uint32, 0, total), make([]uint16, 0, total), make([]uint8, 0, total)
	for k := range parts {
		for _, offset := range parts[k].offsets[1:] {
			all.offsets = append(all.offsets, len(all.cols)+offset)
		}
		all.cols = append(all.cols, parts[k].cols...)
		all.sims = append(all.sims, parts[k].sims...)
		all.origins = append(all.origins, parts[k].origins...)
		parts[k] = entries{}
	}
	return all
}

// A combiner makes one similarity in [0, 1] of those that the inputs give a
// pair, in units of 1/65535, one for each input.
type combiner func(units []uint16) float64

// combiner returns that of the rule, nil for none.
func (o *CombineOptions) combiner(inputs []Input) (combiner, error) {
	switch o.Rule {
	case RuleMinimum:
		return func(units []uint16) float64 { return float64(slices.Min(units)) / similarityUnits }, nil
	case RuleMaximum:
		return func(units []uint16) float64 { return float64(slices.Max(units)) / similarityUnits }, nil
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
			return nil, nil // Validate tells
		}
		return o.Regression.combiner(inputs)
	}
	return nil, nil // Validate tells
}

// weightedMean returns the mean with weights that are above 0 and finite. It
// scales them in place, so that no sum of them is infinite.
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
		return sum / total / similarityUnits
	}
}

// checkInputs reports what is wrong with the inputs of an ensemble.
func checkInputs(inputs []Input) error {
	if err := inRange("inputs", len(inputs), MaxOrigins); err != nil {
		return err
	}
	var errs []error
	for k, in := range inputs {
		if in.Matrix == nil {
			errs = append(errs, fmt.Errorf("input %q has no matrix", in.Name))
		}
		if in.Name == "" || slices.ContainsFunc(inputs[:k], func(other Input) bool { return other.Name == in.Name }) {
			errs = append(errs, fmt.Errorf("name %q of an input: empty or there twice", in.Name))
		}
		if in.Name == OriginOverrides {
			errs = append(errs, fmt.Errorf("name %q of an input: the entries that overrides set are called so; give it another name", in.Name))
		}
	}
	return errors.Join(errs...)
}

// params tells how the ensemble and its inputs were made.
func (o *CombineOptions) params(inputs []Input) map[string]string {
	params := map[string]string{"rule": string(o.Rule), "neighbors": strconv.Itoa(o.Neighbors)}
	for _, in := range inputs {
		for name, value := range in.Matrix.meta.Params {
			params[in.Name+"."+name] = value
		}
		params[in.Name+".source"] = in.Matrix.meta.Source
		if o.Rule == RuleWeighted {
			params[in.Name+".weight"] = formatFloat(in.Weight)
		}
	}
	if o.Rule == RuleRegression {
		o.Regression.addParams(params)
	}
	return params
}
