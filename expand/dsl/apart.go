package dsl

import (
	"cmp"
	"errors"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/internal/jsonspan"
)

// How a query string with operators is expanded: its text is taken apart, and
// the search is parsed again with a query of the same structure beside the
// client's, in which each part is a query string of its own:
//
//	in    {"query_string":{"query":"car AND (big OR \"red car\")",…}}
//	out   {"dis_max":{"queries":[the client's,{"bool":{"must":[
//	      {"query_string":{"query":"car",…}},{"bool":{"should":[
//	      {"query_string":{"query":"big",…}},{"query_string":…}]}}]}}]}}
//
// Bare words are then expanded as in any other clause. Where related words must
// not find anything, the client's query filters:
//
//	out   {"bool":{"filter":[the client's],"should":[the other]}}

const (
	// maxSyntax is the length in bytes of the longest text with operators that is
	// taken apart. maxRebuilt is how much longer a body may get by it.
	maxSyntax  = 16 << 10
	maxRebuilt = 256 << 10
	// maxLeft limits the parts in [Clause.Left], and maxLeftPart their bytes.
	maxLeft     = 10
	maxLeftPart = 100
)

// A whole is a query string, or a more_like_this with documents, beside which
// stands a query of its parts.
type whole struct {
	path    string
	reason  reason.Reason
	left    []string
	clauses int     // as the engine counts them
	matches Matches // of its parts
	// client is the place of the client's query, at that of both.
	client, at jsonspan.Span
}

// takeApart reads a text with operators, with the function for its syntax. raw
// are the options of the clause.
func (c *Clause) takeApart(kind string, raw []byte, parts func(text string, and bool) (*part, error)) {
	c.Reason = reason.Syntax
	if len(c.Text) > maxSyntax {
		c.leave(c.Text)
		return
	}
	top, err := parts(c.Text, c.OperatorAnd)
	if unclear := unclearError(""); errors.As(err, &unclear) {
		c.leave(cmp.Or(string(unclear), c.Text)) // at its end
		return
	}
	counts := len(c.MinimumShouldMatch) > 0
	only := top.alone()
	if row := only.row(c.OperatorAnd); row != nil && c.oneField() && !counts && !c.Phrase && !c.Prefix {
		if c.OperatorAnd = row.occur == must; c.OperatorAnd {
			c.Words = len(strings.Fields(row.words)) // each is analyzed by itself
		}
		only = row
	}
	if only.words != "" && only.field == "" && (!counts || only.raw == strings.TrimSpace(c.Text)) {
		c.Reason, c.Text = "", only.words
		c.Boost *= only.boost
		return
	}
	bare := false
	only.each(func(p *part) {
		switch {
		case p.unsure != "":
			c.Matches = max(c.Matches, Same)
			c.leave(p.unsure)
		case p.parts != nil:
		case p.words != "":
			bare = true
		case p.occur == mustNot:
			c.leave("-" + p.raw)
		default:
			c.leave(p.raw)
		}
	})
	switch {
	case !bare:
		return
	case only.depth() > maxGroups:
		c.Left = nil
		c.leave(c.Text)
		return
	}
	c.parts = partsOf(kind, raw).query(only, c.Boost)
	if counts { // the engine may count parts of groups
		c.Matches = max(c.Matches, Same)
		c.leave("minimum_should_match")
	}
}

// oneField reports whether the clause names one field.
func (c *Clause) oneField() bool {
	return len(c.Fields) == 1 && !strings.Contains(c.Fields[0].Name, "*")
}

// leave notes a part of the text, or an option, because of which not all of it
// is expanded.
func (c *Clause) leave(part string) {
	if len(c.Left) < maxLeft {
		c.Left = append(c.Left, strings.ToValidUTF8(part[:min(len(part), maxLeftPart)], ""))
	}
}

// A partWriter writes parts as queries with the options of their clause.
type partWriter struct{ kind, fields, others string }

// partsOf returns the writer for a clause of a kind with options.
func partsOf(kind string, options []byte) *partWriter {
	w := &partWriter{kind: kind}
	_ = jsonspan.Members(options, func(name, value []byte) error { // it was read before
		member := `,"` + string(name) + `":` + string(value)
		switch string(name) {
		case "fields", "default_field":
			w.fields += member
		case "query", "boost", "minimum_should_match", "_name":
		default:
			w.others += member
		}
		return nil
	})
	return w
}

