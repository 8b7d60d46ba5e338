package expand

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/expand/reason"
)

func TestWhatAnAnswerDiscloses(t *testing.T) {
	const query = `"query":{"match":{"body":"car"}}`
	tests := []struct {
		name string
		req  Request
		want Disclosure
	}{
		{"a plain search", Request{Body: []byte(`{` + query + `}`)}, 0},
		{"a profile", Request{Body: []byte(`{"profile":true,` + query + `}`)}, DiscloseProfile},
		{"a profile as a text", Request{Body: []byte(`{` + query + `, "profile" : "true"}`)}, DiscloseProfile},
		{"no profile", Request{Body: []byte(`{"profile":false,` + query + `}`)}, 0},
		{"escaped names and values", Request{Body: []byte(`{"pr\u006ffile":"tr\u0075e",` + query + `}`)}, DiscloseProfile},
		{"explanations", Request{Body: []byte(`{"explain":true,` + query + `}`)}, DiscloseExplain},
		{"both", Request{Body: []byte(`{"explain":true,` + query + `,"profile":true}`)}, DiscloseExplain | DiscloseProfile},
		{"no explanations", Request{Body: []byte(`{"explain":false,` + query + `}`), RawQuery: "explain=false"}, 0},
		{"explanations of inner hits", Request{Body: []byte(`{"collapse":{"field":"n","inner_hits":[{"name":"x","explain":true}]},` + query + `}`)}, DiscloseExplain},
		{"explanations of top hits", Request{Body: []byte(`{"aggs":{"a":{"top_hits":{"explain":true}}},` + query + `}`)}, DiscloseExplain},
		{"a text that says so", Request{Body: []byte(`{"query":{"match":{"body":"car \"explain\": true"}}}`)}, 0},
		{"a list that says so", Request{Body: []byte(`{"_source":["explain","true"],` + query + `}`)}, 0},
		{"explanations by a parameter", Request{Body: []byte(`{` + query + `}`), RawQuery: "a=b&explain=true"}, DiscloseExplain},
		{"explanations by a parameter without a value", Request{RawQuery: "explain&q=car"}, DiscloseExplain},
		{"the explanation of one hit", Request{Endpoint: EndpointExplain, Body: []byte(`{` + query + `}`)}, DiscloseExplain},
		{"a verdict on a query", Request{Endpoint: EndpointValidate, Body: []byte(`{` + query + `}`)}, 0},
		{"the query of a verdict", Request{Endpoint: EndpointValidate, Body: []byte(`{` + query + `}`), RawQuery: "explain=true"}, DiscloseValidate},
		{"the rewritten query of a verdict", Request{Endpoint: EndpointValidate, Body: []byte(`{` + query + `}`), RawQuery: "rewrite"}, DiscloseValidate},
		{"the query of a verdict on all shards", Request{Endpoint: EndpointValidate, Body: []byte(`{` + query + `}`), RawQuery: "all_shards=true"}, DiscloseValidate},
		{"a template that asks", Request{Body: []byte(`{` + query + `}`), Discloses: DiscloseProfile}, DiscloseProfile},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, filtered := range []bool{false, true} {
				for hide := range Disclosure(8) {
					req := tt.req
					res := expandRequest(t, &req, func(c *fakeCluster, o *Profile) {
						c.filtered, o.HideFrom, o.DefaultFields = filtered, hide, []string{"body"}
					})
					hidden := tt.want&hide != 0 || filtered && tt.want != 0
					check.That(t, res.Rewritten != hidden && (res.Reason == reason.Hidden) == hidden, "hidden from %03b, filtered %v: rewritten %v, reason %q", hide, filtered, res.Rewritten, res.Reason)
				}
			}
		})
	}
}

func TestAnswersDiscloseNothingWhereTheClusterHasSecurity(t *testing.T) {
	for _, tt := range []struct {
		body            string
		secured, hidden bool
	}{
		{`{"explain":true,"query":{"match":{"body":"car"}}}`, true, true},
		{`{"explain":true,"query":{"match":{"body":"car"}}}`, false, false},
		{`{"query":{"match":{"body":"car"}}}`, true, false},
	} {
		req := Request{Body: []byte(tt.body)}
		if tt.secured {
			req.Allowed = func(context.Context, esclient.Indices) error { return nil }
		}
		res := expandRequest(t, &req, func(_ *fakeCluster, o *Profile) { o.HideFrom = DiscloseSecured })
		check.That(t, res.Rewritten != tt.hidden && (res.Reason == reason.Hidden) == tt.hidden, "%s, secured %v: rewritten %v, reason %q", tt.body, tt.secured, res.Rewritten, res.Reason)
	}
}

// A gate lets nobody search the index "secret". A question to the cluster or for a
// matrix about indices that it has not let through fails the test.
type gate struct {
	*fakeCluster
	*fakeMatrix
	t      *testing.T
	mu     sync.Mutex
	opened []string
}

