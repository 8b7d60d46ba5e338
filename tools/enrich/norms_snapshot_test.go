package enrich

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/simmatrix"
)

func snapshotOf(t *testing.T, x *fakeIndex, o SnapshotOptions) (*simmatrix.Matrix, error) {
	t.Helper()
	return Snapshot(t.Context(), &Reading{Cluster: x, Field: "body"}, o)
}

func docFreqs(m *simmatrix.Matrix) map[string]uint32 {
	all := map[string]uint32{}
	for term, row := range m.Rows() {
		all[term] = row.DocFreq()
	}
	return all
}

func TestSnapshotCountsTheDocumentsOfEachTerm(t *testing.T) {
	m := check.Got(snapshotOf(t, newFakeIndex("car boat car", "car", "", "boat ship"), SnapshotOptions{Source: "somewhere", MaxMemory: 1000}))(t)
	check.Equal(t, map[string]uint32{"car": 2, "boat": 2, "ship": 1}, docFreqs(m))
	meta := m.Meta()
	check.That(t, meta.Docs == 3 && meta.NonZeros == 0 && meta.Source == "somewhere" && meta.Params["field"] == "body", "%+v", meta)
}

func TestSnapshotBeginsAnewWhereTheScanIsLost(t *testing.T) {
	for _, call := range []string{"docs", "page", "terms"} {
		t.Run(call, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				texts := manyTexts(1200)
				want := check.Got(snapshotOf(t, newFakeIndex(texts...), SnapshotOptions{}))(t)
				x := newFakeIndex(texts...)
				x.busyAt(call, 1, 9)
				got := check.Got(Snapshot(t.Context(), &Reading{Cluster: x, Field: "body", Workers: 1}, SnapshotOptions{}))(t)
				check.That(t, got.Checksum() == want.Checksum(), "%d documents, want %d", got.Meta().Docs, want.Meta().Docs)
			})
		})
	}
}

func TestSnapshotsThatCannotBeMade(t *testing.T) {
	x := newFakeIndex(manyTexts(100)...)
	check.Error(t, simmatrix.ErrMemory, check.ErrOf(snapshotOf(t, x, SnapshotOptions{MaxMemory: 500})))
	check.Error(t, ErrNoTerms, check.ErrOf(snapshotOf(t, newFakeIndex("", ""), SnapshotOptions{})))
	no := errors.New("no")
	x.terms = func(d documents.DocRef, terms *documents.DocTerms) {
		if d.ID == "50" {
			terms.Err = no
		}
	}
	check.Error(t, no, check.ErrOf(snapshotOf(t, x, SnapshotOptions{})))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	check.That(t, check.ErrOf(Snapshot(ctx, &Reading{Cluster: x, Field: "body"}, SnapshotOptions{})) != nil, "no error after the end")
}

func TestSnapshotOfDocumentsOfManyTerms(t *testing.T) {
	texts := largeTexts(120, 200)
	want := check.Got(snapshotOf(t, newFakeIndex(texts...), SnapshotOptions{}))(t)
	x := newFakeIndex(texts...)
	x.put("huge", largeTexts(1, 5000)[0])
	x.tooMany = 2500
	var passedOver []string
	got := check.Got(Snapshot(t.Context(), &Reading{Cluster: x, Field: "body", OnTooLarge: func(d documents.DocRef, err error) {
		if errors.Is(err, esclient.ErrTooLarge) {
			passedOver = append(passedOver, d.ID)
		}
	}}, SnapshotOptions{}))(t)
	if got.Checksum() != want.Checksum() || cmp.Diff([]string{"huge"}, passedOver) != "" {
		t.Errorf("%d documents, want %d; passed over %v", got.Meta().Docs, want.Meta().Docs, passedOver)
	}
}
