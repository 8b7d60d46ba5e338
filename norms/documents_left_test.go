package norms

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// newHeldRepairer returns a repairer that is not at work, so that what it is
// given can be looked at.
func newHeldRepairer() *Repairer {
	return &Repairer{o: RepairOptions{Limit: DefaultRepairs}, known: map[Repair]bool{}, wake: make(chan struct{}, 1)}
}

// ids are those of the documents that wait.
func (r *Repairer) ids() (ids []string) {
	for _, w := range r.waiting {
		ids = append(ids, w.Index+"/"+w.ID)
	}
	return ids
}

const (
	goodItem    = `{"index":{"_index":"index","_id":"x","status":201}}`
	deletedItem = `{"delete":{"_index":"elsewhere","_id":"x","status":200}}`
	brokenItem  = `{"index":{"_index":"index","_id":"x","status":400,"error":{"type":"mapper_parsing_exception","reason":"failed to parse field [n]"}}}`
	strictItem  = `{"create":{"_index":"index","_id":"x","status":400,"error":{"type":"strict_dynamic_mapping_exception",` +
		`"reason":"[1:17] mapping set to strict, dynamic introduction of [akin_norm] within [_doc] is not allowed"}}}`
	movedItem = `{"index":{"_index":"other","_id":"x","status":201}}`
)

