package esclient

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// linearity is how a field scores.
type linearity struct {
	scripted bool
	// k1 and legacy are BM25's, see [schema].
	k1     float64
	legacy bool
}

// A relative of a field is one that has the same text of a document: itself,
// its multi-fields, the field that it is a multi-field of, and the others of
// that.
type relative struct {
	name string
	linearity
	// similarity is the name of its similarity.
	similarity string
	// problem says why its score is none to take, "" where it is linear.
	problem string
	// retunable says that another definition of its similarity would mend that.
	retunable bool
}

// related returns the relatives of f that are text, itself first and its parent
// second.
func (m *indexMapping) related(f *indexField, field string) ([]relative, error) {
	own, err := find(m.Mappings.Properties, cmp.Or(f.field, field), 0, "")
	if err != nil || own == nil {
		return nil, err
	}
	top, err := find(m.Mappings.Properties, f.source, 0, "")
	if err != nil || top == nil {
		return nil, err
	}
	names := []string{cmp.Or(f.field, field), f.source}
	for _, key := range slices.Sorted(maps.Keys(top.Fields)) {
		names = append(names, f.source+"."+key)
	}
	var all []relative
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			continue
		}
		p, err := find(m.Mappings.Properties, name, 0, "")
		if err != nil {
			return nil, err
		}
		if p == nil || p.Type != "text" || m.Mappings.Runtime[name] != nil || m.Mappings.Derived[name] != nil {
			continue
		}
		g, err := readField(f.index, p, m.Settings)
		if err != nil {
			return nil, err
		}
		r := relative{name: name, similarity: g.similarityName}
		r.judge(f, &g, p)
		all = append(all, r)
	}
	return all, nil
}

// judge says how the relative p of f scores, g being what the index says of it.
func (r *relative) judge(f, g *indexField, p *found) {
	switch {
	case string(p.Index) == "false":
		r.problem = "it is not indexed"
	case p.IndexOptions == "docs":
		r.problem = "its index_options are docs: the index does not hold how often a term occurs"
	default:
		r.problem = f.otherAnalysis(g)
	}
	if r.problem == "" {
		r.linearity, r.problem = g.linear()
		r.retunable = r.problem != ""
	}
}

// otherAnalysis returns how g, a field of the same index, analyzes otherwise
// than f, "" where it does not. A search analyzer that is left open is the same
// for fields of the same index analyzer.
func (f *indexField) otherAnalysis(g *indexField) string {
	s := f.settings
	switch {
	case s.definition(f.indexAnalyzer) != s.definition(g.indexAnalyzer):
		return fmt.Sprintf("its analyzer is %q, that of the field is %q", g.indexAnalyzer, f.indexAnalyzer)
	case (f.searchAnalyzer == "") != (g.searchAnalyzer == ""),
		f.searchAnalyzer != "" && s.definition(f.searchAnalyzer) != s.definition(g.searchAnalyzer):
		return fmt.Sprintf("its search analyzer is %q, that of the field is %q",
			cmp.Or(g.searchAnalyzer, "open"), cmp.Or(f.searchAnalyzer, "open"))
	default:
		return ""
	}
}

// linear tells how the field scores, or why it does not score linearly.
func (f *indexField) linear() (linearity, string) {
	prefix := "index.similarity." + f.similarityName + "."
	if f.settings.text(prefix+"type") == "scripted" {
		return f.linearScript(prefix)
	}
	if f.similarity != BM25 {
		return linearity{}, fmt.Sprintf("its similarity %q is neither BM25 nor scripted", f.similarityName)
	}
	b := defaultB
	if text := f.settings.text(prefix + "b"); text != "" {
		var err error
		if b, err = strconv.ParseFloat(text, 64); err != nil {
			return linearity{}, fmt.Sprintf("%sb is %q", prefix, text)
		}
	}
	if b != 0 || !(f.k1 >= minLinearK1 && f.k1 <= maxLinearK1) {
		return linearity{}, fmt.Sprintf("its similarity %q is BM25 with k1 %g and b %g, wanted are k1 10000 and b 0",
			f.similarityName, f.k1, b)
	}
	return linearity{k1: f.k1, legacy: f.legacy}, ""
}

// linearScript is linear for a scripted similarity, whose settings start with
// prefix.
func (f *indexField) linearScript(prefix string) (linearity, string) {
	source := strings.TrimSpace(f.settings.text(prefix + "script.source"))
	lang := cmp.Or(f.settings.text(prefix+"script.lang"), "painless")
	if source != LinearScript || lang != "painless" || f.settings.has(prefix+"weight_script.") {
		return linearity{}, fmt.Sprintf("its similarity %q is scripted as %q, wanted is %q", f.similarityName, source, LinearScript)
	}
	return linearity{scripted: true}, ""
}
