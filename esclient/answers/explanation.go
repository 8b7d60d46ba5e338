package answers

import (
	"math"
	"strings"
)

// An Explanation is a node of the tree that explains a score.
type Explanation struct {
	Value       float64       `json:"value"`
	Description string        `json:"description"`
	Details     []Explanation `json:"details"`
}

// Scale returns the factor of the first BM25 score in the tree: k1+1 or, where
// the score names no factor, 1. It reports false if there is no BM25 score, or
// one with another factor, which is not understood.
func (e *Explanation) Scale() (float64, bool) {
	// "score(freq=2.0), computed as boost * idf * tf from:", since Lucene 8.
	if !strings.HasPrefix(e.Description, "score(freq=") || !strings.Contains(e.Description, "boost * idf * tf") {
		for i := range e.Details {
			if scale, ok := e.Details[i].Scale(); ok {
				return scale, ok
			}
		}
		return 0, false
	}
	boost, k1 := 1.0, math.NaN()
	for _, d := range e.Details {
		switch {
		case d.Description == "boost":
			boost = d.Value
		case strings.HasPrefix(d.Description, "tf,"):
			for _, p := range d.Details {
				if strings.HasPrefix(p.Description, "k1,") {
					k1 = p.Value
				}
			}
		}
	}
	// The engine computes with 32-bit floats.
	const precision = 1e-5
	if boost > 0 && (boost == 1 || math.Abs(boost-(k1+1)) <= precision*boost) {
		return boost, true
	}
	return 0, false
}
