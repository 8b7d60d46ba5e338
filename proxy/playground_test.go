package proxy

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/expand"
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
	r := adminRequest(http.MethodPost, "/_akin/playground/search", `{"index":"t","body":`+trialBody+`,"adjusted":[{"term":"dog","factor":0.5}]}`)
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
	check.That(t, len(asked.Adjusted) == 1 && asked.Adjusted[0].Factor == 0.5 && asked.NameAdded, "the expander is asked for %v, names %t", asked.Adjusted, asked.NameAdded)
	if p.post(t, "/t/_search?akin=no-feedback", jsonType, trialBody); asked.Adjusted != nil || asked.NameAdded {
		t.Error("clients' searches have names, too")
	}
	p.counted(t, 0, "akin_trial_searches_total")
}
