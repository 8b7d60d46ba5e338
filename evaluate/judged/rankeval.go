package judged

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A ratedSearch is an element of the requests of a _rank_eval request.
type ratedSearch struct {
	ID       string         `json:"id"`
	Template string         `json:"template_id"`
	Request  jsontext.Value `json:"request"`
	Ratings  []rating       `json:"ratings"`
	end      int64
}

// UnmarshalJSONFrom notes where the element ends.
func (s *ratedSearch) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	type plain ratedSearch
	err := json.UnmarshalDecode(d, (*plain)(s))
	s.end = d.InputOffset()
	return err
}

// A rating is the grade of a document in a _rank_eval request.
type rating struct {
	Document string         `json:"_id"`
	Grade    jsontext.Value `json:"rating"`
	end      int64
}

// UnmarshalJSONFrom notes where the rating ends.
func (g *rating) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	type plain rating
	err := json.UnmarshalDecode(d, (*plain)(g))
	g.end = d.InputOffset()
	return err
}

func (r *reader) rankEval(in *bufio.Reader) {
	text, err := io.ReadAll(in)
	if err != nil {
		r.fail(0, "%w", err)
		return
	}
	line := func(offset int64) int { return 1 + bytes.Count(text[:offset], []byte("\n")) }
	var file struct {
		Requests []ratedSearch `json:"requests"`
	}
	if err := json.Unmarshal(text, &file); err != nil {
		at := int64(0)
		if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
			at = syntax.ByteOffset
		} else if kind, ok := errors.AsType[*json.SemanticError](err); ok {
			at = kind.ByteOffset
		}
		r.fail(line(at), "no _rank_eval request: %w", err)
		return
	}
	for _, s := range file.Requests {
		switch {
		case r.given:
			r.fail(line(s.end), "a _rank_eval request has its searches itself: give no file of queries")
			return
		case s.Template != "" || s.Request.Kind() != '{':
			r.fail(line(s.end), "request %q: want the search itself in \"request\"; templates are not read", s.ID)
			continue
		}
		r.query(line(s.end), Query{ID: s.ID, Body: s.Request})
		for _, g := range s.Ratings {
			r.grade(line(g.end), strings.TrimSpace(s.ID), g.Document, string(g.Grade))
		}
	}
}
