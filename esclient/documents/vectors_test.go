package documents

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/e2e/clustertest"
	"github.com/akin-search/akin/esclient"
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
	f := clustertest.New().Reply("POST /_mtermvectors", http.StatusOK, vectorsAnswer)
	got, err := client(t, f).DocVectors(t.Context(), vectorRequests)
	check.OK(t, err)
	want := []DocTerms{
		{Found: true, Version: 3, Fields: map[string][]TermFreq{"title": {{Term: "cars", Freq: 2}}, "title.en": {{Term: "car", Freq: 2}, {Term: `d"og`, Freq: 1}}}},
		{},
		{Found: true, Version: 1},
	}
	check.Equal(t, want, got)
	for _, part := range []string{
		"realtime=false", "positions=false", "offsets=false", "payloads=false", "term_statistics=false", "field_statistics=true",
		`{"_index":"t","_id":"1","routing":"zz","fields":["title","title.en"]}`, `{"_index":"t","_id":"2","fields":["title"]}`,
	} {
		check.Equal(t, 1, f.Asked(part), part, f.Calls(), "was not asked")
	}
}

// A field counts nothing where it has no words, and -1 where the index does not
// count them.
func TestMeanLengthsOfFields(t *testing.T) {
	const answer = `{"docs":[{"_index":"t","_id":"1","_version":3,"found":true,"term_vectors":{
		"title":{"field_statistics":{"sum_doc_freq":7,"doc_count":4,"sum_ttf":10},"terms":{"cars":{"term_freq":2}}},
		"body":{"terms":{"cars":{"term_freq":1}},"field_statistics":{"sum_ttf":9,"doc_count":3,"sum_doc_freq":7}},
		"uncounted":{"field_statistics":{"sum_doc_freq":7,"doc_count":4,"sum_ttf":-1},"terms":{"cars":{"term_freq":1}}},
		"empty":{"field_statistics":{"sum_doc_freq":0,"doc_count":0,"sum_ttf":0},"terms":{}}}},
		{"_index":"t","_id":"2","found":false},{"_index":"t","_id":"3","_version":1,"found":true}]}`
	got, err := client(t, clustertest.New().Reply("POST /_mtermvectors", http.StatusOK, answer)).DocVectors(t.Context(), vectorRequests)
	check.OK(t, err)
	want := []DocTerms{
		{
			Found: true, Version: 3, MeanLengths: map[string]float64{"title": 2.5, "body": 3},
			Fields: map[string][]TermFreq{"title": {{"cars", 2}}, "body": {{"cars", 1}}, "uncounted": {{"cars", 1}}},
		},
		{},
		{Found: true, Version: 1},
	}
	check.Equal(t, want, got)
}

func TestDocumentsAreNamedByTheirNumbers(t *testing.T) {
	const answer = `{"hits":{"hits":[
		{"_index":"t-1","_id":"b","_version":3,"_seq_no":9,"_primary_term":2,"_score":1.0,"_routing":"r"},
		{"_index":"t-1","_id":"a","_version":1,"_seq_no":4,"_primary_term":1,"_score":1.0}]}}`
	f := clustertest.New().Reply("POST /t-1/_search", http.StatusOK, answer)
	got, err := client(t, f).Named(t.Context(), "t-1", []int64{4, 7, 9})
	check.OK(t, err)
	want := []DocRef{
		{Index: "t-1", ID: "b", Routing: "r", SeqNo: 9, PrimaryTerm: 2, Version: 3},
		{Index: "t-1", ID: "a", SeqNo: 4, PrimaryTerm: 1, Version: 1},
	}
	check.Equal(t, want, got)
	const call = `POST /t-1/_search?filter_path=hits.hits {"_source":false,"query":{"terms":{"_seq_no":[4,7,9]}},` +
		`"seq_no_primary_term":true,"size":3,"track_total_hits":false,"version":true}`
	check.Equal(t, []string{call}, f.Calls())
	f.Reply("POST /t-1/_search", http.StatusOK, `{}`) // of no hits, as filter_path has it
	if got, err := client(t, f).Named(t.Context(), "t-1", []int64{7}); err != nil || len(got) != 0 {
		t.Errorf("none is there: got %v, %v", got, err)
	}
	f.Reply("POST /t-1/_search", http.StatusNotFound, `{"error":{"type":"index_not_found_exception","reason":"no such index [t-1]"},"status":404}`)
	var refused *esclient.Error
	if _, err := client(t, f).Named(t.Context(), "t-1", []int64{7}); !errors.As(err, &refused) || refused.Status != http.StatusNotFound {
		t.Errorf("got %v", err)
	}
}

// All ways of asking send one kind of body and want one kind of answer.
func TestFilterOfTermsDoesNotGoIntoThem(t *testing.T) {
	f := clustertest.New().Reply("POST /_mtermvectors", http.StatusOK, `{"docs":[]}`)
	c := client(t, f)
	_, searched := c.DocVectors(t.Context(), nil)
	_, now := c.TermFreqs(t.Context(), []string{"body"}, nil)
	_, all := c.allTerms(t.Context(), vectorCall{positions: true})
	check.OK(t, errors.Join(searched, now, all))
	filter := url.Values{"filter_path": {"docs._index,docs._id,docs.found,docs._version,docs.error,docs.term_vectors"}}.Encode()
	check.That(t, f.Asked("field_statistics=true") == 1 && f.Asked("field_statistics=false") == 2 && strings.Contains(f.Calls()[0], "field_statistics=true"), "statistics are for the searched documents: %q", f.Calls())
	check.That(t, f.Asked(filter) == 3 && f.Asked("realtime=false") == 1 && f.Asked("positions=false") == 2 && f.Asked("positions=true") == 1, "asked %q", f.Calls())
}

