package dsl

import (
	"encoding/json"
	"testing"
)

func FuzzParameters(f *testing.F) {
	for _, seed := range []string{"", "q=car&df=body", "a=b;c=%zz", "q=%ff&size=0", "search_type=dfs_query_then_fetch&q=x", "&&q=a&&"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		p, why := ReadParameters(raw)
		if why != "" {
			return
		}
		if p.Get("q") == "" && p.Get("source") == "" && p.Rewritten(raw, false, false) != raw {
			t.Errorf("%q became %q without need", raw, p.Rewritten(raw, false, false))
		}
		if !json.Valid(p.query()) {
			t.Errorf("%q: the body %q is not JSON", raw, p.query())
		}
		if again, _ := ReadParameters(p.Rewritten(raw, true, false)); again.Get("q") != "" || again.Get("search_type") == "" {
			t.Errorf("%q became %q", raw, p.Rewritten(raw, true, false))
		}
	})
}

func TestHeadersOfMultiSearchSayWhereASearchGoes(t *testing.T) {
	read := func(header string) Part {
		parts := MultiSearch([]byte(header+"\n{}\n"), "path", "ignore_unavailable=true&max_concurrent_searches=2")
		if len(parts) != 1 {
			t.Fatalf("%s: %d parts", header, len(parts))
		}
		return parts[0]
	}
	if MultiSearch([]byte("\n{}\n"), "", "") != nil {
		t.Error("an empty first line is read")
	}
	for header, want := range map[string]Part{
		` `:                     {Index: "path", RawQuery: "ignore_unavailable=true"},
		`{}`:                    {Index: "path", RawQuery: "ignore_unavailable=true"},
		`{"index":null}`:        {Index: "path", RawQuery: "ignore_unavailable=true"},
		`{"index":"a"}`:         {Index: "a", RawQuery: "ignore_unavailable=true"},
		`{"index":["a","b*"]}`:  {Index: "a,b*", RawQuery: "ignore_unavailable=true"},
		`{"indices":["a"]}`:     {Index: "a", RawQuery: "ignore_unavailable=true"},
		`{"routing":7}`:         {Index: "path", RawQuery: "ignore_unavailable=true&routing=7"},
		`{"routing":["a","b"]}`: {Index: "path", RawQuery: "ignore_unavailable=true&routing=%5B%22a%22%2C%22b%22%5D"},
		`{"routing":null,"preference":"_shards:0"}`: {
			Index: "path", RawQuery: "ignore_unavailable=true&preference=_shards%3A0&routing=",
		},
		`{"search_type":"x y"}`: {Index: "path", RawQuery: "ignore_unavailable=true&search_type=x+y"},
		`{"ignore_unavailable":false,"expand_wildcards":["open","hidden"]}`: {
			Index: "path", RawQuery: "expand_wildcards=open%2Chidden&ignore_unavailable=false",
		},
	} {
		got := read(header)
		if got.Odd || got.Index != want.Index || got.RawQuery != want.RawQuery {
			t.Errorf("%s: index %q, query %q, odd %t; want %q, %q", header, got.Index, got.RawQuery, got.Odd, want.Index, want.RawQuery)
		}
	}
	for _, header := range []string{`{"index":1}`, `{"index":[1]}`, `{"index":"a"`, `"a"`, `{"index":"a","index":"b"}`} {
		if got := read(header); !got.Odd {
			t.Errorf("%s: %+v, want an error", header, got)
		}
	}
}

func TestHitsThatAreKeptByFilterPath(t *testing.T) {
	for filter, want := range map[string]bool{
		"": true, "hits": true, "hits.hits": true, "took,hits.hits.*": true, "*": true, "hits.**": true, "-_shards": true,
		"hits.hits._source": false, "took": false, "-hits.max_score": false, "hits,-hits.hits._id": false,
		"hits,-*._id": false, "hits.hits._*": false, "-**": false,
	} {
		if got := Keeps(filter, "hits", hitsAlone...); got != want {
			t.Errorf("%q: %v", filter, got)
		}
	}
}
