package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/internal/cli"
)

// A initRequest is what is asked for: the flags of "init".
type initRequest struct {
	Cluster, CAFile string
	Index           string // "" is all that are no system indices
	Out             string // "-" is standard output
	Force           bool   // a file that is there is replaced
	Credentials     bool   // there are some for the cluster
}

// Check returns what is wrong with the request.
func (r *initRequest) Check() error {
	switch {
	case r.Cluster == "":
		return errors.New("give --url URL of your cluster")
	case r.Out == toStdout:
		return nil
	}
	if err := cli.CheckOut(r.Out); err != nil {
		return err
	}
	if there, err := cli.Exists(r.Out); err != nil || there && !r.Force {
		return errors.Join(err, fmt.Errorf("%s is there already: give another --out, or --force to replace it", r.Out))
	}
	return nil
}

// A proposal is what was found out, and what is made of it.
type proposal struct {
	*initRequest

	info    esclient.Info
	nodes   int  // 0: not known
	scripts bool // the cluster runs inline scripts
	groups  []group
	left    []string // what no matrix is proposed for, and why
}

// runInit asks the cluster, writes the file, and prints on out what to do next.
func runInit(ctx context.Context, client *esclient.Client, r *initRequest, out io.Writer) error {
	p := &proposal{initRequest: r}
	if err := p.ask(ctx, client); err != nil {
		return err
	}
	if r.Out == toStdout {
		return p.write(out)
	}
	if err := cli.Write(ctx, r.Out, p.write); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s is written. Look through it, then:\n", r.Out)
	for _, line := range p.next() {
		fmt.Fprintf(out, "  %s\n", line)
	}
	return nil
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
	if p.Index == "" {
		names = withoutSystem(names)
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

// next returns the commands to run next, in order.
func (p *proposal) next() (lines []string) {
	config := p.Out
	if config == toStdout {
		config = "akin.yml"
	}
	for k := range p.groups {
		g := &p.groups[k]
		args := []string{"matrix", "build", "--from-index", p.Cluster}
		if p.CAFile != "" {
			args = append(args, "--ca-file", p.CAFile)
		}
		args = append(args, "--index", strings.Join(g.indices, ","), "--field", strings.Join(g.fields, ","),
			"--out", filepath.Join(filepath.Dir(config), g.file()))
		lines = append(lines, "akin "+cli.CommandLine(args...))
	}
	return append(lines, "akin "+cli.CommandLine("check", "--config", config), "akin "+cli.CommandLine("serve", "--config", config))
}
