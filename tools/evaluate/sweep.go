package evaluate

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/akin-search/akin/simmatrix"
)

// SweptMeasure is what a sweep compares matrices by.
const SweptMeasure = "nDCG@10"

// A MatrixSetting says how a matrix is made of an index.
type MatrixSetting struct {
	Neighbors     int     `json:"neighbors"`                 // of a term at most
	MinSimilarity float64 `json:"min_similarity"`            // similarities up to it are dropped
	Power         float64 `json:"power"`                     // of the cosine
	Share         float64 `json:"embedding_share,omitempty"` // of word vectors; 0 for none
}

// The factors of a sweep.
const (
	FactorNeighbors     = "neighbors"
	FactorMinSimilarity = "min-similarity"
	FactorPower         = "power"
	FactorShare         = "embedding-share"
)

// A Variant is a setting to try. Factor is what it changes of the default, to
// Value; "" for the default itself.
type Variant struct {
	MatrixSetting

	Factor string  `json:"factor,omitempty"`
	Value  float64 `json:"value,omitempty"`
}

// String says what the variant changes.
func (v Variant) String() string {
	if v.Factor == "" {
		return "the default"
	}
	return v.Factor + " " + formatValue(v.Value)
}

// Flags are those of "akin matrix build" for the variant, besides the flags
// that say what is read.
func (v Variant) Flags() string {
	switch {
	case v.Factor == "":
		return "the defaults"
	case v.Factor == FactorNeighbors:
		return "--top " + formatValue(v.Value)
	case v.Factor == FactorShare && v.Value == 0:
		return "--language-model none"
	}
	return "--" + v.Factor + " " + formatValue(v.Value)
}

