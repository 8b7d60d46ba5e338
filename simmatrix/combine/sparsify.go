package combine

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/internal/settings"
)

// SparsifyOptions are the settings of [Sparsify]. Zero keeps every entry.
type SparsifyOptions struct {
	Neighbors int     // C, the most entries in a row off the diagonal; 0 is [simmatrix.MaxNeighbors]
	Threshold float64 // θ in [0, 1): entries s_ij <= θ go; rounded to a multiple of 1/65535
	Mutual    bool    // keeps s_ij only where j is among the C nearest of i and i among those of j
	Symmetric bool    // makes s_ij = s_ji
	// Dominant makes Σ_{j≠i} s_ij < 1 in every row i. Together with Symmetric
	// the matrix is positive definite.
	Dominant bool
	// Protect reports the entries to keep whatever would drop them; nil is
	// none. With Mutual or Symmetric, one direction protects both.
	Protect func(term, neighbor string) bool
}

// Validate reports every setting that is out of range.
func (o *SparsifyOptions) Validate() error {
	var err error
	if o.Neighbors < 0 || o.Neighbors > simmatrix.MaxNeighbors {
		err = fmt.Errorf("neighbors: %d not in [0, %d], where 0 is no limit", o.Neighbors, simmatrix.MaxNeighbors)
	}
	return errors.Join(err, settings.InUnit("threshold", o.Threshold, "[0, 1)"))
}

func (o *SparsifyOptions) paired() bool { return o.Mutual || o.Symmetric }

func (o *SparsifyOptions) room() int { return cmp.Or(o.Neighbors, simmatrix.MaxNeighbors) }

// params returns before with the settings, in place of earlier ones.
func (o *SparsifyOptions) params(before map[string]string) map[string]string {
	before = maps.Clone(before)
	maps.DeleteFunc(before, func(name, _ string) bool { return strings.HasPrefix(name, simmatrix.SparsifyPrefix) })
	return settings.With(before, simmatrix.SparsifyPrefix, map[string]string{
		"neighbors": strconv.Itoa(o.Neighbors), "threshold": settings.FormatFloat(o.Threshold), "mutual": strconv.FormatBool(o.Mutual),
		"symmetric": strconv.FormatBool(o.Symmetric), "dominant": strconv.FormatBool(o.Dominant),
	})
}

// Sparsify returns m with fewer entries. All terms keep their rows. The steps,
// each on what the one before it has left:
//
//  1. Threshold: entries at or under θ go.
//  2. Mutual: each row keeps its C largest entries, ties in ascending byte
//     order of the neighbor, and of these the pairs that go both ways.
//  3. Symmetric: s_ij and s_ji become the larger of the two. One of them is
//     mostly missing because row j was cut to its nearest.
//  4. Neighbors and Dominant: a row takes its entries in descending
//     similarity, ties as above, but for those with which it would have more
//     than C, or a sum of 1 or more. With Mutual or Symmetric a pair enters
//     both rows or neither, rows in order of increasing document frequency,
//     ties by term, 0 last: the greedy strategy of Novotný 2018
//     (Implementation Notes for the Soft Cosine Measure, section 3).
//
// Sums are of the rounded similarities. Protected entries are taken first and
// count in their row. Where they are more than C, or sum up to 1, the row has
// nothing else. Doing it again changes nothing. A mirrored entry has the
// origins of both directions. Params of the result are those of m and the
// settings, with "sparsify_" before the name.
//
// It returns an error that names each option out of range, and one that wraps
// [simmatrix.ErrInvalid] where Protect leaves a row more than
// [simmatrix.MaxNeighbors] entries.
func Sparsify(matrix *simmatrix.Matrix, opts SparsifyOptions) (*simmatrix.Matrix, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	m := matrix.Table()
	out := &simmatrix.Table{Meta: m.Meta, Terms: m.Terms, DocFreqs: m.DocFreqs, Forms: m.Forms}
	out.Meta.Params = opts.params(m.Meta.Params)
	s := newSparsifier(m, opts)
	if opts.paired() {
		out.Entries = s.pairedEntries()
	} else {
		s.fitRows()
		out.Entries = s.markedEntries(kept)
	}
	return out.Matrix()
}

// Marks of an entry.
const (
	kept      = 1 << iota
	protected // and kept
	chosen    // and kept, of a pair that enters
)

type sparsifier struct {
	from  *simmatrix.Table
	opts  SparsifyOptions
	marks []uint8 // one for each entry
	// inProtected marks the terms that are in a protected entry, as row or as
	// column; nil where there are none.
	inProtected []bool
}

