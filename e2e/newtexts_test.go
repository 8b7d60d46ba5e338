package e2e

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// newTexts is how many texts of each length akin meets for the first time; the
// first newWarmups of them, by akins of their own, are for the engine to compile
// what it runs.
const newTexts, newWarmups = 360, 160

// BenchmarkNewTexts searches for texts that akin has not met, each at once
// again, and prints how much longer the first search takes, and which requests
// it waits for. The fields are known, and the frequencies of terms only from
// other texts. An akin before a recorder searches for each text first, so that
// the engine has met it. Run it with -benchtime 1x.
func BenchmarkNewTexts(b *testing.B) {
	e := productionEngine(b, qualityEngine)
	texts := loadForms(b, e, formsDefinition, formsDocs, 1+newTexts)
	learned := []section{{"name": "forms", "indices": []string{formsIndex}, "fields": []string{"title", "body"}, "file": formsMatrix(b, e)}}
	r := startRecorder(b, e, 0)
	for b.Loop() {
		fmt.Fprintf(os.Stdout, "\n%s", newTextsTable(b, e, r, learned, texts))
	}
}

func newTextsTable(b *testing.B, e *engine, r *recorder, learned []section, texts map[int][]string) string {
	b.Helper()
	var table strings.Builder
	table.WriteString("| new texts | p50 | p90 |\n|---|---|---|\n")
	for _, length := range []int{3, 8} {
		var took map[string][]time.Duration
		unknown := texts[length][1:]
		for _, part := range [][]string{unknown[:newWarmups], unknown[newWarmups:]} {
			recorded, plain := setupWide(b, e, section{"cluster": section{"urls": []string{r.url}}, "matrices": learned}), setupWide(b, e, section{"matrices": learned})
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
	start := time.Now()
	status, answer, err := a.call(b.Context(), http.MethodPost, "/"+formsIndex+"/_search?request_cache=false", formsBody(text), "X-Opaque-Id: search")
	if err != nil || status != http.StatusOK {
		b.Fatalf("%q: %v, %d: %.2000s", text, err, status, answer)
	}
	return time.Since(start)
}
