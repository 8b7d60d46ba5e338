package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// serveControlled starts akin before e with two matrices that disagree and with
// profiles. Keys of expansion may be overridden.
func serveControlled(t *testing.T, e *engine, expansion section) *akin {
	t.Helper()
	options := section{"budget": widePatience, "templates": true, "default_fields": []string{"body"}}
	maps.Copy(options, expansion)
	a := startAkin(t, section{
		"cluster":   section{"urls": []string{e.url}},
		"expansion": options,
		"profiles": section{
			"other":    section{"matrices": []string{"second"}},
			"reorder":  section{"matching": "same"},
			"opt-out":  section{"enabled": false},
			"one-term": section{"max_added_terms": 1, "scoring": "linear"},
		},
		"matrices": []section{
			{"name": "first", "file": relatedFile(t, vectorsA)},
			{"name": "second", "file": relatedFile(t, vectorsB)},
		},
	})
	a.awaitMatrix(t, "first")
	a.awaitMatrix(t, "second")
	return a
}

// A searchRecord is what the admin port keeps of a search.
type searchRecord struct {
	ID, Endpoint, Index, Profile, Outcome, Reason, Sent string
	Rejected                                            bool
	AddedTerms                                          int `json:"added_terms"`
	Original, Rewritten                                 struct {
		RawQuery string `json:"raw_query"`
		Body     json.RawMessage
	}
	explanation
}

// recordOf reads the record that an answer names.
func (a *akin) recordOf(t *testing.T, answer rawResponse) searchRecord {
	t.Helper()
	id := answer.header.Get("X-Akin-Explanation")
	if id == "" {
		t.Fatalf("the answer names no record: %s %v", answer.status, answer.header)
	}
	var record searchRecord
	if err := json.Unmarshal(a.admin.must(t, http.MethodGet, "/_akin/explanations/"+id, ""), &record); err != nil {
		t.Fatal(err)
	}
	return record
}

// idsOf returns the ids of the hits of an answer, best first.
func idsOf(t *testing.T, answer rawResponse) []string {
	t.Helper()
	var hits hitList
	if err := json.Unmarshal([]byte(answer.body), &hits); err != nil || answer.status != "200 OK" {
		t.Fatalf("%v: %s %s", err, answer.status, answer.body)
	}
	return hits.ids()
}

// carSearch is a search for "car", with what asks for something of akin in the
// query string and in header lines.
func carSearch(query string, header ...string) rawRequest {
	return rawRequest{method: http.MethodPost, target: relatedPath + query, header: append([]string{jsonType}, header...), body: relatedSearch("car")}
}

// controlledRequests are a search by every endpoint that akin rewrites. %s is
// where parameters go.
func controlledRequests() map[string]rawRequest {
	const query = `{"query":{"match":{"body":"car"}}}`
	post := func(target, body string) rawRequest {
		return rawRequest{method: http.MethodPost, target: target, header: []string{jsonType}, body: body}
	}
	lines := func(target, body string) rawRequest {
		return rawRequest{method: http.MethodPost, target: target, header: []string{"Content-Type: application/x-ndjson"}, body: body}
	}
	index := "/" + relatedIndex
	return map[string]rawRequest{
		"search":   post(index+"/_search?size=100&%s", query),
		"q":        {method: http.MethodGet, target: index + "/_search?%s&q=car"},
		"scroll":   post(index+"/_search?%s&scroll=1m", query),
		"count":    post(index+"/_count?%s", query),
		"validate": post(index+"/_validate/query?explain=true&%s", query),
		"explain":  post(index+"/_explain/car?%s", query),
		"msearch":  lines(index+"/_msearch?%s", "{}\n"+query+"\n{}\n"+`{"query":{"match_all":{}}}`+"\n"),
		"rank_eval": post(index+"/_rank_eval?%s", `{"requests":[{"id":"a","request":`+query+
			`,"ratings":[{"_index":"`+relatedIndex+`","_id":"car","rating":1}]}],"metric":{"precision":{"k":3}}}`),
		"template":         post(index+"/_search/template?%s", `{"source":"{\"query\":{\"match\":{\"body\":\"{{w}}\"}}}","params":{"w":"car"}}`),
		"msearch template": lines(index+"/_msearch/template?%s", "{}\n"+`{"source":"{\"query\":{\"match\":{\"body\":\"{{w}}\"}}}","params":{"w":"car"}}`+"\n"),
		"async":            post(index+"/_async_search?%s", query),
	}
}

