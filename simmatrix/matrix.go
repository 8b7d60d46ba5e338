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

// ErrMemory says that the work would take more memory than allowed.
var ErrMemory = errors.New("not enough memory allowed")

// ErrNoVocabulary says that a corpus has no term that a matrix could be learned
// for: it is empty, or every term is too rare or starts with a digit.
var ErrNoVocabulary = errors.New("no term to learn from")

// Progress receives how far a long computation is: done of total units of the
// named stage. It is never called by two goroutines at once, and within a stage
// done ascends from 0 to total. It may be nil.
type Progress func(stage string, done, total int)

// Meta describes a matrix and what it was made from. It is stored as JSON in
// the header of the file and holds no time stamp, so that the same input gives
// the same bytes.
type Meta struct {
	// Source says in words what the matrix was made from.
	Source string `json:"source"`
	// Params are the settings it was made with, by name.
	Params map[string]string `json:"params,omitempty"`
	// Origins names what the entries come from where that is more than one
	// thing, as in an ensemble: bit k of [Neighbor.Origins] is Origins[k].
	// Names are unique, at most [MaxOrigins]; without names every entry comes
	// from Source.
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
	table    Table
	checksum [checksumSize]byte // of the encoded file
}

// A Table is a matrix by term numbers: row and column i are those of Terms[i].
type Table struct {
	Meta     Meta
	Terms    []string // ascending in byte order
	DocFreqs []uint32 // one for each term, 0 where unknown
	Entries
}

// Table returns the matrix by term numbers. It must not be modified.
func (m *Matrix) Table() *Table { return &m.table }

// Entries are the non-zero entries off the diagonal in compressed rows: row i
// is at [offsets[i], offsets[i+1]) of cols and sims, in descending similarity,
// ties in ascending column, which is ascending byte order of the term.
type Entries struct {
	Offsets []int
	Cols    []uint32
	Sims    []uint16 // s·65535, at least 1
	Origins []uint8  // bits of Meta.Origins, nil where there are none
}

// Row returns the columns of row i and its similarities in units of 1/65535.
func (e *Entries) Row(i int) (cols []uint32, sims []uint16) {
	lo, hi := e.Offsets[i], e.Offsets[i+1]
	return e.Cols[lo:hi], e.Sims[lo:hi]
}

// OriginsAt returns the origins of the k-th entry of row i.
func (e *Entries) OriginsAt(i, k int) uint8 {
	if e.Origins == nil {
		return 0
	}
	return e.Origins[e.Offsets[i]+k]
}

// A Term is a term that gets a row.
type Term struct {
	// Text is the term itself.
	Text string
	// DocFreq is the number of documents that hold it, 0 where unknown.
	DocFreq uint32
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

// New returns the matrix with the given rows, in any order, with similarities
// rounded by [QuantizeSimilarity]. Of meta only Source, Params, Origins and
// Docs are read. The error wraps [ErrInvalid] where a term is empty, not UTF-8,
// longer than [MaxTermBytes] or repeated, and where a row has more than
// [MaxNeighbors] neighbors, a repeated one, its own term, a term without a row,
// a similarity not in (0, 1], or origins that Meta.Origins does not name.
func New(meta Meta, rows []TermRow) (*Matrix, error) {
	rows = slices.Clone(rows)
	slices.SortFunc(rows, func(a, b TermRow) int { return cmp.Compare(a.Term, b.Term) })
	m := &Table{Meta: meta, Entries: NewEntries(len(rows), len(meta.Origins) > 0)}
	index := make(map[string]uint32, len(rows))
	for i, r := range rows {
		index[r.Term] = uint32(i)
		m.Terms = append(m.Terms, strings.Clone(r.Term))
		m.DocFreqs = append(m.DocFreqs, r.DocFreq)
	}
	var row []Entry
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
			if n.Origins != 0 && m.Origins == nil {
				return nil, fmt.Errorf("%w: %q and %q have origins %b, and none is named", ErrInvalid, r.Term, n.Term, n.Origins)
			}
			row = append(row, Entry{Col: col, Units: ToUnits(float64(n.Similarity)), Origins: n.Origins})
		}
		m.AppendRow(row)
	}
	return m.Matrix()
}

// An Entry is one s_ij of a row i.
type Entry struct {
	Col     uint32
	Units   uint16
	Origins uint8
}

// CompareEntries orders a row: descending similarity, ascending column.
func CompareEntries(a, b Entry) int {
	return cmp.Or(cmp.Compare(b.Units, a.Units), cmp.Compare(a.Col, b.Col))
}

