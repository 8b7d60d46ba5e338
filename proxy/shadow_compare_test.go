package proxy

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/internal/limits"
)

// comparedPage is an answer to a search.
func comparedPage(total string, ids ...string) string {
	hits := make([]string, len(ids))
	for i, id := range ids {
		hits[i] = fmt.Sprintf(`{"_index":"a","_id":%q,"_score":1.5,"_source":{"_id":"x"}}`, id)
	}
	return `{"took":1,"hits":{"total":` + total + `,"max_score":1,"hits":[` + strings.Join(hits, ",") + `]}}`
}

func zipped(tb testing.TB, s string) string {
	tb.Helper()
	var b bytes.Buffer
	gz := gzip.NewWriter(&b)
	io.WriteString(gz, s)
	if err := gz.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.String()
}

func TestReadHits(t *testing.T) {
	eleven := strings.Split("a b c d e f g h i j k", " ")
	ten := make([]hitID, 10)
	for i := range ten {
		ten[i] = hitID{"a", eleven[i]}
	}
	for _, tt := range []struct {
		name, encoding, answer string
		want                   topHits
		wrong                  bool
	}{
		{"total as an object", "", comparedPage(`{"value":7,"relation":"gte"}`, "x"), topHits{total: 7, first: []hitID{{"a", "x"}}}, false},
		{"total as a number", "identity", comparedPage(`7`, "x"), topHits{total: 7, first: []hitID{{"a", "x"}}}, false},
		{"no total", "", `{"hits":{"hits":[{"_index":"b","_id":"y"}]}}`, topHits{total: 0, first: []hitID{{"b", "y"}}}, false},
		{"ten count", "", comparedPage("11", eleven...), topHits{total: 11, first: ten}, false},
		{"no hit", "", comparedPage("0"), topHits{total: 0, first: []hitID{}}, false},
		{"gzip", "gzip", zipped(t, comparedPage("1", "x")), topHits{total: 1, first: []hitID{{"a", "x"}}}, false},
		{"no gzip", "gzip", comparedPage("1", "x"), topHits{}, true},
		{"gzip that breaks off", "gzip", zipped(t, comparedPage("1", "x"))[:40], topHits{}, true},
		{"too much gzip", "gzip", zipped(t, strings.Repeat(" ", maxShadowed)+comparedPage("1", "x")), topHits{}, true},
		{"another encoding", "br", comparedPage("1", "x"), topHits{}, true},
		{"filtered away", "", `{"took":1,"hits":{"total":{"value":1}}}`, topHits{}, true},
		{"an error", "", `{"error":{}}`, topHits{}, true},
		{"no JSON", "", "hits", topHits{}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := readTopHits(http.Header{"Content-Encoding": {tt.encoding}}, []byte(tt.answer), limits.New(128<<20).Hold(limits.Shadow, ""))
			if (err != nil) != tt.wrong {
				t.Fatalf("error %v", err)
			}
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(topHits{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A short text can list very many hits.
func TestHitsAreReadWithinTheMemory(t *testing.T) {
	body := []byte(`{"hits":{"hits":[{}` + strings.Repeat(`,{}`, maxShadowed/3) + `]}}`)
	memory := limits.New(128 << 20)
	got, err := readTopHits(nil, body, memory.Hold(limits.Shadow, ""))
	if err != nil || len(got.first) != overlapDepth || cap(got.first) > 2*overlapDepth {
		t.Errorf("%d hits with room for %d, %v", len(got.first), cap(got.first), err)
	}
	if n := memory.Stats(limits.Shadow).Held; n != int64(len(body)) {
		t.Errorf("%d bytes are held for %d", n, len(body))
	}
	if _, err := readTopHits(nil, body, limits.New(maxShadowed).Hold(limits.Shadow, "")); !errors.Is(err, limits.ErrNoRoom) {
		t.Errorf("without the memory: %v", err)
	}
}

func TestOverlap(t *testing.T) {
	list := func(ids string) (l topHits) {
		for _, id := range ids {
			l.first = append(l.first, hitID{"a", string(id)})
		}
		return l
	}
	for _, tt := range []struct {
		a, b string
		want float64
	}{{"abc", "abc", 1}, {"abc", "cab", 1}, {"abcd", "xayb", 0.5}, {"a", "abcd", 0.25}, {"", "ab", 0}, {"ab", "", 0}, {"ab", "cd", 0}} {
		if got, ok := overlap(list(tt.a), list(tt.b)); !ok || got != tt.want {
			t.Errorf("overlap(%q, %q) = %v, %v, want %v", tt.a, tt.b, got, ok, tt.want)
		}
	}
	if _, ok := overlap(list(""), list("")); ok {
		t.Error("two empty lists have an overlap")
	}
	other := topHits{first: []hitID{{"b", "a"}}}
	if got, _ := overlap(list("a"), other); got != 0 {
		t.Error("documents of two indices are the same")
	}
}
