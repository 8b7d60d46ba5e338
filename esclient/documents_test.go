package esclient

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const targetMappings = `"mappings":{"properties":{
	"title":{"type":"text","copy_to":["all"],"fields":{"akin":{"type":"text"},"raw":{"type":"keyword"}}},
	"all":{"type":"text","fields":{"akin":{"type":"text"}}},"hidden":{"type":"text","index":false},
	"meta":{"properties":{"t":{"type":"text"},"d.e":{"type":"text"}}},
	"number":{"type":"integer","fields":{"text":{"type":"text"}}},
	"parts":{"type":"nested","properties":{"t":{"type":"text"}}},
	"norm":{"properties":{"title":{"type":"float"},"meta":{"type":"float","doc_values":false},"number":{"type":"double"}}},
	"id":{"properties":{"title":{"type":"keyword"},"meta":{"type":"keyword"},"number":{"type":"keyword"}}}}}`

func TestWriteTargetsKnowTheFields(t *testing.T) {
	f := newFake().reply("GET /docs", http.StatusOK, `{"docs":{"aliases":{},`+targetMappings+`,"settings":{"index.number_of_shards":"1"}}}`)
	targets := NewWriteTargets(f.client(t), time.Minute)
	t.Cleanup(targets.Close)
	for range 2 {
		target, err := targets.Target(t.Context(), "docs")
		if err != nil {
			t.Fatal(err)
		}
		want := &WriteTarget{Index: "docs", Texts: []TextField{
			{"meta.d.e", "meta.d.e"}, {"meta.t", "meta.t"}, {"number.text", "number"}, {"title", "title"}, {"title.akin", "title"},
		}}
		if diff := cmp.Diff(want, target, cmpopts.IgnoreUnexported(WriteTarget{})); diff != "" {
			t.Errorf("the target (-want +got):\n%s", diff)
		}
		stores := map[string]bool{}
		for _, name := range []string{"title", "meta", "number", "other"} {
			stores[name] = target.Stores("norm."+name, "id."+name)
		}
		if diff := cmp.Diff(map[string]bool{"title": true, "meta": false, "number": false, "other": false}, stores); diff != "" {
			t.Errorf("what it stores (-want +got):\n%s", diff)
		}
	}
	if n := f.asked("GET"); n != 1 {
		t.Errorf("%d calls, want 1", n)
	}
	targets.Forget("docs")
	if _, err := targets.Target(t.Context(), "docs"); err != nil || f.asked("GET") != 2 {
		t.Errorf("%d calls after it was forgotten, %v", f.asked("GET"), err)
	}
}

// An alias is switched from one index to the next while their mappings are
// believed.
func TestAliasesAreBelievedForAMoment(t *testing.T) {
	about := func(index string) string { return `{"` + index + `":{"aliases":{"docs":{}},"mappings":{}}}` }
	f := newFake().reply("GET /docs", http.StatusOK, about("v1")).reply("GET /_alias/docs", http.StatusOK, about("v1")).
		reply("GET /v2", http.StatusOK, about("v2"))
	targets := NewWriteTargets(f.client(t), time.Minute)
	t.Cleanup(targets.Close)
	check := func(name, want string) {
		t.Helper()
		if target, err := targets.Target(t.Context(), name); err != nil || target.Index != want {
			t.Fatalf("%v, %v; want %q", target, err, want)
		}
	}
	for range 3 {
		check("docs", "v1")
		check("v2", "v2")
	}
	f.reply("GET /docs", http.StatusOK, about("v2")).reply("GET /_alias/docs", http.StatusOK, about("v2"))
	check("docs", "v1")
	if got := targets.aliased.expiry("v1", nil); got != aliasTime {
		t.Errorf("an alias is believed for %v, want %v", got, aliasTime)
	}
	targets.aliased.cache.Invalidate("docs") // as if that time was over
	check("docs", "v2")
	f.reply("GET /_alias/docs", http.StatusNotFound, `{}`).reply("GET /docs", http.StatusOK, `{"docs":{"mappings":{}}}`)
	targets.aliased.cache.Invalidate("docs")
	check("docs", "docs")
	if got := []int{f.asked("GET /_alias"), f.asked("GET /docs"), f.asked("GET /v2")}; !slices.Equal(got, []int{3, 3, 1}) {
		t.Errorf("asked %v times for the alias, by it and for the index, want 3, 3 and 1", got)
	}
}

