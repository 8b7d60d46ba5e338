package expand

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/expand/reason"
)

// remembered is a HitMemory of kinds of searches.
type remembered map[string]bool

func (r remembered) Remembers(key HitsKey) bool { return r[key.Kind] }

// rentalKey is the key of searches in the field body of the index docs.
const rentalKey = "docs\nbody"

// autoMode returns the result of a search in the mode auto, and in another one.
func autoMode(t *testing.T, hits HitMemory, other Mode, req Request, change func(*Profile)) (automatic, configured *Result) {
	t.Helper()
	results := make([]*Result, 2)
	for i, mode := range []Mode{ModeAuto, other} {
		c, m := rental(t)
		e := New(c, m, with(func(o *Profile) {
			change(o)
			o.Mode = mode
		})).WithHits(hits)
		asked := req
		results[i] = expanded(t, e, &asked)
	}
	return results[0], results[1]
}

const rentalSearch = `{"query":{"match":{"body":"car rental"}}`

func asItIs(*Profile) {}

func TestAutoModeIsSoftWhereHitsAreRemembered(t *testing.T) {
	for _, change := range []func(*Profile){asItIs, auto, func(o *Profile) { o.Matching = Same }} {
		for _, more := range []string{"}", `,"from":90}`, `,"from":500}`, `,"aggs":{"a":{"max":{"field":"b"}}}}`} {
			got, want := autoMode(t, remembered{rentalKey: true}, ModeSoft, Request{Index: "docs", Body: []byte(rentalSearch + more)}, change)
			check.Equal(t, string(want.Body), string(got.Body), more)
			if r := got.onlyRerank(); r != nil {
				check.Equal(t, rentalKey, r.Key.Kind, more)
				r.Key = HitsKey{}
			}
			check.Equal(t, want.onlyRerank(), got.onlyRerank(), more, cmp.AllowUnexported(Rerank{}), cmpopts.IgnoreFields(RerankField{}, "Similarities"))
		}
	}
}

func TestAutoModeIsBM25WhereHitsAreNotRemembered(t *testing.T) {
	for name, hits := range map[string]HitMemory{"nothing knows": nil, "others are": remembered{"docs\ntitle": true}} {
		got, want := autoMode(t, hits, ModeBM25, Request{Index: "docs", Body: []byte(rentalSearch + "}")}, auto)
		check.Equal(t, string(want.Body), string(got.Body), name)
		check.Equal(t, hits != nil, got.Parts[0].FollowUp != nil, name)
		why := reason.Reason("")
		if hits != nil {
			why = reason.NotRemembered
		}
		check.Equal(t, why, got.Clauses[0].Reason, name)
	}
}

// What it asks for after the client has its answer are the hits that it would
// have put in order, without what is said of all matches.
func TestFollowUpsFindTheHitsOfTheSoftMode(t *testing.T) {
	body := rentalSearch + `,"aggs":{"a":{"max":{"field":"b"}}},"track_total_hits":true,"size":3,"timeout":"1s"}`
	c, m := rental(t)
	e := New(c, m, with(func(o *Profile) { o.Mode = ModeAuto })).WithHits(remembered{})
	first := expanded(t, e, &Request{Index: "docs", RawQuery: "a=b", Body: []byte(body)})
	found := expanded(t, e, first.Parts[0].FollowUp)
	check.Equal(t, rentalKey, found.onlyRerank().Key.Kind)
	check.That(t, strings.HasPrefix(string(found.Body), `{"from":0,"size":100,"_source":false,"docvalue_fields":["_seq_no"],`), "%s", found.Body)
	check.That(t, strings.Contains(string(found.Body), `"track_total_hits":false`) && !strings.Contains(string(found.Body), "aggs"), "%s", found.Body)
	check.Equal(t, "a=b", found.RawQuery)
	check.Equal[*Request](t, nil, found.Parts[0].FollowUp)

	both := expanded(t, e, &Request{Endpoint: EndpointMultiSearch, Body: []byte(`{"index":"docs"}` + "\n" + `{"query":{"match_all":{}}}` + "\n{\"index\":\"docs\"}\n" + rentalSearch + "}\n")})
	check.That(t, both.Parts[0].FollowUp == nil && both.Parts[1].FollowUp != nil, "%+v", both.Parts)
	alone := expanded(t, e, both.Parts[1].FollowUp)
	check.Equal(t, rentalKey, alone.onlyRerank().Key.Kind)
}

// Searches whose hits the soft cosine cannot or may not order are those of the
// mode bm25, and nothing is asked after them.
func TestAutoModeLeavesOrdersThatAreNotItsOwn(t *testing.T) {
	for name, c := range map[string]struct {
		req    Request
		change func(*Profile)
	}{
		"sorted":                        {Request{Body: []byte(rentalSearch + `,"sort":["price"]}`)}, auto},
		"a scroll":                      {Request{RawQuery: "scroll=1m", Body: []byte(rentalSearch + "}")}, auto},
		"collapsed":                     {Request{Body: []byte(rentalSearch + `,"collapse":{"field":"a"}}`)}, auto},
		"a count":                       {Request{Endpoint: EndpointCount, Body: []byte(rentalSearch + "}")}, auto},
		"all words must match":          {Request{Body: []byte(`{"query":{"match":{"body":{"query":"car rental","operator":"and"}}}}`)}, auto},
		"a query string with operators": {Request{Body: []byte(`{"query":{"query_string":{"query":"car AND (rental OR cheap)","default_field":"body"}}}`)}, auto},
		"more like this": {
			Request{Body: []byte(`{"query":{"more_like_this":{"like":"car rental","fields":["body"],"min_term_freq":1,"min_doc_freq":1}}}`)},
			func(o *Profile) { auto(o); o.MoreLikeThis = true },
		},
		"nothing is related": {Request{Body: []byte(`{"query":{"match":{"body":"boat"}}}`)}, auto},
	} {
		c.req.Index = "docs"
		got, want := autoMode(t, remembered{rentalKey: true}, ModeBM25, c.req, c.change)
		check.Equal(t, string(want.Body), string(got.Body), name)
		check.Equal(t, want.Clauses, got.Clauses, name)
		check.That(t, got.onlyRerank() == nil && (len(got.Parts) == 0 || got.Parts[0].FollowUp == nil), "%s: %+v", name, got.Parts)
	}
}
