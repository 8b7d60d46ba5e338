package esclient

import (
	"cmp"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/e2e/clustertest"
	"github.com/akin-search/akin/esclient/mapping"
)

func TestRemoteIndicesAreNotAskedFor(t *testing.T) {
	for expression, remote := range map[string]bool{
		"": false, "_all": false, "a*,-ab": false, "<logs-{now/d}>": false, "a,<logs-{now/d{yyyy.MM.dd|+12:00}}>": false,
		"a,x:b": true, "*:b": true, "x:<logs-{now/d}>": true, "<logs-{now/d{HH:mm}}>,x:b": true, "<a>:b": true, ">:b": true,
		"logs::failures": true, // of Elasticsearch 9, which akin does not know
	} {
		f := clustertest.New()
		c := cached(t, f)
		for range 2 {
			_, err := c.Analyze(t.Context(), at(expression), "f", "", "x")
			_, err2 := c.Fields(t.Context(), at(expression), "f*")
			check.That(t, errors.Is(err, ErrRemote) == remote && errors.Is(err2, ErrRemote) == remote, "%q: errors %v and %v, remote is %v", expression, err, err2, remote)
		}
		s := c.Stats().Analysis
		check.That(t, !remote || f.Asked("") == 0 && s.Failures == 0 && s.Hits == 2, "%q: %d calls, stats %+v", expression, f.Asked(""), s)
	}
}

func TestOnlyOptionsOfIndicesReachAURL(t *testing.T) {
	for options, ok := range map[string]bool{
		"": true,
		"allow_no_indices=false&expand_wildcards=open,hidden&ignore_throttled=true&ignore_unavailable=true": true,
		"expand_wildcards=open&expand_wildcards=hidden":                                                     true,
		"pretty=true":                                         false,
		"ignore_unavailable=true&filter_path=x":               false,
		"ignore_unavailable=%zz":                              false,
		"expand_wildcards=" + strings.Repeat("x", maxOptions): false,
	} {
		f := clustertest.New().Reply("GET /i", http.StatusOK, `{}`)
		_, err := cached(t, f).Analyze(t.Context(), Indices{"i", options}, "f", "", "x")
		check.That(t, errors.Is(err, mapping.ErrNotText) == ok && (f.Asked("") > 0) == ok, "options %q: error %v after %d calls", options, err, f.Asked(""))
	}
}

func TestOptionsGoWithCallsForAnExpression(t *testing.T) {
	f := library(t)
	c := cached(t, f)
	indices := Indices{"library", "ignore_unavailable=true"}
	_, analysisErr := c.Analyze(t.Context(), indices, "title", "", "The Running Cars")
	_, statisticsErr := c.Statistics(t.Context(), indices, "title", searchTerms, make([]int64, len(searchTerms)))
	_, fieldsErr := c.Fields(t.Context(), indices, "t*")
	check.OK(t, errors.Join(analysisErr, statisticsErr, fieldsErr))
	for call, want := range map[string]int{"GET /library?": 2, "POST /library/_search?": 2} {
		check.Equal(t, want, f.Asked(call), call)
	}
	// The schema, the fields and the two probes; _analyze and _termvectors go to
	// a concrete index.
	check.Equal(t, 4, f.Asked("ignore_unavailable=true"), f.Calls())
}

func TestOptionsAreKeptApartAndForgottenTogether(t *testing.T) {
	f := library(t)
	c := cached(t, f)
	all := []Indices{at("library"), {"library", "ignore_unavailable=true"}}
	ask := func() {
		for _, indices := range all {
			_, analysisErr := c.Analyze(t.Context(), indices, "title", "", "The Running Cars")
			_, fieldsErr := c.Fields(t.Context(), indices, "t*")
			check.OK(t, errors.Join(analysisErr, fieldsErr))
		}
	}
	ask()
	ask()
	check.Equal(t, 4, f.Asked("GET /library"))
	c.Forget("library")
	ask()
	check.Equal(t, 8, f.Asked("GET /library"))
}

// FuzzIndices asks about any indices: no call goes to another API, or has
// another parameter, than it should.
func FuzzIndices(f *testing.F) {
	f.Add("a,<logs-{now/d}>", "ignore_unavailable=true")
	f.Add("", "expand_wildcards=open,hidden&pretty=1")
	f.Add("../_cluster", "expand_wildcards=%26pretty&ignore_throttled=false")
	f.Add("a?b#c%d/e", "a=%zz&allow_no_indices=")
	own := []string{"filter_path", "flat_settings", "allow_no_indices", "expand_wildcards", "ignore_throttled", "ignore_unavailable"}
	f.Fuzz(func(t *testing.T, expression, options string) {
		c, err := New(Options{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			path, _ := strings.CutSuffix(r.URL.EscapedPath(), "/_search")
			name, err := url.PathUnescape(path)
			check.That(t, err == nil && name == "/"+cmp.Or(expression, "_all") && strings.Count(path, "/") == 1, "path %s", r.URL.EscapedPath())
			for name, values := range r.URL.Query() {
				check.That(t, slices.Contains(own, name) && len(values) == 1, "parameter %q: %q", name, values)
			}
			check.Equal(t, "x", r.URL.Query().Get("filter_path"))
			return nil, io.EOF
		})})
		check.OK(t, err)
		indices := Indices{expression, options}
		_, _ = question{c, indices, "f"}.get(t.Context(), "x")
		_, _ = search[none, none](t.Context(), c, indices, "x", Object{})
	})
}

// roundTrip is a transport.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestClosedIndicesDoNotCount(t *testing.T) {
	s, err := ofIndices(t, "f", mapped(`"f":{"type":"keyword"}`, `"index.verified_before_close":"true"`), mapped(`"f":{"type":"text"}`, ""))
	check.That(t, err == nil && len(s.Targets) == 1 && s.Targets[0].Index == "i1", "%+v, %v", s, err)
}
