package demo

import (
	"math"
	"testing"
)

func TestLengthsKeepTheirFirstFourBits(t *testing.T) {
	// By the definition of SmallFloat.intToByte4: 24 + x, where x keeps four
	// significant bits. 41 = 24+17, 17 = 10001b, so 10000b = 16 and 40 remain.
	for n, want := range map[int]int{
		0: 0, 1: 1, 23: 23, 24: 24, 39: 39, 40: 40, 41: 40, 42: 42, 55: 54, 56: 56, 59: 56, 60: 60,
		119: 112, 120: 120, 1000: 984, 5001: 4632, math.MaxInt32: 24 + 15<<27,
	} {
		if got := quantizedLength(n); got != want {
			t.Errorf("quantizedLength(%d) = %d, want %d", n, got, want)
		}
	}
}

func TestLengthsRoundDownByLessThanAnEighthAndKeepTheirOrder(t *testing.T) {
	last := 0
	for n := range 100_000 {
		q := quantizedLength(n)
		if q > n || 8*(n-q) > n || q < last || quantizedLength(q) != q {
			t.Fatalf("quantizedLength(%d) = %d after %d", n, q, last)
		}
		last = q
	}
}

// toy is three documents of 4, 2 and 2 words.
func toy(tb testing.TB) *client {
	tb.Helper()
	c := newClient(tb)
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
	for _, tt := range []struct {
		name  string
		query map[string]any
		want  map[string]float64
	}{
		{"a term", map[string]any{"term": map[string]any{"body": "car"}}, map[string]float64{
			"1": 2.2 * 0.4700036 * 2 / (2 + 1.65),  // 0.5665797
			"2": 2.2 * 0.4700036 * 1 / (1 + 0.975), // 0.5235483
		}},
		{"a boosted term", map[string]any{"term": map[string]any{"body": map[string]any{"value": "hire", "boost": 0.5}}}, map[string]float64{
			"1": 0.5 * 2.2 * 0.9808293 / 2.65,
		}},
		{"a sum", map[string]any{"match": map[string]any{"body": "hire park car"}}, map[string]float64{
			"1": 2.2*0.9808293/2.65 + 2.2*0.4700036*2/3.65,
			"2": 2 * 2.2 * 0.4700036 / 1.975,
			"3": 2.2 * 0.4700036 / 1.975,
		}},
		{"the best of two fields", map[string]any{"multi_match": map[string]any{"query": "car", "fields": []string{"body", "title^3"}, "tie_breaker": 0.5}}, map[string]float64{
			"1": 2.2 * 0.4700036 * 2 / 3.65,
			"2": 2.2 * 0.4700036 / 1.975,
			// title: N = 2, n = 1: ln 2; dl = 2, avgdl = 1.5: K = 1.2·1.25 = 1.5.
			"3": 3 * 2.2 * math.Ln2 / 2.5,
		}},
		{"an inverted saturation", map[string]any{"script_score": map[string]any{
			"query":  map[string]any{"term": map[string]any{"body": "car"}},
			"script": map[string]any{"source": ScriptInvert, "params": map[string]any{"m": 2.2 * 0.4700036, "c": 0.99, "b": 3}},
		}}, map[string]float64{"1": 3 * 2 / 1.65, "2": 3 * 1 / 0.975}}, // b·tf/K
		{"a probe", map[string]any{"script_score": map[string]any{
			"query":  map[string]any{"match_all": map[string]any{}},
			"script": map[string]any{"source": ScriptProbe, "params": map[string]any{"a": 0.25}},
		}}, map[string]float64{"1": 0.25, "2": 0.25, "3": 0.25}},
		{"a saturated sum", map[string]any{"script_score": map[string]any{
			"query":  map[string]any{"constant_score": map[string]any{"filter": map[string]any{"term": map[string]any{"body": "hire"}}, "boost": 3}},
			"script": map[string]any{"source": ScriptSaturate, "params": map[string]any{"m": 2}},
			"boost":  5,
		}}, map[string]float64{"1": 5 * 2 * 3.0 / 4}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := scores(c.ok(t, "POST", "/toy/_search", map[string]any{"query": tt.query}))
			if len(got) != len(tt.want) {
				t.Errorf("found %v, want %v", got, tt.want)
			}
			for id, want := range tt.want {
				if !near(got[id], want) {
					t.Errorf("document %s scores %v, want %v", id, got[id], want)
				}
			}
		})
	}
}

func TestExplanationLeadsToTheScore(t *testing.T) {
	c := toy(t)
	answer := c.ok(t, "POST", "/toy/_search", map[string]any{
		"explain": true, "query": map[string]any{"bool": map[string]any{"should": []any{
			map[string]any{"term": map[string]any{"body": map[string]any{"value": "car", "boost": 2}}},
			map[string]any{"term": map[string]any{"body": "hire"}},
		}}},
	})
	e := at(answer, "hits", "hits", 0, "_explanation")
	term := at(e, "details", 0, "details", 0)
	for path, want := range map[string]any{
		"sum":         at(answer, "hits", "hits", 0, "_score"),
		"description": "weight(body:car in 0) [PerFieldSimilarity], result of:",
		"score":       "score(freq=2.0), computed as boost * idf * tf from:",
		"boost":       4.4, "n": 2.0, "N": 3.0, "freq": 2.0, "k1": 1.2, "b": 0.75, "dl": 4.0,
	} {
		got := map[string]any{
			"sum": at(e, "value"), "description": at(e, "details", 0, "description"), "score": at(term, "description"),
			"boost": at(term, "details", 0, "value"), "n": at(term, "details", 1, "details", 0, "value"),
			"N": at(term, "details", 1, "details", 1, "value"), "freq": at(term, "details", 2, "details", 0, "value"),
			"k1": at(term, "details", 2, "details", 1, "value"), "b": at(term, "details", 2, "details", 2, "value"),
			"dl": at(term, "details", 2, "details", 3, "value"),
		}[path]
		if got != want {
			t.Errorf("%s = %v, want %v", path, got, want)
		}
	}
}

// Every query has to explain each hit with exactly its score, and no other
// document.
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
			if h.doc <= last {
				t.Fatalf("%v: document %d after %d", body, h.doc, last)
			}
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
