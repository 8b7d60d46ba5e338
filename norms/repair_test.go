package norms

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// fakeDocuments are stored documents by id.
type fakeDocuments struct {
	mu      sync.Mutex
	stored  map[string]*Stored
	terms   map[string][]TermFreq
	updates []string
	reads   int
	// readErr, termsErr and updateErr fail calls, outcome is that of updates.
	readErr, termsErr, updateErr error
	outcome                      Status
	// onTerms runs at each call for terms, panics at each read.
	onTerms func()
	panics  bool
}

func (d *fakeDocuments) Read(_ context.Context, docs []Doc) ([]Stored, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.reads++
	if d.panics {
		panic("read")
	}
	if d.readErr != nil {
		return nil, d.readErr
	}
	all := make([]Stored, len(docs))
	for i, doc := range docs {
		if s := d.stored[doc.ID]; s != nil {
			all[i] = *s
			all[i].Routing, all[i].Found = doc.Routing, true
		}
	}
	return all, nil
}

func (d *fakeDocuments) FieldTerms(_ context.Context, _ string, docs []Doc) ([]DocTerms, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.onTerms != nil {
		d.onTerms()
	}
	if d.termsErr != nil {
		return nil, d.termsErr
	}
	all := make([]DocTerms, len(docs))
	for i, doc := range docs {
		if s := d.stored[doc.ID]; s != nil {
			all[i] = DocTerms{Found: true, Version: s.Version, Terms: d.terms[doc.ID]}
		}
	}
	return all, nil
}

func (d *fakeDocuments) Update(_ context.Context, updates []Update) ([]Outcome, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.updateErr != nil {
		return nil, d.updateErr
	}
	outcomes := make([]Outcome, len(updates))
	for i, u := range updates {
		d.updates = append(d.updates, fmt.Sprintf("%s/%s?%s %d.%d %s", u.Doc.Index, u.Doc.ID, u.Doc.Routing, u.Doc.PrimaryTerm, u.Doc.SeqNo, u.Part))
		outcomes[i].Status = d.outcome
	}
	return outcomes, nil
}

// storedDoc is a document with members.
func storedDoc(id, members string) *Stored {
	return &Stored{Doc: Doc{Index: "index", ID: id, Version: 3, SeqNo: 7, PrimaryTerm: 2}, Members: []byte(members)}
}

// repairAll adds repairs, lets a minute pass and returns what became of them.
// It has to run in a bubble.
func repairAll(t *testing.T, d *fakeDocuments, c *fakeCluster, o RepairOptions, repairs ...Repair) map[string]int {
	t.Helper()
	results := map[string]int{}
	o.OnResult = func(result string) { results[result]++ }
	w := &fakeWeights{docs: 2}
	r := NewRepairer(c, d, func(string, string) (FrozenWeights, bool) { return w, true }, o)
	d.mu.Lock() // else the first ones may be read one by one
	for _, repair := range repairs {
		r.Add(repair)
	}
	d.mu.Unlock()
	time.Sleep(time.Minute)
	synctest.Wait()
	r.Close()
	return results
}

func TestRepairsWriteTheNormsOfStoredDocuments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDocuments{
			stored: map[string]*Stored{
				"new":     storedDoc("new", ""),
				"stale":   storedDoc("stale", `{"akin_norm":{"title":7},"akin_norm_weights":{"title":"old"}}`),
				"right":   storedDoc("right", `{"akin_norm":{"title":`+norm(1)+`,"x":1},"akin_norm_weights":{"title":"`+fakeID+`"}}`),
				"dotted":  storedDoc("dotted", `{"akin_norm.title":`+norm(1)+`,"akin_norm_weights.title":"`+fakeID+`"}`),
				"emptied": storedDoc("emptied", `{"akin_norm":{"title":7},"akin_norm_weights":{"title":"`+fakeID+`"}}`),
				"empty":   storedDoc("empty", ""),
			},
			terms: map[string][]TermFreq{"new": {{"cat", 2}, {"dog", 1}}, "stale": {{"cat", 1}}, "right": {{"cat", 1}}, "dotted": {{"cat", 1}}},
		}
		results := repairAll(t, d, newFakeCluster(), RepairOptions{},
			Repair{"docs", "new", "r"}, Repair{"docs", "stale", ""}, Repair{"docs", "right", ""}, Repair{"docs", "dotted", ""},
			Repair{"docs", "emptied", ""}, Repair{"docs", "empty", ""}, Repair{"docs", "gone", ""}, Repair{"bare", "x", ""}, Repair{"stream", "x", ""})
		if diff := cmp.Diff(map[string]int{RepairWritten: 3, RepairUnchanged: 5, RepairGone: 1}, results); diff != "" {
			t.Errorf("the results (-want +got):\n%s", diff)
		}
		want := []string{
			"index/new?r 2.7 {" + members("title", norm(2, 1)) + "}",
			"index/stale? 2.7 {" + members("title", norm(1)) + "}",
			"index/emptied? 2.7 {" + members("title", "null") + "}",
		}
		if diff := cmp.Diff(want, d.updates); diff != "" {
			t.Errorf("the updates (-want +got):\n%s", diff)
		}
		if d.reads > 2 {
			t.Errorf("%d reads, want one, or one more of those that came first", d.reads)
		}
	})
}

