package proxy

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/proxy/playground"
)

// The playground shows what clients get, with what it says of added terms, and
// takes part in no trial, which would count and log its searches as users'.
func TestPlaygroundSearchesAsClientsDo(t *testing.T) {
	var asked *expand.Request
	p := startTrial(t, func(o *Options) {
		o.Trials[0].Header = ""
		o.Expander = expander(func(ctx context.Context, r *expand.Request) (*expand.Result, error) {
			asked = r
			return rewriteTo(newBody)(ctx, r)
		})
	}, answerOf(hitsAnswer(1, 1, "a")), answerOf(hitsAnswer(2, 2, "a b")))
	r := adminRequest(http.MethodPost, "/_akin/playground/search", `{"index":"t","body":`+trialBody+`,"matching":"same","adjusted":[{"term":"dog","factor":0.5}]}`)
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	p.server.admin.ServeHTTP(w, r)
	var got playground.Compared
	err := json.Unmarshal(w.Body.Bytes(), &got)
	check.Must(t, err == nil && w.Code == http.StatusOK, "%d %s", w.Code, w.Body)
	if !strings.Contains(string(got.Direct.Answer), `"value":1`) || !strings.Contains(string(got.Akin.Answer), `"value":2`) ||
		got.Explanation == nil || got.Explanation.Sent != "rewritten" || string(got.Explanation.Rewritten.Body) != newBody {
		t.Errorf("got %s", w.Body)
	}
	changes := asked.Changes
	check.That(t, len(changes.Adjusted) == 1 && changes.Adjusted[0].Factor == 0.5 && *changes.Matching == expand.Same && asked.NameAdded,
		"the expander is asked for %+v, names %t", changes, asked.NameAdded)
	if p.post(t, "/t/_search?akin=no-feedback", jsonType, trialBody); asked.Changes.Adjusted != nil || asked.NameAdded {
		t.Error("clients' searches have names, too")
	}
	p.counted(t, 0, "akin_trial_searches_total")
}

func TestPlaygroundHasASentenceForEachReason(t *testing.T) {
	w := answerAdmin(newServer(t, Options{}), adminRequest(http.MethodGet, playground.Page+".js", ""))
	all := reason.All()
	for _, r := range all[:slices.Index(all, reason.Unknown)+1] { // those behind it do not leave a search alone
		check.That(t, strings.Contains(w.Body.String(), " "+string(r)+": '"), "%s has none", r)
	}
	for _, r := range reasons() {
		check.That(t, strings.Contains(w.Body.String(), " "+r+": '"), "%s has none", r)
	}
}
