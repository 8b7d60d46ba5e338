package answer

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/e2e/check"
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

// numberedHits is the same of one shard, for sequence numbers only.
const numberedHits = `{"took":5,"timed_out":false,"_shards":{"total":1,"successful":1,"skipped":0,"failed":0},` +
	`"hits":{"total":{"value":3,"relation":"eq"},"max_score":1.5,"hits":[` +
	`{"_index":"t","_score":1.5,"fields":{"_seq_no":[0]}},{"_index":"t","_score":1.25,"fields":{"_seq_no":[4]}},` +
	`{"_index":"t","_score":1.0,"fields":{"_seq_no":[3]}}]},"profile":{}}`

// one, two and three are those hits as the client asks for them, with a score.
func one(score string) string {
	return `{"_index":"t","_id":"1","_score":` + score + `,"_routing":"zz","_source":{"a":[1.0,1e0],"hits":{"hits":1}}}`
}

func two(score string) string {
	return `{"_index":"t","_id":"2","_score":` + score + `,"_source":{"a":"}"}}`
}

func three(score string) string {
	return `{"_index":"t","_id":"3\n","_score":` + score + `,"_source":{}}`
}

// pageWith returns the answer to a search for a page, with hits.
func pageWith(hits ...string) string {
	return `{"timed_out":false,"_shards":{"failed":0},"hits":{"hits":[` + strings.Join(hits, ",") + `]}}`
}

// allThree is the answer to a search for a page that has them all.
var allThree = pageWith(two("0.0"), three("0.0"), one("0.0"))

// frameOf reads the answer to one search.
func frameOf(t *testing.T, answer string, r *expand.Rerank) *Frame {
	t.Helper()
	frames, err := ReadFrames([]byte(answer), expand.EndpointSearch, []*expand.Rerank{r})
	check.Must(t, err == nil, "%v: %s", err, answer)
	return frames[0]
}

// softOf returns scores of hits whose sums do not count.
func softOf(soft ...float64) []expand.HitScore {
	scores := make([]expand.HitScore, len(soft))
	for i, s := range soft {
		scores[i].Soft = s
	}
	return scores
}

func cosinesOf(cosines ...float64) []expand.HitScore {
	scores := make([]expand.HitScore, len(cosines))
	for i, c := range cosines {
		scores[i] = expand.HitScore{Cosine: c, Unknown: true}
	}
	return scores
}

// order puts the hits of a frame in the order of scores, with the page out of an
// answer.
func order(t *testing.T, f *Frame, page string, scores []expand.HitScore) {
	t.Helper()
	hits, ok := f.Order(scores)
	check.Must(t, ok && f.SetPage(hits, []byte(page)), "ordered %v, without the hits in %s", ok, page)
}

// written returns the answer to one search with its page.
func written(answer string, f *Frame) string { return string(WriteFrames([]byte(answer), []*Frame{f})) }

func TestHitsAreRead(t *testing.T) {
	f := frameOf(t, threeHits, &expand.Rerank{Window: 3})
	want := []expand.Hit{
		{Index: "t", ID: "1", Routing: "zz", SeqNo: 0, PrimaryTerm: 1, Version: 1},
		{Index: "t", ID: "2", SeqNo: 4, PrimaryTerm: 2, Version: 7},
		{Index: "t", ID: "3\n", SeqNo: 3, PrimaryTerm: 1, Version: 2},
	}
	diff := cmp.Diff(want, f.Window())
	check.That(t, diff == "" && f.Named, "%v (-want +got)\n%s", f.Named, diff)
	f = frameOf(t, numberedHits, &expand.Rerank{Window: 3, BySeqNo: true})
	want = []expand.Hit{{Index: "t", SeqNo: 0}, {Index: "t", SeqNo: 4}, {Index: "t", SeqNo: 3}}
	diff = cmp.Diff(want, f.Window())
	check.That(t, diff == "" && f.Named, "by number: %v (-want +got)\n%s", f.Named, diff)
}

