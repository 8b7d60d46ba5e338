package demo

import (
	"net/http"
	"slices"
	"strconv"
	"testing"

	"github.com/akin-search/akin/e2e/check"
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
	c.load(tb, "n", map[string]any{"size": text()}, docs...)
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
	c := newClient()
	numbers(t, c, 500)
	want := scrolled(t, c, "n", map[string]any{})
	var got []string
	for id := range 3 {
		part := scrolled(t, c, "n", map[string]any{"slice": map[string]any{"id": id, "max": 3}})
		check.That(t, len(part) != 0 && len(part) != 500, "%d documents in slice %d", len(part), id)
		got = append(got, part...)
	}
	slices.Sort(got)
	check.Equal(t, want, got)
}

// share returns a query for a random share of the documents.
func share(least float64, seed int) map[string]any {
	return map[string]any{"function_score": map[string]any{
		"query": map[string]any{"match_all": map[string]any{}}, "boost_mode": "replace", "min_score": least,
		"random_score": map[string]any{"seed": seed, "field": "_seq_no"},
	}}
}

func TestRandomScoresFindAShare(t *testing.T) {
	c := newClient()
	numbers(t, c, 2000)
	found := func(least float64, seed int) []string {
		return scrolled(t, c, "n", map[string]any{"query": share(least, seed)})
	}
	for least, want := range map[float64]int{0: 2000, 0.25: 1500, 0.9: 200, 1: 0} {
		got := found(least, 1)
		if len(got) < want-100 || len(got) > want+100 { // 5 standard deviations of at most 20
			t.Errorf("%d of 2000 documents score %v, want about %d", len(got), least, want)
		}
		check.Equal(t, got, found(least, 1))
	}
	check.That(t, !slices.Equal(found(0.5, 1), found(0.5, 2)), "another seed finds the same")
	answer := c.ok(t, "POST", "/n/_search", map[string]any{"query": share(0.9, 3), "explain": true})
	score, explained := best(answer, "_score"), best(answer, "_explanation", "value")
	s, ok := score.(float64)
	check.That(t, ok && s >= 0.9 && s < 1 && explained == score, "score %v, explained as %v", score, explained)
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
		status, answer := c.do(t, "POST", "/toy/_search", `{"query":{"function_score":{"query":{"match_all":{}},`+query+`}}}`)
		check.That(t, status == http.StatusBadRequest, "%s: status %d, %v", name, status, answer)
	}
}
