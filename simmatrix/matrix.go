package simmatrix

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// MaxTerms is the largest number of terms in a matrix.
const MaxTerms = math.MaxInt32

// MaxOrigins is the largest number of [Meta.Origins].
const MaxOrigins = 8

// ErrInvalid is wrapped by the errors of [New]: the rows do not make a matrix.
var ErrInvalid = errors.New("invalid similarity matrix")

// Meta tells what a matrix is and what it was made from. It is stored as JSON
// in the header of the file and holds no time stamp, so that the same input
// gives the same bytes.
type Meta struct {
	// Source says in words what the matrix was made from.
	Source string `json:"source"`
	// Params are the settings it was made with, by name.
	Params map[string]string `json:"params,omitempty"`
	// Origins names what the entries come from where that is more than one
	// thing, as in an ensemble: bit k of [Neighbor.Origins] is Origins[k]. It
	// has no name twice and at most [MaxOrigins]; none says that every entry
	// comes from Source.
	Origins []string `json:"origins,omitempty"`
	// Docs is N, the number of documents that have the field, to which the
	// document frequencies refer; 0 is unknown.
	Docs uint64 `json:"docs"`
	// Terms is the number of rows, those without neighbors included.
	Terms uint64 `json:"terms"`
	// NonZeros is the number of stored entries, the diagonal not counted.
	NonZeros uint64 `json:"non_zeros"`
	// MaxNeighbors is the length of the longest row.
	MaxNeighbors uint32 `json:"max_neighbors"`
	// Symmetric says that s_ij = s_ji for all i and j.
	Symmetric bool `json:"symmetric"`
	// Dominant says that Σ_{j≠i} s_ij < 1 in every row i. A matrix that is
	// symmetric and dominant is positive definite.
	Dominant bool `json:"dominant"`
}

// A Matrix is the term-similarity matrix S. It is immutable and safe for use
// by any number of goroutines. A non-zero entry takes 6 bytes, 7 in a matrix
// of several origins.
type Matrix struct {
	meta     Meta
	terms    []string // ascending in byte order
	docFreqs []uint32 // one for each term, 0 where unknown
	entries
	checksum [checksumSize]byte // of the encoded file
}

// entries are the non-zero entries off the diagonal in compressed rows: row i
// is at [offsets[i], offsets[i+1]) of cols and sims, in descending similarity,
// ties in ascending column, which is ascending byte order of the term.
type entries struct {
	offsets []int
	cols    []uint32
	sims    []uint16 // s·65535, at least 1
	origins []uint8  // bits of Meta.Origins, nil where there are none
}

func (e *entries) row(i int) (cols []uint32, sims []uint16) {
	lo, hi := e.offsets[i], e.offsets[i+1]
	return e.cols[lo:hi], e.sims[lo:hi]
}

// originsAt returns the origins of the k-th entry of row i.
func (e *entries) originsAt(i, k int) uint8 {
	if e.origins == nil {
		return 0
	}
	return e.origins[e.offsets[i]+k]
}

// A TermRow is one row as [New] takes it.
type TermRow struct {
	// Term is the index term i.
	Term string
	// DocFreq is the number of documents that hold Term, 0 where unknown.
	DocFreq uint32
	// Neighbors are the entries s_ij, in any order. Their DocFreq is not
	// read: it is that of the neighbor's own row.
	Neighbors []Neighbor
}

