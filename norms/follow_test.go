package norms

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/backfill"
	"github.com/akin-search/akin/esclient/answers"
	"github.com/akin-search/akin/esclient/documents"
)

// A followedIndex is an index of one shard whose writes are followed.
type followedIndex struct {
	*fakeIndex

	history string // "" where the index is not there
	asked   int    // documents whose terms were asked for
	rounds  int
}

// ShardStates implements [backfill.FollowedCluster].
func (x *followedIndex) ShardStates(context.Context, string) ([]documents.ShardState, error) {
	if err := x.hook("states", nil); err != nil {
		return nil, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.rounds++
	if x.history == "" {
		return nil, nil
	}
	return []documents.ShardState{{Index: "i", History: x.history, Checkpoint: x.seqNo}}, nil
}

// TermFreqs implements [Reader].
func (x *followedIndex) TermFreqs(ctx context.Context, field string, docs []documents.DocRef) ([]documents.DocTerms, error) {
	x.mu.Lock()
	x.asked += len(docs)
	x.mu.Unlock()
	return x.fakeIndex.TermFreqs(ctx, field, docs)
}

// replace puts another index in place of this one.
func (x *followedIndex) replace(history string, texts ...string) {
	other := newFakeIndex(texts...)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.history, x.docs, x.seqNo = history, other.docs, other.seqNo
}

// A following is a follower at work.
type following struct {
	*followedIndex

	weights *Weights
	o       backfill.FollowOptions
	rounds  []backfill.Counts // of those that did something
	waits   []time.Duration
	skipped []string
	cancel  context.CancelFunc
	done    chan error
}

const testInterval = 10 * time.Second

// follow starts a follower of some documents, within a bubble of synctest.
func follow(t *testing.T, o backfill.FollowOptions, texts ...string) *following {
	t.Helper()
	x := &following{followedIndex: &followedIndex{fakeIndex: newFakeIndex(texts...), history: "first"}, weights: testWeights(t), o: o}
	x.start(t)
	return x
}

func (x *following) start(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	x.cancel, x.done = cancel, make(chan error, 1)
	o := x.o
	o.Index, o.Interval = "i*", testInterval
	if o.Check == nil {
		o.Check = func(context.Context, string) error { return nil }
	}
	o.OnSkip = func(index string, err error) { x.skipped = append(x.skipped, index+": "+err.Error()) }
	o.AfterRound = func(counts backfill.Counts, _ error, wait time.Duration) {
		x.waits = append(x.waits, wait)
		if counts != (backfill.Counts{}) {
			x.rounds = append(x.rounds, counts)
		}
	}
	go func() { x.done <- backfill.Follow(ctx, x, Task(x, x.weights, "body"), o) }()
	synctest.Wait()
}

// pass lets some rounds pass.
func (*following) pass(rounds int) {
	time.Sleep(time.Duration(rounds) * testInterval * 12 / 10)
	synctest.Wait()
}

// check stops the follower, checks all norms, and what the rounds have done.
func (x *following) check(t *testing.T, want ...backfill.Counts) {
	t.Helper()
	x.cancel()
	if err := <-x.done; !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
	if wrong := x.wrong(x.weights); wrong != nil {
		t.Errorf("documents %v have other norms", wrong)
	}
	if diff := cmp.Diff(want, x.rounds); diff != "" {
		t.Errorf("rounds (-want +got):\n%s", diff)
	}
}

func TestFollowerDoesWhatIsWrittenLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := follow(t, backfill.FollowOptions{}, manyTexts(700)...)
		x.pass(2)
		x.put("new", "common words")
		x.put("5", "other words")
		x.update("6", "common twice group1 twice") // in part: the norm stays
		x.update("8", "")
		x.remove("9")
		x.pass(3)
		if x.asked != 704 {
			t.Errorf("the terms of %d documents were asked for, want 700 and 4: its own writes need no other look", x.asked)
		}
		x.check(t, backfill.Counts{Written: 700, Empty: 70}, backfill.Counts{Written: 4, Empty: 1})
	})
}

// update writes a part of a document, and leaves its norm.
func (x *fakeIndex) update(id, text string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	d := x.docs[id]
	x.seqNo++
	d.SeqNo, d.text = x.seqNo, text
	d.Version++
}

func TestFollowerThatIsStartedAgainBeginsWithWhatIsMissing(t *testing.T) {
	for all, want := range map[bool]backfill.Counts{false: {Written: 1}, true: {Written: 2, Unchanged: 1}} {
		synctest.Test(t, func(t *testing.T) {
			x := follow(t, backfill.FollowOptions{}, "one", "two", "three")
			x.pass(1)
			x.cancel()
			<-x.done
			x.rounds = nil
			x.put("0", "written as a whole")
			x.update("1", "written in part")
			x.o.All = all
			x.start(t)
			x.pass(1)
			if !all { // nothing tells of the part
				x.update("1", "two")
				x.pass(1)
				x.check(t, want, backfill.Counts{Unchanged: 1})
				return
			}
			x.check(t, want)
		})
	}
}

