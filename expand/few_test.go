package expand

import (
	"testing"

	"github.com/akin-search/akin/e2e/check"
)

func TestBelowSaysWhichSearchesWaitForTheOriginal(t *testing.T) {
	const match = `"query":{"match":{"body":"car"}}`
	for name, tt := range map[string]struct {
		endpoint       Endpoint
		rawQuery, body string
		want           []int
	}{
		"a search":                   {EndpointSearch, "", `{` + match + `}`, []int{10}},
		"without hits":               {EndpointSearch, "", `{"size":0,` + match + `}`, []int{10}},
		"of a deep page":             {EndpointSearch, "", `{"from":9990,` + match + `}`, []int{10}},
		"in the URL":                 {EndpointSearch, "q=car", ``, []int{10}},
		"a count":                    {EndpointCount, "", `{` + match + `}`, []int{10}},
		"tracked":                    {EndpointSearch, "track_total_hits=true", `{"track_total_hits":50,` + match + `}`, []int{10}},
		"not tracked":                {EndpointSearch, "", `{"track_total_hits":false,` + match + `}`, nil},
		"tracked too little":         {EndpointSearch, "track_total_hits=9", `{` + match + `}`, nil},
		"with a filter_path":         {EndpointSearch, "filter_path=hits", `{` + match + `}`, nil},
		"a scroll":                   {EndpointSearch, "scroll=1m", `{` + match + `}`, nil},
		"a point in time":            {EndpointSearch, "", `{"pit":{"id":"x"},` + match + `}`, nil},
		"aggregations":               {EndpointSearch, "", `{"aggs":{},` + match + `}`, nil},
		"the first of a part":        {EndpointSearch, "terminate_after=5", `{` + match + `}`, nil},
		"vectors beside it":          {EndpointSearch, "", `{"knn":{"field":"v"},` + match + `}`, []int{0}},
		"vectors, then aggregations": {EndpointSearch, "", `{"knn":{"field":"v"},"aggs":{},` + match + `}`, []int{0}},
		"aggregations, then vectors": {EndpointSearch, "", `{"aggs":{},"knn":{"field":"v"},` + match + `}`, []int{0}},
		"a hybrid search":            {EndpointSearch, "", `{"query":{"hybrid":{"queries":[]}}}`, []int{0}},
		"no JSON":                    {EndpointSearch, "", `{`, nil},
		"a validation":               {EndpointValidate, "", `{` + match + `}`, nil},
		"several": {
			EndpointMultiSearch, "", "{}\n{" + match + "}\n{}\n{\"aggs\":{}," + match + "}\n{}\n{\"knn\":{}}\n",
			[]int{10, AtOnce, 0},
		},
		"several at once": {EndpointMultiSearch, "", "{}\n{\"aggs\":{}," + match + "}\n", nil},
	} {
		req := &Request{Endpoint: tt.endpoint, Index: "docs", RawQuery: tt.rawQuery, Body: []byte(tt.body)}
		check.Equal(t, tt.want, New(nil, nil, with(func(o *Profile) { o.When = FewHits })).Below(req), name)
		got := New(nil, nil, widening()).Below(req)
		check.That(t, got == nil, "%s: without the setting it waits: %v", name, got)
	}
}

func TestOnlyKeepsSomeOfSeveralSearches(t *testing.T) {
	const first, second, third = "{\"index\":\"a\"}\n{\"query\":{}}\n", "{}\n{}\n", "\n{\"size\":3}\n"
	for want, some := range map[string][]int{first: {0}, second + third: {1, 2}, first + third: {0, 2}, "{}" + third: {2}, "": {}} {
		check.Equal(t, want, string(Only(&Request{Endpoint: EndpointMultiSearch, Body: []byte(first + second + third)}, some)), some)
	}
}
