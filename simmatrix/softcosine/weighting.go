package softcosine

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// The letters that [ParseSMART] knows, by place.
const (
	termFreqLetters = "bntalLd"
	docFreqLetters  = "xnftp"
	normLetters     = "xncub"
)

// A SMART is a term weighting in the notation of that name, three letters that
// say how the vector v of a document is made from its term frequencies f, the
// collection's size N and the document frequencies n_t,
//
//	v = (t ∘ d) / m
//
// The first letter is the term frequency factor t, for terms with f_t > 0;
// the others stay 0, whatever the formula would give:
//
//	b     1
//	n, t  f
//	a     0.5 + 0.5·f / max f               over the terms of the document
//	l     1 + ln f
//	L     (1 + ln f) / (1 + ln(avg f))      over the terms of the document
//	d     1 + ln(1 + ln f)
//
// The second is the document frequency factor d, the diagonal of W:
//
//	x, n  1
//	f     ln(N / n_t)
//	t     ln((N + 1) / n_t)
//	p     max(0, ln((N − n_t) / n_t))
//
// The third is the norm m, for w = t ∘ d:
//
//	x, n  1
//	c     √(wᵀw)
//	u     1 − s + s·u / avg u               u: the number of different terms
//	b     1 − s + s·b / avg b               b: the length in bytes
//
// with the slope s of [Frequencies] and averages over the collection.
//
// This is table 3.1 of the thesis, with two exceptions. Its p is negative for a
// term of more than half of the documents, and its L averages over the
// collection; here they are as in Manning, Raghavan and Schütze, Introduction
// to Information Retrieval, 2008 (figure 6.15). The zero SMART is nnn, the
// term frequencies themselves.
type SMART struct {
	termFreq, docFreq, norm byte // letters without their synonyms t, x and x; 0 is n
}

// ParseSMART returns the weighting of three letters, "ltc" for instance.
func ParseSMART(letters string) (SMART, error) {
	for i, known := range []string{termFreqLetters, docFreqLetters, normLetters} {
		if len(letters) != 3 || strings.IndexByte(known, letters[i]) < 0 {
			return SMART{}, fmt.Errorf("%w %q: want a letter of the term frequency (one of %s), of the document frequency (%s) and of the norm (%s)",
				ErrWeighting, letters, termFreqLetters, docFreqLetters, normLetters)
		}
	}
	return SMART{
		termFreq: withoutSynonym(letters[0], 't'), docFreq: withoutSynonym(letters[1], 'x'), norm: withoutSynonym(letters[2], 'x'),
	}, nil
}

// ParseSMARTPair returns the weightings of a pair "ddd.qqq", of documents and
// of queries; three letters are for both.
func ParseSMARTPair(pair string) (document, query SMART, err error) {
	first, second, isPair := strings.Cut(pair, ".")
	if document, err = ParseSMART(first); err != nil || !isPair {
		return document, document, err
	}
	query, err = ParseSMART(second)
	return document, query, err
}

func withoutSynonym(letter, synonym byte) byte {
	if letter == 'n' || letter == synonym {
		return 0
	}
	return letter
}

// String returns the three letters, with n for its synonyms.
func (w SMART) String() string {
	letters := []byte{w.termFreq, w.docFreq, w.norm}
	for i := range letters {
		letters[i] = cmp.Or(letters[i], 'n')
	}
	return string(letters)
}

// Frequencies are what a [SMART] has to know, for the letters in
// parentheses.
type Frequencies struct {
	Docs      int64   // N, the number of documents, at least 1 (f, t, p)
	DocFreqs  []int64 // n_t by term; one outside of [1, Docs] counts as the nearer end (f, t, p)
	MeanTerms float64 // avg u, the mean number of different terms of a document, above 0 (u)
	MeanBytes float64 // avg b, the mean length of a document in bytes, above 0 (b)
	// Slope is s in [0, 1]; 0 makes m = 1, and 0.2 to 0.3 is usual (Singhal,
	// Buckley, Mitra: Pivoted Document Length Normalization, 1996) (u, b).
	Slope float64
}

// CountFrequencies returns the statistics of term-frequency vectors over n
// terms and of the documents' lengths in bytes, nil where unknown. The slope is
// 0. It panics where there are not as many lengths as documents.
func CountFrequencies(n int, docs []Vector, byteLengths []int64) Frequencies {
	if byteLengths != nil && len(byteLengths) != len(docs) {
		panic("softcosine: not as many lengths as documents")
	}
	st := Frequencies{Docs: int64(len(docs)), DocFreqs: make([]int64, n)}
	if len(docs) == 0 {
		return st
	}
	terms, bytes := 0.0, 0.0
	for _, x := range docs {
		terms += float64(x.Len())
		for _, t := range x.Terms {
			st.DocFreqs[t]++
		}
	}
	for _, length := range byteLengths {
		bytes += float64(length)
	}
	st.MeanTerms, st.MeanBytes = terms/float64(len(docs)), bytes/float64(len(docs))
	return st
}

