// Package simmatrix holds the term-similarity matrix S: its rows, and the file
// format that stores it. Packages below it make, change and serve matrices.
//
// S is an n×n matrix over the index terms of a field, with s_ii = 1 and 0 <
// s_ij <= 1 for the stored entries off the diagonal. Only those are kept, at
// most C of them in a row, so a row is a term's list of neighbors. It need not
// be symmetric: about half of the entries go one way only.
//
// The package is pure: it reads from an io.Reader and writes to an io.Writer,
// and knows nothing of clusters, Redis or files.
package simmatrix

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The largest numbers of terms, and of [Meta.Origins].
const (
	MaxTerms   = math.MaxInt32
	MaxOrigins = 8
)

// The errors of the package, wrapped by those that say more.
var (
	ErrInvalid       = errors.New("invalid similarity matrix") // of [New]: the rows do not make a matrix
	ErrRow           = errors.New("bad neighbor row")          // of [ParseRow] and [PackRow]
	ErrMemory        = errors.New("not enough memory allowed")
	ErrNoVocabulary  = errors.New("no term to learn from")   // there is none, or all are too rare or start with a digit
	ErrFormat        = errors.New("not a valid matrix file") // of [Decode]: or cut short, or with what no matrix can have
	ErrFormatVersion = errors.New("matrix file of another format version")
	ErrChecksum      = errors.New("matrix file is damaged: its checksum does not match")
)

// Progress receives how far a long computation is: done of total units of the
// named stage. It is never called by two goroutines at once, and within a stage
// done ascends from 0 to total. It may be nil.
type Progress func(stage string, done, total int)

// Meta describes a matrix and what it was made from. It is stored as JSON in
// the header of the file, without a time stamp.
type Meta struct {
	Source string            `json:"source"`           // in words, what the matrix was made from
	Params map[string]string `json:"params,omitempty"` // the settings it was made with, by name
	// Origins names what the entries come from: bit k of [Neighbor.Origins] is
	// Origins[k]. Names are unique, at most [MaxOrigins]; without names every
	// entry comes from Source.
	Origins []string `json:"origins,omitempty"`
	// Docs is N, the number of documents that have the field, to which the
	// document frequencies refer; 0 is unknown.
	Docs         uint64 `json:"docs"`
	Terms        uint64 `json:"terms"`           // rows, those without neighbors included
	Forms        uint64 `json:"forms,omitempty"` // terms that people write in another form, see [Table.Forms]
	NonZeros     uint64 `json:"non_zeros"`       // stored entries, the diagonal not counted
	MaxNeighbors uint32 `json:"max_neighbors"`   // length of the longest row
	Symmetric    bool   `json:"symmetric"`       // s_ij = s_ji for all i and j
	// Dominant says that Σ_{j≠i} s_ij < 1 in every row i. A matrix that is
	// symmetric and dominant is positive definite.
	Dominant bool `json:"dominant"`
}

// A Matrix is the term-similarity matrix S. It is immutable and safe for use by
// any number of goroutines. An entry takes 6 bytes, 7 with origins.
type Matrix struct {
	table    Table
	checksum [checksumSize]byte // of the encoded file
}

// A Table is a matrix by term numbers: row and column i are those of Terms[i].
type Table struct {
	Meta     Meta
	Terms    []string // ascending in byte order
	DocFreqs []uint32 // one for each term, 0 where unknown
	// Forms has for each term the form that people write most, such as "gas" for
	// "ga", and "" where that is the term itself or is not known. It is nil where
	// no term has one. [Table.TakeForms] sets it.
	Forms []string
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
	Text    string
	DocFreq uint32 // number of documents that have it, 0 where unknown
}

// A TermRow is one row as [New] takes it.
type TermRow struct {
	Term      string     `json:"term"`      // the index term i
	DocFreq   uint32     `json:"doc_freq"`  // number of documents that have it, 0 where unknown
	Form      string     `json:"form"`      // see [Table.Forms]
	Neighbors []Neighbor `json:"neighbors"` // s_ij, in any order; DocFreq is not read: it is that of the neighbor's own row
}

// New returns the matrix with the given rows, in any order, with similarities
// rounded by [QuantizeSimilarity]. Of meta only Source, Params, Origins and
// Docs are read, of forms those that [CheckForm] allows. The error wraps
// [ErrInvalid] where a term is empty, not UTF-8, longer than [MaxTermBytes] or
// repeated, and where a row has more than
// [MaxNeighbors] neighbors, a repeated one, its own term, a term without a row,
// a similarity not in (0, 1], or origins that Meta.Origins does not name.
func New(meta Meta, rows []TermRow) (*Matrix, error) {
	rows = slices.Clone(rows)
	slices.SortFunc(rows, func(a, b TermRow) int { return cmp.Compare(a.Term, b.Term) })
	t := &Table{Meta: meta, Entries: NewEntries(len(rows), 0, len(meta.Origins) > 0)}
	for _, r := range rows {
		t.Terms, t.DocFreqs = append(t.Terms, strings.Clone(r.Term)), append(t.DocFreqs, r.DocFreq)
	}
	i := -1
	t.TakeForms(func(string) string { // of each term in order
		i++
		return rows[i].Form
	})
	return t.fill(func(i int) iter.Seq[Neighbor] { return slices.Values(rows[i].Neighbors) }, false)
}

