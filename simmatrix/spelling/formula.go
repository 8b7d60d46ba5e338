package spelling

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/internal/settings"
)

// MaxDistance is the largest [Options.MaxDistance].
const MaxDistance = 4

// A Formula makes a similarity of a Levenshtein distance.
type Formula string

// The formulas: of Novotný 2017, equation 4.5, after Charlet and Damnati, and
// of Sidorov et al. 2014, equations 27 to 30. d is the distance of two terms,
// m the length of the longer one in runes.
const (
	Thesis  Formula = "thesis"  // min(1, θ1·(1−d/m)^θ2)
	Inverse Formula = "inverse" // 1/(1+d)
	Linear  Formula = "linear"  // 1−d/m
	Root    Formula = "root"    // √(1−d/m)
	Square  Formula = "square"  // (1−d/m)²
)

// formulas return the similarity for d and 1−d/m, which is in [0, 1).
// The search for neighbors needs that none rises in d or falls in m.
var formulas = map[Formula]func(o *Options, d, rest float64) float64{
	Thesis:  func(o *Options, _, rest float64) float64 { return min(1, o.Theta1*math.Pow(rest, o.Theta2)) },
	Inverse: func(_ *Options, d, _ float64) float64 { return 1 / (1 + d) },
	Linear:  func(_ *Options, _, rest float64) float64 { return rest },
	Root:    func(_ *Options, _, rest float64) float64 { return math.Sqrt(rest) },
	Square:  func(_ *Options, _, rest float64) float64 { return rest * rest },
}

// Options are the settings of [FromTerms].
type Options struct {
	Source         string // becomes Meta.Source: in words, the origin of the terms
	Formula        Formula
	Theta1, Theta2 float64 // θ1 and θ2 of [Thesis], above 0
	LengthRatio    float64 // θ4, at least 1: if one term is longer by more, the similarity is 0
	MaxDistance    int     // of two neighbors, 1 to [MaxDistance]; time grows steeply with it
	Neighbors      int     // C, the most neighbors of a term, 1 to [simmatrix.MaxNeighbors]
	// Candidate reports whether a term may be a neighbor, so that terms that no
	// document has take no places; nil allows all.
	Candidate func(term string) bool
}

// DefaultOptions returns the parameters of Novotný 2017, section 4.5.1, with
// its formula, up to a distance of 2.
func DefaultOptions() Options {
	return Options{
		Source: "edit distance", Formula: Thesis,
		Theta1: 1.8, Theta2: 5, LengthRatio: 1.5,
		MaxDistance: 2, Neighbors: 100,
	}
}

// Validate returns all errors in the settings.
func (o *Options) Validate() error {
	var errs []error
	if formulas[o.Formula] == nil {
		errs = append(errs, fmt.Errorf("formula: %q is not thesis, inverse, linear, root or square", o.Formula))
	}
	if o.Formula == Thesis {
		errs = append(errs, settings.Positive("theta1", o.Theta1), settings.Positive("theta2", o.Theta2))
	}
	if !(o.LengthRatio >= 1) { // so written that NaN fails
		errs = append(errs, fmt.Errorf("length ratio: %v is under 1", o.LengthRatio))
	}
	return errors.Join(append(errs, settings.InRange("max distance", o.MaxDistance, MaxDistance),
		settings.InRange("neighbors", o.Neighbors, simmatrix.MaxNeighbors))...)
}

func (o *Options) params() map[string]string {
	p := map[string]string{
		"formula":      string(o.Formula),
		"length_ratio": settings.FormatFloat(o.LengthRatio),
		"max_distance": strconv.Itoa(o.MaxDistance),
		"lengths":      "runes",
		"neighbors":    strconv.Itoa(o.Neighbors),
	}
	if o.Formula == Thesis {
		p["theta1"], p["theta2"] = settings.FormatFloat(o.Theta1), settings.FormatFloat(o.Theta2)
		p["theta3"] = "0" // a threshold in the published formula
	}
	return p
}

func (o *Options) near(longer, shorter int) bool {
	return float64(longer)/float64(shorter) <= o.LengthRatio
}

// units returns the similarity of two different terms at distance d, the longer
// of length m, in units of 1/65535; it may round to 0.
func (o *Options) units(d, m int) uint16 {
	rest := max(0, 1-float64(d)/float64(m)) // the distance is at most m
	return uint16(math.Round(formulas[o.Formula](o, float64(d), rest) * simmatrix.UnitsOfOne))
}
