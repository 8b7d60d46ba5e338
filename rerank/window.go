package rerank

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/akin-search/akin/internal/recovery"
	"github.com/akin-search/akin/simmatrix"
)

// rowsAtOnce is how many rows are asked for at a time: more could take the
// row store longer than a look-up may.
const rowsAtOnce = 200

// A window is the hits of one search and what their scores need.
type window struct {
	guard  *recovery.Guard
	memory *memory
	hits   []Hit
	// uuids are those of the indices of the hits.
	uuids  []string
	fields []column
	// settled says of doubtful fields whether they are readable.
	settled map[fieldKey]bool
}

// A column is one field of a window.
type column struct {
	Field
	space *space
	// query are the numbers of the text's terms.
	query []int32
	// vectors are those of the hits; nil where one is missing.
	vectors []*vector
	// terms are all terms of the text and the hits, each once, with their rows.
	terms []int32
	rows  []*row
}

// recall takes all that is remembered and reports whether that is all there
// is to know. It ends early, with the error, when ctx does.
func (w *window) recall(ctx context.Context) (bool, error) {
	if len(w.recallUUIDs()) > 0 {
		return false, nil
	}
	if w.recallVectors() > 0 {
		return false, ctx.Err()
	}
	for i := range w.fields {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		if w.memory.recallRows(&w.fields[i]) > 0 {
			return false, ctx.Err()
		}
	}
	for field := range w.doubts() {
		if _, known := w.memory.readable.get(field); !known {
			return false, ctx.Err()
		}
	}
	return true, ctx.Err()
}

// recallUUIDs returns the indices of which none is remembered, each once.
func (w *window) recallUUIDs() (missing []string) {
	for k := range w.hits {
		index := w.hits[k].Index
		if k > 0 && index == w.hits[k-1].Index {
			w.uuids[k] = w.uuids[k-1]
			continue
		}
		uuid, ok := w.memory.uuids.get(index)
		if w.uuids[k] = uuid; !ok && !slices.Contains(missing, index) {
			missing = append(missing, index)
		}
	}
	return missing
}

// fetchUUIDs asks for those that are missing.
func (w *window) fetchUUIDs(ctx context.Context, vectors Vectors) error {
	missing := w.recallUUIDs()
	if len(missing) == 0 {
		return nil
	}
	ids := make([]string, len(missing))
	if err := vectors.UUIDs(ctx, missing, ids); err != nil {
		return fmt.Errorf("indices of hits: %w", err)
	}
	for i, index := range missing {
		for k := range w.hits {
			if w.hits[k].Index == index {
				w.uuids[k] = ids[i]
			}
		}
		w.memory.uuids.set(strings.Clone(index), ids[i])
	}
	return nil
}

// recallVectors returns how many are missing.
func (w *window) recallVectors() (missing int) {
	for i := range w.fields {
		c := &w.fields[i]
		c.vectors = make([]*vector, len(w.hits))
		for k := range w.hits {
			v, ok := w.memory.vectors.GetIfPresent(w.key(i, k))
			if !ok {
				missing++
			}
			c.vectors[k] = v
		}
	}
	lookups := len(w.fields) * len(w.hits)
	w.memory.counts.hits.Add(uint64(lookups - missing))
	w.memory.counts.misses.Add(uint64(missing))
	return missing
}

// key names field i of hit k.
func (w *window) key(i, k int) vectorKey {
	h := &w.hits[k]
	return vectorKey{h.Index, w.uuids[k], h.ID, h.SeqNo, h.PrimaryTerm, w.fields[i].Name}
}

// recallRows notes the terms of a column, whose vectors are all there, and
// returns how many rows are missing.
func (m *memory) recallRows(c *column) (missing int) {
	c.query = m.terms.number(c.query[:0], c.Terms)
	if c.terms == nil {
		c.terms = c.distinct()
	}
	c.rows = make([]*row, len(c.terms))
	for k, term := range c.terms {
		r, ok := m.rows.GetIfPresent(rowKey{c.space, term})
		if !ok {
			missing++
		}
		c.rows[k] = r
	}
	return missing
}

