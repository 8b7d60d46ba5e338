package enrich

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/simmatrix"
)

// A Reading reads the terms of all documents of an index expression with a text
// field.
type Reading struct {
	Cluster      Cluster
	Index, Field string
	// Workers is how many batches are in flight; 0 means [defaultWorkers].
	Workers int
	// Progress may be nil. OnTooLarge is called for each document with too many
	// terms to read, which is skipped. Calls of the two do not overlap.
	Progress   simmatrix.Progress
	OnTooLarge func(doc documents.DocRef, err error)
}

// Count returns the number of documents with the field, and the query for them.
func (r *Reading) Count(ctx context.Context) (docs int64, query []byte, err error) {
	if query, err = (&Task{Field: r.Field}).Query(true); err == nil {
		docs, err = r.Cluster.Count(ctx, r.Index, query)
	}
	return docs, query, err
}

// Each calls fn, several times at once, with the terms of each document for
// which keep returns true. If keep is nil, it takes all documents.
func (r *Reading) Each(
	ctx context.Context, stage string, keep func(doc *documents.DocRef) bool, fn func(doc *documents.DocRef, terms []documents.TermFreq) error,
) error {
	total, query, err := r.Count(ctx)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	done := &meter{progress: r.Progress, stage: stage, total: int(total)}
	terms := NewTerms(r.Cluster, r.Field)
	return each(ctx, r.Cluster, documents.RefOptions{Index: r.Index, Query: query}, r.Workers, func(ctx context.Context, docs []documents.DocRef) error {
		all := len(docs)
		docs = slices.DeleteFunc(docs, func(d documents.DocRef) bool { return keep != nil && !keep(&d) })
		err := terms.Each(ctx, docs, func(i int, found *documents.DocTerms) error {
			switch {
			case errors.Is(found.Err, esclient.ErrTooLarge):
				mu.Lock()
				defer mu.Unlock()
				r.OnTooLarge(docs[i], found.Err)
			case found.Err != nil:
				return fmt.Errorf("document %q of index %q: %w", docs[i].ID, docs[i].Index, found.Err)
			case found.Found: // not deleted meanwhile
				return fn(&docs[i], found.Fields[r.Field])
			}
			return nil
		})
		mu.Lock()
		defer mu.Unlock()
		done.add(all)
		return err
	})
}

// FromTerms returns a [Fill] that reads the terms of a field and calls part to
// make the part of each document. part may modify terms. A document with too
// many terms fails.
func FromTerms(c Cluster, field string, part func(doc *documents.DocRef, terms []documents.TermFreq) Part) Fill {
	t := NewTerms(c, field)
	return func(ctx context.Context, docs []documents.DocRef) ([]Part, error) {
		parts := make([]Part, len(docs))
		deleted := map[string]bool{} // indices
		err := t.Each(ctx, docs, func(i int, found *documents.DocTerms) error {
			switch {
			case hasStatus(found.Err, http.StatusNotFound):
				deleted[docs[i].Index] = true
			case found.Err != nil:
				parts[i].Result = documents.UpdateResult{Status: documents.Refused, Err: found.Err}
			case !found.Found:
				parts[i].Result.Status = documents.Gone
			case found.Version != docs[i].Version:
				parts[i].Result.Status = documents.Conflict
			default:
				parts[i] = part(&docs[i], found.Fields[field])
			}
			return nil
		})
		for i := range docs {
			if deleted[docs[i].Index] { // an update would create the index again
				parts[i] = Part{Result: documents.UpdateResult{Status: documents.Gone}}
			}
		}
		return parts, err
	}
}

// termsAtOnce is how many documents a call asks for at most.
const termsAtOnce = 100

// Terms reads the terms of any number of documents. It asks for as many at a
// time as fit into an answer, and repeats calls as [Retry] does. It is safe for
// concurrent use.
type Terms struct {
	cluster Cluster
	fields  []string
	// fewer is how many documents less than termsAtOnce a call asks for, so that
	// not every call for large documents fails first.
	fewer atomic.Int64
}

// NewTerms returns a reader of the terms of fields.
func NewTerms(c Cluster, fields ...string) *Terms { return &Terms{cluster: c, fields: fields} }

// Each calls fn with the terms of each document, in order. A document with too
// many terms gets an error that wraps [esclient.ErrTooLarge].
func (t *Terms) Each(ctx context.Context, docs []documents.DocRef, fn func(i int, terms *documents.DocTerms) error) error {
	for start := 0; start < len(docs); {
		fewer := t.fewer.Load()
		n := min(termsAtOnce-int(fewer), len(docs)-start)
		var found []documents.DocTerms
		err := Retry(ctx, func() (err error) {
			found, err = t.cluster.TermFreqs(ctx, t.fields, docs[start:start+n])
			return err
		})
		if errors.Is(err, esclient.ErrTooLarge) {
			if n > 1 {
				t.fewer.Store(int64(termsAtOnce - n/2))
				continue
			}
			found, err = []documents.DocTerms{{Err: err}}, nil
		}
		if err == nil && len(found) != n {
			err = fmt.Errorf("the cluster returned terms of %d documents for %d", len(found), n)
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
