package documents

import (
	"context"
	"net/http"
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
		return c.Do(ctx, esclient.Call{Request: esclient.HTTPRequest{Method: method, Path: path, Body: esclient.JSON(body)}}, nil)
	}
	e.Create(t, "main", object{"number_of_shards": 3, "number_of_replicas": 0}, object{"properties": object{
		"title": object{"type": "text", "analyzer": "english", "fields": object{"std": object{"type": "text"}}},
		"empty": object{"type": "text"},
		"list":  object{"type": "nested", "properties": object{"text": object{"type": "text", "analyzer": "english"}}},
	}})
	e.Create(t, "routed", object{"number_of_replicas": 0}, object{
		"_routing": object{"required": true}, "properties": object{"title": object{"type": "text"}},
	})
	docs := make([]object, 50)
	for i := range docs {
		s := clustertest.Texts[i%len(clustertest.Texts)]
		docs[i] = object{"title": s, "list": []object{{"text": s}, {"text": "a car"}}}
	}
	e.Put(t, "main", docs...)
	e.Do(t, http.MethodPut, "/"+e.At("routed")+"/_doc/1?refresh=true&routing=x", object{"title": "a car"})
	return e
}

func TestRealEngine(t *testing.T) {
	e := newEngine(t)
	t.Run("scans terms", e.testExactTerms)
	t.Run("scans in slices", e.testSlices)
	t.Run("scans a share", e.testShare)
	t.Run("tells of a lost scroll", e.testLostScroll)
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
