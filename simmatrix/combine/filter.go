package combine

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"unicode"
	"unicode/utf8"

	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/internal/settings"
)

// A TermFilter says which terms a matrix is to have; the zero value, every
// term.
type TermFilter struct {
	MinDocFreq         uint32         // the smallest document frequency
	MaxDocShare        float64        // the largest share of the documents that may have the term, in (0, 1]; 0 is no limit
	MinRunes, MaxRunes int            // bounds of the term's length in code points; 0 is no limit
	NoDigits           bool           // leaves out terms that start with a digit of any script
	Keep, Drop         *regexp.Regexp // unless nil: only the terms that Keep matches, none that Drop matches
}

// Validate reports every setting that is out of range.
func (f *TermFilter) Validate() error {
	var errs []error
	if !(f.MaxDocShare >= 0 && f.MaxDocShare <= 1) { // written so that NaN fails
		errs = append(errs, fmt.Errorf("max doc share: %v not in [0, 1], where 0 is no limit", f.MaxDocShare))
	}
	errs = append(errs, settings.NotNegative("min length", f.MinRunes))
	if f.MaxRunes < 0 || (f.MaxRunes > 0 && f.MaxRunes < f.MinRunes) {
		errs = append(errs, fmt.Errorf("max length: %d is negative or under the min length, %d", f.MaxRunes, f.MinRunes))
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
	runes := utf8.RuneCountInString(term)
	if runes < f.MinRunes || (f.MaxRunes > 0 && runes > f.MaxRunes) {
		return false
	}
	if first, _ := utf8.DecodeRuneInString(term); f.NoDigits && unicode.IsDigit(first) {
		return false
	}
	return (f.Keep == nil || f.Keep.MatchString(term)) && (f.Drop == nil || !f.Drop.MatchString(term))
}

func (f *TermFilter) params(before map[string]string) map[string]string {
	params := settings.With(before, "filter_", map[string]string{
		"min_doc_freq": strconv.FormatUint(uint64(f.MinDocFreq), 10), "max_doc_share": settings.FormatFloat(f.MaxDocShare),
		"min_runes": strconv.Itoa(f.MinRunes), "max_runes": strconv.Itoa(f.MaxRunes), "no_digits": strconv.FormatBool(f.NoDigits),
	})
	if f.Keep != nil {
		params["filter_keep"] = f.Keep.String()
	}
	if f.Drop != nil {
		params["filter_drop"] = f.Drop.String()
	}
	return params
}

// Apply returns m without the rows and columns of the terms that do not match,
// and the number of these. Params of the result are those of m and the
// settings, with "filter_" before the name. It returns an error that names each
// setting out of range, and [simmatrix.ErrNoVocabulary] where no term matches.
func (f *TermFilter) Apply(matrix *simmatrix.Matrix) (filtered *simmatrix.Matrix, dropped int, err error) {
	if err := f.Validate(); err != nil {
		return nil, 0, err
	}
	m := matrix.Table()
	out := &simmatrix.Table{Meta: m.Meta, Entries: simmatrix.NewEntries(len(m.Terms), 0, m.Origins != nil)}
	out.Meta.Params = f.params(m.Meta.Params)
	index := make([]uint32, len(m.Terms)) // of each term in out
	for i, term := range m.Terms {
		index[i] = leftOut
		if f.Match(term, m.DocFreqs[i], m.Meta.Docs) {
			index[i] = uint32(min(len(out.Terms), math.MaxInt32)) // at most MaxTerms
			out.Terms = append(out.Terms, term)
			out.DocFreqs = append(out.DocFreqs, m.DocFreqs[i])
		}
	}
	dropped = len(m.Terms) - len(out.Terms)
	if len(out.Terms) == 0 && dropped > 0 {
		return nil, dropped, fmt.Errorf("%w: the filter matches none of %d terms", simmatrix.ErrNoVocabulary, dropped)
	}
	for i := range m.Terms {
		if index[i] == leftOut {
			continue
		}
		cols, sims := m.Row(i)
		for k, col := range cols {
			if index[col] != leftOut {
				out.AppendEntry(simmatrix.Entry{Col: index[col], Units: sims[k], Origins: m.OriginsAt(i, k)})
			}
		}
		out.Offsets = append(out.Offsets, len(out.Cols))
	}
	out.TakeForms(m.Form)
	filtered, err = out.Matrix()
	return filtered, dropped, err
}