// The page is in the reranker's order, with its scores, and all other bytes of
// the frame and of the hits are as they came.
func TestHitsAreOrderedAndCut(t *testing.T) {
	const (
		head = `{"took":5,"timed_out":false,"_shards":{"total":2,"successful":2,"skipped":0,"failed":0},"hits":{"total":{"value":3,"relation":"eq"},"max_score":`
		tail = `]},"profile":{}}`
	)
	for _, c := range []struct {
		name       string
		from, size int
		soft       []float64
		page, want string
	}{
		{"ordered", 0, 3, []float64{.25, 0, 1}, allThree, head + `1.0,"hits":[` + three("1.0") + "," + one("0.25") + "," + two("0.0") + tail},
		{"ties", 0, 3, []float64{.5, 1e-7, .5}, allThree, head + `0.5,"hits":[` + one("0.5") + "," + three("0.5") + "," + two("0.0000001") + tail},
		{"second page", 1, 1, []float64{.25, 0, 1}, pageWith(one("0.0")), head + `1.0,"hits":[` + one("0.25") + tail},
		{"last page", 2, 9, []float64{.25, 0, 1}, pageWith(two("0.0")), head + `1.0,"hits":[` + two("0.0") + tail},
		{"with more hits", 2, 9, []float64{.25, 0, 1}, allThree, head + `1.0,"hits":[` + two("0.0") + tail},
		{"behind the last", 3, 2, []float64{.25, 0, 1}, pageWith(), head + `1.0,"hits":[` + tail},
		{"far behind", 9, 2, []float64{.25, 0, 1}, pageWith(), head + `1.0,"hits":[` + tail},
		{"engine's order", 1, 2, nil, pageWith(two("1.25"), three("1.0")), head + `1.5,"hits":[` + two("1.25") + "," + three("1.0") + tail},
		{"engine's order, far behind", 9, 2, nil, pageWith(), head + `1.5,"hits":[` + tail},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := frameOf(t, threeHits, &expand.Rerank{Window: 3, From: c.from, Size: c.size, SoftWeight: 1})
			if c.soft != nil {
				order(t, f, c.page, softOf(c.soft...))
			} else if !f.SetInOrder([]byte(c.page)) {
				t.Fatal("refused")
			}
			check.Equal(t, c.want, written(threeHits, f))
		})
	}
}

// numbered returns a hit of a search that is sorted by numbers.
func numbered(hit string, number int) string {
	return strings.Replace(hit, `"_source"`, fmt.Sprintf(`"sort": [%d ] ,"_source"`, number), 1)
}

// The search for a page is sorted by the numbers, which the client's is not.
func TestHitsWithNumbersAreNamedByThemInThePage(t *testing.T) {
	f := frameOf(t, numberedHits, &expand.Rerank{Window: 3, Size: 3, SoftWeight: 1, BySeqNo: true})
	page, ok := f.Order([]expand.HitScore{{Soft: .25}, {Unknown: true}, {Soft: 1}})
	diff := cmp.Diff([]expand.Hit{{Index: "t", SeqNo: 3}, {Index: "t", SeqNo: 4}, {Index: "t", SeqNo: 0}}, page)
	check.Must(t, ok && diff == "", "%v (-want +got)\n%s", ok, diff)
	first, second, third := numbered(one("null"), 0), numbered(two("null"), 4), numbered(three("null"), 3)
	for _, other := range []string{pageWith(first, third), pageWith(first, numbered(two("null"), 5), third), pageWith(first, first, third), allThree} {
		check.That(t, !f.SetPage(page, []byte(other)), "taken: %s", other)
	}
	check.Must(t, f.SetPage(page, []byte(pageWith(first, third, second))), "the hits are not found")
	head, _, _ := strings.Cut(numberedHits, "1.5")
	want := head + `1.0,"hits":[` + three("1.0") + "," + two("1.0") + "," + one("0.25") + `]},"profile":{}}`
	check.Equal(t, want, strings.ReplaceAll(written(numberedHits, f), " ,", ","))
}

func TestHitsBehindTheWindowKeepTheirPlaces(t *testing.T) {
	for _, c := range []struct {
		from, size int
		want       string
	}{
		{0, 3, `2 1 3\n`}, {1, 2, `1 3\n`}, {1, 1, `1`}, {0, 2, `2 1`},
	} {
		f := frameOf(t, threeHits, &expand.Rerank{Window: 2, Size: 3, SoftWeight: 1})
		check.Must(t, f.Named && len(f.Window()) == 2, "named %v", f.Window())
		f.Rerank = &expand.Rerank{Window: 2, From: c.from, Size: c.size, SoftWeight: 1}
		order(t, f, allThree, softOf(.25, .5))
		got := written(threeHits, f)
		check.That(t, hitIDs(got) == c.want && strings.Contains(got, `"max_score":0.5`), "%d hits behind %d: %s", c.size, c.from, got)
		check.That(t, !strings.Contains(c.want, "3") || strings.Contains(got, `"_id":"3\n","_score":1.0,"_source"`), "the third hit has changed: %s", got)
	}
}