// Apply returns v = (t ∘ d) / m for a document's term frequencies f and its
// length in bytes, which only norm b reads. The error wraps [ErrWeighting]
// where a frequency is not positive, or below 1 with l, L or d, or where
// anything read, or on the way to v, is out of range.
func (w SMART) Apply(f Vector, byteLength int64, st *Frequencies) (Vector, error) {
	v, err := w.TermFrequencies(f)
	if err != nil || v.Len() == 0 {
		return Vector{}, err
	}
	if w.docFreq != 0 {
		if err := w.checkDocs(st); err != nil {
			return Vector{}, err
		}
		if last := f.Terms[f.Len()-1]; int(last) >= len(st.DocFreqs) {
			return Vector{}, fmt.Errorf("%w %v: no document frequency of term %d", ErrWeighting, w, last)
		}
		v = v.mapped(func(t int32, factor float64) float64 { return factor * w.docFreqFactor(st, t) })
	}
	if v.Len() == 0 { // All factors d are 0.
		return Vector{}, nil
	}
	if err := w.checkRange(v.Values...); err != nil {
		return Vector{}, err
	}
	norm, err := w.Pivot(f, byteLength, st)
	if err != nil {
		return Vector{}, err
	}
	if w.ByNorm() {
		norm = v.Norm()
	}
	v = v.mapped(func(_ int32, value float64) float64 { return value / norm })
	if err := w.checkRange(append(v.Values, norm)...); err != nil {
		return Vector{}, err
	}
	return v, nil
}

// ByNorm reports whether the third letter is c, which divides by the norm.
func (w SMART) ByNorm() bool { return w.norm == 'c' }

// Pivot returns the m of u or b, which a document's length decides, and 1 for
// the other letters. Errors are those of Apply.
func (w SMART) Pivot(f Vector, byteLength int64, st *Frequencies) (float64, error) {
	switch w.norm {
	case 'u':
		return w.pivoted(st.Slope, float64(f.Len()), st.MeanTerms, "terms")
	case 'b':
		return w.pivoted(st.Slope, float64(byteLength), st.MeanBytes, "bytes")
	default:
		return 1, nil
	}
}

func (w SMART) checkRange(values ...float64) error {
	if slices.ContainsFunc(values, notFinite) {
		return fmt.Errorf("%w %v: a number of it is %w", ErrWeighting, w, ErrRange)
	}
	return nil
}

// TermFrequencies returns t, of the first letter: with weights of
// [SMART.TermWeights] it is x of a [Space]. Errors are those of Apply.
func (w SMART) TermFrequencies(f Vector) (Vector, error) {
	logarithmic := strings.IndexByte("lLd", w.termFreq) >= 0
	sum, largest := 0.0, 0.0
	for k, value := range f.Values {
		if !(value > 0) || (logarithmic && value < 1) || math.IsInf(value, 0) { // written so that NaN fails
			return Vector{}, fmt.Errorf("%w %v: frequency %v of term %d", ErrWeighting, w, value, f.Terms[k])
		}
		sum, largest = sum+value, max(largest, value)
	}
	if err := w.checkRange(sum); w.termFreq == 'L' && err != nil {
		return Vector{}, err
	}
	mean := sum / float64(max(f.Len(), 1))
	return f.mapped(func(_ int32, value float64) float64 {
		switch w.termFreq {
		case 'b':
			return 1
		case 'a':
			return 0.5 + 0.5*value/largest
		case 'l':
			return 1 + math.Log(value)
		case 'L':
			return (1 + math.Log(value)) / (1 + math.Log(mean))
		case 'd':
			return 1 + math.Log(1+math.Log(value))
		default:
			return value
		}
	}), nil
}

// TermWeights returns d, of the second letter, for all terms of st: the
// diagonal of W, as [NewSpace] takes it. Errors are those of Apply.
func (w SMART) TermWeights(st *Frequencies) ([]float64, error) {
	if w.docFreq == 0 {
		return slices.Repeat([]float64{1}, len(st.DocFreqs)), nil
	}
	if err := w.checkDocs(st); err != nil {
		return nil, err
	}
	weights := make([]float64, len(st.DocFreqs))
	for t := range weights {
		weights[t] = w.docFreqFactor(st, int32(t))
	}
	return weights, nil
}

func (w SMART) checkDocs(st *Frequencies) error {
	if st.Docs < 1 {
		return fmt.Errorf("%w %v: %d documents", ErrWeighting, w, st.Docs)
	}
	return nil
}

// docFreqFactor returns d of term t, at least 0.
func (w SMART) docFreqFactor(st *Frequencies, t int32) float64 {
	docs, holders := float64(st.Docs), float64(min(max(st.DocFreqs[t], 1), st.Docs))
	switch w.docFreq {
	case 'f':
		return math.Log(docs / holders)
	case 't':
		return math.Log((docs + 1) / holders)
	case 'p':
		return max(0, math.Log((docs-holders)/holders))
	default:
		return 1
	}
}

// pivoted returns 1 − s + s·length/mean.
func (w SMART) pivoted(slope, length, mean float64, unit string) (float64, error) {
	switch {
	case !(slope >= 0 && slope <= 1): // written so that NaN fails
		return 0, fmt.Errorf("%w %v: slope %v is not in [0, 1]", ErrWeighting, w, slope)
	case length < 0 || (length == 0 && slope == 1): // A norm of 0 divides nothing.
		return 0, fmt.Errorf("%w %v: a length of %v %s", ErrWeighting, w, length, unit)
	case !(mean > 0) || math.IsInf(mean, 0):
		return 0, fmt.Errorf("%w %v: a mean length of %v %s", ErrWeighting, w, mean, unit)
	}
	return 1 - slope + slope*length/mean, nil
}
