package esclient

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/clustertest"
	"github.com/akin-search/akin/esclient/mapping"
)

func TestRemoteIndicesAreNotAskedFor(t *testing.T) {
	tests := []struct {
		expression string
		remote     bool
	}{
		{"", false},
		{"_all", false},
		{"a*,-ab", false},
		{"<logs-{now/d}>", false},
		{"a,<logs-{now/d{yyyy.MM.dd|+12:00}}>", false},
		{"a,x:b", true},
		{"*:b", true},
		{"x:<logs-{now/d}>", true},
		{"<logs-{now/d{HH:mm}}>,x:b", true},
		{"logs::failures", true}, // of Elasticsearch 9, which akin does not know
		{"<a>:b", true},
		{">:b", true},
	}
	for _, test := range tests {
		t.Run(test.expression, func(t *testing.T) {
			f := clustertest.New()
			c := cached(t, f)
			for range 2 {
				_, err := c.Analyze(t.Context(), at(test.expression), "f", "", "x")
				_, err2 := c.Fields(t.Context(), at(test.expression), "f*")
				if errors.Is(err, ErrRemote) != test.remote || errors.Is(err2, ErrRemote) != test.remote {
					t.Errorf("errors %v and %v, remote is %v", err, err2, test.remote)
				}
			}
			if s := c.Stats().Analysis; test.remote && (f.Asked("") != 0 || s.Failures != 0 || s.Hits != 2) {
				t.Errorf("%d calls, stats %+v", f.Asked(""), s)
			}
		})
	}
}

func TestOnlyOptionsOfIndicesReachAURL(t *testing.T) {
	tests := []struct {
		options string
		ok      bool
	}{
		{"", true},
		{"allow_no_indices=false&expand_wildcards=open,hidden&ignore_throttled=true&ignore_unavailable=true", true},
		{"expand_wildcards=open&expand_wildcards=hidden", true},
		{"pretty=true", false},
		{"ignore_unavailable=true&filter_path=x", false},
		{"ignore_unavailable=%zz", false},
		{"expand_wildcards=" + strings.Repeat("x", maxOptions), false},
	}
	for _, test := range tests {
		f := clustertest.New().Reply("GET /i", http.StatusOK, `{}`)
		_, err := cached(t, f).Analyze(t.Context(), Indices{"i", test.options}, "f", "", "x")
		if errors.Is(err, mapping.ErrNotText) != test.ok || (f.Asked("") > 0) != test.ok {
			t.Errorf("options %q: error %v after %d calls", test.options, err, f.Asked(""))
		}
	}
}

func TestOptionsGoWithCallsForAnExpression(t *testing.T) {
	f := library(t)
	c := cached(t, f)
	indices := Indices{"library", "ignore_unavailable=true"}
	if _, err := c.Analyze(t.Context(), indices, "title", "", "The Running Cars"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Statistics(t.Context(), indices, "title", searchTerms, make([]int64, len(searchTerms))); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Fields(t.Context(), indices, "t*"); err != nil {
		t.Fatal(err)
	}
	for call, want := range map[string]int{"GET /library?": 2, "POST /library/_search?": 2} {
		if got := f.Asked(call); got != want {
			t.Errorf("%d calls of %s, want %d", got, call, want)
		}
	}
	// The schema, the fields and the two probes; _analyze and _termvectors go to
	// a concrete index.
	if n := f.Asked("ignore_unavailable=true"); n != 4 {
		t.Errorf("%d calls have the options, want 4: %q", n, f.Calls())
	}
}

func TestOptionsAreKeptApartAndForgottenTogether(t *testing.T) {
	f := library(t)
	c := cached(t, f)
	all := []Indices{at("library"), {"library", "ignore_unavailable=true"}}
	ask := func() {
		for _, indices := range all {
			if _, err := c.Analyze(t.Context(), indices, "title", "", "The Running Cars"); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Fields(t.Context(), indices, "t*"); err != nil {
				t.Fatal(err)
			}
		}
	}
	ask()
	ask()
	if n := f.Asked("GET /library"); n != 4 {
		t.Errorf("%d calls, want 4", n)
	}
	c.Forget("library")
	ask()
	if n := f.Asked("GET /library"); n != 8 {
		t.Errorf("%d calls once they are forgotten, want 8", n)
	}
}

func FuzzIndicesPath(f *testing.F) {
	f.Add("a,<logs-{now/d}>", "ignore_unavailable=true")
	f.Add("", "expand_wildcards=open,hidden&pretty=1")
	f.Add("../_cluster", "a=%zz&ignore_throttled=%26pretty")
	f.Fuzz(func(t *testing.T, expression, options string) {
		u, err := url.Parse((Indices{expression, options}).path("/_search", url.Values{"filter_path": {"x"}}))
		if err != nil {
			t.Fatal(err)
		}
		for name := range u.Query() {
			if name != "filter_path" && !isOption(name) {
				t.Errorf("parameter %q", name)
			}
		}
		if strings.Count(u.EscapedPath(), "/") != 2 || !strings.HasSuffix(u.EscapedPath(), "/_search") {
			t.Errorf("path %s", u.EscapedPath())
		}
		if v := u.Query()["filter_path"]; len(v) != 1 || v[0] != "x" {
			t.Errorf("filter %q", v)
		}
	})
}

func TestClosedIndicesDoNotCount(t *testing.T) {
	f := clustertest.New().Reply("GET /i*", http.StatusOK, `{"a":`+mapped(`"f":{"type":"keyword"}`, `"index.verified_before_close":"true"`)+
		`,"b":`+mapped(`"f":{"type":"text"}`, "")+`}`)

	s, err := client(t, f).Schema(t.Context(), "i*", "f")
	if err != nil || len(s.Targets) != 1 || s.Targets[0].Index != "b" {
		t.Errorf("%+v, %v", s, err)
	}
}