func TestBestScoresAreReplacedWhereverTheyStand(t *testing.T) {
	r := &expand.Rerank{Window: 3, Size: 1, SoftWeight: 1}
	list := threeHits[strings.Index(threeHits, `"hits":[`):strings.Index(threeHits, `},"profile"`)]
	for name, c := range map[string]struct{ answer, want string }{
		"behind": {`{"hits":{` + list + `, "max_score" : 1.5 },"x":1}`, `{"hits":{"hits":[` + two("4.0") + `], "max_score" : 4.0 },"x":1}`},
		"none":   {`{"hits":{` + list + `}}`, `{"hits":{"hits":[` + two("4.0") + `]}}`},
		"null":   {`{"hits":{"max_score":null,` + list + `}}`, `{"hits":{"max_score":null,"hits":[` + two("4.0") + `]}}`},
	} {
		f := frameOf(t, c.answer, r)
		order(t, f, pageWith(two("0.0")), softOf(0, 4, 1))
		check.Equal(t, c.want, written(c.answer, f), name)
	}
}

// What is not to be had of a page leaves nothing behind that is written.
func TestPagesThatLackSomethingAreRefused(t *testing.T) {
	hits := one("0.0") + "," + two("0.0")
	for name, page := range map[string]string{
		"empty": "", "no object": `[]`, "nothing in it": `{}`, "hits are no object": `{"hits":[]}`, "list is none": `{"hits":{"hits":{}}}`,
		"broken": allThree[:len(allThree)-3], "more behind": allThree + "{}", "two lists": `{"hits":{"hits":[` + hits + `],"hits":[]}}`,
		"two of hits": `{"hits":{"hits":[` + hits + `]},"hits":{"hits":[]}}`, "a hit is no object": pageWith(one("0.0"), two("0.0"), "1"),
		"timed out":     strings.Replace(allThree, "false", "true", 1),
		"a shard fails": strings.Replace(allThree, `{"failed":0}`, failedShard(`{"shard":0,"index":"b","reason":{"type":"x"}}`), 1), "a failure that is not told": strings.Replace(allThree, `"failed":0`, `"failed":1`, 1),
		"an error": `{"error":{"type":"x"},"status":400}`,
	} {
		f := frameOf(t, threeHits, &expand.Rerank{Window: 3, Size: 2, SoftWeight: 1})
		wanted, _ := f.Order(softOf(2, 1, 0))
		check.That(t, !f.SetPage(wanted, []byte(page)) && !f.SetInOrder([]byte(page)), "%s: %s is taken", name, page)
		got := WriteFrames([]byte(threeHits), []*Frame{f})
		check.That(t, got == nil, "%s: written %s", name, got)
	}
	for name, page := range map[string]string{
		"one missing": pageWith(one("0.0")), "none": pageWith(), "another index": pageWith(one("0.0"), strings.Replace(two("0.0"), `"t"`, `"u"`, 1)),
		"another id": pageWith(one("0.0"), three("0.0")), "no score": pageWith(one("0.0"), two("null")), "an id that is a number": pageWith(one("0.0"), strings.Replace(two("0.0"), `"2"`, `2`, 1)),
		"an id that is null": pageWith(one("0.0"), strings.Replace(two("0.0"), `"2"`, `null`, 1)), "an empty id": pageWith(one("0.0"), strings.Replace(two("0.0"), `"2"`, `""`, 1)),
		"an index that is a list": pageWith(one("0.0"), strings.Replace(two("0.0"), `"t"`, `[]`, 1)), "one twice": pageWith(one("0.0"), one("0.0")), "empty hits": pageWith("{}", "{}"),
	} {
		f := frameOf(t, threeHits, &expand.Rerank{Window: 3, Size: 2, SoftWeight: 1})
		wanted, _ := f.Order(softOf(2, 1, 0))
		check.That(t, !f.SetPage(wanted, []byte(page)) && WriteFrames([]byte(threeHits), []*Frame{f}) == nil, "%s: %s is taken", name, page)
		check.Must(t, f.SetInOrder([]byte(pageWith(one("1.5"), two("1.25")))), "%s: the engine's order is refused", name)
		got := written(threeHits, f)
		check.That(t, hitIDs(got) == "1 2" && strings.Contains(got, `"max_score":1.5`), "%s: in the engine's order %s", name, got)
	}
}

