package combine

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"strconv"

	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/internal/lines"
	"github.com/akin-search/akin/simmatrix/internal/settings"
)

// InspectOptions are the settings of [Inspect].
type InspectOptions struct {
	Hubs    int    // how many of the terms that are neighbors of the most others are named
	Samples int    // how many rows are drawn, of those that have neighbors
	Seed    uint64 // of the random choice
}

// DefaultInspectOptions returns the settings of a report that fits a screen.
func DefaultInspectOptions() InspectOptions { return InspectOptions{Hubs: 10, Samples: 5, Seed: 1} }

// Validate reports every setting that is out of range.
func (o *InspectOptions) Validate() error {
	return errors.Join(settings.NotNegative("hubs", o.Hubs), settings.NotNegative("samples", o.Samples))
}

// A Inspection describes a matrix.
type Inspection struct {
	Meta     simmatrix.Meta `json:"meta"` // what the header says
	Checksum string         `json:"checksum"`
	Claims   []Claim        `json:"claims"` // the header, and the settings of [Sparsify] in its Params, and a fresh count
	// Density is (NonZeros + n) / n² of n terms, with the diagonal, in [0, 1];
	// 0 without terms.
	Density float64             `json:"density"`
	Rows    RowCounts           `json:"rows"`
	Entries EntryCounts         `json:"entries"`
	Pairs   PairCounts          `json:"pairs"`
	Hubs    Hubs                `json:"hubs"`
	Samples []simmatrix.TermRow `json:"samples"` // rows drawn at random, in ascending byte order of the term
}

// RowCounts describe the rows of a matrix.
type RowCounts struct {
	Lengths        Distribution `json:"lengths"`          // of the number of neighbors of a term
	Empty          int          `json:"empty"`            // terms without neighbors
	NoDocFreq      int          `json:"no_doc_freq"`      // terms with a document frequency of 0
	LargestSum     float64      `json:"largest_sum"`      // of a row's similarities, the diagonal not counted
	LargestSumTerm string       `json:"largest_sum_term"` // the first term that has it; empty without entries
	NotDominant    int          `json:"not_dominant"`     // rows whose sum is 1 or more
}

// EntryCounts describe the entries off the diagonal.
type EntryCounts struct {
	Similarities Distribution  `json:"similarities"`
	Origins      []OriginCount `json:"origins"` // entries by origin, one of two counted for both; empty where none is named
}

// PairCounts count the pairs of terms with an entry in either direction: OneWay
// those with one only, Unequal those with two that differ.
type PairCounts struct {
	All     uint64 `json:"all"`
	OneWay  uint64 `json:"one_way"`
	Unequal uint64 `json:"unequal"`
}

// Hubs are terms that are neighbors of many others.
type Hubs struct {
	NeighborOf Distribution `json:"neighbor_of"` // of N_k, the number of rows that have a term as neighbor
	Top        []Hub        `json:"top"`         // the terms with the largest, ties in ascending byte order
}

// A Hub is a term that is a neighbor of many others: in so many rows.
type Hub struct {
	Term    string `json:"term"`
	DocFreq uint32 `json:"doc_freq"`
	Rows    int    `json:"rows"`
}

// An OriginCount is the number of entries with the origin Name.
type OriginCount struct {
	Name    string `json:"name"`
	Entries uint64 `json:"entries"`
}

// A Distribution sums up numbers. Quantile q is the smallest of them that at
// least q of them do not exceed. It is zero where there are none.
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

// Inspect reports on m. It shares no code with what wrote the header, so that
// [Inspection.Claims] shows a wrong one. Overrides may make a matrix break the
// settings of its Sparsify: see [Claim.Note]. It takes 8 bytes an entry.
func Inspect(m *simmatrix.Matrix, opts InspectOptions) *Inspection {
	in := &inspector{m: m.Table(), columns: m.Table().ByColumn(nil), report: &Inspection{Meta: m.Meta(), Checksum: m.Checksum()}}
	if k := slices.Index(m.Table().Meta.Origins, simmatrix.OriginOverrides); k >= 0 {
		in.set = 1 << k
	}
	in.rows()
	in.similarities()
	in.pairs()
	in.hubs(max(opts.Hubs, 0))
	in.samples(max(opts.Samples, 0), opts.Seed)
	in.claims()
	in.settings()
	return in.report
}

