package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/internal/cli"
)

// A proposal is what was found out, and what is made of it.
type proposal struct {
	// The flags.
	cli.Cluster        // with an empty Index: all indices but those of the system
	out         string // "-" is standard output
	force       bool   // a file that is there is replaced

	info    esclient.Info
	nodes   int  // 0: not known
	scripts bool // the cluster runs inline scripts
	groups  []group
	left    []string // what no matrix is proposed for, and why
}

// ask finds out what the cluster is and has.
func (p *proposal) ask(ctx context.Context, client *esclient.Client) (err error) {
	if p.info, err = client.Info(ctx); err != nil {
		return err
	}
	names, texts, err := client.Texts(ctx, p.Index)
	if err != nil {
		return err
	}
	if p.Index == "" { // without those of the cluster itself and of its tools
		names = slices.DeleteFunc(names, func(name string) bool { return strings.HasPrefix(name, ".") })
	}
	if p.groups, p.left, err = grouped(names, texts, p.Index); err != nil {
		return err
	}
	if len(p.groups) == 0 {
		return fmt.Errorf("no open index of %q has a text field that documents fill: load documents first, or name others with --index", p.Index)
	}
	docs := documents.API{Client: client}
	for k := range p.groups {
		g := &p.groups[k]
		if g.docs, err = docs.Count(ctx, strings.Join(g.indices, ","), nil); err != nil {
			return err
		}
	}
	p.askMore(ctx, client)
	return ctx.Err()
}

// askMore finds out what may stay unknown: how many nodes there are, and
// whether scripts run.
func (p *proposal) askMore(ctx context.Context, client *esclient.Client) {
	var health struct {
		Nodes int `json:"number_of_nodes"`
	}
	if client.Do(ctx, esclient.Call{Path: "/_cluster/health?filter_path=number_of_nodes"}, &health) == nil {
		p.nodes = health.Nodes
	}
	const cacheBytes = 1 << 20
	cached := esclient.NewCached(client, esclient.CacheOptions{AnalysisBytes: cacheBytes, StatisticsBytes: cacheBytes, TTL: time.Minute})
	defer cached.Close()
	first := &p.groups[0]
	statistics, err := cached.Statistics(ctx, esclient.Indices{Expression: first.indices[0]}, first.fields[0], []string{"akin"}, make([]int64, 1))
	p.scripts = err == nil && statistics.Scripts
}
