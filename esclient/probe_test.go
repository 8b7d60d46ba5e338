package esclient

import (
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/clustertest"
	"github.com/akin-search/akin/esclient/mapping"
)

func TestScaleOfRecordedExplanations(t *testing.T) {
	for _, r := range clustertest.Engines(t, "testdata") {
		t.Run(r.Engine, func(t *testing.T) {
			// The engines multiply by k1+1, k1 being 1.2 and for low 0.9, except
			// OpenSearch 3.
			tests := map[string]float64{
				"explain": 2.2, "explain low": 1.9, "explain nested": 2.2, "explain nothing": 0, "explain other": 0,
			}
			for name, want := range tests {
				if strings.HasPrefix(r.Engine, "opensearch-3") {
					want = min(want, 1)
				}
				c := client(t, clustertest.New().Replay(t, "POST /i/_search", r, name))
				got, err := c.about("i", "title").probeScale(t.Context(), &mapping.Schema{}, []string{"car"})
				if err != nil || math.Abs(got-want) > 1e-6 {
					t.Errorf("%s: scale %v, %v, want %v", name, got, err, want)
				}
			}
		})
	}
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
		t.Run(test.name, func(t *testing.T) {
			var e ScoreExplanation
			if err := Decode([]byte(test.explanation), &e); err != nil {
				t.Fatal(err)
			}
			if got, ok := e.Scale(); got != test.want || ok != test.ok {
				t.Errorf("scale %v, %v, want %v, %v", got, ok, test.want, test.ok)
			}
		})
	}
}

func TestScaleProbeLooksForTermsThatAnIndexCanHold(t *testing.T) {
	f := clustertest.New()
	scale, err := client(t, f).about("i", "f").probeScale(t.Context(), &mapping.Schema{}, []string{strings.Repeat("x", maxTermBytes+1)})
	if scale != 0 || err != nil || f.Asked("") != 0 {
		t.Errorf("scale %v, %v, %d calls", scale, err, f.Asked(""))
	}
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
		if got := scaleOf(s, test.info); got != test.want {
			t.Errorf("%+v: %v, want %v", test, got, test.want)
		}
	}
}

func TestScriptsOfRecordedAnswers(t *testing.T) {
	for _, r := range clustertest.Engines(t, "testdata") {
		t.Run(r.Engine, func(t *testing.T) {
			// The Elasticsearch 8 that was recorded has no painless.
			for name, want := range map[string]bool{
				"scripts": !strings.HasPrefix(r.Engine, "elasticsearch-8"), "scripts barred": false,
			} {
				got, err := client(t, clustertest.New().Replay(t, "POST /i/_search", r, name)).probeScripts(t.Context(), at("i"))
				if got != want || err != nil {
					t.Errorf("%s: %v, %v, want %v", name, got, err, want)
				}
			}
		})
	}
}

// aBlock is what engines answer about an index with index.blocks.read.
const aBlock = `{"error":{"root_cause":[{"type":"cluster_block_exception","reason":"index [i] blocked by: [FORBIDDEN/7/index read (api)];"}],` +
	`"type":"cluster_block_exception","reason":"index [i] blocked by: [FORBIDDEN/7/index read (api)];"},"status":403}`

func TestScriptsAreUnknownWhereTheCallFails(t *testing.T) {
	tests := []struct {
		name   string
		status int
		body   string
		ok     bool
	}{
		{"forbidden", http.StatusForbidden, `{}`, true},
		{"blocked", http.StatusForbidden, aBlock, false},
		{"overloaded", http.StatusTooManyRequests, `{}`, false},
		{"broken", http.StatusInternalServerError, `{}`, false},
		{"a shard failed", http.StatusOK, `{"_shards":{"successful":1,"failed":1}}`, false},
		{"no shard", http.StatusOK, `{"_shards":{"successful":0,"failed":0}}`, false},
		{"garbage", http.StatusOK, `x`, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := client(t, clustertest.New().Reply("POST /i/_search", test.status, test.body)).probeScripts(t.Context(), at("i"))
			if got || (err == nil) != test.ok {
				t.Errorf("%v, %v, want false and an answer: %v", got, err, test.ok)
			}
		})
	}
}

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
		if scale, ok := e.Scale(); ok && !(scale > 0) || !ok && scale != 0 {
			t.Errorf("scale %v, %v", scale, ok)
		}
	})
}