// newSparsifier marks what threshold, Protect and, for Mutual, C keep.
func newSparsifier(m *simmatrix.Table, opts SparsifyOptions) *sparsifier {
	s := &sparsifier{from: m, opts: opts, marks: make([]uint8, len(m.Cols))}
	floor := uint16(math.Round(opts.Threshold * simmatrix.UnitsOfOne))
	for i := range m.Terms {
		cols, sims := m.Row(i)
		marks := s.row(i)
		taken := s.protectRow(i)
		for k := range cols {
			fits := !opts.Mutual || taken < opts.room()
			if marks[k] == 0 && sims[k] > floor && fits {
				marks[k] = kept
				taken++
			}
		}
	}
	return s
}

func (s *sparsifier) row(i int) []uint8 { return s.marks[s.from.Offsets[i]:s.from.Offsets[i+1]] }

// protectRow marks the protected entries of row i and counts them.
func (s *sparsifier) protectRow(i int) int {
	if s.opts.Protect == nil {
		return 0
	}
	cols, _ := s.from.Row(i)
	marks := s.row(i)
	taken := 0
	for k, col := range cols {
		term, neighbor := s.from.Terms[i], s.from.Terms[col]
		if s.opts.Protect(term, neighbor) || (s.opts.paired() && s.opts.Protect(neighbor, term)) {
			if s.inProtected == nil {
				s.inProtected = make([]bool, len(s.from.Terms))
			}
			s.inProtected[i], s.inProtected[col] = true, true
			marks[k] = kept | protected
			taken++
		}
	}
	return taken
}

// fits reports whether a row with so many entries, and sum, may take one more.
func (s *sparsifier) fits(taken, sum int, sim uint16) bool {
	return taken < s.opts.room() && (!s.opts.Dominant || sum+int(sim) < simmatrix.UnitsOfOne)
}

// fitRows unmarks what does not fit, row by row.
func (s *sparsifier) fitRows() {
	for i := range s.from.Terms {
		_, sims := s.from.Row(i)
		marks := s.row(i)
		taken, sum := 0, 0
		for k, mark := range marks {
			if mark&protected != 0 {
				taken, sum = taken+1, sum+int(sims[k])
			}
		}
		for k, mark := range marks {
			switch {
			case mark != kept:
			case s.fits(taken, sum, sims[k]):
				taken, sum = taken+1, sum+int(sims[k])
			default:
				marks[k] = 0
			}
		}
	}
}

// markedEntries returns the entries that have mark, in order.
func (s *sparsifier) markedEntries(mark uint8) simmatrix.Entries {
	total := 0
	for _, marks := range s.marks {
		if marks&mark != 0 {
			total++
		}
	}
	out := simmatrix.NewEntries(len(s.from.Terms), total, s.from.Origins != nil)
	for i := range s.from.Terms {
		cols, sims := s.from.Row(i)
		for k, marks := range s.row(i) {
			if marks&mark != 0 {
				out.AppendEntry(simmatrix.Entry{Col: cols[k], Units: sims[k], Origins: s.from.OriginsAt(i, k)})
			}
		}
		out.Offsets = append(out.Offsets, len(out.Cols))
	}
	return out
}

// A pairEntry is one direction of a pair.
type pairEntry struct {
	sim     uint16 // 0 where it is missing
	origins uint8
}

// A pairOfEntries is s_ij and s_ji; a missing one is 0.
type pairOfEntries struct {
	j          uint32
	ij, ji     pairEntry
	atIJ, atJI int // valid only where the entry is in the matrix
	protected  bool
}

type pairer struct {
	*sparsifier
	columns simmatrix.Columns
	rank    []uint32 // of each term in the order of the strategy
	taken   []int    // entries of each row
	sums    []int    // of each row, in units

	// Scratch of pairsOf, valid until its next call, and of sorting.
	pairs []pairOfEntries
	place []uint32 // by neighbor: its place in pairs, plus 1; 0 for others
	keys  []uint64
}

// pairedEntries returns the entries where pairs stay or go together. Each pair
// is considered in the row that comes first.
func (s *sparsifier) pairedEntries() simmatrix.Entries {
	n := len(s.from.Terms)
	p := &pairer{
		sparsifier: s, columns: s.from.ByColumn(s.marks), rank: make([]uint32, n),
		taken: make([]int, n), sums: make([]int, n), place: make([]uint32, n),
	}
	order := make([]uint32, n)
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(a, b uint32) int { // by document frequency, 0 last, since 0 - 1 is the largest uint32
		return cmp.Or(cmp.Compare(s.from.DocFreqs[a]-1, s.from.DocFreqs[b]-1), cmp.Compare(a, b))
	})
	for at, i := range order {
		p.rank[i] = uint32(at)
	}
	for _, i := range order {
		if s.inProtected != nil && s.inProtected[i] {
			for _, pair := range p.pairsOf(i, protected, false) {
				p.add(i, pair)
			}
		}
	}
	for _, i := range order {
		if p.fits(p.taken[i], p.sums[i], 1) {
			p.choose(i)
		}
	}
	if !s.opts.Symmetric {
		return s.markedEntries(chosen)
	}
	return p.chosenEntries()
}

