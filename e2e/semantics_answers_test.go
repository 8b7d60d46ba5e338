package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/simmatrix"
)

// An answer is what the tests read of the answer to a search with its options.
type answer struct {
	Hits struct {
		Total struct{ Value int }
		Hits  []answerHit
	}
	Shards          struct{ Total, Failed int } `json:"_shards"`
	TerminatedEarly bool                        `json:"terminated_early"`
	Profile         json.RawMessage
}

type answerHit struct {
	ID          string   `json:"_id"`
	Score       *float64 `json:"_score"`
	Named       []string `json:"matched_queries"`
	Highlight   map[string][]string
	Sort        []any
	InnerHits   map[string]struct{ Hits struct{ Hits []answerHit } } `json:"inner_hits"`
	Explanation struct{ Value float64 }                              `json:"_explanation"`
}

func (a *answer) ids() []string {
	ids := make([]string, 0, len(a.Hits.Hits))
	for _, h := range a.Hits.Hits {
		ids = append(ids, h.ID)
	}
	return ids
}

func (a *answer) sorted() []string { return slices.Sorted(slices.Values(a.ids())) }

// ask sends a search and returns the answer, decoded and as it came.
func (c cluster) ask(t *testing.T, path, body string) (answer, []byte) {
	t.Helper()
	raw := c.must(t, http.MethodPost, path, body)
	var a answer
	if err := json.Unmarshal(raw, &a); err != nil {
		t.Fatalf("%s %s: %v: %.500s", path, body, err, raw)
	}
	return a, raw
}

// An asked is a search for "boat" with something else that it asks for.
type asked struct {
	name string
	// others follow the name of the index, and params other parameters.
	others, params, body string
	// more are the ids that come in; nil where the search is not expanded, and
	// the whole answer is the direct one.
	more []string
	// check looks further at the answers, directly and through akin.
	check func(t *testing.T, direct, through answer)
}

// ships are the documents that a search for "boat" finds only through akin.
var ships = []string{"auto-crimson-huge-ship", "huge-ship-swift", "ship"}

const boat = `{"match":{"body":"boat"}}`

