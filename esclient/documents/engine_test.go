package documents

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/e2e/clustertest"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/mapping"
)

type object = esclient.Object

// An engine is a real cluster with the indices that the tests below ask about.
type engine struct {
	API
	clustertest.Engine
}

// newEngine returns the cluster named by AKIN_E2E_ENGINE_URL with its indices.
func newEngine(t *testing.T) *engine {
	t.Helper()
	e := &engine{Engine: clustertest.NewEngine(t)}
	c, err := esclient.New(esclient.Options{URL: e.URL, Timeout: 30 * time.Second})
	check.OK(t, err)
	t.Cleanup(c.Close)
	e.API = API{c}
	e.Make = func(ctx context.Context, method, path string, body any) error {
		return c.Do(ctx, esclient.Call{Method: method, Path: path, Body: body}, nil)
	}
	e.Create(t, "main", object{"number_of_shards": 3, "number_of_replicas": 0}, object{"properties": object{
		"title":  object{"type": "text", "analyzer": "english", "fields": object{"std": object{"type": "text"}}},
		"empty":  object{"type": "text"},
		"number": object{"type": "integer", "fields": object{"text": object{"type": "text"}}},
		"list": object{"type": "nested", "properties": object{
			"text": object{"type": "text", "analyzer": "english"},
			"deep": object{"type": "nested", "properties": object{"text": object{"type": "text"}}},
		}},
	}})
	e.Create(t, "same", object{"number_of_shards": 2, "number_of_replicas": 0},
		object{"properties": object{"title": object{"type": "text", "analyzer": "english"}}})
	e.Create(t, "without", object{"number_of_replicas": 0}, object{})
	e.Create(t, "routed", object{"number_of_replicas": 0}, object{
		"_routing": object{"required": true}, "properties": object{"title": object{"type": "text"}},
	})
	docs := make([]object, 50)
	for i := range docs {
		s := clustertest.Texts[i%len(clustertest.Texts)]
		docs[i] = object{
			"title": s, "number": i,
			"list": []object{{"text": s, "deep": []object{{"text": "car"}, {"text": s}}}, {"text": "a car"}},
		}
	}
	e.Put(t, "main", docs...)
	e.Put(t, "same", object{"title": "one car"}, object{"title": []string{"two", "cars"}})
	e.Do(t, http.MethodPut, esclient.IndexPath(e.At("routed"), "/_doc/1?refresh=true&routing=x"), object{"title": "a car"})
	return e
}

func TestRealEngine(t *testing.T) {
	e := newEngine(t)
	t.Run("counts", func(t *testing.T) {
		if n, err := e.Count(t.Context(), e.At("main", "same"), nil); n != 52 || err != nil {
			t.Errorf("Count = %d, %v, want 52", n, err)
		}
		_, err := e.Count(t.Context(), e.At("none"), nil)
		var refusal *esclient.Error
		check.That(t, errors.As(err, &refusal) && refusal.Status == 404 && refusal.Type == "index_not_found_exception", "Count of no index: %v, want a 404", err)
	})
	t.Run("names documents", e.testNamed)
	t.Run("scans", e.testScan)
	t.Run("scans terms", e.testExactTerms)
	t.Run("scans in slices", e.testSlices)
	t.Run("scans what matches", e.testScanOfWhatMatches)
	t.Run("scans a share", e.testShare)
	t.Run("tells of a lost scroll", e.testLostScroll)
	t.Run("names indices", e.testIndices)
	t.Run("updates documents", e.testNormDocs)
	t.Run("leaves no scroll open", e.testScrollsEnd)
}

// testNamed finds documents by numbers, of which some are of none.
func (e *engine) testNamed(t *testing.T) {
	e.Create(t, "numbered", object{"number_of_shards": 1, "number_of_replicas": 0}, object{"properties": object{
		"title": object{"type": "text"}, "list": object{"type": "nested", "properties": object{"text": object{"type": "text"}}},
	}})
	docs := make([]object, 10)
	for i := range docs {
		docs[i] = object{"title": "a car", "list": []object{{"text": "one"}, {"text": "two"}}}
	}
	e.Put(t, "numbered", docs...)
	e.Put(t, "numbered", object{"title": "three other words"}) // again, as number 10
	index := e.At("numbered")
	got, err := e.Named(t.Context(), index, []int64{0, 3, 10, 99})
	check.OK(t, err)
	slices.SortFunc(got, func(a, b DocRef) int { return int(a.SeqNo - b.SeqNo) })
	want := []DocRef{
		{Index: index, ID: "3", SeqNo: 3, PrimaryTerm: 1, Version: 1}, {Index: index, ID: "0", SeqNo: 10, PrimaryTerm: 1, Version: 2},
	}
	check.Equal(t, want, got)
	terms, err := e.DocVectors(t.Context(), []VectorRequest{{Index: index, ID: "0", Fields: []string{"title"}}})
	check.That(t, err == nil && len(terms) == 1 && terms[0].Version == 2 && terms[0].MeanLengths["title"] > 1.9 && terms[0].MeanLengths["title"] <= 3, "terms %+v, %v", terms, err)
}

