package expand

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/expand/form"
	"github.com/akin-search/akin/expand/reason"
)

// A marking is a search in which LEAF stands for a clause that is rewritten
// and HERE for the places where the words of the n-th query of marks are
// marked.
type marking struct {
	body  string
	marks []string
}

const leafToMark = `{"match":{"body":"car"}}`

// original returns the search as it comes.
func (m marking) original() string {
	return strings.NewReplacer("LEAF", leafToMark, "HERE,", "", "HERE", "").Replace(m.body)
}

// want returns the search as it goes on.
func (m marking) want(leaf string) string {
	out := m.body
	for _, query := range m.marks {
		out = strings.Replace(out, "HERE", `"highlight_query":`+strings.ReplaceAll(query, "LEAF", leafToMark), 1)
	}
	return strings.ReplaceAll(out, "LEAF", leaf)
}

var markings = map[string]marking{
	"inner hits first":      {`{"query":{"nested":{"inner_hits":{"highlight":{ HERE,"fields":{}}},"score_mode":"max","query" : LEAF}}}`, []string{`LEAF`}},
	"empty":                 {`{"query":{"nested":{"inner_hits":{"highlight":{ HERE}},"score_mode":"max","query":LEAF}}}`, []string{`LEAF`}},
	"escaped names":         {`{"query":{"nested":{"inner\u005fhits":{"highl\u0069ght":{HERE,"fields":{}}},"score_mode":"max","qu\u0065ry":LEAF}}}`, []string{`LEAF`}},
	"whole query":           {`{"query":{"nested":{"inner_hits":{"highlight":{HERE}},"score_mode":"max","query":{"bool":{"filter":{"term":{"a":1}},"must":[LEAF]}}}}}`, []string{`{"bool":{"filter":{"term":{"a":1}},"must":[LEAF]}}`}},
	"parents":               {`{"query":{"has_parent":{"parent_type":"p","query":LEAF,"inner_hits":{"highlight":{HERE}}}}}`, []string{`LEAF`}},
	"nested in nested":      {`{"query":{"nested":{"inner_hits":{"highlight":{HERE}},"score_mode":"max","query":{"nested":{"score_mode":"max","query":LEAF,"inner_hits":{"highlight":{HERE}}}}}}}`, []string{`{"nested":{"score_mode":"max","query":LEAF,"inner_hits":{"highlight":{}}}}`, `LEAF`}},
	"beside the search's":   {`{"highlight":{HERE},"query":{"nested":{"score_mode":"max","query":LEAF,"inner_hits":{"highlight":{HERE}}}}}`, []string{`{"nested":{"score_mode":"max","query":LEAF,"inner_hits":{"highlight":{}}}}`, `LEAF`}},
	"nothing added there":   {`{"query":{"bool":{"must":[LEAF,{"nested":{"query":{"term":{"a":"b"}},"inner_hits":{"highlight":{}}}}]}}}`, nil},
	"one of its own":        {`{"query":{"nested":{"score_mode":"max","query":LEAF,"inner_hits":{"highlight":{"fields":{},"highlight_query":{"match_all":{}}}}}}}`, nil},
	"a field's own":         {`{"query":{"nested":{"score_mode":"max","query":LEAF,"inner_hits":{"highlight":{HERE,"fields":{"a":{"highlight_query":{"match_all":{}}}}}}}}}`, []string{`LEAF`}},
	"inner hits of filters": {`{"query":{"bool":{"must":LEAF,"filter":{"nested":{"query":LEFT,"inner_hits":{"highlight":{}}}}}}}`, nil},
	"no query beside them":  {`{"query":{"bool":{"must":LEAF,"should":{"nested":{"inner_hits":{"highlight":{}}}}}}}`, nil},
	"not a query":           {`{"query":{"bool":{"must":LEAF,"should":{"nested":{"query":LEFT,"inner_hits":{"highlight":{}}},"term":{"a":"b"}}}}}`, nil},
	"top hits below others": {`{"query":LEAF,"aggregations":{"a":{"aggs":{"top_hits":{"aggregations":{"c":{"top_hits":{"highlight":{HERE}}}},"filter":{"term":{"a":1}}}},"terms":{"field":"k"}},"b":{"top_hits":{"highlight":{HERE}}}}}`, []string{`LEAF`, `LEAF`}},
	"no top hits":           {`{"query":LEAF,"aggs":{"highlight":{"terms":{"field":"k"},"meta":{"top_hits":{"highlight":{}},"aggs":{"a":{"top_hits":{"highlight":{}}}}}}},"suggest":{"s":{"text":"car","phrase":{"field":"body","highlight":{"pre_tag":"<"}}}}}`, nil},
	"not aggregations":      {`{"query":LEAF,"aggs":[{"top_hits":{"highlight":{}}}],"aggregations":{"a":["top_hits"],"b":{"top_hits":null},"c":{"top_hits":{"highlight":null}}}}`, nil},
	"collapse, several":     {`{"collapse":{"field":"k","inner_hits":[{"name":"n","highlight":{HERE}},{"name":"m"},null,{"highlight":{HERE}}]},"query":LEAF}`, []string{`LEAF`, `LEAF`}},
	"not a collapse":        {`{"query":LEAF,"collapse":["inner_hits",{"inner_hits":{"highlight":{}}}]}`, nil},
	"retriever behind":      {`{"highlight":{HERE},"retriever":{"text_similarity_reranker":{"retriever":{"standard":{"query":LEAF}}}}}`, []string{`LEAF`}},
	"retriever's collapse":  {`{"retriever":{"standard":{"collapse":{"field":"k","inner_hits":{"highlight":{HERE}}},"query":LEAF}}}`, []string{`LEAF`}},
	"retriever's inner hits": {
		`{"highlight":{HERE},"retriever":{"standard":{"query":{"nested":{"score_mode":"max","query":LEAF,"inner_hits":{"highlight":{HERE}}}}}}}`,
		[]string{`{"nested":{"score_mode":"max","query":LEAF,"inner_hits":{"highlight":{}}}}`, `LEAF`},
	},
}

