package esclient

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/e2e/clustertest"
	"github.com/akin-search/akin/esclient/mapping"
)

func TestTermsOfRecordedAnswersAreCounted(t *testing.T) {
	for _, r := range clustertest.Engines(t, "testdata") {
		t.Run(r.Engine, func(t *testing.T) {
			tests := []struct {
				name, call, answer string
				s                  *mapping.Schema
				want               termCount
			}{
				{
					"vectors", "POST /library/_termvectors", "vectors",
					&mapping.Schema{Shards: 1, Targets: []mapping.Target{{Index: "library", Shards: 1, Source: "title"}}},
					termCount{3, []int64{2, 1, 0}},
				},
				{
					"nested", "POST /library/_search", "count nested",
					&mapping.Schema{Shards: 1, Nested: "list", Targets: []mapping.Target{{Index: "library", Shards: 1, Source: "list.text"}}},
					termCount{6, []int64{5, 1, 0}},
				},
			}
			for _, test := range tests {
				field := test.s.Targets[0].Source
				got, err := client(t, clustertest.New().Replay(t, test.call, r, test.answer)).
					about("library", field).count(t.Context(), test.s, []string{"car", "boat", "none"})
				if err != nil {
					t.Fatal(test.name, err)
				}
				if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(termCount{})); diff != "" {
					t.Errorf("%s: %s", test.name, diff)
				}
			}
		})
	}
}

// shardNumber returns the shard that a call is pinned to.
func shardNumber(t *testing.T, u *url.URL) int {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimPrefix(u.Query().Get("preference"), "_shards:"))
	if err != nil {
		t.Errorf("%s is pinned to no shard", u)
	}
	return n
}

func TestShardsAreAddedUp(t *testing.T) {
	f := clustertest.New()
	for i, index := range []string{"a", "b"} {
		f.On("POST /"+index+"/_termvectors", func(w http.ResponseWriter, r *http.Request) {
			n := 10*i + shardNumber(t, r.URL)
			_, _ = fmt.Fprintf(w, `{"term_vectors":{"f":{"field_statistics":{"doc_count":%d},"terms":{"x":{"doc_freq":%d}}}}}`,
				100+n, 1+n)
		})
	}
	s := &mapping.Schema{Shards: 5, Targets: []mapping.Target{{Index: "a", Shards: 3, Source: "f"}, {Index: "b", Shards: 2, Source: "f"}}}
	got, err := client(t, f).about("a,b", "f").count(t.Context(), s, []string{"y", "x"})
	if err != nil {
		t.Fatal(err)
	}
	want := termCount{500 + 0 + 1 + 2 + 10 + 11, []int64{0, 5 + 0 + 1 + 2 + 10 + 11}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(termCount{})); diff != "" {
		t.Error(diff)
	}
	if f.Asked("") != 5 {
		t.Errorf("%d calls, want one a shard", f.Asked(""))
	}
}