func (e *engine) testScan(t *testing.T) {
	got := map[string][][]string{}
	fields := []string{"title.std", "list.deep.text", "title", "number.text"}
	err := e.Scan(t.Context(), ScanOptions{Index: e.At("main"), Fields: fields}, func(id string, texts, nested []string) error {
		got[id] = [][]string{texts, nested}
		return nil
	})
	check.OK(t, err)
	want := map[string][][]string{}
	for i := range 50 {
		s := clustertest.Texts[i%len(clustertest.Texts)]
		want[strconv.Itoa(i)] = [][]string{{s, strconv.Itoa(i)}, {"car", s}}
	}
	check.Equal(t, want, got)
	t.Run("arrays", func(t *testing.T) {
		got := textsByID(t, e.API, ScanOptions{Index: e.At("same", "without"), Fields: []string{"title"}})
		check.Equal(t, map[string][]string{"0": {"one car"}, "1": {"two", "cars"}}, got)
	})
	t.Run("not text", func(t *testing.T) {
		err := e.Scan(t.Context(), ScanOptions{Index: e.At("main"), Fields: []string{"number"}}, anyDoc)
		check.Error(t, mapping.ErrNotText, err)
	})
	t.Run("no source", func(t *testing.T) {
		e.Create(t, "sourceless", object{"number_of_replicas": 0}, object{
			"_source": object{"enabled": false}, "properties": object{"title": object{"type": "text"}},
		})
		e.Put(t, "sourceless", object{"title": "x"})
		err := e.Scan(t.Context(), ScanOptions{Index: e.At("sourceless"), Fields: []string{"title"}}, anyDoc)
		check.Message(t, "_source", err)
	})
}

func (e *engine) testExactTerms(t *testing.T) {
	got := map[string][][][]string{}
	o := ScanOptions{Index: e.At("main"), Fields: []string{"title", "list.text"}}
	err := e.ExactTerms(t.Context(), o, func(id string, texts, nested [][]string) error {
		got[id] = [][][]string{texts, nested}
		return nil
	})
	check.OK(t, err)
	check.Equal(t, 50, len(got))
	want := [][][]string{{{"boat", "boat", "boat"}}, {{"boat", "boat", "boat"}, {"car"}}}
	check.Equal(t, want, got["2"])
	t.Run("of fields that are not analyzed alike", func(t *testing.T) {
		o := ScanOptions{Index: e.At("main"), Fields: []string{"title", "title.std"}}
		check.Error(t, mapping.ErrMixed, e.ExactTerms(t.Context(), o, nil))
	})
	t.Run("of a field without text", func(t *testing.T) {
		o := ScanOptions{Index: e.At("main"), Fields: []string{"empty", "title.std"}}
		texts := map[string][][]string{}
		err := e.ExactTerms(t.Context(), o, func(id string, t, _ [][]string) error {
			texts[id] = t
			return nil
		})
		want := [][]string{{"boats", "and", "boats", "and", "a", "boat"}}
		diff := cmp.Diff(want, texts["2"])
		check.That(t, diff == "" && err == nil, "%v %s", err, diff)
	})
	t.Run("with required routing", func(t *testing.T) {
		var got [][]string
		err := e.ExactTerms(t.Context(), ScanOptions{Index: e.At("routed"), Fields: []string{"title"}}, func(_ string, terms, _ [][]string) error {
			got = terms
			return nil
		})
		check.OK(t, err)
		check.Equal(t, [][]string{{"a", "car"}}, got)
	})
}

func (e *engine) testScrollsEnd(t *testing.T) {
	open := func() int { // in this index: other tests may use the engine now
		var answer struct {
			All struct {
				Total struct {
					Search struct {
						Open int `json:"open_contexts"`
					} `json:"search"`
				} `json:"total"`
			} `json:"_all"`
		}
		err := e.Client.Do(t.Context(), esclient.Call{Path: "/" + e.At("main") + "/_stats/search"}, &answer)
		check.OK(t, err)
		return answer.All.Total.Search.Open
	}
	before := open()
	stop := errors.New("enough")
	err := e.Scan(t.Context(), ScanOptions{Index: e.At("main"), Fields: []string{"title"}}, func(string, []string, []string) error { return stop })
	check.Error(t, stop, err)
	ctx, cancel := context.WithCancel(t.Context())
	var once sync.Once
	err = e.Scan(ctx, ScanOptions{Index: e.At("main"), Fields: []string{"title"}}, func(string, []string, []string) error {
		once.Do(cancel)
		return ctx.Err()
	})
	check.Error(t, context.Canceled, err)
	after := open()
	check.That(t, after <= before, "%d scrolls open, %d before", after, before)
}
