package e2e

import (
	"encoding/json"
	"strings"
	"testing"
)

// A rewritten search that fails on the shards of one index of two, and whose
// answer would not show that, is answered by the original.
func TestSearchWhoseAnswerHidesFailuresIsAnsweredByTheOriginal(t *testing.T) {
	const (
		narrowed = "/" + relatedIndex + "," + narrowIndex
		hits     = "filter_path=hits.hits._id"
		count    = `{"query":{"match":{"body":"car"}}}`
	)
	post := func(target, body string, header ...string) rawRequest {
		return rawRequest{method: "POST", target: narrowed + target, header: append(header, jsonType), body: body}
	}
	tests := map[string]struct {
		rawRequest

		refused float64
	}{
		"filtered":        {post("/_search?"+hits, relatedSearch("car")), 1},
		"excluded":        {post("/_search?filter_path=-took,-**._source", relatedSearch("car")), 1},
		"YAML":            {post("/_search?format=yaml&"+hits, relatedSearch("car")), 1},
		"CBOR":            {post("/_search?"+hits, relatedSearch("car"), "Accept: application/cbor"), 1},
		"SMILE":           {post("/_search?format=smile&"+hits, relatedSearch("car")), 1},
		"deflate":         {post("/_search?filter_path=-took", relatedSearch("car"), "Accept-Encoding: deflate"), 1},
		"failures wanted": {post("/_search?"+hits+"&allow_partial_search_results=true", relatedSearch("car")), 0},
		"a count":         {post("/_count?format=yaml", count), 0},
	}
	eachEngine(t, func(t *testing.T, e *engine) {
		if !e.scripts {
			return // nothing is rescored without
		}
		makeNarrow(t, e, `"index.max_rescore_window":10`)
		for name, tt := range tests {
			t.Run(name, func(t *testing.T) {
				// What was learned of the limit would keep the next one whole.
				a := serveRelated(t, e, relatedFile(t, vectorsA), nil)
				direct, through := both(t, e, a, tt.rawRequest)
				if tt.refused > 0 && (through.status != "200 OK" || through.body != direct.body) {
					t.Errorf("directly %q\nthrough akin %q", direct.body, through.body)
				}
				if n := a.metric(t, "akin_rejected_searches_total", `original="accepted"`); n != tt.refused {
					t.Errorf("%v refusals are counted, want %v", n, tt.refused)
				}
				if n := a.metric(t, requestsMetric, rewrittenOutcome); n != 1 {
					t.Errorf("%v searches are rewritten:\n%s", n, requestMetrics(t, a))
				}
			})
		}
	})
}

// Where no shard fails, the formats are those that the client asks for, of the
// rewritten search.
func TestRewrittenSearchIsAnsweredInTheFormatOfTheClient(t *testing.T) {
	post := func(endpoint, contentType, body string, header ...string) rawRequest {
		return rawRequest{method: "POST", target: "/" + relatedIndex + endpoint, header: append(header, contentType), body: body}
	}
	lines := "{}\n" + relatedSearch("car") + "\n"
	eachEngine(t, func(t *testing.T, e *engine) {
		makeRelated(t, e)
		a := serveRelated(t, e, relatedFile(t, vectorsA), nil)
		for name, tt := range map[string]struct {
			rawRequest

			contains  string // besides the format of the direct answer
			rewritten bool
		}{
			"YAML":              {post("/_search?format=yaml&filter_path=hits.hits._id", jsonType, relatedSearch("car")), `_id: "automobile"`, true},
			"CBOR":              {post("/_search", jsonType, relatedSearch("car"), "Accept: application/cbor"), "automobile", true},
			"filtered":          {post("/_search?filter_path=hits.hits._id", jsonType, relatedSearch("car")), `{"_id":"automobile"}`, true},
			"deflate":           {post("/_search", jsonType, relatedSearch("car"), "Accept-Encoding: deflate"), `"_id":"automobile"`, true},
			"several":           {post("/_msearch", ndjsonType, lines, "Accept-Encoding: deflate, identity"), `"_id":"automobile"`, true},
			"several in YAML":   {post("/_msearch?format=yaml", ndjsonType, lines), "responses:", false},
			"a count in YAML":   {post("/_count?format=yaml", jsonType, `{"query":{"match":{"body":"car"}}}`), "count: 4", true},
			"validated as YAML": {post("/_validate/query", jsonType, `{"query":{"match":{"body":"car"}}}`, "Accept: application/yaml"), "valid: true", false},
		} {
			t.Run(name, func(t *testing.T) {
				direct := exchange(t, e.url, tt.rawRequest)
				var through rawResponse
				if rewritten := a.rewrites(t, func() { through = exchange(t, a.url, tt.rawRequest) }); rewritten != tt.rewritten {
					t.Errorf("rewritten: %v\n%s", rewritten, requestMetrics(t, a))
				}
				if want, got := direct.header.Get("Content-Type"), through.header.Get("Content-Type"); got != want {
					t.Errorf("the type is %q, want %q", got, want)
				}
				if through.status != "200 OK" || !strings.Contains(through.body, tt.contains) {
					t.Errorf("%s %q does not contain %q", through.status, through.body, tt.contains)
				}
			})
		}
		if n := a.metric(t, requestsMetric, `reason="answer_format"`); n != 2 {
			t.Errorf("%v are not rewritten because of their format, want 2", n)
		}
		if n := a.metric(t, "akin_rejected_searches_total"); n != 0 {
			t.Errorf("%v refusals are counted, want none", n)
		}
	})
}

// A search that is to be shown may come packed, as clients send it.
func TestAdminPortShowsPackedSearches(t *testing.T) {
	e := oneEngine(t)
	makeRelated(t, e)
	a := serveRelated(t, e, relatedFile(t, vectorsA), nil)
	r := rawRequest{method: "POST", target: "/_akin/expand/" + relatedIndex, header: []string{jsonType, "Content-Encoding: gzip"}, body: gzipped(t, relatedSearch("car"))}
	answer := exchange(t, a.admin.url, r)
	var shown struct{ Rewritten bool }
	if err := json.Unmarshal([]byte(answer.body), &shown); err != nil || !shown.Rewritten {
		t.Errorf("%v: %s", err, answer.body)
	}
}
