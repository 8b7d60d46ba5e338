package softcosine

// TermWeights returns the supplementary weights e of a nugget's terms, by term;
// the nugget is part of the document (the thesis, 3.3.2).
type TermWeights func(d Document, n Nugget) map[int32]float64

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
