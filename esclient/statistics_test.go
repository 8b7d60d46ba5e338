package esclient

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/e2e/clustertest"
	"github.com/akin-search/akin/esclient/mapping"
)

// ofOne is the schema of a field in an index of one shard.
func ofOne(index, field, nested string) *mapping.Schema {
	return &mapping.Schema{Shards: 1, Nested: nested, Targets: []mapping.Target{{Index: index, Shards: 1, Source: field}}}
}

// wantCount counts terms in a field of the fake and wants N and the frequencies.
func wantCount(t *testing.T, c *Client, s *mapping.Schema, index string, terms []string, want termCount) {
	t.Helper()
	got, err := c.about(index, s.Targets[0].Source).count(t.Context(), s, terms)
	diff := cmp.Diff(want, got, cmp.AllowUnexported(termCount{}))
	check.That(t, err == nil && diff == "", "%v, %s", err, diff)
}

func TestTermsOfRecordedAnswersAreCounted(t *testing.T) {
	for _, r := range clustertest.Engines(t, "testdata") {
		t.Run(r.Engine, func(t *testing.T) {
			c := client(t, clustertest.New().Replay(t, "POST /library/_termvectors", r, "vectors").Replay(t, "POST /library/_search", r, "count nested"))
			wantCount(t, c, ofOne("library", "title", ""), "library", searchTerms, termCount{docCount: 3, docFreqs: []int64{2, 1, 0}})
			wantCount(t, c, ofOne("library", "list.text", "list"), "library", searchTerms, termCount{docCount: 6, docFreqs: []int64{5, 1, 0}})
		})
	}
}

func TestShardsAreAddedUp(t *testing.T) {
	f := clustertest.New()
	for i, index := range []string{"a", "b"} {
		f.On("POST /"+index+"/_termvectors", func(w http.ResponseWriter, r *http.Request) {
			shard, err := strconv.Atoi(strings.TrimPrefix(r.URL.Query().Get("preference"), "_shards:"))
			check.That(t, err == nil, "%s is pinned to no shard", r.URL)
			n := 10*i + shard
			_, _ = fmt.Fprintf(w, `{"term_vectors":{"f":{"field_statistics":{"doc_count":%d},"terms":{"x":{"doc_freq":%d}}}}}`, 100+n, 1+n)
		})
	}
	s := &mapping.Schema{Shards: 5, Targets: []mapping.Target{{Index: "a", Shards: 3, Source: "f"}, {Index: "b", Shards: 2, Source: "f"}}}
	wantCount(t, client(t, f), s, "a,b", []string{"y", "x"}, termCount{docCount: 500 + 0 + 1 + 2 + 10 + 11, docFreqs: []int64{0, 5 + 0 + 1 + 2 + 10 + 11}})
	check.Equal(t, 5, f.Asked(""))
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
	wantCount(t, client(t, f), s, "i*", []string{"x"}, termCount{docCount: 800, docFreqs: []int64{240}})
	// 32 of 80 shards, spread over all indices, none twice.
	seen := map[string]bool{}
	for _, c := range f.Calls() {
		path, _, _ := strings.Cut(c, "&")
		seen[path] = true
	}
	check.That(t, f.Asked("") == 32 && len(seen) == 32 && f.Asked("/i0/") != 0 && f.Asked("/i38/") != 0, "%d calls to %d shards", f.Asked(""), len(seen))
}

func TestCountFallsBackToASearchWhereVectorsAreRefused(t *testing.T) {
	for _, r := range clustertest.Engines(t, "testdata") {
		t.Run(r.Engine, func(t *testing.T) {
			f := clustertest.New().Replay(t, "POST /i/_termvectors", r, "vectors refused").Reply(
				"POST /i/_search", http.StatusOK, `{"_shards":{"failed":0},"aggregations":{`+
					`"all":{"doc_count":9,"field":{"doc_count":7}},"terms":{"buckets":[{"doc_count":2}]}}}`)

			s, c := ofOne("i", "f", ""), client(t, f)
			for range 2 {
				wantCount(t, c, s, "i", []string{"x"}, termCount{docCount: 7, docFreqs: []int64{2}})
			}
			check.Equal(t, 1, f.Asked("_termvectors"))
		})
	}
}

func TestClusterThatCountsNothingIsAskedAgainAfterAWhile(t *testing.T) {
	for body, uncounted := range map[string]bool{
		`{"message":"Forbidden"}`: true,
		`{"error":{"type":"security_exception","reason":"no permissions"}}`: false, // of akin's own user
	} {
		synctest.Test(t, func(t *testing.T) {
			f := library(t).Reply("POST /library/_termvectors", http.StatusForbidden, body)
			search := f.Handler("POST /library/_search")
			f.On("POST /library/_search", func(w http.ResponseWriter, r *http.Request) {
				if asked, _ := io.ReadAll(r.Body); bytes.Contains(asked, []byte("aggs")) {
					w.WriteHeader(http.StatusForbidden)
					_, _ = io.WriteString(w, body)
					return
				}
				search(w, r)
			})
			c := cached(t, f)
			for range 2 {
				st, dfs, err := statistics(t.Context(), c)
				check.That(t, (err == nil) == uncounted && st.Uncounted == uncounted && slices.Max(dfs) == 0, "%s: %+v, %v, %v", body, st, dfs, err)
			}
			check.Equal(t, 1, f.Asked("_termvectors"), body)
			f.Reply("POST /library/_search", http.StatusOK, `{"_shards":{"failed":0,"successful":1},"aggregations":{`+
				`"all":{"field":{"doc_count":7}},"terms":{"buckets":[{"doc_count":2},{"doc_count":1},{"doc_count":0}]}}}`)
			time.Sleep(guessTime)
			st, dfs, err := statistics(t.Context(), c)
			check.That(t, err == nil && st.DocCount == 7 && !st.Uncounted && slices.Equal(dfs, []int64{2, 1, 0}), "%s: %+v, %v, %v", body, st, dfs, err)
		})
	}
}

