package documents

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/e2e/clustertest"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/mapping"
)

// A page of a scroll that names documents, as OpenSearch 2.19.1 wrote it.
const refAnswer = `{"_scroll_id":"s1","_shards":{"failed":0},"hits":{"hits":[
	{"_index":"t","_id":"2","_version":70,"_seq_no":0,"_primary_term":1},
	{"_index":"t","_id":"1","_version":2,"_seq_no":5,"_primary_term":3,"_routing":"x","fields":{"akin_norm.body":[1.5]}}]}}`

func TestRefsOfDocuments(t *testing.T) {
	f := clustertest.New().Reply("POST /t/_search", http.StatusOK, refAnswer).Reply(
		"POST /_search/scroll", http.StatusOK, `{"_scroll_id":"s1","hits":{"hits":[]}}`).Reply(

		"DELETE /_search/scroll", http.StatusOK, `{}`)

	var got []DocRef
	o := RefOptions{Index: "t", Query: []byte(`{"exists":{"field":"body"}}`), Value: "akin_norm.body"}
	err := client(t, f).ScanRefs(t.Context(), o, func(docs []DocRef) error {
		got = append(got, docs...)
		return nil
	})
	check.OK(t, err)
	want := []DocRef{
		{Index: "t", ID: "2", Version: 70, PrimaryTerm: 1},
		{Index: "t", ID: "1", Routing: "x", Version: 2, SeqNo: 5, PrimaryTerm: 3, HasValue: true},
	}
	check.Equal(t, want, got)
	for _, want := range []string{
		`"_source":false`, `"version":true`, `"seq_no_primary_term":true`, `"docvalue_fields":["akin_norm.body"]`,
		`"query":{"exists":{"field":"body"}}`, "hits.hits._seq_no", "hits.hits.fields",
	} {
		check.That(t, strings.Contains(f.Calls()[0], want), "%s is not in %s", want, f.Calls()[0])
	}
	check.Equal(t, 1, f.Asked("DELETE /_search/scroll"))
	o.Query = []byte(`[]`)
	if err := client(t, f).ScanRefs(t.Context(), o, nil); err == nil || len(f.Calls()) != 3 {
		t.Errorf("a bad query: %v, %d calls", err, len(f.Calls()))
	}
}

func TestUpdatesOfDocuments(t *testing.T) {
	// The first three as OpenSearch 2.19.1 wrote them.
	const answer = `{"items":[
		{"update":{"result":"updated","status":200}},
		{"update":{"status":409,"error":{"type":"version_conflict_engine_exception","reason":"[2]: version conflict"}}},
		{"update":{"status":404,"error":{"type":"document_missing_exception","reason":"[3]: document missing"}}},
		{"update":{"result":"noop","status":200}},
		{"update":{"status":429,"error":{"type":"es_rejected_execution_exception","reason":"full"}}},
		{"update":{"status":404,"error":{"type":"index_not_found_exception","reason":"gone"}}},
		{"update":{"status":500}},
		{}]}`
	f := clustertest.New().Reply("POST /_bulk", http.StatusOK, answer)
	var updates []DocUpdate
	for i := range 8 {
		updates = append(updates, DocUpdate{
			Doc: DocRef{Index: "t", ID: fmt.Sprintf("%d\n", i), SeqNo: int64(i), PrimaryTerm: 1}, Part: []byte(`{"a": 1.50}`),
		})
	}
	updates[0].Doc.Routing = `r"`
	got, err := client(t, f).UpdateDocs(t.Context(), updates)
	check.OK(t, err)
	want := []UpdateResult{
		{Status: Updated},
		{Status: Conflict},
		{Status: Gone},
		{Status: Unchanged},
		{Status: Busy, Err: &esclient.Error{Status: 429, Type: "es_rejected_execution_exception", Reason: "full"}},
		{Status: Refused, Err: &esclient.Error{Status: 404, Type: "index_not_found_exception", Reason: "gone"}},
		{Status: Refused, Err: &esclient.Error{Status: 500}},
		{Status: Refused, Err: &esclient.Error{}},
	}
	check.Equal(t, want, got)
	_, body, _ := strings.Cut(f.Calls()[0], " {")
	lines := strings.Split("{"+body, "\n")
	check.Must(t, len(lines) == 17 && lines[16] == "", "%d lines: %q", len(lines), lines)
	check.Equal(t, `{"update":{"_id":"0\n","_index":"t","if_primary_term":1,"if_seq_no":0,"routing":"r\""}}`, lines[0])
	if want := `{"doc":{"a":1.50}}`; lines[1] != want || strings.Contains(lines[2], "routing") {
		t.Errorf("%s, want %s, then %s", lines[1], want, lines[2])
	}
}

