package demo

import (
	"fmt"
	"maps"
	"math"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/akin-search/akin/e2e/check"
)

// tolerance is the largest relative difference of two scores that counts as
// equal.
const tolerance = 1e-4

// comparison holds the same documents in this engine and in a real one.
type comparison struct {
	real, ours *client
	prefix     string  // of the index names
	worst      float64 // the largest relative difference of scores seen
	compared   int     // scores above 0
}

// newComparison loads the corpus, and an index of odd documents, into both.
func newComparison(t *testing.T) *comparison {
	t.Helper()
	url := strings.TrimSuffix(os.Getenv("AKIN_E2E_ENGINE_URL"), "/")
	if url == "" {
		t.Skip("set AKIN_E2E_ENGINE_URL to the address of an Elasticsearch or OpenSearch to compare with, " +
			"for example http://127.0.0.1:9200 (it gets indices named akin-demo-test-*, and loses them again); " +
			"the tests in e2e do so with the engines that they start")
	}
	c := &comparison{
		real: &client{url, &http.Client{Timeout: 30 * time.Second}}, ours: newClient(),
		prefix: fmt.Sprintf("akin-demo-test-%d-", os.Getpid()),
	}
	if v, _ := at(c.real.ok(t, "GET", "/", nil), "version", "number").(string); strings.HasPrefix(v, "3.") {
		t.Skip("OpenSearch 3 scores without the factor k1+1")
	}
	for _, index := range Indices() {
		c.load(t, index, map[string]any{"title": text(), "body": text()}, corpus(index))
	}
	c.load(t, "odd", map[string]any{
		"title": text(), "body": map[string]any{"type": "text"}, "tag": map[string]any{"type": "text"},
	}, oddDocs())
	return c
}

// oddDocs are texts of every length up to 100 words and some longer, to go
// through the steps of the one-byte lengths, with repeated words, arrays,
// numbers and missing fields.
func oddDocs() []loaded {
	var docs []loaded
	lengths := []int{117, 128, 133, 200, 255, 256, 300, 511, 700, 1029, 2000, 5001}
	for n := 1; n <= 100; n++ {
		lengths = append(lengths, n)
	}
	for i, n := range lengths {
		words := make([]string, n)
		for k := range words {
			words[k] = fmt.Sprintf("w%d", (i*31+k*k)%23)
		}
		d := map[string]any{"body": strings.Join(words, " ")}
		if i%2 == 0 {
			d["tag"] = []string{"even", fmt.Sprintf("t%d", i%5), "even"}
			d["title"] = []string{"Title of the " + words[0], "again " + words[n/2]}
		} else {
			d["tag"] = "odd"
		}
		docs = append(docs, loaded{fmt.Sprintf("odd-%03d", i), d})
	}
	return docs
}

func (c *comparison) load(t *testing.T, index string, properties map[string]any, docs []loaded) {
	t.Helper()
	name := c.prefix + index
	c.ours.load(t, name, properties, docs...)
	c.real.do(t, "DELETE", "/"+name, nil)
	c.real.load(t, name, properties, docs...)
	t.Cleanup(func() {
		request := check.Got(http.NewRequest(http.MethodDelete, c.real.base+"/"+name, http.NoBody))(t)
		response, err := c.real.http.Do(request)
		check.OK(t, err)
		response.Body.Close()
	})
}

// both sends one request to both engines and returns the two answers. The
// statuses have to agree.
func (c *comparison) both(t *testing.T, path string, body any) (theirs, ours any) {
	t.Helper()
	theirStatus, theirs := c.real.do(t, "POST", path, body)
	ourStatus, ours := c.ours.do(t, "POST", path, body)
	check.Equal(t, ourStatus, theirStatus, path, body, ours, theirs)
	return theirs, ours
}

// search compares all hits, scores and the total of one query, with these
// rescorers if there are any.
func (c *comparison) search(t *testing.T, index string, query map[string]any, rescore ...any) {
	t.Helper()
	body := map[string]any{"query": query, "size": 1000, "_source": false, "track_total_hits": true}
	if len(rescore) > 0 {
		body["rescore"] = rescore
	}
	theirs, ours := c.both(t, "/"+c.prefix+index+"/_search", body)
	check.Equal(t, at(theirs, "hits", "total"), at(ours, "hits", "total"), index, query)
	want, got := scores(theirs), scores(ours)
	for id, w := range want {
		difference := math.Abs(got[id] - w)
		if w != 0 {
			difference /= math.Abs(w)
		}
		c.worst = max(c.worst, difference)
		if w > 0 {
			c.compared++
		}
		if difference > tolerance {
			t.Errorf("%s %v: %s scores %v, in a real engine %v", index, query, id, got[id], w)
		}
	}
	check.Equal(t, slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got)), index, query)
}

