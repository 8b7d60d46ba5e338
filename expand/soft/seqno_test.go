package soft

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/expand"
)

// numbered returns pets whose hits have a number instead of an id.
func numbered(tb testing.TB) (*fakeVectors, *expand.Rerank, []expand.Hit) {
	tb.Helper()
	v, fields, hits := pets(tb)
	v.seqNos = map[docName]int64{}
	for k := range hits {
		v.seqNos[docName{"i", hits[k].ID}] = hits[k].SeqNo
		hits[k] = expand.Hit{Index: "i", SeqNo: hits[k].SeqNo}
	}
	return v, &expand.Rerank{BySeqNo: true, Fields: fields}, hits
}

// asked returns the ids of the documents whose terms were asked for, by call.
func (f *fakeVectors) asked() (calls [][]string) {
	for _, call := range f.calls {
		var ids []string
		for _, d := range call {
			ids = append(ids, d.ID)
		}
		calls = append(calls, ids)
	}
	return calls
}

func TestHitsAreNamedByTheirNumbersOnce(t *testing.T) {
	v, by, hits := numbered(t)
	v.versions[docName{"i", "2"}] = 5 // a hit does not tell
	by.Fields = append(by.Fields, by.Fields[0])
	by.Fields[1].Field = "title"
	for _, doc := range v.docs {
		doc["title"] = doc["body"]
	}
	r := newReranker(t, v)
	for range 3 {
		wantBy(t, r, by, hits, .5, 1, 0)
	}
	both := []string{"body", "title"}
	want := [][]documents.VectorRequest{{
		{Index: "i", ID: "1", Fields: both}, {Index: "i", ID: "2", Fields: both}, {Index: "i", ID: "3", Fields: both},
	}}
	check.Equal(t, want, v.calls)
	check.Equal(t, [][]int64{{0, 1, 2}}, v.named)
	hits[1].SeqNo = 9 // it was written again
	v.seqNos[docName{"i", "2"}], v.versions[docName{"i", "2"}] = 9, 6
	wantBy(t, r, by, hits, .5, 1, 0)
	diff := cmp.Diff([][]int64{{0, 1, 2}, {9}}, v.named)
	check.That(t, diff == "" && len(v.calls) == 2 && len(v.calls[1]) == 1, "asked for %v, named (-want +got)\n%s", v.asked(), diff)
}

func TestNumbersOfDocumentsThatAreGoneAreMissing(t *testing.T) {
	v, by, hits := numbered(t)
	v.seqNos[docName{"i", "2"}] = 7
	r := newReranker(t, v)
	check.Error(t, ErrMissing, check.ErrOf(r.Scores(t.Context(), by, hits)))
	v.seqNos[docName{"i", "2"}] = 1 // as the search has seen it
	wantBy(t, r, by, hits, .5, 1, 0)
	check.Equal(t, [][]string{{"1", "3"}, {"2"}}, v.asked())
	clear(v.seqNos)
	_, err := newReranker(t, v).Scores(t.Context(), by, hits)
	check.That(t, errors.Is(err, ErrMissing) && len(v.calls) == 2, "all are gone: got %v, asked for %v", err, v.asked())
}

// staleNames name documents as they were before.
type staleNames struct{ *fakeVectors }

func (s staleNames) Named(ctx context.Context, index string, seqNos []int64) ([]documents.DocRef, error) {
	docs, err := s.fakeVectors.Named(ctx, index, seqNos)
	for i := range docs {
		if docs[i].ID == "3" {
			docs[i].Version--
		}
	}
	return docs, err
}

// A document may change between its naming and the reading of its terms.
func TestTermsOfAnotherStateThanTheNamedAreNotUsed(t *testing.T) {
	v, by, hits := numbered(t)
	v.versions[docName{"i", "3"}] = 4
	r := newReranker(t, staleNames{v})
	check.Error(t, ErrMissing, check.ErrOf(r.Scores(t.Context(), by, hits)))
	_, err := r.Scores(t.Context(), by, hits[:2])
	check.That(t, err == nil && len(v.calls) == 1, "the others: %v, %v", err, v.asked())
}

func TestFailuresOfNamingAreToldAndNotRemembered(t *testing.T) {
	v, by, hits := numbered(t)
	v.namedErr = errors.New("a reason")
	r := newReranker(t, v)
	check.Error(t, v.namedErr, check.ErrOf(r.Scores(t.Context(), by, hits)))
	v.namedErr = nil
	wantBy(t, r, by, hits, .5, 1, 0)
}