// with returns r with the parameters and header lines.
func (r rawRequest) with(parameters string, header ...string) rawRequest {
	r.target = strings.Replace(strings.Replace(r.target, "%s&", parameters+"&", 1), "%s", parameters, 1)
	r.header = append(slices.Clone(r.header), header...)
	return r
}

// TestAkinIsSwitchedOffOnEveryEndpoint compares answers through akin with the
// direct ones: the engines refuse parameters that they do not know, so that none
// of akin's can have come through.
func TestAkinIsSwitchedOffOnEveryEndpoint(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engine) {
		makeRelated(t, e)
		a := serveControlled(t, e, nil)
		for name, r := range controlledRequests() {
			want := exchange(t, e.url, r.with("pretty=false")).stable(t)
			for _, ways := range [][]string{
				{"pretty=false", "X-Akin: off"},
				{"pretty=false&akin=OFF"},
				{"pretty=false&akin_profile=opt-out"},
				{"pretty=false&akin_profile=unknown&akin=nonsense"},
				{"akin=off&pretty=false", "X-Akin: explain,off", "X-Akin-Profile: other"},
			} {
				before := a.metric(t, requestsMetric, `outcome="unchanged"`)
				got := exchange(t, a.url, r.with(ways[0], ways[1:]...))
				got.header.Del("X-Akin-Explanation") // where explain was asked for
				if got := got.stable(t); got != want {
					t.Errorf("%s with %v:\n%s\ndirectly:\n%s", name, ways, got, want)
				}
				if n := a.metric(t, requestsMetric, `outcome="unchanged"`) - before; n != 1 {
					t.Errorf("%s with %v: %v searches are counted as not rewritten", name, ways, n)
				}
			}
		}
	})
}

// TestParametersOfAkinWorkOnEveryEndpoint asks for an explanation by every
// endpoint that the engine has.
func TestParametersOfAkinWorkOnEveryEndpoint(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engine) {
		makeRelated(t, e)
		a := serveControlled(t, e, nil)
		tried := 0
		for name, r := range controlledRequests() {
			direct := exchange(t, e.url, r.with("pretty=false"))
			if direct.status != "200 OK" {
				continue // the engine has no such endpoint
			}
			tried++
			t.Run(name, func(t *testing.T) {
				got := exchange(t, a.url, r.with("akin=explain&pretty=false&akin_profile=one-term", "X-Akin: dry-run"))
				record := a.recordOf(t, got)
				if got.header.Del("X-Akin-Explanation"); got.stable(t) != direct.stable(t) {
					t.Errorf("a dry run answers\n%s\ndirectly:\n%s", got.stable(t), direct.stable(t))
				}
				if record.Outcome != "rewritten" || record.Sent != "original" || record.Profile != "one-term" || record.AddedTerms != 1 {
					t.Errorf("the record of a dry run: %+v", record)
				}
				got = exchange(t, a.url, r.with("akin=explain&pretty=false"))
				record = a.recordOf(t, got)
				if got.status != "200 OK" || record.Outcome != "rewritten" || record.Sent != "rewritten" || record.AddedTerms == 0 {
					t.Errorf("%s; the record: %+v", got.status, record)
				}
			})
		}
		if tried < 6 {
			t.Errorf("%d endpoints of %s were tried", tried, e.name)
		}
	})
}

