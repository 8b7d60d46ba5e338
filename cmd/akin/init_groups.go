package main

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/esclient/mapping"
	"github.com/akin-search/akin/internal/cli"
)

// A proposal is a configuration proposed for a cluster.
type proposal struct {
	// The flags.
	cli.Cluster        // with an empty Index: all indices except system indices
	out         string // "-" is standard output

	info   esclient.Info
	nodes  int // 0 if unknown
	groups []group
	left   []string // fields without a matrix, and why
}

func (p *proposal) ask(ctx context.Context, client *esclient.Client) (err error) {
	if p.info, err = client.Info(ctx); err != nil {
		return err
	}
	names, texts, err := client.Texts(ctx, p.Index)
	if err != nil {
		return err
	}
	if p.Index == "" { // without system indices
		names = slices.DeleteFunc(names, func(name string) bool { return strings.HasPrefix(name, ".") })
	}
	if p.groups, p.left, err = grouped(names, texts, p.Index); err != nil {
		return err
	}
	if len(p.groups) == 0 {
		return fmt.Errorf("no open index of %q has documents with a text field: load documents first, or name other indices with --index", p.Index)
	}
	docs := documents.API{Client: client}
	for k := range p.groups {
		g := &p.groups[k]
		if g.docs, err = docs.Count(ctx, strings.Join(g.indices, ","), nil); err != nil {
			return err
		}
	}
	var health struct { // the number of nodes may stay unknown
		Nodes int `json:"number_of_nodes"`
	}
	if client.Do(ctx, esclient.Call{Request: esapi.ClusterHealthRequest{FilterPath: []string{"number_of_nodes"}}}, &health) == nil {
		p.nodes = health.Nodes
	}
	return ctx.Err()
}

// A group is an entry of matrices: fields with the same analysis.
type group struct {
	name, analyzer  string
	indices, fields []string
	docs            int64 // in the indices
	treatment       mapping.Treatment
}

func (g *group) file() string { return g.name + ".akin" }

// maxIndices is the length in bytes of the names of a group's indices, which go
// into a request line.
const maxIndices = 1000

// grouped groups fields with the same analysis. An entry applies to each of its
// fields in each of its indices, so indices with other fields of these names
// get entries of their own. left describes fields without a group. A group of
// all names uses the given expression for its indices.
func grouped(names []string, texts map[string][]mapping.Text, expression string) (groups []group, left []string, err error) {
	for _, name := range names {
		alike, other := analyzedAlike(name, texts[name])
		left = append(left, other...)
		for _, g := range alike {
			k := slices.IndexFunc(groups, func(o group) bool { return o.treatment == g.treatment && slices.Equal(o.fields, g.fields) })
			if k < 0 {
				k = len(groups)
				groups = append(groups, g)
			}
			groups[k].indices = append(groups[k].indices, name)
		}
	}
	for k := range groups {
		g := &groups[k]
		g.name = unused(groups[:k], g.analyzer)
		if parts := strings.Split(expression, ","); len(g.indices) == len(names) && nameable("indices", parts...) {
			g.indices = parts
		}
		if len(strings.Join(g.indices, ",")) > maxIndices {
			return nil, nil, fmt.Errorf("%d indices have fields that are analyzed alike, too many to list: select some with a pattern in --index", len(g.indices))
		}
	}
	return groups, left, nil
}

// analyzedAlike returns the groups of one index's fields, without the index,
// and the fields without a group.
func analyzedAlike(index string, texts []mapping.Text) (groups []group, left []string) {
	for _, t := range texts {
		if t.NotWords != "" {
			left = append(left, fmt.Sprintf("%s of %s: its terms are no words (%s)", t.Name, index, t.NotWords))
			continue
		}
		if !nameable("fields", t.Name) {
			left = append(left, fmt.Sprintf("%q of %s: a configuration cannot name this field", t.Name, index))
			continue
		}
		k := slices.IndexFunc(groups, func(g group) bool { return g.treatment == t.Treatment() })
		if k < 0 {
			k = len(groups)
			groups = append(groups, group{treatment: t.Treatment(), analyzer: analyzerName(&t.Field)})
		}
		if g := &groups[k]; !slices.Contains(g.fields, t.Name) { // the indices of a data stream have the same fields
			g.fields = append(g.fields, t.Name)
		}
	}
	return groups, left
}

// nameable reports whether a key of matrices can have these names.
func nameable(key string, names ...string) bool {
	_, err := configs.Parse("", []byte("cluster: {urls: [http://x]}\nmatrices: [{name: x, file: x, "+key+": "+list(names)+"}]\n"))
	return err == nil
}

// analyzerName returns the name of a field's analyzer, standard for that of
// fields that name none unless the index defines another as its default.
func analyzerName(f *mapping.Field) string {
	if f.IndexAnalyzer == "default" && f.Settings.Definition("default") == f.Settings.Definition("standard") {
		return "standard"
	}
	return f.IndexAnalyzer
}

var notInNames = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

func unused(groups []group, analyzer string) string {
	const most = 50
	base := strings.Trim(notInNames.ReplaceAllString(analyzer, "-"), "-.")
	if base = base[:min(len(base), most)]; base == "" {
		base = "main"
	}
	name := base
	for n := 2; slices.ContainsFunc(groups, func(g group) bool { return g.name == name }); n++ {
		name = fmt.Sprintf("%s-%d", base, n)
	}
	return name
}

func list(texts []string) string {
	all := make([]string, len(texts))
	for k, text := range texts {
		all[k] = strconv.Quote(text)
	}
	return "[" + strings.Join(all, ", ") + "]"
}
