package serve

import (
	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/expand/vectors"
	"github.com/akin-search/akin/proxy"
	"github.com/akin-search/akin/simmatrix/store"
)

// expanders sets what rewrites searches: as the configuration says for all, and
// as each profile says. All know together what has been learned of the cluster.
func (a *App) expanders(options *proxy.Options, models []*vectors.Model) {
	cfg := a.cfg
	options.Profiles = make(map[string]proxy.Expander, len(cfg.Profiles))
	for name := range cfg.Profiles {
		options.Profiles[name] = nil // known, and switched off
	}
	if a.store == nil {
		return
	}
	rewriting := func(p expand.Profile) expand.Profile {
		p.HideFrom = cfg.Expansion.HideFrom
		return p
	}
	a.expander = expand.New(a.cluster, matrices{a.store, a.cluster, nil}, rewriting(cfg.Expansion.Profile))
	if a.weights != nil {
		a.expander = a.expander.WithWeights(weightSource{a.weights, a.cluster})
	}
	if len(models) > 0 {
		a.expander = a.expander.WithVectors(&vectorSource{models: models, cluster: a.cluster, log: a.log})
	}
	if cfg.Expansion.Enabled {
		options.Expander = a.expander
	}
	for name, p := range cfg.Profiles {
		if !p.Enabled {
			continue
		}
		e := a.expander.With(rewriting(p.Profile))
		if len(p.Matrices) > 0 {
			e = e.WithMatrices(matrices{a.store, a.cluster, p.Matrices})
		}
		options.Profiles[name] = e
	}
	a.expander.Limits().OnChange = a.logLimit
	options.OnRefused = func(r *expand.Refusal) bool { return a.learn(r) }
}

func trials(entries []configs.Trial) (all []proxy.Trial) {
	for _, t := range entries {
		all = append(all, proxy.Trial{
			Name: t.Name, Covers: store.Covers(t.Indices), Arms: [2]string(t.Arms), Share: t.Share, Header: t.Header,
		})
	}
	return all
}

// learn takes from a refusal what it teaches, and reports whether that was
// news: a limit, about which the cluster is then asked, or that the indices
// have changed.
func (a *App) learn(r *expand.Refusal) bool {
	limit, ok := r.Limit()
	if !ok {
		return r.Moved() && a.cluster.Forget(r.Index)
	}
	news := a.expander.Limits().Learn(limit)
	if news {
		setting := map[expand.LimitKind]string{
			expand.LimitClauses: esclient.MaxClauses, expand.LimitRescore: esclient.MaxRescoreWindow, expand.LimitResults: esclient.MaxResultWindow,
		}[limit.Kind]
		a.cluster.AskLimit(setting, limit.Index, func(n int64) {
			a.expander.Limits().Correct(expand.Limit{Kind: limit.Kind, Index: limit.Index, N: n})
		})
	}
	return news
}

func (a *App) logLimit(l expand.Limit) {
	if l.N == 0 {
		a.log.Info("a limit of the cluster is to be learned again", "kind", l.Kind, "index", l.Index)
		return
	}
	a.log.Info("searches are kept under a limit of the cluster", "kind", l.Kind, "index", l.Index, "limit", l.N)
}
