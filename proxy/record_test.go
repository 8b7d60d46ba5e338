package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/proxy/report"
)

// record tells what the expander made of a search.
func record(s *Server, x *search, r *http.Request, took time.Duration, res *expand.Result, cause string) {
	x.header = r.Header
	s.lookedAt(x)
	x.report.Took, x.report.Cause, x.report.Explain = took, cause, true
	if res != nil {
		x.made(res)
	}
	s.tell(context.Background(), x, nil)
}

// recorded records a search and returns what the admin port shows of it, less
// what differs each time.
func recorded(t *testing.T, s *Server, x *search, r *http.Request, res *expand.Result, cause string) map[string]any {
	t.Helper()
	record(s, x, r, 1500*time.Microsecond, res, cause)
	if len(x.report.ID) < 20 { // base32: 100 bits
		t.Errorf("the id is %q", x.report.ID)
	}
	var shown map[string]any
	status := getAdmin(t, s, "/_akin/explanations/"+x.report.ID, &shown)
	check.Must(t, status == http.StatusOK, "status %d", status)
	when, err := time.Parse(time.RFC3339Nano, fmt.Sprint(shown["time"]))
	check.That(t, err == nil && time.Since(when) <= patience, "time %v, %v", shown["time"], err)
	check.That(t, shown["id"] == x.report.ID, "id %v, want %s", shown["id"], x.report.ID)
	delete(shown, "time")
	delete(shown, "id")
	return shown
}

func TestExplanationShows(t *testing.T) {
	rewritten := &expand.Result{
		Rewritten: true, RawQuery: "q=b", Body: []byte(`{"b":1}`),
		Clauses: []expand.Explanation{{
			Path: "query.match", Field: "body", Matrix: "main@1", Form: "linear", Phase: "query", Terms: []string{"car"}, Reason: reason.NoScripts,
			Added: []expand.Added{{Term: "hire", From: "car", Similarity: 0.5, Weight: 1, Boost: 0.25}},
		}, {Path: "query.term", Reason: reason.NotText}},
	}
	const (
		became = `,"rewritten":{"raw_query":"q=b","body":{"b":1}},"clauses":[{"path":"query.match","field":"body","matrix":"main@1","form":"linear","phase":"query","terms":["car"],"reason":"no_scripts",` +
			`"added":[{"term":"hire","from":"car","similarity":0.5,"weight":1,"boost":0.25}]},{"path":"query.term","reason":"not_text"}]`
		ofOne, plain, none = `"endpoint":"search"`, `"original":{"raw_query":"q=a","body":{"a":1}}`, `,"clauses":[]`
		one                = `"outcome":"rewritten","added_terms":1,"sent":`
		failed             = `"outcome":"failed_open","cause":"budget","added_terms":0,"sent":"original",`
	)
	large := func(open, end string) []byte { return []byte(open + strings.Repeat("x", 64<<10) + end) }
	for name, tt := range map[string]struct {
		body   string
		packed bool
		change func(x *search)
		res    *expand.Result // nil where the budget was exceeded
		shadow float64
		want   string
	}{
		"a dry run with a profile":   {`{"a":1}`, false, func(x *search) { x.control = control{dryRun: true, profile: "fast"} }, rewritten, 0, ofOne + `,"profile":"fast",` + one + `"original",` + plain + became},
		"shadow mode":                {`{"a":1}`, false, nil, rewritten, 0.1, ofOne + `,` + one + `"original",` + plain + became},
		"a failure of a packed body": {pack(t, `{"a":1}`), true, nil, nil, 0, ofOne + `,` + failed + plain + none},
		"no body":                    {"", false, nil, nil, 0, ofOne + `,` + failed + `"original":{"raw_query":"q=a"}` + none},
		"several searches, of which one failed": {
			"{}\n{\"a\":1}\n", false, func(x *search) { x.route = &route{endpoint: expand.EndpointMultiSearch} },
			&expand.Result{Rewritten: true, Body: []byte("{}\n{\"b\":1}\n"), Parts: []expand.Part{{Err: errors.New("redis: refused")}}}, 0,
			`"endpoint":"msearch","outcome":"rewritten","added_terms":0,"sent":"rewritten","original":{"raw_query":"q=a","body":"{}\n{\"a\":1}\n"},` +
				`"rewritten":{"raw_query":"","body":"{}\n{\"b\":1}\n"},"failures":["redis: refused"]` + none,
		},
		"bodies that are too large": {
			string(large(`"`, `"`)), false, nil, &expand.Result{Rewritten: true, Body: large(`["`, `"]`)}, 0,
			ofOne + `,"outcome":"rewritten","added_terms":0,"sent":"rewritten","original":{"raw_query":"q=a","body_size":65538},"rewritten":{"raw_query":"","body_size":65540}` + none,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, Options{Shadow: tt.shadow})
			x, r, cause := searchFor(expand.EndpointSearch, "help", "q=a", tt.body), httptest.NewRequest(http.MethodPost, "/", nil), ""
			if tt.change != nil {
				tt.change(x)
			}
			if tt.packed {
				r.Header.Set("Content-Encoding", "gzip")
			}
			if tt.res == nil {
				cause = "budget"
			}
			got := recorded(t, s, x, r, tt.res, cause)
			var want map[string]any
			check.OK(t, json.Unmarshal([]byte(`{"index":"help","took_ms":1.5,`+tt.want+`}`), &want))
			check.Equal(t, want, got)
		})
	}
}

