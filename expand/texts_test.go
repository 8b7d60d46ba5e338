package expand

import (
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/expand/form"
)

func TestTextsOfSearches(t *testing.T) {
	const red = `{"query":{"match":{"title":"Red"}}}`
	one := func(index string, page int, texts ...WantedText) []Wanted {
		return []Wanted{{Index: index, Page: page, Texts: texts}}
	}
	inTitle := WantedText{"Red", []string{"title"}}
	for name, tt := range map[string]struct {
		req  Request
		want []Wanted
	}{
		"one":                {Request{Index: "i", Body: []byte(red)}, one("i", 10, inTitle)},
		"in the URL":         {Request{RawQuery: "q=Red&size=3"}, one("", 3, WantedText{Text: "Red"})},
		"of a later page":    {Request{Index: "i", RawQuery: "from=10", Body: []byte(red)}, one("i", 0)},
		"after a hit":        {Request{Index: "i", Body: []byte(`{"search_after":[1],"query":{"match":{"title":"Red"}}}`)}, one("i", 0)},
		"for no hits":        {Request{Index: "i", RawQuery: "size=0", Body: []byte(red)}, one("i", 0)},
		"collapsed":          {Request{Index: "i", Body: []byte(`{"collapse":{"field":"a"},"query":{"match":{"title":"Red"}}}`)}, one("i", 0, inTitle)},
		"of documents":       {Request{Index: "i", Body: []byte(`{"query":{"more_like_this":{"like":"Red","fields":["title"]}}}`)}, one("i", 10)},
		"with operators":     {Request{Index: "i", Body: []byte(`{"query":{"query_string":{"query":"red -car","default_field":"title"}}}`)}, one("i", 10, WantedText{"red -car", []string{"title"}})},
		"a phrase":           {Request{Index: "i", Body: []byte(`{"query":{"match_phrase":{"title":"Red"}}}`)}, one("i", 10, inTitle)},
		"no JSON":            {Request{Index: "i", Body: []byte(`{`)}, one("i", 0)},
		"at a point in time": {Request{Body: []byte(`{"pit":{"id":"` + pitIDs[0].id + `"},"query":{"match":{"title":"Red"}}}`)}, one(pitIDs[0].indices, 10, inTitle)},
		"several": {
			Request{Endpoint: EndpointMultiSearch, Index: "i", Body: []byte("{}\n" + red + "\n{\"index\":[\"j\",\"k\"]}\n{\"size\":0}\n")},
			[]Wanted{{Index: "i", Page: 10, Texts: []WantedText{inTitle}}, {Index: "j,k"}},
		},
		"several that are not understood": {Request{Endpoint: EndpointMultiSearch, Body: []byte("x")}, []Wanted{}},
		"many texts": {
			Request{Body: []byte(`{"query":{"bool":{"must":[{"match":{"a":"1"}},{"match":{"a":"2"}},{"match":{"a":"3"}},{"match":{"a":"4"}},{"match":{"a":"5"}}]}}}`)},
			one("", 10, WantedText{"1", []string{"a"}}, WantedText{"2", []string{"a"}}, WantedText{"3", []string{"a"}}, WantedText{"4", []string{"a"}}),
		},
	} {
		check.Equal(t, tt.want, new(TextReader).Read(&tt.req, nil), name)
	}
}

// A search for words that no document has is widened without being tried.
func TestWhatFindsNothingAsTypedIsTold(t *testing.T) {
	for body, want := range map[string]bool{
		`{"query":{"match":{"body":"iec"}}}`:                                                       true,
		`{"query":{"match":{"body":{"query":"iec cream","operator":"and"}}}}`:                      true,
		`{"query":{"match":{"body":"iec cream"}}}`:                                                 false,
		`{"query":{"match":{"body":"cream"}}}`:                                                     false,
		`{"query":{"bool":{"must":{"match":{"body":"iec"}},"should":{"match":{"body":"cream"}}}}}`: true,
	} {
		c, m := iceCream(t)
		r := expandIn(t, c, m, with(func(o *Profile) { auto(o); o.Scoring = form.Linear }), body)
		check.Equal(t, want, r.Parts[0].Nothing && r.Parts[0].How == Widened, body)
	}
}
