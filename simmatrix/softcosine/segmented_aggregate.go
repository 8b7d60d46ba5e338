package softcosine

import "slices"

// A Matrix is M_uv: a row for each nugget of the query document, with a score
// for each nugget of the result document.
type Matrix struct {
	Scores        [][]float64
	query, result []float64 // lengths of the nuggets, in tokens
}

// Features returns x_uv, the concatenated rows of the matrix, for a [Logistic].
func (m Matrix) Features() []float64 { return slices.Concat(m.Scores...) }

// An Operator combines the scores of a document's nuggets (the thesis, 3.3.3
// and 3.4.2): minimum, maximum, mean, or weighted mean
//
//	wavg(x) = Σ_i w_i·x_i / Σ_i w_i
type Operator string

// The operators, with the weight w_i of nugget i. A mean is 0 if all weights
// are.
const (
	Min        Operator = "min"
	Max        Operator = "max"
	Avg        Operator = "avg"
	WavgLength Operator = "wavg length" // number of tokens
	WavgGodwin Operator = "wavg Godwin" // 1/i, because later comments are less likely to be relevant
)

// over returns the operator's value for scores of nuggets with lengths.
func (op Operator) over(scores, lengths []float64) float64 {
	switch {
	case len(scores) == 0:
		return 0
	case op == Min:
		return slices.Min(scores)
	case op == Max:
		return slices.Max(scores)
	}
	weighted, sum := 0.0, 0.0
	for i, score := range scores {
		w := 1.0
		switch op {
		case WavgLength:
			w = lengths[i]
		case WavgGodwin:
			w = 1 / float64(i+1)
		case Min, Max, Avg: // all nuggets count the same
		}
		weighted, sum = weighted+w*score, sum+w
	}
	if sum == 0 {
		return 0
	}
	return weighted / sum
}

// An Aggregate makes S'(u, v) of a matrix by two operators, ⊖ over the nuggets
// of the result and ⊕ over those of the query (the thesis, 3.3.3):
//
//	S'(u, v) = ⊕_i ⊖_j m_ij     result first
//	S'(u, v) = ⊖_j ⊕_i m_ij     query first
//
// If both are means, the order makes no difference.
type Aggregate struct {
	Result, Query Operator // ⊖ and ⊕
	QueryFirst    bool
}

// Score returns S'(u, v), 0 if a document has no nuggets.
func (a Aggregate) Score(m Matrix) float64 {
	rows := m.Scores
	last := a.Query
	first := a.Result
	lastLengths := m.query
	firstLengths := m.result
	if a.QueryFirst {
		rows = transposed(rows)
		last = a.Result
		first = a.Query
		lastLengths = m.result
		firstLengths = m.query
	}
	scores := make([]float64, 0, len(rows))
	for _, row := range rows {
		scores = append(scores, first.over(row, firstLengths))
	}
	return last.over(scores, lastLengths)
}

func transposed(rows [][]float64) [][]float64 {
	if len(rows) == 0 {
		return nil
	}
	columns := make([][]float64, len(rows[0]))
	for j := range columns {
		for _, row := range rows {
			columns[j] = append(columns[j], row[j])
		}
	}
	return columns
}