func TestUpdatesThatCannotBeSaid(t *testing.T) {
	f := clustertest.New().Reply("POST /_bulk", http.StatusOK, `{"items":[]}`)
	for _, part := range []string{"", "[]", "{", "{}{}", "1"} {
		_, err := client(t, f).UpdateDocs(t.Context(), []DocUpdate{{Doc: DocRef{Index: "t", ID: "1"}, Part: []byte(part)}})
		check.That(t, err != nil && len(f.Calls()) == 0, "%q: %v, %d calls", part, err, len(f.Calls()))
	}
	_, err := client(t, f).UpdateDocs(t.Context(), []DocUpdate{{Doc: DocRef{Index: "t", ID: "1"}, Part: []byte("{}")}})
	check.Message(t, "0 results", err)
	f.Reply("POST /_bulk", http.StatusServiceUnavailable, `{"error":{"type":"x","reason":"y"}}`)
	if _, err := client(t, f).UpdateDocs(t.Context(), nil); !Interrupted(err) {
		t.Errorf("error %v", err)
	}
}

func TestCopiesAndPartialSourcesAreUncountable(t *testing.T) {
	for text, want := range map[string]string{
		`{}`:                                      "",
		`{"_source":{}}`:                          "",
		`{"_source":{"enabled":true}}`:            "",
		`{"_source":{"enabled":false}}`:           "no _source",
		`{"_source":{"mode":"disabled"}}`:         "no _source",
		`{"_source":{"mode":"synthetic"}}`:        "",
		`{"_source":{"excludes":["x"]}}`:          "part of the _source",
		`{"_source":{"includes":["x"]}}`:          "part of the _source",
		`{"properties":{"a":{"copy_to":"body"}}}`: "copy_to",
		`{"properties":{"o":{"properties":{"a":{"copy_to":["x","body"]}}}}}`:                "copy_to",
		`{"dynamic_templates":[{"t":{"mapping":{"copy_to":"body"}}}]}`:                      "copy_to",
		`{"properties":{"a":{"copy_to":["x","body.y"]},"copy_to":{"properties":{"a":{}}}}}`: "",
	} {
		var m mapping.Mappings
		check.OK(t, json.Unmarshal([]byte(text), &m))
		got := m.Uncountable("body")
		check.That(t, (want == "") == (got == "") && strings.Contains(got, want), "%s: %q, want %q", text, got, want)
	}
}

