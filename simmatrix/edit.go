package simmatrix

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
)

// MaxEditDistance is the largest [EditOptions.MaxDistance].
const MaxEditDistance = 4

// An EditFormula says how an edit distance becomes a similarity. In all of
// them d is the Levenshtein distance of the two terms and m the length of the
// longer one, which is the largest distance that two terms of their lengths
// can have. All fall in d and rise, or stay, in m.
type EditFormula string

// The formulas.
const (
	// EditPower is min(1, θ1·(1−d/m)^θ2): Novotný 2017, equation 4.5, after
	// Charlet and Damnati.
	EditPower EditFormula = "power"
	// EditReciprocal is 1/(1+d): Sidorov et al. 2014, equation 27.
	EditReciprocal EditFormula = "reciprocal"
	// EditLinear is 1−d/m: Sidorov et al. 2014, equation 28.
	EditLinear EditFormula = "linear"
	// EditRoot is √(1−d/m): Sidorov et al. 2014, equation 29.
	EditRoot EditFormula = "root"
	// EditSquare is (1−d/m)²: Sidorov et al. 2014, equation 30.
	EditSquare EditFormula = "square"
)

// EditOptions are the settings of [FromEditDistance].
type EditOptions struct {
	// Source becomes Meta.Source: in words, where the terms come from.
	Source string
	// Formula makes similarities of distances.
	Formula EditFormula
	// Theta1 is θ1 of [EditPower], above 0. The other formulas have none.
	Theta1 float64
	// Theta2 is θ2 of [EditPower], above 0. The other formulas have none.
	Theta2 float64
	// Theta3 is θ3 in [0, 1): what a formula makes that is at or under it
	// counts as 0.
	Theta3 float64
	// LengthRatio is θ4, at least 1: terms of which the longer has more than
	// LengthRatio times the length of the shorter have similarity 0. Infinity
	// prunes nothing.
	LengthRatio float64
	// MaxDistance is the largest distance of two neighbors, 1 to
	// [MaxEditDistance]. The formulas go on beyond it, as far as two terms
	// have one letter in common, and are cut off here: a pair beyond
	// MaxDistance has similarity 0. Time rises steeply with it.
	MaxDistance int
	// Bytes counts lengths and distances in bytes of UTF-8, as the thesis
	// does, and not in runes, where a misspelt letter is one edit in every
	// script.
	Bytes bool
	// Neighbors is C, the largest number of neighbors of a term, 1 to
	// [MaxNeighbors].
	Neighbors int
	// Candidate reports whether a term may be the neighbor of others; nil lets
	// all. Terms that no document has are none: they would take the places of
	// terms that can be found.
	Candidate func(term string) bool
}

// DefaultEditOptions returns the parameters that Novotný 2017, section 4.5.1,
// gives for equation 4.5 (θ1 = 1.8, θ2 = 5, θ3 = 0, θ4 = 1.5, C = 100), over
// runes, up to a distance of 2. Four in five misspellings are one wrong,
// missing or added letter or a swap of two that follow each other (Damerau
// 1964), and a swap has distance 2.
func DefaultEditOptions() EditOptions {
	return EditOptions{
		Source: "edit distance", Formula: EditPower,
		Theta1: 1.8, Theta2: 5, Theta3: 0, LengthRatio: 1.5,
		MaxDistance: 2, Neighbors: 100,
	}
}

// Validate reports every setting that is out of range.
func (o *EditOptions) Validate() error {
	var errs []error
	switch o.Formula {
	case EditPower:
		errs = append(errs, positive("theta1", o.Theta1), positive("theta2", o.Theta2))
	case EditReciprocal, EditLinear, EditRoot, EditSquare:
	default:
		errs = append(errs, fmt.Errorf("formula: %q is none of %s, %s, %s, %s and %s",
			o.Formula, EditPower, EditReciprocal, EditLinear, EditRoot, EditSquare))
	}
	if !(o.Theta3 >= 0 && o.Theta3 < 1) { // written so that NaN fails
		errs = append(errs, fmt.Errorf("theta3: %v not in [0, 1)", o.Theta3))
	}
	if !(o.LengthRatio >= 1) {
		errs = append(errs, fmt.Errorf("length ratio: %v is under 1", o.LengthRatio))
	}
	errs = append(errs,
		inRange("max distance", o.MaxDistance, MaxEditDistance),
		inRange("neighbors", o.Neighbors, MaxNeighbors))
	return errors.Join(errs...)
}