// The answer to a bulk request tells that the index is another one by now, or
// has another mapping.
func TestTheAnswerTellsThatTheMappingHasChanged(t *testing.T) {
	for _, c := range []struct {
		name    string
		answer  Answer
		changed bool
		counts  map[string]int
	}{
		{"all is good", Answer{200, false, []byte(`{"took":3,"errors":false,"items":[` + goodItem + "," + deletedItem + `]}`)}, false, nil},
		{"what fails for other reasons", Answer{200, false, []byte(`{"took":3,"errors":true,"items":[` + goodItem + "," + brokenItem + `]}`)}, false, nil},
		{
			"norms are refused",
			Answer{200, false, []byte(`{"took":3,"errors":true,"items":[` + goodItem + "," + strictItem + "," + strictItem + `],"x":1}`)},
			true,
			map[string]int{DocumentRefused: 2},
		},
		{"norms are refused, and the rest is not known", Answer{200, false, []byte(`{"items":[` + strictItem + "," + goodItem[:20])}, true, map[string]int{DocumentRefused: 1}},
		{"another index", Answer{200, false, []byte(`{"took":3,"errors":false,"items":[` + movedItem + `]}`)}, true, nil},
		{"the original was sent", Answer{200, true, nil}, true, nil},
		{"the original was refused, too", Answer{413, true, nil}, false, nil},
		{"nothing is known", Answer{0, false, nil}, false, nil},
		{"no JSON", Answer{200, false, []byte("\x1f\x8b")}, false, nil},
		{"no object", Answer{200, false, []byte(`["items"]`)}, false, nil},
		{"no list", Answer{200, false, []byte(`{"items":{"items":[]}}`)}, false, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			cluster, repairs := newFakeCluster(), newHeldRepairer()
			body := "{\"index\":{\"_id\":\"1\"}}\n{\"title\":\"cat\"}\n{\"index\":{}}\n{\"title\":\"cat\"}\n{\"create\":{\"_id\":\"2\"}}\n{\"title\":\"cat\"}\n"
			kept, err := newFakeKeeper(cluster, repairs).Write(t.Context(), &Write{Bulk: true, Index: "docs", Body: []byte(body)})
			if err != nil {
				t.Fatal(err)
			}
			counts := kept.Done(c.answer)
			want, forgot, ids := map[string]int{}, []string(nil), []string(nil)
			if c.changed {
				want, forgot, ids = map[string]int{DocumentBehind: 2, DocumentLeft: 1}, []string{"docs"}, []string{"docs/1", "docs/2"}
				maps.Copy(want, c.counts)
			}
			if len(want) == 0 && len(counts) == 0 {
				counts = want
			}
			if diff := cmp.Diff(want, counts); diff != "" {
				t.Errorf("the documents (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(forgot, cluster.forgot); diff != "" {
				t.Errorf("forgotten (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(ids, repairs.ids()); diff != "" {
				t.Errorf("to be repaired (-want +got):\n%s", diff)
			}
		})
	}
}

// Where the answer tells of failures and does not show them all, they may be for
// the norms: the targets are looked up anew, and nothing else is done.
func TestFailuresThatAreNotShownMayBeForTheNorms(t *testing.T) {
	for answer, hidden := range map[string]bool{
		`{"errors":true}`: true,
		`{"took":3,"errors":true,"items":[` + goodItem + "," + goodItem[:20]:     true,
		`{"took":3,"errors":true,"items":[` + goodItem + "," + brokenItem + "]}": false,
		`{"errors":false}`: false,
		`{"took":3,"errors":false,"items":[` + goodItem + "," + goodItem[:20]: false,
		`{"took":3}`: false,
	} {
		cluster, repairs := newFakeCluster(), newHeldRepairer()
		body := "{\"index\":{\"_id\":\"1\"}}\n{\"title\":\"cat\"}\n"
		kept, err := newFakeKeeper(cluster, repairs).Write(t.Context(), &Write{Bulk: true, Index: "docs", Body: []byte(body)})
		if err != nil {
			t.Fatal(err)
		}
		counts := kept.Done(Answer{Status: 200, Beginning: []byte(answer)})
		if got := len(cluster.forgot) > 0; got != hidden || len(counts) > 0 || len(repairs.ids()) > 0 {
			t.Errorf("%s: forgotten %v, want %v; %v, to be repaired %v", answer, got, hidden, counts, repairs.ids())
		}
	}
}

// A write to an index that akin knows nothing of says nothing of the others.
func TestAnotherIndexIsNoNewsBesideUnknownOnes(t *testing.T) {
	cluster := newFakeCluster()
	body := "{\"index\":{\"_id\":\"1\"}}\n{\"title\":\"cat\"}\n{\"index\":{\"_index\":\"stream\"}}\n{\"title\":\"cat\"}\n"
	kept, err := newFakeKeeper(cluster, nil).Write(t.Context(), &Write{Bulk: true, Index: "docs", Body: []byte(body)})
	if err != nil {
		t.Fatal(err)
	}
	kept.Done(Answer{Status: 200, Beginning: []byte(`{"items":[` + movedItem + `]}`)})
	if len(cluster.forgot) > 0 {
		t.Errorf("forgot %q", cluster.forgot)
	}
}

func TestWhatTheClusterTakesUnreadIsLeft(t *testing.T) {
	for status, want := range map[int]map[string]int{201: {DocumentLeft: 1}, 400: nil, 0: {DocumentLeft: 1}} {
		kept, err := newFakeKeeper(newFakeCluster(), newHeldRepairer()).Write(t.Context(), &Write{Index: "docs", Body: []byte(`{"title":"cat"/**/}`)})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]int{DocumentInvalid: 1}, kept.Documents); diff != "" {
			t.Errorf("the documents (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(want, kept.Done(Answer{Status: status})); diff != "" {
			t.Errorf("after the status %d (-want +got):\n%s", status, diff)
		}
	}
}

func TestWeightsAreBoundByAnyNameOfAnIndex(t *testing.T) {
	for _, c := range []struct {
		name, bound string
		want        string
	}{
		{"alias", "alias", DocumentAdded}, {"alias", "index", DocumentAdded}, {"index", "alias", DocumentAdded}, {"index", "other", DocumentNoNorms},
	} {
		cluster := newFakeCluster()
		cluster.targets["alias"] = fakeTarget("title")
		cluster.targets["alias"].Aliases = []string{"a", "alias"}
		cluster.targets["index"] = cluster.targets["alias"]
		k := NewKeeper(cluster, cluster, func(index, _ string) (FrozenWeights, bool) { return &fakeWeights{docs: 2}, index == c.bound }, nil, nil)
		kept, err := k.Write(t.Context(), &Write{Index: c.name, ID: "1", Body: []byte(`{"title":"cat"}`)})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]int{c.want: 1}, kept.Documents); diff != "" {
			t.Errorf("bound to %s, written by %s (-want +got):\n%s", c.bound, c.name, diff)
		}
	}
}