// query returns the query of a part.
func (w *partWriter) query(p *part, boost float64) string {
	boost *= p.boost
	if p.parts != nil {
		return w.group(p, boost)
	}
	fields := w.fields
	if p.field != "" {
		fields = `,"fields":` + quotedList([]string{p.field})
	}
	factor := ""
	if boost != 1 {
		factor = `,"boost":` + strconv.FormatFloat(boost, 'g', -1, 32)
	}
	return `{"` + w.kind + `":{"query":` + quoted(p.raw) + fields + w.others + factor + `}}`
}

func (w *partWriter) group(p *part, boost float64) string {
	var members []string
	for _, how := range []occur{must, should, mustNot} {
		var queries []string
		for i := range p.parts {
			if p.parts[i].occur == how {
				queries = append(queries, w.query(&p.parts[i], boost))
			}
		}
		if queries != nil {
			members = append(members, `"`+string(how)+`":[`+strings.Join(queries, ",")+`]`)
		}
	}
	return `{"bool":{` + strings.Join(members, ",") + `}}`
}

// parseApart parses the search again with queries of parts beside its query
// strings, or returns nil if it has none, or would be too large.
func (p *Parser) parseApart(parameters *Parameters) *Search {
	body, highlights := p.search.Body, p.search.Highlights
	rebuilt := p.rebuilt()
	if rebuilt == nil {
		return nil
	}
	s, why := p.parse(rebuilt, parameters)
	if why != "" || s.FieldCount() > MaxFields || s.Crowded() {
		return nil
	}
	for i, h := range highlights { // mark the words of the client's queries
		for _, q := range h.Queries {
			s.Highlights[i].Originals = append(s.Highlights[i].Originals, q.Of(body))
		}
	}
	return s
}

// rebuilt returns a body in which queries of parts stand beside their query
// strings, and notes where.
func (p *Parser) rebuilt() []byte {
	s, shift := &p.search, 0
	var edits []jsonspan.Edit
	for i := range s.Clauses {
		c := &s.Clauses[i]
		if c.parts == "" || c.At.IsZero() {
			continue
		}
		before, between := `{"dis_max":{"queries":[`, `,`
		if c.Matches >= Same || p.Same {
			before, between = `{"bool":{"filter":[`, `],"should":[`
		}
		text := before + string(c.At.Of(s.Body)) + between + c.parts + `]}}`
		start := c.At.Start + shift
		p.wholes = append(p.wholes, whole{
			path: c.Path, reason: c.Reason, left: c.Left, clauses: c.textClauses(), matches: c.Matches, at: jsonspan.Span{Start: start, End: start + len(text)},
			client: jsonspan.Span{Start: start + len(before), End: start + len(before) + c.At.Len()},
		})
		edits = append(edits, jsonspan.Edit{At: c.At, Text: text})
		shift += len(text) - c.At.Len()
	}
	if len(edits) == 0 || shift > maxRebuilt {
		return nil
	}
	return jsonspan.AppendEdited(nil, s.Body, 0, len(s.Body), edits)
}

// textClauses is an upper estimate of the clauses of a text as the engine
// counts them.
func (c *Clause) textClauses() int {
	return (len(strings.Fields(c.Text)) + 1) * max(len(c.Fields), 1)
}

// noteWhole records a query string where the client's query is at the place,
// and otherwise the clauses of a part that is not expanded.
func (s *Search) noteWhole(w *whole, at jsonspan.Span, clauses int) {
	if !w.client.Holds(at) && !at.Holds(w.client) {
		s.ClauseCount += clauses
	} else {
		s.ClauseCount += w.clauses
		s.Clauses = append(s.Clauses, Clause{At: w.at, Path: w.path, Reason: w.reason, Role: Note, Left: w.left, Whole: w.client})
	}
}

// wholeAt returns the query string that a place is in, or is in a part of.
func (p *Parser) wholeAt(at jsonspan.Span) *whole {
	for i := range p.wholes {
		if p.wholes[i].at.Holds(at) {
			return &p.wholes[i]
		}
	}
	return nil
}

func quoted(text string) string {
	out, _ := jsontext.AppendQuote(nil, text)
	return string(out)
}

func quotedList(texts []string) string {
	out := make([]string, len(texts))
	for i, text := range texts {
		out[i] = quoted(text)
	}
	return "[" + strings.Join(out, ",") + "]"
}
