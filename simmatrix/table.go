package simmatrix

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// The largest number of terms, and of [Meta.Origins].
const (
	MaxTerms   = math.MaxInt32
	MaxOrigins = 8
)

// Meta describes a matrix and how it was made. It is stored as JSON in the
// file's header, without a time stamp.
type Meta struct {
	Source string            `json:"source"`           // in words, what the matrix was made from
	Params map[string]string `json:"params,omitempty"` // its settings, by name
	// Origins names where entries come from: bit k of [Neighbor.Origins] is
	// Origins[k]. Names are unique, at most [MaxOrigins]. Without names all
	// entries come from Source.
	Origins []string `json:"origins,omitempty"`
	// Docs is N, the number of documents with the field, to which document
	// frequencies refer; 0 if unknown.
	Docs  uint64 `json:"docs"`
	Terms uint64 `json:"terms"`           // rows, including those without neighbors
	Forms uint64 `json:"forms,omitempty"` // terms that people write in other forms, see [Table.Forms]
	// OtherForms counts the terms with other forms, see [WithForms].
	OtherForms uint64 `json:"other_forms,omitempty"`
	// Expressions counts the terms that are expressions, see [Expression].
	Expressions  uint64 `json:"expressions,omitempty"`
	NonZeros     uint64 `json:"non_zeros"`     // stored entries, without the diagonal
	MaxNeighbors uint32 `json:"max_neighbors"` // length of the longest row
	Symmetric    bool   `json:"symmetric"`     // s_ij = s_ji for all i and j
	// Dominant says that Σ_{j≠i} s_ij < 1 in every row i. A symmetric and dominant
	// matrix is positive definite.
	Dominant bool `json:"dominant"`
}

// PowerParam names, in [Meta.Params], the p of similarities s = max(0, cos)^p.
const PowerParam = "power"

// ModelParam is the name, in [Meta.Params], of what a matrix has word vectors
// of: a language model, the words that akin contains, or a file.
const ModelParam = "model"

// Power returns p, above 0, if similarities are cosines to the power of p, or 1
// if the header has no p.
func (m *Meta) Power() float64 {
	if p, err := strconv.ParseFloat(m.Params[PowerParam], 64); err == nil && p > 0 && !math.IsInf(p, 1) {
		return p
	}
	return 1
}

// A Table is a matrix by term numbers: row and column i belong to Terms[i].
type Table struct {
	Meta     Meta
	Terms    []string // ascending in byte order
	DocFreqs []uint32 // by term, 0 if unknown
	// Forms has the form of each term that people write most, such as "gas" for
	// "ga"; "" if that is the term itself or unknown. A form may have other forms
	// and a note behind it, see [WithForms] and [WithNote]. Forms is nil if no term
	// has one. [Table.TakeForms] sets it.
	Forms []string
	Entries
}

