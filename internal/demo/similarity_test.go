package demo

import (
	"math"
	"testing"

	"github.com/akin-search/akin/e2e/check"
)

// toy is three documents of 4, 2 and 2 words.
func toy(tb testing.TB) *client {
	tb.Helper()
	c := newClient()
	c.load(tb, "toy", map[string]any{"body": map[string]any{"type": "text"}, "title": map[string]any{"type": "text"}},
		loaded{"1", map[string]any{"body": "car hire car now", "title": "one"}},
		loaded{"2", map[string]any{"body": "car park"}},
		loaded{"3", map[string]any{"body": "city park", "title": "two car"}})
	return c
}

// near reports whether two scores are equal but for float32 rounding.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-6*math.Abs(b) }

func TestScoresFollowBM25ByHand(t *testing.T) {
	// N = 3, avgdl = 8/3. idf(n) = ln(1 + (3-n+0.5)/(n+0.5)):
	// idf(car) = idf(park) = ln(1 + 1.5/2.5) = 0.4700036, idf(hire) = ln(1 + 2.5/1.5) = 0.9808293.
	// K(dl) = 1.2·(0.25 + 0.75·dl/avgdl): K(4) = 1.65, K(2) = 0.975.
	c := toy(t)
	for name, tt := range map[string]struct {
		query string
		want  map[string]float64
	}{
		"a term":         {`{"term":{"body":"car"}}`, map[string]float64{"1": 2.2 * 0.4700036 * 2 / (2 + 1.65), "2": 2.2 * 0.4700036 * 1 / (1 + 0.975)}},
		"a boosted term": {`{"term":{"body":{"value":"hire","boost":0.5}}}`, map[string]float64{"1": 0.5 * 2.2 * 0.9808293 / 2.65}},
		"a sum": {`{"match":{"body":"hire park car"}}`, map[string]float64{
			"1": 2.2*0.9808293/2.65 + 2.2*0.4700036*2/3.65, "2": 2 * 2.2 * 0.4700036 / 1.975, "3": 2.2 * 0.4700036 / 1.975,
		}},
		"the best of two fields": {`{"multi_match":{"query":"car","fields":["body","title^3"],"tie_breaker":0.5}}`, map[string]float64{
			"1": 2.2 * 0.4700036 * 2 / 3.65, "2": 2.2 * 0.4700036 / 1.975,
			// title: N = 2, n = 1: ln 2; dl = 2, avgdl = 1.5: K = 1.2·1.25 = 1.5.
			"3": 3 * 2.2 * math.Ln2 / 2.5,
		}},
		"an inverted saturation": { // b·tf/K
			`{"script_score":{"query":{"term":{"body":"car"}},"script":{"source":"` + ScriptInvert + `","params":{"m":1.03400792,"c":0.99,"b":3}}}}`,
			map[string]float64{"1": 3 * 2 / 1.65, "2": 3 * 1 / 0.975},
		},
		"a probe": {
			`{"script_score":{"query":{"match_all":{}},"script":{"source":"` + ScriptProbe + `","params":{"a":0.25}}}}`,
			map[string]float64{"1": 0.25, "2": 0.25, "3": 0.25},
		},
		"a saturated sum": {
			`{"script_score":{"query":{"constant_score":{"filter":{"term":{"body":"hire"}},"boost":3}},"script":{"source":"` + ScriptSaturate + `","params":{"m":2}},"boost":5}}`,
			map[string]float64{"1": 5 * 2 * 3.0 / 4},
		},
	} {
		got := scores(c.ok(t, "POST", "/toy/_search", `{"query":`+tt.query+`}`))
		check.Equal(t, len(tt.want), len(got), name, got, tt.want)
		for id, want := range tt.want {
			check.That(t, near(got[id], want), "%s: document %s scores %v, want %v", name, id, got[id], want)
		}
	}
}

func TestExplanationsAgreeWithScores(t *testing.T) {
	e := NewEngine()
	ix := e.create("help", map[string]any{"properties": map[string]any{"title": text(), "body": text()}})
	for _, d := range Docs("help") {
		source := `{"title": "` + d.Title + `", "body": "` + d.Body + `"}`
		ix.put(d.ID, []byte(source))
	}
	for _, body := range append(queriesOf("refund my order"), saturated(2)) {
		q, _ := parseQuery(ix, normalized(t, body), false)
		inWords, _ := parseQuery(ix, normalized(t, body), true)
		found := map[int]float32{}
		last := -1
		for _, h := range q.hits(ix) {
			check.Must(t, h.doc > last, "%v: document %d after %d", body, h.doc, last)
			found[h.doc], last = h.score, h.doc
		}
		for doc := range ix.docs {
			score, ok := found[doc]
			explanation := inWords(doc, 1)
			if (explanation != nil) != ok || ok && explanation.Value != score {
				t.Fatalf("%v: document %d, found %v, scores %v, explained %v", body, doc, ok, score, explanation)
			}
		}
	}
}
