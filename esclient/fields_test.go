package esclient

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/e2e/clustertest"
	"github.com/akin-search/akin/esclient/mapping"
)

// tree returns an index's part of an answer with these properties.
func tree(properties string) string { return `{"mappings":{"properties":{` + properties + `}}}` }

func TestFieldsThatAPatternMatches(t *testing.T) {
	const many = `"title":{"type":"text","fields":{"raw":{"type":"keyword"}}},"n":{"type":"long"},` +
		`"o":{"properties":{"title":{"type":"text"},"p.q":{"type":"date"}}},` +
		`"list":{"type":"nested","properties":{"title":{"type":"text"}}},` +
		`"where":{"type":"geo_point"},"bytes":{"type":"binary"},"vector":{"type":"dense_vector"}`
	tests := []struct {
		name, pattern string
		indices       []string
		want          []string
	}{
		{"all", "*", []string{tree(many)}, []string{"list.title", "n", "o.p.q", "o.title", "title", "title.raw"}},
		{"the start of a name", "ti*", []string{tree(many)}, []string{"title", "title.raw"}},
		{"the end of a name", "*title", []string{tree(many)}, []string{"list.title", "o.title", "title"}},
		{"the middle", "*i*.t*e", []string{tree(many)}, []string{"list.title"}},
		{"below a field", "title.*", []string{tree(many)}, []string{"title.raw"}},
		{"a name", "n", []string{tree(many)}, []string{"n"}},
		{"nothing", "x*", []string{tree(many)}, nil},
		{"several indices", "t*", []string{tree(`"ta":{"type":"text"}`), tree(`"tb":{"type":"ip"}`), `{}`}, []string{"ta", "tb"}},
		{
			"a closed index", "t*",
			[]string{tree(`"ta":{"type":"text"}`), strings.Replace(tree(`"tb":{"type":"text"}`), "{", `{"settings":{"index.verified_before_close":"true"},`, 1)},
			[]string{"ta"},
		},
		{"an alias beside its field", "t*", []string{tree(`"title":{"type":"text"},"to":{"type":"alias","path":"title"}`)}, []string{"title"}},
		{"an alias alone", "t*", []string{tree(`"body":{"type":"text"},"to":{"type":"alias","path":"body"}`)}, []string{"to"}},
		{
			"fields computed when searching", "t*",
			[]string{`{"mappings":{"runtime":{"ta":{"type":"long"}},"derived":{"tb":{"type":"keyword"}}}}`},
			[]string{"ta", "tb"},
		},
		{"metadata", "_*", []string{tree(many)}, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := answers(test.indices...)
			c := cached(t, f)
			for range 2 {
				got, err := c.Fields(t.Context(), at("i*"), test.pattern)
				if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
					t.Error(err, diff)
				}
			}
			check.Equal(t, 1, f.Asked(""))
		})
	}
}

func TestPatternOfTooManyFieldsIsRefusedAndRemembered(t *testing.T) {
	properties := make([]string, mapping.MaxFields+1)
	for i := range properties {
		properties[i] = fmt.Sprintf(`"f%d":{"type":"text"}`, i)
	}
	f := clustertest.New().Reply("GET /i", http.StatusOK, `{"i":`+tree(strings.Join(properties, ","))+`}`)
	c := cached(t, f)
	for range 3 {
		names, err := c.Fields(t.Context(), at("i"), "*")
		check.That(t, errors.Is(err, mapping.ErrTooManyFields), "%d fields, error %v", len(names), err)
	}
	check.That(t, f.Asked("") == 1 && c.Stats().Analysis.Failures == 0, "%d calls, stats %+v", f.Asked(""), c.Stats())
	if names, err := c.Fields(t.Context(), at("i"), "f1*"); err != nil || len(names) != 1+10+100+25 { // f1, f10 to f19, …, f1000 to f1024
		t.Errorf("%d fields, error %v", len(names), err)
	}
}

func TestFieldsOfASickCluster(t *testing.T) {
	for _, body := range []string{`{"i":[]}`, `{"i":{"mappings":{"properties":{"f":7}}}}`, `<html>`} {
		f := clustertest.New().Reply("GET /i", http.StatusOK, body)
		names, err := cached(t, f).Fields(t.Context(), at("i"), "*")
		check.That(t, err != nil, "%s: fields %q", body, names)
	}
}

