package demo

import (
	"math"
	"math/bits"
	"strconv"
	"strings"
)

type bm25 struct{ k1, b, scale float32 }

// exactLengths is the number of lengths from 0 that Lucene's one-byte code
// keeps exactly: 255 less the code of the largest int.
const exactLengths = 24

// quantizedLength returns the field length n after Lucene's coding in one byte
// (SmallFloat.intToByte4 and back): n-24 keeps its four most significant bits.
// Lengths under 40 are exact, longer ones rounded down by less than an eighth.
func quantizedLength(n int) int {
	if n < exactLengths {
		return n
	}
	rest := uint(n - exactLengths)
	shift := max(0, bits.Len(rest)-4)
	return exactLengths + int(rest>>shift<<shift)
}

// scorer returns a function that scores a document with a term, where N
// documents have the field, n have the term, and dl is the field's length:
//
//	score = boost·scale · idf · tf/(tf + k1·(1 - b + b·dl/avgdl))
//	idf   = ln(1 + (N - n + 0.5)/(n + 0.5))
//
// in Lucene's order of float32 operations. With words it also explains the
// score in Lucene's words, from which clients read k1 and the scale.
func (p bm25) scorer(docFreq, docCount, tokens int) func(occurrences, length int32, boost float32, words bool) *explanation {
	n, docs := float64(docFreq), float64(docCount)
	idf, avgLength := float32(math.Log(1+(docs-n+0.5)/(n+0.5))), float32(float64(tokens)/docs)
	return func(occurrences, length int32, boost float32, words bool) *explanation {
		freq, dl := float32(occurrences), float32(length)
		inverse := 1 / (p.k1 * ((1 - p.b) + float32(p.b*dl)/avgLength))
		// w·tf/(tf+K) in Lucene's form, which is monotonic in floating point.
		saturated := func(w float32) float32 { return w - w/(1+float32(freq*inverse)) }
		boost *= p.scale
		score := saturated(boost * idf)
		if !words {
			return &explanation{Value: score}
		}
		lengthWords := "dl, length of field"
		if length >= exactLengths+16 { // from here on quantizedLength rounds
			lengthWords += " (approximate)"
		}
		return explained(score, "score(freq="+floatText(freq)+"), computed as boost * idf * tf from:",
			explained(boost, "boost"),
			explained(idf, "idf, computed as log(1 + (N - n + 0.5) / (n + 0.5)) from:",
				explained(float32(n), "n, number of documents containing term"),
				explained(float32(docs), "N, total number of documents with field")),
			explained(saturated(1), "tf, computed as freq / (freq + k1 * (1 - b + b * dl / avgdl)) from:",
				explained(freq, "freq, occurrences of term within document"),
				explained(p.k1, "k1, term saturation parameter"),
				explained(p.b, "b, length normalization parameter"),
				explained(dl, lengthWords),
				explained(avgLength, "avgdl, average length of field")))
	}
}

// An explanation says how a score is computed, in the shape of the engines'
// answer to explain: true.
type explanation struct {
	Value       float32        `json:"value"`
	Description string         `json:"description"`
	Details     []*explanation `json:"details"`
}

func explained(value float32, description string, details ...*explanation) *explanation {
	return &explanation{Value: value, Description: description, Details: details}
}

// floatText writes f as Java does, with at least one decimal.
func floatText(f float32) string {
	s := strconv.FormatFloat(float64(f), 'g', -1, 32)
	if !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	return s
}
