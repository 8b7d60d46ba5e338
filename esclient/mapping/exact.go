package mapping

import (
	"cmp"
	"errors"
	"strings"
)

// LinearScript is the source of a scripted similarity that scores a term by
// boost times frequency.
const LinearScript = "return query.boost * doc.freq;"

const (
	// minLinearK1 and maxLinearK1 bound k1 of a practically linear BM25: up to tf
	// = 30 it is 0.5 % off at 6,000, 0.3 % at 10,000 and, for lack of digits in
	// 32-bit scores, 0.4 % at 100,000.
	minLinearK1, maxLinearK1 = 6_000, 100_000
)

// A Linearity is how a field scores: by a linear script or [FieldScoring].
type Linearity struct {
	Scripted bool
	K1       float64
	Legacy   bool
}

// LinearFields returns the linearly scoring fields with the same text and
// analyzers as f: f itself, its multi-fields, the field that it is a
// multi-field of, and that field's other multi-fields. field is the name by
// which f was asked for.
func (m *Index) LinearFields(f *Field, field string) (map[string]Linearity, error) {
	top, err := Find(m.Mappings.Properties, f.Source)
	if err != nil || top == nil {
		return nil, err
	}
	names := []string{cmp.Or(f.AliasOf, field), f.Source}
	for key := range top.Fields {
		names = append(names, f.Source+"."+key)
	}
	found := map[string]Linearity{}
	for _, name := range names {
		p, err := Find(m.Mappings.Properties, name)
		if err != nil {
			return nil, err
		}
		// With index_options "docs" the index has no term frequencies.
		if p == nil || p.Type != "text" || m.Mappings.computed(name) || string(p.Index) == "false" || string(p.IndexOptions) == `"docs"` {
			continue
		}
		g, err := readField(f.Index, p, m.Settings)
		if err != nil {
			return nil, err
		}
		if how, ok := g.linear(); ok && f.analyzedLike(&g) {
			found[name] = how
		}
	}
	return found, nil
}

// analyzedLike reports whether g, a field of the same index, is analyzed like
// f. An open search analyzer is the same for fields with the same index
// analyzer.
func (f *Field) analyzedLike(g *Field) bool {
	s := f.Settings
	return s.Definition(f.IndexAnalyzer) == s.Definition(g.IndexAnalyzer) &&
		(f.SearchAnalyzer == "") == (g.SearchAnalyzer == "") && s.Definition(f.SearchAnalyzer) == s.Definition(g.SearchAnalyzer)
}

// linear returns how the field scores, and whether that is linear.
func (f *Field) linear() (Linearity, bool) {
	prefix := "index.similarity." + f.SimilarityName + "."
	if f.Settings.Text(prefix+"type") == "scripted" {
		lang := cmp.Or(f.Settings.Text(prefix+"script.lang"), "painless")
		return Linearity{Scripted: true}, strings.TrimSpace(f.Settings.Text(prefix+"script.source")) == LinearScript &&
			lang == "painless" && !f.Settings.Has(prefix+"weight_script.")
	}
	return Linearity{K1: f.K1, Legacy: f.Legacy}, f.Similarity == BM25 && f.B == 0 && f.K1 >= minLinearK1 && f.K1 <= maxLinearK1
}

// A Text is a field with text of an index's documents, by its full name.
// NotWords is as in [Schema].
type Text struct {
	Field

	Name, NotWords string
}

// Texts returns an open index's [Mappings.OwnTexts], none of a closed one.
func Texts(index string, m Index) (texts []Text, err error) {
	if m.Closed() {
		return nil, nil
	}
	names, err := m.Mappings.OwnTexts()
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

// An Inspection is what an index says of a text field, with its mappings.
type Inspection struct {
	Field
	Mappings
}

// Inspect returns what the open indices of an answer say of a field.
func Inspect(answer map[string]Index, field string) ([]Inspection, error) {
	fields, err := Fields(answer, field)
	all := make([]Inspection, len(fields))
	for k, f := range fields {
		all[k] = Inspection{f, answer[f.Index].Mappings}
	}
	return all, err
}
