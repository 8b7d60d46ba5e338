package requests

import (
	"bytes"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
)

// The indices that the files search.
const (
	Shop    = "akin-e2e-shop"    // one shard
	Depot   = "akin-e2e-depot"   // two shards
	Archive = "akin-e2e-archive" // title is no text, and body is analyzed in another way
	// Measured has weights and norms for the modes hard and soft.
	Measured = "akin-e2e-measured"
)

// A section is a part of akin's configuration.
type section = map[string]any

// profiles are what a file can name in "# profile".
var profiles = section{
	"grouped":           section{"scoring": "grouped"},
	"saturated":         section{"scoring": "saturated"},
	"rescore":           section{"scoring": "saturated", "phase": "rescore"},
	"auto":              section{"scoring": "auto", "phase": "auto"},
	"matching_auto":     section{"matching": "auto", "scoring": "auto", "phase": "auto"},
	"same":              section{"matching": "same"},
	"same-saturated":    section{"matching": "same", "scoring": "saturated"},
	"same-grouped":      section{"matching": "same", "scoring": "grouped"},
	"related":           section{"highlight": "related"},
	"related-saturated": section{"highlight": "related", "scoring": "saturated"},
	"named":             section{"name_added": true},
	"named-grouped":     section{"name_added": true, "scoring": "grouped"},
	"named-saturated":   section{"name_added": true, "scoring": "saturated", "phase": "query"},
	"named-rescore":     section{"name_added": true, "scoring": "saturated", "phase": "rescore"},
	"named-hard":        section{"name_added": true, "mode": "hard"},
	"normalized":        section{"normalize_score": true},
	"exact":             section{"fit": false, "strength": 5},
	"exact-grouped":     section{"fit": false, "scoring": "grouped"},
	"exact-saturated":   section{"fit": false, "scoring": "saturated"},
	"phrases":           section{"phrases": true},
	"like":              section{"more_like_this": true},
	"like_auto":         section{"more_like_this": true, "matching": "auto"},
	"filters":           section{"filters": true},
	"rescorers":         section{"rescore_queries": true},
	"few":               section{"max_added_terms": 3},
	"short":             section{"max_query_terms": 2},
	"disabled":          section{"enabled": false},
	"hard":              section{"mode": "hard"},
	"soft":              section{"mode": "soft", "soft_weight": 1},
	"segments":          section{"segments": []section{{"field": "body", "path": "parts", "text": "parts.name"}}},
	"segments-replace":  section{"segments": []section{{"field": "body", "path": "parts", "text": "parts.name", "combine": "replace"}}},
	"segments-first": section{"segments": []section{{
		"field": "body", "path": "parts", "text": "parts.name", "position": "parts.size", "aggregate": "first-heavy", "inner_hits": 1,
	}}},
	"segments-saturated": section{
		"segments": []section{{"field": "body", "path": "parts", "text": "parts.name", "aggregate": "avg"}}, "scoring": "saturated", "highlight": "related",
	},
	// Of one hit, so that the digits of scores do not matter.
	"feedback":      section{"feedback": section{"documents": 1, "terms": 3}, "max_doc_share": 0.5},
	"same-feedback": section{"feedback": section{"documents": 1, "terms": 3}, "max_doc_share": 0.5, "matching": "same"},
}

// Config returns the configuration of the akin that the files are sent through:
// to the cluster at url, with the matrix of the fixture and the weights of
// [Measured] in files.
func Config(url, matrix, weights string) map[string]any {
	return section{
		"cluster": section{"urls": []string{url}},
		"expansion": section{
			"budget": "10s", "mode": "bm25", "rerank_warm_up": false, "matching": "widen", "scoring": "linear", "phase": "query", "default_fields": []string{"body"}, "templates": true,
		},
		"profiles": profiles,
		"matrices": []section{{"name": "main", "file": matrix, "fields": []string{
			"title", "body", "english", "note", "label", "cjk", "flag", "heading", "tags", "price", "parts.name", "synonyms", "grams", "review", "title.raw", "ghost",
		}}},
		"weights": []section{{"name": "weights", "file": weights, "indices": []string{Measured}}},
	}
}

// Mark is the X-Opaque-Id of the requests that [Arrivals] notes. akin's own
// questions to the cluster do not have it.
const Mark = "akin-e2e-corpus"

// An Arrived is a request as it arrived at the cluster.
type Arrived struct{ Method, Target, Body string }

// Arrivals are the marked requests that arrived at a cluster.
type Arrivals struct {
	mu   sync.Mutex
	seen []Arrived
}

// Take returns the requests since the last call.
func (a *Arrivals) Take() []Arrived {
	a.mu.Lock()
	defer a.mu.Unlock()
	seen := a.seen
	a.seen = nil
	return seen
}

// Before returns a handler that notes the marked requests and hands them to
// searches; akin's questions it hands to questions.
func (a *Arrivals) Before(searches, questions http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, in *http.Request) {
		// akin renders templates, and asks for the first hits, in the client's name.
		asks := strings.HasSuffix(in.URL.Path, "/_render/template") || strings.Contains(in.URL.RawQuery, "hits.hits._primary_term")
		if in.Header.Get("X-Opaque-Id") != Mark || asks {
			questions.ServeHTTP(w, in)
			return
		}
		body := takeBody(in)
		a.mu.Lock()
		a.seen = append(a.seen, Arrived{in.Method, in.URL.RequestURI(), string(body)})
		a.mu.Unlock()
		searches.ServeHTTP(w, in)
	})
}

// takeBody returns the body of a request, and puts it back.
func takeBody(r *http.Request) []byte {
	body, _ := io.ReadAll(r.Body) // what is cut off is not what is expected
	r.Body = http.NoBody
	if len(body) > 0 {
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	return body
}

// An Outcome is what akin counts a request as.
type Outcome struct{ Outcome, Reason string }

// Rewritten reports whether anything was added to the request.
func (o Outcome) Rewritten() bool { return o.Outcome == "rewritten" }

// Counters are the values of akin's counters of requests by their labels, as
// /metrics has them.
func Counters(metrics string) map[string]string {
	counters := map[string]string{}
	for line := range strings.Lines(metrics) {
		if rest, ok := strings.CutPrefix(line, "akin_requests_total{"); ok {
			labels, n, _ := strings.Cut(rest, "} ")
			counters[labels] = n
		}
	}
	return counters
}

var outcomeLabels = regexp.MustCompile(`outcome="([^"]*)",reason="([^"]*)"`)

// OutcomeOf returns the labels of the counter that differs: "rewritten" where a
// part of several searches failed as well.
func OutcomeOf(before, after map[string]string) (o Outcome) {
	for labels, n := range after {
		if before[labels] == n {
			continue
		}
		if m := outcomeLabels.FindStringSubmatch(labels); m != nil && n != "0\n" && !o.Rewritten() {
			o = Outcome{m[1], m[2]}
		}
	}
	return o
}