var askedSearches = []asked{
	{
		name: "nested with inner hits", body: `{"query":{"nested":{"path":"parts","score_mode":"max","query":{"match":{"parts.text":"boat"}},"inner_hits":{}}}}`,
		more: ships, check: eachHit(func(h answerHit) bool {
			inner := h.InnerHits["parts"].Hits.Hits
			return len(inner) == 1 && inner[0].ID == h.ID
		}),
	},
	{
		// The mean is the default: one more match could lower it.
		name: "nested by the mean", body: `{"query":{"nested":{"path":"parts","query":{"match":{"parts.text":"boat"}}}}}`, more: []string{},
	},
	{
		name: "named query", body: `{"query":{"match":{"body":{"query":"boat","_name":"first"}}}}`,
		more: ships, check: eachHit(func(h answerHit) bool {
			return slices.Equal(h.Named, []string{"first"}) != slices.Contains(ships, h.ID)
		}),
	},
	{
		name: "highlight", body: `{"query":` + boat + `,"highlight":{"fields":{"body":{}}}}`,
		more: ships, check: func(t *testing.T, direct, through answer) {
			t.Helper()
			if diff := cmp.Diff(highlights(direct), highlights(through)); diff != "" {
				t.Errorf("highlights (-direct +through akin):\n%s", diff)
			}
		},
	},
	{
		name: "highlight of another query", body: `{"query":` + boat + `,"highlight":{"highlight_query":{"match":{"body":"ship"}},"fields":{"body":{}}}}`,
		more: ships, check: eachHit(func(h answerHit) bool { return len(h.Highlight["body"]) > 0 == slices.Contains(ships, h.ID) }),
	},
	{
		name: "rescore", body: `{"query":` + boat + `,"rescore":{"window_size":50,"query":{"rescore_query":{"match":{"body":"huge"}},"rescore_query_weight":100}}}`,
		more: ships, check: func(t *testing.T, _, through answer) {
			t.Helper()
			if ids := through.ids(); !strings.Contains(ids[0], "huge") || !strings.Contains(ids[1], "huge") {
				t.Errorf("the search's own rescore does not decide: %v", ids)
			}
		},
	},
	{
		name: "sort with scores", body: `{"query":` + boat + `,"sort":[{"n":"desc"}],"track_scores":true}`,
		more: ships, check: func(t *testing.T, _, through answer) {
			t.Helper()
			last := 1e9
			for _, h := range through.Hits.Hits {
				n, _ := h.Sort[0].(float64)
				if n > last || h.Score == nil {
					t.Errorf("%s: sorted by %v after %v, score %v", h.ID, n, last, h.Score)
				}
				last = n
			}
		},
	},
	{name: "sort", body: `{"query":` + boat + `,"sort":["n"]}`, more: ships},
	{name: "profile", body: `{"query":` + boat + `,"profile":true}`, more: ships, check: func(t *testing.T, _, through answer) {
		t.Helper()
		if len(through.Profile) == 0 {
			t.Error("no profile")
		}
	}},
	{name: "explain", body: `{"query":` + boat + `,"explain":true}`, more: ships, check: eachHit(func(h answerHit) bool {
		return h.Score != nil && relative(h.Explanation.Value, *h.Score) < scoreTolerance
	})},
	{name: "post_filter", body: `{"query":` + boat + `,"post_filter":{"range":{"n":{"gte":0}}}}`, more: ships},
	{name: "min_score", body: `{"query":` + boat + `,"min_score":0.01}`},
	{name: "preference", params: "&preference=_local", body: `{"query":` + boat + `}`, more: ships},
	{name: "ignore_unavailable", others: ",akin-e2e-absent", params: "&ignore_unavailable=true", body: `{"query":` + boat + `}`, more: ships},
	{name: "q", params: "&q=boat&df=body", more: ships},
	{name: "q of default fields", params: "&q=boat", more: ships},
	{name: "source", params: "&source_content_type=application%2Fjson&source=" + url.QueryEscape(`{"query":`+boat+`}`), more: ships},
	{name: "q with a field", params: "&q=body:boat"},
	{name: "q with a prefix", params: "&q=boat*&df=body"},
	{name: "q with operators", params: "&df=body&q=boat+AND+NOT+big"},
	{name: "query_string with a phrase", body: `{"query":{"query_string":{"query":"\"big boat\"","default_field":"body"}}}`},
	{name: "simple_query_string with operators", body: `{"query":{"simple_query_string":{"query":"boat -big","fields":["body"]}}}`},
	{name: "filter", body: `{"query":{"bool":{"filter":` + boat + `}}}`},
	{name: "constant_score", body: `{"query":{"constant_score":{"filter":` + boat + `}}}`},
}

// eachHit returns a check of every hit through akin, of which there have to be
// some.
func eachHit(ok func(h answerHit) bool) func(t *testing.T, direct, through answer) {
	return func(t *testing.T, _, through answer) {
		t.Helper()
		for _, h := range through.Hits.Hits {
			if !ok(h) {
				t.Errorf("not as it should be: %+v", h)
			}
		}
	}
}

// highlights returns what is marked in each hit that has marks.
func highlights(a answer) map[string][]string {
	marked := map[string][]string{}
	for _, h := range a.Hits.Hits {
		if len(h.Highlight) > 0 {
			marked[h.ID] = h.Highlight["body"]
		}
	}
	return marked
}

// target is where the search goes.
func (s asked) target() string {
	return "/" + semanticsIndex + s.others + "/_search?size=100" + s.params
}

func TestOptionsOfSearchesKeepTheirMeaning(t *testing.T) {
	matrix := semanticsMatrix(t)
	eachEngine(t, func(t *testing.T, e *engine) {
		for _, shards := range []int{1, 3} {
			contenders := serveSemantics(t, e, matrix, shards, section{"default_fields": []string{"body"}})
			for _, s := range askedSearches {
				t.Run(fmt.Sprintf("%d shards, %s", shards, s.name), func(t *testing.T) { checkAsked(t, e, contenders, s) })
			}
			checkNoFallback(t, contenders)
		}
	})
}

