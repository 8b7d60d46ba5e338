package expand

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/expand/dsl"
	"github.com/akin-search/akin/expand/form"
	"github.com/akin-search/akin/expand/reason"
)

// expandRequest expands one request by the linear form, with the fixture's
// cluster changed.
func expandRequest(tb testing.TB, req *Request, change func(c *fakeCluster, o *Profile)) *Result {
	tb.Helper()
	c, m := rental(tb)
	o := with(func(o *Profile) { o.Scoring = form.Linear })
	if change != nil {
		change(c, &o)
	}
	exact := rentalWeights()
	exact.scripted = c.scripts
	r := expanded(tb, New(c, m, o).WithWeights(exact), req)
	return r
}

func TestMultiSearchGetsItsSearchTypeInTheHeader(t *testing.T) {
	for header, want := range map[string]string{
		``:              `{"search_type":"dfs_query_then_fetch"}`,
		`{}`:            `{"search_type":"dfs_query_then_fetch"}`,
		`  {}  `:        `  {"search_type":"dfs_query_then_fetch"}  `,
		`{"index":"a"}`: `{"search_type":"dfs_query_then_fetch","index":"a"}`,
	} {
		body := "{}\n" + `{"query":{"match_all":{}}}` + "\n" + header + "\n" + carRental + "\n"
		r := expandRequest(t, &Request{Endpoint: EndpointMultiSearch, Body: []byte(body)}, func(c *fakeCluster, o *Profile) {
			c.shards, o.Scoring, o.NoRescore = 2, form.Saturated, true
		})
		lines := strings.Split(string(r.Body), "\n")
		check.That(t, lines[0] == "{}" && lines[2] == want, "header %q became %q, want %q; the other is %q", header, lines[2], want, lines[0])
	}
	withKNN := expandRequest(t, &Request{Endpoint: EndpointMultiSearch, Body: []byte("{}\n" + `{"knn":{},` + carRental[1:] + "\n")},
		func(c *fakeCluster, o *Profile) { c.shards, o.Scoring = 2, form.Saturated })
	if header, _, _ := strings.Cut(string(withKNN.Body), "\n"); header != "{}" || written(withKNN)[0].Form != "saturated" {
		t.Errorf("with knn: header %q, form %s; want {}, saturated", header, written(withKNN)[0].Form)
	}
}

func TestHeaderThatChoosesShardsMakesTheFormGrouped(t *testing.T) {
	lines := []string{
		`{"routing":"a"}`, carRental, `{"preference":"_shards:1"}`, carRental, `{"routing":null}`, carRental,
	}
	for rawQuery, want := range map[string][]reason.Reason{
		"":          {reason.Routing, reason.Routing, ""},
		"routing=b": {reason.Routing, reason.Routing, ""},
	} {
		r := expandRequest(t, &Request{
			Endpoint: EndpointMultiSearch, RawQuery: rawQuery, Body: []byte(strings.Join(lines, "\n") + "\n"),
		}, func(c *fakeCluster, o *Profile) { c.shards, o.Scoring, o.NoRescore = 2, form.Auto, true })
		var got []reason.Reason
		for _, c := range written(r) {
			got = append(got, c.Reason)
		}
		check.Equal(t, want, got, rawQuery)
		sent := strings.Split(string(r.Body), "\n")
		check.That(t, sent[0] == lines[0] && sent[2] == lines[2] && strings.Contains(sent[4], dsl.DFS), "%q: headers %q, %q, %q; want dfs in the last one alone", rawQuery, sent[0], sent[2], sent[4])
	}
}

