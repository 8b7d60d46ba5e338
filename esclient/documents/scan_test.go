package documents

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/e2e/clustertest"
	"github.com/akin-search/akin/esclient"
)

// scrolling returns a fake that replays a recorded scroll.
func scrolling(t *testing.T, r clustertest.Recorded) *clustertest.Fake {
	t.Helper()
	f := clustertest.New().Replay(t, "GET /library", r, "schema").Replay(t, "POST /library/_search", r, "scroll").
		Replay(t, "DELETE /_search/scroll", r, "scroll clear")
	pages := []string{"scroll next", "scroll end"}
	return f.On("POST /_search/scroll", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(r.Body(t, pages[0]))
		pages = pages[1:]
	})
}

// allTitles are the options to read the titles of the recorded documents.
func allTitles() ScanOptions { return ScanOptions{Index: "library", Fields: []string{"title"}} }

// libraryTitles are the titles of the recorded documents.
var libraryTitles = map[string][]string{
	"0": {"Running cars"}, "1": {"the car rental"}, "2": {"boats"},
}

func TestRecordedScrollIsScanned(t *testing.T) {
	for _, r := range clustertest.Engines(t, "../testdata") {
		t.Run(r.Engine, func(t *testing.T) {
			f := scrolling(t, r)
			check.Equal(t, libraryTitles, textsByID(t, client(t, f), allTitles()))
			check.Equal(t, 1, f.Asked("DELETE /_search/scroll"))
			gone := scrolling(t, r).Replay(t, "DELETE /_search/scroll", r, "scroll cleared")
			err := client(t, gone).Scan(t.Context(), allTitles(), anyDoc)
			check.That(t, err == nil, "a scroll that is gone at its end: %v", err)
		})
	}
}

func TestScrollThatMayNotBeClearedIsNoErrorAtItsEnd(t *testing.T) {
	f := scrolling(t, clustertest.Engines(t, "../testdata")[0]).Reply("DELETE /_search/scroll", http.StatusForbidden,
		`{"error":{"type":"security_exception","reason":"no permissions for [indices:data/read/scroll/clear]"},"status":403}`)
	err := client(t, f).Scan(t.Context(), allTitles(), anyDoc)
	check.Error(t, nil, err)
}

// TestScanWithoutScrollsReadsInAPointInTime has the point in time of
// Elasticsearch; e2e has that of OpenSearch.
func TestScanWithoutScrollsReadsInAPointInTime(t *testing.T) {
	r := clustertest.Engines(t, "../testdata")[0]
	for name, refused := range map[string]string{"at all": "POST /library/_search", "after the first page": "POST /_search/scroll"} {
		t.Run(name, func(t *testing.T) {
			f := scrolling(t, r).Reply(refused, http.StatusGone, `{"error":{"type":"api_not_available_exception"}}`).
				Reply("POST /library/_pit", http.StatusOK, `{"id":"p1"}`).Reply("DELETE /_pit", http.StatusOK, `{}`)
			pages := []string{
				`{"pit_id":"p2","hits":{"hits":[{"_index":"library","_id":"0","_source":{"title":"Running cars"},"sort":[4294967296]}]}}`,
				`{"pit_id":"p3","hits":{"hits":[{"_index":"library","_id":"1","_source":{"title":"the car rental"},"sort":[4294967297]}]}}`,
				`{"hits":{"hits":[]}}`,
			}
			f.On("POST /_search", func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, pages[0])
				pages = pages[1:]
			})
			got := map[string][]string{}
			check.OK(t, client(t, f).Scan(t.Context(), allTitles(), func(id string, texts, _ []string) error { got[id] = texts; return nil }))
			check.Equal(t, map[string][]string{"0": {"Running cars"}, "1": {"the car rental"}}, got)
			calls := f.Calls()
			last, dropped := calls[len(calls)-2], calls[len(calls)-1]
			check.Equal(t, 1, f.Asked(`"pit":{"id":"p1"`))
			check.That(t, strings.Contains(last, `"pit":{"id":"p3","keep_alive":"10m"},"search_after":[4294967297],"size":500,"sort":["_shard_doc"]`), "%s", last)
			check.That(t, dropped == `DELETE /_pit {"id":"p1"}`, "%s", dropped)
		})
	}
}