func TestFilterOfThePatternLetsItsFieldsThrough(t *testing.T) {
	const common = "*.settings.*verified_before_close,*.mappings.runtime.*.type,*.mappings.derived.*.type,"
	const all = common + "*.mappings.properties.**.type,*.mappings.properties.**.path"
	tests := map[string]string{
		"*": all, "*x": all, "a,b*": all,
		"ti*.x*": common + "*.mappings.properties.ti*.type,*.mappings.properties.ti*.**.type," +
			"*.mappings.properties.ti*.path,*.mappings.properties.ti*.**.path",
	}
	for pattern, want := range tests {
		f := clustertest.New().Reply("GET /i", http.StatusOK, `{}`)
		_, err := client(t, f).about("i", pattern).matching(t.Context())
		check.OK(t, err)
		escaped := strings.NewReplacer(",", "%2C", "*", "%2A").Replace(want)
		check.Equal(t, "GET /i?filter_path="+escaped+"&flat_settings=true ", f.Calls()[0], pattern, escaped)
	}
}

func TestAliasIsAskedForWithItsField(t *testing.T) {
	const filtered = `"to":{"type":"alias","path":"body.std"}`
	const body = `"body":{"type":"keyword","fields":{"std":{"type":"text","analyzer":"english"}}}`
	f := clustertest.New().On("GET /i", func(w http.ResponseWriter, r *http.Request) {
		answer := mapped(filtered, "")
		if strings.Contains(r.URL.RawQuery, "body%2A") {
			answer = mapped(filtered+","+body, "")
		}
		_, _ = fmt.Fprintf(w, `{"i":%s}`, answer)
	}).Reply(

		"POST /i/_termvectors", http.StatusOK,
		`{"term_vectors":{"body.std":{"field_statistics":{"doc_count":7},"terms":{"x":{"doc_freq":2}}}}}`)

	c := client(t, f)
	s, err := c.Schema(t.Context(), "i", "to")
	check.OK(t, err)
	want := wantSchema{
		Targets: []mapping.Target{{Index: "i", Shards: 2, Source: "body", AliasOf: "body.std"}}, Index: "english", Search: "english", K1: 1.2, Shards: 2,
	}
	diff := cmp.Diff(want, summary(s))
	check.That(t, diff == "" && f.Asked("GET") == 2, "%d calls, %s", f.Asked("GET"), diff)
	count, err := c.about("i", "to").count(t.Context(), s, []string{"x"})
	if err != nil || count.docCount != 14 || count.docFreqs[0] != 4 { // of two shards
		t.Errorf("%+v, %v", count, err)
	}
}

func TestAliasThatLeadsNowhereIsNoText(t *testing.T) {
	for name, properties := range map[string]string{
		"to a field that is not there": `"f":{"type":"alias","path":"x"}`,
		"to a keyword":                 `"f":{"type":"alias","path":"fx"},"fx":{"type":"keyword"}`,
		"to an alias":                  `"f":{"type":"alias","path":"f"}`,
		"to nothing":                   `"f":{"type":"alias"}`,
	} {
		s, err := ofIndices(t, "f", mapped(properties, ""))
		check.That(t, errors.Is(err, mapping.ErrNotText), "%s: %+v, error %v, want %v", name, s, err, mapping.ErrNotText)
	}
	indices := make([]string, maxAliased+1)
	for i := range indices {
		indices[i] = mapped(fmt.Sprintf(`"f":{"type":"alias","path":"x%d"}`, i), "")
	}
	f := answers(indices...)
	if s, err := client(t, f).Schema(t.Context(), "i*", "f"); !errors.Is(err, mapping.ErrMixed) || f.Asked("") != 1 {
		t.Errorf("an alias of many fields: %+v, error %v", s, err)
	}
}

func TestSearchAnalyzerOfAnAliasIsThatOfItsField(t *testing.T) {
	f := clustertest.New().Reply(
		"GET /i", http.StatusOK, `{"i":`+mapped(`"f":{"type":"alias","path":"fx"},"fx":{"type":"text","analyzer":"english"}`,
			`"index.analysis.analyzer.default_search.type":"simple"`)+`}`).Reply(

		"GET /i/_mapping/field/fx", http.StatusOK,
		`{"i":{"mappings":{"fx":{"full_name":"fx","mapping":{"fx":{"search_analyzer":"default_search"}}}}}}`)

	s, err := client(t, f).Schema(t.Context(), "i", "f")
	check.That(t, err == nil && s.SearchAnalyzer == "default_search", "%+v, %v", s, err)
}

