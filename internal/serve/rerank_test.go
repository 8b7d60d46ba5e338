package serve

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/expand/soft"
)

func TestHitsAreScoredByTheTermsOfTheCluster(t *testing.T) {
	const (
		named = `/i/_search {"_source":false,"query":{"terms":{"_seq_no":[1,7]}},"seq_no_primary_term":true,"size":2,"track_total_hits":false,"version":true}`
		terms = `/_mtermvectors {"docs":[{"_index":"i","_id":"1","routing":"r","fields":["body"]},{"_index":"i","_id":"2","fields":["body"]}]}`
	)
	for _, tt := range []struct {
		name  string
		hits  []expand.Hit
		asked []string
	}{
		{"with ids", []expand.Hit{{Index: "i", ID: "1", Routing: "r", SeqNo: 1, PrimaryTerm: 1, Version: 4}, {Index: "i", ID: "2", Version: 1}}, []string{terms}},
		{"by number", []expand.Hit{{Index: "i", SeqNo: 1}, {Index: "i", SeqNo: 7}}, []string{named, terms}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var asked []string
			client := clientOf(t, startNode(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/i/_settings" {
					_, _ = io.WriteString(w, `{"i":{"settings":{"index":{"uuid":"u"}}}}`)
					return
				}
				body, _ := io.ReadAll(r.Body)
				asked = append(asked, r.URL.Path+" "+string(body))
				if r.URL.Path == "/i/_search" { // in another order than asked for
					_, _ = io.WriteString(w, `{"hits":{"hits":[{"_index":"i","_id":"2","_version":1,"_seq_no":7,"_primary_term":1},`+
						`{"_index":"i","_id":"1","_routing":"r","_version":4,"_seq_no":1,"_primary_term":1}]}}`)
					return
				}
				_, _ = io.WriteString(w, `{"docs":[
					{"_index":"i","_id":"1","found":true,"_version":4,"term_vectors":{"body":{"field_statistics":{"doc_count":4,"sum_ttf":10},"terms":{"car":{"term_freq":3}}}}},
					{"_index":"i","_id":"2","found":true,"_version":1,"term_vectors":{"body":{"field_statistics":{"doc_count":4,"sum_ttf":10},"terms":{"car":{"term_freq":1},"boat":{"term_freq":1}}}}}]}`)
			})))
			r := soft.New(soft.Options{Vectors: termVectors{documents.API{Client: client}}, Bytes: 1 << 20})
			defer r.Close()
			by := &expand.Rerank{
				Fields: []expand.RerankField{{Field: "body", Boost: 1, Terms: []string{"car"}, Freqs: []float64{1}, Similarities: oneRow{}}},
				Sums:   []expand.Sum{{Fields: []expand.SumField{{Boost: 1, Words: []expand.SumWord{{Weight: 2, Terms: []string{"car"}, Boosts: []float64{1}}}}}}},
			}
			for _, by.Fields[0].Weights = range []expand.Weights{nil, oneRow{}} {
				scores := check.Got(r.Scores(t.Context(), by, tt.hits))(t)
				// The mean length is 2.5 words: 2·3/(3+1.2(0.25+0.75·3/2.5)) and 2·1/(1+1.2(0.25+0.75·2/2.5)).
				want := []expand.HitScore{{ID: "1", Sum: 6 / 4.38, Soft: 1}, {ID: "2", Sum: 2 / 2.02, Soft: math.Sqrt(0.5)}}
				check.Equal(t, want, scores, cmpopts.EquateApprox(0, 1e-6))
			}
			if diff := cmp.Diff(tt.asked, asked); diff != "" { // once: the second search remembers
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestVectorsOfTheCluster(t *testing.T) {
	answer := ""
	client := clientOf(t, startNode(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/i/_settings":
			_, _ = io.WriteString(w, `{"i":{"settings":{"index":{"uuid":"ui"}}}}`)
		case "/i,j/_settings":
			_, _ = io.WriteString(w, `{"j":{"settings":{"index":{"uuid":"uj"}}},"i":{"settings":{"index":{"uuid":"ui"}}}}`)
		case "/i", "/i/_mapping":
			_, _ = io.WriteString(w, `{"i":{"mappings":{"properties":{"body":{"type":"text","copy_to":"all"},"all":{"type":"text"}}},"settings":{}}}`)
		default:
			_, _ = io.WriteString(w, answer)
		}
	})))
	v := termVectors{documents.API{Client: client}}
	ids := make([]string, 2)
	err := v.UUIDs(t.Context(), []string{"i", "j"}, ids)
	check.That(t, err == nil && ids[0] == "ui" && ids[1] == "uj", "%q, %v", ids, err)
	for field, want := range map[string]bool{"body": true, "all": false} {
		got, err := v.Readable(t.Context(), "i", field)
		check.That(t, got == want && err == nil, "%s: %v, %v", field, got, err)
	}
	r := soft.New(soft.Options{Vectors: v, TTL: time.Minute})
	defer r.Close()
	hit := expand.Hit{Index: "i", ID: "1"}
	scores := func() error {
		by := &expand.Rerank{Fields: []expand.RerankField{{Field: "body", Boost: 1, Terms: []string{"car"}, Freqs: []float64{1}, Similarities: oneRow{}}}}
		_, err := r.Scores(t.Context(), by, []expand.Hit{hit})
		return err
	}
	answer = `{"docs":[{"_index":"i","_id":"1","error":{"type":"index_not_found_exception"}}]}`
	err = scores()
	check.That(t, cause(err) == "unknown_to_cluster", "an index that is gone: %v", err)
	answer = `{"docs":[` + strings.Repeat(" ", 33<<20) + `]}`
	check.Error(t, soft.ErrTooLarge, scores(), "a large answer")
	hit = expand.Hit{Index: "i", SeqNo: 3}
	answer = `{"hits":{"hits":[]}}`
	err = scores()
	check.That(t, cause(err) == "missing", "a number that no document has any more: %v", err)
}

// A request line has its bounds.
func TestManyIndicesAreAskedForInParts(t *testing.T) {
	var longest, asked int
	client := clientOf(t, startNode(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		longest, asked = max(longest, len(r.RequestURI)), asked+1
		answer := map[string]any{}
		for name := range strings.SplitSeq(strings.Trim(strings.TrimSuffix(r.URL.Path, "_settings"), "/"), ",") {
			answer[name] = map[string]any{"settings": map[string]any{"index": map[string]any{"uuid": "of " + name}}}
		}
		_ = json.NewEncoder(w).Encode(answer)
	})))
	names := make([]string, 100)
	for i := range names {
		names[i] = fmt.Sprintf("%03d%s", i, strings.Repeat("ü", 20))
	}
	ids := make([]string, len(names))
	check.OK(t, (termVectors{documents.API{Client: client}}).UUIDs(t.Context(), names, ids))
	for i := range names {
		check.That(t, ids[i] == "of "+names[i], "%s has %q", names[i], ids[i])
	}
	check.That(t, longest <= 3500 && asked >= 2 && asked <= 10, "%d requests, the longest of %d bytes", asked, longest)
}