// An index that is deleted and created again starts at number 0.
func TestNumbersAreOfOneIndex(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, by, hits := numbered(t)
		v.uuids = map[string]string{"i": "first"}
		r := New(Options{Vectors: v, Bytes: 1 << 20, TTL: time.Minute})
		defer r.Close()
		_, err := r.Scores(t.Context(), by, hits)
		check.OK(t, err)
		v.uuids["i"] = "second"
		v.seqNos[docName{"i", "1"}], v.seqNos[docName{"i", "3"}] = 2, 0
		check.Elapse(time.Minute)
		for range 2 {
			wantBy(t, r, by, hits, 0, 1, .5)
		}
		check.Equal(t, [][]int64{{0, 1, 2}, {0, 1, 2}}, v.named)
	})
}

func TestTooLargeAnswersAreHalvedWithSomeDocumentsMissing(t *testing.T) {
	for _, most := range []int{1, 2, 3} {
		v, by, _ := numbered(t)
		by.Fields = append(by.Fields, by.Fields[0])
		by.Fields[1].Field = "title"
		var hits []expand.Hit
		gone := map[int64]bool{0: true, 3: true, 4: true, 8: true}
		for k := range int64(9) {
			id := fmt.Sprint("d", k)
			v.docs[docName{"i", id}] = map[string]map[string]int64{"body": {"cat": 1 + k}, "title": {"dog": 1}}
			if !gone[k] {
				v.seqNos[docName{"i", id}] = 100 + k
			}
			hits = append(hits, expand.Hit{Index: "i", SeqNo: 100 + k})
		}
		v.most = most
		r := newReranker(t, v)
		if _, err := r.Scores(t.Context(), by, hits); !errors.Is(err, ErrMissing) {
			t.Fatalf("got %v", err)
		}
		v.calls = nil
		var there []expand.Hit
		for k, hit := range hits {
			if !gone[int64(k)] {
				there = append(there, hit)
			}
		}
		_, err := r.Scores(t.Context(), by, there)
		check.OK(t, err)
		check.That(t, len(v.calls) == 0, "asked again for %v", v.asked())
		for k := range gone {
			v.seqNos[docName{"i", fmt.Sprint("d", k)}] = 100 + k
		}
		_, err = r.Scores(t.Context(), by, hits)
		check.OK(t, err)
		for k := range hits {
			v := r.memory.vectors.one(r.memory.docKey(vectorKey{hits[k], "", "body"}))
			check.That(t, v != nil && v.id == fmt.Sprint("d", k) && v.freqs[0] == float64(1+k), "hit %d has %+v", k, v)
		}
		v.err = esclient.ErrTooLarge
		check.Error(t, ErrTooLarge, check.ErrOf(newReranker(t, v).Scores(t.Context(), by, hits)))
	}
}

// Two states may get one number by chance: then the ids tell them apart.
func TestVectorsOfOtherDocumentsAreNotUsed(t *testing.T) {
	v, fields, hits := pets(t)
	r := newReranker(t, v)
	key := r.memory.docKey(vectorKey{hits[1], "", "body"})
	r.memory.vectors.put(key, &vector{id: "other", terms: []int32{}, freqs: []float64{}}, time.Now().Add(time.Hour))
	for range 2 {
		wantScores(t, r, fields, hits, .5, 1, 0)
	}
	check.Equal(t, [][]string{{"1", "2", "3"}}, v.asked())
}

// Neither a request nor an answer is held on to, and calls only join others.
func TestMemoryHoldsOnToNoRequest(t *testing.T) {
	v, by, hits := numbered(t)
	index, field := strings.Clone("i"), strings.Clone("body")
	for k := range hits {
		hits[k].Index = index
	}
	by.Fields[0].Field = field
	r := newReranker(t, v)
	_, err := r.Scores(t.Context(), by, hits)
	check.OK(t, err)
	foreign := []*byte{unsafe.StringData(index), unsafe.StringData(field)}
	for key := range r.memory.fields.known {
		check.That(t, !slices.Contains(foreign, unsafe.StringData(key.index)) && !slices.Contains(foreign, unsafe.StringData(key.field)), "%+v is the request's", key)
	}
	n := r.memory.calls.Stats().Entries
	check.That(t, n <= 0 && len(r.memory.fields.known) == 1, "%d calls are remembered, %d fields", n, len(r.memory.fields.known))
}
