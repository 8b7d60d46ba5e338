package shape

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"strconv"
	"unicode"
	"unicode/utf8"

	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/internal/settings"
)

// A TermFilter says which terms a matrix is to have. The zero value matches
// every term.
type TermFilter struct {
	// MinDocFreq is the smallest document frequency.
	MinDocFreq uint32
	// MaxDocShare is the largest share of the documents that may have the term,
	// in (0, 1]; 0 is no limit.
	MaxDocShare float64
	// MinRunes and MaxRunes bound the length of the term in code points; 0 is
	// no limit.
	MinRunes, MaxRunes int
	// NoDigits leaves out terms that start with a digit of any script.
	NoDigits bool
	// Keep, unless nil, keeps only the terms that it matches; Drop, unless nil,
	// leaves out those that it matches.
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

// Match reports whether f keeps a term in docFreq of docs documents. With docs
// 0, unknown, a docFreq of 0 falls under no rule and nothing is too frequent.
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
	set("max_doc_share", settings.FormatFloat(f.MaxDocShare), f.MaxDocShare > 0)
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
// and the number of these. Params of the result are those of m and the
// settings, with "filter_" before the name. It returns an error that names each
// setting out of range, and [simmatrix.ErrNoVocabulary] where no term matches.
func (f *TermFilter) Apply(m *simmatrix.Matrix) (filtered *simmatrix.Matrix, dropped int, err error) {
	if err := f.Validate(); err != nil {
		return nil, 0, err
	}
	out := &simmatrix.Table{Meta: m.Table().Meta, Entries: simmatrix.NewEntries(len(m.Table().Terms), m.Table().Origins != nil)}
	out.Meta.Params = f.params(m.Table().Meta.Params)
	index := make([]uint32, len(m.Table().Terms)) // of each term in out
	for i, term := range m.Table().Terms {
		index[i] = leftOut
		if f.Match(term, m.Table().DocFreqs[i], m.Table().Meta.Docs) {
			index[i] = uint32(min(len(out.Terms), math.MaxInt32)) // at most MaxTerms
			out.Terms = append(out.Terms, term)
			out.DocFreqs = append(out.DocFreqs, m.Table().DocFreqs[i])
		}
	}
	dropped = len(m.Table().Terms) - len(out.Terms)
	if len(out.Terms) == 0 && dropped > 0 {
		return nil, dropped, fmt.Errorf("%w: the filter matches none of %d terms", simmatrix.ErrNoVocabulary, dropped)
	}
	for i := range m.Table().Terms {
		if index[i] != leftOut {
			appendMapped(&out.Entries, m.Table(), i, index)
		}
	}
	filtered, err = out.Matrix()
	return filtered, dropped, err
}

// appendMapped appends row i of m with its columns mapped by index, which
// ascends, except those that it leaves out.
func appendMapped(e *simmatrix.Entries, m *simmatrix.Table, i int, index []uint32) {
	cols, sims := m.Row(i)
	for k, col := range cols {
		if index[col] != leftOut {
			e.AppendEntry(simmatrix.Entry{Col: index[col], Units: sims[k], Origins: m.OriginsAt(i, k)})
		}
	}
	e.Offsets = append(e.Offsets, len(e.Cols))
}
