package softcosine

import (
	"math"
	"slices"
)

// A Scorer scores nuggets of a query against nuggets of a result, as vectors,
// by the similarities S of terms:
//
//	S(i, j) = v_iᵀ·S·v_j
//
// In the thesis (3.3.2) S is the identity: only equal terms match.
type Scorer struct {
	space         *Space
	query, result vectorizer
}

// A vectorizer makes the vector of a nugget of a document.
type vectorizer func(Document, Nugget) (Vector, error)

// NewStandard returns the scorer of the standard model, such as "bfx.nfx". The
// vector of a nugget is
//
//	v = (t ∘ e ∘ d) / m
//
// with t, d and m of the SMART letters and the supplementary weights e. For
// letter c, m = √(wᵀSw) of w = t ∘ e ∘ d, so that with c on both sides S(i, j)
// is the soft cosine measure; then S must be symmetric, and no wᵀSw negative.
// Errors are those of [NewSpace], or wrap [ErrWeighting] if letters need a
// statistic that is out of range.
func NewStandard(result, query Weighting, st *Statistics, s *Similarities) (*Scorer, error) {
	space, err := unweighted(st, s)
	if err != nil {
		return nil, err
	}
	scorer := &Scorer{space: space}
	if scorer.result, err = standard(result, st, space); err != nil {
		return nil, err
	}
	scorer.query, err = standard(query, st, space)
	return scorer, err
}

// unweighted returns the space of S with W = I, because vectors are weighted.
func unweighted(st *Statistics, s *Similarities) (*Space, error) {
	return NewSpace(slices.Repeat([]float64{1}, len(st.DocFreqs)), s)
}

func standard(w Weighting, st *Statistics, space *Space) (vectorizer, error) {
	if err := w.Letters.check(st); err != nil {
		return nil, err
	}
	return func(d Document, n Nugget) (Vector, error) {
		f := n.frequencies()
		var e map[int32]float64
		if w.Terms != nil {
			e = w.Terms(d, n)
		}
		v := w.Letters.termFreqFactors(f).mapped(func(t int32, value float64) float64 {
			if e != nil {
				value *= e[t]
			}
			return value * w.Letters.docFreqFactor(st, t)
		})
		m, err := w.Letters.pivot(f, n.Bytes, st), error(nil)
		if w.Letters[2] == 'c' {
			m, err = space.SoftNorm(v)
		}
		if err != nil || m == 0 {
			return Vector{}, err
		}
		return v.mapped(func(_ int32, value float64) float64 { return value / m }), nil
	}, nil
}

// NewOkapi returns the scorer of BM25 (the thesis, 3.3.2),
//
//	S(i, j) = Σ_t idf_t · (k1 + 1)·f_jt / (k1·((1 − b) + b·l_j/avg l) + f_jt) · (k3 + 1)·f_it / (k3 + f_it)
//
// with idf_t = ln((N − n_t + 0.5) / (n_t + 0.5)) and l_j tokens in j. Vectors
// have √|idf_t| on each side, the query's with the sign of idf_t, so that S
// weights a pair of different terms by both.
func NewOkapi(p OkapiParameters, st *Statistics, s *Similarities) (*Scorer, error) {
	space, err := unweighted(st, s)
	if err != nil {
		return nil, err
	}
	return &Scorer{
		space: space,
		result: func(_ Document, n Nugget) (Vector, error) {
			length := 1 - p.B + p.B*float64(len(n.Terms))/st.MeanTokens
			return n.frequencies().mapped(func(t int32, f float64) float64 {
				return math.Sqrt(math.Abs(st.okapiIDF(t))) * ((p.K1 + 1) * f / (p.K1*length + f))
			}), nil
		},
		query: func(_ Document, n Nugget) (Vector, error) {
			return n.frequencies().mapped(func(t int32, f float64) float64 {
				idf := st.okapiIDF(t)
				return math.Copysign(math.Sqrt(math.Abs(idf)), idf) * ((p.K3 + 1) * f / (p.K3 + f))
			}), nil
		},
	}, nil
}

// Unsegmented returns S(u, v) of whole documents, each as one nugget; 0 if one
// has no terms.
func (s *Scorer) Unsegmented(u, v Document) (float64, error) {
	x, err := s.query(u, u.joined())
	if err != nil {
		return 0, err
	}
	y, err := s.result(v, v.joined())
	return s.space.InnerProduct(x, y), err
}

// Matrix returns M_uv for a query document u and a result document v.
func (s *Scorer) Matrix(u, v Document) (Matrix, error) {
	m := Matrix{query: u.lengths(), result: v.lengths()}
	queries, err := vectors(u, s.query)
	if err != nil {
		return m, err
	}
	results, err := vectors(v, s.result)
	if err != nil {
		return m, err
	}
	for _, x := range queries {
		row := make([]float64, len(results))
		for j, y := range results {
			row[j] = s.space.InnerProduct(x, y)
		}
		m.Scores = append(m.Scores, row)
	}
	return m, nil
}

func vectors(d Document, of vectorizer) ([]Vector, error) {
	out := make([]Vector, 0, len(d))
	for _, n := range d {
		v, err := of(d, n)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}
