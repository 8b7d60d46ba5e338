package combine

import (
	"bytes"
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
	params := maps.Clone(m.Meta.Params)
	maps.DeleteFunc(params, func(name, _ string) bool { return strings.HasPrefix(name, simmatrix.SparsifyPrefix) })
	out.Meta.Params = settings.With(params, simmatrix.SparsifyPrefix, map[string]string{
		"neighbors": strconv.Itoa(opts.Neighbors), "threshold": settings.FormatFloat(opts.Threshold), "mutual": strconv.FormatBool(opts.Mutual),
		"symmetric": strconv.FormatBool(opts.Symmetric), "dominant": strconv.FormatBool(opts.Dominant),
	})
	s := &sparsifier{Entries: m.Entries, from: m, opts: opts, marks: make([]uint8, len(m.Cols))}
	s.cut()
	if opts.paired() {
		s.pair()
	}
	s.choose()
	out.Entries = simmatrix.NewEntries(len(m.Terms), bytes.Count(s.marks, []byte{chosen}), s.Origins != nil)
	for i := range m.Terms {
		cols, sims := s.Row(i)
		for k, j := range cols {
			if s.marks[s.Offsets[i]+k] == chosen {
				out.AppendEntry(simmatrix.Entry{Col: j, Units: sims[k], Origins: s.OriginsAt(i, k)})
			}
		}
		out.Offsets = append(out.Offsets, len(out.Cols))
	}
	return out.Matrix()
}

// Marks of an entry. Those that are to go have none.
const (
	kept   = 1 + iota // so far
	chosen            // by the last step
)

// A sparsifier has the entries that are left, and others without a mark.
type sparsifier struct {
	simmatrix.Entries

	from  *simmatrix.Table
	opts  SparsifyOptions
	marks []uint8 // one for each entry
}

// protects reports whether s_ij is protected.
func (s *sparsifier) protects(i int, j uint32) bool {
	if s.opts.Protect == nil {
		return false
	}
	term, neighbor := s.from.Terms[i], s.from.Terms[j]
	return s.opts.Protect(term, neighbor) || (s.opts.paired() && s.opts.Protect(neighbor, term))
}

// cut keeps what is above the threshold and, for Mutual, among the C nearest.
func (s *sparsifier) cut() {
	floor := uint16(math.Round(s.opts.Threshold * simmatrix.UnitsOfOne))
	for i := range s.from.Terms {
		cols, sims := s.Row(i)
		marks, taken := s.marks[s.Offsets[i]:], 0
		for k, j := range cols {
			if s.protects(i, j) {
				marks[k] = kept
				taken++
			}
		}
		for k := range cols {
			if marks[k] == 0 && sims[k] > floor && (!s.opts.Mutual || taken < s.opts.room()) {
				marks[k] = kept
				taken++
			}
		}
	}
}

// pair leaves the pairs that go both ways, for Mutual, and makes both
// directions alike, for Symmetric. A protected entry may go one way.
func (s *sparsifier) pair() {
	n := len(s.from.Terms)
	columns := s.ByColumn(s.marks)
	paired := simmatrix.NewEntries(n, len(s.Cols), s.Origins != nil)
	back := make([]simmatrix.Entry, n) // s_ji of the current i, by j
	var row []simmatrix.Entry
	for i := range n {
		rows, places, sims := columns.Column(i)
		for k, j := range rows {
			back[j] = simmatrix.Entry{Col: j, Units: sims[k], Origins: s.OriginsAt(int(j), int(places[k]))}
		}
		row = row[:0]
		cols, sims := s.Row(i)
		for k, j := range cols {
			if s.marks[s.Offsets[i]+k] == 0 || (s.opts.Mutual && back[j].Units == 0 && !s.protects(i, j)) {
				continue
			}
			e := simmatrix.Entry{Col: j, Units: sims[k], Origins: s.OriginsAt(i, k)}
			if s.opts.Symmetric {
				e.Units, e.Origins = max(e.Units, back[j].Units), e.Origins|back[j].Origins
			}
			row = append(row, e)
			back[j] = simmatrix.Entry{}
		}
		for _, j := range rows {
			if s.opts.Symmetric && back[j].Units > 0 && (!s.opts.Mutual || s.protects(i, j)) {
				row = append(row, back[j])
			}
			back[j] = simmatrix.Entry{}
		}
		paired.AppendRow(row)
	}
	s.Entries, s.marks = paired, bytes.Repeat([]byte{kept}, len(paired.Cols))
}

// choose chooses the protected entries, and of the others those that fit.
func (s *sparsifier) choose() {
	n := len(s.from.Terms)
	taken, sums := make([]int, n), make([]int, n) // of each row
	take := func(i uint32, at int) {
		s.marks[at] = chosen
		taken[i]++
		sums[i] += int(s.Sims[at])
	}
	fits := func(i uint32, at int) bool {
		return taken[i] < s.opts.room() && (!s.opts.Dominant || sums[i]+int(s.Sims[at]) < simmatrix.UnitsOfOne)
	}
	order := make([]uint32, n)
	for i := range order {
		order[i] = uint32(i)
		cols, _ := s.Row(i)
		for k, j := range cols {
			if at := s.Offsets[i] + k; s.marks[at] == kept && s.protects(i, j) {
				take(order[i], at)
			}
		}
	}
	slices.SortFunc(order, func(a, b uint32) int { // by document frequency, 0 last, since 0 - 1 is the largest uint32
		return cmp.Or(cmp.Compare(s.from.DocFreqs[a]-1, s.from.DocFreqs[b]-1), cmp.Compare(a, b))
	})
	for _, i := range order {
		for at := s.Offsets[i]; at < s.Offsets[i+1]; at++ {
			if s.marks[at] != kept || !fits(i, at) {
				continue
			}
			if s.opts.paired() { // a pair that did not fit when its other row came does not fit now, either
				j := s.Cols[at]
				if taken[j] >= s.opts.room() { // it may have more that are protected
					continue
				}
				back := s.back(i, at)
				if !fits(j, back) {
					continue
				}
				take(j, back)
			}
			take(i, at)
		}
	}
}

// back returns where s_ji is, given where s_ij is.
func (s *sparsifier) back(i uint32, at int) int {
	j := int(s.Cols[at])
	if s.opts.Symmetric {
		k, _ := s.Find(j, i, s.Sims[at])
		return s.Offsets[j] + k
	}
	cols, _ := s.Row(j) // short: Mutual has cut it to C
	return s.Offsets[j] + slices.Index(cols, i)
}