func TestMultiSearchLeftAlone(t *testing.T) {
	for name, tt := range map[string]struct {
		body string
		want reason.Reason
	}{
		"empty":                 {"", reason.MultiSearch},
		"an empty line first":   {"\n{}\n" + carRental + "\n", reason.MultiSearch},
		"no newline at the end": {"{}\n" + carRental, reason.MultiSearch},
		"a header alone":        {"{}\n", reason.MultiSearch},
		"an odd line":           {"{}\n" + carRental + "\n{}\n", reason.MultiSearch},
		"nothing to expand":     {"{}\n{}\n", reason.NoClause},
	} {
		r := expandRequest(t, &Request{Endpoint: EndpointMultiSearch, Body: []byte(tt.body)}, nil)
		check.That(t, !r.Rewritten && r.Reason == tt.want, "%s: rewritten %t, reason %q; want %q", name, r.Rewritten, r.Reason, tt.want)
	}
}

// failsOn fails the analysis of one text.
type failsOn struct {
	*fakeCluster
	text string
}

func (f *failsOn) Analyze(ctx context.Context, indices esclient.Indices, field, analyzer, text string) (*esclient.Analysis, error) {
	if text == f.text {
		return nil, errors.New("broken")
	}
	return f.fakeCluster.Analyze(ctx, indices, field, analyzer, text)
}

func TestAFailureLeavesTheOtherSearchesExpanded(t *testing.T) {
	c, m := rental(t)
	e := New(&failsOn{c, "car hire"}, m, with(func(o *Profile) { o.Scoring = form.Linear }))
	failing := `{"query":{"match":{"body":"car hire"}}}`
	r, err := e.Expand(t.Context(), &Request{
		Endpoint: EndpointMultiSearch, Body: []byte("{}\n" + failing + "\n{}\n" + carRental + "\n"),
	})
	check.OK(t, err)
	var stage *StageError
	check.That(t, r.Rewritten && len(r.Failures()) == 1 && errors.As(r.Failures()[0], &stage) && stage.Stage == StageAnalyze, "rewritten %t, failures %v", r.Rewritten, r.Failures())
	check.That(t, strings.HasPrefix(string(r.Body), "{}\n"+failing+"\n{}\n{\"query\":{\"bool\":"), "body %s", r.Body)
	r, err = e.Expand(t.Context(), &Request{Endpoint: EndpointMultiSearch, Body: []byte("{}\n" + failing + "\n")})
	check.That(t, errors.As(err, &stage), "the only search fails: result %+v, error %v", r, err)
}

func TestRatedSearchesAreExpanded(t *testing.T) {
	one := expandRequest(t, &Request{Body: []byte(carRental)}, nil)
	const body = `{"metric":{"precision":{"k":5}}, "requests":[ {"id":"a","ratings":[],"request":%1},{"request": %2 ,"id":"b"}, 7, {"template_id":"t"}]}`
	fill := func(search string) string {
		return strings.NewReplacer("%1", search, "%2", `{"query":{"term":{"a":"b"}}}`).Replace(body)
	}
	r := expandRequest(t, &Request{Endpoint: EndpointRankEval, RawQuery: "ignore_unavailable=true", Body: []byte(fill(carRental))}, nil)
	diff := cmp.Diff(fill(string(one.Body)), string(r.Body))
	check.That(t, diff == "" && r.RawQuery == "ignore_unavailable=true", "raw query %q, body (-want +got):\n%s", r.RawQuery, diff)
	// One search_type holds for all of them, so that of the request stays.
	r = expandRequest(t, &Request{Endpoint: EndpointRankEval, Body: []byte(fill(carRental))}, func(c *fakeCluster, o *Profile) {
		c.shards, o.Scoring = 2, form.Auto
	})
	check.That(t, r.RawQuery == "" && r.Clauses[0].Form == "grouped", "on several shards: raw query %q, form %q", r.RawQuery, r.Clauses[0].Form)
	for _, broken := range []string{"", "[]", `{"requests":`} {
		r = expandRequest(t, &Request{Endpoint: EndpointRankEval, Body: []byte(broken)}, nil)
		check.That(t, !r.Rewritten && r.Reason != "", "%q: rewritten %t, reason %q", broken, r.Rewritten, r.Reason)
	}
}
