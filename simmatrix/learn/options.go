package learn

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/internal/settings"
)

// Parts says which vectors [FromCorpus] learns from.
type Parts uint8

// The parts.
const (
	// BothParts takes the mean of the two cosines.
	BothParts Parts = iota
	// CooccurrencePart takes only co-occurrence in a window.
	CooccurrencePart
	// DocumentsPart takes only the term-document matrix.
	DocumentsPart
)

func partNames() []string { return []string{"both", "cooccurrence", "documents"} }

// String returns the name of p, such as "both".
func (p Parts) String() string {
	if names := partNames(); int(p) < len(names) {
		return names[p]
	}
	return "Parts(" + strconv.Itoa(int(p)) + ")"
}

// ParseParts returns the parts of a name: "both", "cooccurrence" or
// "documents".
func ParseParts(name string) (Parts, error) {
	for p := range BothParts + DocumentsPart + 1 {
		if p.String() == name {
			return p, nil
		}
	}
	return 0, fmt.Errorf("parts %q: want one of %q", name, partNames())
}

// CorpusOptions are the settings of [FromCorpus].
type CorpusOptions struct {
	// Source becomes Meta.Source: in words, where the documents come from.
	Source string
	// MinDocFreq is the smallest document frequency of a term that gets a
	// row, at least 1.
	MinDocFreq int
	// MaxTerms keeps the most frequent terms, those that are only a context
	// included, ties by term in byte order; 0 is no bound.
	MaxTerms int
	// Parts says which vectors are learned; 0 is both.
	Parts Parts
	// Dimensions of each part of the term vectors, 1 to 1000.
	Dimensions int
	// Window is how many terms apart two terms may stand to co-occur, 1 to 6.
	Window int
	// ContextPower is α, to which context frequencies are raised, in (0, 1].
	ContextPower float64
	// Shift, at least 0, is subtracted from the pointwise mutual information
	// before negative values are cut off: ln k has the effect of k negative
	// samples (Levy and Goldberg, 2014).
	Shift float64
	// MinCooccurrence, at least 0, is the smallest Σ 1/distance over all the
	// places where two terms meet that counts as co-occurring.
	MinCooccurrence float64
	// Neighbors is C, the largest number of neighbors of a term, 1 to
	// [simmatrix.MaxNeighbors].
	Neighbors int
	// Power is p in s = max(0, cos)^p, above 0.
	Power float64
	// Seed starts the random projection of the singular value decomposition.
	Seed uint64
	// MaxMemory bounds in bytes, roughly, what the corpus and all learned from
	// it take at once; 0 is no bound. It changes no result.
	MaxMemory int64
}

// DefaultCorpusOptions returns the settings that raised the ranking quality
// most over five judged collections: MinDocFreq 3, both parts, Dimensions 100,
// Window 5, ContextPower 0.75, Neighbors 200, Power 3, nothing shifted or
// bounded. Wider windows and more dimensions did not help.
func DefaultCorpusOptions() CorpusOptions {
	return CorpusOptions{
		Source: "documents", MinDocFreq: 3, Dimensions: 100, Window: 5, ContextPower: defaultContextPower,
		Neighbors: 200, Power: 3, Seed: 1,
	}
}

// Validate reports every setting that is out of range.
func (o *CorpusOptions) Validate() error {
	var errs []error
	fail := func(bad bool, format string, value any) {
		if bad {
			errs = append(errs, fmt.Errorf(format, value))
		}
	}
	fail(o.MaxTerms < 0, "max terms: %d is negative", o.MaxTerms)
	fail(o.Parts > DocumentsPart, "parts: %v is none", o.Parts)
	// Written so that NaN fails.
	fail(!(o.ContextPower > 0 && o.ContextPower <= 1), "context power: %v not in (0, 1]", o.ContextPower)
	fail(!(o.Shift >= 0 && !math.IsInf(o.Shift, 1)), "shift: %v is no number from 0 up", o.Shift)
	fail(!(o.MinCooccurrence >= 0 && o.MinCooccurrence <= math.MaxInt32),
		"min co-occurrence: %v not in [0, 2147483647]", o.MinCooccurrence)
	fail(o.MaxMemory < 0, "max memory: %d is negative", o.MaxMemory)
	return errors.Join(append(errs,
		settings.InRange("min doc freq", o.MinDocFreq, math.MaxInt32),
		settings.InRange("dimensions", o.Dimensions, 1000),
		settings.InRange("window", o.Window, maxWindow),
		validateRows(o.Neighbors, o.Power),
	)...)
}

func validateRows(neighbors int, power float64) error {
	err := settings.InRange("neighbors", neighbors, simmatrix.MaxNeighbors)
	if !(power > 0) || math.IsInf(power, 1) { // written so that NaN fails
		err = errors.Join(err, fmt.Errorf("power: %v is not above 0", power))
	}
	return err
}

func (o *CorpusOptions) params() map[string]string {
	p := map[string]string{
		"min_doc_freq": strconv.Itoa(o.MinDocFreq),
		"parts":        o.Parts.String(),
		"dimensions":   strconv.Itoa(o.Dimensions),
		"neighbors":    strconv.Itoa(o.Neighbors),
		"power":        settings.FormatFloat(o.Power),
		"seed":         strconv.FormatUint(o.Seed, 10),
	}
	if o.MaxTerms > 0 {
		p["max_terms"] = strconv.Itoa(o.MaxTerms)
	}
	if o.Parts != DocumentsPart {
		p["window"] = strconv.Itoa(o.Window)
		p["context_power"] = settings.FormatFloat(o.ContextPower)
		p["shift"] = settings.FormatFloat(o.Shift)
		p["min_cooccurrence"] = settings.FormatFloat(o.MinCooccurrence)
	}
	return p
}
