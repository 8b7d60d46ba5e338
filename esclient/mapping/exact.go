package mapping

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// LinearScript is the source of a scripted similarity that scores a term with
// its boost times its frequency.
const LinearScript = "return query.boost * doc.freq;"

const (
	// minLinearK1 and maxLinearK1 bound the k1 of a BM25 that is as good as linear:
	// up to tf = 30 it is 0.5 % off at 6,000, 0.3 % at 10,000 and, for want of
	// digits in 32-bit scores, 0.4 % at 100,000.
	minLinearK1, maxLinearK1 = 6_000, 100_000
)

// A Linearity is how a field scores: by a linear script, or by BM25, see
// [FieldScoring].
type Linearity struct {
	Scripted bool
	K1       float64
	Legacy   bool
}

// A Sibling is a field that has the same text of a document as another one:
// itself, a multi-field of it, the field that it is a multi-field of, or
// another one of that.
type Sibling struct {
	Field string // its full name
	Linearity
	// Problem says why its scores cannot be used, "" where they are linear.
	Problem string
}

// Siblings returns those for f that are text, itself first and its parent
// second.
func (m *Index) Siblings(f *Field, field string) ([]Sibling, error) {
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
	var all []Sibling
	for _, name := range names {
		p, err := Find(m.Mappings.Properties, name)
		if err != nil {
			return nil, err
		}
		if p == nil || p.Type != "text" || m.Mappings.computed(name) {
			continue
		}
		g, err := readField(f.Index, p, m.Settings)
		if err != nil {
			return nil, err
		}
		c := Sibling{Field: name}
		c.judge(f, &g, p)
		all = append(all, c)
	}
	return all, nil
}

// judge says how the field p scores, g being what the index says of it.
func (c *Sibling) judge(f, g *Field, p *Property) {
	switch {
	case string(p.Index) == "false":
		c.Problem = "it is not indexed"
	case string(p.IndexOptions) == `"docs"`:
		c.Problem = "its index_options are docs: the index does not hold how often a term occurs"
	default:
		c.Problem = f.otherAnalysis(g)
	}
	if c.Problem == "" {
		c.Linearity, c.Problem = g.linear()
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
	how := Linearity{K1: f.K1, Legacy: f.Legacy}
	if f.B != 0 || !(f.K1 >= minLinearK1 && f.K1 <= maxLinearK1) {
		return how, fmt.Sprintf("its similarity %q is BM25 with k1 %g and b %g, wanted are k1 10000 and b 0",
			f.SimilarityName, f.K1, f.B)
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

// A RawIndex is all that an index was made with.
type RawIndex struct {
	Mappings jsontext.Value `json:"mappings"`
	Settings Settings       `json:"settings"` // flat
	// DataStream is the stream that the index is behind, "" for none.
	DataStream string `json:"data_stream"`
}

// A Text is a field of an index that has text of its documents, by its full
// name. NotWords is as in [Schema].
type Text struct {
	Field

	Name, NotWords string
}

// Texts returns the fields of [OwnTexts] of an open index, none of a closed
// one.
func Texts(index string, raw RawIndex) (texts []Text, err error) {
	m := Index{Settings: raw.Settings}
	if m.Closed() || len(raw.Mappings) == 0 {
		return nil, nil
	}
	if err := decode(raw.Mappings, &m.Mappings); err != nil {
		return nil, err
	}
	names, err := OwnTexts(raw.Mappings)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		fields, err := Fields(map[string]Index{index: m}, name)
		if errors.Is(err, ErrNotText) {
			continue // a runtime field shadows it
		}
		if err != nil {
			return nil, err
		}
		schema, err := Merge(fields)
		if err != nil {
			return nil, err
		}
		texts = append(texts, Text{fields[0], name, schema.NotWords})
	}
	return texts, nil
}

// An Inspection says what one index has of a text field.
type Inspection struct {
	RawIndex

	Index string // the concrete one
	// Field is the field's own name, another one than asked for where that is an
	// alias; "" where the index does not map it as text, or is closed.
	Field string
	// Source is the full name of the field that a document has the text under:
	// Field or the one that Field is a multi-field of.
	Source string
}

// Inspect returns what the mappings and settings of an index say of a field.
func Inspect(index string, raw RawIndex, field string) (Inspection, error) {
	i := Inspection{RawIndex: raw, Index: index}
	m := Index{Settings: raw.Settings}
	if m.Closed() {
		return i, nil
	}
	if len(raw.Mappings) > 0 {
		if err := decode(raw.Mappings, &m.Mappings); err != nil {
			return i, err
		}
	}
	fields, err := Fields(map[string]Index{index: m}, field)
	if errors.Is(err, ErrNotText) {
		return i, nil
	}
	if err != nil {
		return i, err
	}
	i.Field, i.Source = cmp.Or(fields[0].AliasOf, field), fields[0].Source
	return i, nil
}
