package softcosine

import (
	"fmt"
	"math"
	"strings"
)

// The letters of [ParseSMART], by place.
const (
	termFreqLetters = "bntalLd"
	docFreqLetters  = "xnftp"
	normLetters     = "xncub"
)

// A SMART is a term weighting in SMART notation. Three letters say how the
// vector v of a document is made from its term frequencies f, the collection's
// size N and the document frequencies n_t:
//
//	v = (t ∘ d) / m
//
// The first letter is the term frequency factor t for terms with f_t > 0; for
// others it is 0, whatever the formula gives:
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
//	u     1 − s + s·u / avg u               u: the number of distinct terms
//	b     1 − s + s·b / avg b               b: the length in bytes
//
// with the slope s of [Statistics] and averages over the collection.
//
// This is table 3.1 of the thesis, with two exceptions: its p is negative for a
// term in more than half of the documents, and its L averages over the
// collection. Here they are as in Manning, Raghavan and Schütze, Introduction
// to Information Retrieval, 2008 (figure 6.15).
type SMART string

// ParseSMART parses three letters, such as "ltc".
func ParseSMART(letters string) (SMART, error) {
	for i, known := range []string{termFreqLetters, docFreqLetters, normLetters} {
		if len(letters) != 3 || strings.IndexByte(known, letters[i]) < 0 {
			return "", fmt.Errorf("%w %q: want a letter of the term frequency (one of %s), of the document frequency (%s) and of the norm (%s)",
				ErrWeighting, letters, termFreqLetters, docFreqLetters, normLetters)
		}
	}
	return SMART(letters), nil
}

// ParseSMARTPair parses a pair "ddd.qqq", for documents and for queries; three
// letters are for both.
func ParseSMARTPair(pair string) (document, query SMART, err error) {
	first, second, isPair := strings.Cut(pair, ".")
	if document, err = ParseSMART(first); err != nil || !isPair {
		return document, document, err
	}
	query, err = ParseSMART(second)
	return document, query, err
}

// check returns an error that wraps [ErrWeighting] if the letters need a
// statistic that is out of range.
func (w SMART) check(st *Statistics) error {
	mean, unit := 1.0, ""
	switch w[2] {
	case 'u':
		mean, unit = st.MeanTerms, "terms"
	case 'b':
		mean, unit = st.MeanBytes, "bytes"
	}
	switch {
	case strings.IndexByte("ftp", w[1]) >= 0 && st.Docs < 1:
		return fmt.Errorf("%w %v: %d documents", ErrWeighting, w, st.Docs)
	case unit != "" && !(st.Slope >= 0 && st.Slope <= 1): // so written that NaN fails
		return fmt.Errorf("%w %v: slope %v is not in [0, 1]", ErrWeighting, w, st.Slope)
	case !(mean > 0) || math.IsInf(mean, 0):
		return fmt.Errorf("%w %v: a mean length of %v %s", ErrWeighting, w, mean, unit)
	}
	return nil
}

// termFreqFactors returns t for the term frequencies f of a nugget.
func (w SMART) termFreqFactors(f Vector) Vector {
	sum, largest := 0.0, 0.0
	for _, value := range f.Values {
		sum, largest = sum+value, max(largest, value)
	}
	mean := sum / float64(f.Len())
	return f.mapped(func(_ int32, value float64) float64 {
		switch w[0] {
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
	})
}

// docFreqFactor returns d of term t, at least 0. A term in no document counts
// as one in a single document.
func (w SMART) docFreqFactor(st *Statistics, t int32) float64 {
	docs, holders := float64(st.Docs), float64(max(st.DocFreqs[t], 1))
	switch w[1] {
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

// pivot returns the m of u or b for a nugget's term frequencies f and length in
// bytes; for other letters it is 1.
func (w SMART) pivot(f Vector, bytes int64, st *Statistics) float64 {
	switch w[2] {
	case 'u':
		return 1 - st.Slope + st.Slope*float64(f.Len())/st.MeanTerms
	case 'b':
		return 1 - st.Slope + st.Slope*float64(bytes)/st.MeanBytes
	default:
		return 1
	}
}
