package e2e

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// newTexts is how many texts of each length akin meets for the first time; the
// first newWarmups of them, by akins of their own, are for the engine to compile
// what it runs.
const newTexts, newWarmups = 360, 160

// newTextsTable searches for texts that akin has not met, each at once again,
// and returns how much longer the first search takes, and which requests it
// waits for. The fields are known, and the frequencies of terms only from other
// texts. An akin before a recorder searches for each text first, so that the
// engine has met it.
func newTextsTable(b *testing.B, e *engine, matrices []section, texts map[int][]string) string {
	b.Helper()
	r := startRecorder(b, e, 0)
	var table strings.Builder
	table.WriteString("| new texts | p50 | p90 |\n|---|---|---|\n")
	for _, length := range []int{3, 8} {
		var took map[string][]time.Duration
		unknown := texts[length][formsQueries:]
		for _, part := range [][]string{unknown[:newWarmups], unknown[newWarmups:]} {
			recorded, plain := newAkin(b, r.url, matrices), newAkin(b, e.url, matrices)
			timeNew(b, recorded, plain, r, texts[length][:1]) // asks about the field
			took = timeNew(b, recorded, plain, r, part)
		}
		for _, what := range slices.Sorted(maps.Keys(took)) {
			slices.Sort(took[what])
			fmt.Fprintf(&table, "| %d words, %s | %.2f ms | %.2f ms |\n", length, what, quantile(took[what], .5)*1e3, quantile(took[what], .9)*1e3)
		}
	}
	return table.String()
}

// newAkin starts an akin with the defaults.
func newAkin(b *testing.B, url string, matrices []section) *akin {
	b.Helper()
	a := startAkin(b, section{
		"cluster": section{"urls": []string{url}}, "expansion": section{"budget": "10s"}, "matrices": matrices,
	})
	a.awaitMatrix(b, "forms")
	return a
}

// timeNew searches for each text and returns how much longer a search by plain
// takes the first time than the next, and how long each kind of request takes
// that recorded waits for.
func timeNew(b *testing.B, recorded, plain *akin, r *recorder, texts []string) map[string][]time.Duration {
	b.Helper()
	took := map[string][]time.Duration{}
	for _, text := range texts {
		r.take()
		searchNew(b, recorded, text)
		own := slices.DeleteFunc(r.take(), func(t trip) bool { return t.opaqueID != "" })
		if n := longestChain(own); len(texts) > 1 && n > 2 {
			b.Fatalf("%q: waits for %d requests one after the other, want at most 2: %v", text, n, names(own))
		}
		for _, trip := range own {
			took[trip.what] = append(took[trip.what], trip.end.Sub(trip.start))
		}
		first := searchNew(b, plain, text)
		took["waits"] = append(took["waits"], first-searchNew(b, plain, text))
	}
	return took
}

// searchNew searches for a text and returns how long that took.
func searchNew(b *testing.B, a *akin, text string) time.Duration {
	b.Helper()
	req, err := http.NewRequestWithContext(b.Context(), http.MethodPost,
		a.url+"/"+formsIndex+"/_search?request_cache=false", strings.NewReader(formsBody(text)))
	if err != nil {
		b.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Opaque-Id", "search")
	start := time.Now()
	resp, err := client.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if answer, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		b.Fatalf("%q: %v, %s: %.2000s", text, err, resp.Status, answer)
	}
	return time.Since(start)
}
