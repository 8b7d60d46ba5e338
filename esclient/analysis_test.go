package esclient

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/e2e/clustertest"
	"github.com/akin-search/akin/esclient/mapping"
)

// same returns the handlers of an index i whose fields f0, f1, … are mapped in
// a way each.
func same(fields ...string) *clustertest.Fake {
	properties := make([]string, len(fields))
	for i, field := range fields {
		properties[i] = fmt.Sprintf(`"f%d":%s`, i, field)
	}
	return clustertest.New().Reply("GET /i", http.StatusOK, `{"i":`+mapped(strings.Join(properties, ","), "")+`}`).
		Reply("POST /i/_analyze", http.StatusOK, `{"tokens":[{"token":"car"}]}`)
}

func TestTextOfSeveralFieldsIsAnalyzedOnce(t *testing.T) {
	const plain, german = `{"type":"text"}`, `{"type":"text","analyzer":"german"}`
	const other, number = `{"type":"text","search_analyzer":"other"}`, `{"type":"long"}`
	tests := []struct {
		name, analyzer string
		fields         []string
		calls, trips   int
	}{
		{"alike", "", []string{plain, plain, plain, plain, plain, plain, plain, plain}, 1, 1},
		{"a named analyzer", "x", []string{plain, german, other}, 1, 1},
		// Whichever field guesses, the others of its analyzer use that.
		{"two search analyzers that differ from the index's", "", []string{other, other}, 2, 2},
		{"one field", "", []string{plain}, 1, 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := same(test.fields...).Slow(time.Millisecond)
				c := cached(t, f)
				start := time.Now()
				var done sync.WaitGroup
				for i := range test.fields {
					done.Go(func() {
						a, err := c.Analyze(t.Context(), at("i"), fmt.Sprint("f", i), test.analyzer, "cars")
						check.That(t, err == nil && len(a.Terms) == 1, "analysis %v, %v", a, err)
					})
				}
				done.Wait()
				trips := int(time.Since(start) / time.Millisecond)
				check.That(t, f.Asked("_analyze") == test.calls && trips == test.trips, "%d analyses in %d round trips, want %d in %d", f.Asked("_analyze"), trips, test.calls, test.trips)
				// With the fields known, another text is one call at most for each analyzer.
				for i := range test.fields {
					_, err := c.Analyze(t.Context(), at("i"), fmt.Sprint("f", i), test.analyzer, "boats")
					check.OK(t, err)
				}
				check.Equal(t, 1, f.Asked(`"boats"`))
			})
		})
	}
	t.Run("the guess of a field that is no text is not used", func(t *testing.T) {
		f := same(number, plain, german)
		c := cached(t, f)
		check.Error(t, mapping.ErrNotText, check.ErrOf(c.Analyze(t.Context(), at("i"), "f0", "", "cars")))
		analyze(t, c, "i", "f1", "cars")
		analyze(t, c, "i", "f2", "cars")
	})
}

func TestFieldsOfDifferentAnalyzersDoNotShareTerms(t *testing.T) {
	f := same(`{"type":"text"}`, `{"type":"text","analyzer":"german"}`).On("POST /i/_analyze", func(w http.ResponseWriter, r *http.Request) {
		term := "f0"
		if text := readAll(r); strings.Contains(text, "german") || strings.Contains(text, "f1") {
			term = "f1"
		}
		_, _ = fmt.Fprintf(w, `{"tokens":[{"token":%q}]}`, term)
	}).Slow(time.Millisecond)
	synctest.Test(t, func(t *testing.T) {
		c := cached(t, f)
		var done sync.WaitGroup
		for _, field := range []string{"f0", "f1"} {
			done.Go(func() {
				a, err := c.Analyze(t.Context(), at("i"), field, "", "cars")
				check.That(t, err == nil && a.Terms[0] == field, "terms of %s: %v, %v", field, a, err)
			})
		}
		done.Wait()
	})
}