// distinct returns the terms of the text and of all hits, ascending.
func (c *column) distinct() []int32 {
	n := len(c.query)
	for _, v := range c.vectors {
		n += len(v.terms)
	}
	all := append(make([]int32, 0, n), c.query...)
	for _, v := range c.vectors {
		all = append(all, v.terms...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// fetch asks for all that the window lacks.
func (w *window) fetch(ctx context.Context, vectors Vectors) error {
	if w.fields[0].vectors == nil { // nobody knows yet which index they are of
		if err := w.fetchUUIDs(ctx, vectors); err != nil {
			return err
		}
		w.recallVectors()
	}
	if err := w.fetchVectors(ctx, vectors); err != nil {
		return err
	}
	for i := range w.fields {
		if err := w.memory.fetchRows(ctx, &w.fields[i]); err != nil {
			return err
		}
	}
	return w.settle(ctx, vectors)
}

// settle asks whether the doubtful fields are readable.
func (w *window) settle(ctx context.Context, vectors Vectors) error {
	for field := range w.doubts() {
		if _, known := w.memory.readable.get(field); known {
			continue
		}
		readable, err := vectors.Readable(ctx, field.index, field.field)
		if err != nil {
			return fmt.Errorf("field %s of %s: %w", field.field, field.index, err)
		}
		if w.settled == nil {
			w.settled = map[fieldKey]bool{}
		}
		w.settled[field] = readable
		w.memory.readable.set(field.clone(), readable)
	}
	return nil
}

// doubts returns the fields that have no terms in any hit of an index, and
// never had: they may be some of which the cluster tells none.
func (w *window) doubts() map[fieldKey]struct{} {
	var doubts map[fieldKey]struct{}
	for i := range w.fields {
		c := &w.fields[i]
		of := func(k int) fieldKey { return fieldKey{w.hits[k].Index, w.uuids[k], c.Name} }
		lacks := func(v *vector) bool { return len(v.terms) == 0 }
		if !slices.ContainsFunc(c.vectors, lacks) {
			continue
		}
		if doubts == nil {
			doubts = map[fieldKey]struct{}{}
		}
		for k, v := range c.vectors {
			if lacks(v) {
				doubts[of(k)] = struct{}{}
			}
		}
		for k, v := range c.vectors {
			if !lacks(v) {
				delete(doubts, of(k))
			}
		}
	}
	for field := range doubts {
		if _, seen := w.memory.seen.get(field); seen {
			delete(doubts, field)
		}
	}
	return doubts
}

// check returns an error where one of the doubts is true.
func (w *window) check() error {
	for field := range w.doubts() {
		readable, known := w.settled[field]
		if !known {
			readable, _ = w.memory.readable.get(field)
		}
		if !readable {
			return fmt.Errorf("%w: %s in %s", ErrNoTerms, field.field, field.index)
		}
	}
	return nil
}

// fetchRows asks for the rows of a column that are missing. One search at a
// time does so for a space: those that wait find what it has fetched.
func (m *memory) fetchRows(ctx context.Context, c *column) error {
	if m.recallRows(c) == 0 {
		return nil
	}
	select {
	case c.space.loading <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-c.space.loading }()
	var missing []int // places in c.terms
	m.recallRows(c)
	for k, r := range c.rows {
		if r == nil {
			missing = append(missing, k)
		}
	}
	for some := range slices.Chunk(missing, rowsAtOnce) {
		if err := m.loadRows(ctx, c, some); err != nil {
			return err
		}
	}
	return nil
}

// loadRows asks for the rows at some places of a column.
func (m *memory) loadRows(ctx context.Context, c *column, some []int) error {
	numbers := make([]int32, len(some))
	for i, k := range some {
		numbers[i] = c.terms[k]
	}
	terms := m.terms.texts(nil, numbers)
	rows := make([]simmatrix.Row, len(terms))
	if err := c.Similarities.Rows(ctx, terms, rows); err != nil {
		return fmt.Errorf("%s: %w", c.Similarities.Version(), err)
	}
	weights, docs := rows, c.Similarities.Docs()
	if c.Weights != nil {
		weights, docs = make([]simmatrix.Row, len(terms)), c.Weights.Docs()
		if err := c.Weights.Rows(ctx, terms, weights); err != nil {
			return fmt.Errorf("weights %s: %w", c.Weights.ID(), err)
		}
	}
	var texts []string
	for i, k := range some {
		c.rows[k], texts = m.row(rows[i], weights[i].DocFreq(), docs, texts)
		m.rows.Set(rowKey{c.space, c.terms[k]}, c.rows[k])
	}
	return nil
}

// scores computes the scores of the hits.
func (w *window) scores(ctx context.Context, s *scratch) ([]float64, error) {
	if err := w.check(); err != nil {
		return nil, err
	}
	s.grow(w.memory.terms.len())
	query := 0.0 // squares of the norms
	products, squares := make([]float64, len(w.hits)), make([]float64, len(w.hits))
	for i := range w.fields {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		c := &w.fields[i]
		square, err := c.compare(ctx, s, products, squares)
		if err != nil {
			return nil, err
		}
		query += c.Boost * square
	}
	for k := range products {
		if query == 0 || squares[k] == 0 {
			products[k] = 0
			continue
		}
		products[k] = products[k] / math.Sqrt(query) / math.Sqrt(squares[k])
	}
	return products, nil
}