// manyTermsAnswer is the answer for documents of 40,000 terms each.
func manyTermsAnswer(docs int) string {
	var doc strings.Builder
	doc.WriteString(`{"found":true,"_version":1,"term_vectors":{"body":{"terms":{`)
	for i := range 40_000 {
		if i > 0 {
			doc.WriteByte(',')
		}
		fmt.Fprintf(&doc, `"term%d":{"term_freq":1}`, i)
	}
	doc.WriteString(`}}}}`)
	return `{"docs":[` + strings.TrimSuffix(strings.Repeat(doc.String()+",", docs), ",") + `]}`
}

func TestTermsAreBoundedByTheirBytes(t *testing.T) {
	docs := make([]DocRef, 20)
	for n, want := range map[int]error{1: nil, 10: nil, 20: esclient.ErrTooLarge} {
		f := clustertest.New().Reply("POST /_mtermvectors", http.StatusOK, manyTermsAnswer(n))
		got, err := client(t, f).TermFreqs(t.Context(), []string{"body"}, docs[:n])
		check.That(t, errors.Is(err, want) && (err != nil || len(got[n-1].Fields["body"]) == 40_000), "%d documents: %v, want %v", n, err, want)
	}
}

func TestTermFreqsOfDocuments(t *testing.T) {
	// As OpenSearch 2.19.1 wrote it.
	const answer = `{"docs":[
		{"_version":1,"found":true,"term_vectors":{"body.akin":{"terms":{"dog":{"term_freq":1},"3.14":{"term_freq":2}}}}},
		{"_version":1,"found":true},
		{"_version":0,"found":false},
		{"error":{"type":"index_not_found_exception","reason":"no such index [nope]"}}]}`
	f := clustertest.New().Reply("POST /_mtermvectors", http.StatusOK, answer)
	docs := []DocRef{{Index: "t", ID: "1", Routing: "x"}, {Index: "t", ID: "3"}, {Index: "t", ID: "4"}, {Index: "nope", ID: "5"}}
	got, err := client(t, f).TermFreqs(t.Context(), []string{"body.akin"}, docs)
	check.OK(t, err)
	want := []DocTerms{
		{Found: true, Version: 1, Fields: map[string][]TermFreq{"body.akin": {{Term: "dog", Freq: 1}, {Term: "3.14", Freq: 2}}}},
		{Found: true, Version: 1},
		{},
		{Err: &esclient.Error{Status: http.StatusNotFound, Type: "index_not_found_exception", Reason: "no such index [nope]"}},
	}
	check.Equal(t, want, got)
	check.That(t, f.Asked(`"routing":"x"`) == 1 && strings.Count(f.Calls()[0], "routing") == 1 && f.Asked(`"fields":["body.akin"]`) == 1, "asked %q", f.Calls())
	check.That(t, check.ErrOf(client(t, f).TermFreqs(t.Context(), []string{"body.akin"}, docs[:1])) != nil, "an answer of four documents for one")
}

func TestOddAnswersAreNoTerms(t *testing.T) {
	for name, answer := range map[string]string{
		"no object": `[]`, "no list": `{}`, "too few": `{"docs":[]}`, "broken": vectorsAnswer[:300],
		"too many":      strings.Replace(vectorsAnswer, `"docs":[`, `"docs":[{"_id":"1"},`, 1),
		"another":       strings.Replace(vectorsAnswer, `"_id":"2"`, `"_id":"9"`, 1),
		"no frequency":  strings.Replace(vectorsAnswer, `{"term_freq":2}`, `{}`, 1),
		"odd frequency": strings.Replace(vectorsAnswer, `{"term_freq":2}`, `{"term_freq":0}`, 1),
	} {
		got, err := client(t, clustertest.New().Reply("POST /_mtermvectors", http.StatusOK, answer)).DocVectors(t.Context(), vectorRequests)
		check.That(t, err != nil, "%s: got %+v", name, got)
	}
}

// Whatever an answer looks like, what is read of it is of each document that
// was asked for, with frequencies that count something and, where they were
// asked for, as many places.
func FuzzTermsOfDocuments(f *testing.F) {
	f.Add(vectorsAnswer, false)
	f.Add(`{"docs":[{"found":true,"term_vectors":{"title":{"terms":{"\u0000":{"term_freq":1e0}}}}},{},{}]}`, false)
	f.Add(`{"docs":[{"found":true,"term_vectors":{"title":{"terms":{"a":{"tokens":[{"position":3},{"position":1}]}}}}},{},{}]}`, true)
	f.Fuzz(func(t *testing.T, answer string, positions bool) {
		call := vectorCall{positions: positions, docs: vectorRequests}
		n := 0
		err := call.read(strings.NewReader(answer), func(i int, d *vectorDoc) error {
			check.Equal(t, n, i)
			n++
			for field, terms := range d.Fields {
				for k, term := range terms {
					check.That(t, term.Freq >= 1 && (!positions || len(d.positions[field][k]) == int(term.Freq)), "%q is there %d times", term.Term, term.Freq)
				}
			}
			return nil
		})
		check.That(t, err != nil || n == len(vectorRequests), "%d documents", n)
	})
}