// failedShard is a value of "_shards".
func failedShard(failure string) string { return `{"failed":1,"failures":[` + failure + `]}` }

// A shard that no node serves is missing from the frame, too.
func TestPagesOfTheShardsThatAreThereAreTaken(t *testing.T) {
	unserved := strings.Replace(allThree, `{"failed":0}`, failedShard(`{"shard":1,"index":"r","node":null,"reason":{"type":"no_shard_available_action_exception","reason":null}}`), 1)
	f := frameOf(t, threeHits, &expand.Rerank{Window: 3, Size: 2, SoftWeight: 1})
	order(t, f, unserved, softOf(0, 1, 2))
	check.Equal(t, `3\n 2`, hitIDs(written(threeHits, f)))
	check.That(t, f.SetInOrder([]byte(unserved)), "the engine's order is refused")
}

// Documents of two routings may have the same id.
func TestHitsWithTheSameIDAreEachPutInOnce(t *testing.T) {
	same := strings.Replace(threeHits, `"_id":"2",`, `"_id":"1","_routing":"yy",`, 1)
	yy := func(score string) string {
		return strings.NewReplacer(`"2"`, `"1"`, `"_source"`, `"_routing":"yy","_source"`).Replace(two(score))
	}
	for _, page := range []string{pageWith(one("0.0"), yy("0.0")), pageWith(yy("0.0"), one("0.0"))} {
		f := frameOf(t, same, &expand.Rerank{Window: 3, Size: 2, SoftWeight: 1})
		order(t, f, page, softOf(1, 2, 0))
		got := written(same, f)
		check.That(t, strings.Contains(got, `"hits":[`+yy("2.0")+`,`+one("1.0")+`]`), "got %s", got)
	}
}

// Names that stand twice in documents, and text that is no UTF-8, are the
// client's.
func TestOddDocumentsStayAsTheyAre(t *testing.T) {
	odd := strings.Replace(two("0.0"), `{"a":"}"}`, "{\"a\":1,\"a\":2,\"_score\":7,\"\xff\":\"\xff\"}", 1)
	f := frameOf(t, threeHits, &expand.Rerank{Window: 3, Size: 1, SoftWeight: 1})
	order(t, f, pageWith(odd), softOf(0, .5, 0))
	got := written(threeHits, f)
	check.That(t, strings.Contains(got, `"hits":[`+strings.Replace(odd, "0.0", "0.5", 1)+`]`), "got %q", got)
}

func TestAnswersThatCannotBeReadAreRefused(t *testing.T) {
	for name, answer := range map[string]string{
		"empty": "", "no object": "[]", "no hits": `{"took":1}`, "hits are no object": `{"hits":[]}`, "no list": `{"hits":{"total":1}}`,
		"list is none": `{"hits":{"hits":{}}}`, "two lists": `{"hits":{"hits":[],"hits":[]}}`, "two of hits": `{"hits":{"hits":[]},"hits":{"hits":[]}}`,
		"two best scores": `{"hits":{"max_score":1,"max_score":2,"hits":[]}}`, "a hit is no object": `{"hits":{"hits":[1]}}`,
		"two ids": `{"hits":{"hits":[{"_index":"a","_id":"1","_id":"2","_score":1}]}}`,
		"broken":  threeHits[:len(threeHits)-30], "more behind": threeHits + "{}", "too many": strings.Replace(threeHits, `[{"_index"`, `[{},{"_index"`, 1),
		"odd shards": strings.Replace(threeHits, `"total":2`, `"total":"2"`, 1),
	} {
		r := &expand.Rerank{Window: 3}
		check.That(t, check.ErrOf(ReadFrames([]byte(answer), expand.EndpointSearch, []*expand.Rerank{r})) != nil, "%s: %s is read", name, answer)
		several := `{"responses":[{},` + answer + `]}`
		check.That(t, check.ErrOf(ReadFrames([]byte(several), expand.EndpointMultiSearch, []*expand.Rerank{nil, r})) != nil, "%s: %s is read", name, several)
	}
}

