package combine

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"github.com/akin-search/akin/simmatrix"
)

const (
	topHubs    = 10 // terms that are neighbors of most others
	sampleRows = 5  // drawn from those with neighbors
)

// An Inspection describes a matrix.
type Inspection struct {
	Meta     simmatrix.Meta `json:"meta"` // the header
	Checksum string         `json:"checksum"`
	// Density is (NonZeros + n) / n² for n terms, including the diagonal, in [0,
	// 1]; 0 without terms.
	Density float64             `json:"density"`
	Rows    RowCounts           `json:"rows"`
	Entries EntryCounts         `json:"entries"`
	Pairs   PairCounts          `json:"pairs"`
	Hubs    Hubs                `json:"hubs"`
	Samples []simmatrix.TermRow `json:"samples"` // random rows, in ascending byte order of the term
}

// RowCounts describe the rows of a matrix.
type RowCounts struct {
	Lengths        Distribution `json:"lengths"`          // of the number of a term's neighbors
	Empty          int          `json:"empty"`            // terms without neighbors
	NoDocFreq      int          `json:"no_doc_freq"`      // terms with a document frequency of 0
	LargestSum     float64      `json:"largest_sum"`      // of a row's similarities, without the diagonal
	LargestSumTerm string       `json:"largest_sum_term"` // the first term with it; empty without entries
	NotDominant    int          `json:"not_dominant"`     // rows with a sum of 1 or more
	Saturated      int          `json:"saturated"`        // rows whose largest similarity is 0.99 or more
}

// EntryCounts describe the entries off the diagonal.
type EntryCounts struct {
	Similarities Distribution  `json:"similarities"`
	Origins      []OriginCount `json:"origins"` // by origin, an entry with two counts for both; empty without names
}

// PairCounts count pairs of terms with an entry in either direction: OneWay in
// only one, Unequal in both with different similarities.
type PairCounts struct {
	All     uint64 `json:"all"`
	OneWay  uint64 `json:"one_way"`
	Unequal uint64 `json:"unequal"`
}

// Hubs are terms that are neighbors of many others.
type Hubs struct {
	NeighborOf Distribution `json:"neighbor_of"` // of N_k, the number of rows with a term as neighbor
	Top        []Hub        `json:"top"`         // terms with the largest N_k, ties in ascending byte order
}

// A Hub is a term that is a neighbor in many rows.
type Hub struct {
	Term    string `json:"term"`
	DocFreq uint32 `json:"doc_freq"`
	Rows    int    `json:"rows"`
}

// An OriginCount is the number of entries with an origin.
type OriginCount struct {
	Name    string `json:"name"`
	Entries uint64 `json:"entries"`
}

// A Distribution summarizes numbers. Quantile q is the smallest number that at
// least a share q of them do not exceed. It is zero for no numbers.
type Distribution struct {
	Min    float64 `json:"min"`
	P10    float64 `json:"p10"`
	P25    float64 `json:"p25"`
	Median float64 `json:"median"`
	P75    float64 `json:"p75"`
	P90    float64 `json:"p90"`
	P99    float64 `json:"p99"`
	Max    float64 `json:"max"`
	Mean   float64 `json:"mean"`
}

// Inspect reports on m. It takes 8 bytes per entry.
func Inspect(m *simmatrix.Matrix) *Inspection {
	in := &inspector{m: m.Table(), columns: m.Table().ByColumn(), report: &Inspection{Meta: m.Meta(), Checksum: m.Checksum()}}
	in.rows()
	in.similarities()
	in.pairs()
	in.hubs()
	in.samples()
	return in.report
}

type inspector struct {
	m       *simmatrix.Table
	columns simmatrix.Columns
	report  *Inspection
}

func (in *inspector) rows() {
	lengths, largest := make([]int, len(in.m.Terms)), -1
	for i := range in.m.Terms {
		_, sims := in.m.Row(i)
		lengths[i] = len(sims)
		sum := sum(sims)
		if sum >= simmatrix.UnitsOfOne {
			in.report.Rows.NotDominant++
		}
		if len(sims) > 0 && sims[0] >= simmatrix.ToUnits(0.99) {
			in.report.Rows.Saturated++
		}
		if len(sims) > 0 && sum > largest {
			largest = sum
			in.report.Rows.LargestSum, in.report.Rows.LargestSumTerm = float64(sum)/simmatrix.UnitsOfOne, in.m.Terms[i]
		}
		if len(sims) == 0 {
			in.report.Rows.Empty++
		}
		if in.m.DocFreqs[i] == 0 {
			in.report.Rows.NoDocFreq++
		}
	}
	in.report.Rows.Lengths = distributionOf(lengths)
	if n := float64(len(in.m.Terms)); n > 0 {
		in.report.Density = (float64(len(in.m.Cols)) + n) / (n * n)
	}
}

