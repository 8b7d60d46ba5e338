package enrich

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/simmatrix"
)

func testWeights(t *testing.T) *Weights {
	t.Helper()
	return newWeights(t, 1000, map[string]uint32{"common": 900, "twice": 890, "group1": 150, "number5": 1})
}

func fill(ctx context.Context, x *fakeIndex, w *Weights, o Options) (Counts, error) {
	return Run(ctx, x, NormsTask(x, w, nil, "body"), o)
}

func TestBackfillGivesEveryDocumentItsNorm(t *testing.T) {
	x, w := newFakeIndex(manyTexts(2345)...), testWeights(t)
	visible := 0
	x.on("refresh", func([]documents.DocRef) error { visible = x.written(); return nil })
	last, calls := 0, 0
	counts, err := fill(t.Context(), x, w, Options{Docs: 2345, Progress: func(_ string, done, total int) {
		calls++
		check.That(t, done > last && total == 2345, "%d of %d after %d", done, total, last)
		last = done
	}})
	want := (Counts{Written: 2345, Empty: 235, Rounds: 1})
	check.That(t, counts == want && err == nil, "%+v, %v, want %+v", counts, err, want)
	wrong := x.wrong(w)
	check.That(t, wrong == nil, "documents %v have other norms", wrong)
	check.That(t, last == 2345 && calls == 5, "progress to %d in %d calls", last, calls)
	check.Equal(t, 2345, visible)
}

func TestSecondBackfillWritesOnlyWithOtherWeights(t *testing.T) {
	x, w := newFakeIndex(manyTexts(700)...), testWeights(t)
	for _, o := range []Options{{}, {}, {All: true}} {
		check.OK(t, check.ErrOf(fill(t.Context(), x, w, o)))
		check.Equal(t, 700, x.written(), o)
	}
	other := newWeights(t, 77, map[string]uint32{"common": 5})
	check.OK(t, check.ErrOf(fill(t.Context(), x, other, Options{})))
	check.Equal(t, nil, x.wrong(other))
}

func TestNormThatIsStaleGoes(t *testing.T) {
	x, w := newFakeIndex("common words", ""), testWeights(t)
	check.OK(t, check.ErrOf(fill(t.Context(), x, w, Options{})))
	x.docs["0"].text = "" // as a partial update leaves the rest
	x.docs["1"].text = "group1"
	// It cannot know of the first, which has a norm.
	if counts, err := fill(t.Context(), x, w, Options{}); err != nil || counts.Written != 1 {
		t.Errorf("%+v, %v", counts, err)
	}
	counts, err := fill(t.Context(), x, w, Options{All: true})
	wrong := x.wrong(w)
	check.That(t, wrong == nil && err == nil && counts.Written == 1 && counts.Empty == 1, "%+v, %v, wrong %v", counts, err, wrong)
}

// Documents of an index that was made again had been written with the id of the
// weights and no norm, as those without terms are.
func TestDocumentWithTermsAndNoNormIsOneToDo(t *testing.T) {
	x, w := newFakeIndex("common words", "group1", ""), testWeights(t)
	for _, d := range x.docs {
		d.id = w.ID()
	}
	counts, err := fill(t.Context(), x, w, Options{})
	want := (Counts{Written: 2, Unchanged: 1, Rounds: 1})
	check.That(t, counts == want && err == nil && x.wrong(w) == nil, "%+v, %v, wrong %v; want %+v", counts, err, x.wrong(w), want)
}