func checkAsked(t *testing.T, e *engine, contenders []contender, s asked) {
	t.Helper()
	direct, raw := e.ask(t, s.target(), s.body)
	want := slices.Sorted(slices.Values(append(direct.ids(), s.more...)))
	for _, c := range contenders {
		through, got := c.ask(t, s.target(), s.body)
		if ids := through.sorted(); !slices.Equal(ids, want) || through.Hits.Total.Value != len(want) {
			t.Errorf("%s: total %d, %q, want %q", c.name, through.Hits.Total.Value, ids, want)
			continue
		}
		if s.more == nil {
			same := comparison{}
			if same.answers(raw, got); len(same.problems) > 0 {
				t.Errorf("%s: the answer is not that of the engine: %q", c.name, same.problems)
			}
		}
		if s.check != nil {
			s.check(t, direct, through)
		}
	}
}

// TestSearchesGoToTheShardsThatTheyName searches with routing and preference.
func TestSearchesGoToTheShardsThatTheyName(t *testing.T) {
	matrix := semanticsMatrix(t)
	eachEngine(t, func(t *testing.T, e *engine) {
		contenders := serveSemantics(t, e, matrix, 3, nil)
		body := `{"size":200,"query":` + boat + `}`
		for _, c := range contenders {
			whole, _ := c.ask(t, semanticsPath, body)
			var parts []string
			for shard := range 3 {
				part, _ := c.ask(t, fmt.Sprintf("%s?preference=_shards:%d", semanticsPath, shard), body)
				parts = append(parts, part.ids()...)
			}
			if slices.Sort(parts); !slices.Equal(parts, whole.sorted()) || len(parts) != len(ships)+2 {
				t.Errorf("%s: shard by shard %q, together %q", c.name, parts, whole.sorted())
			}
			want, _ := e.ask(t, semanticsPath+"?routing=ship", body)
			routed, _ := c.ask(t, semanticsPath+"?routing=ship", body)
			if routed.Shards != want.Shards || routed.Shards.Total != 1 || !slices.Contains(routed.ids(), "ship") {
				t.Errorf("%s: routed to %+v, want %+v, found %q", c.name, routed.Shards, want.Shards, routed.ids())
			}
		}
	})
}

// TestTerminateAfterEndsTheRewrittenSearch stops after one document.
func TestTerminateAfterEndsTheRewrittenSearch(t *testing.T) {
	matrix := semanticsMatrix(t)
	eachEngine(t, func(t *testing.T, e *engine) {
		for _, c := range serveSemantics(t, e, matrix, 1, nil) {
			got, _ := c.ask(t, semanticsPath, `{"terminate_after":1,"track_total_hits":true,"query":`+boat+`}`)
			if !got.TerminatedEarly || got.Hits.Total.Value != 1 {
				t.Errorf("%s: terminated early: %t, %d hits", c.name, got.TerminatedEarly, got.Hits.Total.Value)
			}
		}
	})
}

// TestRelatedWordsAreHighlightedOnRequest looks at the marks where the
// configuration asks for those of related words.
func TestRelatedWordsAreHighlightedOnRequest(t *testing.T) {
	matrix := semanticsMatrix(t)
	want := map[string][]string{
		"boat-big": {"<em>boat</em> big"}, "car-red-big-boat": {"car red big <em>boat</em>"}, "ship": {"<em>ship</em>"},
		"huge-ship-swift": {"huge <em>ship</em> swift"}, "auto-crimson-huge-ship": {"auto crimson huge <em>ship</em>"},
	}
	eachEngine(t, func(t *testing.T, e *engine) {
		for _, c := range serveSemantics(t, e, matrix, 1, section{"highlight": "related"}) {
			for _, kind := range []string{"unified", "plain"} {
				got, _ := c.ask(t, semanticsPath, `{"query":`+boat+`,"highlight":{"type":"`+kind+`","fields":{"body":{}}}}`)
				if diff := cmp.Diff(want, highlights(got)); diff != "" {
					t.Errorf("%s, %s: highlights (-want +got):\n%s", c.name, kind, diff)
				}
			}
		}
	})
}

