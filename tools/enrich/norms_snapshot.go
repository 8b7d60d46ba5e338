package enrich

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"

	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/simmatrix"
)

// ErrNoTerms says that there is nothing to make weights of.
var ErrNoTerms = errors.New("no document has terms in the field")

// SnapshotOptions say what [Snapshot] makes.
type SnapshotOptions struct {
	// Source says in words where the documents come from, for the artifact.
	Source string
	// MinDocFreq leaves out the terms of fewer documents. Up to 2 changes no
	// weight, for a term without a row counts as in one document.
	MinDocFreq uint32
	// MaxMemory bounds the bytes that the terms may take while they are counted;
	// about three times as much is taken to make the artifact. 0 is no bound.
	MaxMemory int64
}

// Snapshot counts the documents of each term of a field, and returns a matrix
// that has a row for each and no neighbors; its Docs is the number of documents
// that have terms in the field. The same documents make the same matrix. The
// error wraps [simmatrix.ErrMemory] where the bound is too small, and
// [ErrNoTerms] where no document has any.
func Snapshot(ctx context.Context, r *Reading, o SnapshotOptions) (*simmatrix.Matrix, error) {
	const termBytes = 56 // is about what a counted term takes besides its text
	var mu sync.Mutex    // of what follows
	var docs uint64
	var docFreqs map[string]uint32
	var bytes int64
	count := func(_ *documents.DocRef, terms []documents.TermFreq) error {
		mu.Lock()
		defer mu.Unlock()
		if len(terms) > 0 {
			docs++
		}
		for _, t := range terms {
			n, known := docFreqs[t.Term]
			if n == math.MaxUint32 || len(t.Term) > simmatrix.MaxTermBytes {
				continue // no engine has either
			}
			if known {
				docFreqs[t.Term] = n + 1
				continue
			}
			docFreqs[strings.Clone(t.Term)] = 1
			bytes += int64(len(t.Term)) + termBytes
		}
		if o.MaxMemory > 0 && bytes > o.MaxMemory {
			return fmt.Errorf("%w: the %d terms of the first %d documents take %d MB", simmatrix.ErrMemory, len(docFreqs), docs, bytes>>20)
		}
		return nil
	}
	err := Retry(ctx, func() error { // a scan that is interrupted begins again, and so do the counts
		docs, docFreqs, bytes = 0, map[string]uint32{}, 0
		return r.Each(ctx, "counting terms", nil, count)
	})
	if err != nil {
		return nil, err
	}
	var rows []simmatrix.TermRow
	for term, docFreq := range docFreqs {
		if term != "" && docFreq >= o.MinDocFreq {
			rows = append(rows, simmatrix.TermRow{Term: term, DocFreq: docFreq})
		}
	}
	docFreqs = nil
	if len(rows) == 0 {
		return nil, ErrNoTerms
	}
	params := map[string]string{"kind": "weights", "field": r.Field}
	if o.MinDocFreq > 1 {
		params["min_df"] = strconv.FormatUint(uint64(o.MinDocFreq), 10)
	}
	return simmatrix.New(simmatrix.Meta{Source: o.Source, Params: params, Docs: docs}, rows)
}
