package softcosine

import (
	"math"
	"slices"
)

// TermWeights returns the supplementary weights e of a nugget's terms, by term;
// the nugget is part of the document (the thesis, 3.3.2).
type TermWeights func(d Document, n Nugget) map[int32]float64

// MurataA is K_location of system A of Murata et al. (2000).
func MurataA(d Document, n Nugget) map[int32]float64 { return murata(d, n, 1.35, 0.125) }

// MurataB is K_location of system B.
func MurataB(d Document, n Nugget) map[int32]float64 { return murata(d, n, 1.3, 0.15) }

// murata returns, for terms t in the title, k1, and for others
//
//	1 + k2·(l − 2p_t)/l
//
// with l the number of tokens in the document and p_t, from 0, the place of the
// first t. In the thesis l is the length of the nugget, which makes weights of
// late nuggets negative.
func murata(d Document, n Nugget, k1, k2 float64) map[int32]float64 {
	all := d.joined().Terms
	weights := map[int32]float64{}
	for _, t := range n.Terms {
		p := slices.Index(all, t)
		if p < len(d[0].Terms) {
			weights[t] = k1
		} else {
			weights[t] = 1 + k2*float64(len(all)-2*p)/float64(len(all))
		}
	}
	return weights
}

// Godwin returns, for a term at places i_1 to i_n, from 1, of a nugget of l
// tokens (the thesis, 3.4.2),
//
//	e_t = Σ_j (1/i_j) / H_l,  H_l = Σ_{i=1}^l 1/i
//
// With term frequency factor b and norm n, it scores an unsegmented document as
// wavg_Godwin scores one cut into nuggets of one token each; the divisor H_l is
// for documents of other lengths.
func Godwin(_ Document, n Nugget) map[int32]float64 {
	weights, sum := map[int32]float64{}, 0.0
	for i, t := range n.Terms {
		weights[t] += 1 / float64(i+1)
		sum += 1 / float64(i+1)
	}
	for t := range weights {
		weights[t] /= sum
	}
	return weights
}

// A Weighting makes vectors of nuggets: SMART letters, and supplementary
// weights of terms, or nil.
type Weighting struct {
	Letters SMART
	Terms   TermWeights
}

// OkapiParameters are those of BM25 as given by Singhal (2001).
type OkapiParameters struct {
	K1 float64 // in [1, 2]; how soon a result gains nothing from more of a term
	K3 float64 // in [0, 1000]; the same for the query, 0 means at once
	B  float64 // in [0, 1]; how much the length of a result counts
}

// okapiIDF returns ln((N − n_t + 0.5) / (n_t + 0.5)), negative for a term in
// more than half of the nuggets.
func (s *Statistics) okapiIDF(t int32) float64 {
	holders := float64(s.DocFreqs[t])
	return math.Log((float64(s.Docs) - holders + 0.5) / (holders + 0.5))
}
