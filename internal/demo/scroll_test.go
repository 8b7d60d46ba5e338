package demo

import (
	"net/http"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// numbers fills an index "n" with the documents 0 to n-1, four of five of which
// are small.
func numbers(tb testing.TB, c *client, n int) {
	tb.Helper()
	docs := make([]loaded, n)
	for i := range docs {
		docs[i] = loaded{strconv.Itoa(i), map[string]any{"size": "small"}}
		if i%5 == 0 {
			docs[i].source["size"] = "large"
		}
	}
	c.load(tb, "n", map[string]any{"size": map[string]any{"type": "keyword"}}, docs...)
}

// scrolled returns the ids of all pages of a scroll, sorted.
func scrolled(tb testing.TB, c *client, index string, body map[string]any) []string {
	tb.Helper()
	body["size"], body["sort"] = 70, []string{"_doc"}
	answer := c.ok(tb, "POST", "/"+index+"/_search?scroll=1m", body)
	var all []string
	for page := ids(answer); len(page) > 0; page = ids(answer) {
		all = append(all, page...)
		answer = c.ok(tb, "POST", "/_search/scroll", map[string]any{"scroll": "1m", "scroll_id": at(answer, "_scroll_id")})
	}
	c.ok(tb, "DELETE", "/_search/scroll", map[string]any{"scroll_id": at(answer, "_scroll_id")})
	slices.Sort(all)
	return all
}

func TestSlicesHoldEachDocumentOnce(t *testing.T) {
	c := newClient(t)
	numbers(t, c, 500)
	query := map[string]any{"term": map[string]any{"size": "small"}}
	want := scrolled(t, c, "n", map[string]any{"query": query})
	if len(want) != 400 {
		t.Fatalf("%d documents, want 400", len(want))
	}
	for _, n := range []int{2, 3, 8, 1024} {
		var got []string
		longest := 0
		for id := range n {
			part := scrolled(t, c, "n", map[string]any{"query": query, "slice": map[string]any{"id": id, "max": n}})
			longest = max(longest, len(part))
			got = append(got, part...)
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d slices: %s", n, diff)
		}
		if longest > 2*400/n+20 {
			t.Errorf("of %d slices one has %d documents", n, longest)
		}
	}
}

// oddSlices are slice members, by whether an engine takes them.
func oddSlices() map[string]bool {
	return map[string]bool{
		`{"id":0,"max":2}`: true, `{"id":1,"max":2,"field":"_id"}`: true, `{"id":1023,"max":1024}`: true,
		`{"id":2,"max":2}`: false, `{"id":0,"max":1}`: false, `{"id":-1,"max":2}`: false, `{"id":0,"max":1025}`: false,
		`{"id":0,"max":2,"x":1}`: false, `[]`: false, `{"id":0,"max":2,"field":"nothing"}`: false,
	}
}

func TestOddSlicesAreRefused(t *testing.T) {
	c := toy(t)
	for slice, want := range oddSlices() {
		status, answer := c.do(t, "POST", "/toy/_search?scroll=1m", `{"slice":`+slice+`}`)
		if (status == http.StatusOK) != want || !want && status != http.StatusBadRequest {
			t.Errorf("slice %s: status %d, %v", slice, status, answer)
		}
	}
	if status, _ := c.do(t, "POST", "/toy/_search", `{"slice":{"id":0,"max":2}}`); status != http.StatusBadRequest {
		t.Errorf("a slice without a scroll: status %d", status)
	}
	for _, incomplete := range []string{`{"id":0}`, `{"max":2}`, `{}`} { // some engines take these and read them as they like
		if status, _ := c.do(t, "POST", "/toy/_search?scroll=1m", `{"slice":`+incomplete+`}`); status != http.StatusBadRequest {
			t.Errorf("slice %s: status %d", incomplete, status)
		}
	}
}

// TestSlicesAgreeWithARealEngine compares which slices are taken, and that they
// are the same documents together.
func TestSlicesAgreeWithARealEngine(t *testing.T) {
	c := newComparison(t)
	index := c.prefix + "odd"
	for slice, want := range oddSlices() {
		theirs, _ := c.real.do(t, "POST", "/"+index+"/_search?scroll=1m", `{"slice":`+slice+`}`)
		ours, _ := c.ours.do(t, "POST", "/"+index+"/_search?scroll=1m", `{"slice":`+slice+`}`)
		if (theirs == http.StatusOK) != want || (ours == http.StatusOK) != want {
			t.Errorf("slice %s: status %d, a real engine says %d", slice, ours, theirs)
		}
	}
	c.real.do(t, "DELETE", "/_search/scroll/_all", nil)
	union := func(c *client) []string {
		var all []string
		for id := range 3 {
			all = append(all, scrolled(t, c, index, map[string]any{"slice": map[string]any{"id": id, "max": 3}})...)
		}
		slices.Sort(all)
		return all
	}
	if diff := cmp.Diff(union(c.real), union(c.ours)); diff != "" {
		t.Errorf("documents of three slices (-real +ours): %s", diff)
	}
}

// share returns a query for a random share of the documents.
func share(least float64, seed int) map[string]any {
	return map[string]any{"function_score": map[string]any{
		"query": map[string]any{"match_all": map[string]any{}}, "boost_mode": "replace", "min_score": least,
		"random_score": map[string]any{"seed": seed, "field": "_seq_no"},
	}}
}

func TestRandomScoresFindAShare(t *testing.T) {
	c := newClient(t)
	numbers(t, c, 2000)
	found := func(least float64, seed int) []string {
		return scrolled(t, c, "n", map[string]any{"query": share(least, seed)})
	}
	for least, want := range map[float64]int{0: 2000, 0.25: 1500, 0.9: 200, 1: 0} {
		got := found(least, 1)
		if len(got) < want-100 || len(got) > want+100 { // 5 standard deviations of at most 20
			t.Errorf("%d of 2000 documents score %v, want about %d", len(got), least, want)
		}
		if diff := cmp.Diff(got, found(least, 1)); diff != "" {
			t.Errorf("the same seed finds others: %s", diff)
		}
	}
	if slices.Equal(found(0.5, 1), found(0.5, 2)) {
		t.Error("another seed finds the same")
	}
	answer := c.ok(t, "POST", "/n/_search", map[string]any{"query": share(0.9, 3), "explain": true})
	score, explained := at(answer, "hits", "hits", 0, "_score"), at(answer, "hits", "hits", 0, "_explanation", "value")
	if s, ok := score.(float64); !ok || s < 0.9 || s >= 1 || explained != score {
		t.Errorf("score %v, explained as %v", score, explained)
	}
}

func TestOtherRandomScoresAreRefused(t *testing.T) {
	c := toy(t)
	for name, query := range map[string]string{
		"another mode":     `"random_score":{"seed":1,"field":"_seq_no"}`,
		"another field":    `"random_score":{"seed":1,"field":"n"},"boost_mode":"replace"`,
		"another member":   `"random_score":{"seed":1,"field":"_seq_no","x":2},"boost_mode":"replace"`,
		"other functions":  `"random_score":{"field":"_seq_no"},"boost_mode":"replace","functions":[{"weight":2}]`,
		"no random score":  `"boost_mode":"replace","weight":2`,
		"no object":        `"random_score":1,"boost_mode":"replace"`,
		"a malformed seed": `"random_score":{"seed":-1,"field":"_seq_no"},"boost_mode":"replace"`,
	} {
		if status, answer := c.do(t, "POST", "/toy/_search", `{"query":{"function_score":{"query":{"match_all":{}},`+query+`}}}`); status != http.StatusBadRequest {
			t.Errorf("%s: status %d, %v", name, status, answer)
		}
	}
}