func TestFollowerLeavesWhatOthersWriteMeanwhileToTheNextRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := follow(t, backfill.FollowOptions{}, "one", "two")
		var times atomic.Int32
		x.mu.Lock()
		x.before = func(call string, _ []documents.DocRef) error {
			if call == "update" && times.Load() < 2 {
				x.update("1", strings.Repeat("changed ", 2+int(times.Add(1))))
			}
			return nil
		}
		x.mu.Unlock()
		x.update("1", "changed in part")
		x.pass(4)
		x.check(t, backfill.Counts{Written: 2}, backfill.Counts{Conflicts: 1}, backfill.Counts{Conflicts: 1}, backfill.Counts{Written: 1})
	})
}

func TestFollowerDoesAnIndexThatIsMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ready atomic.Bool
		ready.Store(true)
		check := func(context.Context, string) error {
			if !ready.Load() {
				return errors.New("no mapping")
			}
			return nil
		}
		x := follow(t, backfill.FollowOptions{Check: check}, manyTexts(100)...)
		x.replace("")
		x.pass(2)
		ready.Store(false)
		x.replace("second", "one", "two", "three")
		x.pass(1)
		if x.written() != 100 || len(x.skipped) == 0 || x.skipped[0] != "i: no mapping" {
			t.Errorf("%d written without the mapping; left out: %q", x.written(), x.skipped)
		}
		ready.Store(true)
		x.pass(1)
		x.check(t, backfill.Counts{Written: 100, Empty: 10}, backfill.Counts{Written: 3})
	})
}

// An update of a document of an index that is gone would make the index again.
func TestNothingIsWrittenToAnIndexThatWasDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := follow(t, backfill.FollowOptions{}, "one")
		x.mu.Lock()
		x.terms = func(_ documents.DocRef, terms *documents.DocTerms) {
			*terms = documents.DocTerms{Err: &answers.Error{Status: http.StatusNotFound, Type: "index_not_found_exception"}}
		}
		x.before = func(call string, _ []documents.DocRef) error {
			if call == "update" {
				t.Error("something was written")
			}
			return nil
		}
		x.mu.Unlock()
		x.put("1", "two")
		x.pass(1)
		x.replace("")
		x.check(t, backfill.Counts{Written: 1}, backfill.Counts{Gone: 1})
	})
}

func TestFollowerBacksOffWhereTheClusterIsBusy(t *testing.T) {
	for _, call := range []string{"states", "refresh", "docs", "terms", "update"} {
		t.Run(call, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := follow(t, backfill.FollowOptions{}, "one", "two", "three")
				var busy atomic.Bool
				busy.Store(true)
				x.mu.Lock()
				x.before = func(c string, _ []documents.DocRef) error {
					if busy.Load() && c == call {
						return errBusy
					}
					return nil
				}
				x.mu.Unlock()
				x.update("1", "changed in part")
				time.Sleep(30 * time.Minute)
				synctest.Wait()
				if last := x.waits[len(x.waits)-1]; last != maxBackoff {
					t.Errorf("the rounds are %v apart", last)
				}
				busy.Store(false)
				time.Sleep(2 * maxBackoff)
				synctest.Wait()
				if last := x.waits[len(x.waits)-1]; last != testInterval {
					t.Errorf("then the rounds are %v apart", last)
				}
				x.check(t, backfill.Counts{Written: 3}, backfill.Counts{Written: 1})
			})
		})
	}
}

// Where the cluster refuses single documents for the moment they do not fail.
func TestFollowerWaitsForBusyDocuments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := follow(t, backfill.FollowOptions{}, "one", "two")
		var busy atomic.Bool
		busy.Store(true)
		x.mu.Lock()
		x.outcome = func(d documents.DocRef) (documents.UpdateResult, bool) {
			return documents.UpdateResult{Status: documents.Busy, Err: &answers.Error{Status: http.StatusTooManyRequests}}, busy.Load() && d.ID == "1"
		}
		x.mu.Unlock()
		x.update("0", "changed in part")
		x.update("1", "changed in part")
		time.Sleep(5 * time.Minute)
		busy.Store(false)
		time.Sleep(2 * maxBackoff)
		x.check(t, backfill.Counts{Written: 2}, backfill.Counts{Written: 1}, backfill.Counts{Written: 1})
	})
}

func TestFollowerPassesOverWhatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var failed []string
		o := backfill.FollowOptions{Options: backfill.Options{OnFailure: func(d documents.DocRef, _ error) { failed = append(failed, d.ID) }}}
		x := follow(t, o)
		x.mu.Lock()
		x.terms = func(d documents.DocRef, terms *documents.DocTerms) {
			if x.docs[d.ID].text == "odd" {
				terms.Err = errors.New("no")
			}
		}
		x.mu.Unlock()
		x.put("1", "odd")
		x.put("2", "common")
		x.pass(3)
		x.put("1", "good")
		x.pass(1)
		if strings.Join(failed, " ") != "1" {
			t.Errorf("failed: %q", failed)
		}
		x.check(t, backfill.Counts{Written: 1, Failed: 1}, backfill.Counts{Written: 1})
	})
}

func TestFollowerEndsWithWhatDoesNotPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for call, want := range map[string]string{"states": "no", "refresh": "right to refresh"} {
			x := follow(t, backfill.FollowOptions{}, "one")
			x.mu.Lock()
			x.before = func(c string, _ []documents.DocRef) error {
				if c == call {
					return &answers.Error{Status: http.StatusForbidden, Reason: "no"}
				}
				return nil
			}
			x.mu.Unlock()
			x.put("1", "two")
			if err := <-x.done; err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: ended with %v", call, err)
			}
			x.cancel()
		}
	})
}