func TestCommentsInALineDoNotHideTheOthers(t *testing.T) {
	for _, header := range []string{
		`{"index":{"_id":"1"/* "}} */}}`, "\xef\xbb\xbf" + `{"index":{"_id":"1"}}`, `{"index":{"_id":"1"}} // {"`, `/**/{/*//*/"index":{"_id":"1"}}`,
	} {
		kept, err := newFakeKeeper(newFakeCluster(), nil).Write(t.Context(), &Write{
			Bulk: true, Index: "docs", Body: []byte(header + "\n{\"title\":\"cat\"}\n{\"index\":{\"_id\":\"/*\"}}\n{\"title\":\"dog\",\"x\":\"\\ud83d\"}\n"),
		})
		if err != nil {
			t.Fatal(err)
		}
		want := header + "\n{\"title\":\"cat\"," + members("title", norm(1)) + "}\n{\"index\":{\"_id\":\"/*\"}}\n{\"title\":\"dog\",\"x\":\"\\ud83d\"," + members("title", norm(1)) + "}\n"
		if got := string(kept.Body); got != want {
			t.Errorf("the body is\n%s, want\n%s", got, want)
		}
	}
	for _, header := range []string{`{"index":{"_id":"1"/*}}`, `{"index":"/*"`, `/`, `{"index":{/}}`} {
		kept, err := newFakeKeeper(newFakeCluster(), nil).Write(t.Context(), &Write{Bulk: true, Index: "docs", Body: []byte(header + "\n{\"title\":\"cat\"}\n")})
		if err != nil || kept.Body != nil {
			t.Errorf("%s: %s, %v", header, kept.Body, err)
		}
	}
}

// bulkOf is a bulk request of n documents.
func bulkOf(n int) []byte {
	var body bytes.Buffer
	for i := range n {
		fmt.Fprintf(&body, "{\"index\":{\"_id\":\"%d\"}}\n{\"title\":\"a\"}\n", i)
	}
	return body.Bytes()
}

// failingAfter fails the calls behind some.
type failingAfter struct {
	*fakeCluster

	mu   sync.Mutex
	left int
}

func (f *failingAfter) Unstored(ctx context.Context, docs []Unstored) ([]UnstoredTerms, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.left--; f.left < 0 {
		return nil, errors.New("no answer")
	}
	return f.fakeCluster.Unstored(ctx, docs)
}

// What was computed before a failure stays.
func TestAFailureInTheMiddleLeavesTheRest(t *testing.T) {
	const calls = actionsAtOnce / unstoredDocs
	cluster, repairs := newFakeCluster(), newHeldRepairer()
	k := newFakeKeeper(cluster, repairs)
	k.analyzer = &failingAfter{fakeCluster: cluster, left: 2 * calls}
	body := bulkOf(3*actionsAtOnce + 1)
	kept, err := k.Write(t.Context(), &Write{Bulk: true, Index: "docs", Body: body})
	if err == nil {
		t.Fatal("no error")
	}
	if diff := cmp.Diff(map[string]int{DocumentAdded: 2 * actionsAtOnce, DocumentBehind: actionsAtOnce + 1}, kept.Documents); diff != "" {
		t.Errorf("the documents (-want +got):\n%s", diff)
	}
	was, is := bytes.Split(body, []byte("\n")), bytes.Split(kept.Body, []byte("\n"))
	if len(was) != len(is) {
		t.Fatalf("%d lines became %d", len(was), len(is))
	}
	for i := range was {
		checkTakenOut(t, was[i], is[i])
	}
	if n := bytes.Count(kept.Body, []byte(WeightsObject)); n != 2*actionsAtOnce {
		t.Errorf("%d documents have norms, want %d", n, 2*actionsAtOnce)
	}
	kept.Done(Answer{Status: 200})
	if ids := repairs.ids(); len(ids) != actionsAtOnce+1 || ids[0] != fmt.Sprintf("docs/%d", 2*actionsAtOnce) {
		t.Errorf("%d documents are to be repaired, from %s on", len(ids), ids[0])
	}
}

