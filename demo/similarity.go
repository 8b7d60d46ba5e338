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

// exactLengths is the number of document lengths from 0 that Lucene's
// one-byte code keeps before its floating part: 255 less the code of the
// largest int.
const exactLengths = 24

// inexactLengths is the length from which a remembered length can be smaller
// than the true one, and is called approximate in explanations.
const inexactLengths = exactLengths + 16

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

// bm25 scores the occurrences of one term in one field:
//
//	score = boost·2.2 · idf · tf/(tf + k1·(1 - b + b·dl/avgdl))
//	idf   = ln(1 + (N - n + 0.5)/(n + 0.5))
//
// in Lucene's order of float32 operations.
type bm25 struct {
	docs, docFreq      int     // N and n
	boost, idf, weight float32 // weight = boost·idf
	avgLength          float32
}

// newBM25 returns the scorer of a term that docFreq documents hold in f.
func newBM25(f *fieldStatistics, docFreq int, boost float32) bm25 {
	n := float64(docFreq)
	s := bm25{
		docs:      f.docCount,
		docFreq:   docFreq,
		boost:     boost * bm25Scale,
		idf:       float32(math.Log(1 + (float64(f.docCount)-n+0.5)/(n+0.5))),
		avgLength: float32(float64(f.totalTermFreq) / float64(f.docCount)),
	}
	s.weight = s.boost * s.idf
	return s
}

// saturation returns w·tf/(tf+K) as Lucene writes it, w - w/(1 + tf/K), which
// is monotonic in floating point.
func (s *bm25) saturation(w float32, freq, length int) float32 {
	inverse := 1 / (bm25K1 * ((1 - bm25B) + float32(bm25B*float32(length))/s.avgLength))
	return w - w/(1+float32(float32(freq)*inverse))
}

func (s *bm25) score(freq, length int) float32 { return s.saturation(s.weight, freq, length) }

// explain returns the explanation of a score in the words of Lucene, which
// clients read k1 and the scale from.
func (s *bm25) explain(freq, length int) *explanation {
	words := "dl, length of field"
	if length >= inexactLengths {
		words += " (approximate)"
	}
	return explained(s.score(freq, length), "score(freq="+floatText(float32(freq))+"), computed as boost * idf * tf from:",
		explained(s.boost, "boost"),
		explained(s.idf, "idf, computed as log(1 + (N - n + 0.5) / (n + 0.5)) from:",
			explained(float32(s.docFreq), "n, number of documents containing term"),
			explained(float32(s.docs), "N, total number of documents with field")),
		explained(s.saturation(1, freq, length), "tf, computed as freq / (freq + k1 * (1 - b + b * dl / avgdl)) from:",
			explained(float32(freq), "freq, occurrences of term within document"),
			explained(bm25K1, "k1, term saturation parameter"),
			explained(bm25B, "b, length normalization parameter"),
			explained(float32(length), words),
			explained(s.avgLength, "avgdl, average length of field")))
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
