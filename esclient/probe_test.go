package esclient

import (
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/e2e/clustertest"
	"github.com/akin-search/akin/esclient/mapping"
)

func TestProbesOfRecordedAnswers(t *testing.T) {
	for _, r := range clustertest.Engines(t, "testdata") {
		probe := func(answer string) *Client {
			return client(t, clustertest.New().Replay(t, "POST /i/_search", r, answer))
		}
		// The engines multiply by k1+1, k1 being 1.2 and for low 0.9, except
		// OpenSearch 3.
		for name, want := range map[string]float64{
			"explain": 2.2, "explain low": 1.9, "explain nested": 2.2, "explain nothing": 0, "explain other": 0,
		} {
			if strings.HasPrefix(r.Engine, "opensearch-3") {
				want = min(want, 1)
			}
			got, err := probe(name).about("i", "title").probeScale(t.Context(), &mapping.Schema{}, []string{"car"})
			check.That(t, err == nil && math.Abs(got-want) <= 1e-6, "%s, %s: scale %v, %v, want %v", r.Engine, name, got, err, want)
		}
		// The Elasticsearch 8 that was recorded has no painless.
		for name, want := range map[string]bool{"scripts": !strings.HasPrefix(r.Engine, "elasticsearch-8"), "scripts barred": false} {
			got, err := probe(name).probeScripts(t.Context(), at("i"))
			check.That(t, got == want && err == nil, "%s, %s: %v, %v, want %v", r.Engine, name, got, err, want)
		}
	}
	got, err := client(t, clustertest.New().Reply("POST /i/_search", http.StatusForbidden, "{}")).probeScripts(t.Context(), at("i"))
	check.That(t, !got && err == nil, "scripts that are forbidden: %v, %v", got, err)
}

func TestScaleOfAnExplanationThatIsNotUnderstood(t *testing.T) {
	const score = `{"description":"score(freq=1.0), computed as boost * idf * tf from:","details":[`
	const k1 = `{"description":"tf, computed as","details":[{"description":"k1, term saturation parameter","value":1.2}]}`
	tests := []struct {
		name, explanation string
		want              float64
		ok                bool
	}{
		{"k1+1", score + `{"description":"boost","value":2.2},` + k1 + `]}`, 2.2, true},
		{"no boost", score + k1 + `]}`, 1, true},
		{"a boost of 1 without k1", score + `{"description":"boost","value":1}]}`, 1, true},
		{"another boost", score + `{"description":"boost","value":3},` + k1 + `]}`, 0, false},
		{"a boost without k1", score + `{"description":"boost","value":2.2}]}`, 0, false},
		{"no boost that would be", score + `{"description":"boost","value":-1},` + k1 + `]}`, 0, false},
		{"another similarity", `{"description":"score(DFRSimilarity, freq=2.0), computed as boost * x","details":[]}`, 0, false},
		{"empty", `{}`, 0, false},
	}
	for _, test := range tests {
		var e ScoreExplanation
		check.OK(t, Decode([]byte(test.explanation), &e))
		got, ok := e.Scale()
		check.That(t, got == test.want && ok == test.ok, "%s: scale %v, %v, want %v, %v", test.name, got, ok, test.want, test.ok)
	}
}

func TestScaleProbeLooksForTermsThatAnIndexCanHold(t *testing.T) {
	f := clustertest.New()
	scale, err := client(t, f).about("i", "f").probeScale(t.Context(), &mapping.Schema{}, []string{strings.Repeat("x", maxTermBytes+1)})
	check.That(t, scale == 0 && err == nil && f.Asked("") == 0, "scale %v, %v, %d calls", scale, err, f.Asked(""))
}

func TestScaleByVersion(t *testing.T) {
	tests := []struct {
		info   Info
		legacy bool
		want   float64
	}{
		{Info{"elasticsearch", "7.10.2"}, false, 1.9},
		{Info{"elasticsearch", "9.5.3"}, false, 1.9},
		{Info{"opensearch", "1.3.0"}, false, 1.9},
		{Info{"opensearch", "2.19.1"}, false, 1.9},
		{Info{"opensearch", "3.8.0"}, false, 1},
		{Info{"opensearch", "3.8.0"}, true, 1.9},
		{Info{"opensearch", "10.0.0"}, false, 1},
		{Info{"opensearch", "next"}, false, 0},
	}
	for _, test := range tests {
		s := mapping.FieldScoring{K1: 0.9, Legacy: test.legacy}
		check.Equal(t, test.want, scaleOf(s, test.info), test)
	}
}

// aBlock is what engines answer about an index with index.blocks.read.
const aBlock = `{"error":{"root_cause":[{"type":"cluster_block_exception","reason":"index [i] blocked by: [FORBIDDEN/7/index read (api)];"}],` +
	`"type":"cluster_block_exception","reason":"index [i] blocked by: [FORBIDDEN/7/index read (api)];"},"status":403}`

func FuzzExplanation(f *testing.F) {
	for _, r := range clustertest.Engines(f, "testdata") {
		for name, a := range r.Answers {
			if strings.HasPrefix(name, "explain") {
				f.Add([]byte(a.Body))
			}
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var e ScoreExplanation
		if Decode(b, &e) != nil {
			return
		}
		scale, ok := e.Scale()
		check.That(t, (!ok || scale > 0) && (ok || scale == 0), "scale %v, %v", scale, ok)
	})
}
