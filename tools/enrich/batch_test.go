package enrich

import (
	"context"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/esclient/documents"
)

// A fakeScanner finds some documents, in pages of two.
type fakeScanner struct {
	Cluster

	docs []documents.DocRef
}

// ScanRefs implements [Cluster].
func (s fakeScanner) ScanRefs(_ context.Context, _ documents.RefOptions, fn func([]documents.DocRef) error) error {
	for page := range slices.Chunk(s.docs, 2) {
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
		found.docs = append(found.docs, documents.DocRef{Texts: slices.Repeat([]string{part}, parts)})
	}
	var sizes []int
	err := each(t.Context(), found, documents.RefOptions{}, 1, func(_ context.Context, docs []documents.DocRef) error {
		sizes = append(sizes, len(docs))
		return nil
	})
	want := []int{4, 1, 1, 3}
	check.That(t, slices.Equal(sizes, want) && err == nil, "batches of %v, want %v; %v", sizes, want, err)
}

// A fakeCluster takes updates, and fails in the calls of some numbers.
type fakeCluster struct {
	fakeScanner

	calls  int
	fails  map[int]error
	writes map[string]int // by document
	most   int            // bytes in a call
}

// Refresh implements [Cluster].
func (*fakeCluster) Refresh(context.Context, string) error { return nil }

// UpdateDocs implements [Cluster].
func (c *fakeCluster) UpdateDocs(_ context.Context, updates []documents.DocUpdate) ([]documents.UpdateResult, error) {
	c.calls++
	if err := c.fails[c.calls]; err != nil {
		return nil, err
	}
	size := 0
	for _, u := range updates {
		size += len(u.Part)
		c.writes[u.Doc.ID]++
	}
	c.most = max(c.most, size)
	return make([]documents.UpdateResult, len(updates)), nil
}

func TestWhatIsWrittenIsSentInParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &fakeCluster{writes: map[string]int{}, fails: map[int]error{2: io.ErrUnexpectedEOF}}
		for id := range strings.FieldsSeq("a b c d e f g h") {
			c.docs = append(c.docs, documents.DocRef{ID: id})
		}
		part := make([]byte, batchBytes/3)
		gone := 0
		task := Task{Fill: func(_ context.Context, docs []documents.DocRef) ([]Part, error) {
			parts := make([]Part, len(docs))
			for i := range docs {
				if parts[i].JSON = part; docs[i].ID == "h" {
					gone++
					parts[i] = Part{Result: documents.UpdateResult{Status: documents.Gone}}
				}
			}
			return parts, nil
		}}
		counts, err := Run(t.Context(), c, task, Options{})
		want := (Counts{Written: 7, Gone: 1, Rounds: 1})
		check.That(t, counts == want && err == nil && gone == 1, "%+v, %v, want %+v", counts, err, want)
		if c.most > batchBytes || c.calls != 4 || len(c.writes) != 7 {
			t.Errorf("%d bytes in one of %d calls, for %d documents", c.most, c.calls, len(c.writes))
		}
		for id, n := range c.writes {
			check.Equal(t, 1, n, id)
		}
	})
}
