package learn

import (
	"errors"
	"fmt"
	"math"
	"runtime"

	"github.com/akin-search/akin/simmatrix"
)

type oversize struct{ need, room int64 }

// Error implements error.
func (o *oversize) Error() string {
	return fmt.Sprintf("entries of about %s, room for %s", megabytes(o.need), megabytes(o.room))
}

func megabytes(n int64) string { return fmt.Sprintf("%d MB", max(n, 0)>>20) }

// checkMemory reports whether the documents, sorted, take more than limit
// bytes; 0 is no limit.
func (c *Corpus) checkMemory(limit int64) error {
	const view = 24 // of a document, to sort them
	need := c.Bytes() + 2*4*int64(len(c.sequence)) + view*int64(min(c.docs, math.MaxInt32))
	if limit == 0 || need <= limit {
		return nil
	}
	return fmt.Errorf("%w: %d documents take about %s of %s: lower the number of documents", simmatrix.ErrMemory, c.docs, megabytes(need), megabytes(limit))
}

// A memory estimates what learning takes besides the entries of the sparse
// matrices, which are counted as they are made.
type memory struct {
	limit int64 // 0 is none
	terms int64
	// corpus is what the documents take: the corpus, the vocabulary, and the
	// places of its terms.
	corpus int64
	// decomposition and search are what the two largest stages take.
	decomposition, search int64
}

func newMemory(c *Corpus, v *vocabulary, o *CorpusOptions) memory {
	terms, rows, dim := int64(len(v.terms)), int64(v.rows), int64(o.Dimensions)
	parts := int64(1)
	if o.Parts == BothParts {
		parts = 2
	}
	m := memory{limit: o.MaxMemory, terms: terms}
	m.corpus = c.Bytes() + 2*4*int64(cap(v.sequence)) + 24*terms
	// Two bases and the result in float64, the panels of each processor, and
	// the vectors, the old and the wider ones.
	width := dim + oversampling
	processors := min(int64(runtime.GOMAXPROCS(0)), width/panelWidth+1)
	m.decomposition = terms * (8*(2*width+dim) + processors*2*8*panelWidth + 4*(2*parts-1)*dim)
	// The vectors, in rows and in panels, and the entries, as they are found
	// and without the gaps.
	m.search = terms*4*parts*dim + rows*(4*parts*dim+2*6*int64(o.Neighbors))
	return m
}

func (m *memory) vectors() error {
	need := m.corpus + max(m.decomposition, m.search)
	if m.limit == 0 || need <= m.limit {
		return nil
	}
	return fmt.Errorf("%w: documents and vectors of %d terms take about %s of %s: "+
		"lower the number of terms, dimensions, neighbors or documents, or raise the smallest document frequency",
		simmatrix.ErrMemory, m.terms, megabytes(need), megabytes(m.limit))
}

func (m *memory) room() int64 {
	if m.limit == 0 {
		return math.MaxInt64
	}
	return m.limit - m.corpus - m.decomposition
}

// explain turns an oversize of the named entries into a [simmatrix.ErrMemory].
func (m *memory) explain(err error, entries string) error {
	o, ok := errors.AsType[*oversize](err)
	if !ok {
		return err
	}
	return fmt.Errorf("%w: the %s take about %s, %s of %s are left for them: lower the number of documents or of terms, "+
		"or raise the smallest document frequency or co-occurrence",
		simmatrix.ErrMemory, entries, megabytes(o.need), megabytes(o.room), megabytes(m.limit))
}
