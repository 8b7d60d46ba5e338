package source

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/internal/settings"
)

// MaxDistance is the largest [SpellingOptions.MaxDistance].
const MaxDistance = 4

// SpellingOptions are the settings of [FromSpelling]. Two terms at Levenshtein
// distance d, the longer with m runes, have the similarity (Novotný 2017,
// equation 4.5, after Charlet and Damnati)
//
//	min(1, θ1·(1−d/m)^θ2)
type SpellingOptions struct {
	Source         string  // becomes Meta.Source: in words, the origin of the terms
	Theta1, Theta2 float64 // θ1 and θ2, above 0
	LengthRatio    float64 // θ4, at least 1: if one term is longer by more, the similarity is 0
	MaxDistance    int     // of two neighbors, 1 to [MaxDistance]; time grows steeply with it
	Neighbors      int     // C, the most neighbors of a term, 1 to [simmatrix.MaxNeighbors]
	// Candidate reports whether a term may be a neighbor, so that terms that no
	// document has take no places; nil allows all.
	Candidate func(term string) bool
}

// DefaultSpellingOptions returns the parameters of Novotný 2017, section 4.5.1,
// up to a distance of 2.
func DefaultSpellingOptions() SpellingOptions {
	return SpellingOptions{
		Source: "edit distance",
		Theta1: 1.8, Theta2: 5, LengthRatio: 1.5,
		MaxDistance: 2, Neighbors: 100,
	}
}

// Validate returns all errors in the settings.
func (o *SpellingOptions) Validate() error {
	errs := []error{settings.Positive("theta1", o.Theta1), settings.Positive("theta2", o.Theta2)}
	if !(o.LengthRatio >= 1) { // so written that NaN fails
		errs = append(errs, fmt.Errorf("length ratio: %v is under 1", o.LengthRatio))
	}
	return errors.Join(append(errs, settings.InRange("max distance", o.MaxDistance, MaxDistance),
		settings.InRange("neighbors", o.Neighbors, simmatrix.MaxNeighbors))...)
}

func (o *SpellingOptions) params() map[string]string {
	return map[string]string{
		"formula":      "power",
		"theta1":       settings.FormatFloat(o.Theta1),
		"theta2":       settings.FormatFloat(o.Theta2),
		"theta3":       "0", // a threshold in the published formula
		"length_ratio": settings.FormatFloat(o.LengthRatio),
		"max_distance": strconv.Itoa(o.MaxDistance),
		"lengths":      "runes",
		"neighbors":    strconv.Itoa(o.Neighbors),
	}
}

func (o *SpellingOptions) near(longer, shorter int) bool {
	return float64(longer)/float64(shorter) <= o.LengthRatio
}

// units returns the similarity of two different terms at distance d, the longer
// of length m, in units of 1/65535; it may round to 0.
func (o *SpellingOptions) units(d, m int) uint16 {
	rest := max(0, 1-float64(d)/float64(m)) // the distance is at most m
	return uint16(math.Round(min(o.Theta1*math.Pow(rest, o.Theta2), 1) * simmatrix.UnitsOfOne))
}