func formatValue(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// A Grid has the values to try for each factor.
type Grid struct {
	Neighbors                   []int
	MinSimilarity, Power, Share []float64
}

// mostVariants bounds the matrices of a sweep, each of which is made and
// searched with.
const mostVariants = 50

// Validate returns an error for each value out of range, and for too many.
func (g *Grid) Validate() error {
	var errs []error
	within := func(flag string, values []float64, ok func(v float64) bool, want string) {
		for _, v := range values {
			if !ok(v) { // also for NaN
				errs = append(errs, fmt.Errorf("--%s: %v not in %s", flag, v, want))
			}
		}
	}
	for _, n := range g.Neighbors {
		if n < 1 || n > simmatrix.MaxNeighbors {
			errs = append(errs, fmt.Errorf("--%s: %d not in [1, %d]", FactorNeighbors, n, simmatrix.MaxNeighbors))
		}
	}
	belowOne := func(v float64) bool { return v >= 0 && v < 1 }
	within(FactorMinSimilarity, g.MinSimilarity, belowOne, "[0, 1)")
	within(FactorPower, g.Power, func(v float64) bool { return v > 0 && v <= 100 }, "(0, 100]")
	within(FactorShare, g.Share, belowOne, "[0, 1)")
	if n := len(g.Neighbors) + len(g.MinSimilarity) + len(g.Power) + len(g.Share); n > mostVariants {
		errs = append(errs, fmt.Errorf("%d values to try, at most %d", n, mostVariants))
	}
	return errors.Join(errs...)
}

// Variants returns the default, and each setting that differs from it in one
// factor, by factor and ascending value.
func (g *Grid) Variants(usual MatrixSetting) []Variant {
	neighbors := make([]float64, len(g.Neighbors))
	for k, n := range g.Neighbors {
		neighbors[k] = float64(n)
	}
	variants := []Variant{{MatrixSetting: usual}}
	for _, f := range []struct {
		name   string
		values []float64
		set    func(s *MatrixSetting, v float64)
	}{
		{FactorNeighbors, neighbors, func(s *MatrixSetting, v float64) { s.Neighbors = int(v) }},
		{FactorMinSimilarity, g.MinSimilarity, func(s *MatrixSetting, v float64) { s.MinSimilarity = v }},
		{FactorPower, g.Power, func(s *MatrixSetting, v float64) { s.Power = v }},
		{FactorShare, g.Share, func(s *MatrixSetting, v float64) { s.Share = v }},
	} {
		for _, value := range slices.Compact(slices.Sorted(slices.Values(f.values))) {
			v := Variant{usual, f.name, value}
			f.set(&v.MatrixSetting, value)
			if v.MatrixSetting != usual {
				variants = append(variants, v)
			}
		}
	}
	return variants
}

// valueOf returns the value of a factor in a setting.
func (s MatrixSetting) valueOf(factor string) float64 {
	return map[string]float64{
		FactorNeighbors: float64(s.Neighbors), FactorMinSimilarity: s.MinSimilarity, FactorPower: s.Power, FactorShare: s.Share,
	}[factor]
}

// A SweptMatrix has the figures of a matrix.
type SweptMatrix struct {
	Variant
	Expansion

	Bytes int64 `json:"bytes"` // of its file
	// EngineMillis is the mean time of a search as the engine reports it, and
	// DirectMillis that of direct search in turn with it.
	EngineMillis float64 `json:"engine_ms"`
	DirectMillis float64 `json:"direct_engine_ms"`
	// AddedTerms is the mean number of terms that were added to a search.
	AddedTerms float64 `json:"added_terms"`
	// NDCG has the mean nDCG@10, and the gain over direct search. The probability
	// is corrected for all matrices.
	NDCG Estimate `json:"nDCG@10"`
	// Behind is the mean difference of nDCG@10 to the best matrix, with its
	// interval.
	Behind         float64  `json:"behind_best"`
	BehindInterval Interval `json:"behind_best_interval"`
}

// A SweepResult compares matrices on judged searches.
type SweepResult struct {
	Queries  int           `json:"queries"`
	Direct   float64       `json:"direct"`   // mean nDCG@10 of direct search
	Matrices []SweptMatrix `json:"matrices"` // in the order of [Grid.Variants]
	Best     int           `json:"best"`     // index of the one with the largest nDCG@10
	// Take is the index of the recommended matrix: the smallest file among those
	// whose nDCG@10 is not significantly below that of the best, and significantly
	// above direct search if that of the best is.
	Take    int     `json:"take"`
	LeftOut LeftOut `json:"left_out"`

	notes []Note
}

// MeanEngine returns the mean of the engine's times of answers of an arm, in
// milliseconds.
func MeanEngine(answered []Answered, arm int) float64 {
	sum := 0.0
	for _, a := range answered {
		sum += millis(a.Answers[arm].Engine)
	}
	return sum / float64(max(len(answered), 1))
}

// Sweep compares the arms of a result, of which the first is direct search and
// the others are searches with the matrices, in their order. The matrices have
// their variants, sizes and times.
func Sweep(r *Result, matrices []SweptMatrix) *SweepResult {
	s := &SweepResult{
		Queries: len(r.Queries), Direct: r.Arms[0].Measures[SweptMeasure].Mean, Matrices: matrices, LeftOut: r.LeftOut, notes: r.Notes(),
	}
	for k := range matrices {
		arm := r.Arms[k+1]
		matrices[k].NDCG, matrices[k].Expansion = arm.Measures[SweptMeasure], arm.Expansion
		if arm.AddedTerms != nil {
			matrices[k].AddedTerms = *arm.AddedTerms
		}
		if c := cmp.Compare(matrices[k].NDCG.Mean, matrices[s.Best].NDCG.Mean); c > 0 || c == 0 && matrices[k].Bytes < matrices[s.Best].Bytes {
			s.Best = k
		}
	}
	differences := make([]float64, len(r.Queries))
	for k := range matrices {
		for i, q := range r.Queries {
			differences[i] = q.Arms[k+1].Measures[SweptMeasure] - q.Arms[s.Best+1].Measures[SweptMeasure]
		}
		matrices[k].Behind, matrices[k].BehindInterval = estimate(differences)
	}
	s.Take = s.Best
	for k, m := range matrices {
		if m.BehindInterval.High >= 0 && (m.gains() || !matrices[s.Best].gains()) && m.Bytes < matrices[s.Take].Bytes {
			s.Take = k
		}
	}
	return s
}

// gains reports whether the matrix ranks better than direct search beyond
// chance.
func (m SweptMatrix) gains() bool { return m.NDCG.Gain.Mean > 0 && m.NDCG.Gain.Holm < 1-confidence }