// Entries are the non-zero entries off the diagonal in compressed rows: row i
// is at [offsets[i], offsets[i+1]) of cols and sims, in descending similarity,
// ties in ascending column, which is ascending byte order of the term.
type Entries struct {
	Offsets []int
	Cols    []uint32
	Sims    []uint16 // s·65535, at least 1
	Origins []uint8  // bits of Meta.Origins; nil if there are none
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

// An Entry is one s_ij of a row i.
type Entry struct {
	Col     uint32
	Units   uint16
	Origins uint8
}

// CompareEntries orders a row: descending similarity, ascending column.
func CompareEntries(a, b Entry) int {
	if a.Units != b.Units {
		return int(b.Units) - int(a.Units)
	}
	return cmp.Compare(a.Col, b.Col)
}

// NewEntries returns Entries without rows, with room for these numbers.
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

// AppendEntry appends n to the current row.
func (e *Entries) AppendEntry(n Entry) {
	e.Cols, e.Sims = append(e.Cols, n.Col), append(e.Sims, n.Units)
	if e.Origins != nil {
		e.Origins = append(e.Origins, n.Origins)
	}
}

// TakeForms sets the forms of the terms, by number. It ignores forms that
// [CheckForm] refuses.
func (t *Table) TakeForms(form func(i int) string) {
	t.Forms = nil
	for i, term := range t.Terms {
		f := form(i)
		if f == term || CheckForm(f) != nil {
			continue
		}
		if t.Forms == nil {
			t.Forms = make([]string, len(t.Terms))
		}
		t.Forms[i] = f
	}
}

// Form returns the form in which people write a term, "" if that is the term
// itself or unknown, with the other forms and the note behind it, see
// [SplitForm] and [OtherForms].
func (t *Table) Form(term string) string {
	if t.Forms == nil {
		return ""
	}
	i, ok := slices.BinarySearch(t.Terms, term)
	if !ok {
		return ""
	}
	return t.Forms[i]
}

// Written returns a term as people read it: in its form if it has one, else as
// [Spelled].
func (t *Table) Written(term string) string {
	written, _ := SplitForm(t.Form(term))
	return cmp.Or(written, Spelled(term))
}

// checkForms returns an error for forms that TakeForms would not set.
func (t *Table) checkForms() error {
	if t.Forms == nil {
		return nil
	}
	if forms, _ := t.countForms(); forms == 0 || len(t.Forms) != len(t.Terms) {
		return errors.New("forms of other terms, or none")
	}
	for i, form := range t.Forms {
		if form == "" {
			continue
		}
		if err := CheckForm(form); err != nil {
			return err
		}
		if form == t.Terms[i] {
			return fmt.Errorf("form %.40q is the term itself", form)
		}
	}
	return nil
}

func (t *Table) countForms() (forms, others uint64) {
	for _, form := range t.Forms {
		if form != "" {
			forms++
		}
		if strings.Contains(form, formMark) {
			others++
		}
	}
	return forms, others
}

func (t *Table) countExpressions() (n uint64) {
	first, _ := slices.BinarySearch(t.Terms, expressionMark)
	for _, term := range t.Terms[first:] {
		if !IsExpression(term) {
			break
		}
		n++
	}
	return n
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
	seenIn := make([]uint32, len(t.Terms)) // the last row with the column, plus 1
	for i := range t.Terms {
		if err := t.checkRow(uint32(i), seenIn); err != nil {
			return fmt.Errorf("row of %q: %w", t.Terms[i], err)
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

// describe returns the Meta with its counts computed.
func (t *Table) describe() Meta {
	var meta Meta
	header, _ := json.Marshal(t.Meta) // replaces what is not UTF-8
	_ = json.Unmarshal(header, &meta)
	meta.Terms = uint64(len(t.Terms))
	meta.NonZeros = uint64(len(t.Cols))
	meta.Forms, meta.OtherForms = t.countForms()
	meta.Expressions = t.countExpressions()
	meta.MaxNeighbors = 0
	meta.Symmetric = t.symmetric()
	meta.Dominant = true
	for i := range t.Terms {
		_, sims := t.Row(i)
		meta.MaxNeighbors = max(meta.MaxNeighbors, uint32(min(len(sims), MaxNeighbors)))
		meta.Dominant = meta.Dominant && sum(sims) < UnitsOfOne
	}
	return meta
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

// symmetric reports whether s_ij = s_ji for all i and j. Rows must be in the
// order of [CompareEntries] for the search of mirror entries.
func (e *Entries) symmetric() bool {
	mirrored := 0
	for i := range len(e.Offsets) - 1 {
		cols, sims := e.Row(i)
		for k, j := range cols {
			if int(j) > i {
				continue
			}
			if _, ok := e.Find(int(j), uint32(i), sims[k]); !ok {
				return false
			}
			mirrored++
		}
	}
	return 2*mirrored == len(e.Cols) // else some entry above the diagonal has none below it
}

// Find returns the place in row i of a similarity in a column, or false.
func (e *Entries) Find(i int, col uint32, units uint16) (k int, ok bool) {
	cols, sims := e.Row(i)
	k = sort.Search(len(cols), func(k int) bool { return sims[k] < units || (sims[k] == units && cols[k] >= col) })
	return k, k < len(cols) && cols[k] == col && sims[k] == units
}

// A Columns has the entries of a matrix by column, 8 bytes each: column j is at
// [offsets[j], offsets[j+1]) of the others, sorted by row.
type Columns struct {
	offsets []int
	rows    []uint32
	places  []uint16 // of the entry in its row, below MaxNeighbors
	sims    []uint16
}

// ByColumn returns the index of the entries.
func (e *Entries) ByColumn() Columns {
	n, total := len(e.Offsets)-1, len(e.Cols)
	c := Columns{offsets: make([]int, n+1)}
	for _, col := range e.Cols {
		c.offsets[col+1]++
	}
	for j := range n {
		c.offsets[j+1] += c.offsets[j]
	}
	c.rows = make([]uint32, total)
	c.places = make([]uint16, total)
	c.sims = make([]uint16, total)
	next := slices.Clone(c.offsets[:n])
	for i := range n {
		first := e.Offsets[i]
		for at := first; at < e.Offsets[i+1]; at++ {
			to := next[e.Cols[at]]
			next[e.Cols[at]]++
			c.rows[to], c.places[to] = uint32(i), uint16(at-first) //nolint:gosec // a matrix has fewer rows, a row fewer entries
			c.sims[to] = e.Sims[at]
		}
	}
	return c
}

// Column returns the entries of column j: rows, places in them, similarities.
func (c *Columns) Column(j int) (rows []uint32, places, sims []uint16) {
	lo, hi := c.offsets[j], c.offsets[j+1]
	return c.rows[lo:hi], c.places[lo:hi], c.sims[lo:hi]
}
