package mapping

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// An Inspection says what one index has of what exact scores of a field need.
type Inspection struct {
	// Index is the concrete index.
	Index string
	// Closed says that the index is closed; then nothing else is known.
	Closed bool
	// Field is the field's own name, which differs from the one asked for where
	// that is an alias. It is "" where the index does not map it as text.
	Field string
	// Problem says why the index has something else than text to search under
	// the name; "" that it has none or text.
	Problem string
	// Analyzer and SearchAnalyzer are as the mapping has them, "" where it does
	// not name them.
	Analyzer, SearchAnalyzer string
	// Source is the full name of the field that a document has the text under:
	// Field or the one that Field is a multi-field of.
	Source string
	// Candidates are the fields of that text, Field itself first.
	Candidates []Candidate
	// Norm and Weights are the two fields besides it.
	Norm, Weights StoredField
	// Settings are the flat settings of the index, Mappings all of its mappings.
	Settings Settings
	Mappings jsontext.Value

	// treatment is what [Field.Treatment] says.
	treatment string
}

// Alike reports whether two indices that map the field analyze and score it
// alike: searches of both are not expanded otherwise.
func (i *Inspection) Alike(other *Inspection) bool { return i.treatment == other.treatment }

// Linear reports whether the index's settings define a similarity of that name
// that scores linearly.
func (i *Inspection) Linear(similarity string) bool {
	return i.Settings.ScoresLinearly(similarity)
}

// A StoredField is what the mapping has of a norm or an id: its type, "" for
// none, and why it cannot be used, "" where it can.
type StoredField struct{ Type, Problem string }

// Read fills in what the mappings and settings say of a field, of the norm and
// of the id of the weights.
func (i *Inspection) Read(field, norm, weights string) error {
	s := i.Settings
	m := Index{Settings: s}
	if i.Closed = m.Closed(); i.Closed {
		return nil
	}
	if len(i.Mappings) > 0 {
		if err := decode(i.Mappings, &m.Mappings); err != nil {
			return err
		}
	}
	if err := i.inspectStored(&m, norm, weights); err != nil {
		return err
	}
	fields, err := Fields(map[string]Index{i.Index: m}, field)
	if errors.Is(err, ErrNotText) {
		if p, _, findErr := m.Resolve(field); p != nil || findErr != nil { // else an index without the field
			i.Problem = strings.TrimPrefix(err.Error(), fmt.Sprintf("index %q ", i.Index))
		}
		return nil
	}
	if err != nil {
		return err
	}
	f := &fields[0]
	i.Field, i.Source, i.treatment = cmp.Or(f.AliasOf, field), f.Source, f.Treatment()
	own, err := Find(m.Mappings.Properties, i.Field)
	if err != nil {
		return err
	}
	i.Analyzer, i.SearchAnalyzer = own.Analyzer, own.SearchAnalyzer
	i.Candidates, err = m.Candidates(f, field)
	return err
}

// inspectStored fills in what there is of the norms.
func (i *Inspection) inspectStored(m *Index, norm, weights string) error {
	p, err := Find(m.Mappings.Properties, norm)
	if err != nil {
		return err
	}
	if p != nil {
		i.Norm.Type = p.TypeName()
		if err := p.CheckNorm(); err != nil {
			i.Norm.Problem = err.Error()
		}
	}
	if p, err = Find(m.Mappings.Properties, weights); p == nil || err != nil {
		return err
	}
	i.Weights.Type = p.TypeName()
	if p.Type != "keyword" || string(p.Index) == "false" || string(p.DocValues) == "false" {
		i.Weights.Problem = fmt.Sprintf("mapped as %s, wanted is a keyword that is indexed and has doc values", p.TypeName())
	}
	return nil
}