// FromRows returns the matrix that has the given rows and forms by term, as
// [Matrix.Rows] yields them. It takes less memory than [New], since the
// neighbors stay packed: what the matrix takes and some 40 bytes a row. Errors
// are those of New, and one where a row has another document frequency for a
// neighbor than that neighbor's own row.
func FromRows(meta Meta, rows map[string]Row, forms map[string]string) (*Matrix, error) {
	t := &Table{Meta: meta}
	nonZeros := 0
	for _, term := range slices.Sorted(maps.Keys(rows)) {
		t.Terms, t.DocFreqs = append(t.Terms, strings.Clone(term)), append(t.DocFreqs, rows[term].DocFreq())
		nonZeros += rows[term].Len()
	}
	t.Entries = NewEntries(len(rows), nonZeros, len(meta.Origins) > 0)
	t.TakeForms(func(term string) string { return forms[term] })
	return t.fill(func(i int) iter.Seq[Neighbor] { return rows[t.Terms[i]].All() }, true)
}

// fill returns the matrix of the table's terms with the neighbors of each.
func (t *Table) fill(neighbors func(i int) iter.Seq[Neighbor], sameDocFreqs bool) (*Matrix, error) {
	index := make(map[string]uint32, len(t.Terms))
	for i, term := range t.Terms {
		index[term] = uint32(i)
	}
	var row []Entry
	for i, term := range t.Terms {
		row = row[:0]
		for n := range neighbors(i) {
			col, ok := index[n.Term]
			switch {
			case !ok:
				return nil, fmt.Errorf("%w: neighbor %q of %q has no row", ErrInvalid, n.Term, term)
			case !(n.Similarity > 0 && n.Similarity <= 1): // written so that NaN fails
				return nil, fmt.Errorf("%w: similarity %v of %q and %q not in (0, 1]", ErrInvalid, n.Similarity, term, n.Term)
			case sameDocFreqs && n.DocFreq != t.DocFreqs[col]:
				return nil, fmt.Errorf("%w: neighbor %q of %q has the document frequency %d, in its own row %d",
					ErrInvalid, n.Term, term, n.DocFreq, t.DocFreqs[col])
			case n.Origins != 0 && t.Origins == nil:
				return nil, fmt.Errorf("%w: %q and %q have origins %b, and none is named", ErrInvalid, term, n.Term, n.Origins)
			}
			row = append(row, Entry{Col: col, Units: ToUnits(float64(n.Similarity)), Origins: n.Origins})
		}
		t.AppendRow(row)
	}
	return t.Matrix()
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

// NewEntries returns Entries without rows, with room for so many.
func NewEntries(rows, entries int, withOrigins bool) Entries {
	e := Entries{Offsets: make([]int, 1, rows+1), Cols: make([]uint32, 0, entries), Sims: make([]uint16, 0, entries)}
	if withOrigins {
		e.Origins = make([]uint8, 0, entries)
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

// Matrix returns the matrix of the table, which must not be modified any more.
// Of Meta only Source, Params, Origins and Docs are read. Errors are those of
// [New], and of terms and entries that are out of order.
func (t *Table) Matrix() (*Matrix, error) {
	m := &Matrix{table: *t}
	if err := m.table.check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	m.table.Meta = m.table.describe()
	h := sha256.New()
	if err := m.table.write(h); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	h.Sum(m.checksum[:0])
	return m, nil
}

func (t *Table) check() error {
	if len(t.Terms) > MaxTerms {
		return fmt.Errorf("%d terms, at most %d", len(t.Terms), MaxTerms)
	}
	names := t.Meta.Origins
	if len(names) > MaxOrigins {
		return fmt.Errorf("%d origins, at most %d", len(names), MaxOrigins)
	}
	for k, name := range names {
		if name == "" || slices.Contains(names[:k], name) {
			return fmt.Errorf("origin %q: empty or repeated", name)
		}
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
	if err := t.checkForms(); err != nil {
		return err
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

// LooksUTF16 reports whether text begins with a UTF-16 byte order mark.
func LooksUTF16(text string) bool {
	return strings.HasPrefix(text, "\xff\xfe") || strings.HasPrefix(text, "\xfe\xff")
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
	valid := func(s string) string { return strings.ToValidUTF8(s, "\uFFFD") } // as JSON would store it
	meta.Source, meta.Origins, meta.Params = valid(meta.Source), nil, nil
	for _, name := range t.Meta.Origins {
		meta.Origins = append(meta.Origins, valid(name))
	}
	if len(t.Meta.Params) > 0 {
		meta.Params = make(map[string]string, len(t.Meta.Params))
	}
	for k, v := range t.Meta.Params {
		meta.Params[valid(k)] = valid(v)
	}
	meta.Terms, meta.NonZeros, meta.Forms = uint64(len(t.Terms)), uint64(len(t.Cols)), t.countForms()
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

// RowAt returns row i. The table has passed the checks of [PackRow].
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

// IDF returns the engines' inverse document frequency of a term that occurs in
// docFreq of docs documents,
//
//	ln(1 + (N − df + 0.5)/(df + 0.5)),
//
// with df limited to [1, N]; it is positive. Source: Lucene's BM25Similarity.
func IDF(docFreq, docs int64) float64 {
	df := float64(max(docFreq, 1))
	n := max(float64(docs), df)
	return math.Log1p((n - df + 0.5) / (df + 0.5))
}

// symmetric reports whether s_ij = s_ji for all i and j. Each row has to be in
// the order of [CompareEntries], to be searched for the mirror of an entry.
func (e *Entries) symmetric() bool {
	mirrored := 0
	for i := range len(e.Offsets) - 1 {
		cols, sims := e.Row(i)
		for k, j := range cols {
			if int(j) > i {
				continue
			}
			if !e.has(int(j), uint32(i), sims[k]) {
				return false
			}
			mirrored++
		}
	}
	return 2*mirrored == len(e.Cols) // else some entry over the diagonal has none under it
}

// has reports whether row i has a similarity in a column.
func (e *Entries) has(i int, col uint32, units uint16) bool {
	cols, sims := e.Row(i)
	k := sort.Search(len(cols), func(k int) bool { return sims[k] < units || (sims[k] == units && cols[k] >= col) })
	return k < len(cols) && cols[k] == col && sims[k] == units
}

// What [Meta] says of overrides and of sparsification.
const (
	OriginOverrides    = "overrides" // names, in [Meta.Origins], the entries that overrides set
	OverridesParam     = "overrides" // names, in [Meta.Params], the descriptions of the overrides applied
	OverridesSeparator = "; "        // between the descriptions of overrides applied one after the other
	MaxOverrideLines   = 100_000     // of a file of overrides
	SparsifyPrefix     = "sparsify_" // begins the names of the settings in [Meta.Params]
)

// AppliedOverrides splits an [OverridesParam] by application.
func AppliedOverrides(param string) []string {
	if param == "" {
		return nil
	}
	return strings.Split(param, OverridesSeparator)
}

// OverrideRules returns the number of rules that an [OverridesParam] describes.
func OverrideRules(param string) int {
	rules := 0
	for _, applied := range AppliedOverrides(param) {
		number, _, _ := strings.Cut(applied, " ")
		if n, err := strconv.Atoi(number); err == nil && n > 0 {
			rules += min(n, MaxOverrideLines)
		}
	}
	return rules
}

// A Columns lists the entries of a matrix column by column, 8 bytes each:
// column j is at [offsets[j], offsets[j+1]) of the others, by row.
type Columns struct {
	offsets []int
	rows    []uint32
	places  []uint16 // of the entry in its row, under MaxNeighbors
	sims    []uint16
}

// ByColumn returns the index of the entries with a mark; nil marks all.
func (e *Entries) ByColumn(marks []uint8) Columns {
	n := len(e.Offsets) - 1
	c := Columns{offsets: make([]int, n+1)}
	for at, col := range e.Cols {
		if marks == nil || marks[at] != 0 {
			c.offsets[col+1]++
		}
	}
	for j := range n {
		c.offsets[j+1] += c.offsets[j]
	}
	total := c.offsets[n]
	c.rows, c.places, c.sims = make([]uint32, total), make([]uint16, total), make([]uint16, total)
	next := slices.Clone(c.offsets[:n])
	for i := range n {
		first := e.Offsets[i]
		for at := first; at < e.Offsets[i+1]; at++ {
			if marks == nil || marks[at] != 0 {
				to := next[e.Cols[at]]
				next[e.Cols[at]]++
				c.rows[to], c.places[to], c.sims[to] = uint32(i), uint16(at-first), e.Sims[at] //nolint:gosec // a matrix has fewer rows, a row fewer entries
			}
		}
	}
	return c
}

// Column returns the entries of column j: rows, places in them, similarities.
func (c *Columns) Column(j int) (rows []uint32, places, sims []uint16) {
	lo, hi := c.offsets[j], c.offsets[j+1]
	return c.rows[lo:hi], c.places[lo:hi], c.sims[lo:hi]
}
