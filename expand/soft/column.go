package soft

import (
	"context"
	"fmt"
	"slices"
	"unique"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/internal/cache"
	"github.com/akin-search/akin/simmatrix"
)

// rowsAtOnce is how many rows are asked for at a time.
const rowsAtOnce = 200

// A column is a field of the search and of its hits.
type column struct {
	expand.RerankField
	space unique.Handle[space]
	// query are the numbers of the text's terms.
	query []int32
	// vectors are those of the hits; nil where one is missing.
	vectors []*vector
	// weighted are Wy of the hits, nil where that has to be computed.
	weighted []*weighted
	// reaches are those of the text's terms, columns what they have.
	reaches []*reach
	columns [][]near
	// terms are those whose rows are needed, ascending, with their rows.
	terms []int32
	rows  []*row
}

// recallRows notes the terms of a column, whose vectors are all there, and
// returns the places of those whose rows are missing.
func (m *store) recallRows(c *column) (missing []int) {
	c.query = m.terms.number(c.query[:0], c.Terms)
	c.reaches = make([]*reach, len(c.query))
	for i, term := range c.query {
		if c.reaches[i], _, _ = cache.Peek[*reach](m.reaches, rowKey{c.space, term}); c.reaches[i] == nil {
			c.reaches[i] = new(reach)
		}
	}
	c.terms = c.lacking()
	c.rows = make([]*row, len(c.terms))
	for k, term := range c.terms {
		r, ok, _ := cache.Peek[*row](m.rows, rowKey{c.space, term})
		if !ok {
			missing = append(missing, k)
		}
		c.rows[k] = r
	}
	return missing
}

// fetchRows asks for the rows that are missing.
func (m *store) fetchRows(ctx context.Context, c *column) error {
	for some := range slices.Chunk(m.recallRows(c), rowsAtOnce) {
		keys := make([]rowKey, len(some))
		for i, k := range some {
			keys[i] = rowKey{c.space, c.terms[k]}
		}
		found, err := cache.GetAll(ctx, m.rows, keys, func(ctx context.Context, keys []rowKey) (map[rowKey]*row, error) {
			return m.loadRows(ctx, &c.RerankField, keys)
		})
		if err != nil {
			return err
		}
		for i, k := range some {
			c.rows[k] = found[keys[i]]
		}
	}
	return nil
}

func (m *store) loadRows(ctx context.Context, f *expand.RerankField, keys []rowKey) (map[rowKey]*row, error) {
	slices.SortFunc(keys, func(a, b rowKey) int { return int(a.term) - int(b.term) })
	numbers := make([]int32, len(keys))
	for i, key := range keys {
		numbers[i] = key.term
	}
	terms := m.terms.texts(numbers)
	rows := make([]simmatrix.Row, len(terms))
	if err := f.Similarities.Rows(ctx, terms, rows); err != nil {
		return nil, fmt.Errorf("%s: %w", f.Similarities.Version(), err)
	}
	weights, docs := rows, f.Similarities.Docs()
	if f.Weights != nil {
		weights, docs = make([]simmatrix.Row, len(terms)), f.Weights.Docs()
		if err := f.Weights.Rows(ctx, terms, weights); err != nil {
			return nil, fmt.Errorf("weights %s: %w", f.Weights.ID(), err)
		}
	}
	loaded := make(map[rowKey]*row, len(keys))
	for i, key := range keys {
		loaded[key] = m.newRow(rows[i], weights[i].DocFreq(), docs)
	}
	return loaded, nil
}

// lacking returns the terms whose rows are needed, ascending: those of the
// text, of hits whose Wy is not known, and of hits whose rows nobody has looked
// into for the terms of the text.
func (c *column) lacking() []int32 {
	var all, needed termSet
	for _, term := range c.query {
		needed.add(term)
	}
	c.weighted = make([]*weighted, len(c.vectors))
	for k, v := range c.vectors {
		if known := v.weighted.Load(); known != nil && known.space == c.space {
			c.weighted[k] = known
		}
		for _, term := range v.terms {
			if all.add(term); c.weighted[k] == nil {
				needed.add(term)
			}
		}
	}
	for _, r := range c.reaches {
		r.mu.Lock()
		needed.addMissing(all, r.seen)
		r.mu.Unlock()
	}
	return needed.terms()
}

// extend looks for the terms of the text in the rows, and sets their columns.
func (c *column) extend(m *store) {
	var text termSet // a small thing to look into for each neighbor
	for _, term := range c.query {
		text.add(term)
	}
	found := make([][]near, len(c.query))
	for k, r := range c.rows {
		for n, term := range r.terms {
			if text.has(term) {
				i := slices.Index(c.query, term)
				found[i] = append(found[i], near{c.terms[k], r.sims[n]})
			}
		}
	}
	c.columns = make([][]near, len(c.query))
	for i, r := range c.reaches {
		var grew bool
		if c.columns[i], grew = r.extend(c.terms, found[i]); grew {
			m.reaches.Put(rowKey{c.space, c.query[i]}, r, nil, 0) // it weighs more
		}
	}
}
