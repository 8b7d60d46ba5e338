package form

import (
	"slices"
	"strconv"

	"github.com/akin-search/akin/expand/dsl"
	"github.com/akin-search/akin/expand/query"
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
	var t query.Tree
	client := c.At.Of(body)
	original, q := t.Raw(client, 0), t.Bool()
	switch {
	case !s.Replace || how.Several: // the other fields have no segments
		q.Must(original)
	case how.SameMatches || c.Counted():
		q.Filter(original)
	default:
		q.Should(t.Bool().Filter(original))
	}
	mode, inner := [...]string{"max", "avg", "sum", "sum", "sum", "sum"}[s.Aggregate], 0
	if how.InnerHits {
		inner = s.InnerHits
	}
	segment := s.weighted(&t, t.Raw(inField(client, s.Text, how.Boost, ofDocument...), 0))
	return string(q.Should(t.Nested(s.Path, mode, inner, segment)).Append(nil))
}

// weighted returns the query for a segment, multiplied by what the aggregate
// takes of it. Without the range, the reciprocal of 0 or a negative share would
// fail the search. Without the number for segments that have none, so would an
// index that does not map the field.
func (s *Segments) weighted(t *query.Tree, segment *query.Query) *query.Query {
	switch s.Aggregate {
	case FirstHeavy:
		return t.In(s.Position, `"gte":1`, true, segment)
	case Length:
		return t.In(s.Share, `"gt":0`, false, segment)
	case Godwin:
		return t.In(s.Godwin, `"gt":0`, false, segment)
	case Max, Avg, Sum:
	}
	return segment
}

// ofDocument are options of a clause that concern the whole text or one of
// several fields, and its name, which must be unique in a search.
var ofDocument = []string{
	"fields", "default_field", "operator", "default_operator", "minimum_should_match", "zero_terms_query", "tie_breaker", "_name",
}

// inField returns a clause of the client for one field alone, without some of
// its options.
func inField(clause []byte, field string, boost float64, without ...string) (out []byte) {
	options := func(raw []byte) {
		_ = jsonspan.Members(raw, func(name, value []byte) error { // it was read before
			if slices.Contains(without, string(name)) {
				return nil
			}
			if out[len(out)-1] != '{' {
				out = append(out, ',')
			}
			out = append(append(query.AppendText(out, string(name)), ':'), value...)
			return nil
		})
	}
	_ = jsonspan.Members(clause, func(kind, value []byte) error {
		out = append(query.AppendText(append(out, '{'), string(kind)), `:{`...)
		if !dsl.HasOneField(string(kind)) {
			boosted := field + "^" + strconv.FormatFloat(boost, 'g', -1, 32)
			out = append(query.AppendText(append(out, `"fields":[`...), boosted), ']')
			options(value)
			out = append(out, `}}`...)
			return nil
		}
		out = append(query.AppendText(out, field), ':')
		return jsonspan.Members(value, func(_, text []byte) error {
			if text[0] != '{' {
				out = append(append(out, text...), `}}`...)
				return nil
			}
			out = append(out, '{')
			options(text)
			out = append(out, `}}}`...)
			return nil
		})
	})
	return out
}