// TestAddedWordsAreNamedInHits compares names with the words of the documents,
// and the hits with those of searches without names.
func TestAddedWordsAreNamedInHits(t *testing.T) {
	matrix := semanticsMatrix(t)
	bodies := map[string][]string{}
	for _, d := range semanticsDocuments() {
		text, _ := d.fields["body"].(string)
		bodies[d.id] = strings.Fields(text)
	}
	const mine = `{"match":{"body":{"query":"big boat","_name":"mine"}}}`
	queries := map[string]string{
		"a search":      `{"size":200,"query":{"match":{"body":"car red"}}}`,
		"counted words": `{"size":200,"query":{"match":{"body":{"query":"car red","operator":"and"}}}}`,
		"own names":     `{"size":200,"query":{"bool":{"should":[` + mine + `,{"match":{"body":"car red"}}]}}}`,
		"nested":        `{"size":200,"query":{"nested":{"path":"parts","score_mode":"max","query":{"match":{"parts.text":"car red"}},"inner_hits":{}}}}`,
	}
	ordered := func(a answer) (hits []string) {
		for _, h := range a.Hits.Hits {
			hits = append(hits, fmt.Sprint(h.ID, " ", *h.Score))
		}
		return hits
	}
	eachEngine(t, func(t *testing.T, e *engine) {
		plain := serveSemantics(t, e, matrix, 1, nil)
		for i, c := range startContenders(t, e, matrix, section{"name_added": true}) {
			for name, body := range queries {
				without, _ := plain[i].ask(t, semanticsPath, body)
				with, _ := c.ask(t, semanticsPath, body)
				if diff := cmp.Diff(ordered(without), ordered(with)); diff != "" || len(with.Hits.Hits) == 0 {
					t.Errorf("%s, %s: hits (-without names +with names):\n%s", c.name, name, diff)
				}
				for _, h := range with.Hits.Hits {
					got, field, words := h.Named, "body", []string{"car", "red"}
					switch name {
					case "nested":
						got, field = h.InnerHits["parts"].Hits.Hits[0].Named, "parts.text"
					case "own names":
						words = []string{"car", "red", "big", "boat"}
					}
					var want []string
					for _, word := range words {
						if slices.Contains(bodies[h.ID], relatedTo[word]) {
							want = append(want, "akin:"+field+":"+relatedTo[word])
						}
					}
					if name == "own names" && (slices.Contains(bodies[h.ID], "big") || slices.Contains(bodies[h.ID], "boat")) {
						want = append(want, "mine")
					}
					slices.Sort(want)
					slices.Sort(got)
					if !slices.Equal(got, want) {
						t.Errorf("%s, %s: %s has the names %q, want %q", c.name, name, h.ID, got, want)
					}
				}
			}
		}
	})
}

// TestMisspelledWordsFindWhatTheRightOnesFind misspells words that documents
// have, in every form.
func TestMisspelledWordsFindWhatTheRightOnesFind(t *testing.T) {
	var rows []simmatrix.TermRow
	for word, related := range relatedTo {
		rows = append(rows, simmatrix.TermRow{Term: word, DocFreq: 5, Neighbors: []simmatrix.Neighbor{{Term: related, Similarity: 0.9, DocFreq: 5}}},
			simmatrix.TermRow{Term: related, DocFreq: 5})
	}
	m, err := simmatrix.New(simmatrix.Meta{Docs: 80}, rows)
	if err != nil {
		t.Fatal(err)
	}
	var encoded bytes.Buffer
	if err := simmatrix.Encode(&encoded, m); err != nil {
		t.Fatal(err)
	}
	matrix := writeFile(t, "words.akin", encoded.String())
	eachEngine(t, func(t *testing.T, e *engine) {
		for _, c := range serveSemantics(t, e, matrix, 1, nil) {
			for query, want := range map[string][]string{
				`{"match":{"body":"baot"}}`:                                     inBody("boat", 1, true),
				`{"match":{"body":"baot crimsson"}}`:                            inBody("boat crimson", 1, true),
				`{"match":{"body":{"query":"baot big","operator":"and"}}}`:      inBody("boat big", 2, true),
				`{"match":{"body":"bigboat"}}`:                                  inBody("boat big", 1, true),
				`{"match":{"body":{"query":"bigboat","operator":"and"}}}`:       {}, // a part of it is not all of it
				`{"match":{"body":{"query":"bigboat red","operator":"and"}}}`:   {},
				`{"match":{"body":{"query":"baot boat","operator":"and"}}}`:     {}, // the nearest word is in the text already
				`{"multi_match":{"query":"baot","fields":["body","subtitle"]}}`: inBody("boat", 1, true),
			} {
				if diff := cmp.Diff(want, c.found(t, query)); diff != "" {
					t.Errorf("%s: %s finds (-want +got):\n%s", c.name, query, diff)
				}
			}
		}
	})
}