func TestIndicesAreCountableByTheirAnalysisAlone(t *testing.T) {
	for name, test := range map[string]struct {
		other string // the mapping of the field in the second index
		err   error
	}{
		"alike":                   {`{"type":"text","analyzer":"english"}`, nil},
		"another similarity":      {`{"type":"text","analyzer":"english","similarity":"boolean"}`, nil},
		"another search analyzer": {`{"type":"text","analyzer":"english","search_analyzer":"simple"}`, nil},
		"another analyzer":        {`{"type":"text"}`, mapping.ErrMixed},
		"no text":                 {`{"type":"keyword"}`, mapping.ErrNotText},
	} {
		t.Run(name, func(t *testing.T) {
			answer := func(more string) string {
				one := func(body string) string {
					return `{"mappings":{` + more + `"properties":{"body":` + body + `,"a":{"properties":{"b":{"type":"text"}}}}},"settings":{}}`
				}
				return `{"i":` + one(`{"type":"text","analyzer":"english"}`) + `,"j":` + one(test.other) + `}`
			}
			f := clustertest.New().Reply("GET /x", http.StatusOK, answer(""))
			got, err := client(t, f).Countable(t.Context(), "x", "body")
			check.Must(t, errors.Is(err, test.err), "%v, want %v", err, test.err)
			check.That(t, err != nil || len(got) == 2 && got[0].Index == "i" && got[1].Index == "j", "%+v", got)
			f.Reply("GET /x", http.StatusOK, answer(`"_source":{"mode":"disabled"},`))
			if _, err := client(t, f).Countable(t.Context(), "x", "body"); test.err == nil && !errors.Is(err, ErrUncountable) {
				t.Errorf("without _source: %v", err)
			}
		})
	}
}

func TestTextFieldsOfAnIndexAreCounted(t *testing.T) {
	const answer = `{"docs":{"mappings":{"properties":{
		"title":{"type":"text","copy_to":["all"],"fields":{"akin":{"type":"text"},"raw":{"type":"keyword"}}},
		"all":{"type":"text","fields":{"akin":{"type":"text"}}},"hidden":{"type":"text","index":false},
		"meta":{"properties":{"t":{"type":"text"},"d.e":{"type":"text"}}},
		"number":{"type":"integer","fields":{"text":{"type":"text"}}},
		"parts":{"type":"nested","properties":{"t":{"type":"text"}}}}},"settings":{}}}`
	f := clustertest.New().Reply("GET /docs", http.StatusOK, answer)
	all, err := client(t, f).Countable(t.Context(), "docs", "title")
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	got, err := all[0].OwnTexts()
	want := []string{"meta.d.e", "meta.t", "number.text", "title", "title.akin"}
	diff := cmp.Diff(want, got)
	check.That(t, diff == "" && err == nil, "%v (-want +got):\n%s", err, diff)
}

func TestTermsOfSomeFieldsCannotBeRead(t *testing.T) {
	answer := func(more string) string {
		return `{"i":{"mappings":{` + more + `"properties":{"body":{"type":"text","copy_to":"all","fields":{"akin":{"type":"text"}}},
			"all":{"type":"text","fields":{"akin":{"type":"text"}}},"other":{"type":"alias","path":"body"},"n":{"type":"long"}}},"settings":{}}}`
	}
	f := clustertest.New().Reply("GET /i", http.StatusOK, answer(""))
	c := client(t, f)
	for field, want := range map[string]bool{"body": true, "body.akin": true, "all": false, "all.akin": false, "other": false} {
		got, err := c.Readable(t.Context(), "i", field)
		check.That(t, got == want && err == nil, "%s: %v, %v", field, got, err)
	}
	check.Error(t, mapping.ErrNotText, check.ErrOf(c.Readable(t.Context(), "i", "n")))
	f.Reply("GET /i", http.StatusOK, answer(`"_source":{"excludes":["body"]},`))
	if got, err := c.Readable(t.Context(), "i", "body"); got || err != nil {
		t.Errorf("not in _source: %v, %v", got, err)
	}
}

func TestRefreshOfSomeShardsIsNone(t *testing.T) {
	f := clustertest.New().Reply("POST /i/_refresh", http.StatusOK, `{"_shards":{"total":2,"successful":2,"failed":0}}`)
	check.Error(t, nil, client(t, f).Refresh(t.Context(), "i"))
	f.Reply("POST /i/_refresh", http.StatusOK, `{"_shards":{"total":2,"successful":1,"failed":1}}`)
	err := client(t, f).Refresh(t.Context(), "i")
	check.That(t, Interrupted(err), "a shard failed: %v", err)
}
