package dsl

import (
	"encoding/json"
	"testing"

	"github.com/akin-search/akin/e2e/check"
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
		check.That(t, p.Get("q") != "" || p.Get("source") != "" || p.Rewritten(raw, false, false) == raw, "%q became %q without need", raw, p.Rewritten(raw, false, false))
		check.That(t, json.Valid(p.query()), "%q: the body %q is not JSON", raw, p.query())
		again, _ := ReadParameters(p.Rewritten(raw, true, false))
		check.That(t, again.Get("q") == "" && again.Get("search_type") != "", "%q became %q", raw, p.Rewritten(raw, true, false))
	})
}

func TestHeadersOfMultiSearchSayWhereASearchGoes(t *testing.T) {
	read := func(header string) Part {
		parts := MultiSearch([]byte(header+"\n{}\n"), "path", "ignore_unavailable=true&max_concurrent_searches=2")
		check.Must(t, len(parts) == 1, "%s: %d parts", header, len(parts))
		return parts[0]
	}
	check.That(t, MultiSearch([]byte("\n{}\n"), "", "") == nil, "an empty first line is read")
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
		check.That(t, !got.Odd && got.Index == want.Index && got.RawQuery == want.RawQuery, "%s: index %q, query %q, odd %t; want %q, %q", header, got.Index, got.RawQuery, got.Odd, want.Index, want.RawQuery)
	}
	for _, header := range []string{`{"index":1}`, `{"index":[1]}`, `{"index":"a"`, `"a"`, `{"index":"a","index":"b"}`} {
		got := read(header)
		check.That(t, got.Odd, "%s: %+v, want an error", header, got)
	}
}

func TestHitsThatAreKeptByFilterPath(t *testing.T) {
	for filter, want := range map[string]bool{
		"": true, "hits": true, "hits.hits": true, "took,hits.hits.*": true, "*": true, "hits.**": true, "-_shards": true,
		"hits.hits._source": false, "took": false, "-hits.max_score": false, "hits,-hits.hits._id": false,
		"hits,-*._id": false, "hits.hits._*": false, "-**": false,
	} {
		check.Equal(t, want, Keeps(filter, "hits", hitsAlone...), filter)
	}
}