func TestOriginalIsWhatLightsUpInEveryPlace(t *testing.T) {
	linear := with(func(o *Profile) { o.Scoring = form.Linear })
	alone := expandBody(t, linear, `{"query":`+leafToMark+`}`)
	leaf := strings.TrimSuffix(strings.TrimPrefix(string(alone.Body), `{"query":`), `}`)
	for name, m := range markings {
		t.Run(name, func(t *testing.T) {
			original := strings.ReplaceAll(m.original(), "LEFT", leafToMark)
			r := expandBody(t, linear, original)
			want := strings.ReplaceAll(m.want(leaf), "LEFT", leafToMark)
			check.That(t, string(r.Body) == want && json.Valid(r.Body), "got\n%s\nwant\n%s", r.Body, want)
			err := strip([]byte(original), r.Body)
			check.Error(t, nil, err)
		})
	}
}

// TestTopHitsOfRescoredSearchesLightUp has the rescore written between the
// highlights.
func TestTopHitsOfRescoredSearchesLightUp(t *testing.T) {
	const before, after = `{"aggs":{"a":{"top_hits":{"highlight":{`, `"fields":{}}}}}`
	r := expandBody(t, widening(), before+after+`,"query":`+leafToMark+`,"highlight":{"fields":{}}}`)
	said := `"highlight_query":` + leafToMark + `,`
	body := string(r.Body)
	if !strings.HasPrefix(body, before+said+after) || !strings.Contains(body, `}},"highlight":{`+said+`"fields":{}}}`) ||
		!strings.Contains(body, `"rescore_query":`) || strings.Count(body, said) != 2 {
		t.Error(body)
	}
}

func TestHighlightsThatNobodySeesStay(t *testing.T) {
	const body = `{"size":0,"highlight":{},"query":{"nested":{"score_mode":"max","query":` + leafToMark + `,"inner_hits":{"highlight":{}}}}}`
	r := expandBody(t, widening(), body)
	check.That(t, r.Rewritten && !strings.Contains(string(r.Body), "highlight_query"), "%v", string(r.Body))
}

// TestHighlightsTakeBoundedRoom has the query in so many places that the
// rewritten search would be many times as long.
func TestHighlightsTakeBoundedRoom(t *testing.T) {
	const maxHighlights, highlightRoom = 64, 1 << 20 // as package dsl has it
	search := func(words, places int) []byte {
		var b strings.Builder
		fmt.Fprintf(&b, `{"query":{"bool":{"must":%s,"filter":{"term":{"a":%q}}}},"aggs":{`, leafToMark, strings.Repeat("x", words))
		for i := range places {
			fmt.Fprintf(&b, `"%d":{"top_hits":{"highlight":{}}},`, i)
		}
		return []byte(b.String() + `"n":{"max":{"field":"n"}}}}`)
	}
	for name, tt := range map[string]struct {
		words, places int
		reason        reason.Reason
	}{
		"as many as can be":   {0, maxHighlights, ""},
		"too many":            {0, maxHighlights + 1, reason.TooManyHighlights},
		"far too many":        {0, 10 * maxHighlights, reason.TooManyHighlights},
		"a long query":        {highlightRoom, 1, ""},
		"a long query, often": {highlightRoom / 2, 4, reason.TooManyHighlights},
		"a long query, twice": {highlightRoom / 2, 2, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := expandBody(t, widening(), string(search(tt.words, tt.places)))
			check.Must(t, r.Reason == tt.reason && r.Rewritten == (tt.reason == ""), "rewritten: %t, reason %q, want %q", r.Rewritten, r.Reason, tt.reason)
			n := strings.Count(string(r.Body), "highlight_query")
			check.That(t, !r.Rewritten || n == tt.places, "%d of %d highlights say what they mark", n, tt.places)
		})
	}
}