// TestNormalizedScoresAllowMinScore expands a search with min_score and looks
// for scores that stay below what the original could reach.
func TestNormalizedScoresAllowMinScore(t *testing.T) {
	matrix := semanticsMatrix(t)
	eachEngine(t, func(t *testing.T, e *engine) {
		for _, c := range serveSemantics(t, e, matrix, 1, section{"normalize_score": true}) {
			got, _ := c.ask(t, semanticsPath, `{"size":50,"min_score":0.1,"query":`+boat+`}`)
			if got.Hits.Total.Value != len(got.Hits.Hits) || !slices.Contains(got.ids(), "ship") {
				t.Errorf("%s: total %d, %q", c.name, got.Hits.Total.Value, got.ids())
			}
			for _, h := range got.Hits.Hits {
				if *h.Score < 0.1 {
					t.Errorf("%s: %s has %v in spite of min_score", c.name, h.ID, *h.Score)
				}
			}
		}
	})
}

// TestRepliesWithRelatedWordsFindTheirQuestion searches parents by children.
func TestRepliesWithRelatedWordsFindTheirQuestion(t *testing.T) {
	const index = "akin-e2e-family"
	matrix := semanticsMatrix(t)
	eachEngine(t, func(t *testing.T, e *engine) {
		if !e.scripts {
			checkUnknownJoin(t, e)
			return
		}
		e.makeIndex(t, index, `{"settings":{"number_of_shards":1,"number_of_replicas":0},"mappings":{"properties":{
			"text":{"type":"text"},"relation":{"type":"join","relations":{"question":"reply"}}}}}`)
		for i, text := range []string{"boat", "ship", "car"} {
			e.must(t, http.MethodPut, fmt.Sprintf("/%s/_doc/q%d?routing=1", index, i), `{"relation":"question","text":"filler"}`)
			e.must(t, http.MethodPut, fmt.Sprintf("/%s/_doc/r%d?routing=1&refresh=true", index, i),
				fmt.Sprintf(`{"relation":{"name":"reply","parent":"q%d"},"text":%q}`, i, text))
		}
		for _, c := range startContenders(t, e, matrix, nil) {
			for _, mode := range []string{"max", "sum", "avg", "none"} {
				got, _ := c.ask(t, "/"+index+"/_search", `{"query":{"has_child":{"type":"reply","score_mode":"`+mode+`","query":{"match":{"text":"boat"}},"inner_hits":{}}}}`)
				want := []string{"q0", "q1"}
				if mode == "avg" { // one more match could lower the mean
					want = want[:1]
				}
				if ids := got.sorted(); !slices.Equal(ids, want) {
					t.Errorf("%s, score_mode %s: %q, want %q", c.name, mode, ids, want)
				}
				for _, h := range got.Hits.Hits {
					if inner := h.InnerHits["reply"].Hits.Hits; len(inner) != 1 || inner[0].ID[1:] != h.ID[1:] {
						t.Errorf("%s, score_mode %s: inner hits of %s: %v", c.name, mode, h.ID, inner)
					}
				}
			}
		}
	})
}

// checkUnknownJoin asks an engine without parents for one: through akin it
// answers as directly.
func checkUnknownJoin(t *testing.T, e *engine) {
	t.Helper()
	matrix := semanticsMatrix(t)
	const body = `{"query":{"has_child":{"type":"reply","query":{"match":{"body":"boat"}}}}}`
	for _, c := range serveSemantics(t, e, matrix, 1, nil) {
		wantStatus, want, errA := e.call(t.Context(), http.MethodPost, semanticsPath, body)
		status, got, errB := c.call(t.Context(), http.MethodPost, semanticsPath, body)
		if errA != nil || errB != nil || status != wantStatus || string(got) != string(want) {
			t.Errorf("%s: %d %s, want %d %s", c.name, status, got, wantStatus, want)
		}
	}
}
