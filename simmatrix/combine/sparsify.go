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

// SparsifyOptions are the settings of [Sparsify]. The zero value keeps all.
type SparsifyOptions struct {
	Neighbors int     // C, the most entries in a row off the diagonal; 0 means [simmatrix.MaxNeighbors]
	Threshold float64 // θ in [0, 1): drops entries s_ij <= θ; rounded to a multiple of 1/65535
	Symmetric bool    // makes s_ij = s_ji
	// Dominant makes Σ_{j≠i} s_ij < 1 in every row i. With Symmetric, the matrix
	// is then positive definite.
	Dominant bool
	// Protect reports the entries to keep in any case; may be nil. With Symmetric,
	// one direction protects both.
	Protect func(term, neighbor string) bool
}

// Validate returns all errors in the settings.
func (o *SparsifyOptions) Validate() error {
	var err error
	if o.Neighbors < 0 || o.Neighbors > simmatrix.MaxNeighbors {
		err = fmt.Errorf("neighbors: %d not in [0, %d], where 0 is no limit", o.Neighbors, simmatrix.MaxNeighbors)
	}
	return errors.Join(err, settings.InUnit("threshold", o.Threshold, "[0, 1)"))
}

// Sparsify returns m with fewer entries. All terms keep their rows. Each step
// works on the result of the one before:
//
//  1. Threshold: entries at or below θ go.
//  2. Symmetric: s_ij and s_ji become the larger of the two. Often one is
//     missing because row j was cut to its nearest.
//  3. Neighbors and Dominant: a row takes its entries in descending
//     similarity, ties in ascending byte order of the neighbor, except those
//     with which it would have more than C, or a sum of 1 or more. With
//     Symmetric a pair enters both rows or neither, rows in order of
//     increasing document frequency, ties by term, 0 last: the greedy strategy
//     of Novotný 2018 (Implementation Notes for the Soft Cosine Measure,
//     section 3).
//
// Sums are of the rounded similarities. Protected entries are taken first and
// count in their row. If they are more than C, or add up to 1, the row has
// nothing else. Repeating it changes nothing. A mirrored entry has the origins
// of both directions. The result's Params are those of m and the settings,
// prefixed with "sparsify_".
//
// It returns an error that names each option out of range, and one that wraps
// [simmatrix.ErrInvalid] if Protect leaves more than [simmatrix.MaxNeighbors]
// entries in a row.
func Sparsify(matrix *simmatrix.Matrix, opts SparsifyOptions) (*simmatrix.Matrix, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	m := matrix.Table()
	out := &simmatrix.Table{Meta: m.Meta, Terms: m.Terms, DocFreqs: m.DocFreqs, Forms: m.Forms}
	params := maps.Clone(m.Meta.Params)
	maps.DeleteFunc(params, func(name, _ string) bool { return strings.HasPrefix(name, simmatrix.SparsifyPrefix) })
	out.Meta.Params = settings.With(params, simmatrix.SparsifyPrefix, map[string]string{
		"neighbors": strconv.Itoa(opts.Neighbors), "threshold": settings.FormatFloat(opts.Threshold),
		"symmetric": strconv.FormatBool(opts.Symmetric), "dominant": strconv.FormatBool(opts.Dominant),
	})
	s := &sparsifier{Entries: m.Entries, from: m, opts: opts}
	if opts.Threshold > 0 {
		s.cut()
	}
	if opts.Symmetric {
		s.mirror()
	}
	s.choose()
	out.Entries = s.entriesOf(func(_, at int) bool { return s.chosen[at] })
	return out.Matrix()
}

// A sparsifier has the remaining entries.
type sparsifier struct {
	simmatrix.Entries

	from   *simmatrix.Table
	opts   SparsifyOptions
	chosen []bool // by the last step, for each entry
}

// protects reports whether s_ij is protected.
func (s *sparsifier) protects(i int, j uint32) bool {
	if s.opts.Protect == nil {
		return false
	}
	term, neighbor := s.from.Terms[i], s.from.Terms[j]
	return s.opts.Protect(term, neighbor) || (s.opts.Symmetric && s.opts.Protect(neighbor, term))
}

// entriesOf returns the entries to keep; entry at is in row i.
func (s *sparsifier) entriesOf(keep func(i, at int) bool) simmatrix.Entries {
	kept := simmatrix.NewEntries(len(s.from.Terms), 0, s.Origins != nil)
	for i := range s.from.Terms {
		cols, sims := s.Row(i)
		for k, j := range cols {
			if keep(i, s.Offsets[i]+k) {
				kept.AppendEntry(simmatrix.Entry{Col: j, Units: sims[k], Origins: s.OriginsAt(i, k)})
			}
		}
		kept.Offsets = append(kept.Offsets, len(kept.Cols))
	}
	return kept
}

// cut keeps entries above the threshold.
func (s *sparsifier) cut() {
	floor := uint16(math.Round(s.opts.Threshold * simmatrix.UnitsOfOne))
	s.Entries = s.entriesOf(func(i, at int) bool { return s.Sims[at] > floor || s.protects(i, s.Cols[at]) })
}

// mirror makes both directions equal.
func (s *sparsifier) mirror() {
	n := len(s.from.Terms)
	columns := s.ByColumn()
	mirrored := simmatrix.NewEntries(n, len(s.Cols), s.Origins != nil)
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
			row = append(row, simmatrix.Entry{Col: j, Units: max(sims[k], back[j].Units), Origins: s.OriginsAt(i, k) | back[j].Origins})
			back[j] = simmatrix.Entry{}
		}
		for _, j := range rows {
			if back[j].Units > 0 {
				row = append(row, back[j])
			}
			back[j] = simmatrix.Entry{}
		}
		mirrored.AppendRow(row)
	}
	s.Entries = mirrored
}

// choose takes protected entries, then others that fit.
func (s *sparsifier) choose() {
	n, room := len(s.from.Terms), cmp.Or(s.opts.Neighbors, simmatrix.MaxNeighbors)
	s.chosen = make([]bool, len(s.Cols))
	taken, sums := make([]int, n), make([]int, n) // by row
	take := func(i uint32, at int) {
		s.chosen[at] = true
		taken[i]++
		sums[i] += int(s.Sims[at])
	}
	fits := func(i uint32, at int) bool {
		return taken[i] < room && (!s.opts.Dominant || sums[i]+int(s.Sims[at]) < simmatrix.UnitsOfOne)
	}
	order := make([]uint32, n)
	for i := range order {
		order[i] = uint32(i)
		cols, _ := s.Row(i)
		for k, j := range cols {
			if s.protects(i, j) {
				take(order[i], s.Offsets[i]+k)
			}
		}
	}
	slices.SortFunc(order, func(a, b uint32) int { // by document frequency, 0 last: 0 - 1 is the largest uint32
		return cmp.Or(cmp.Compare(s.from.DocFreqs[a]-1, s.from.DocFreqs[b]-1), cmp.Compare(a, b))
	})
	for _, i := range order {
		for at := s.Offsets[i]; at < s.Offsets[i+1]; at++ {
			if s.chosen[at] || !fits(i, at) {
				continue
			}
			if s.opts.Symmetric { // a pair that did not fit in its other row does not fit now
				j := s.Cols[at]
				k, _ := s.Find(int(j), i, s.Sims[at])
				back := s.Offsets[j] + k
				if !fits(j, back) { // row j may have more protected entries
					continue
				}
				take(j, back)
			}
			take(i, at)
		}
	}
}
