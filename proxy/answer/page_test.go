package answer

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/internal/jsonspan"
)

// threeHits is an answer of OpenSearch 2.19 to a search for sequence numbers
// and versions, the documents shortened.
const threeHits = `{"took":5,"timed_out":false,"_shards":{"total":2,"successful":2,"skipped":0,"failed":0},` +
	`"hits":{"total":{"value":3,"relation":"eq"},"max_score":1.5,"hits":[` +
	`{"_index":"t","_id":"1","_version":1,"_seq_no":0,"_primary_term":1,"_score":1.5,"_routing":"zz","_source":{"a":[1.0,1e0],"hits":{"hits":1}}},` +
	`{"_index":"t","_id":"2","_version":7,"_seq_no":4,"_primary_term":2,"_score":1.25,"_source":{"a":"}"}},` +
	`{"_index":"t","_id":"3\n","_version":2,"_seq_no":3,"_primary_term":1,"_score":1.0,"_source":{}}]},"profile":{}}`

// A shownPage is a page with the answer that it is of.
type shownPage struct {
	*HitList
	answer []byte
}

func reread(t *testing.T, answer string, r *expand.Rerank) shownPage {
	t.Helper()
	pages, err := ReadHitLists([]byte(answer), expand.EndpointSearch, []*expand.Rerank{r})
	if err != nil {
		t.Fatalf("%v: %s", err, answer)
	}
	return shownPage{pages[0], []byte(answer)}
}

// written returns the answer to one search with its hits in the order of
// scores.
func written(p shownPage, scores []float32) []byte {
	p.Scores = scores
	return WriteHitLists(p.answer, []*HitList{p.HitList})
}

