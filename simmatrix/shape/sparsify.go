package shape

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/internal/settings"
)

// SparsifyOptions are the settings of [Sparsify]. The zero value keeps every
// entry.
type SparsifyOptions struct {
	// Neighbors is C, the largest number of entries in a row off the diagonal,
	// at most [simmatrix.MaxNeighbors]. 0 is that.
	Neighbors int
	// Threshold is θ in [0, 1): entries s_ij <= θ go. It is rounded as
	// similarities are, to a multiple of 1/65535.
	Threshold float64
	// Mutual keeps the entry s_ij only where j is among the C nearest of i and
	// i among the C nearest of j.
	Mutual bool
	// Symmetric makes s_ij = s_ji.
	Symmetric bool
	// Dominant makes Σ_{j≠i} s_ij < 1 in every row i. Together with Symmetric
	// the matrix is positive definite; without it, only invertible (Levy and
	// Desplanques).
	Dominant bool
	// Protect reports the entries to keep whatever would drop them; nil is
	// none. With Mutual or Symmetric, one direction protects both. It must be
	// deterministic.
	Protect func(term, neighbor string) bool
}

// Validate reports every setting that is out of range.
func (o *SparsifyOptions) Validate() error {
	var errs []error
	if o.Neighbors < 0 || o.Neighbors > simmatrix.MaxNeighbors {
		errs = append(errs, fmt.Errorf("neighbors: %d not in [0, %d], where 0 is no limit", o.Neighbors, simmatrix.MaxNeighbors))
	}
	if !(o.Threshold >= 0 && o.Threshold < 1) { // written so that NaN fails
		errs = append(errs, fmt.Errorf("threshold: %v not in [0, 1)", o.Threshold))
	}
	return errors.Join(errs...)
}

func (o *SparsifyOptions) paired() bool { return o.Mutual || o.Symmetric }

func (o *SparsifyOptions) room() int {
	if o.Neighbors == 0 {
		return simmatrix.MaxNeighbors
	}
	return o.Neighbors
}

// params returns before with the settings that remove something, in place of
// earlier ones.
func (o *SparsifyOptions) params(before map[string]string) map[string]string {
	params := maps.Clone(before)
	set := func(name, value string, isSet bool) {
		if !isSet {
			delete(params, simmatrix.SparsifyPrefix+name)
			return
		}
		if params == nil {
			params = make(map[string]string)
		}
		params[simmatrix.SparsifyPrefix+name] = value
	}
	set("neighbors", strconv.Itoa(o.Neighbors), o.Neighbors > 0)
	set("threshold", settings.FormatFloat(o.Threshold), o.Threshold > 0)
	set("mutual", "true", o.Mutual)
	set("symmetric", "true", o.Symmetric)
	set("dominant", "true", o.Dominant)
	return params
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
// nothing else, and Meta says so; [inspect.Matrix] counts such rows.
//
// Sparsify with the same options does not change its own result. A mirrored
// entry has the origins of both directions. Params of the result are those of m
// and the settings, with "sparsify_" before the name. Memory is proportional to
// the entries.
//
// It returns an error that names each option out of range, and one that wraps
// [simmatrix.ErrInvalid] where Protect leaves a row more than
// [simmatrix.MaxNeighbors] entries.
func Sparsify(matrix *simmatrix.Matrix, opts SparsifyOptions) (*simmatrix.Matrix, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	m := matrix.Table()
	out := &simmatrix.Table{Meta: m.Meta, Terms: m.Terms, DocFreqs: m.DocFreqs}
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

// newSparsifier marks what the threshold and Protect keep and, for Mutual, the
// nearest of each row.
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

// fits reports whether a row with taken entries that sum up to sum may take
// one more.
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

// markedEntries returns the entries that have mark, in the same order within
// rows.
func (s *sparsifier) markedEntries(mark uint8) simmatrix.Entries {
	total := 0
	for _, marks := range s.marks {
		if marks&mark != 0 {
			total++
		}
	}
	out := simmatrix.NewEntriesFor(total, len(s.from.Terms), s.from.Origins != nil)
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

// byDocFreq returns the rows in order of increasing document frequency, ties
// in ascending byte order of the term, those of frequency 0 last.
func byDocFreq(m *simmatrix.Table) []uint32 {
	order := make([]uint32, len(m.Terms))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(a, b uint32) int {
		// 0 - 1 is the largest uint32; the others keep their order.
		return cmp.Or(cmp.Compare(m.DocFreqs[a]-1, m.DocFreqs[b]-1), cmp.Compare(a, b))
	})
	return order
}