func TestManyShardsAreSampledAndScaledUp(t *testing.T) {
	f := clustertest.New()
	for i := range 40 {
		f.Reply(fmt.Sprintf("POST /i%d/_termvectors", i), http.StatusOK,
			`{"term_vectors":{"f":{"field_statistics":{"doc_count":10},"terms":{"x":{"doc_freq":3}}}}}`)
	}
	s := &mapping.Schema{}
	for i := range 40 {
		s.Targets = append(s.Targets, mapping.Target{Index: fmt.Sprintf("i%d", i), Shards: 2, Source: "f"})
		s.Shards += 2
	}
	got, err := client(t, f).about("i*", "f").count(t.Context(), s, []string{"x"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(termCount{800, []int64{240}}, got, cmp.AllowUnexported(termCount{})); diff != "" {
		t.Error(diff)
	}
	// 32 of 80 shards, spread over all indices, none twice.
	seen := map[string]bool{}
	for _, c := range f.Calls() {
		path, _, _ := strings.Cut(c, "&")
		seen[path] = true
	}
	if f.Asked("") != 32 || len(seen) != 32 || f.Asked("/i0/") == 0 || f.Asked("/i38/") == 0 {
		t.Errorf("%d calls to %d shards", f.Asked(""), len(seen))
	}
}

func TestCountFallsBackToASearchWhereVectorsAreRefused(t *testing.T) {
	for _, r := range clustertest.Engines(t, "testdata") {
		t.Run(r.Engine, func(t *testing.T) {
			f := clustertest.New().Replay(t, "POST /i/_termvectors", r, "vectors refused").Reply(
				"POST /i/_search", http.StatusOK, `{"_shards":{"failed":0},"aggregations":{`+
					`"all":{"doc_count":9,"field":{"doc_count":7}},"terms":{"buckets":[{"doc_count":2}]}}}`)

			s := &mapping.Schema{Shards: 1, Targets: []mapping.Target{{Index: "i", Shards: 1, Source: "f"}}}
			c := client(t, f)
			for range 2 {
				got, err := c.about("i", "f").count(t.Context(), s, []string{"x"})
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(termCount{7, []int64{2}}, got, cmp.AllowUnexported(termCount{})); diff != "" {
					t.Error(diff)
				}
			}
			if n := f.Asked("_termvectors"); n != 1 {
				t.Errorf("vectors asked for %d times after a refusal, want 1", n)
			}
		})
	}
}

func TestOverloadedClusterIsNotAskedInAnotherWay(t *testing.T) {
	for _, status := range []int{401, 429, 502, 503, 504} {
		f := clustertest.New().Reply("POST /i/_termvectors", status, `{}`)
		s := &mapping.Schema{Shards: 1, Targets: []mapping.Target{{Index: "i", Shards: 1, Source: "f"}}}
		_, err := client(t, f).about("i", "f").count(t.Context(), s, []string{"x"})
		var refusal *Error
		if !errors.As(err, &refusal) || refusal.Status != status || f.Asked("_search") != 0 || s.Unvectored.Load() {
			t.Errorf("status %d: error %v, %d searches", status, err, f.Asked("_search"))
		}
	}
}

func TestCountsOfASearchThatIsNotWholeAreNotTaken(t *testing.T) {
	answers := map[string]string{
		"a shard failed": `{"_shards":{"failed":1},"aggregations":{"in":{"terms":{"buckets":[{"doc_count":2}]}}}}`,
		"a count lacks":  `{"_shards":{"failed":0},"aggregations":{"in":{"terms":{"buckets":[]}}}}`,
		"nothing":        `{}`,
	}
	for name, body := range answers {
		t.Run(name, func(t *testing.T) {
			s := &mapping.Schema{Shards: 1, Nested: "n", Targets: []mapping.Target{{Index: "i", Shards: 1, Source: "n.f"}}}
			c := client(t, clustertest.New().Reply("POST /i/_search", http.StatusOK, body))
			if n, err := c.about("i", "n.f").count(t.Context(), s, []string{"x"}); err == nil {
				t.Errorf("counts %+v", n)
			}
		})
	}
}

func TestTermsThatNoIndexCanHoldAreNotAskedFor(t *testing.T) {
	f := clustertest.New().Reply("POST /i/_termvectors", http.StatusOK,
		`{"term_vectors":{"f":{"field_statistics":{"doc_count":7},"terms":{"a":{"doc_freq":1},"b":{"doc_freq":2}}}}}`)

	s := &mapping.Schema{Shards: 1, Targets: []mapping.Target{{Index: "i", Shards: 1, Source: "f"}}}
	terms := []string{"a", strings.Repeat("é", 16384), "\xff", "b"}
	got, err := client(t, f).about("i", "f").count(t.Context(), s, terms)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(termCount{7, []int64{1, 0, 0, 2}}, got, cmp.AllowUnexported(termCount{})); diff != "" {
		t.Error(diff)
	}
	if f.Asked(`["a","b"]`) != 1 {
		t.Errorf("asked %.200q", f.Calls())
	}
}

func TestManyTermsAreAskedForInChunks(t *testing.T) {
	f := clustertest.New().Reply("POST /i/_termvectors", http.StatusOK,
		`{"term_vectors":{"f":{"field_statistics":{"doc_count":7},"terms":{"t0":{"doc_freq":1},"t2400":{"doc_freq":2}}}}}`)

	terms := make([]string, 2500)
	for i := range terms {
		terms[i] = fmt.Sprintf("t%d", i)
	}
	s := &mapping.Schema{Shards: 1, Targets: []mapping.Target{{Index: "i", Shards: 1, Source: "f"}}}
	got, err := client(t, f).about("i", "f").count(t.Context(), s, terms)
	if err != nil || got.docCount != 7 || got.docFreqs[0] != 1 || got.docFreqs[2400] != 2 || f.Asked("") != 3 {
		t.Errorf("N = %d, %v, %d calls", got.docCount, err, f.Asked(""))
	}
}
