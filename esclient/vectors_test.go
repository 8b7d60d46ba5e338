package esclient

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// vectorsAnswer is what OpenSearch 2.19 answers for a document with a
// routing, one that is not there, and one without a term in the field.
const vectorsAnswer = `{"docs":[
	{"_index":"t","_id":"1","_version":3,"found":true,"took":12,"term_vectors":{
		"title.en":{"terms":{"car":{"term_freq":2},"d\"og":{"term_freq":1}}},"title":{"terms":{"cars":{"term_freq":2}}},"other":{"terms":{}}}},
	{"_index":"t","_id":"2","_version":0,"found":false,"took":0},
	{"_index":"t","_id":"3","_version":1,"found":true,"took":1,"term_vectors":{}}]}`

var vectorRequests = []VectorRequest{
	{Index: "t", ID: "1", Routing: "zz", Fields: []string{"title", "title.en"}},
	{Index: "t", ID: "2", Fields: []string{"title"}},
	{Index: "t", ID: "3", Fields: []string{"title"}},
}

func TestTermsOfDocuments(t *testing.T) {
	f := newFake().reply("POST /_mtermvectors", http.StatusOK, vectorsAnswer)
	got, err := f.client(t).DocVectors(t.Context(), vectorRequests)
	if err != nil {
		t.Fatal(err)
	}
	want := []DocVector{
		{Found: true, Version: 3, Fields: [][]FieldTerm{{{"cars", 2}}, {{"car", 2}, {`d"og`, 1}}}},
		{Fields: [][]FieldTerm{nil}},
		{Found: true, Version: 1, Fields: [][]FieldTerm{nil}},
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for _, part := range []string{
		"realtime=false", "positions=false", "offsets=false", "payloads=false", "term_statistics=false", "field_statistics=false",
		`{"_index":"t","_id":"1","routing":"zz","fields":["title","title.en"]}`, `{"_index":"t","_id":"2","fields":["title"]}`,
	} {
		if f.asked(part) != 1 {
			t.Errorf("%q was not asked for: %q", part, f.calls)
		}
	}
}

func TestTermsOfDocumentsThatTheClusterRefuses(t *testing.T) {
	const gone = `{"docs":[{"_index":"t","_id":"1","error":{"root_cause":[],"type":"index_not_found_exception","reason":"no such index [t]"}}]}`
	_, err := newFake().reply("POST /_mtermvectors", http.StatusOK, gone).client(t).DocVectors(t.Context(), vectorRequests[:1])
	var refused *Error
	if !errors.As(err, &refused) || refused.Type != "index_not_found_exception" {
		t.Errorf("got %v", err)
	}
}

func TestOddAnswersAreNoTerms(t *testing.T) {
	for name, answer := range map[string]string{
		"no object": `[]`, "no list": `{}`, "too few": `{"docs":[]}`, "broken": vectorsAnswer[:300],
		"too many":      strings.Replace(vectorsAnswer, `"docs":[`, `"docs":[{"_id":"1"},`, 1),
		"another":       strings.Replace(vectorsAnswer, `"_id":"2"`, `"_id":"9"`, 1),
		"no frequency":  strings.Replace(vectorsAnswer, `{"term_freq":2}`, `{}`, 1),
		"odd frequency": strings.Replace(vectorsAnswer, `{"term_freq":2}`, `{"term_freq":0}`, 1),
	} {
		if got, err := newFake().reply("POST /_mtermvectors", http.StatusOK, answer).client(t).DocVectors(t.Context(), vectorRequests); err == nil {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

// Whatever an answer looks like, what is read of it has one entry for each
// document and each field, and frequencies that count something.
func FuzzTermsOfDocuments(f *testing.F) {
	f.Add(vectorsAnswer)
	f.Add(`{"docs":[{"found":true,"term_vectors":{"title":{"terms":{"\u0000":{"term_freq":1e0}}}}},{},{}]}`)
	f.Fuzz(func(t *testing.T, answer string) {
		got, err := readVectors([]byte(answer), vectorRequests)
		if err != nil {
			return
		}
		if len(got) != len(vectorRequests) {
			t.Fatalf("%d documents", len(got))
		}
		for i, v := range got {
			if len(v.Fields) != len(vectorRequests[i].Fields) {
				t.Errorf("%d fields of document %d", len(v.Fields), i)
			}
			for _, terms := range v.Fields {
				for _, term := range terms {
					if term.Freq < 1 {
						t.Errorf("%q is there %d times", term.Term, term.Freq)
					}
				}
			}
		}
	})
}
