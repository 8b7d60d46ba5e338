package esclient

import (
	"hash/maphash"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/e2e/clustertest"
)

// The answers are those of OpenSearch 2.19 and Elasticsearch 7.10 and 8.19.
func TestLimitsAreAskedFor(t *testing.T) {
	const (
		two      = `{"a":{"settings":{},"defaults":{"index.max_rescore_window":"10000"}},"b":{"settings":{"index.max_rescore_window":"50"},"defaults":{}}}`
		one      = `{"a":{"settings":{},"defaults":{"index.max_rescore_window":"10000"}}}`
		defaults = `"defaults":{"indices.query.bool.max_clause_count":"1024"}`
		clauses  = "GET /_cluster/settings"
		window   = "/_settings/index.max_rescore_window"
	)
	for name, tt := range map[string]struct {
		setting, index, call, answer string
		status                       int
		want                         int64
	}{
		"clauses by default":   {MaxClauses, "a", clauses, `{` + defaults + `}`, 200, 1024},
		"clauses as set":       {MaxClauses, "a", clauses, `{"transient":{"indices.query.bool.max_clause_count":"512"},` + defaults + `}`, 200, 512},
		"no setting":           {MaxClauses, "a", clauses, `{}`, 200, 0},
		"not allowed":          {MaxClauses, "a", clauses, `{}`, 403, 0},
		"the smallest of two":  {MaxRescoreWindow, "a,b", "GET /a,b" + window, two, 200, 50},
		"by default":           {MaxRescoreWindow, "a", "GET /a" + window, one, 200, 10000},
		"no index":             {MaxRescoreWindow, "a", "GET /a" + window, `{}`, 200, 0},
		"no number":            {MaxRescoreWindow, "a", "GET /a" + window, `{"a":{}}`, 200, 0},
		"no index of the name": {MaxRescoreWindow, "a", "GET /a" + window, `{}`, 404, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := cached(t, clustertest.New().Reply(tt.call, tt.status, tt.answer))
			told := make(chan int64, 1)
			c.AskLimit(tt.setting, tt.index, func(n int64) { told <- n })
			synctest.Wait()
			close(told)
			check.Equal(t, tt.want, <-told, name)
		})
	}
}

func TestOneLimitIsAskedForOnceAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := clustertest.New().On("GET /_cluster/settings", clustertest.Late(time.Millisecond, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
		}))

		c := cached(t, f)
		for range 10 {
			c.AskLimit(MaxClauses, "a", func(int64) { t.Error("reported a refusal") })
		}
		check.Elapse(time.Second)
		check.Equal(t, 1, f.Asked("_cluster/settings"))
	})
}

// Each time costs calls to the cluster.
func TestAnIndexIsForgottenOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Cached{}
		c.generations.seed, c.generations.start = maphash.MakeSeed(), time.Now()
		check.That(t, c.Forget("a") && !c.Forget("a"), "not forgotten, or twice")
		check.Elapse(forgetPause)
		check.That(t, c.Forget("a"), "not forgotten a second later")
	})
}
