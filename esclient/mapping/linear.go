package mapping

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// LinearScript is the source of a scripted similarity that scores a term with
// its boost times its frequency.
const LinearScript = "return query.boost * doc.freq;"

const (
	// minLinearK1 and maxLinearK1 bound the k1 of a BM25 that is as good as
	// linear: up to tf = 30 it is 0.5 % off at 6,000, 0.3 % at 10,000 and, for
	// want of digits in 32-bit scores, 0.4 % at 100,000.
	minLinearK1, maxLinearK1 = 6_000, 100_000
	// defaultB is the b of BM25 where the settings name none.
	defaultB = 0.75
)

// A Linearity is how a field scores linearly: by a script, or by BM25 with k1,
// see [Scoring].
type Linearity struct {
	Scripted bool
	K1       float64
	Legacy   bool
}

// A Candidate is a field that has the same text of a document as another one:
// itself, a multi-field of it, the field that it is a multi-field of, or another
// one of that.
type Candidate struct {
	// Field is its full name, and Similarity the name of its similarity.
	Field, Similarity string
	Linearity
	// Problem says why its scores cannot be used, "" where they are linear.
	Problem string
	// Retunable says that the similarity is all that is in the way, and has a
	// definition of its own in the settings, which can be changed.
	Retunable bool
}

// Candidates returns those for f that are text, itself first and its parent
// second.
func (m *Index) Candidates(f *Field, field string) ([]Candidate, error) {
	own := cmp.Or(f.AliasOf, field)
	top, err := Find(m.Mappings.Properties, f.Source)
	if err != nil || top == nil {
		return nil, err
	}
	names := []string{own}
	if f.Source != own {
		names = append(names, f.Source)
	}
	for _, key := range slices.Sorted(maps.Keys(top.Fields)) {
		if name := f.Source + "." + key; name != own {
			names = append(names, name)
		}
	}
	var all []Candidate
	for _, name := range names {
		p, err := Find(m.Mappings.Properties, name)
		if err != nil {
			return nil, err
		}
		if p == nil || p.Type != "text" || m.Mappings.Runtime[name] != nil || m.Mappings.Derived[name] != nil {
			continue
		}
		g, err := readField(f.Index, p, m.Settings)
		if err != nil {
			return nil, err
		}
		c := Candidate{Field: name, Similarity: g.SimilarityName}
		c.judge(f, &g, p)
		all = append(all, c)
	}
	return all, nil
}

// judge says how the field p scores, g being what the index says of it.
func (c *Candidate) judge(f, g *Field, p *Found) {
	switch {
	case string(p.Index) == "false":
		c.Problem = "it is not indexed"
	case p.IndexOptions == "docs":
		c.Problem = "its index_options are docs: the index does not hold how often a term occurs"
	default:
		c.Problem = f.otherAnalysis(g)
	}
	if c.Problem == "" {
		c.Linearity, c.Problem = g.linear()
		c.Retunable = c.Problem != "" && g.Settings.Has("index.similarity."+g.SimilarityName+".")
	}
}

// otherAnalysis returns how g, a field of the same index, analyzes otherwise
// than f, "" where it does not. A search analyzer that is left open is the same
// for fields of the same index analyzer.
func (f *Field) otherAnalysis(g *Field) string {
	s := f.Settings
	switch {
	case s.Definition(f.IndexAnalyzer) != s.Definition(g.IndexAnalyzer):
		return fmt.Sprintf("its analyzer is %q, that of the field is %q", g.IndexAnalyzer, f.IndexAnalyzer)
	case (f.SearchAnalyzer == "") != (g.SearchAnalyzer == ""),
		f.SearchAnalyzer != "" && s.Definition(f.SearchAnalyzer) != s.Definition(g.SearchAnalyzer):
		return fmt.Sprintf("its search analyzer is %q, that of the field is %q",
			cmp.Or(g.SearchAnalyzer, "open"), cmp.Or(f.SearchAnalyzer, "open"))
	default:
		return ""
	}
}

// linear tells how the field scores, and why it does not score linearly.
func (f *Field) linear() (Linearity, string) {
	prefix := "index.similarity." + f.SimilarityName + "."
	if f.Settings.Text(prefix+"type") == "scripted" {
		return f.linearScript(prefix)
	}
	if f.Similarity != BM25 {
		return Linearity{}, fmt.Sprintf("its similarity %q is neither BM25 nor scripted", f.SimilarityName)
	}
	b := defaultB
	if text := f.Settings.Text(prefix + "b"); text != "" {
		var err error
		if b, err = strconv.ParseFloat(text, 64); err != nil {
			return Linearity{}, fmt.Sprintf("%sb is %q", prefix, text)
		}
	}
	how := Linearity{K1: f.K1, Legacy: f.Legacy}
	if b != 0 || !(f.K1 >= minLinearK1 && f.K1 <= maxLinearK1) {
		return how, fmt.Sprintf("its similarity %q is BM25 with k1 %g and b %g, wanted are k1 10000 and b 0",
			f.SimilarityName, f.K1, b)
	}
	return how, ""
}

// linearScript is linear for a scripted similarity, whose settings start with
// prefix.
func (f *Field) linearScript(prefix string) (Linearity, string) {
	source := strings.TrimSpace(f.Settings.Text(prefix + "script.source"))
	lang := cmp.Or(f.Settings.Text(prefix+"script.lang"), "painless")
	if source != LinearScript || lang != "painless" || f.Settings.Has(prefix+"weight_script.") {
		return Linearity{}, fmt.Sprintf("its similarity %q is scripted as %q, wanted is %q", f.SimilarityName, source, LinearScript)
	}
	return Linearity{Scripted: true}, ""
}

// ScoresLinearly reports whether the settings define a similarity of that name
// that scores linearly.
func (s Settings) ScoresLinearly(similarity string) bool {
	f := Field{Settings: s, SimilarityName: similarity, Scoring: Scoring{K1: defaultK1}}
	f.readSimilarity()
	_, problem := f.linear()
	return problem == ""
}