// A document has both norms from one partial update, in as many calls as one
// norm takes.
func TestBackfillWithAMatrixStoresBothNorms(t *testing.T) {
	x, w := newFakeIndex(manyTexts(2345)...), testWeights(t)
	soft := newSoftNorm(t, w)
	most := 0
	x.on("update", func(docs []documents.DocRef) error { most = max(most, len(docs)); return nil })
	counts, err := Run(t.Context(), x, NormsTask(x, w, soft, "body"), Options{})
	want := (Counts{Written: 2345, Empty: 235, Rounds: 1})
	check.That(t, counts == want && err == nil && most == normsBatchDocs, "%+v, %v, want %+v; %d documents in a call", counts, err, want, most)
	check.That(t, x.wrong(w) == nil && x.wrongSoft(soft) == nil, "norms %v, soft norms %v", x.wrong(w), x.wrongSoft(soft))
	check.That(t, x.docs["0"].soft > x.docs["0"].norm, "soft norm %v, norm %v of similar words", x.docs["0"].soft, x.docs["0"].norm)
}

// With another matrix all soft norms are stale, and no norm. Without a matrix
// they stay as they are, and with other weights nothing takes them for new.
func TestSoftNormsAreThoseOfTheirMatrix(t *testing.T) {
	x, w := newFakeIndex(manyTexts(100)...), testWeights(t)
	one, two := newSoftNorm(t, w), newSoftNorm(t, w, simmatrix.TermRow{Term: "number5", Neighbors: []simmatrix.Neighbor{{Term: "common", Similarity: 0.5}}})
	run := func(w *Weights, soft *SoftNorm, all bool, written int) {
		t.Helper()
		before := x.written()
		check.OK(t, check.ErrOf(Run(t.Context(), x, NormsTask(x, w, soft, "body"), Options{All: all})))
		check.Equal(t, written, x.written()-before)
	}
	run(w, nil, false, 100)
	run(w, one, false, 100)
	run(w, one, false, 0)
	run(w, one, true, 0)
	run(w, nil, true, 0)
	run(w, two, false, 100)
	check.That(t, x.wrong(w) == nil && x.wrongSoft(two) == nil, "norms %v, soft norms %v", x.wrong(w), x.wrongSoft(two))
	other := newWeights(t, 77, map[string]uint32{"common": 5})
	run(other, nil, false, 100)
	check.That(t, x.wrong(other) == nil && x.wrongSoft(two) == nil, "norms %v, soft norms %v", x.wrong(other), x.wrongSoft(two))
	check.That(t, newSoftNorm(t, other).ID() != one.ID(), "one id for other weights")
}

func TestSoftNormThatIsStaleGoes(t *testing.T) {
	x, w := newFakeIndex("common group1"), testWeights(t)
	soft := newSoftNorm(t, w)
	run := func() {
		check.OK(t, check.ErrOf(Run(t.Context(), x, NormsTask(x, w, soft, "body"), Options{All: true})))
	}
	run()
	x.docs["0"].text = ""
	run()
	check.That(t, x.docs["0"].soft == 0 && x.docs["0"].norm == 0, "%+v", x.docs["0"])
}

func TestInterruptedBackfillDoesTheRestOnly(t *testing.T) {
	x, w := newFakeIndex(manyTexts(3000)...), testWeights(t)
	ctx, cancel := context.WithCancel(t.Context())
	x.on("update", func([]documents.DocRef) error {
		if x.written() >= 1000 {
			cancel()
		}
		return ctx.Err()
	})
	counts, err := fill(ctx, x, w, Options{})
	done := x.written()
	check.Must(t, errors.Is(err, context.Canceled) && counts.Written == done && done != 3000, "%+v, %v, %d written", counts, err, done)
	x.before = nil
	counts, err = fill(t.Context(), x, w, Options{})
	check.That(t, err == nil && counts.Written == 3000-done && x.written() == 3000 && x.wrong(w) == nil, "%+v, %v, %d written", counts, err, x.written())
}

// A heldUpdater holds the calls that write until it is told to go on.
type heldUpdater struct {
	*fakeIndex

	goOn chan struct{}
}