func positive(name string, v float64) error {
	if !(v > 0) || math.IsInf(v, 1) {
		return fmt.Errorf("%s: %v is not above 0", name, v)
	}
	return nil
}

func (o *EditOptions) params() map[string]string {
	p := map[string]string{
		"formula":      string(o.Formula),
		"theta3":       formatFloat(o.Theta3),
		"length_ratio": formatFloat(o.LengthRatio),
		"max_distance": strconv.Itoa(o.MaxDistance),
		"lengths":      "runes",
		"neighbors":    strconv.Itoa(o.Neighbors),
	}
	if o.Formula == EditPower {
		p["theta1"], p["theta2"] = formatFloat(o.Theta1), formatFloat(o.Theta2)
	}
	if o.Bytes {
		p["lengths"] = "bytes"
	}
	return p
}

// near reports whether LengthRatio allows two terms of these lengths.
func (o *EditOptions) near(longer, shorter int) bool {
	return float64(longer)/float64(shorter) <= o.LengthRatio
}

// units returns the similarity of two different terms at distance d of which
// the longer has length m, in units of 1/65535, 0 where it rounds to 0.
func (o *EditOptions) units(d, m int) uint16 {
	rest := max(0, 1-float64(d)/float64(m)) // no two terms are further apart than m
	var s float64
	switch o.Formula {
	case EditPower:
		s = o.Theta1 * math.Pow(rest, o.Theta2)
	case EditReciprocal:
		s = 1 / (1 + float64(d))
	case EditLinear:
		s = rest
	case EditRoot:
		s = math.Sqrt(rest)
	case EditSquare:
		s = rest * rest
	}
	if s <= o.Theta3 {
		return 0
	}
	return uint16(math.Round(min(s, 1) * similarityUnits))
}

// FromEditDistance returns the matrix of the terms by the Levenshtein distance
// of their spellings, the smallest number of letters to insert, delete and
// replace to turn one into the other: s_ij is what Formula makes of it, 0
// where it is at or under Theta3 or rounds to 0, where the distance is above
// MaxDistance, and where the lengths are further apart than LengthRatio. Each
// row holds the Neighbors largest among the candidates, ties in ascending byte
// order of the term.
//
// No pair is missed, and no distance is approximated: the terms are in a radix
// tree, which is walked for each term as far as beginnings of other terms are
// within MaxDistance of one of its own, and what is found there is near enough
// to get into the row. Terms of which all are near each other take no longer
// than others. The worst that can be, very long terms that differ only at
// their beginnings, takes as long as comparing all pairs does. Beside the
// terms and the matrix it takes under 150 bytes a term, whatever they are.
//
// FromEditDistance returns [ErrNoVocabulary] where there is no term, an error
// that wraps [ErrInvalid] and names the term where one is empty, not UTF-8,
// longer than [MaxTermBytes] or there twice, an error that names each option
// out of range, and the error of ctx soon after it ends.
func FromEditDistance(ctx context.Context, terms []Term, opts EditOptions, progress Progress) (*Matrix, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	switch n := len(terms); {
	case n == 0:
		return nil, fmt.Errorf("%w: the list of terms is empty", ErrNoVocabulary)
	case n > MaxTerms:
		return nil, fmt.Errorf("%w: %d terms, at most %d", ErrInvalid, n, MaxTerms)
	}
	sorted := slices.Clone(terms)
	slices.SortFunc(sorted, func(a, b Term) int { return cmp.Compare(a.Text, b.Text) })
	m := &Matrix{meta: Meta{Source: opts.Source, Params: opts.params()}}
	for i, t := range sorted {
		if err := checkTerm(t.Text); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
		}
		if i > 0 && sorted[i-1].Text == t.Text {
			return nil, fmt.Errorf("%w: term %q is there twice", ErrInvalid, t.Text)
		}
		m.terms = append(m.terms, t.Text)
		m.docFreqs = append(m.docFreqs, t.DocFreq)
	}
	tree := newTermTree(m.terms, opts.Bytes)
	for i, t := range m.terms {
		tree.hidden[i] = opts.Candidate != nil && !opts.Candidate(t)
	}
	var err error
	m.entries, err = tree.nearest(ctx, &opts, newStage(progress, "neighbors", len(m.terms)))
	if err != nil {
		return nil, err
	}
	if err := m.finish(); err != nil {
		return nil, err
	}
	return m, nil
}