func TestRepairsAreTriedAgainAFewTimes(t *testing.T) {
	failure := errors.New("no answer")
	for _, c := range []struct {
		name string
		set  func(d *fakeDocuments)
		want string
	}{
		{"it cannot be read", func(d *fakeDocuments) { d.readErr = failure }, RepairFailed},
		{"no terms", func(d *fakeDocuments) { d.termsErr = failure }, RepairFailed},
		{"it cannot be written", func(d *fakeDocuments) { d.updateErr = failure }, RepairFailed},
		{"others write it", func(d *fakeDocuments) { d.outcome = StatusConflict }, RepairFailed},
		{"the cluster is busy", func(d *fakeDocuments) { d.outcome = StatusBusy }, RepairFailed},
		{"others write it between the calls", func(d *fakeDocuments) { d.onTerms = func() { d.stored["1"].Version++ } }, RepairFailed},
		{"a panic", func(d *fakeDocuments) { d.panics = true }, RepairFailed},
		{"at the second try it works", func(d *fakeDocuments) {
			d.onTerms = func() {
				if d.reads == 1 {
					d.stored["1"].Version++
				}
			}
		}, RepairWritten},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &fakeDocuments{stored: map[string]*Stored{"1": storedDoc("1", "")}, terms: map[string][]TermFreq{"1": {{"cat", 1}}}}
				c.set(d)
				results := repairAll(t, d, newFakeCluster(), RepairOptions{}, Repair{"docs", "1", ""})
				if diff := cmp.Diff(map[string]int{c.want: 1}, results); diff != "" {
					t.Errorf("the results (-want +got):\n%s", diff)
				}
				if c.want == RepairFailed && d.reads != repairTries {
					t.Errorf("%d tries, want %d", d.reads, repairTries)
				}
			})
		})
	}
}

func TestRefusedRepairsAreNotTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDocuments{stored: map[string]*Stored{"1": storedDoc("1", "")}, terms: map[string][]TermFreq{"1": {{"cat", 1}}}, outcome: StatusRefused}
		results := repairAll(t, d, newFakeCluster(), RepairOptions{}, Repair{"docs", "1", ""})
		if diff := cmp.Diff(map[string]int{RepairFailed: 1}, results); diff != "" || d.reads != 1 {
			t.Errorf("%d reads; the results (-want +got):\n%s", d.reads, diff)
		}
	})
}

func TestRepairsWaitForAnIndexThatIsBeingMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDocuments{stored: map[string]*Stored{"1": storedDoc("1", "")}, terms: map[string][]TermFreq{"1": {{"cat", 1}}}}
		late := &lateTargets{fakeCluster: newFakeCluster()}
		results := map[string]int{}
		w := &fakeWeights{docs: 2}
		r := NewRepairer(late, d, func(string, string) (FrozenWeights, bool) { return w, true }, RepairOptions{OnResult: func(result string) { results[result]++ }})
		r.Add(Repair{"docs", "1", ""})
		time.Sleep(time.Minute)
		synctest.Wait()
		r.Close()
		if diff := cmp.Diff(map[string]int{RepairWritten: 1}, results); diff != "" || late.calls != 2 {
			t.Errorf("%d calls; the results (-want +got):\n%s", late.calls, diff)
		}
	})
}

// lateTargets know of no index at the first call.
type lateTargets struct {
	*fakeCluster
	calls int
}

func (l *lateTargets) Target(ctx context.Context, name string) (*Target, error) {
	if l.calls++; l.calls == 1 {
		return nil, ErrNoIndex
	}
	return l.fakeCluster.Target(ctx, name)
}

func TestRepairsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		d := &fakeDocuments{stored: map[string]*Stored{"first": storedDoc("first", "")}, onTerms: func() { <-hold }}
		results := map[string]int{}
		w := &fakeWeights{docs: 2}
		r := NewRepairer(newFakeCluster(), d, func(string, string) (FrozenWeights, bool) { return w, true },
			RepairOptions{Limit: 3, OnResult: func(result string) { results[result]++ }})
		r.Add(Repair{"docs", "first", ""})
		synctest.Wait() // it is under way
		for i := range 7 {
			r.Add(Repair{"docs", strconv.Itoa(i % 5), ""}) // 0 and 1 are there twice
		}
		close(hold)
		time.Sleep(time.Minute)
		r.Close()
		if diff := cmp.Diff(map[string]int{RepairUnchanged: 1, RepairOverflow: 2, RepairGone: 3}, results); diff != "" {
			t.Errorf("the results (-want +got):\n%s", diff)
		}
	})
}

func TestCloseDropsWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		results := map[string]int{}
		hold := make(chan struct{})
		d := &fakeDocuments{stored: map[string]*Stored{"1": storedDoc("1", "")}, terms: map[string][]TermFreq{"1": {{"cat", 1}}}}
		d.onTerms = func() { <-hold }
		w := &fakeWeights{docs: 2}
		c := newFakeCluster()
		r := NewRepairer(c, d, func(string, string) (FrozenWeights, bool) { return w, true }, RepairOptions{OnResult: func(result string) { results[result]++ }})
		r.Add(Repair{"docs", "1", ""})
		synctest.Wait()
		r.Add(Repair{"docs", "2", ""})
		go func() { time.Sleep(time.Second); close(hold) }()
		r.Close()
		r.Add(Repair{"docs", "3", ""})
		if diff := cmp.Diff(map[string]int{RepairWritten: 1, RepairDropped: 2}, results); diff != "" {
			t.Errorf("the results (-want +got):\n%s", diff)
		}
	})
}