// A merge drops deleted documents: an old frequency would then be too high for
// the new N.
func TestFrequenciesFromBeforeAMergeAreCountedAgain(t *testing.T) {
	for name, tt := range map[string]struct {
		docs, df int64 // what the cluster then counts
		wantDocs int64
		want     []int64
		calls    int
	}{
		"a merge":              {docs: 50, df: 20, wantDocs: 50, want: []int64{20, 20}, calls: 3},
		"a few documents more": {docs: 101, df: 41, wantDocs: 100, want: []int64{40, 41}, calls: 2},
	} {
		t.Run(name, func(t *testing.T) {
			f := library(t)
			c := cached(t, f)
			count := func(docs, df int64, terms ...string) (FieldStatistics, []int64) {
				f.Reply("POST /library/_termvectors", http.StatusOK, fmt.Sprintf(`{"term_vectors":{"title":{"field_statistics":{"doc_count":%d},`+
					`"terms":{"x":{"doc_freq":%[2]d},"y":{"doc_freq":%[2]d}}}}}`, docs, df))
				dfs := make([]int64, len(terms))
				st, err := c.Statistics(t.Context(), at("library"), "title", terms, dfs)
				check.OK(t, err)
				return st, dfs
			}
			count(100, 40, "x")
			st, dfs := count(tt.docs, tt.df, "x", "y")
			check.Equal(t, tt.want, dfs)
			check.Equal(t, tt.wantDocs, st.DocCount)
			again, dfs := count(1, 1, "y", "x")
			check.That(t, again == st && dfs[0] == tt.want[1] && dfs[1] == tt.want[0] && f.Asked("_termvectors") == tt.calls, "%+v, %d, %d calls", again, dfs, f.Asked("_termvectors"))
		})
	}
}

func TestOverloadedClusterIsNotAskedInAnotherWay(t *testing.T) {
	for _, status := range []int{401, 429, 502, 503, 504} {
		f := clustertest.New().Reply("POST /i/_termvectors", status, `{}`)
		s := ofOne("i", "f", "")
		_, err := client(t, f).about("i", "f").count(t.Context(), s, []string{"x"})
		var refusal *Error
		check.That(t, errors.As(err, &refusal) && refusal.Status == status && f.Asked("_search") == 0 && !s.Unvectored.Load(), "status %d: error %v, %d searches", status, err, f.Asked("_search"))
	}
}

func TestCountsOfASearchThatIsNotWholeAreNotTaken(t *testing.T) {
	for _, body := range []string{
		`{"_shards":{"failed":1},"aggregations":{"in":{"terms":{"buckets":[{"doc_count":2}]}}}}`,
		`{"_shards":{"failed":0},"aggregations":{"in":{"terms":{"buckets":[]}}}}`,
		`{}`,
	} {
		c := client(t, clustertest.New().Reply("POST /i/_search", http.StatusOK, body))
		n, err := c.about("i", "n.f").count(t.Context(), ofOne("i", "n.f", "n"), []string{"x"})
		check.That(t, err != nil, "%s: counts %+v", body, n)
	}
}

func TestTermsThatNoIndexCanHoldAreNotAskedFor(t *testing.T) {
	f := clustertest.New().Reply("POST /i/_termvectors", http.StatusOK,
		`{"term_vectors":{"f":{"field_statistics":{"doc_count":7},"terms":{"a":{"doc_freq":1},"b":{"doc_freq":2}}}}}`)

	wantCount(t, client(t, f), ofOne("i", "f", ""), "i", []string{"a", strings.Repeat("é", 16384), "\xff", "b"}, termCount{docCount: 7, docFreqs: []int64{1, 0, 0, 2}})
	check.Equal(t, 1, f.Asked(`["a","b"]`), f.Calls())
}

func TestManyTermsAreAskedForInChunks(t *testing.T) {
	f := clustertest.New().Reply("POST /i/_termvectors", http.StatusOK,
		`{"term_vectors":{"f":{"field_statistics":{"doc_count":7},"terms":{"t0":{"doc_freq":1},"t2400":{"doc_freq":2}}}}}`)

	terms := make([]string, 2500)
	for i := range terms {
		terms[i] = fmt.Sprintf("t%d", i)
	}
	want := make([]int64, len(terms))
	want[0], want[2400] = 1, 2
	wantCount(t, client(t, f), ofOne("i", "f", ""), "i", terms, termCount{docCount: 7, docFreqs: want})
	check.Equal(t, 3, f.Asked(""))
}