type inspector struct {
	m       *simmatrix.Table
	columns simmatrix.Columns
	report  *Inspection

	set     uint8 // the bit of the entries that overrides have set, 0 for none
	skewSet int   // pairs that go one way or differ, with an entry that overrides have set
}

func (in *inspector) isSet(i, k int) bool { return in.m.OriginsAt(i, k)&in.set != 0 }

func (in *inspector) rows() {
	lengths, largest := make([]int, len(in.m.Terms)), -1
	for i := range in.m.Terms {
		_, sims := in.m.Row(i)
		lengths[i] = len(sims)
		sum := sum(sims)
		if sum >= simmatrix.UnitsOfOne {
			in.report.Rows.NotDominant++
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
	places := make([]int, n)  // and the place of that entry in row j
	var oneWay, twoWay, unequal uint64
	for i := range n {
		rows, at, column := in.columns.Column(i)
		for k, j := range rows {
			back[j], places[j] = column[k], int(at[k])
		}
		cols, sims := in.m.Row(i)
		for k, j := range cols {
			switch {
			case back[j] == 0:
				oneWay++
				if in.isSet(i, k) {
					in.skewSet++
				}
			case back[j] != sims[k]:
				unequal++
				twoWay++
				if i < int(j) && (in.isSet(i, k) || in.isSet(int(j), places[j])) { // the other direction is the same pair
					in.skewSet++
				}
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

func (in *inspector) hubs(top int) {
	counts := make([]int, len(in.m.Terms))
	order := make([]int, len(counts))
	for j := range counts {
		rows, _, _ := in.columns.Column(j)
		counts[j], order[j] = len(rows), j
	}
	in.report.Hubs.NeighborOf = distributionOf(counts)
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b)) })
	for _, j := range order[:min(top, len(order))] {
		if counts[j] > 0 {
			in.report.Hubs.Top = append(in.report.Hubs.Top, Hub{Term: in.m.Terms[j], DocFreq: in.m.DocFreqs[j], Rows: counts[j]})
		}
	}
}

func (in *inspector) samples(wanted int, seed uint64) {
	var filled []int
	for i := range in.m.Terms {
		if cols, _ := in.m.Row(i); len(cols) > 0 {
			filled = append(filled, i)
		}
	}
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // nothing to guess here
	wanted = min(wanted, len(filled))
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

// distributionOf sums up whole numbers, none of them large.
func distributionOf(values []int) Distribution {
	counts := make([]uint64, slices.Max(append([]int{0}, values...))+1)
	for _, v := range values {
		counts[v]++
	}
	return distribution(counts, 1)
}

// distribution sums up the numbers v/unit of which there are counts[v].
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

// A Claim is one thing that a header says.
type Claim struct {
	Name    string `json:"name"` // what it is about; for a setting of [Sparsify], its name in [simmatrix.Meta.Params]
	Claimed string `json:"claimed"`
	Counted string `json:"counted"`
	Holds   bool   `json:"holds"` // the two are the same; for a setting, the count keeps to it or Note excuses it
	// Note says why a setting holds though the count goes beyond it: overrides
	// explain all entries, or all but what rules that pin and ban can.
	Note string `json:"note"`
}

func (in *inspector) claims() {
	r, meta := in.report, in.report.Meta
	inRange := len(in.m.Sims) == 0 || (r.Entries.Similarities.Min > 0 && r.Entries.Similarities.Max <= 1)
	for _, c := range []struct {
		name             string
		claimed, counted any
	}{
		{"terms", meta.Terms, len(in.m.Terms)},
		{"non-zeros", meta.NonZeros, len(in.m.Sims)},
		{"longest row", meta.MaxNeighbors, r.Rows.Lengths.Max},
		{"symmetric", meta.Symmetric, r.Pairs.OneWay == 0 && r.Pairs.Unequal == 0},
		{"dominant", meta.Dominant, r.Rows.NotDominant == 0},
		{"similarities in (0, 1]", true, inRange},
	} {
		claimed, counted := fmt.Sprint(c.claimed), fmt.Sprint(c.counted)
		r.Claims = append(r.Claims, Claim{Name: c.name, Claimed: claimed, Counted: counted, Holds: claimed == counted})
	}
}

// settings checks the settings of [Sparsify] that Params names.
func (in *inspector) settings() {
	r := in.report
	if claimed, ok := r.Meta.Params[simmatrix.SparsifyPrefix+"neighbors"]; ok {
		limit, err := strconv.Atoi(claimed)
		over, unexplained := in.violations(func(sims []uint16) int { return max(0, len(sims)-limit) })
		in.setting("neighbors", strconv.FormatFloat(r.Rows.Lengths.Max, 'f', 0, 64), err == nil, over, unexplained)
	}
	if claimed, ok := r.Meta.Params[simmatrix.SparsifyPrefix+"threshold"]; ok {
		threshold, ok := lines.ParseDecimal(claimed, 64)
		floor := math.Round(threshold * simmatrix.UnitsOfOne)
		under, unexplained := in.violations(func(sims []uint16) int { // they descend
			return len(sims) - sort.Search(len(sims), func(k int) bool { return float64(sims[k]) <= floor })
		})
		in.setting("threshold", strconv.FormatFloat(r.Entries.Similarities.Min, 'g', 4, 64), ok, under, unexplained)
	}
	if claimed, ok := r.Meta.Params[simmatrix.SparsifyPrefix+"symmetric"]; ok {
		skewed := int(min(r.Pairs.OneWay+r.Pairs.Unequal, math.MaxInt))
		in.setting("symmetric", strconv.FormatBool(skewed == 0), claimed == "true", skewed, skewed-in.skewSet)
	}
	if claimed, ok := r.Meta.Params[simmatrix.SparsifyPrefix+"dominant"]; ok {
		rows, unexplained := in.violations(func(sims []uint16) int {
			if sum(sims) >= simmatrix.UnitsOfOne {
				return 1
			}
			return 0
		})
		in.setting("dominant", strconv.FormatBool(rows == 0), claimed == "true", rows, unexplained)
	}
}

// violations adds up what a function finds in each row, and in each row without
// the entries that overrides have set.
func (in *inspector) violations(find func(sims []uint16) int) (all, unexplained int) {
	var others []uint16
	for i := range in.m.Terms {
		_, sims := in.m.Row(i)
		others = others[:0]
		for k, s := range sims {
			if !in.isSet(i, k) {
				others = append(others, s)
			}
		}
		all, unexplained = all+find(sims), unexplained+find(others)
	}
	return all, unexplained
}

// setting adds a setting with so many violations, of which so many are
// unexplained by overrides. One that is not readable does not hold.
func (in *inspector) setting(name, counted string, readable bool, violations, unexplained int) {
	c := Claim{Name: simmatrix.SparsifyPrefix + name, Claimed: in.report.Meta.Params[simmatrix.SparsifyPrefix+name], Counted: counted}
	rules := simmatrix.OverrideRules(in.report.Meta.Params[simmatrix.OverridesParam])
	c.Holds = readable && unexplained <= 2*rules // a rule sets at most two entries
	if c.Holds && violations > 0 {
		var set uint64
		for _, o := range in.report.Entries.Origins {
			if o.Name == simmatrix.OriginOverrides {
				set = o.Entries
			}
		}
		c.Note = fmt.Sprintf("by overrides: %d entries are theirs, of %d rules", set, rules)
	}
	in.report.Claims = append(in.report.Claims, c)
}