// pairsOf returns the pairs of row i that have mark in a direction, in no
// order; those with rows before i in the order only if earlier. The directions
// of a pair are made alike if the matrix is to be symmetric.
func (p *pairer) pairsOf(i uint32, mark uint8, earlier bool) []pairOfEntries {
	for _, pair := range p.pairs {
		p.place[pair.j] = 0
	}
	p.pairs = p.pairs[:0]
	cols, sims := p.from.Row(int(i))
	for k, marks := range p.row(int(i)) {
		if j := cols[k]; marks&mark != 0 && (earlier || p.rank[j] > p.rank[i]) {
			pair := p.pair(j)
			pair.ij = pairEntry{sim: sims[k], origins: p.from.OriginsAt(int(i), k)}
			pair.atIJ, pair.protected = p.from.Offsets[i]+k, marks&protected != 0
		}
	}
	rows, places, back := p.columns.Column(int(i))
	for k, j := range rows {
		if !earlier && p.rank[j] < p.rank[i] {
			continue
		}
		at, marks := p.from.Offsets[j]+int(places[k]), uint8(kept) // as all in columns
		if mark != kept || p.inProtected != nil {
			marks = p.marks[at] // far away in memory
		}
		if marks&mark != 0 {
			pair := p.pair(j)
			pair.ji = pairEntry{sim: back[k], origins: p.from.OriginsAt(int(j), int(places[k]))}
			pair.atJI, pair.protected = at, pair.protected || marks&protected != 0
		}
	}
	if p.opts.Symmetric {
		for k := range p.pairs {
			pair := &p.pairs[k]
			pair.ij = pairEntry{sim: max(pair.ij.sim, pair.ji.sim), origins: pair.ij.origins | pair.ji.origins}
			pair.ji = pair.ij
		}
	}
	return p.pairs
}

// pair returns the pair with j, perhaps new, valid until the next call.
func (p *pairer) pair(j uint32) *pairOfEntries {
	if p.place[j] == 0 {
		p.pairs = append(p.pairs, pairOfEntries{j: j, atIJ: -1, atJI: -1})
		p.place[j] = uint32(len(p.pairs)) //nolint:gosec // at most the number of terms
	}
	return &p.pairs[p.place[j]-1]
}

// choose chooses, of the other pairs of row i with later rows, those that fit.
func (p *pairer) choose(i uint32) {
	p.keys = p.keys[:0]
	for _, pair := range p.pairsOf(i, kept, false) {
		oneWay := pair.atIJ < 0 || pair.atJI < 0
		if pair.protected || (p.opts.Mutual && oneWay) || !p.fits(p.taken[pair.j], p.sums[pair.j], pair.ji.sim) {
			continue
		}
		p.keys = append(p.keys, entryKey(simmatrix.Entry{Col: pair.j, Units: pair.ij.sim}))
	}
	slices.Sort(p.keys)
	for _, key := range p.keys {
		e := keyedEntry(key)
		if p.fits(p.taken[i], p.sums[i], e.Units) {
			p.add(i, p.pairs[p.place[e.Col]-1])
		}
	}
}

func (p *pairer) add(i uint32, pair pairOfEntries) {
	if pair.atIJ >= 0 {
		p.marks[pair.atIJ] |= chosen
	}
	if pair.atJI >= 0 {
		p.marks[pair.atJI] |= chosen
	}
	if pair.ij.sim > 0 {
		p.taken[i]++
		p.sums[i] += int(pair.ij.sim)
	}
	if pair.ji.sim > 0 {
		p.taken[pair.j]++
		p.sums[pair.j] += int(pair.ji.sim)
	}
}

func (p *pairer) chosenEntries() simmatrix.Entries {
	total := 0
	for _, taken := range p.taken {
		total += taken
	}
	out := simmatrix.NewEntries(len(p.taken), total, p.from.Origins != nil)
	for i := range p.taken {
		p.keys = p.keys[:0]
		for _, pair := range p.pairsOf(uint32(i), chosen, true) {
			p.keys = append(p.keys, entryKey(simmatrix.Entry{Col: pair.j, Units: pair.ij.sim, Origins: pair.ij.origins}))
		}
		slices.Sort(p.keys)
		for _, key := range p.keys {
			out.AppendEntry(keyedEntry(key))
		}
		out.Offsets = append(out.Offsets, len(out.Cols))
	}
	return out
}

// entryKey packs e into a number that sorts as CompareEntries orders.
func entryKey(e simmatrix.Entry) uint64 {
	return uint64(simmatrix.UnitsOfOne-e.Units)<<40 | uint64(e.Col)<<8 | uint64(e.Origins)
}

func keyedEntry(key uint64) simmatrix.Entry {
	return simmatrix.Entry{
		Units:   simmatrix.UnitsOfOne - uint16(key>>40), //nolint:gosec // the key has no bit above
		Col:     uint32(key >> 8 & 0xffffffff),
		Origins: uint8(key & 0xff),
	}
}
