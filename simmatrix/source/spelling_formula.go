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

// SpellingOptions are the settings of [FromSpelling]. Two terms at the
// Levenshtein distance d, of which the longer has m runes, have the similarity
// (Novotný 2017, equation 4.5, after Charlet and Damnati)
//
//	min(1, θ1·(1−d/m)^θ2)
type SpellingOptions struct {
	Source         string  // becomes Meta.Source: in words, where the terms come from
	Theta1, Theta2 float64 // θ1 and θ2, above 0
	LengthRatio    float64 // θ4, at least 1: terms of lengths further apart have similarity 0
	MaxDistance    int     // of two neighbors, 1 to [MaxDistance]; time rises steeply with it
	Neighbors      int     // C, the most neighbors of a term, 1 to [simmatrix.MaxNeighbors]
	// Candidate reports whether a term may be the neighbor of others, so that
	// terms that no document has take no places; nil lets all.
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

// Validate reports every setting that is out of range.
func (o *SpellingOptions) Validate() error {
	errs := []error{settings.Positive("theta1", o.Theta1), settings.Positive("theta2", o.Theta2)}
	if !(o.LengthRatio >= 1) { // written so that NaN fails
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
		"theta3":       "0", // of the published formula, a threshold
		"length_ratio": settings.FormatFloat(o.LengthRatio),
		"max_distance": strconv.Itoa(o.MaxDistance),
		"lengths":      "runes",
		"neighbors":    strconv.Itoa(o.Neighbors),
	}
}

func (o *SpellingOptions) near(longer, shorter int) bool {
	return float64(longer)/float64(shorter) <= o.LengthRatio
}

// units returns the similarity of two different terms at distance d of which
// the longer has length m, in units of 1/65535, 0 where it rounds to 0.
func (o *SpellingOptions) units(d, m int) uint16 {
	rest := max(0, 1-float64(d)/float64(m)) // no two terms are further apart than m
	return uint16(math.Round(min(o.Theta1*math.Pow(rest, o.Theta2), 1) * simmatrix.UnitsOfOne))
}
