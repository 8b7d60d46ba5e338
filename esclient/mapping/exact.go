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
	// Field is its full name, and Similarity the name of its similarity.
	Field, Similarity string
	Linearity
	// Problem says why its scores cannot be used, "" where they are linear.
	Problem string
	// Retunable says that the similarity only is in the way, and has a definition
	// of its own in the settings, which can be changed.
	Retunable bool
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
		c := Sibling{Field: name, Similarity: g.SimilarityName}
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

// An Inspection says what one index has of what exact scores of a field need.
type Inspection struct {
	RawIndex

	Index  string // the concrete one
	Closed bool   // then nothing else is known
	// Field is the field's own name, another one than asked for where that is an
	// alias; "" where the index does not map it as text.
	Field string
	// Problem says why the index has something else than text under the name; ""
	// that it has none or text.
	Problem string
	// Analyzer and SearchAnalyzer are as the mapping names them.
	Analyzer, SearchAnalyzer string
	// Source is the full name of the field that a document has the text under:
	// Field or the one that Field is a multi-field of.
	Source string
	// Siblings are the fields of that text, Field itself first.
	Siblings      []Sibling
	Norm, Weights StoredField

	treatment Treatment
}

// A StoredField is what the mapping has of a norm or an id: its type, "" for
// none, and why it cannot be used, "" where it can.
type StoredField struct{ Type, Problem string }

// Inspect returns what the mappings and settings of an index say of a field, of
// the norm and of the id of the weights.
func Inspect(index string, raw RawIndex, field, norm, weights string) (Inspection, error) {
	i := Inspection{RawIndex: raw, Index: index}
	m := Index{Settings: raw.Settings}
	if i.Closed = m.Closed(); i.Closed {
		return i, nil
	}
	var err error
	if len(raw.Mappings) > 0 {
		err = decode(raw.Mappings, &m.Mappings)
	}
	if err == nil {
		i.Norm, err = m.stored(norm, (*Property).CheckNorm)
	}
	if err == nil {
		i.Weights, err = m.stored(weights, (*Property).checkID)
	}
	if err != nil {
		return i, err
	}
	fields, err := Fields(map[string]Index{index: m}, field)
	if errors.Is(err, ErrNotText) {
		if p, _, findErr := m.Resolve(field); p != nil || findErr != nil { // else an index without the field
			i.Problem = strings.TrimPrefix(err.Error(), fmt.Sprintf("index %q ", index))
		}
		return i, nil
	}
	if err != nil {
		return i, err
	}
	f := &fields[0]
	i.Field, i.Source, i.treatment = cmp.Or(f.AliasOf, field), f.Source, f.Treatment()
	own, err := Find(m.Mappings.Properties, i.Field)
	if err == nil {
		i.Analyzer, i.SearchAnalyzer = own.Analyzer, own.SearchAnalyzer
		i.Siblings, err = m.Siblings(f, field)
	}
	return i, err
}

// stored returns what the mapping has of a field that is checked so.
func (m *Index) stored(field string, check func(*Property) error) (s StoredField, err error) {
	p, err := Find(m.Mappings.Properties, field)
	if p == nil || err != nil {
		return s, err
	}
	s.Type = p.TypeName()
	if err := check(p); err != nil {
		s.Problem = err.Error()
	}
	return s, nil
}

// checkID returns why the field does not have the id of weights.
func (p *Property) checkID() error {
	if p.Type != "keyword" || string(p.Index) == "false" || string(p.DocValues) == "false" {
		return fmt.Errorf("mapped as %s, wanted is a keyword that is indexed and has doc values", p.TypeName())
	}
	return nil
}

// Alike reports whether two indices that map the field analyze and score it
// alike: searches of both are not expanded otherwise.
func (i *Inspection) Alike(other *Inspection) bool { return i.treatment == other.treatment }

// Linear reports whether the index's settings define a similarity of that name
// that scores linearly.
func (i *Inspection) Linear(similarity string) bool {
	f := Field{Settings: i.Settings, SimilarityName: similarity, FieldScoring: FieldScoring{K1: defaultK1}}
	f.readSimilarity()
	_, problem := f.linear()
	return problem == ""
}
