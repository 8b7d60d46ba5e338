package answer

import (
	"strings"
	"testing"

	"github.com/akin-search/akin/expand"
)

// Answers of Elasticsearch 9.5 to a search with "seq_no_primary_term": true,
// and to the same without it.
const (
	innerNumbered = `{"hits":{"hits":[{"_index":"r","_id":"1","_seq_no":0,"_primary_term":1,"_score":0.13353139,"inner_hits":{"n":{"hits":{` +
		`"total":{"value":1,"relation":"eq"},"max_score":0.6931471,"hits":[{"_index":"r","_id":"1","_nested":{"field":"n","offset":0},` +
		`"_seq_no":-2,"_primary_term":0,"_score":0.6931471}]}}}}]},"aggregations":{"h":{"hits":{"total":{"value":3,"relation":"eq"},"max_score":0.13353139,` +
		`"hits":[{"_index":"r","_id":"1","_seq_no":-2,"_primary_term":0,"_score":0.13353139,"inner_hits":{"n":{"hits":{"total":{"value":1,"relation":"eq"},` +
		`"max_score":0.6931471,"hits":[{"_index":"r","_id":"1","_nested":{"field":"n","offset":0},"_seq_no":-2,"_primary_term":0,"_score":0.6931471}]}}}}]}}}}`
	innerPlain = `{"hits":{"hits":[{"_index":"r","_id":"1","_score":0.13353139,"inner_hits":{"n":{"hits":{` +
		`"total":{"value":1,"relation":"eq"},"max_score":0.6931471,"hits":[{"_index":"r","_id":"1","_nested":{"field":"n","offset":0},` +
		`"_score":0.6931471}]}}}}]},"aggregations":{"h":{"hits":{"total":{"value":3,"relation":"eq"},"max_score":0.13353139,` +
		`"hits":[{"_index":"r","_id":"1","_score":0.13353139,"inner_hits":{"n":{"hits":{"total":{"value":1,"relation":"eq"},` +
		`"max_score":0.6931471,"hits":[{"_index":"r","_id":"1","_nested":{"field":"n","offset":0},"_score":0.6931471}]}}}}]}}}}`
)

func TestHitsWithinHitsAreAsWithoutSequenceNumbers(t *testing.T) {
	r := &expand.Rerank{Window: 1, Size: 1}
	if got := string(written(reread(t, innerNumbered, r), nil)); got != innerPlain {
		t.Errorf("got\n%s\nwant\n%s", got, innerPlain)
	}
	scored := strings.Replace(innerPlain, `"_score":0.13353139,"inner_hits"`, `"_score":0.5,"inner_hits"`, 1)
	if got := string(written(reread(t, innerNumbered, r), []float32{.5})); got != scored {
		t.Errorf("with scores\n%s\nwant\n%s", got, scored)
	}
	asked := &expand.Rerank{Window: 1, Size: 1, KeepSeqNo: true}
	if got := string(written(reread(t, innerNumbered, asked), nil)); got != innerNumbered {
		t.Errorf("where the client asked for them\n%s\nwant\n%s", got, innerNumbered)
	}
}

// An answer of OpenSearch 2.19, shortened, with "version" and
// "seq_no_primary_term": true; the suggesters have names that mean something
// else elsewhere.
const suggestedNumbered = `{"hits":{"hits":[]},"suggest":{"t":[{"text":"carr","offset":0,"length":4,"options":[{"text":"car","score":0.6666666,"freq":1}]}],` +
	`"_version":[{"text":"c","offset":0,"length":1,"options":[{"text":"car","_index":"h","_id":"1","_version":1,"_seq_no":0,"_primary_term":1,"_score":1.0,` +
	`"_source":{"_version":1,"_seq_no":5}},{"text":"cars","_index":"h","_id":"2" , "_version":4,"_seq_no":2,"_primary_term":1,"_score":1.0}]}],"_source":[]}}`

func TestSuggestedDocumentsAreAsWithoutVersions(t *testing.T) {
	const version, numbers = `,"_version":1,"_seq_no"`, `,"_seq_no":0,"_primary_term":1`
	unversioned := strings.NewReplacer(version, `,"_seq_no"`, ` , "_version":4`, "").Replace(suggestedNumbered)
	for name, tt := range map[string]struct {
		rerank expand.Rerank
		want   string
	}{
		"neither asked for": {expand.Rerank{}, strings.NewReplacer(numbers, "", `,"_seq_no":2,"_primary_term":1`, "").Replace(unversioned)},
		"numbers asked for": {expand.Rerank{KeepSeqNo: true}, unversioned},
		"both asked for":    {expand.Rerank{KeepSeqNo: true, KeepVersion: true}, suggestedNumbered},
	} {
		t.Run(name, func(t *testing.T) {
			tt.rerank.Window, tt.rerank.Size = 1, 1
			if got := string(written(reread(t, suggestedNumbered, &tt.rerank), nil)); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
	for _, odd := range []string{`7`, `{"a":{"options":[{"text":"b","_version":1}]}}`, `[]`, `{"a":[{"options":{"_version":1}}]}`, `{"a":[["_version"]]}`} {
		answer := `{"hits":{"hits":[]},"suggest":` + odd + `}`
		if got := string(written(reread(t, answer, &expand.Rerank{Window: 1, Size: 1}), nil)); got != answer {
			t.Errorf("got\n%s\nwant\n%s", got, answer)
		}
	}
}

func TestNumbersOfWritesAndOfTheClientStay(t *testing.T) {
	for _, aggregations := range []string{
		`{"h":{"hits":{"hits":[{"_index":"r","_seq_no":7,"_primary_term":1,"_score":1.0}]}}}`,
		`{"h":{"hits":{"hits":[{"_index":"r","_source":{"a":1,"_seq_no":-2,"_primary_term":0},"fields":{"a":[1],"_seq_no":-2}}]}}}`,
		`{"h":{"buckets":[{"key":"\"_seq_no\":-2","doc_count":1,"_seq_no":"-2"}]}}`,
		`{"_seq_no":-2}`,
	} {
		answer := `{"hits":{"hits":[]},"aggregations":` + aggregations + `,"profile":{}}`
		if got := string(written(reread(t, answer, &expand.Rerank{Window: 1, Size: 1}), nil)); got != answer {
			t.Errorf("got\n%s\nwant\n%s", got, answer)
		}
	}
}