func (g *gate) allow(_ context.Context, indices esclient.Indices) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch indices.Expression {
	case "secret":
		return fmt.Errorf("asked: %w", ErrNotAuthorized)
	case "nowhere":
		return fmt.Errorf("asked: %w", ErrUnknown)
	case "broken":
		return errors.New("the cluster does not answer")
	}
	g.opened = append(g.opened, indices.Expression+"?"+indices.Options)
	return nil
}

func (g *gate) check(index string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !slices.ContainsFunc(g.opened, func(o string) bool { return strings.HasPrefix(o, index+"?") }) {
		g.t.Errorf("a question about %q, of which nobody knows whether the client may search it", index)
	}
}

func (g *gate) Analyze(ctx context.Context, indices esclient.Indices, field, analyzer, text string) (*esclient.Analysis, error) {
	g.check(indices.Expression)
	return g.fakeCluster.Analyze(ctx, indices, field, analyzer, text)
}

func (g *gate) Fields(ctx context.Context, indices esclient.Indices, pattern string) ([]string, error) {
	g.check(indices.Expression)
	return g.fakeCluster.Fields(ctx, indices, pattern)
}

func (g *gate) Pin() Pinned { return g }

func (g *gate) For(ctx context.Context, indices esclient.Indices, field string) (Bound, error) {
	g.check(indices.Expression)
	return g.fakeMatrix.For(ctx, indices, field)
}

func TestNothingIsAskedBeforeTheClientIsAllowed(t *testing.T) {
	const search = `{"query":{"multi_match":{"query":"car rental","fields":["bo*"]}}}`
	pointInTimeSearch := `{"pit":{"id":"` + pitIDs[0].id + `"},` + search[1:]
	tests := []struct {
		name      string
		req       Request
		opened    string
		rewritten bool
		reason    reason.Reason
		failed    bool
	}{
		{"allowed", Request{Index: "docs", Body: []byte(search)}, "docs?", true, "", false},
		{"with options", Request{Index: "docs", Body: []byte(search), RawQuery: "ignore_unavailable=true&size=1"}, "docs?ignore_unavailable=true", true, "", false},
		{"denied", Request{Index: "secret", Body: []byte(search)}, "", false, reason.NotAuthorized, false},
		{"missing", Request{Index: "nowhere", Body: []byte(search)}, "", false, reason.UnknownToCluster, false},
		{"failed", Request{Index: "broken", Body: []byte(search)}, "", false, "", true},
		{"a point in time", Request{Body: []byte(pointInTimeSearch)}, "pit-one?", true, "", false},
		{"several searches", Request{
			Endpoint: EndpointMultiSearch, Index: "docs",
			Body: []byte("{}\n" + search + "\n{\"index\":\"secret\"}\n" + search + "\n{\"index\":[\"docs\",\"more\"]}\n" + search + "\n"),
		}, "docs,more? docs?", true, "", false},
		{"several searches, none allowed", Request{
			Endpoint: EndpointMultiSearch, Index: "docs", Body: []byte("{\"index\":\"secret\"}\n" + search + "\n"),
		}, "", false, reason.NotAuthorized, false},
		{"rated searches", Request{
			Endpoint: EndpointRankEval, Index: "secret", Body: []byte(`{"requests":[{"id":"a","request":` + search + `,"ratings":[]}]}`),
		}, "", false, reason.NotAuthorized, false},
		{"no clause to expand", Request{Index: "secret", Body: []byte(`{"query":{"term":{"n":1}}}`)}, "", false, reason.NoClause, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := &gate{t: t}
			g.fakeCluster, g.fakeMatrix = rental(t)
			req := tt.req
			req.Allowed = g.allow
			res, err := New(g, g, widening()).Expand(t.Context(), &req)
			var stage *StageError
			failed := errors.As(err, &stage) && stage.Stage == StageAccess
			check.Must(t, failed == tt.failed && (err == nil || failed), "error %v", err)
			check.That(t, err != nil || res.Rewritten == tt.rewritten && (tt.reason == "" || res.Reason == tt.reason), "%+v, want rewritten %v, %q", res, tt.rewritten, tt.reason)
			slices.Sort(g.opened)
			check.Equal(t, tt.opened, strings.Join(g.opened, " "), "opened")
		})
	}
}

// TestPointInTimeOfAFilteredAliasGoesByTheAlias so that the matrix of the alias is
// taken, and not that of the index.
func TestPointInTimeOfAFilteredAliasGoesByTheAlias(t *testing.T) {
	for _, tt := range []struct {
		name string
		p    pointInTime
		want string
	}{
		{"no filter", pointInTime{indices: []string{"a", "b"}}, "a,b"},
		{"one index", pointInTime{indices: []string{"a"}, filtered: true, aliases: []string{"of-a"}}, "of-a"},
		{"several indices", pointInTime{indices: []string{"a", "b"}, filtered: true, aliases: []string{"both"}}, ""},
		{"a filter of no alias", pointInTime{indices: []string{"a"}, filtered: true}, ""},
	} {
		check.Equal(t, tt.want, strings.Join(tt.p.names(), ","), tt.name)
	}
}