// answering answers so.
func answering(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func TestScrollIsClearedHoweverTheScanEnds(t *testing.T) {
	r := clustertest.Engines(t, "../testdata")[0]
	stop := errors.New("enough")
	tests := []struct {
		name string
		page http.HandlerFunc
		fn   func(cancel func()) error
		want error
	}{
		{"the caller stops", nil, func(func()) error { return stop }, stop},
		{"the caller is canceled", nil, func(cancel func()) error { cancel(); return nil }, context.Canceled},
		{"the cluster fails", answering(500, ""), nil, nil},
		{"a shard fails", answering(200, `{"_scroll_id":"x","_shards":{"failed":1},"hits":{"hits":[]}}`), nil, nil},
		{"a page is cut", answering(200, `{"_scroll_id":"x","hits":{"hits":[{"_id":"1"`), nil, nil},
		{"a page is none", answering(200, `[]`), nil, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := scrolling(t, r)
			if test.page != nil {
				f.On("POST /_search/scroll", test.page)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			err := client(t, f).Scan(ctx, allTitles(), func(string, []string, []string) error {
				if test.fn == nil {
					return nil
				}
				return test.fn(cancel)
			})
			check.That(t, err != nil && (test.want == nil || errors.Is(err, test.want)), "error %v, want %v", err, test.want)
			check.Equal(t, 1, f.Asked("DELETE /_search/scroll"))
		})
	}
}

func TestBadScanOptionsAreRefusedBeforeAnyCall(t *testing.T) {
	tests := []struct {
		name string
		set  func(*ScanOptions)
		want string
	}{
		{"no field", func(o *ScanOptions) { o.Fields = nil }, "no field"},
		{"a query that is none", func(o *ScanOptions) { o.Query = []byte(`{"term":`) }, "not valid JSON"},
		{"two queries", func(o *ScanOptions) { o.Query = []byte(`{"match_all":{}} {}`) }, "not valid JSON"},
		{"a name twice", func(o *ScanOptions) { o.Query = []byte(`{"term":{"a":1,"a":2}}`) }, "twice"},
		{"an empty query", func(o *ScanOptions) { o.Query = []byte{} }, "not valid JSON"},
		{"a query that is a string", func(o *ScanOptions) { o.Query = []byte(`"car"`) }, "string"},
		{"a query that is null", func(o *ScanOptions) { o.Query = []byte(`null`) }, "want an object"},
		{"half a UTF-8 rune", func(o *ScanOptions) { o.Query = []byte("{\"term\":{\"a\":\"\xc3\"}}") }, "not valid JSON"},
		{"a share above 1", func(o *ScanOptions) { o.Share = 1.1 }, "share: 1.1"},
		{"a share below 0", func(o *ScanOptions) { o.Share = -1 }, "share: -1"},
		{"no share", func(o *ScanOptions) { o.Share = math.NaN() }, "share: NaN"},
		{"a slice beyond the last", func(o *ScanOptions) { o.Slice, o.Slices = 4, 4 }, "slice: 4 of 4"},
		{"a slice of the whole", func(o *ScanOptions) { o.Slice = 1 }, "slice: 1 of 0"},
		{"a negative slice", func(o *ScanOptions) { o.Slice, o.Slices = -1, 4 }, "slice: -1 of 4"},
		{"too many slices", func(o *ScanOptions) { o.Slices = 1025 }, "at most 1024"},
	}
	for _, test := range tests {
		f := clustertest.New()
		o := allTitles()
		test.set(&o)
		err := client(t, f).Scan(t.Context(), o, anyDoc)
		exact := client(t, f).ExactTerms(t.Context(), o, func(string, [][]string, [][]string) error { return nil })
		for _, err := range []error{err, exact} {
			check.That(t, err != nil && strings.Contains(err.Error(), test.want) && f.Asked("") == 0, "%s: error %v, want %q; %d calls", test.name, err, test.want, f.Asked(""))
		}
	}
}

func TestScanAsksForWhatTheOptionsSay(t *testing.T) {
	const rest = `"size":500,"sort":["_doc"]}`
	share := func(least, query string) string {
		return `"query":{"function_score":{"boost_mode":"replace","min_score":` + least + `,"query":{"bool":{"filter":[` + query +
			`]}},"random_score":{"field":"_seq_no","seed":1}}},`
	}
	for _, tt := range []struct {
		name string
		o    ScanOptions
		want string
	}{
		{"all", ScanOptions{}, rest},
		{"everything by a share of 1", ScanOptions{Share: 1, Slices: 1}, rest},
		{"a query as it is written", ScanOptions{Query: []byte(`{"range":{"n":{"gte":1.50}}}`)}, `"query":{"range":{"n":{"gte":1.50}}},` + rest},
		{"a slice", ScanOptions{Slices: 3, Slice: 2}, `"size":500,"slice":{"id":2,"max":3},"sort":["_doc"]}`},
		{"a share of what matches", ScanOptions{Share: 0.25, Query: []byte(`{"term":{"n":1}}`)}, share("0.75", `{"term":{"n":1}}`) + rest},
		{"a share of all", ScanOptions{Share: 0.5}, share("0.5", `{"match_all":{}}`) + rest},
	} {
		f := scrolling(t, clustertest.Engines(t, "../testdata")[0])
		tt.o.Index, tt.o.Fields = "library", []string{"title"}
		check.OK(t, client(t, f).Scan(t.Context(), tt.o, anyDoc))
		check.That(t, f.Asked("/library/_search?") == 1 && f.Asked(`&scroll=600000ms {"_source":["title"],`+tt.want) == 1, "%s: asked %q", tt.name, f.Calls())
	}
}

func TestInterruptedScansAreToldFromRefusedOnes(t *testing.T) {
	fail := func(kind string) string {
		return `{"error":{"root_cause":[{"type":"` + kind + `","reason":"x"}],"type":"all"}}`
	}
	tests := []struct {
		name string
		page http.HandlerFunc
		want bool
	}{
		{"the scroll is gone", answering(404, fail("search_context_missing_exception")), true},
		{"the index is gone", answering(404, fail("index_not_found_exception")), false},
		{"the cluster is busy", answering(429, fail("es_rejected_execution_exception")), true},
		{"a node is away", answering(503, fail("no_shard_available_action_exception")), true},
		{"a proxy in front knows no answer", answering(502, "<html>"), true},
		{"it may not be read", answering(403, fail("security_exception")), false},
		{"a bad query", answering(400, fail("parsing_exception")), false},
		{"some shards are lost", answering(200, `{"_scroll_id":"x","_shards":{"failed":1},"hits":{"hits":[]}}`), true},
		{"the page is cut", answering(200, `{"_scroll_id":"x","hits":{"hits":[{"_id":"1"`), true},
		{"the page is none", answering(200, `[]`), false},
		{"the connection breaks", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := scrolling(t, clustertest.Engines(t, "../testdata")[0]).On("POST /_search/scroll", test.page)
			server := httptest.NewServer(f) // a real one, for the connection that breaks
			defer server.Close()
			c, err := esclient.New(esclient.Options{URL: server.URL})
			check.OK(t, err)
			defer c.Close()
			err = (API{c}).Scan(t.Context(), allTitles(), anyDoc)
			check.That(t, err != nil && Interrupted(err) == test.want, "Interrupted(%v) = %v, want %v", err, !test.want, test.want)
		})
	}
	t.Run("nobody listens", func(t *testing.T) {
		server := httptest.NewServer(http.NotFoundHandler())
		c, err := esclient.New(esclient.Options{URL: server.URL})
		check.OK(t, err)
		defer c.Close()
		server.Close()
		if err := (API{c}).Scan(t.Context(), allTitles(), nil); !Interrupted(err) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("a call takes too long", func(t *testing.T) {
		f := scrolling(t, clustertest.Engines(t, "../testdata")[0]).On("GET /library", clustertest.Hang)
		c, err := esclient.New(esclient.Options{Transport: f, Timeout: time.Millisecond})
		check.OK(t, err)
		if err := (API{c}).Scan(t.Context(), allTitles(), nil); !Interrupted(err) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("the caller", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		err := client(t, scrolling(t, clustertest.Engines(t, "../testdata")[0])).Scan(ctx, allTitles(), nil)
		check.That(t, err != nil && !Interrupted(err), "error %v", err)
		check.That(t, !Interrupted(nil) && !Interrupted(errors.New("full disk")), "any error counts as an interruption")
	})
}

func TestCountOfWhatMatches(t *testing.T) {
	f := clustertest.New().Reply("POST /i/_count", 200, `{"count":5}`)
	for query, want := range map[string]string{"": "", `{"term":{"a":1}}`: `{"query":{"term":{"a":1}}}`} {
		var q []byte
		if query != "" {
			q = []byte(query)
		}
		n, err := client(t, f).Count(t.Context(), "i", q)
		calls := f.Calls()
		check.That(t, n == 5 && err == nil && calls[len(calls)-1] == "POST /i/_count "+want, "Count(%s) = %d, %v; asked %q", query, n, err, calls)
	}
	check.That(t, check.ErrOf(client(t, f).Count(t.Context(), "i", []byte(`[]`))) != nil, "a query that is an array is counted")
}

func TestIndicesOfAnExpression(t *testing.T) {
	f := clustertest.New().Reply("GET /logs-*/_settings", 200, `{"logs-b":{"settings":{"index":{"uuid":"u2","number_of_shards":"3"}}},
		"logs-a":{"settings":{"index":{}}}}`)

	got, err := client(t, f).Indices(t.Context(), "logs-*")
	diff := cmp.Diff([]ConcreteIndex{{Name: "logs-a", Shards: 1}, {Name: "logs-b", UUID: "u2", Shards: 3}}, got)
	check.That(t, diff == "" && err == nil, "%v %s", err, diff)
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
		got, err := appendTexts(nil, []byte(test.source), test.path)
		diff := cmp.Diff(test.want, got)
		check.That(t, err == nil && diff == "", "%s: %v, %s", test.name, err, diff)
	}
}

func FuzzPage(f *testing.F) {
	for _, r := range clustertest.Engines(f, "../testdata") {
		for _, name := range []string{"scroll", "scroll next", "scroll end"} {
			f.Add([]byte(r.Answers[name].Body), "title")
		}
	}
	f.Add([]byte(`{"hits":{"hits":[{"_source":{"a":[{"b":"x"}],"a.b":1}}]}}`), "a.b")
	f.Fuzz(func(t *testing.T, b []byte, path string) {
		var p page
		if esclient.Decode(b, &p) != nil {
			return
		}
		for _, h := range p.Hits.Hits {
			// A text is never longer than what it is written as: half a
			// surrogate pair, of 6 bytes, becomes 3.
			texts, err := appendTexts(nil, h.Source, path)
			check.That(t, err != nil || len(strings.Join(texts, "")) <= 3*len(h.Source), "texts %q of %q", texts, h.Source)
		}
	})
}

func TestRecordedTermVectorsAreSequences(t *testing.T) {
	for _, r := range clustertest.Engines(t, "../testdata") {
		t.Run(r.Engine, func(t *testing.T) {
			var docs []*vectorDoc
			call := vectorCall{docs: make([]VectorRequest, 3), positions: true}
			err := call.read(bytes.NewReader(r.Body(t, "term vectors")), func(_ int, d *vectorDoc) error {
				docs = append(docs, d)
				return nil
			})
			check.OK(t, err)
			// The nested list has two elements.
			got := docs[0].texts([]string{"list.text", "title", "none"})
			want := [][]string{{"run", "car"}, {"car"}, {"run", "car"}}
			check.Equal(t, want, got)
			if got := docs[1].texts([]string{"title"}); got != nil {
				t.Errorf("a document that is gone has %q", got)
			}
		})
	}
}

func TestTermVectorsOfAnIndexThatIsGoneAreAnError(t *testing.T) {
	for _, r := range clustertest.Engines(t, "../testdata") {
		t.Run(r.Engine, func(t *testing.T) {
			var answer struct {
				Docs []map[string]any `json:"docs"`
			}
			check.OK(t, esclient.Decode(r.Body(t, "term vectors"), &answer))
			refused := answer.Docs[2] // asked for in another index
			f := scrolling(t, r).On("POST /_mtermvectors", func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				_, asked, _ := strings.Cut(string(body), `"_id":"`)
				refused["_id"], _, _ = strings.Cut(asked, `"`)
				b, _ := json.Marshal(object{"docs": []any{refused}})
				_, _ = w.Write(b)
			})

			err := client(t, f).ExactTerms(t.Context(), allTitles(), func(string, [][]string, [][]string) error { return nil })
			check.Message(t, "index_not_found_exception", err)
			check.Equal(t, 1, f.Asked("DELETE /_search/scroll"))
		})
	}
}