// report logs how much was compared, and fails if nothing was.
func (c *comparison) report(t *testing.T) {
	t.Helper()
	check.That(t, c.compared != 0, "no score above 0 was compared")
	t.Logf("%d scores compared, the largest relative difference is %.2g", c.compared, c.worst)
}

// queriesOf returns queries of every kind for the text of one judged query.
func queriesOf(words string) []map[string]any {
	first, rest, _ := strings.Cut(words, " ")
	match := func(field string, more map[string]any) map[string]any {
		inner := map[string]any{"query": words}
		maps.Copy(inner, more)
		return map[string]any{"match": map[string]any{field: inner}}
	}
	term := func(value string, boost float64) map[string]any {
		return map[string]any{"term": map[string]any{"body": map[string]any{"value": value, "boost": boost}}}
	}
	multi := func(more map[string]any) map[string]any {
		inner := map[string]any{"query": words, "fields": []string{"title^2.5", "body"}}
		maps.Copy(inner, more)
		return map[string]any{"multi_match": inner}
	}
	both := []any{match("title", nil), match("body", map[string]any{"boost": 0.3})}
	return []map[string]any{
		match("body", nil),
		match("body", map[string]any{"operator": "and"}),
		match("body", map[string]any{"minimum_should_match": 2}),
		match("body", map[string]any{"minimum_should_match": "-25%", "boost": 1.7}),
		match("body", map[string]any{"minimum_should_match": "1<60% 3<-2"}),
		{"match": map[string]any{"body": words + " " + first}},
		multi(nil),
		multi(map[string]any{"tie_breaker": 0.3}),
		multi(map[string]any{"type": "most_fields", "operator": "and"}),
		{"multi_match": map[string]any{"query": words, "minimum_should_match": "50%"}},
		{"bool": map[string]any{"must": both[:1], "should": both[1:], "boost": 2.5}},
		{"bool": map[string]any{"should": both, "filter": match("body", nil), "minimum_should_match": 1}},
		{"bool": map[string]any{"should": both, "filter": match("body", nil)}},
		{"bool": map[string]any{"should": append([]any{term("order", 0.5)}, both...), "minimum_should_match": "-1"}},
		{"bool": map[string]any{"must": match("body", nil), "must_not": []any{term("order", 1), match("title", nil)}}},
		{"bool": map[string]any{"must_not": match("body", nil)}},
		{"bool": map[string]any{"filter": match("body", nil)}},
		{"dis_max": map[string]any{"queries": both, "tie_breaker": 0.35, "boost": 1.1}},
		{"dis_max": map[string]any{"queries": []any{
			term("order", 1), term("account", 0.25), map[string]any{"dis_max": map[string]any{"queries": both}},
		}}},
		{"constant_score": map[string]any{"filter": match("body", nil), "boost": 1.5}},
		{"function_score": map[string]any{"query": match("body", nil), "boost": 3}},
		{"function_score": map[string]any{"query": match("body", nil), "weight": 2}},
		{"function_score": map[string]any{"query": match("body", nil), "functions": []any{
			map[string]any{"filter": match("title", nil), "weight": 3}, map[string]any{"weight": 0.5},
		}}},
		{"query_string": map[string]any{"query": words, "default_field": "body"}},
		{"query_string": map[string]any{"query": words, "fields": []string{"title^3", "body"}, "default_operator": "and"}},
		{"query_string": map[string]any{"query": words}},
		{"match": map[string]any{"nowhere": rest}},
		{"match_all": map[string]any{"boost": 1.2}},
	}
}

// saturated returns a query in the form that akin writes with its scripts.
func saturated(weight float64) map[string]any {
	inverted := func(term string, m, b float64) any {
		return map[string]any{"script_score": map[string]any{
			"query":  map[string]any{"term": map[string]any{"body": term}},
			"script": map[string]any{"source": ScriptInvert, "lang": "painless", "params": map[string]any{"m": m, "c": 0.999, "b": b}},
		}}
	}
	group := func(boost float64, terms ...any) any {
		return map[string]any{"script_score": map[string]any{
			"query":  map[string]any{"bool": map[string]any{"should": terms}},
			"script": map[string]any{"source": ScriptSaturate, "params": map[string]any{"m": weight}},
			"boost":  boost,
		}}
	}
	return map[string]any{"bool": map[string]any{
		"filter": map[string]any{"match_all": map[string]any{}},
		"should": []any{
			group(1, inverted("order", 8.1, 1), inverted("parcel", 9, 0.12), inverted("account", 7, 0.3)),
			group(1.5, inverted("light", 6.6, 1), inverted("lamp", 9.5, 0.25)),
			group(0.5, inverted("even", 6.6, 1), inverted("absent", 9.5, 0.25)),
		},
	}}
}