// threeSearches is an answer to _msearch: the second search failed.
const threeSearches = `{"took":9,"responses":[` + threeHits + `,{"error":{"type":"x","hits":{"hits":[1]}},"status":404},` + threeHits + `],"more":[]}`

// readSeveral reads an answer to _msearch.
func readSeveral(t *testing.T, answer string, reranks ...*expand.Rerank) []*Frame {
	t.Helper()
	frames, err := ReadFrames([]byte(answer), expand.EndpointMultiSearch, reranks)
	check.Must(t, err == nil, "%v: %s", err, answer)
	return frames
}

func TestHitsOfSeveralSearchesAreOrderedEachForItself(t *testing.T) {
	first, third := &expand.Rerank{Window: 3, Size: 2, SoftWeight: 1}, &expand.Rerank{Window: 3, From: 1, Size: 9, SoftWeight: 1}
	frames := readSeveral(t, threeSearches, first, nil, third)
	check.That(t, frames[1] == nil, "the second is %+v", frames[1])
	order(t, frames[0], allThree, softOf(0, 2, 1))
	if got := WriteFrames([]byte(threeSearches), frames); got != nil {
		t.Errorf("written without the page of the third: %s", got)
	}
	check.Must(t, frames[2].SetInOrder([]byte(pageWith(two("1.25"), three("1.0")))), "refused")
	single := func(r *expand.Rerank, of *Frame) string {
		f := frameOf(t, threeHits, r)
		f.scores, f.best = of.scores, of.best
		f.text, f.page = of.text, of.page
		f.ordered = of.ordered
		return written(threeHits, f)
	}
	want := strings.Replace(threeSearches, threeHits, single(first, frames[0]), 1)
	at := strings.LastIndex(want, threeHits)
	want = want[:at] + single(third, frames[2]) + want[at+len(threeHits):]
	got := string(WriteFrames([]byte(threeSearches), frames))
	check.That(t, got == want && hitIDs(got) == `2 3\n 2 3\n`, "got  %s\nwant %s", got, want)
}

func TestAnswersWithoutHitsStayAsTheyAre(t *testing.T) {
	empty := `{"took":1,"hits":{"total":{"value":0},"max_score":null,"hits":[ ]},"x":[]} `
	f := frameOf(t, empty, &expand.Rerank{Window: 3, Size: 3})
	got := written(empty, f)
	check.That(t, len(f.Hits) == 0 && got == empty, "got %s", got)
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
		_, err := ReadFrames([]byte(answer), expand.EndpointMultiSearch, []*expand.Rerank{{Window: 3, Size: 3}, nil})
		check.That(t, err != nil, "%s: %s is read", name, answer)
	}
}

func TestHitsWithoutNamesAreNotScored(t *testing.T) {
	for _, member := range []string{`"_index":"t",`, `"_id":"2",`, `"_version":7,`, `"_seq_no":4,`, `"_score":1.25,`} {
		answer := strings.Replace(threeHits, member, "", 1)
		check.That(t, !frameOf(t, answer, &expand.Rerank{Window: 3, Size: 3}).Named, "named without %s", member)
	}
	null := strings.Replace(threeHits, `"_score":1.25`, `"_score":null`, 1)
	check.That(t, !frameOf(t, null, &expand.Rerank{Window: 3}).Named, "named with the score null")
	check.That(t, !frameOf(t, numberedHits, &expand.Rerank{Window: 3}).Named, "named by numbers that were not asked for")
	for name, answer := range map[string]string{
		"no number": strings.Replace(numberedHits, `[4]`, `[]`, 1), "two numbers": strings.Replace(numberedHits, `[4]`, `[4,5]`, 1),
		"no fields": strings.Replace(numberedHits, `,"fields":{"_seq_no":[4]}`, ``, 1), "no index": strings.Replace(numberedHits, `"_index":"t",`, ``, 1),
		"no score": strings.Replace(numberedHits, `1.25`, `null`, 1), "several shards": strings.Replace(numberedHits, `"total":1`, `"total":2`, 1),
		"no shard": strings.Replace(numberedHits, `"total":1`, `"total":0`, 1), "shards not shown": strings.Replace(numberedHits, `"_shards"`, `"shards"`, 1),
	} {
		check.That(t, !frameOf(t, answer, &expand.Rerank{Window: 3, BySeqNo: true}).Named, "%s: named by numbers", name)
	}
}