// Once the time is over no more is read than can be repaired.
func TestABulkRequestIsNotReadWithoutTime(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	cluster := newFakeCluster()
	kept, err := newFakeKeeper(cluster, newHeldRepairer()).Write(ctx, &Write{Bulk: true, Index: "docs", Body: bulkOf(5 * maxLeft)})
	if !errors.Is(err, context.Canceled) || kept.Body != nil || cluster.calls > 0 {
		t.Errorf("the error is %v, %d calls, a new body: %v", err, cluster.calls, kept.Body != nil)
	}
	if diff := cmp.Diff(map[string]int{DocumentBehind: maxLeft, DocumentLeft: 4 * maxLeft}, kept.Documents); diff != "" {
		t.Errorf("the documents (-want +got):\n%s", diff)
	}
}

// The time may end between any two actions.
func TestABulkRequestEndsWithItsTime(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cluster := newFakeCluster()
	k := newFakeKeeper(cluster, newHeldRepairer())
	k.targets = cancelling{cluster, cancel}
	body := "{\"index\":{\"_id\":\"1\"}}\n{\"title\":\"cat\"}\n" + strings.Repeat("{\"index\":{\"_id\":\"2\",\"_index\":\"bare\"}}\n{}\n", 10)
	kept, err := k.Write(ctx, &Write{Bulk: true, Index: "docs", Body: []byte(body)})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("the error is %v", err)
	}
	if diff := cmp.Diff(map[string]int{DocumentBehind: 11}, kept.Documents); diff != "" { // bare was not looked at
		t.Errorf("the documents (-want +got):\n%s", diff)
	}
}

// cancelling ends the time with the first target.
type cancelling struct {
	*fakeCluster

	cancel func()
}

func (c cancelling) Target(ctx context.Context, name string) (*Target, error) {
	c.cancel()
	return c.fakeCluster.Target(ctx, name)
}

// The memory that a bulk request of tiny documents takes grows with its length,
// not with the number of its documents.
func TestMemoryOfABulkRequestIsBounded(t *testing.T) {
	const n = 20_000
	body := bulkOf(n)
	cluster := newFakeCluster()
	k := newFakeKeeper(cluster, nil)
	meter := &holdingMeter{fakeCluster: cluster}
	k.analyzer = meter
	runtime.GC()
	before := memory()
	kept, err := k.Write(t.Context(), &Write{Bulk: true, Index: "docs", Body: body})
	if err != nil {
		t.Fatal(err)
	}
	allocated, held := (memory().TotalAlloc-before.TotalAlloc)/n, meter.most-min(meter.most, before.HeapAlloc)
	t.Logf("%d bytes are allocated for an action, %d are in use at most", allocated, held)
	if allocated > 9000 {
		t.Errorf("%d bytes are allocated for an action, want at most 9000", allocated)
	}
	if limit := uint64(2*len(kept.Body) + 6<<20); held > limit {
		t.Errorf("%d bytes are in use, want at most %d", held, limit)
	}
}

func memory() (m runtime.MemStats) {
	runtime.ReadMemStats(&m)
	return m
}

// A holdingMeter notes how much memory is in use at its calls.
type holdingMeter struct {
	*fakeCluster

	mu    sync.Mutex
	calls int
	most  uint64
}

func (h *holdingMeter) Unstored(ctx context.Context, docs []Unstored) ([]UnstoredTerms, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.calls++; h.calls%20 == 0 {
		runtime.GC()
		h.most = max(h.most, memory().HeapAlloc)
	}
	terms, err := h.fakeCluster.Unstored(ctx, docs)
	h.asked = nil
	return terms, err
}
