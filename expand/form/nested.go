package form

import (
	"slices"

	"github.com/akin-search/akin/expand/dsl"
	"github.com/akin-search/akin/internal/jsonspan"
)

// Segments say where documents store the parts of a field's text: in nested
// documents, which the engine scores one by one.
type Segments struct {
	// Field is the field with the whole text. Path is the nested field.
	Field string `yaml:"field" is:"field"`
	Path  string `yaml:"path" is:"field"`
	// Text is the field with a segment's text. Position is the field with its
	// number in the document, from 1. Share is the field with its share of the
	// text, and Godwin that with its share of 1/position, both in (0, 1].
	Text      string    `yaml:"text"`
	Position  string    `yaml:"position"`
	Share     string    `yaml:"share"`
	Godwin    string    `yaml:"godwin"`
	Aggregate Aggregate `yaml:"aggregate" allowed:"max avg sum first-heavy length godwin"`
	// Replace makes the segments score instead of the clause, which then only
	// finds.
	Replace bool `yaml:"combine" allowed:"add replace"`
	// InnerHits is how many segments come back with each hit, the best first.
	// Engines allow 100 by default.
	InnerHits int `yaml:"inner_hits" allowed:"0 100"`
}

// An Aggregate computes the score of a document from the scores s_i of its
// matching segments, where i is the position. A segment without a position of
// at least 1, or without a share above 0, has the factor 1.
//
// Length and Godwin are wavg_length and wavg_Godwin of Novotný 2017, sections
// 3.3.3 and 3.4.2: segments that do not match are in the divisor, which is why
// documents store its quotient. FirstHeavy has no divisor.
type Aggregate uint8

// The aggregates.
const (
	Max        Aggregate = iota // the largest s_i
	Avg                         // the mean of s_i
	Sum                         // Σ s_i
	FirstHeavy                  // Σ s_i/i
	Length                      // Σ share_i·s_i
	Godwin                      // Σ godwin_i·s_i = Σ s_i/i over Σ 1/i of all segments
)

// segmentLevels is how many queries [Segments.Nest] writes around a clause:
// bool, nested, function_score.
const segmentLevels = 3

// SegmentsTooDeep reports whether a query for segments would be nested too deep
// in place of c.
func SegmentsTooDeep(c *dsl.Clause) bool { return c.Depth+segmentLevels+1 > maxLevels }

// A Nesting says how a clause gets a nested one: with which boost of the field,
// whether the clause has several fields, whether it must match the same
// documents, and whether segments come back.
type Nesting struct {
	Boost                           float64
	Several, SameMatches, InnerHits bool
}

// Nest returns the replacement of a clause of body that has a field with
// segments: the clause and a nested copy for the segments, which only scores.
// If the nested clause scores instead of the clause, its related words find
// documents, too.
func (s *Segments) Nest(c *dsl.Clause, body []byte, how Nesting) string {
	query := c.At.Of(body)
	w := &buffer{}
	switch {
	case !s.Replace || how.Several: // the other fields have no segments
		w.put(`{"bool":{"must":[`, query, `],"should":[`)
	case how.SameMatches || c.Counted():
		w.put(`{"bool":{"filter":[`, query, `],"should":[`)
	default:
		w.put(`{"bool":{"should":[{"bool":{"filter":[`, query, `]}},`)
	}
	s.nested(w, query, how)
	w.put(`]}}`)
	return string(w.out)
}

// nested writes the query for the segments.
func (s *Segments) nested(w *buffer, query []byte, how Nesting) {
	mode := [...]text{"max", "avg", "sum", "sum", "sum", "sum"}[s.Aggregate]
	w.put(`{"nested":{"path":`, text(s.Path), `,"ignore_unmapped":true,"score_mode":`, mode, `,"query":`)
	field, from, modifier := "", "", ""
	switch s.Aggregate {
	case FirstHeavy:
		field, from, modifier = s.Position, `"gte":1`, `,"modifier":"reciprocal"`
	case Length:
		field, from = s.Share, `"gt":0`
	case Godwin:
		field, from = s.Godwin, `"gt":0`
	case Max, Avg, Sum:
	}
	if field != "" {
		w.put(`{"function_score":{"query":`)
	}
	s.inSegment(w, query, how.Boost)
	if field != "" {
		// Without the filter, the reciprocal of 0 or a negative share would fail the
		// search. Without "missing", so would an index that does not map the field.
		w.put(`,"functions":[{"filter":{"range":{`, text(field), `:{`, from, `}}},"field_value_factor":{"field":`, text(field), modifier, `,"missing":1}}]}}`)
	}
	if how.InnerHits {
		w.put(`,"inner_hits":{"size":`, float64(s.InnerHits), `}`)
	}
	w.put(`}}`)
}

// ofDocument are options of a clause that concern the whole text or one of
// several fields, and its name, which must be unique in a search.
var ofDocument = []string{
	"fields", "default_field", "operator", "default_operator", "minimum_should_match", "zero_terms_query", "tie_breaker", "_name",
}

// inSegment writes the clause for a segment. The words that must match are
// counted over the whole document instead.
func (s *Segments) inSegment(w *buffer, query []byte, boost float64) {
	options := func(raw []byte) {
		_ = jsonspan.Members(raw, func(name, value []byte) error { // it was read before
			if !slices.Contains(ofDocument, string(name)) {
				w.comma()
				w.put(text(name), `:`, value)
			}
			return nil
		})
	}
	_ = jsonspan.Members(query, func(kind, value []byte) error {
		w.put(`{`, text(kind), `:{`)
		if several := !dsl.HasOneField(string(kind)); several {
			w.put(`"fields":[`, boosted(s.Text, boost), `]`)
			options(value)
		} else {
			w.put(text(s.Text), `:`)
			_ = jsonspan.Members(value, func(_, field []byte) error {
				if field[0] != '{' {
					w.put(field)
					return nil
				}
				w.put(`{`)
				options(field)
				w.put(`}`)
				return nil
			})
		}
		w.put(`}}`)
		return nil
	})
}