// The cosines of vectors are not divided by the best one, and a hit without a
// vector keeps its place.
func TestVectorsOrderHitsByScoreAndCosine(t *testing.T) {
	f := frameOf(t, threeHits, &expand.Rerank{Window: 3, Size: 3, TextWeight: .5, Text: "a"}) // with 1.5, 1.25 and 1
	page, ok := f.Order(cosinesOf(.1, .2, .5))
	check.Must(t, ok, "refused")
	check.Equal(t, []string{"3\n", "1", "2"}, []string{page[0].ID, page[1].ID, page[2].ID})
	check.That(t, f.scores[0] == 1.5 && f.scores[1] > 1.2 && f.scores[1] < 1.3 && f.scores[2] == 1, "%v", f.scores)
	first := expand.HitReason{Index: page[0].Index, ID: "3\n", Place: 3, Score: 1, Cosine: .5, Weight: .5}
	check.Equal(t, first, f.Reasons()[0])

	f = frameOf(t, threeHits, &expand.Rerank{Window: 3, Size: 3, TextWeight: 1, Text: "a"})
	scores := cosinesOf(-.5, 0, .5)
	scores[1].NoVector = true
	page, ok = f.Order(scores)
	check.Must(t, ok, "refused")
	check.Equal(t, []string{"3\n", "2", "1"}, []string{page[0].ID, page[1].ID, page[2].ID})
	check.Equal(t, []float32{1.5, 1.5, 1}, f.scores)
	check.That(t, f.Reasons()[1].Unknown, "%+v", f.Reasons())
}

// The soft cosine orders the hits first, and its order takes the place of the
// engine's scores. Where no vector is there it is the last word.
func TestVectorsOrderHitsAfterTheSoftCosine(t *testing.T) {
	by := &expand.Rerank{Window: 3, Size: 3, SoftWeight: 1, TextWeight: .5, Text: "a", Fields: make([]expand.RerankField, 1)}
	all := []expand.HitScore{{Soft: .5, Cosine: .9}, {Soft: 1, Cosine: .1}, {Soft: .25, Cosine: .1}} // .25 + .45, .5 + .05, .125 + .05
	for name, c := range map[string]struct {
		change func(s []expand.HitScore)
		want   []string
		scores []float32
	}{
		"both":                       {func([]expand.HitScore) {}, []string{"1", "2", "3\n"}, []float32{1.5, 1.357, 1}},
		"no vectors":                 {func(s []expand.HitScore) { s[0].NoVector, s[1].NoVector, s[2].NoVector = true, true, true }, []string{"2", "1", "3\n"}, []float32{1, .5, .25}},
		"one without a vector":       {func(s []expand.HitScore) { s[1].NoVector = true }, []string{"2", "1", "3\n"}, []float32{1.5, 1.5, 1}},
		"one that is not remembered": {func(s []expand.HitScore) { s[2] = expand.HitScore{Unknown: true, Cosine: 1} }, []string{"3\n", "1", "2"}, []float32{1.5, 1.375, 1}},
		"none that is remembered":    {func(s []expand.HitScore) { s[0].Unknown, s[1].Unknown, s[2].Unknown = true, true, true }, []string{"1", "2", "3\n"}, []float32{1.5, 1.074, 1}},
	} {
		f := frameOf(t, threeHits, by)
		scores := slices.Clone(all)
		c.change(scores)
		page, ok := f.Order(scores)
		check.Must(t, ok, "%s: refused", name)
		check.Equal(t, c.want, []string{page[0].ID, page[1].ID, page[2].ID}, name)
		for k, score := range c.scores {
			check.That(t, math.Abs(float64(f.scores[k]-score)) < .001, "%s: %v, want %v", name, f.scores, c.scores)
		}
	}
}

