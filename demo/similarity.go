package demo

import (
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// The parameters of BM25, those that both engines start with. Elasticsearch up
// to 8 and OpenSearch up to 2 multiply each score by k1+1 (Lucene's
// LegacyBM25Similarity), and so does this engine.
const (
	bm25K1    float32 = 1.2
	bm25B     float32 = 0.75
	bm25Scale float32 = 1 + bm25K1
)

// exactLengths is the number of document lengths from 0 that Lucene's one-byte
// code keeps as they are: 255 less the code of the largest int.
const exactLengths = 24

// quantizedLength returns the field length n as Lucene remembers it after
// coding it in one byte (SmallFloat.intToByte4 and back): what n exceeds 24 by
// keeps its four most significant bits, so that lengths under 40 are exact and
// longer ones are rounded down by less than an eighth.
func quantizedLength(n int) int {
	if n < exactLengths {
		return n
	}
	rest := uint(n - exactLengths)
	shift := max(0, bits.Len(rest)-4)
	return exactLengths + int(rest>>shift<<shift)
}

// bm25 scores freq occurrences of a term in a field of that length:
//
//	score = boost·2.2 · idf · tf/(tf + k1·(1 - b + b·dl/avgdl))
//	idf   = ln(1 + (N - n + 0.5)/(n + 0.5))
//
// in Lucene's order of float32 operations. If wanted, the explanation is in the
// words of Lucene, which clients read k1 and the scale from.
func (f *fieldStatistics) bm25(term string, freq, length int, boost float32, words bool) *explanation {
	docs, docFreq := float64(f.docCount), float64(f.docFreq[term])
	idf := float32(math.Log(1 + (docs-docFreq+0.5)/(docFreq+0.5)))
	avgLength := float32(float64(f.totalTermFreq) / docs)
	inverse := 1 / (bm25K1 * ((1 - bm25B) + float32(bm25B*float32(length))/avgLength))
	// w·tf/(tf+K) as Lucene writes it, which is monotonic in floating point.
	saturated := func(w float32) float32 { return w - w/(1+float32(float32(freq)*inverse)) }
	boost *= bm25Scale
	score := saturated(boost * idf)
	if !words {
		return &explanation{Value: score}
	}
	lengthWords := "dl, length of field"
	if length >= exactLengths+16 { // from here on quantizedLength rounds
		lengthWords += " (approximate)"
	}
	return explained(score, "score(freq="+floatText(float32(freq))+"), computed as boost * idf * tf from:",
		explained(boost, "boost"),
		explained(idf, "idf, computed as log(1 + (N - n + 0.5) / (n + 0.5)) from:",
			explained(float32(docFreq), "n, number of documents containing term"),
			explained(float32(docs), "N, total number of documents with field")),
		explained(saturated(1), "tf, computed as freq / (freq + k1 * (1 - b + b * dl / avgdl)) from:",
			explained(float32(freq), "freq, occurrences of term within document"),
			explained(bm25K1, "k1, term saturation parameter"),
			explained(bm25B, "b, length normalization parameter"),
			explained(float32(length), lengthWords),
			explained(avgLength, "avgdl, average length of field")))
}

// An explanation says how a score came about, in the shape in which the
// engines answer explain: true.
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