func TestProfilesRewriteDifferently(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engine) {
		makeRelated(t, e)
		a := serveControlled(t, e, nil)
		direct := sortedIDs(e.searchRelated(t, relatedSearch("car")))
		for _, tt := range []struct {
			name, query string
			header      []string
			more        []string // found beyond what the direct search finds
			matrix      string
		}{
			{"none", "", nil, []string{"automobile"}, "first@"},
			{"another matrix", "?akin_profile=other", nil, []string{"lorry"}, "second@"},
			{"another matrix, by header", "", []string{"X-Akin-Profile: other"}, []string{"lorry"}, "second@"},
			{"the same hits", "?akin_profile=reorder", nil, nil, "first@"},
			{"parameter before header", "?akin_profile=reorder", []string{"X-Akin-Profile: other"}, nil, "first@"},
			{"switched off", "?akin_profile=opt-out", nil, nil, ""},
			{"unknown", "?akin_profile=Other", nil, nil, ""},
		} {
			t.Run(tt.name, func(t *testing.T) {
				query := strings.TrimPrefix(tt.query+"&akin=explain", "&")
				answer := exchange(t, a.url, carSearch("?"+strings.TrimPrefix(query, "?"), tt.header...))
				got := idsOf(t, answer)
				slices.Sort(got)
				want := slices.Sorted(slices.Values(append(slices.Clone(direct), tt.more...)))
				if !slices.Equal(got, want) {
					t.Errorf("found %v, want %v", got, want)
				}
				record := a.recordOf(t, answer)
				if tt.matrix == "" {
					if record.Outcome != "unchanged" || len(record.Clauses) > 0 {
						t.Errorf("the record: %+v", record)
					}
				} else if len(record.Clauses) != 1 || !strings.HasPrefix(record.Clauses[0].Matrix, tt.matrix) {
					t.Errorf("the record: %+v, want matrix %s", record, tt.matrix)
				}
			})
		}
		if n := a.metric(t, requestsMetric, `reason="unknown_profile"`); n != 1 {
			t.Errorf("%v searches with an unknown profile are counted:\n%s", n, requestMetrics(t, a))
		}
		shown := a.admin.must(t, http.MethodPost, "/_akin/expand/"+relatedIndex+"?akin_profile=other", relatedSearch("car"))
		if !strings.Contains(string(shown), `"lorry"`) || strings.Contains(string(shown), `"automobile"`) {
			t.Errorf("/_akin/expand with a profile shows %s", shown)
		}
	})
}

func TestExplanationOfASearch(t *testing.T) {
	e := oneEngine(t)
	makeRelated(t, e)
	a := serveControlled(t, e, nil)
	direct := e.searchRelated(t, relatedSearch("car")).ids()

	dry := exchange(t, a.url, carSearch("?akin=dry-run"))
	if got := idsOf(t, dry); !slices.Equal(got, direct) {
		t.Errorf("a dry run finds %v, the direct search %v", got, direct)
	}
	if r := a.recordOf(t, dry); r.Outcome != "rewritten" || r.Sent != "original" {
		t.Errorf("the record of a dry run: %+v", r)
	}
	answer := exchange(t, a.url, carSearch("?typed_keys", "X-Akin: explain"))
	if strings.Contains(answer.body, "akin_") || !slices.Contains(idsOf(t, answer), "automobile") {
		t.Errorf("an explained search answers %s", answer.body)
	}
	r := a.recordOf(t, answer)
	if r.Endpoint != "search" || r.Index != relatedIndex || r.Sent != "rewritten" || r.AddedTerms != 1 ||
		r.Original.RawQuery != "typed_keys" || string(r.Original.Body) != relatedSearch("car") || !strings.Contains(string(r.Rewritten.Body), "automobile") {
		t.Errorf("the record: %+v", r)
	}
	c := r.Clauses[0]
	if c.Path != "query.match" || c.Field != "body" || c.Form == "" || !slices.Equal(c.Terms, []string{"car"}) ||
		len(c.Added) != 1 || c.Added[0].Term != "automobile" || c.Added[0].From != "car" || c.Added[0].Boost <= 0 {
		t.Errorf("the clause: %+v", c)
	}

	plain := exchange(t, a.url, carSearch(""))
	if plain.header.Get("X-Akin-Explanation") != "" {
		t.Error("a search that did not ask has the header")
	}
	var list struct{ Explanations []searchRecord }
	if err := json.Unmarshal(a.admin.must(t, http.MethodGet, "/_akin/explanations?limit=2", ""), &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Explanations) != 2 || list.Explanations[1].ID != r.ID || list.Explanations[0].Outcome != "rewritten" {
		t.Errorf("the list: %+v", list)
	}
	status, missing, err := a.admin.call(t.Context(), http.MethodGet, "/_akin/explanations/none", "")
	if err != nil || status != http.StatusNotFound || !strings.Contains(string(missing), `"root_cause"`) {
		t.Errorf("an unknown id: %d %s, %v", status, missing, err)
	}
}