func TestWordsWithPartsStandForTheirParts(t *testing.T) {
	// As OpenSearch 2.19 analyzes by word_delimiter_graph with catenate_all and
	// preserve_original.
	const wifi = `{"token":"wi-fi","start_offset":0,"end_offset":5,"position":0,"positionLength":2},` +
		`{"token":"wifi","start_offset":0,"end_offset":5,"position":0,"positionLength":2},` +
		`{"token":"wi","start_offset":0,"end_offset":2,"position":0},{"token":"fi","start_offset":3,"end_offset":5,"position":1}`
	const router = `{"token":"router","start_offset":6,"end_offset":12,"position":2}`
	for _, tt := range []struct {
		text, tokens string
		want         Analysis
	}{
		{"wi-fi router", wifi + "," + router, Analysis{Terms: []string{"wi-fi", "wifi", "router"}, Positions: []int{0, 0, 1}, Spanned: true}},
		{"wi-fi", wifi, Analysis{Terms: []string{"wi-fi", "wifi", "wi", "fi"}, Positions: []int{0, 0, 0, 1}, Graph: true, Whole: 1}},
		{ // a synonym for two words
			"wi fi_router", strings.ReplaceAll(wifi, "\"wi-fi\"", "\"wlan\"") + "," + router,
			Analysis{Terms: []string{"wlan", "wifi", "wi", "fi", "router"}, Positions: []int{0, 0, 0, 1, 2}, Graph: true},
		},
		{ // nothing spans both
			"wi-fi router", `{"token":"wi","end_offset":2,"positionLength":2},{"token":"wlan","end_offset":5},{"token":"fi","start_offset":3,"end_offset":5,"position":1,"positionLength":2},` + router,
			Analysis{Terms: []string{"wi", "wlan", "fi", "router"}, Positions: []int{0, 0, 1, 2}, Graph: true},
		},
	} {
		f := same(`{"type":"text"}`).Reply("POST /i/_analyze", http.StatusOK, `{"tokens":[`+tt.tokens+`]}`)
		a := check.Got(cached(t, f).Analyze(t.Context(), at("i"), "f0", "", tt.text))(t)
		check.Equal(t, tt.want, Analysis{Terms: a.Terms, Positions: a.Positions, Spanned: a.Spanned, Graph: a.Graph, Whole: a.Whole}, tt.text)
	}
}

func TestTermOverSeveralPositionsMakesAGraph(t *testing.T) {
	// As Elasticsearch 7.10.2 analyzes "ny" with the synonym "ny, new york".
	const answer = `{"tokens":[{"token":"new","position":0},{"token":"ny","position":0,"positionLength":2},{"token":"york","position":1}]}`
	f := same(`{"type":"text"}`).Reply("POST /i/_analyze", http.StatusOK, answer)
	a, err := cached(t, f).Analyze(t.Context(), at("i"), "f0", "", "ny")
	check.That(t, err == nil && a.Graph && a.Whole == 2 && slices.Equal(a.Positions, []int{0, 0, 1}), "%+v, %v", a, err)
	check.Equal(t, 1, f.Asked("tokens.positionLength"), f.Calls())
	f.Reply("POST /i/_analyze", http.StatusOK, `{"tokens":[{"token":"ny","positionLength":2},{"token":"new"},{"token":"york","position":1},{"token":"bus","position":2}]}`)
	a, err = cached(t, f).Analyze(t.Context(), at("i"), "f0", "", "ny bus")
	check.That(t, err == nil && a.Graph && a.Whole == 0, "%+v, %v", a, err)
	f.Reply("POST /i/_analyze", http.StatusOK, `{"tokens":[{"token":"new"},{"token":"york","position":1,"positionLength":1}]}`)
	if a, err := cached(t, f).Analyze(t.Context(), at("i"), "f0", "", "new york"); err != nil || a.Graph || a.Whole > 0 {
		t.Errorf("%+v, %v", a, err)
	}
}