// NewEntries returns Entries without rows, with room for some.
func NewEntries(rows int, withOrigins bool) Entries {
	e := Entries{Offsets: make([]int, 1, rows+1)}
	if withOrigins {
		e.Origins = []uint8{}
	}
	return e
}

// AppendRow sorts row and appends it.
func (e *Entries) AppendRow(row []Entry) {
	slices.SortFunc(row, CompareEntries)
	for _, n := range row {
		e.AppendEntry(n)
	}
	e.Offsets = append(e.Offsets, len(e.Cols))
}

// AppendEntry appends e to the row that is being written.
func (e *Entries) AppendEntry(n Entry) {
	e.Cols, e.Sims = append(e.Cols, n.Col), append(e.Sims, n.Units)
	if e.Origins != nil {
		e.Origins = append(e.Origins, n.Origins)
	}
}

// NewEntriesFor returns Entries without rows, with room for exactly total
// entries.
func NewEntriesFor(total, rows int, withOrigins bool) Entries {
	e := NewEntries(rows, withOrigins)
	e.Cols, e.Sims = make([]uint32, 0, total), make([]uint16, 0, total)
	if withOrigins {
		e.Origins = make([]uint8, 0, total)
	}
	return e
}

// Matrix returns the matrix of the table, which must not be modified any more.
// Of Meta only Source, Params, Origins and Docs are read. Errors are those of
// [New]; in addition the terms and the entries of each row have to be in their
// order.
func (t *Table) Matrix() (*Matrix, error) {
	m := &Matrix{table: *t}
	if err := m.table.check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	m.table.Meta = m.table.describe()
	if err := m.seal(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return m, nil
}

func (t *Table) check() error {
	if len(t.Terms) > MaxTerms {
		return fmt.Errorf("%d terms, at most %d", len(t.Terms), MaxTerms)
	}
	if err := checkOrigins(t.Meta.Origins); err != nil {
		return err
	}
	for i, term := range t.Terms {
		if err := CheckTerm(term); err != nil {
			return err
		}
		switch {
		case i > 0 && t.Terms[i-1] == term:
			return fmt.Errorf("term %q occurs twice", term)
		case i > 0 && t.Terms[i-1] > term:
			return fmt.Errorf("term %q is out of order", term)
		}
	}
	seenIn := make([]uint32, len(t.Terms)) // the last row, plus 1, that has the column
	for i := range t.Terms {
		if err := t.checkRow(uint32(i), seenIn); err != nil {
			return fmt.Errorf("row of %q: %w", t.Terms[i], err)
		}
	}
	return nil
}

// CheckTerm returns an error for a term that cannot have a row.
func CheckTerm(t string) error {
	switch {
	case t == "":
		return errors.New(`term "" is empty`)
	case len(t) > MaxTermBytes:
		return fmt.Errorf("term %.40q: too long, %d bytes of at most %d", t, len(t), MaxTermBytes)
	case LooksUTF16(t):
		return fmt.Errorf("term %.40q: not UTF-8, it looks like UTF-16", t)
	case !utf8.ValidString(t):
		return fmt.Errorf("term %.40q: not UTF-8", t)
	}
	return nil
}

// LooksUTF16 reports whether text begins with a UTF-16 byte order mark, which
// is not valid UTF-8.
func LooksUTF16(text string) bool {
	return strings.HasPrefix(text, "\xff\xfe") || strings.HasPrefix(text, "\xfe\xff")
}

func checkOrigins(names []string) error {
	if len(names) > MaxOrigins {
		return fmt.Errorf("%d origins, at most %d", len(names), MaxOrigins)
	}
	for k, name := range names {
		if name == "" || slices.Contains(names[:k], name) {
			return fmt.Errorf("origin %q: empty or repeated", name)
		}
	}
	return nil
}

func (t *Table) checkRow(i uint32, seenIn []uint32) error {
	cols, sims := t.Row(int(i))
	if len(cols) > MaxNeighbors {
		return fmt.Errorf("%d neighbors, at most %d", len(cols), MaxNeighbors)
	}
	named := len(t.Meta.Origins)
	for k, col := range cols {
		origins := t.OriginsAt(int(i), k)
		switch {
		case origins>>named != 0 || (origins == 0 && named > 0):
			return fmt.Errorf("origins %b of an entry, of %d named", origins, named)
		case int(col) >= len(t.Terms):
			return fmt.Errorf("neighbor %d of %d terms", col, len(t.Terms))
		case col == i:
			return errors.New("is its own neighbor")
		case seenIn[col] == i+1:
			return fmt.Errorf("neighbor %q occurs twice", t.Terms[col])
		case sims[k] == 0:
			return fmt.Errorf("similarity 0 of neighbor %q", t.Terms[col])
		case k > 0 && CompareEntries(Entry{Col: cols[k-1], Units: sims[k-1]}, Entry{Col: col, Units: sims[k]}) > 0:
			return fmt.Errorf("neighbor %q is out of order", t.Terms[col])
		}
		seenIn[col] = i + 1
	}
	return nil
}

// describe returns the Meta of m with its counts computed.
func (t *Table) describe() Meta {
	meta := t.Meta
	meta.Source = strings.ToValidUTF8(meta.Source, "\uFFFD") // as JSON would store it
	meta.Origins = nil
	for _, name := range t.Meta.Origins {
		meta.Origins = append(meta.Origins, strings.ToValidUTF8(name, "\uFFFD"))
	}
	meta.Params = nil
	for k, v := range t.Meta.Params {
		if meta.Params == nil {
			meta.Params = make(map[string]string, len(t.Meta.Params))
		}
		meta.Params[strings.ToValidUTF8(k, "\uFFFD")] = strings.ToValidUTF8(v, "\uFFFD")
	}
	meta.Terms, meta.NonZeros = uint64(len(t.Terms)), uint64(len(t.Cols))
	meta.MaxNeighbors, meta.Symmetric, meta.Dominant = 0, t.symmetric(), true
	for i := range t.Terms {
		cols, sims := t.Row(i)
		meta.MaxNeighbors = max(meta.MaxNeighbors, uint32(min(len(cols), MaxNeighbors)))
		sum := 0
		for _, sim := range sims {
			sum += int(sim)
		}
		meta.Dominant = meta.Dominant && sum < UnitsOfOne
	}
	return meta
}

// Meta returns what the matrix is and what it was made from.
func (m *Matrix) Meta() Meta {
	meta := m.table.Meta
	meta.Params, meta.Origins = maps.Clone(meta.Params), slices.Clone(meta.Origins)
	return meta
}

// Len returns the number of terms.
func (m *Matrix) Len() int { return len(m.table.Terms) }

// Checksum returns the SHA-256 sum, in hexadecimal, that ends the encoded
// file. Two matrices with the same sum have the same Meta and the same rows.
func (m *Matrix) Checksum() string { return hex.EncodeToString(m.checksum[:]) }

// Terms yields the terms in ascending byte order.
func (m *Matrix) Terms() iter.Seq[string] { return slices.Values(m.table.Terms) }

// Row returns the row of term, the zero Row if the matrix lacks the term.
func (m *Matrix) Row(term string) Row {
	i, ok := slices.BinarySearch(m.table.Terms, term)
	if !ok {
		return Row{}
	}
	return m.table.RowAt(i)
}

// Rows yields all terms with their rows in ascending byte order of the term.
func (m *Matrix) Rows() iter.Seq2[string, Row] {
	return func(yield func(string, Row) bool) {
		for i, t := range m.table.Terms {
			if !yield(t, m.table.RowAt(i)) {
				return
			}
		}
	}
}

// RowAt returns row i in the packed form of [Row]. It skips the checks of
// [PackRow], which the table has passed.
func (t *Table) RowAt(i int) Row {
	cols, sims := t.Row(i)
	termBytes := 0
	for _, col := range cols {
		termBytes += len(t.Terms[col])
	}
	p := newPacker(t.DocFreqs[i], len(cols), t.Origins != nil, termBytes)
	for k, col := range cols {
		p.add(sims[k], t.OriginsAt(i, k), t.DocFreqs[col], t.Terms[col])
	}
	return p.row()
}

// Similarities yields the similarity of every entry with its place in its row,
// 0 for the nearest neighbor. It is faster than [Matrix.Rows].
func (m *Matrix) Similarities() iter.Seq2[int, float32] {
	return func(yield func(int, float32) bool) {
		for i := range m.table.Terms {
			_, sims := m.table.Row(i)
			for k, u := range sims {
				if !yield(k, FromUnits(u)) {
					return
				}
			}
		}
	}
}

// IDF returns the engines' inverse document frequency of a term that occurs in
// docFreq of docs documents,
//
//	ln(1 + (N − df + 0.5)/(df + 0.5)),
//
// with df limited to [1, N]: a term in no document counts as the rarest, and N
// that lags behind df as equal to it. It is positive. Source: Lucene's
// BM25Similarity.
func IDF(docFreq, docs int64) float64 {
	df := float64(max(docFreq, 1))
	n := max(float64(docs), df)
	return math.Log1p((n - df + 0.5) / (df + 0.5))
}