func TestScoresThatAreNoneAreRefused(t *testing.T) {
	for _, w := range []float64{1, .5} {
		for _, s := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
			for _, scores := range [][]expand.HitScore{softOf(0, s, 1), {{Sum: 1}, {Sum: s}, {Sum: 1}}} {
				f := frameOf(t, threeHits, &expand.Rerank{Window: 3, Size: 3, SoftWeight: w, Sums: []expand.Sum{{}}})
				page, ok := f.Order(scores)
				check.That(t, !ok && page == nil && f.scores == nil, "%v is written", s)
			}
		}
		for _, soft := range [][]float64{nil, {1, 2}, {1, 2, 3, 4}} {
			f := frameOf(t, threeHits, &expand.Rerank{Window: 3, Size: 3, SoftWeight: w})
			page, ok := f.Order(softOf(soft...))
			check.That(t, !ok && page == nil && f.scores == nil, "%d scores for three hits are written", len(soft))
		}
	}
	// JSON has no name for what is too large for a float32.
	f := frameOf(t, threeHits, &expand.Rerank{Window: 3, Size: 3, SoftWeight: 1})
	if _, ok := f.Order(softOf(0, math.MaxFloat64, 1)); ok || f.scores != nil {
		t.Error("infinity is written")
	}
	huge := strings.ReplaceAll(threeHits, "1.5,", "1e300,")
	for _, soft := range [][]float64{{1, 1}, {0, 1}} {
		f = frameOf(t, huge, &expand.Rerank{Window: 2, Size: 3, SoftWeight: .5})
		page, ok := f.Order(softOf(soft...))
		check.That(t, !ok, "%v, with %v", page, f.scores)
	}
}

// outside returns what may not change of an answer: all but the lists and best
// scores of its frames.
func outside(answer []byte, frames []*Frame) string {
	var holes []jsonspan.Span
	for _, f := range frames {
		if f != nil {
			holes = append(holes, f.list)
			if !f.maxScore.IsZero() {
				holes = append(holes, f.maxScore)
			}
		}
	}
	slices.SortFunc(holes, func(a, b jsonspan.Span) int { return a.Start - b.Start })
	var out []byte
	at := 0
	for _, h := range holes {
		out = append(out, answer[at:h.Start]...)
		at = h.End
	}
	return string(append(out, answer[at:]...))
}

// oddAnswers are answers to single searches that no engine would write.
var oddAnswers = []string{
	threeHits, numberedHits, `{"hits":{"hits":[]}}`, `{"hits":{"hits":[ {} , {"_score" : 1 } ],"max_score":null}}`,
	"{\n \"hits\" : {\n \"hits\" : [\n {\n \"_index\" : \"a\",\n \"_version\" : 3,\n \"_score\" : 0.5\n },\n {\"_score\":2,\"x\":\"\xff\"} ], \"max_score\" : 2 } }",
	`{"hits":{"max_score":1,"hits":[{"_index":"a","_seq_no":1,"_primary_term":2}]}}`,
	`{"_shards":{"total":1},"hits":{"max_score":-1e999,"hits":[{"_index":"a","_score":-1,"fields":{"_seq_no":[-1]}},{"_index":"a","_score":0,"fields":{"_seq_no":[-1]}}]}}`,
}

// All bytes but those of lists and best scores stay, whatever an answer looks
// like, and the page has the hits that it should have.
func FuzzFramesKeepTheirBytes(f *testing.F) {
	for _, seed := range oddAnswers {
		f.Add([]byte(seed), uint8(1), uint8(2), false)
		f.Add([]byte(seed), uint8(0), uint8(9), true)
	}
	f.Fuzz(func(t *testing.T, answer []byte, from, size uint8, bySeqNo bool) {
		checkFrames(t, answer, expand.EndpointSearch, []bool{true}, expand.Rerank{From: int(from), Size: int(size), BySeqNo: bySeqNo})
	})
}

// The same of several searches, of which some stay as they are.
func FuzzFramesOfSeveralSearchesKeepTheirBytes(f *testing.F) {
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
		checkFrames(t, answer, expand.EndpointMultiSearch, ordered, expand.Rerank{From: int(from), Size: int(size)})
	})
}

// checkFrames orders the hits of those searches in an answer that are to be
// ordered.
func checkFrames(t *testing.T, answer []byte, endpoint expand.Endpoint, ordered []bool, by expand.Rerank) {
	t.Helper()
	by.Window, by.SoftWeight = 50, .5
	reranks := make([]*expand.Rerank, len(ordered))
	for k := range reranks {
		if ordered[k] {
			reranks[k] = &by
		}
	}
	frames, err := ReadFrames(answer, endpoint, reranks)
	if err != nil {
		return
	}
	for _, f := range frames {
		if f != nil {
			checkOrdered(t, f)
		}
	}
	out := WriteFrames(answer, frames)
	again, err := ReadFrames(out, endpoint, reranks)
	check.Must(t, err == nil, "%v: %s", err, out)
	check.Equal(t, outside(out, again), outside(answer, frames), string(answer), string(out))
	for k, f := range frames {
		if f == nil {
			continue
		}
		want := min(max(len(f.Hits)-by.From, 0), by.Size)
		if f.ordered == nil { // the whole list
			want = len(f.Hits)
		}
		check.Equal(t, want, len(again[k].Hits), len(f.Hits))
		check.That(t, f.ordered == nil || slices.IsSortedFunc(again[k].engine, func(a, b float64) int { return int(math.Ceil(b - a)) }), "%s is not in order", out)
	}
}