func TestScoresAreThoseOfARealEngine(t *testing.T) {
	c := newComparison(t)
	for i, q := range Queries() {
		queries := queriesOf(q.Text)
		if i > 7 { // the rest in the forms that matter most
			queries = []map[string]any{queries[0], queries[8], queries[18]}
		}
		for _, query := range queries {
			c.search(t, q.Index, query)
		}
	}
	term := func(field string, value any) map[string]any {
		return map[string]any{"term": map[string]any{field: value}}
	}
	for _, query := range []map[string]any{
		term("body", "w1"), term("body", map[string]any{"value": "w7", "boost": 0.04}),
		{"match": map[string]any{"body": "w1 w2 w3 w20"}},
		{"match": map[string]any{"title": "title of again w3 again"}},
		term("tag", "even"), term("tag", map[string]any{"value": "t2", "boost": 3}),
		{"match": map[string]any{"tag": "even"}},
		{"bool": map[string]any{}},
		{"bool": map[string]any{"should": []any{term("tag", "t3"), term("body", "w3"), term("tag", "odd")}, "minimum_should_match": 2}},
	} {
		c.search(t, "odd", query)
	}
	c.report(t)
}

func TestScriptedScoresAreThoseOfARealEngine(t *testing.T) {
	c := newComparison(t)
	probe := map[string]any{"query": saturated(1)}
	if status, answer := c.real.do(t, "POST", "/"+c.prefix+"help/_search", probe); status != http.StatusOK {
		text := fmt.Sprint(answer)
		check.Must(t, strings.Contains(text, "script"), "status %d: %v", status, answer)
		t.Skip("the real engine runs no scripts")
	}
	for _, index := range Indices() {
		for _, weight := range []float64{0.5, 6.25} {
			c.search(t, index, saturated(weight))
		}
	}
	c.both(t, "/"+c.prefix+"help/_search", map[string]any{"query": map[string]any{"script_score": map[string]any{
		"query": map[string]any{"match_all": map[string]any{}}, "script": map[string]any{"source": "no such script"},
	}}})
	c.report(t)
}

func TestRescoredHitsAreThoseOfARealEngine(t *testing.T) {
	c := newComparison(t)
	rescorer := func(window int, weights map[string]any) map[string]any {
		maps.Copy(weights, map[string]any{"rescore_query": map[string]any{"match": map[string]any{"title": "order account delivery"}}})
		return map[string]any{"window_size": window, "query": weights}
	}
	for _, index := range Indices() {
		for _, words := range []string{"order", "how to change an order", "the account and the delivery"} {
			query := map[string]any{"match": map[string]any{"body": words}}
			c.search(t, index, query, rescorer(3, map[string]any{}))
			c.search(t, index, query, rescorer(20, map[string]any{"query_weight": 1e-6, "rescore_query_weight": 2}))
			c.search(t, index, query, rescorer(30, map[string]any{"query_weight": 0}), rescorer(5, map[string]any{"query_weight": 0.5, "score_mode": "total"}))
		}
	}
	c.both(t, "/"+c.prefix+"help/_search", map[string]any{"rescore": rescorer(3, map[string]any{}), "sort": []any{"_doc"}})
	c.both(t, "/"+c.prefix+"help/_search", map[string]any{"rescore": map[string]any{"window_size": 3, "query": map[string]any{}}})
	c.report(t)
}

func TestTermsAreThoseOfARealEngine(t *testing.T) {
	c := newComparison(t)
	texts := oddTexts()
	for _, index := range Indices() {
		for i, d := range Docs(index) {
			if i%4 == 0 {
				texts = append(texts, d.Title+" "+d.Body)
			}
		}
	}
	requests := []map[string]any{{"field": "body", "text": []string{"The cars' owners are in", "a fox's\tden of", "€ 3"}}}
	for _, name := range []string{"standard", "english", "keyword"} {
		requests = append(requests, map[string]any{"analyzer": name, "text": []string{"The end of", "", "the", "é 𝕏 next"}})
		for _, text := range texts {
			requests = append(requests, map[string]any{"analyzer": name, "text": text})
		}
	}
	for _, body := range requests {
		theirs, ours := c.both(t, "/"+c.prefix+"help/_analyze", body)
		check.Equal(t, withoutTypes(theirs), ours, body)
	}
}

// withoutTypes returns an answer of _analyze without the types of the tokens,
// which akin does not read and the embedded engine does not have.
func withoutTypes(answer any) any {
	tokens, _ := at(answer, "tokens").([]any)
	for _, token := range tokens {
		delete(token.(map[string]any), "type")
	}
	return answer
}