// sum returns the sum of a row's similarities, in units.
func sum(sims []uint16) (total int) {
	for _, s := range sims {
		total += int(s)
	}
	return total
}

func (in *inspector) similarities() {
	counts := make([]uint64, simmatrix.UnitsOfOne+1) // by units
	for _, s := range in.m.Sims {
		counts[s]++
	}
	in.report.Entries.Similarities = distribution(counts, simmatrix.UnitsOfOne)
	for k, name := range in.m.Meta.Origins {
		count := OriginCount{Name: name}
		for _, origins := range in.m.Origins {
			count.Entries += uint64(origins >> k & 1)
		}
		in.report.Entries.Origins = append(in.report.Entries.Origins, count)
	}
}

func (in *inspector) pairs() {
	n := len(in.m.Terms)
	back := make([]uint16, n) // s_ji of the current i, by j
	var oneWay, twoWay, unequal uint64
	for i := range n {
		rows, _, column := in.columns.Column(i)
		for k, j := range rows {
			back[j] = column[k]
		}
		cols, sims := in.m.Row(i)
		for k, j := range cols {
			switch {
			case back[j] == 0:
				oneWay++
			case back[j] != sims[k]:
				unequal++
				twoWay++
			default:
				twoWay++
			}
		}
		for _, j := range rows {
			back[j] = 0
		}
	}
	in.report.Pairs = PairCounts{oneWay + twoWay/2, oneWay, unequal / 2}
}

func (in *inspector) hubs() {
	counts := make([]int, len(in.m.Terms))
	order := make([]int, len(counts))
	for j := range counts {
		rows, _, _ := in.columns.Column(j)
		counts[j], order[j] = len(rows), j
	}
	in.report.Hubs.NeighborOf = distributionOf(counts)
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b)) })
	for _, j := range order[:min(topHubs, len(order))] {
		if counts[j] > 0 {
			in.report.Hubs.Top = append(in.report.Hubs.Top, Hub{Term: in.m.Terms[j], DocFreq: in.m.DocFreqs[j], Rows: counts[j]})
		}
	}
}

func (in *inspector) samples() {
	var filled []int
	for i := range in.m.Terms {
		if cols, _ := in.m.Row(i); len(cols) > 0 {
			filled = append(filled, i)
		}
	}
	random := rand.New(rand.NewPCG(1, 0)) //nolint:gosec // has to draw the same rows every time
	wanted := min(sampleRows, len(filled))
	for k := range wanted {
		other := k + random.IntN(len(filled)-k)
		filled[k], filled[other] = filled[other], filled[k]
	}
	drawn := filled[:wanted]
	slices.Sort(drawn)
	for _, i := range drawn {
		in.report.Samples = append(in.report.Samples, simmatrix.TermRow{
			Term: in.m.Terms[i], DocFreq: in.m.DocFreqs[i], Neighbors: slices.Collect(in.m.RowAt(i).All()),
		})
	}
}

// distributionOf summarizes whole numbers, none of them large.
func distributionOf(values []int) Distribution {
	counts := make([]uint64, slices.Max(append([]int{0}, values...))+1)
	for _, v := range values {
		counts[v]++
	}
	return distribution(counts, 1)
}

// distribution summarizes the numbers v/unit, each counts[v] times.
func distribution(counts []uint64, unit float64) Distribution {
	var total uint64
	var sum float64
	for v, c := range counts {
		total += c
		sum += float64(v) * float64(c)
	}
	if total == 0 {
		return Distribution{}
	}
	quantile := func(percent uint64) float64 {
		rank, seen := max((total*percent+99)/100, 1), uint64(0)
		for v, c := range counts {
			if seen += c; seen >= rank {
				return float64(v) / unit
			}
		}
		return 0
	}
	return Distribution{
		Min: quantile(0), P10: quantile(10), P25: quantile(25), Median: quantile(50), P75: quantile(75),
		P90: quantile(90), P99: quantile(99), Max: quantile(100), Mean: sum / float64(total) / unit,
	}
}
