package esclient

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/e2e/clustertest"
)

func TestTextIndicesListsAliasesAndLeavesOutWhatHasNoText(t *testing.T) {
	f := clustertest.New().Reply("GET /docs*,gone", http.StatusOK, `{"docs-1":{"aliases":{"live":{},"all":{"filter":{}}},`+
		`"mappings":{"properties":{"title":{"type":"text","fields":{"raw":{"type":"keyword"},"en":{"type":"text"}}},"o":{"properties":{"b":{"type":"text"}}}}}},`+
		`"docs-2":{"aliases":{"all":{}},"mappings":{"properties":{"other":{"type":"text"},"n":{"type":"long"}}}},`+
		`"docs-3":{"mappings":{"properties":{"v":{"type":"dense_vector","index_options":{"type":"int8_hnsw"}}}}},"docs-4":{},`+
		`"docs-5":{"settings":{"index.verified_before_close":"true"},"mappings":{"properties":{"t":{"type":"text"}}}}}`)

	got, err := client(t, f).TextIndices(t.Context(), "docs*,gone")
	want := []TextIndex{
		{"all", []string{"o.b", "other", "title", "title.en"}},
		{"docs-1", []string{"o.b", "title", "title.en"}},
		{"docs-2", []string{"other"}},
		{"live", []string{"o.b", "title", "title.en"}},
	}
	diff := cmp.Diff(want, got)
	check.That(t, err == nil && diff == "", "%v (-want +got):\n%s", err, diff)
}

func TestSampleTextIsTheFirstWordsOfADocument(t *testing.T) {
	for _, c := range []struct{ name, fields, want string }{
		{"a text", `{"body":["one two\nthree"]}`, "one two three"},
		{"a long text", `{"body":["1 2 3 4 5 6 7"]}`, "1 2 3 4 5"},
		{"a long word", `{"body":["` + strings.Repeat("ä", 200) + `"]}`, strings.Repeat("ä", 100)},
		{"nested documents", `{"body":[{"a":["x"]}]}`, ""},
		{"none", `{}`, ""},
	} {
		f := clustertest.New().Reply("POST /i/_search", http.StatusOK, `{"hits":{"hits":[{"fields":`+c.fields+`}]}}`)
		got, err := client(t, f).SampleText(t.Context(), "i", "body")
		check.That(t, err == nil && got == c.want, "%s: got %q, %v, want %q", c.name, got, err, c.want)
	}
}

// The filters of the calls let through what is needed.
func TestRealEngineTellsOfItsTexts(t *testing.T) {
	e := newEngine(t)
	index := e.At("main")
	e.Engine.Do(t, http.MethodPut, "/"+index+"/_alias/"+index+"-alias", nil)
	all, err := e.TextIndices(t.Context(), index)
	check.That(t, err == nil && len(all) == 2 && all[1].Name == index+"-alias" && slices.Contains(all[0].Fields, "title") && slices.Contains(all[1].Fields, "body"), "got %v, %v", all, err)
	if text, err := e.SampleText(t.Context(), index, "body"); err != nil || text == "" {
		t.Errorf("sample %q, %v", text, err)
	}
}