func TestTheAdminPortShowsWordsOfTerms(t *testing.T) {
	res := &expand.Result{Rewritten: true, Body: []byte("{}"), Clauses: []expand.Explanation{{
		Path: "query.match", Matrix: "main@1", Form: "linear", Terms: []string{"nappi"},
		Added: []expand.Added{{Term: "ga", From: "nappi"}, {Term: "oil", From: "nappi"}},
	}}}
	o := Options{
		Expander: expander(func(context.Context, *expand.Request) (*expand.Result, error) { return res, nil }),
		Forms: func(ctx context.Context, matrix string, terms []string) (words, notes map[string]string) {
			_, bounded := ctx.Deadline()
			check.That(t, matrix == "main@1" && len(terms) == 3 && bounded, "asked for %q of %s, bounded %t", terms, matrix, bounded)
			return map[string]string{"ga": "gas\x1b[2J\"<b>", "nappi": "nappies"}, nil
		},
	}
	const want = `"terms":["nappi"],"words":{"nappi":"nappies"},"added":[` +
		`{"term":"ga","from":"nappi","similarity":0,"weight":0,"boost":0,"word":"gas\u001b[2J\"<b>"},` +
		`{"term":"oil","from":"nappi","similarity":0,"weight":0,"boost":0}]}]`
	_, answer := askAdmin(t, o, http.MethodPost, "/_akin/expand/help", "{}")
	check.That(t, strings.Contains(answer, want), "a search that is only shown: %s", answer)
	s := newServer(t, o)
	x := searchFor(expand.EndpointSearch, "help", "", "{}")
	record(s, x, httptest.NewRequest(http.MethodPost, "/", nil), 0, res, "")
	_, answer = askServer(s, http.MethodGet, explanationsPath+"/"+x.report.ID, "")
	check.That(t, strings.Contains(answer, want) && strings.Count(answer, `"clauses"`) == 1, "a search that was sent: %s", answer)
}

// note records an empty search of an index.
func note(s *Server, index string, body []byte) {
	x := searchFor(expand.EndpointSearch, index, "", "")
	x.body.raw = body
	record(s, x, &http.Request{}, 0, &expand.Result{}, "")
}

func TestLastExplanationsAreListedNewestFirst(t *testing.T) {
	s := newServer(t, Options{})
	var list struct{ Explanations []report.Summary }
	if getAdmin(t, s, explanationsPath, &list); list.Explanations == nil || len(list.Explanations) > 0 {
		t.Errorf("at first %v", list)
	}
	for i := range report.MaxKept + 30 {
		note(s, strconv.Itoa(i), nil)
	}
	for _, tt := range []struct {
		query       string
		count, last int
	}{{"", shownExplanations, 1010}, {"?limit=3", 3, 1027}, {"?limit=1000", report.MaxKept, 30}} {
		check.Equal(t, http.StatusOK, getAdmin(t, s, "/_akin/explanations"+tt.query, &list), tt.query)
		var got, want []string
		for i := range tt.count {
			want = append(want, strconv.Itoa(report.MaxKept+29-i))
		}
		for _, e := range list.Explanations {
			got = append(got, e.Index)
		}
		diff := cmp.Diff(want, got)
		check.That(t, diff == "" && want[tt.count-1] == strconv.Itoa(tt.last), "%q (-want +got):\n%s", tt.query, diff)
	}
	for _, query := range []string{"?limit=0", "?limit=1001", "?limit=x", "?limit="} {
		var answer errorAnswer
		status := getAdmin(t, s, "/_akin/explanations"+query, &answer)
		check.That(t, status == http.StatusBadRequest && answer.Error.Type == "akin_request_exception", "%s: %d, %+v", query, status, answer)
	}
}

func TestUnknownExplanationIsAnErrorOfTheUsualShape(t *testing.T) {
	s := newServer(t, Options{})
	if status, _ := askServer(s, http.MethodGet, explanationsPath+"/x/", ""); status != http.StatusNotFound {
		t.Errorf("status %d", status)
	}
	for _, id := range []string{"x", strings.Repeat("A", 26)} {
		var answer errorAnswer
		status := getAdmin(t, s, explanationsPath+"/"+id, &answer)
		check.That(t, status == http.StatusNotFound && answer.Status == status && answer.Error.Type != "" && len(answer.Error.RootCause) == 1, "%s: status %d, %+v", id, status, answer)
	}
}

func TestClausesAreCountedByReason(t *testing.T) {
	o := Options{}
	s := newServer(t, o)
	record(s, searchFor(expand.EndpointSearch, "", "", ""), &http.Request{}, 0, &expand.Result{Rewritten: true, Clauses: []expand.Explanation{
		{Form: "linear", NoRow: []string{"zebra", "yak"}}, {Form: "grouped", Reason: reason.NoScripts}, {Reason: reason.NotText}, {Reason: reason.NotText},
	}}, "")
	check.Equal(t, 1, counter(t, s.opts.Registry, "akin_searches_without_row_total"), "searches with words without a row")
	for _, tt := range []struct {
		outcome, reason string
		want            float64
	}{{"rewritten", "", 1}, {"rewritten", "no_scripts", 1}, {"unchanged", "not_text", 2}} {
		check.Equal(t, tt.want, counter(t, s.opts.Registry, "akin_clauses_total", "outcome", tt.outcome, "reason", tt.reason), tt.outcome, tt.reason)
	}
}