// UpdateDocs implements [Cluster].
func (u *heldUpdater) UpdateDocs(ctx context.Context, updates []documents.DocUpdate) ([]documents.UpdateResult, error) {
	select {
	case <-u.goOn:
		return u.fakeIndex.UpdateDocs(ctx, updates)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// A backfill is interrupted when each of its three workers has a call that
// writes under way. It waits for these calls for a while.
func TestBatchesUnderWayAreFinishedUnlessTheyHang(t *testing.T) {
	for name, tt := range map[string]struct{ after, took time.Duration }{
		"finished": {normsLastCallTime - time.Second, normsLastCallTime - time.Second},
		"hang":     {time.Hour, normsLastCallTime},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := &heldUpdater{newFakeIndex(manyTexts(3000)...), make(chan struct{})}
				ctx, cancel := context.WithCancel(t.Context())
				var began time.Time
				go func() {
					synctest.Wait()
					began = time.Now()
					cancel()
				}()
				release := time.AfterFunc(tt.after, func() { close(x.goOn) })
				counts, err := Run(ctx, x, NormsTask(x, testWeights(t), nil, "body"), Options{Workers: 3})
				written := 3 * normsBatchDocs
				if release.Stop() {
					written = 0
				}
				check.That(t, errors.Is(err, context.Canceled) && counts.Written == written && x.written() == written, "%+v, %v, %d written", counts, err, x.written())
				check.Equal(t, tt.took, time.Since(began))
			})
		})
	}
}

func TestDocumentsWrittenMeanwhileAreDoneInAnotherRound(t *testing.T) {
	for name, all := range map[string]bool{"what is left": false, "all": true} {
		for _, when := range []string{"terms", "update"} {
			t.Run(name+" before "+when, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					x, w := newFakeIndex(manyTexts(600)...), testWeights(t)
					times := 0
					x.on(when, func(docs []documents.DocRef) error {
						if slices.ContainsFunc(docs, func(d documents.DocRef) bool { return d.ID == "5" }) && times < 3 {
							times++
							x.put("5", fmt.Sprintf("common changed %d", times))
						}
						return nil
					})
					var rounds []int
					counts, err := fill(t.Context(), x, w, Options{All: all, OnRound: func(conflicts int, _ error) {
						rounds = append(rounds, conflicts)
					}})
					want := Counts{Written: 600, Empty: 60, Rounds: 4}
					if !all { // those without terms are looked at in each round
						want.Unchanged = 3 * 60
					}
					check.That(t, counts == want && err == nil && x.wrong(w) == nil, "%+v, %v, wrong %v", counts, err, x.wrong(w))
					check.Equal(t, []int{1, 1, 1}, rounds, "rounds")
				})
			})
		}
	}
}

func TestDocumentThatNeverStandsStillIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, w := newFakeIndex("one", "two"), testWeights(t)
		x.on("update", func([]documents.DocRef) error { x.put("1", "again"); return nil })
		counts, err := fill(t.Context(), x, w, Options{})
		want := (Counts{Written: 1, Conflicts: 1, Rounds: normsMaxRounds})
		check.That(t, counts == want && errors.Is(err, ErrConflicts), "%+v, %v, want %+v", counts, err, want)
	})
}

func TestDeletedDocumentsAreFine(t *testing.T) {
	for _, when := range []string{"terms", "update"} {
		x, w := newFakeIndex("one", "two", "three"), testWeights(t)
		x.on(when, func([]documents.DocRef) error { x.remove("1"); return nil })
		counts, err := fill(t.Context(), x, w, Options{})
		want := (Counts{Written: 2, Gone: 1, Rounds: 1})
		check.That(t, counts == want && err == nil, "before %s: %+v, %v", when, counts, err)
	}
}

func TestDocumentsThatFailAreToldAndPassedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, w := newFakeIndex(manyTexts(20)...), testWeights(t)
		no := errors.New("no")
		x.terms = func(d documents.DocRef, terms *documents.DocTerms) {
			if d.ID == "7" {
				*terms = documents.DocTerms{Err: no}
			}
		}
		x.outcome = func(d documents.DocRef) (documents.UpdateResult, bool) {
			return documents.UpdateResult{Status: documents.Refused, Err: no}, d.ID == "8"
		}
		first := true
		x.on("update", func([]documents.DocRef) error { // so that there is a second round, which tells of nothing twice
			if first {
				first = false
				x.put("9", "other")
			}
			return nil
		})
		var failed []string
		counts, err := fill(t.Context(), x, w, Options{OnFailure: func(d documents.DocRef, err error) {
			check.That(t, errors.Is(err, no) && d.Index == "i", "%+v: %v", d, err)
			failed = append(failed, d.ID)
		}})
		slices.Sort(failed)
		if !errors.Is(err, ErrFailed) || counts.Failed != 2 || counts.Written != 18 || counts.Rounds != 2 || !slices.Equal(failed, []string{"7", "8"}) {
			t.Errorf("%+v, %v, failed %v", counts, err, failed)
		}
	})
}

func TestTooManyFailuresEndABackfill(t *testing.T) {
	x, w := newFakeIndex(manyTexts(5000)...), testWeights(t)
	x.outcome = func(documents.DocRef) (documents.UpdateResult, bool) {
		return documents.UpdateResult{Status: documents.Refused, Err: errors.New("read only")}, true
	}
	counts, err := fill(t.Context(), x, w, Options{Workers: 1})
	check.That(t, errors.Is(err, ErrFailed) && strings.Contains(err.Error(), "read only") && counts.Failed == normsMaxFailures, "%+v, %v", counts, err)
}

func TestBusyClusterIsAskedAgain(t *testing.T) {
	for _, call := range []string{"docs", "page", "terms", "update", "refresh"} {
		t.Run(call, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x, w := newFakeIndex(manyTexts(1200)...), testWeights(t)
				x.busyAt(call, 1, 3)
				counts, err := fill(t.Context(), x, w, Options{Workers: 1})
				check.That(t, err == nil && counts.Written == 1200 && x.wrong(w) == nil, "%+v, %v", counts, err)
			})
		})
	}
}

func TestBusyDocumentsAreTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, w := newFakeIndex(manyTexts(50)...), testWeights(t)
		busy := map[string]int{"3": 2, "4": 99}
		queueFull := &esclient.Error{Status: http.StatusTooManyRequests, Reason: "queue full"}
		x.outcome = func(d documents.DocRef) (documents.UpdateResult, bool) {
			busy[d.ID]--
			return documents.UpdateResult{Status: documents.Busy, Err: queueFull}, busy[d.ID] >= 0
		}
		var failed []string
		counts, err := fill(t.Context(), x, w, Options{OnFailure: func(d documents.DocRef, err error) { failed = append(failed, d.ID+": "+err.Error()) }})
		if !errors.Is(err, ErrFailed) || counts.Written != 49 || !slices.Equal(failed, []string{"4: " + queueFull.Error()}) {
			t.Errorf("%+v, %v, %v", counts, err, failed)
		}
	})
}

func TestClusterThatStaysAwayEndsABackfill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newFakeIndex("one")
		x.before = func(string, []documents.DocRef) error { return errBusy }
		_, err := fill(t.Context(), x, testWeights(t), Options{})
		check.That(t, documents.Interrupted(err), "error %v", err)
	})
}

func TestPartsThatAreInterruptedAreCountedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, w := newFakeIndex(manyTexts(500)...), testWeights(t)
		x.busyAt("terms", 4)
		no := errors.New("no")
		x.terms = func(d documents.DocRef, terms *documents.DocTerms) {
			switch d.ID {
			case "7":
				terms.Err = no
			case "8":
				terms.Found = false
			}
		}
		told := 0
		counts, err := fill(t.Context(), x, w, Options{OnFailure: func(documents.DocRef, error) { told++ }})
		want := Counts{Written: 498, Empty: 50, Gone: 1, Failed: 1, Rounds: 1}
		check.That(t, counts == want && errors.Is(err, ErrFailed) && told == 1, "%+v, %v, want %+v; told %d times", counts, err, want, told)
	})
}