func TestHitsAreRead(t *testing.T) {
	got, ok := reread(t, threeHits, &expand.Rerank{Window: 3}).Hits()
	want := []expand.Hit{
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
			if got := string(written(reread(t, threeHits, r), c.scores)); got != c.want {
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
		hits, ok := p.Hits()
		if !ok || len(hits) != 2 {
			t.Fatalf("named %v", hits)
		}
		p.Rerank = &expand.Rerank{Window: 2, From: c.from, Size: c.size}
		got := string(written(p, []float32{.25, .5}))
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
	if got := string(written(reread(t, threeHits, r), nil)); got != threeHits {
		t.Errorf("got  %s\nwant %s", got, threeHits)
	}
	r.KeepVersion = false
	got := string(written(reread(t, threeHits, r), nil))
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
	got := string(written(reread(t, pretty.String(), r), []float32{0, 2, 1}))
	r = &expand.Rerank{Window: 3, Size: 2}
	var want bytes.Buffer
	if err := json.Indent(&want, written(reread(t, threeHits, r), []float32{0, 2, 1}), "", "  "); err != nil {
		t.Fatal(err)
	}
	if got != want.String() {
		t.Errorf("got %s\nwant %s", got, want.String())
	}
	r.From = 3
	if got := string(written(reread(t, pretty.String(), r), nil)); !strings.Contains(got, `"hits": [ ]`) {
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
		r := &expand.Rerank{Window: 3}
		if _, err := ReadHitLists([]byte(answer), expand.EndpointSearch, []*expand.Rerank{r}); err == nil {
			t.Errorf("%s: %s is read", name, answer)
		}
		several := `{"responses":[{},` + answer + `]}`
		if _, err := ReadHitLists([]byte(several), expand.EndpointMultiSearch, []*expand.Rerank{nil, r}); err == nil {
			t.Errorf("%s: %s is read", name, several)
		}
	}
}

// threeSearches is an answer to _msearch: the second search failed.
const threeSearches = `{"took":9,"responses":[` + threeHits + `,{"error":{"type":"x","hits":{"hits":[1]}},"status":404},` + threeHits + `],"more":[]}`

// readSeveral reads an answer to _msearch.
func readSeveral(t *testing.T, answer string, reranks ...*expand.Rerank) []*HitList {
	t.Helper()
	pages, err := ReadHitLists([]byte(answer), expand.EndpointMultiSearch, reranks)
	if err != nil {
		t.Fatalf("%v: %s", err, answer)
	}
	return pages
}

func TestHitsOfSeveralSearchesAreOrderedEachForItself(t *testing.T) {
	first, third := &expand.Rerank{Window: 3, Size: 2}, &expand.Rerank{Window: 3, From: 1, Size: 9, KeepVersion: true}
	pages := readSeveral(t, threeSearches, first, nil, third)
	if pages[1] != nil {
		t.Errorf("the second is %+v", pages[1])
	}
	pages[0].Scores = []float32{0, 2, 1}
	want := strings.Replace(threeSearches, threeHits, string(written(reread(t, threeHits, first), []float32{0, 2, 1})), 1)
	at := strings.LastIndex(want, threeHits)
	want = want[:at] + string(written(reread(t, threeHits, third), nil)) + want[at+len(threeHits):]
	if got := string(WriteHitLists([]byte(threeSearches), pages)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// With the scores that the hits have anyway, and all asked for, an answer does
// not change, however it is indented.
func TestTheSameOrderIsTheSameAnswer(t *testing.T) {
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, []byte(threeSearches), "", "  "); err != nil {
		t.Fatal(err)
	}
	all := &expand.Rerank{Window: 3, Size: 3, KeepSeqNo: true, KeepVersion: true}
	for _, answer := range []string{threeSearches, pretty.String()} {
		pages := readSeveral(t, answer, all, nil, all)
		pages[0].Scores = []float32{1.5, 1.25, 1}
		pages[2].Scores = []float32{1.5, 1.25}
		if got := string(WriteHitLists([]byte(answer), pages)); got != answer {
			t.Errorf("got  %s\nwant %s", got, answer)
		}
	}
}

func TestAnswersToSeveralSearchesThatDoNotFitAreRefused(t *testing.T) {
	for name, answer := range map[string]string{
		"empty": "", "no object": "[]", "no responses": `{"took":1}`, "one search's": threeHits, "no list": `{"responses":{}}`,
		"one too few": `{"responses":[` + threeHits + `]}`, "one too many": `{"responses":[` + threeHits + `,{},{}]}`,
		"two lists": `{"responses":[` + threeHits + `,{}],"responses":[]}`, "two halves": `{"responses":[` + threeHits + `],"responses":[{}]}`,
		"null":   `{"responses":[null,{}]}`,
		"broken": `{"responses":[` + threeHits + `,{}]`, "more behind": `{"responses":[` + threeHits + `,{}]}1`,
		"a broken item that stays": `{"responses":[` + threeHits + `,{"a"}]}`,
	} {
		if _, err := ReadHitLists([]byte(answer), expand.EndpointMultiSearch, []*expand.Rerank{{Window: 3, Size: 3}, nil}); err == nil {
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
		if _, ok := reread(t, answer, r).Hits(); ok {
			t.Errorf("named without %s", member)
		}
	}
	null := strings.Replace(threeHits, `"_score":1.25`, `"_score":null`, 1)
	if _, ok := reread(t, null, &expand.Rerank{Window: 3}).Hits(); ok {
		t.Error("named with the score null")
	}
}

func TestScoresThatAreNoneAreRefused(t *testing.T) {
	for _, s := range []float64{math.NaN(), math.Inf(1), math.MaxFloat64} {
		p := reread(t, threeHits, &expand.Rerank{Window: 3, Size: 3})
		if p.SetScores([]float64{0, s, 1}) || p.Scores != nil {
			t.Errorf("%v is written", s)
		}
	}
	for _, soft := range [][]float64{nil, {1, 2}, {1, 2, 3, 4}} {
		p := reread(t, threeHits, &expand.Rerank{Window: 3, Size: 3, EngineWeight: .8})
		if p.SetScores(soft) || p.Scores != nil {
			t.Errorf("%d scores for three hits are written", len(soft))
		}
	}
}

// without returns a part of an answer without the holes in it.
func without(answer []byte, part jsonspan.Span, holes ...jsonspan.Span) string {
	var out []byte
	at := part.Start
	for _, h := range holes {
		out = append(out, answer[at:h.Start]...)
		at = h.End
	}
	return string(append(out, answer[at:part.End]...))
}

// spans returns the places of edits and those others that are not zero, in
// order.
func spans(edits []jsonspan.Edit, others ...jsonspan.Span) []jsonspan.Span {
	all := slices.DeleteFunc(others, jsonspan.Span.IsZero)
	for _, e := range edits {
		all = append(all, e.At)
	}
	slices.SortFunc(all, func(a, b jsonspan.Span) int { return a.Start - b.Start })
	return all
}

// outside returns what may not change of an answer: all but the lists and best
// scores of its pages.
func outside(answer []byte, pages []*HitList) string {
	var holes []jsonspan.Span
	for _, p := range pages {
		if p != nil {
			holes = append(holes, spans(p.cuts, p.list, p.maxScore)...)
		}
	}
	return without(answer, jsonspan.Span{Start: 0, End: len(answer)}, holes...)
}

// texts returns the hits without what is cut and their scores, sorted.
func (p shownPage) texts() []string {
	var hits []string
	for i := range p.hits {
		h := &p.hits[i]
		hits = append(hits, without(p.answer, h.at, spans(h.cuts, h.score)...))
	}
	slices.Sort(hits)
	return hits
}

// someScores returns scores in no order for the hits of a page, nil where it
// cannot have any.
func someScores(p *HitList) []float32 {
	var scores []float32
	if _, ok := p.Hits(); ok {
		for i := range p.hits {
			scores = append(scores, float32(i*7%5))
		}
	}
	return scores
}

// checkOrdered makes sure that after has all hits of the page before, as they
// were written, and nothing that was not asked for.
func checkOrdered(t *testing.T, before, after shownPage) {
	t.Helper()
	if !slices.Equal(before.texts(), after.texts()) {
		t.Errorf("%s\nbecame %s", before.answer, after.answer)
	}
	for i := range after.hits {
		if len(after.hits[i].cuts) > 0 {
			t.Errorf("%s has what was not asked for", after.answer)
		}
	}
	if before.Scores != nil && !sortedByScore(after) {
		t.Errorf("%s is not in order", after.answer)
	}
}

// checkCut makes sure that after is the page of hits that the client asked for
// of those before.
func checkCut(t *testing.T, before, after shownPage) {
	t.Helper()
	hits, left := before.texts(), after.texts()
	if want := min(max(len(hits)-before.Rerank.From, 0), before.Rerank.Size); len(left) != want {
		t.Errorf("%s\nwas cut to %s", before.answer, after.answer)
	}
	for _, hit := range left {
		if !slices.Contains(hits, hit) {
			t.Errorf("%s is not of %s", hit, before.answer)
		}
	}
}

// oddAnswers are answers to single searches that no engine would write.
var oddAnswers = []string{
	threeHits, innerNumbered, `{"hits":{"hits":[]}}`, `{"hits":{"hits":[ {} , {"_score" : 1 } ],"max_score":null}}`,
	"{\n \"hits\" : {\n \"hits\" : [\n {\n \"_index\" : \"a\",\n \"_version\" : 3,\n \"_score\" : 0.5\n },\n {\"_score\":2,\"x\":\"\xff\"} ], \"max_score\" : 2 } }",
	`{"hits":{"max_score":1,"hits":[{"_index":"a","_seq_no":1,"_primary_term":2}]}}`,
}

// All bytes but those of scores stay, whatever an answer looks like, and so
// do all hits; one that is cut has some of them.
func FuzzHitsKeepTheirBytes(f *testing.F) {
	for _, seed := range oddAnswers {
		f.Add([]byte(seed), uint8(1), uint8(2))
	}
	f.Fuzz(func(t *testing.T, answer []byte, from, size uint8) {
		checkPages(t, answer, expand.EndpointSearch, []bool{true}, int(from), int(size))
	})
}

// The same of several searches, of which some stay as they are.
func FuzzHitsOfSeveralSearchesKeepTheirBytes(f *testing.F) {
	for i, seed := range oddAnswers {
		f.Add([]byte(`{"took":1,"responses":[`+seed+`,{"error":{}}, `+oddAnswers[(i+1)%len(oddAnswers)]+` ],"x":1} `), uint8(3), uint8(5), uint8(1), uint8(2))
		f.Add([]byte(`{"responses":[`+seed+`]}`), uint8(1), uint8(1), uint8(0), uint8(9))
	}
	f.Add([]byte(`{"responses":[]}`), uint8(0), uint8(0), uint8(0), uint8(0))
	f.Fuzz(func(t *testing.T, answer []byte, n, which, from, size uint8) {
		ordered := make([]bool, n%8)
		for k := range ordered {
			ordered[k] = which>>k&1 != 0
		}
		checkPages(t, answer, expand.EndpointMultiSearch, ordered, int(from), int(size))
	})
}

// checkPages orders and cuts the hits of those searches in an answer that are
// to be ordered.
func checkPages(t *testing.T, answer []byte, endpoint expand.Endpoint, ordered []bool, from, size int) {
	t.Helper()
	reread := func(answer []byte, r *expand.Rerank) (pages []*HitList, err error) {
		reranks := make([]*expand.Rerank, len(ordered))
		for k := range reranks {
			if ordered[k] {
				reranks[k] = r
			}
		}
		return ReadHitLists(answer, endpoint, reranks)
	}
	pages, err := reread(answer, &expand.Rerank{Window: 50, Size: 50, KeepSeqNo: true, KeepVersion: true})
	if err == nil {
		checkWhole(t, answer, pages)
	}
	if pages, err = reread(answer, &expand.Rerank{Window: 50, Size: 50}); err != nil {
		return
	}
	eachPage(pages, func(_ int, p *HitList) { p.Scores = someScores(p) })
	check := func(with func(t *testing.T, before, after shownPage)) {
		out := WriteHitLists(answer, pages)
		again, err := reread(out, &expand.Rerank{Window: 50, Size: 50})
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if outside(answer, pages) != outside(out, again) {
			t.Errorf("%s\nbecame %s", answer, out)
		}
		eachPage(pages, func(k int, p *HitList) { with(t, shownPage{p, answer}, shownPage{again[k], out}) })
	}
	check(checkOrdered)
	eachPage(pages, func(_ int, p *HitList) { p.Rerank = &expand.Rerank{Window: 50, From: from, Size: size} })
	check(checkCut)
}

// checkWhole makes sure that nothing changes where all was asked for and the
// hits stay in the engine's order. White space between hits may: all get that
// between the first two.
func checkWhole(t *testing.T, answer []byte, pages []*HitList) {
	t.Helper()
	got, want := WriteHitLists(answer, pages), answer
	var compactGot, compactWant bytes.Buffer
	if json.Compact(&compactGot, got) == nil && json.Compact(&compactWant, want) == nil {
		got, want = compactGot.Bytes(), compactWant.Bytes()
	}
	if string(got) != string(want) {
		t.Errorf("%s\nbecame %s", want, got)
	}
}

// eachPage calls f for each page that is not nil.
func eachPage(pages []*HitList, f func(k int, p *HitList)) {
	for k, p := range pages {
		if p != nil {
			f(k, p)
		}
	}
}

func sortedByScore(p shownPage) bool {
	return slices.IsSortedFunc(p.hits, func(a, b foundHit) int {
		var x, y float64
		if json.Unmarshal(a.score.Of(p.answer), &x) != nil || json.Unmarshal(b.score.Of(p.answer), &y) != nil || x < y {
			return 1
		}
		return -1
	})
}

// hitIDs returns the ids in an answer in their order.
func hitIDs(answer string) string {
	var ids []string
	for _, part := range strings.Split(answer, `"_id":"`)[1:] {
		id, _, _ := strings.Cut(part, `"`)
		ids = append(ids, id)
	}
	return strings.Join(ids, " ")
}
