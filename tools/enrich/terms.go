package enrich

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/documents"
)

// A TermReader reads the terms of documents. [documents.API] is one.
type TermReader interface {
	// TermFreqs returns the terms of documents as they are now, in their order, or
	// an error that wraps [esclient.ErrTooLarge].
	TermFreqs(ctx context.Context, field string, docs []documents.DocRef) ([]documents.DocTerms, error)
}

// FromTerms returns a [Fill] that reads the terms of a field of documents, and
// has part make of those of one what it is given. part may change terms. One
// that has too many fails.
func FromTerms(c TermReader, field string, part func(doc *documents.DocRef, terms []documents.TermFreq) Part) Fill {
	t := &Terms{Read: func(ctx context.Context, docs []documents.DocRef) ([]documents.DocTerms, error) {
		return c.TermFreqs(ctx, field, docs)
	}}
	return func(ctx context.Context, docs []documents.DocRef) ([]Part, error) {
		parts, found := make([]Part, len(docs)), make([]documents.DocTerms, len(docs))
		deleted := map[string]bool{} // indices
		err := t.Each(ctx, docs, func(i int, terms *documents.DocTerms) error {
			parts[i] = part(&docs[i], terms.Fields[field])
			found[i] = *terms
			found[i].Fields = nil
			if hasStatus(terms.Err, http.StatusNotFound) {
				deleted[docs[i].Index] = true
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		for i := range docs {
			doc, now := &docs[i], &found[i]
			switch {
			case deleted[doc.Index], now.Err == nil && !now.Found: // an update would make the index again
				parts[i] = Part{Result: documents.UpdateResult{Status: documents.Gone}}
			case now.Err != nil:
				parts[i] = Part{Result: documents.UpdateResult{Status: documents.Refused, Err: now.Err}}
			case now.Version != doc.Version:
				parts[i] = Part{Result: documents.UpdateResult{Status: documents.Conflict}}
			}
		}
		return parts, nil
	}
}

// termsAtOnce is how many documents are asked for their terms in one call at
// most.
const termsAtOnce = 100

// Terms reads the terms of any number of documents, no more at a time than Read
// returns at once. It is safe for concurrent use.
type Terms struct {
	// Read returns the terms of documents, or an error that wraps
	// [esclient.ErrTooLarge].
	Read func(ctx context.Context, docs []documents.DocRef) ([]documents.DocTerms, error)
	// fewer than termsAtOnce documents are asked for by so many, so that not every
	// call for large ones has to fail first.
	fewer atomic.Int64
}

// NewTerms returns what reads the terms of a field, each call again as [Retry]
// does.
func NewTerms(c TermReader, field string) *Terms {
	return &Terms{Read: func(ctx context.Context, docs []documents.DocRef) (found []documents.DocTerms, err error) {
		err = Retry(ctx, func() error {
			found, err = c.TermFreqs(ctx, field, docs)
			return err
		})
		return found, err
	}}
}

// Each calls fn with the terms of each document, in their order. One that has
// too many by itself gets an error that wraps [esclient.ErrTooLarge].
func (t *Terms) Each(ctx context.Context, docs []documents.DocRef, fn func(i int, terms *documents.DocTerms) error) error {
	for start := 0; start < len(docs); {
		fewer := t.fewer.Load()
		n := min(termsAtOnce-int(fewer), len(docs)-start)
		found, err := t.Read(ctx, docs[start:start+n])
		if errors.Is(err, esclient.ErrTooLarge) {
			if n > 1 {
				t.fewer.Store(int64(termsAtOnce - n/2))
				continue
			}
			found, err = []documents.DocTerms{{Err: err}}, nil
		}
		if err == nil && len(found) != n {
			err = fmt.Errorf("the terms of %d documents for %d", len(found), n)
		}
		if err != nil {
			return err
		}
		if fewer > 0 {
			t.fewer.CompareAndSwap(fewer, fewer-1)
		}
		for i := range found {
			if err := fn(start+i, &found[i]); err != nil {
				return err
			}
		}
		start += n
	}
	return nil
}
