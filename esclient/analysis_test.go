package esclient

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/akin-search/akin/e2e/clustertest"
	"github.com/akin-search/akin/esclient/mapping"
)

// same returns the handlers of an index i whose fields f0, f1, … are mapped in
// a way each.
func same(fields ...string) *clustertest.Fake {
	properties := make([]string, len(fields))
	for i, field := range fields {
		properties[i] = `"f` + string(rune('0'+i)) + `":` + field
	}
	return clustertest.New().Reply(
		"GET /i", http.StatusOK, `{"i":`+mapped(strings.Join(properties, ","), "")+`}`).Reply(

		"POST /i/_analyze", http.StatusOK, `{"tokens":[{"token":"car"}]}`)
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
				done := make(chan error)
				for i := range test.fields {
					go func() {
						a, err := c.Analyze(t.Context(), at("i"), "f"+string(rune('0'+i)), test.analyzer, "cars")
						if err == nil && len(a.Terms) != 1 {
							t.Errorf("analysis %v", a)
						}
						done <- err
					}()
				}
				for range test.fields {
					if err := <-done; err != nil {
						t.Fatal(err)
					}
				}
				if trips := int(time.Since(start) / time.Millisecond); f.Asked("_analyze") != test.calls || trips != test.trips {
					t.Errorf("%d analyses in %d round trips, want %d in %d", f.Asked("_analyze"), trips, test.calls, test.trips)
				}
				// With the fields known, another text is one call at most for each analyzer.
				for i := range test.fields {
					if _, err := c.Analyze(t.Context(), at("i"), "f"+string(rune('0'+i)), test.analyzer, "boats"); err != nil {
						t.Fatal(err)
					}
				}
				if n := f.Asked(`"boats"`); n != 1 {
					t.Errorf("%d analyses of another text, want 1", n)
				}
			})
		})
	}
	t.Run("the guess of a field that is no text is not used", func(t *testing.T) {
		f := same(number, plain, german)
		c := cached(t, f)
		if _, err := c.Analyze(t.Context(), at("i"), "f0", "", "cars"); !errors.Is(err, mapping.ErrNotText) {
			t.Errorf("error %v", err)
		}
		for _, field := range []string{"f1", "f2"} {
			if _, err := c.Analyze(t.Context(), at("i"), field, "", "cars"); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestFieldsOfDifferentAnalyzersDoNotShareTerms(t *testing.T) {
	f := same(`{"type":"text"}`, `{"type":"text","analyzer":"german"}`)
	f.On("POST /i/_analyze", func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(time.Millisecond)
		b := make([]byte, 1000)
		n, _ := r.Body.Read(b)
		term := "plain"
		if s := string(b[:n]); strings.Contains(s, "german") || strings.Contains(s, "f1") {
			term = "german"
		}
		_, _ = w.Write([]byte(`{"tokens":[{"token":"` + term + `"}]}`))
	}).
		Slow(time.Millisecond)
	synctest.Test(t, func(t *testing.T) {
		c := cached(t, f)
		done := make(chan string)
		for _, field := range []string{"f0", "f1"} {
			go func() {
				a, err := c.Analyze(t.Context(), at("i"), field, "", "cars")
				if err != nil {
					t.Error(err)
					done <- ""
					return
				}
				done <- field + a.Terms[0]
			}()
		}
		if got := []string{<-done, <-done}; got[0]+got[1] != "f0plainf1german" && got[0]+got[1] != "f1germanf0plain" {
			t.Errorf("terms %q", got)
		}
	})
}
