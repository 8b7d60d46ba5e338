package backfill

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/akin-search/akin/esclient/documents"
)

// A fakeScanner finds some documents, in pages of two.
type fakeScanner []documents.DocRef

// ScanRefs implements [Scanner].
func (s fakeScanner) ScanRefs(_ context.Context, _ documents.RefOptions, fn func([]documents.DocRef) error) error {
	for page := range slices.Chunk(s, 2) {
		if err := fn(page); err != nil {
			return err
		}
	}
	return nil
}

// The engines take 100 MB in a request, and what is written is about as long as
// the texts that it is made of.
func TestBatchesOfLongTextsAreSmall(t *testing.T) {
	part := strings.Repeat("x", batchBytes/4)
	var found fakeScanner
	for _, parts := range []int{1, 1, 1, 1, 1, 9, 2, 2, 0} {
		found = append(found, documents.DocRef{Texts: slices.Repeat([]string{part}, parts)})
	}
	var sizes []int
	err := Each(t.Context(), found, documents.RefOptions{}, 1, func(_ context.Context, docs []documents.DocRef) error {
		sizes = append(sizes, len(docs))
		return nil
	})
	if want := []int{4, 1, 1, 3}; !slices.Equal(sizes, want) || err != nil {
		t.Errorf("batches of %v, want %v; %v", sizes, want, err)
	}
}
