package proxy

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/expand"
)

// threeHits is an answer of OpenSearch 2.19 to a search for sequence numbers
// and versions, the documents shortened.
const threeHits = `{"took":5,"timed_out":false,"_shards":{"total":2,"successful":2,"skipped":0,"failed":0},` +
	`"hits":{"total":{"value":3,"relation":"eq"},"max_score":1.5,"hits":[` +
	`{"_index":"t","_id":"1","_version":1,"_seq_no":0,"_primary_term":1,"_score":1.5,"_routing":"zz","_source":{"a":[1.0,1e0],"hits":{"hits":1}}},` +
	`{"_index":"t","_id":"2","_version":7,"_seq_no":4,"_primary_term":2,"_score":1.25,"_source":{"a":"}"}},` +
	`{"_index":"t","_id":"3\n","_version":2,"_seq_no":3,"_primary_term":1,"_score":1.0,"_source":{}}]},"profile":{}}`

func reread(t *testing.T, answer string, r *expand.Rerank) *hitPage {
	t.Helper()
	p, err := readPage([]byte(answer), r)
	if err != nil {
		t.Fatalf("%v: %s", err, answer)
	}
	return p
}

func TestHitsAreRead(t *testing.T) {
	got, ok := reread(t, threeHits, &expand.Rerank{Window: 3}).named(3)
	want := []Hit{
		{Index: "t", ID: "1", Routing: "zz", SeqNo: 0, PrimaryTerm: 1, Version: 1},
		{Index: "t", ID: "2", SeqNo: 4, PrimaryTerm: 2, Version: 7},
		{Index: "t", ID: "3\n", SeqNo: 3, PrimaryTerm: 1, Version: 2},
	}
	if diff := cmp.Diff(want, got); diff != "" || !ok {
		t.Errorf("%v (-want +got)\n%s", ok, diff)
	}
}