// Hits that are not remembered keep their places, with the score of the hit
// before them; the others are in order around them.
func TestUnknownHitsKeepTheirPlaces(t *testing.T) {
	for unknown, want := range map[string]string{"": "2 1 0", "0": "0 2 1", "1": "2 1 0", "2": "1 0 2", "0 1": "0 1 2", "0 1 2": "0 1 2"} {
		f := frameOf(t, threeHits, &expand.Rerank{Window: 3, Size: 3, SoftWeight: .5})
		scores := softOf(.25, .5, 1)
		for i := range scores {
			scores[i].Unknown = strings.Contains(unknown, strconv.Itoa(i))
		}
		page, ok := f.Order(scores)
		check.Must(t, ok, "%s", unknown)
		var got []string
		for _, h := range page {
			got = append(got, strconv.Itoa(slices.Index(f.Hits, h)))
		}
		check.Equal(t, want, strings.Join(got, " "), unknown)
		check.That(t, slices.IsSortedFunc(f.scores, func(a, b float32) int { return int(math.Ceil(float64(b - a))) }), "%s: %v", unknown, f.scores)
	}
}

// checkOrdered gives a frame its page, with scores in no order where the hits
// are named.
func checkOrdered(t *testing.T, f *Frame) {
	t.Helper()
	if f.Named && len(f.Hits) <= 50 {
		scores := make([]expand.HitScore, len(f.Hits))
		for i := range scores {
			scores[i] = expand.HitScore{Soft: float64(i * 7 % 5), Unknown: i%4 == 3}
		}
		if page, ok := f.Order(scores); ok {
			hits, score := make([]string, len(page)), "0"
			if f.Rerank.BySeqNo {
				score = "null"
			}
			for k, h := range page {
				index, _ := jsontext.AppendQuote(nil, h.Index)
				id, _ := jsontext.AppendQuote(nil, h.ID)
				hits[len(hits)-1-k] = fmt.Sprintf(`{"_index":%s,"_score":%s,"_id":%s,"_seq_no":%[4]d,"sort":[%[4]d],"_primary_term":1,"_version":1,"fields":{"_seq_no":[1]}}`, index, score, id, h.SeqNo)
			}
			check.That(t, f.SetPage(page, []byte(pageWith(hits...))), "%v are not found in %s", page, hits)
			return
		}
	}
	hits := slices.Repeat([]string{"{}"}, len(f.Hits))
	check.That(t, f.SetInOrder([]byte(pageWith(hits...))), "%s are refused", hits)
}

// Whatever the answer to a search for a page is, what is made of it is an answer
// with hits of it, or none.
func FuzzPages(f *testing.F) {
	f.Add([]byte(allThree))
	for _, seed := range append(oddAnswers, pageWith(one("0.0"), `{"_index":1,"_id":null,"_score":"x","_routing":[]}`), `{"hits":{"hits":[{"_id":"\ud800","_index":"\`) {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		before := bytes.Clone(text)
		frame := frameOf(t, threeHits, &expand.Rerank{Window: 3, Size: 3, SoftWeight: 1})
		page, _ := frame.Order(softOf(.25, .5, 1))
		complete, inOrder := frame.SetPage(page, text), false
		if !complete {
			inOrder = frame.SetInOrder(text)
		}
		out := WriteFrames([]byte(threeHits), []*Frame{frame})
		check.Must(t, (out != nil) == (complete || inOrder), "%v, %v: written %s", complete, inOrder, out)
		check.That(t, bytes.Equal(text, before), "the answer has changed")
		if out == nil {
			return
		}
		var got struct {
			Hits struct {
				Hits []jsontext.Value `json:"hits"`
			} `json:"hits"`
		}
		err := json.Unmarshal(out, &got, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
		check.Must(t, err == nil, "%v: %s", err, out)
		check.That(t, !complete || len(got.Hits.Hits) == 3 && strings.Contains(string(out), `"max_score":1.0`), "got %s", out)
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