func TestWriteTargetsResolveNames(t *testing.T) {
	about := func(aliases, more string) string {
		return fmt.Sprintf(`{"aliases":{%s},"mappings":{%s}}`, aliases, more)
	}
	for _, c := range []struct {
		name, answer string
		status       int
		want         WriteTarget
		err          error
	}{
		{name: "one", answer: `{"x":` + about(`"one":{"index_routing":"r"}`, "") + `}`, want: WriteTarget{Index: "x", Routing: "r", Aliases: []string{"one"}}},
		{
			name: "writes", want: WriteTarget{Index: "y", Aliases: []string{"writes"}},
			answer: `{"x":` + about(`"writes":{}`, "") + `,"y":` + about(`"writes":{"is_write_index":true}`, "") + `}`,
		},
		{name: "several", answer: `{"x":` + about(`"several":{}`, "") + `,"y":` + about(`"several":{}`, "") + `}`, err: ErrNoTarget},
		{name: "stream", answer: `{".ds-stream-1":` + about("", "") + `}`, err: ErrNoTarget},
		{name: "<logs-{now/d}>", answer: `{"logs-2026.11.21":` + about("", "") + `}`, want: WriteTarget{Index: "logs-2026.11.21"}},
		{name: "pattern*", err: ErrNoTarget},
		{name: "a,b", err: ErrNoTarget},
		{name: "_all", err: ErrNoTarget},
		{name: "", err: ErrNoTarget},
		{name: "piped", answer: `{"piped":{"settings":{"index.final_pipeline":"p"}}}`, want: WriteTarget{Index: "piped", Pipelines: true}},
		{name: "unpiped", answer: `{"unpiped":{"settings":{"index.default_pipeline":"_none"}}}`, want: WriteTarget{Index: "unpiped"}},
		{name: "bare", answer: `{"bare":` + about("", `"_source":{"enabled":false}`) + `}`, want: WriteTarget{Index: "bare", PartialSource: true}},
		{name: "none", answer: `{"none":` + about("", `"_source":{"mode":"disabled"}`) + `}`, want: WriteTarget{Index: "none", PartialSource: true}},
		{name: "cut", answer: `{"cut":` + about("", `"_source":{"excludes":["x"]}`) + `}`, want: WriteTarget{Index: "cut", PartialSource: true}},
		{name: "missing", status: http.StatusNotFound, answer: `{}`, err: &Error{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFake().reply("GET ", max(c.status, http.StatusOK), c.answer)
			targets := NewWriteTargets(f.client(t), time.Minute)
			t.Cleanup(targets.Close)
			target, err := targets.Target(t.Context(), c.name)
			if c.err != nil {
				var refused *Error
				told := errors.As(c.err, &refused) && errors.As(err, &refused) && refused.Status == c.status
				if !told && !errors.Is(err, c.err) {
					t.Errorf("error %v, want %v", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, *target, cmpopts.IgnoreUnexported(WriteTarget{})); diff != "" {
				t.Errorf("the target (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDocumentsAreReadWithTheirState(t *testing.T) {
	f := newFake().reply("POST /_mget", http.StatusOK, `{"docs":[
		{"_index":"x","_id":"1","found":true,"_version":3,"_seq_no":7,"_primary_term":2,"_source":{"a":{"b":1}}},
		{"_index":"x","_id":"2","found":false},{"_index":"x","_id":"3","error":{"type":"t"}}]}`)
	got, err := f.client(t).ReadDocs(t.Context(), []DocRef{{Index: "alias", ID: "1", Routing: "r"}, {Index: "x", ID: "2"}, {Index: "x", ID: "3"}}, []string{"a"})
	if err != nil {
		t.Fatal(err)
	}
	want := []StoredDoc{
		{DocRef: DocRef{Index: "x", ID: "1", Routing: "r", Version: 3, SeqNo: 7, PrimaryTerm: 2}, Found: true, Source: jsontext.Value(`{"a":{"b":1}}`)},
		{DocRef: DocRef{Index: "x", ID: "2"}},
		{DocRef: DocRef{Index: "x", ID: "3"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the documents (-want +got):\n%s", diff)
	}
	if f.asked(`{"docs":[{"_id":"1","_index":"alias","_source":["a"],"routing":"r"}`) != 1 {
		t.Errorf("the call is %s", f.calls)
	}
}

// The terms that a document gets in the index, which its stored term vectors
// tell, are those that are had of it before.
func TestEngineMakesTheTermsOfUnstoredDocumentsAsItIndexesThem(t *testing.T) {
	e := newEngine(t)
	text := object{"type": "text", "term_vector": "yes"}
	e.create(t, "unstored", object{
		"number_of_replicas": 0, "number_of_shards": 1,
		"analysis": object{"analyzer": object{
			"odd": object{"type": "custom", "tokenizer": "standard", "filter": []string{"lowercase", "porter_stem", "stop"}, "position_increment_gap": 7},
		}},
	}, object{"dynamic": "strict", "_routing": object{"required": true}, "properties": object{
		"body": object{"type": "text", "term_vector": "yes", "analyzer": "odd", "copy_to": "all", "fields": object{"std": text, "raw": object{"type": "keyword"}}},
		"all":  text, "meta": object{"properties": object{"t": text}},
		"number": object{"type": "float", "fields": object{"text": text}},
	}})
	const all = "unstored"
	docs := []map[string]string{ // JSON by source path
		{"body": `"Running cars, the runner's car"`},
		{"body": `["Running",null,["cars","cars"],12,12.50,1e3,0.10,true,false,12345678901234567890]`},
		{"body": `"caf\u00e9 \ud83d\ude00 \u4e2d\u6587 x.y a_b"`, "meta": `{"t":"the quick"}`, "meta.t": `["brown","fox"]`},
		{"number": `12.50`},
		{"body": `""`},
		{"body": `"` + strings.Repeat("word other ", 1500) + `"`},
	}
	fields := []string{"body", "body.std", "meta.t", "number.text"}
	sources := map[string]string{"body": "body", "body.std": "body", "meta.t": "meta.t", "number.text": "number"}
	asked := make([]UnstoredDoc, len(docs))
	refs := make([]DocRef, len(docs))
	for i, doc := range docs {
		var members []string
		asked[i] = UnstoredDoc{Index: e.index(all), Routing: "r", Texts: map[string][]jsontext.Value{}, Fields: fields}
		for _, name := range slices.Sorted(maps.Keys(doc)) {
			members = append(members, fmt.Sprintf("%q:%s", name, doc[name]))
			if name == "meta" {
				asked[i].Texts["meta.t"] = append(asked[i].Texts["meta.t"], jsontext.Value(`"the quick"`))
				continue
			}
			source := name
			asked[i].Texts[source] = append(asked[i].Texts[source], flatTexts(t, jsontext.Value(doc[name]))...)
		}
		refs[i] = DocRef{Index: e.index(all), ID: strconv.Itoa(i), Routing: "r"}
		path := indexPath(e.index(all), "/_doc/"+refs[i].ID+"?routing=r&refresh=true")
		e.do(t, http.MethodPut, path, lines("{"+strings.Join(members, ",")+"}"))
	}
	for _, f := range fields {
		if sources[f] == "" {
			t.Fatal(f)
		}
	}
	got, err := e.UnstoredTerms(t.Context(), asked)
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range fields {
		want, err := e.TermFreqs(t.Context(), field, refs)
		if err != nil {
			t.Fatal(err)
		}
		for i := range docs {
			if diff := cmp.Diff(want[i].Fields[field], got[i].Fields[field], anyOrder); diff != "" || got[i].Err != nil {
				t.Errorf("%s of %v (-indexed +unstored): %v\n%s", field, docs[i], got[i].Err, diff)
			}
		}
	}
}

// flatTexts returns the values of a JSON value as strings, as they are written.
func flatTexts(t *testing.T, v jsontext.Value) (texts []jsontext.Value) {
	t.Helper()
	switch v.Kind() {
	case jsontext.KindBeginArray:
		var list []jsontext.Value
		if err := decode(v, &list); err != nil {
			t.Fatal(err)
		}
		for _, element := range list {
			texts = append(texts, flatTexts(t, element)...)
		}
	case jsontext.KindNull:
	case jsontext.KindString:
		texts = append(texts, v)
	default:
		texts = append(texts, jsontext.Value(`"`+string(v)+`"`))
	}
	return texts
}

// The values of an update are numbers to the engine, which it writes anew.
func TestEngineIndexesTheNumbersOfAnUpdateAsUnstoredOnes(t *testing.T) {
	e := newEngine(t)
	e.create(t, "numbers", object{"number_of_replicas": 0, "number_of_shards": 1},
		object{"properties": object{"body": object{"type": "text", "term_vector": "yes"}}})
	const numbers = `12.50,1e3,0.10,7,12345678901234567890,-0.0,1e-7`
	update := lines(`{"doc":{"body":[` + numbers + `]},"doc_as_upsert":true}`)
	e.do(t, http.MethodPost, indexPath(e.index("numbers"), "/_update/1"), update)
	e.do(t, http.MethodPut, indexPath(e.index("numbers"), "/_doc/2"), lines(`{"body":"x"}`))
	e.do(t, http.MethodPost, indexPath(e.index("numbers"), "/_update/2?refresh=true"), update)
	doc := UnstoredDoc{Index: e.index("numbers"), Fields: []string{"body"}, Texts: map[string][]jsontext.Value{}}
	for n := range strings.SplitSeq(numbers, ",") {
		doc.Texts["body"] = append(doc.Texts["body"], jsontext.Value(n))
	}
	got, err := e.UnstoredTerms(t.Context(), []UnstoredDoc{doc})
	if err != nil {
		t.Fatal(err)
	}
	want, err := e.TermFreqs(t.Context(), "body", []DocRef{{Index: e.index("numbers"), ID: "1"}, {Index: e.index("numbers"), ID: "2"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range want {
		if diff := cmp.Diff(w.Fields["body"], got[0].Fields["body"], anyOrder); diff != "" {
			t.Errorf("(-indexed +unstored):\n%s", diff)
		}
	}
}
