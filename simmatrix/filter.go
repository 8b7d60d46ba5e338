package simmatrix

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"strconv"
	"unicode"
	"unicode/utf8"
)

// A TermFilter says which terms a matrix is to have, by frequency and shape.
// The zero value matches every term.
type TermFilter struct {
	// MinDocFreq is the smallest document frequency; 0 and 1 ask for none and
	// for a document at least.
	MinDocFreq uint32
	// MaxDocShare is the largest share of the documents that may hold the
	// term, in (0, 1]; 0 is no limit.
	MaxDocShare float64
	// MinRunes and MaxRunes bound the length of the term in code points; 0 is
	// no limit.
	MinRunes, MaxRunes int
	// NoDigits leaves out terms that start with a digit of any script.
	NoDigits bool
	// Keep, unless nil, leaves out the terms in which it finds nothing, Drop
	// those in which it finds something.
	Keep, Drop *regexp.Regexp
}

// Validate reports every setting that is out of range.
func (f *TermFilter) Validate() error {
	var errs []error
	if !(f.MaxDocShare >= 0 && f.MaxDocShare <= 1) { // written so that NaN fails
		errs = append(errs, fmt.Errorf("max doc share: %v not in [0, 1], where 0 is no limit", f.MaxDocShare))
	}
	if f.MinRunes < 0 {
		errs = append(errs, fmt.Errorf("min runes: %d is negative", f.MinRunes))
	}
	if f.MaxRunes < 0 || (f.MaxRunes > 0 && f.MaxRunes < f.MinRunes) {
		errs = append(errs, fmt.Errorf("max runes: %d is negative or under min runes, %d", f.MaxRunes, f.MinRunes))
	}
	return errors.Join(errs...)
}

// Match reports whether a matrix over docs documents is to have the term, of
// which docFreq of them hold one. docs of 0 is unknown: then a docFreq of 0 is
// unknown too and falls under no rule, and nothing is too frequent.
func (f *TermFilter) Match(term string, docFreq uint32, docs uint64) bool {
	if docFreq < f.MinDocFreq && (docFreq > 0 || docs > 0) {
		return false
	}
	if f.MaxDocShare > 0 && docs > 0 && float64(docFreq) > f.MaxDocShare*float64(docs) {
		return false
	}
	return f.matchShape(term)
}

func (f *TermFilter) matchShape(term string) bool {
	if f.MinRunes > 0 || f.MaxRunes > 0 {
		runes := utf8.RuneCountInString(term)
		if runes < f.MinRunes || (f.MaxRunes > 0 && runes > f.MaxRunes) {
			return false
		}
	}
	if first, _ := utf8.DecodeRuneInString(term); f.NoDigits && unicode.IsDigit(first) {
		return false
	}
	return (f.Keep == nil || f.Keep.MatchString(term)) && (f.Drop == nil || !f.Drop.MatchString(term))
}

// params returns before with the settings that leave something out.
func (f *TermFilter) params(before map[string]string) map[string]string {
	params := maps.Clone(before)
	if params == nil {
		params = make(map[string]string)
	}
	set := func(name, value string, isSet bool) {
		if isSet {
			params["filter_"+name] = value
		}
	}
	set("min_doc_freq", strconv.FormatUint(uint64(f.MinDocFreq), 10), f.MinDocFreq > 0)
	set("max_doc_share", formatFloat(f.MaxDocShare), f.MaxDocShare > 0)
	set("min_runes", strconv.Itoa(f.MinRunes), f.MinRunes > 0)
	set("max_runes", strconv.Itoa(f.MaxRunes), f.MaxRunes > 0)
	set("no_digits", "true", f.NoDigits)
	if f.Keep != nil {
		set("keep", f.Keep.String(), true)
	}
	if f.Drop != nil {
		set("drop", f.Drop.String(), true)
	}
	return params
}

// Apply returns m without the rows and columns of the terms that do not match,
// and the number of these. The document frequencies and their number are those
// of m. Params of the result are those of m and the settings, with "filter_"
// before the name. Apply returns an error that names each setting out of
// range, and [ErrNoVocabulary] where no term of m matches.
func (f *TermFilter) Apply(m *Matrix) (filtered *Matrix, dropped int, err error) {
	if err := f.Validate(); err != nil {
		return nil, 0, err
	}
	out := &Matrix{meta: m.meta, entries: newEntries(len(m.terms), m.origins != nil)}
	out.meta.Params = f.params(m.meta.Params)
	index := make([]uint32, len(m.terms)) // of each term in out
	for i, term := range m.terms {
		index[i] = leftOut
		if f.Match(term, m.docFreqs[i], m.meta.Docs) {
			index[i] = uint32(min(len(out.terms), math.MaxInt32)) // at most MaxTerms
			out.terms = append(out.terms, term)
			out.docFreqs = append(out.docFreqs, m.docFreqs[i])
		}
	}
	dropped = len(m.terms) - len(out.terms)
	if len(out.terms) == 0 && dropped > 0 {
		return nil, dropped, fmt.Errorf("%w: the filter matches none of %d terms", ErrNoVocabulary, dropped)
	}
	for i := range m.terms {
		if index[i] != leftOut {
			out.appendMapped(m, i, index)
		}
	}
	if err := out.finish(); err != nil {
		return nil, dropped, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return out, dropped, nil
}

// appendMapped appends row i of m with its columns mapped by index, which
// ascends, so that the row stays sorted, but for those it leaves out.
func (e *entries) appendMapped(m *Matrix, i int, index []uint32) {
	cols, sims := m.row(i)
	for k, col := range cols {
		if index[col] != leftOut {
			e.appendEntry(entry{col: index[col], sim: sims[k], origins: m.originsAt(i, k)})
		}
	}
	e.offsets = append(e.offsets, len(e.cols))
}
