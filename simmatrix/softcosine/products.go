package softcosine

import (
	"fmt"
	"math"
	"sync"
)

// A Normalization says what inner products are divided by.
type Normalization int

// The normalizations.
const (
	None   Normalization = iota // nothing: the inner product, [Space.InnerProduct]
	Hard                        // ‖Wx‖·‖Wy‖, as in [Space.Hard]
	Soft                        // √⟨x, x⟩·√⟨y, y⟩, as in [Space.Soft]
	Cosine                      // as Hard, with S = I: [Space.Cosine]
)

// A Collection is documents Y as the columns of WY, kept by term as in an
// inverted index. It is immutable and safe for use by any number of goroutines.
type Collection struct {
	sp      *Space
	docs    []Vector
	starts  []int     // term j is at [starts[j], starts[j+1]) of
	holders []int32   // documents, ascending
	values  []float64 // w_j·y_j
	hard    []float64 // by document, as hardNorm returns it
	soft    func() ([]float64, error)
	scratch sync.Pool // of *scratch over documents
}

// NewCollection returns the collection of docs, which must not be modified. It
// takes 12 bytes for a coordinate and 16 for a document.
func NewCollection(sp *Space, docs []Vector) *Collection {
	if len(docs) > math.MaxInt32 {
		panic("softcosine: more than 2³¹-1 documents")
	}
	c := &Collection{sp: sp, docs: docs, starts: make([]int, sp.Len()+1), hard: make([]float64, len(docs))}
	for k, y := range docs {
		c.hard[k] = sp.hardNorm(y)
		for _, j := range y.Terms {
			c.starts[j+1]++
		}
	}
	for j := range sp.Len() {
		c.starts[j+1] += c.starts[j]
	}
	next := append([]int(nil), c.starts...)
	c.holders, c.values = make([]int32, c.starts[sp.Len()]), make([]float64, c.starts[sp.Len()])
	for k, y := range docs {
		for l, j := range y.Terms {
			c.holders[next[j]], c.values[next[j]] = int32(k), sp.weights[j]*y.Values[l]
			next[j]++
		}
	}
	c.soft = sync.OnceValues(func() ([]float64, error) {
		norms := make([]float64, len(docs))
		for k, y := range docs {
			norm, err := sp.softNorm(y)
			if err != nil {
				return nil, fmt.Errorf("document %d: %w", k, err)
			}
			norms[k] = norm
		}
		return norms, nil
	})
	c.scratch.New = func() any { return newScratch(len(docs)) }
	return c
}

// Products returns (Wx)ᵀ·S·(WY), normalized by n, as a vector over the
// documents without zeros. It equals what the [Space] computes for each pair,
// except for the rounding of sums in another order. It takes O(m·C) for x and
// as many steps as documents have the terms that x reaches through S.
//
// With Soft the error wraps [ErrNotReal] and names a document whose norm is not
// real, whether or not it shares a term with x. A product out of range is an
// error that wraps [ErrRange]. It panics at an unknown Normalization.
func (c *Collection) Products(x Vector, n Normalization) (Vector, error) {
	norms, norm, err := c.prepare(x, n)
	if err != nil {
		return Vector{}, err
	}
	d := c.scratch.Get().(*scratch) // New gives no other
	if math.IsNaN(norm) {
		for k := range c.docs {
			d.add(int32(k), norm)
		}
	} else {
		c.add(d, x, n)
	}
	for _, k := range d.marked {
		v := d.values[k]
		if n != None {
			v = quotient(v, norm, norms[k])
		}
		if !finite(v) { // computed again from the pair
			if v, err = c.sp.pair(x, c.docs[k], n); err != nil {
				return Vector{}, fmt.Errorf("document %d: %w", k, err)
			}
		}
		d.values[k] = v
	}
	out := d.vector()
	d.clear()
	c.scratch.Put(d)
	return out, nil
}

// add adds the products of x, not normalized, to those of documents.
func (c *Collection) add(d *scratch, x Vector, n Normalization) {
	reach := c.sp.weigh(x)
	if n != Cosine {
		reach = c.sp.combination(reach)
	}
	for l, j := range reach.Terms {
		lo, hi := c.starts[j], c.starts[j+1]
		for at := lo; at < hi; at++ {
			d.add(c.holders[at], reach.Values[l]*c.values[at])
		}
	}
}

func (sp *Space) pair(x, y Vector, n Normalization) (float64, error) {
	switch n {
	case Hard:
		return inRange("the length-normalized similarity", sp.Hard(x, y))
	case Soft:
		return sp.Soft(x, y)
	case Cosine:
		return sp.Cosine(x, y), nil
	default:
		return inRange("the inner product", sp.InnerProduct(x, y))
	}
}

// prepare returns the norms of the documents and of x, NaN where products have
// to be computed from the pair.
func (c *Collection) prepare(x Vector, n Normalization) (norms []float64, norm float64, err error) {
	switch n {
	case None:
		return nil, 0, nil
	case Hard, Cosine:
		return c.hard, c.sp.hardNorm(x), nil
	case Soft:
		if norm, err = c.sp.softNorm(x); err != nil {
			return nil, 0, err
		}
		norms, err = c.soft()
		return norms, norm, err
	default:
		panic("softcosine: unknown normalization")
	}
}
