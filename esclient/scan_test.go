package esclient

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// scrolling returns a fake that replays a recorded scroll.
func scrolling(t *testing.T, r recorded) *fake {
	t.Helper()
	f := newFake().replay(t, "GET /library", r, "schema").
		replay(t, "POST /library/_search", r, "scroll").
		replay(t, "DELETE /_search/scroll", r, "scroll clear")
	pages := []string{"scroll next", "scroll end"}
	return f.on("POST /_search/scroll", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(r.body(t, pages[0]))
		pages = pages[1:]
	})
}

// libraryTitles are the titles of the recorded documents.
var libraryTitles = map[string][]string{
	"0": {"Running cars"}, "1": {"the car rental"}, "2": {"boats"},
}

func TestRecordedScrollIsScanned(t *testing.T) {
	for _, r := range engines(t) {
		t.Run(r.engine, func(t *testing.T) {
			f := scrolling(t, r)
			got := map[string][]string{}
			err := f.client(t).Scan(t.Context(), "library", []string{"title"}, func(id string, values []string) error {
				got[id] = values
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(libraryTitles, got); diff != "" {
				t.Error(diff)
			}
			if f.asked("DELETE /_search/scroll") != 1 {
				t.Error("the scroll was left open")
			}
		})
	}
}

func TestScrollThatIsGoneIsNoErrorAtItsEnd(t *testing.T) {
	for _, r := range engines(t) {
		t.Run(r.engine, func(t *testing.T) {
			f := scrolling(t, r).replay(t, "DELETE /_search/scroll", r, "scroll cleared")
			err := f.client(t).Scan(t.Context(), "library", []string{"title"}, func(string, []string) error { return nil })
			if err != nil {
				t.Error(err)
			}
		})
	}
}

func TestScrollIsClearedHoweverTheScanEnds(t *testing.T) {
	r := engines(t)[0]
	stop := errors.New("enough")
	tests := []struct {
		name string
		page http.HandlerFunc
		fn   func(cancel func()) error
		want error
	}{
		{"the caller stops", nil, func(func()) error { return stop }, stop},
		{"the caller is cancelled", nil, func(cancel func()) error { cancel(); return nil }, context.Canceled},
		{"the cluster fails", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }, nil, nil},
		{
			"a shard fails", func(w http.ResponseWriter, _ *http.Request) {
				_, _ = w.Write([]byte(`{"_scroll_id":"x","_shards":{"failed":1},"hits":{"hits":[]}}`))
			}, nil, nil,
		},
		{"a page is cut", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"_scroll_id":"x","hits":{"hits":[{"_id":"1"`))
		}, nil, nil},
		{"a page is none", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`[]`)) }, nil, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := scrolling(t, r)
			if test.page != nil {
				f.on("POST /_search/scroll", test.page)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			err := f.client(t).Scan(ctx, "library", []string{"title"}, func(string, []string) error {
				if test.fn == nil {
					return nil
				}
				return test.fn(cancel)
			})
			if err == nil || test.want != nil && !errors.Is(err, test.want) {
				t.Errorf("error %v, want %v", err, test.want)
			}
			if f.asked("DELETE /_search/scroll") != 1 {
				t.Error("the scroll was left open")
			}
		})
	}
}

func TestScanWithoutAFieldIsRefused(t *testing.T) {
	f := newFake()
	err := f.client(t).Scan(t.Context(), "i", nil, func(string, []string) error { return nil })
	if err == nil || f.asked("") != 0 {
		t.Errorf("error %v, %d calls", err, f.asked(""))
	}
}

func TestLongPageIsReadInBatches(t *testing.T) {
	hits := make([]string, 3*hitBatch+1)
	for i := range hits {
		hits[i] = fmt.Sprintf(`{"_id":"%d"}`, i)
	}
	var sizes []int
	p := page{fn: func(batch []hit) error {
		sizes = append(sizes, len(batch))
		return nil
	}}
	body := `{"took":{"x":[1]},"_scroll_id":"s","hits":{"total":1,"hits":[` + strings.Join(hits, ",") + `]}}`
	if err := p.read(strings.NewReader(body)); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(sizes, []int{hitBatch, hitBatch, hitBatch, 1}) || p.hits != len(hits) || p.scrollID != "s" {
		t.Errorf("batches %v of %d hits, scroll %q", sizes, p.hits, p.scrollID)
	}
}

func TestTextsOfASource(t *testing.T) {
	tests := []struct {
		name, source, path string
		want               []string
	}{
		{"a string", `{"a":"x","b":"y"}`, "a", []string{"x"}},
		{"an array", `{"a":["x",["y"],null,1.50,true]}`, "a", []string{"x", "y", "1.50", "true"}},
		{"a path", `{"a":{"b":{"c":"x"}}}`, "a.b.c", []string{"x"}},
		{"a name with dots", `{"a.b":{"c":"x"}}`, "a.b.c", []string{"x"}},
		{"both", `{"a":{"b":"x"},"a.b":"y"}`, "a.b", []string{"x", "y"}},
		{"an array of objects", `{"a":[{"b":"x"},{"b":["y","z"]},{"c":"w"}]}`, "a.b", []string{"x", "y", "z"}},
		{"an object where a text should be", `{"a":{"b":"x"}}`, "a", nil},
		{"a text where an object should be", `{"a":"x"}`, "a.b", nil},
		{"nothing", `{}`, "a", nil},
		{"escapes and half a surrogate pair", `{"a":"\u00e9\ud83d"}`, "a", []string{"é\uFFFD"}},
		{"a name twice", `{"a":"x","a":"y"}`, "a", []string{"y"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := appendTexts(nil, []byte(test.source), test.path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func FuzzPage(f *testing.F) {
	for _, r := range engines(f) {
		for _, name := range []string{"scroll", "scroll next", "scroll end"} {
			f.Add([]byte(r.answers[name].Body), "title")
		}
	}
	f.Add([]byte(`{"hits":{"hits":[{"_source":{"a":[{"b":"x"}],"a.b":1}}]}}`), "a.b")
	f.Fuzz(func(t *testing.T, b []byte, path string) {
		n := 0
		p := page{fn: func(batch []hit) error {
			for _, h := range batch {
				n++
				// A text is never longer than what it is written as: half a
				// surrogate pair, of 6 bytes, becomes 3.
				texts, err := appendTexts(nil, h.Source, path)
				if err == nil && len(strings.Join(texts, "")) > 3*len(h.Source) {
					t.Errorf("texts %q of %q", texts, h.Source)
				}
			}
			return nil
		}}
		if err := p.read(strings.NewReader(string(b))); err == nil && n != p.hits {
			t.Errorf("%d hits handed on of %d", n, p.hits)
		}
	})
}

func TestRecordedTermVectorsAreSequences(t *testing.T) {
	for _, r := range engines(t) {
		t.Run(r.engine, func(t *testing.T) {
			var answer struct {
				Docs []vectorDoc `json:"docs"`
			}
			if err := decode(r.body(t, "term vectors"), &answer); err != nil {
				t.Fatal(err)
			}
			got, ok := answer.Docs[0].sequences([]string{"list.text", "title", "none"})
			want := [][]string{{"run", "car", "car"}, {"run", "car"}, nil}
			if diff := cmp.Diff(want, got); diff != "" || !ok {
				t.Errorf("%v, %s", ok, diff)
			}
			if got, ok := answer.Docs[1].sequences([]string{"title"}); ok {
				t.Errorf("a document that is gone has %q", got)
			}
		})
	}
}

func TestTermVectorsOfAnIndexThatIsGoneAreAnError(t *testing.T) {
	for _, r := range engines(t) {
		t.Run(r.engine, func(t *testing.T) {
			f := scrolling(t, r).replay(t, "POST /_mtermvectors", r, "term vectors")
			err := f.client(t).ExactTerms(t.Context(), "library", []string{"title"}, func(string, [][]string) error { return nil })
			if err == nil || !strings.Contains(err.Error(), "index_not_found_exception") {
				t.Errorf("error %v", err)
			}
			if f.asked("DELETE /_search/scroll") != 1 {
				t.Error("the scroll was left open")
			}
		})
	}
}

func TestRoutingOfADocumentIsPassedOn(t *testing.T) {
	f := newFake().reply("POST /_mtermvectors", http.StatusOK, `{"docs":[]}`)
	page := []hit{{Index: "a", ID: "1", Routing: "r"}, {Index: "b", ID: "2"}}
	if _, err := f.client(t).termVectors(t.Context(), []string{"f"}, page); err != nil {
		t.Fatal(err)
	}
	if f.asked(`"routing":"r"`) != 1 || strings.Count(f.calls[0], "routing") != 1 {
		t.Errorf("asked %q", f.calls)
	}
}
