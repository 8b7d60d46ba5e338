package documents

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/esclient"
)

// scanned returns the ids of the documents of a scan, sorted.
func (e *engine) scanned(t *testing.T, o ScanOptions) []string {
	t.Helper()
	var ids []string // of several indices some are there twice
	check.OK(t, e.Scan(t.Context(), o, func(id string, _, _ []string) error { ids = append(ids, id); return nil }))
	slices.Sort(ids)
	return ids
}

// numbered makes an index of n documents, of the ids 0, 1, ….
func (e *engine) numbered(t *testing.T, index string, shards, n int) {
	t.Helper()
	e.Create(t, index, object{"number_of_shards": shards, "number_of_replicas": 0}, object{
		"properties": object{"title": object{"type": "text"}, "n": object{"type": "integer"}},
	})
	documents := make([]Document, n)
	for i := range documents {
		documents[i] = Document{ID: strconv.Itoa(i), Source: object{"title": fmt.Sprint("document ", i), "n": i}}
	}
	check.OK(t, e.Index(t.Context(), e.At(index), documents))
}

func (e *engine) testSlices(t *testing.T) {
	e.numbered(t, "one", 1, 1200) // three pages
	e.numbered(t, "three", 3, 300)
	for _, names := range [][]string{{"one"}, {"three"}, {"one", "three"}} {
		o := ScanOptions{Index: e.At(names...), Fields: []string{"title"}}
		all := e.scanned(t, o)
		want := map[string]int{"one": 1200, "three": 300}[names[0]] + 300*(len(names)-1)
		check.Must(t, len(all) == want, "%v: %d documents, want %d", names, len(all), want)
		for _, n := range []int{2, 3, 5, 8} {
			var parts []string
			for o.Slices, o.Slice = n, 0; o.Slice < n; o.Slice++ {
				part := e.scanned(t, o)
				parts = append(parts, part...)
				check.Equal(t, part, e.scanned(t, o), names, o.Slice, n)
			}
			slices.Sort(parts)
			check.Equal(t, all, parts, names, n)
		}
	}
	t.Run("of terms", func(t *testing.T) {
		got := map[string]int{}
		for slice := range 4 {
			o := ScanOptions{Index: e.At("three"), Fields: []string{"title"}, Slices: 4, Slice: slice}
			err := e.ExactTerms(t.Context(), o, func(id string, _, _ [][]string) error {
				got[id]++
				return nil
			})
			check.OK(t, err)
		}
		check.That(t, len(got) == 300 && slices.Max(slices.Collect(maps.Values(got))) == 1, "%d documents, some %d times", len(got), slices.Max(slices.Collect(maps.Values(got))))
	})
}

func (e *engine) testShare(t *testing.T) {
	e.numbered(t, "shared", 2, 2000)
	o := ScanOptions{Index: e.At("shared"), Fields: []string{"title"}, Share: 0.3}
	first := e.scanned(t, o)
	if len(first) < 480 || len(first) > 720 { // 600 ± 6 standard deviations of 20
		t.Errorf("%d documents of 2000, want about 600", len(first))
	}
	check.Equal(t, first, e.scanned(t, o))
	var parts []string
	for o.Slices, o.Slice = 4, 0; o.Slice < 4; o.Slice++ {
		parts = append(parts, e.scanned(t, o)...)
	}
	slices.Sort(parts)
	check.Equal(t, first, parts)
	o.Slices, o.Slice = 0, 0
	o.Query = []byte(`{"range":{"n":{"lt":1000}}}`)
	if n := len(e.scanned(t, o)); n < 215 || n > 385 { // 300 ± 6 standard deviations of 14.5
		t.Errorf("%d documents of 1000 that match, want about 300", n)
	}
}

func (e *engine) testLostScroll(t *testing.T) {
	e.numbered(t, "lost", 1, 1200)
	lose := func(string, []string, []string) error {
		return e.Client.Do(t.Context(), esclient.Call{Request: esapi.ClearScrollRequest{ScrollID: []string{"_all"}}}, nil)
	}
	err := e.Scan(t.Context(), ScanOptions{Index: e.At("lost"), Fields: []string{"title"}}, func(id string, values, _ []string) error {
		if err := lose(id, values, nil); err != nil && !strings.Contains(err.Error(), "404") {
			return err
		}
		return nil
	})
	refusal, ok := errors.AsType[*esclient.Error](err)
	check.That(t, ok && refusal.Type == "search_context_missing_exception" && Interrupted(err), "error %v, want a lost search context", err)
}