// New returns the matrix with the given rows, which may come in any order.
// Similarities are rounded by [QuantizeSimilarity]. Of meta only Source,
// Params, Origins and Docs are read; the rest is counted.
//
// It returns an error that wraps [ErrInvalid] and names the term where a term
// is empty, not UTF-8, longer than [MaxTermBytes] or there twice, and where a
// row has more than [MaxNeighbors] neighbors, one twice, its own term, a term
// that has no row, a similarity that is not in (0, 1], or origins that
// Meta.Origins does not name.
func New(meta Meta, rows []TermRow) (*Matrix, error) {
	rows = slices.Clone(rows)
	slices.SortFunc(rows, func(a, b TermRow) int { return cmp.Compare(a.Term, b.Term) })
	m := &Matrix{meta: meta, entries: newEntries(len(rows), len(meta.Origins) > 0)}
	index := make(map[string]uint32, len(rows))
	for i, r := range rows {
		index[r.Term] = uint32(i)
		m.terms = append(m.terms, strings.Clone(r.Term))
		m.docFreqs = append(m.docFreqs, r.DocFreq)
	}
	var row []entry
	for _, r := range rows {
		row = row[:0]
		for _, n := range r.Neighbors {
			col, ok := index[n.Term]
			if !ok {
				return nil, fmt.Errorf("%w: neighbor %q of %q has no row", ErrInvalid, n.Term, r.Term)
			}
			if !(n.Similarity > 0 && n.Similarity <= 1) { // written so that NaN fails
				return nil, fmt.Errorf("%w: similarity %v of %q and %q not in (0, 1]", ErrInvalid, n.Similarity, r.Term, n.Term)
			}
			if n.Origins != 0 && m.origins == nil {
				return nil, fmt.Errorf("%w: %q and %q have origins %b, and none is named", ErrInvalid, r.Term, n.Term, n.Origins)
			}
			row = append(row, entry{col: col, sim: similarityToUnits(float64(n.Similarity)), origins: n.Origins})
		}
		m.appendRow(row)
	}
	if err := m.finish(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return m, nil
}

// An entry is one s_ij of a row i.
type entry struct {
	col     uint32
	sim     uint16
	origins uint8
}

// compareEntries orders a row: descending similarity, ascending column.
func compareEntries(a, b entry) int {
	return cmp.Or(cmp.Compare(b.sim, a.sim), cmp.Compare(a.col, b.col))
}

// newEntries returns no rows, with room for some.
func newEntries(rows int, withOrigins bool) entries {
	e := entries{offsets: make([]int, 1, rows+1)}
	if withOrigins {
		e.origins = []uint8{}
	}
	return e
}

// appendRow sorts row and appends it.
func (e *entries) appendRow(row []entry) {
	slices.SortFunc(row, compareEntries)
	for _, n := range row {
		e.cols = append(e.cols, n.col)
		e.sims = append(e.sims, n.sim)
		if e.origins != nil {
			e.origins = append(e.origins, n.origins)
		}
	}
	e.offsets = append(e.offsets, len(e.cols))
}

// finish checks the terms and entries, then counts what Meta tells of them
// and sets the checksum. The matrix is not to be modified after it.
func (m *Matrix) finish() error {
	if err := m.check(); err != nil {
		return err
	}
	m.meta = m.describe()
	return m.seal()
}

// check returns an error that names what [New] and [Decode] do not accept.
func (m *Matrix) check() error {
	if len(m.terms) > MaxTerms {
		return fmt.Errorf("%d terms, at most %d", len(m.terms), MaxTerms)
	}
	if err := checkOrigins(m.meta.Origins); err != nil {
		return err
	}
	for i, t := range m.terms {
		if err := checkTerm(t); err != nil {
			return err
		}
		switch {
		case i > 0 && m.terms[i-1] == t:
			return fmt.Errorf("term %q is there twice", t)
		case i > 0 && m.terms[i-1] > t:
			return fmt.Errorf("term %q is out of order", t)
		}
	}
	seenIn := make([]uint32, len(m.terms)) // the last row, plus 1, that has the column
	for i := range m.terms {
		if err := m.checkRow(uint32(i), seenIn); err != nil {
			return fmt.Errorf("row of %q: %w", m.terms[i], err)
		}
	}
	return nil
}

// checkTerm returns an error for what no row can be of.
func checkTerm(t string) error {
	switch {
	case t == "":
		return errors.New(`term "" is empty`)
	case len(t) > MaxTermBytes:
		return fmt.Errorf("term %.40q: too long, %d bytes of at most %d", t, len(t), MaxTermBytes)
	case looksUTF16(t):
		return fmt.Errorf("term %.40q: not UTF-8, it looks like UTF-16", t)
	case !utf8.ValidString(t):
		return fmt.Errorf("term %.40q: not UTF-8", t)
	}
	return nil
}

func checkOrigins(names []string) error {
	if len(names) > MaxOrigins {
		return fmt.Errorf("%d origins, at most %d", len(names), MaxOrigins)
	}
	for k, name := range names {
		if name == "" || slices.Contains(names[:k], name) {
			return fmt.Errorf("origin %q: empty or there twice", name)
		}
	}
	return nil
}

func (m *Matrix) checkRow(i uint32, seenIn []uint32) error {
	cols, sims := m.row(int(i))
	if len(cols) > MaxNeighbors {
		return fmt.Errorf("%d neighbors, at most %d", len(cols), MaxNeighbors)
	}
	named := len(m.meta.Origins)
	for k, col := range cols {
		origins := m.originsAt(int(i), k)
		switch {
		case origins>>named != 0 || (origins == 0 && named > 0):
			return fmt.Errorf("origins %b of an entry, of %d named", origins, named)
		case int(col) >= len(m.terms):
			return fmt.Errorf("neighbor %d of %d terms", col, len(m.terms))
		case col == i:
			return errors.New("is its own neighbor")
		case seenIn[col] == i+1:
			return fmt.Errorf("neighbor %q is there twice", m.terms[col])
		case sims[k] == 0:
			return fmt.Errorf("similarity 0 of neighbor %q", m.terms[col])
		case k > 0 && compareEntries(entry{col: cols[k-1], sim: sims[k-1]}, entry{col: col, sim: sims[k]}) > 0:
			return fmt.Errorf("neighbor %q is out of order", m.terms[col])
		}
		seenIn[col] = i + 1
	}
	return nil
}

// describe returns the Meta of m with all that can be counted counted.
func (m *Matrix) describe() Meta {
	meta := m.meta
	meta.Source = strings.ToValidUTF8(meta.Source, "\uFFFD") // as JSON would store it
	meta.Origins = nil
	for _, name := range m.meta.Origins {
		meta.Origins = append(meta.Origins, strings.ToValidUTF8(name, "\uFFFD"))
	}
	meta.Params = nil
	for k, v := range m.meta.Params {
		if meta.Params == nil {
			meta.Params = make(map[string]string, len(m.meta.Params))
		}
		meta.Params[strings.ToValidUTF8(k, "\uFFFD")] = strings.ToValidUTF8(v, "\uFFFD")
	}
	meta.Terms, meta.NonZeros = uint64(len(m.terms)), uint64(len(m.cols))
	meta.MaxNeighbors, meta.Symmetric, meta.Dominant = 0, m.symmetric(), true
	for i := range m.terms {
		cols, sims := m.row(i)
		meta.MaxNeighbors = max(meta.MaxNeighbors, uint32(min(len(cols), MaxNeighbors)))
		sum := 0
		for _, sim := range sims {
			sum += int(sim)
		}
		meta.Dominant = meta.Dominant && sum < similarityUnits
	}
	return meta
}

// Meta returns what the matrix is and what it was made from.
func (m *Matrix) Meta() Meta {
	meta := m.meta
	meta.Params, meta.Origins = maps.Clone(meta.Params), slices.Clone(meta.Origins)
	return meta
}

// Len returns the number of terms.
func (m *Matrix) Len() int { return len(m.terms) }

// Checksum returns the SHA-256 sum, in hexadecimal, that ends the encoded
// file. Two matrices with the same sum have the same Meta and the same rows.
func (m *Matrix) Checksum() string { return hex.EncodeToString(m.checksum[:]) }

// Terms yields the terms in ascending byte order.
func (m *Matrix) Terms() iter.Seq[string] { return slices.Values(m.terms) }

// Row returns the row of term, the zero Row where the matrix does not hold
// the term.
func (m *Matrix) Row(term string) Row {
	i, ok := slices.BinarySearch(m.terms, term)
	if !ok {
		return Row{}
	}
	return m.pack(i)
}

// Rows yields all terms with their rows in ascending byte order of the term.
func (m *Matrix) Rows() iter.Seq2[string, Row] {
	return func(yield func(string, Row) bool) {
		for i, t := range m.terms {
			if !yield(t, m.pack(i)) {
				return
			}
		}
	}
}

// pack returns row i in the packed form of [Row]. It needs none of the checks
// of [PackRow], whose promises check has made.
func (m *Matrix) pack(i int) Row {
	cols, sims := m.row(i)
	termBytes := 0
	for _, col := range cols {
		termBytes += len(m.terms[col])
	}
	p := newPacker(m.docFreqs[i], len(cols), m.origins != nil, termBytes)
	for k, col := range cols {
		p.add(sims[k], m.originsAt(i, k), m.docFreqs[col], m.terms[col])
	}
	return p.row()
}