// TestShadowModeAnswersWithTheOriginal sends searches whose expansion finds one
// document more, at another place, and looks at what the metrics say.
func TestShadowModeAnswersWithTheOriginal(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engine) {
		makeRelated(t, e)
		a := serveControlled(t, e, section{"shadow": 1})
		const searches = 5
		for i := range searches {
			r := carSearch(fmt.Sprintf("?batched_reduce_size=%d", 10+i))
			want := exchange(t, e.url, r).stable(t)
			if got := exchange(t, a.url, r).stable(t); got != want {
				t.Errorf("the answer in shadow mode:\n%s\ndirectly:\n%s", got, want)
			}
		}
		waitFor(t, 20*time.Second, "the shadows", func() error {
			if n := a.metric(t, "akin_shadow_searches_total", `outcome="compared"`); n != searches {
				return fmt.Errorf("%v are compared", n)
			}
			return nil
		})
		for _, tt := range []struct {
			metric, labels string
			want           float64
		}{
			{"akin_shadow_overlap_at_10_count", "", searches},
			{"akin_shadow_overlap_at_10_sum", "", searches * 0.75}, // three of four
			{"akin_shadow_hits_total", `search="original"`, searches * 3},
			{"akin_shadow_hits_total", `search="expanded"`, searches * 4},
			{"akin_shadow_duration_seconds_count", `search="original"`, searches},
			{"akin_shadow_duration_seconds_count", `search="expanded"`, searches},
			{"akin_shadow_searches_total", "", searches},
			{requestsMetric, `reason="shadow"`, searches},
		} {
			if got := a.metric(t, tt.metric, tt.labels); got != tt.want {
				t.Errorf("%s{%s} = %v, want %v", tt.metric, tt.labels, got, tt.want)
			}
		}
		scroll := controlledRequests()["scroll"].with("pretty=false")
		if got, want := exchange(t, a.url, scroll).stable(t), exchange(t, e.url, scroll).stable(t); got != want {
			t.Errorf("a scroll in shadow mode answers\n%s\ndirectly:\n%s", got, want)
		}
		if n := a.metric(t, "akin_shadow_searches_total"); n != searches {
			t.Errorf("a scroll has a shadow: %v", n)
		}
	})
}

// TestRefusedSearchIsNotedInItsRecord sends a search with a mistake of the
// client's own, which the engine refuses rewritten and then as it came.
func TestRefusedSearchIsNotedInItsRecord(t *testing.T) {
	e := oneEngine(t)
	makeRelated(t, e)
	a := serveControlled(t, e, nil)
	r := carSearch("?akin=explain")
	r.body = `{"query":{"match":{"body":"car"}},"size":-7}`
	answer := exchange(t, a.url, r)
	if !strings.HasPrefix(answer.status, "400") {
		t.Fatalf("status %s", answer.status)
	}
	if record := a.recordOf(t, answer); !record.Rejected || record.Sent != "original" {
		t.Errorf("the record: %+v", record)
	}
}
