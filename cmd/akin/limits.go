package main

import (
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/expand"
)

// learn takes from a refusal what it teaches, and reports whether that was
// news: a limit, about which the cluster is then asked itself, or that what is
// remembered of the indices no longer holds.
func (a *app) learn(e *expand.Expander, r *expand.Refusal) bool {
	limit, ok := r.Limit()
	if !ok {
		return r.Moved() && a.cluster.Forget(r.Index)
	}
	news := e.Learn(limit)
	if news {
		setting := map[expand.LimitKind]string{
			expand.LimitClauses: esclient.MaxClauses,
			expand.LimitRescore: esclient.MaxRescoreWindow,
			expand.LimitResults: esclient.MaxResultWindow,
		}[limit.Kind]
		a.cluster.AskLimit(setting, limit.Index, func(n int64) {
			e.Correct(expand.Limit{Kind: limit.Kind, Index: limit.Index, N: n})
		})
	}
	return news
}

// logLimit says what was learnt of the cluster, or forgotten.
func (a *app) logLimit(l expand.Limit) {
	if l.N == 0 {
		a.log.Info("a limit of the cluster is to be learned again", "kind", l.Kind, "index", l.Index)
		return
	}
	a.log.Info("searches are kept under a limit of the cluster", "kind", l.Kind, "index", l.Index, "limit", l.N)
}