func TestHitsAreOrderedAndCut(t *testing.T) {
	const (
		head = `{"took":5,"timed_out":false,"_shards":{"total":2,"successful":2,"skipped":0,"failed":0},"hits":{"total":{"value":3,"relation":"eq"},"max_score":`
		tail = `]},"profile":{}}`
	)
	one := func(score string) string {
		return `{"_index":"t","_id":"1","_score":` + score + `,"_routing":"zz","_source":{"a":[1.0,1e0],"hits":{"hits":1}}}`
	}
	two := func(score string) string {
		return `{"_index":"t","_id":"2","_score":` + score + `,"_source":{"a":"}"}}`
	}
	three := func(score string) string { return `{"_index":"t","_id":"3\n","_score":` + score + `,"_source":{}}` }
	for _, c := range []struct {
		name       string
		from, size int
		scores     []float32
		want       string
	}{
		{"ordered", 0, 3, []float32{.25, 0, 1}, head + `1.0,"hits":[` + three("1.0") + "," + one("0.25") + "," + two("0.0") + tail},
		{"ties", 0, 3, []float32{.5, 1e-7, .5}, head + `0.5,"hits":[` + one("0.5") + "," + three("0.5") + "," + two("0.0000001") + tail},
		{"second page", 1, 1, []float32{.25, 0, 1}, head + `1.0,"hits":[` + one("0.25") + tail},
		{"last page", 2, 9, []float32{.25, 0, 1}, head + `1.0,"hits":[` + two("0.0") + tail},
		{"behind the last", 3, 2, []float32{.25, 0, 1}, head + `1.0,"hits":[` + tail},
		{"far behind", 9, 2, nil, head + `1.5,"hits":[` + tail},
		{"engine's order", 1, 2, nil, head + `1.5,"hits":[` + two("1.25") + "," + three("1.0") + tail},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &expand.Rerank{Window: 3, From: c.from, Size: c.size}
			if got := string(reread(t, threeHits, r).write(r, c.scores)); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// Hits behind the window stay behind it, with the scores of the engine.
func TestHitsBehindTheWindowKeepTheirPlaces(t *testing.T) {
	for _, c := range []struct {
		from, size int
		want       string
	}{
		{0, 3, `2 1 3\n`}, {1, 2, `1 3\n`}, {1, 1, `1`}, {0, 2, `2 1`},
	} {
		p := reread(t, threeHits, &expand.Rerank{Window: 2, Size: 3})
		hits, ok := p.named(2)
		if !ok || len(hits) != 2 {
			t.Fatalf("named %v", hits)
		}
		got := string(p.write(&expand.Rerank{Window: 2, From: c.from, Size: c.size}, []float32{.25, .5}))
		if hitIDs(got) != c.want || !strings.Contains(got, `"max_score":0.5`) {
			t.Errorf("%d hits behind %d: %s", c.size, c.from, got)
		}
		if strings.Contains(c.want, "3") && !strings.Contains(got, `"_id":"3\n","_score":1.0,"_source"`) {
			t.Errorf("the third hit has changed: %s", got)
		}
	}
}

func TestWhatWasAskedForStays(t *testing.T) {
	r := &expand.Rerank{Window: 3, Size: 3, KeepSeqNo: true, KeepVersion: true}
	if got := string(reread(t, threeHits, r).write(r, nil)); got != threeHits {
		t.Errorf("got  %s\nwant %s", got, threeHits)
	}
	r.KeepVersion = false
	got := string(reread(t, threeHits, r).write(r, nil))
	if want := strings.NewReplacer(`,"_version":1`, "", `,"_version":7`, "", `,"_version":2`, "").Replace(threeHits); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestIndentedAnswersStayIndented(t *testing.T) {
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, []byte(threeHits), "", "  "); err != nil {
		t.Fatal(err)
	}
	r := &expand.Rerank{Window: 3, Size: 2}
	got := string(reread(t, pretty.String(), r).write(r, []float32{0, 2, 1}))
	r = &expand.Rerank{Window: 3, Size: 2}
	var want bytes.Buffer
	if err := json.Indent(&want, reread(t, threeHits, r).write(r, []float32{0, 2, 1}), "", "  "); err != nil {
		t.Fatal(err)
	}
	if got != want.String() {
		t.Errorf("got %s\nwant %s", got, want.String())
	}
	r.From = 3
	if got := string(reread(t, pretty.String(), r).write(r, nil)); !strings.Contains(got, `"hits": [ ]`) {
		t.Errorf("got %s", got)
	}
}

func TestAnswersThatCannotBeCutAreRefused(t *testing.T) {
	for name, answer := range map[string]string{
		"empty": "", "no object": "[]", "no hits": `{"took":1}`, "hits are no object": `{"hits":[]}`, "no list": `{"hits":{"total":1}}`,
		"list is none": `{"hits":{"hits":{}}}`, "two lists": `{"hits":{"hits":[],"hits":[]}}`, "two of hits": `{"hits":{"hits":[]},"hits":{"hits":[]}}`,
		"two best scores": `{"hits":{"max_score":1,"max_score":2,"hits":[]}}`, "a hit is no object": `{"hits":{"hits":[1]}}`,
		"two ids":       `{"hits":{"hits":[{"_index":"a","_id":"1","_id":"2","_score":1}]}}`,
		"version first": `{"hits":{"hits":[{"_version":1,"_index":"a"}]}}`,
		"broken":        threeHits[:len(threeHits)-30], "more behind": threeHits + "{}", "too many": strings.Replace(threeHits, `[{"_index"`, `[{},{"_index"`, 1),
	} {
		if _, err := readPage([]byte(answer), &expand.Rerank{Window: 3}); err == nil {
			t.Errorf("%s: %s is read", name, answer)
		}
	}
}

func TestHitsWithoutNamesAreNotScored(t *testing.T) {
	for _, member := range []string{`"_index":"t",`, `"_id":"2",`, `"_version":7,`, `"_seq_no":4,`, `"_primary_term":2,`, `"_score":1.25,`} {
		answer := strings.Replace(threeHits, member, "", 1)
		if member == `"_index":"t",` { // then an id is first, which stays
			answer = strings.Replace(threeHits, `"_index":"t","_id":"2"`, `"_id":"2"`, 1)
		}
		r := &expand.Rerank{Window: 3, Size: 3}
		if _, ok := reread(t, answer, r).named(3); ok {
			t.Errorf("named without %s", member)
		}
	}
	null := strings.Replace(threeHits, `"_score":1.25`, `"_score":null`, 1)
	if _, ok := reread(t, null, &expand.Rerank{Window: 3}).named(3); ok {
		t.Error("named with the score null")
	}
}

func TestScoresThatAreNoneAreRefused(t *testing.T) {
	for _, s := range []float64{math.NaN(), math.Inf(1), math.MaxFloat64} {
		if _, ok := asWritten([]float64{0, s}); ok {
			t.Errorf("%v is written", s)
		}
	}
}

// rest returns what may not change: the answer without its list and best
// score, and the hits without what is cut and their scores, sorted.
func (p *hitPage) rest() (outside string, hits []string) {
	without := func(all piece, holes ...piece) string {
		var out []byte
		at := all.start
		for _, h := range holes {
			out = append(out, p.answer[at:h.start]...)
			at = h.end
		}
		return string(append(out, p.answer[at:all.end]...))
	}
	for i := range p.hits {
		h := &p.hits[i]
		hits = append(hits, without(h.at, h.edits(!h.score.isZero())...))
	}
	slices.Sort(hits)
	return without(piece{0, len(p.answer)}, p.parts(p.maxScore)...), hits
}

// All bytes but those of scores stay, whatever an answer looks like, and so
// do all hits; one that is cut has some of them.
func FuzzHitsKeepTheirBytes(f *testing.F) {
	for _, seed := range []string{
		threeHits, `{"hits":{"hits":[]}}`, `{"hits":{"hits":[ {} , {"_score" : 1 } ],"max_score":null}}`,
		"{\n \"hits\" : {\n \"hits\" : [\n {\n \"_index\" : \"a\",\n \"_version\" : 3,\n \"_score\" : 0.5\n },\n {\"_score\":2,\"x\":\"\xff\"} ], \"max_score\" : 2 } }",
		`{"hits":{"max_score":1,"hits":[{"_index":"a","_seq_no":1,"_primary_term":2}]}}`,
	} {
		f.Add([]byte(seed), uint8(1), uint8(2))
	}
	f.Fuzz(func(t *testing.T, answer []byte, from, size uint8) {
		all := &expand.Rerank{Window: 50, Size: 50}
		p, err := readPage(answer, all)
		if err != nil {
			return
		}
		outside, hits := p.rest()
		var scores []float32
		if _, ok := p.named(all.Window); ok {
			for i := range p.hits {
				scores = append(scores, float32(i*7%5))
			}
		}
		again, err := readPage(p.write(all, scores), all)
		if err != nil {
			t.Fatalf("%v: %s", err, p.write(all, scores))
		}
		if o, h := again.rest(); o != outside || !slices.Equal(h, hits) {
			t.Errorf("%s\nbecame %s", answer, again.answer)
		}
		for i := range again.hits {
			if len(again.hits[i].cuts) > 0 {
				t.Errorf("%s has what was not asked for", again.answer)
			}
		}
		if scores != nil && !sortedByScore(again) {
			t.Errorf("%s is not in order", again.answer)
		}
		some := &expand.Rerank{Window: 50, From: int(from), Size: int(size)}
		cut, err := readPage(p.write(some, scores), some)
		if err != nil {
			t.Fatal(err)
		}
		o, h := cut.rest()
		if want := min(max(len(hits)-int(from), 0), int(size)); o != outside || len(h) != want {
			t.Errorf("%s\nwas cut to %s", answer, cut.answer)
		}
		for _, hit := range h {
			if !slices.Contains(hits, hit) {
				t.Errorf("%s is not of %s", hit, answer)
			}
		}
	})
}

func sortedByScore(p *hitPage) bool {
	return slices.IsSortedFunc(p.hits, func(a, b foundHit) int {
		var x, y float64
		if json.Unmarshal(a.score.of(p.answer), &x) != nil || json.Unmarshal(b.score.of(p.answer), &y) != nil || x < y {
			return 1
		}
		return -1
	})
}