// oddTexts are texts that tokenizers and stemmers are known to differ on.
func oddTexts() []string {
	suffixes := "sses ies ss s eed ed ing at bl iz ational tional enci anci izer bli alli entli eli ousli ization ation ator " +
		"alism iveness fulness ousness aliti iviti biliti logi icate ative alize iciti ical ful ness al ance ence er ic able " +
		"ible ant ement ment ent sion tion ion ou ism ate iti ous ive ize e ll y"
	var stems []string
	for s := range strings.FieldsSeq(suffixes) {
		for _, p := range []string{"", "a", "b", "y", "by", "ab", "tr", "oo", "tree", "qu"} {
			stems = append(stems, p+s, p+s+"s", p+s+"ly")
		}
	}
	return []string{
		strings.Join(stems, " "), "", "   ", "foo_bar _ __ _a a_ 1_2 _1",
		"it's O'Neil's dogs' James's 's \u2019s x\u2019s X\u2019S \u2019S don\u2019t won't rock'n'roll '90s 1's",
		"3.14 1,000 1.2.3 a.b.c U.S.A. e-mail re-run C++ C# .NET 10:30 12:30pm 5kg kg5 1st x2 2x 1'000 a,b a:b",
		"über Ünïcode straße İstanbul ΣΊΣΥΦΟΣ ΜΆΪΟΣ Ⱥ Ⱦ \u00e6on naïve ab\u0301c a\u200db soft\u00adhyphen",
		"日本語テスト ひらがな カタカナ 漢字 中文 한국어 시험 テストtest", "עברית צה\"ל العربية हिन्दी भाषा ² ½ Ⅷ",
		"a\u00a0b a\u2007b a\u0085b a\u2028b a\u001cb a\u200bb\tc\r\nd", "before \ufffd after a\ufffdb",
		strings.Repeat("x", 256) + " " + strings.Repeat("y", 600) + " " + strings.Repeat("é", 300),
		"user@example.com http://www.example.com/a?b=c#d foo/bar C:\\dir Tom & Jerry; a+b=c <tag> [x] {y}",
	}
}

func TestStatisticsAreThoseOfARealEngine(t *testing.T) {
	c := newComparison(t)
	terms := []string{"order", "parcel", "refund", "light", "nowhere", "w1", "order"}
	for _, index := range []string{"help", "catalogue", "knowledge", "odd"} {
		for _, o := range []map[string]any{{"payloads": false}, {"fields": []string{"body"}}} {
			body := map[string]any{"doc": map[string]any{"body": terms, "title": terms}, "per_field_analyzer": map[string]any{"body": "keyword", "title": "keyword"}, "term_statistics": true, "positions": false, "offsets": false}
			maps.Copy(body, o)
			theirs, ours := c.both(t, "/"+c.prefix+index+"/_termvectors", body)
			check.Equal(t, at(theirs, "term_vectors"), at(ours, "term_vectors"), index, o)
		}
	}
	for _, q := range Queries()[:5] {
		body := map[string]any{"query": map[string]any{"match": map[string]any{"body": q.Text}}}
		theirs, ours := c.both(t, "/"+c.prefix+"*/_count", body)
		check.Equal(t, at(theirs, "count"), at(ours, "count"), q.Text)
	}
}

func TestExplanationsAreThoseOfARealEngine(t *testing.T) {
	c := newComparison(t)
	for _, query := range []map[string]any{
		{"term": map[string]any{"body": map[string]any{"value": "w3", "boost": 2}}},
		{"bool": map[string]any{"should": []any{map[string]any{"term": map[string]any{"body": "w3"}}, map[string]any{"term": map[string]any{"body": "w5"}}}}},
		{"match": map[string]any{"body": "w1 w2 w3"}},
		{"dis_max": map[string]any{"tie_breaker": 0.5, "queries": []any{map[string]any{"match": map[string]any{"body": "w1"}}, map[string]any{"match": map[string]any{"body": "w2 w3"}}}}},
	} {
		body := map[string]any{"query": query, "explain": true, "size": 3, "_source": false}
		theirs, ours := c.both(t, "/"+c.prefix+"odd/_search", body)
		want, got := map[any]any{}, map[any]any{}
		for i := range 3 {
			want[at(theirs, "hits", "hits", i, "_id")] = at(theirs, "hits", "hits", i, "_explanation")
			got[at(ours, "hits", "hits", i, "_id")] = at(ours, "hits", "hits", i, "_explanation")
		}
		near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) <= tolerance*math.Abs(a) })
		// dis_max lists its clauses in the order of a hash map there.
		anyOrder := cmpopts.SortSlices(func(a, b any) bool { return fmt.Sprint(at(a, "description")) < fmt.Sprint(at(b, "description")) })
		check.Equal(t, want, got, anyOrder, near, query)
	}
}
