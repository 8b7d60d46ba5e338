package judged

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// A ratedSearch is an element of the requests of a _rank_eval request.
type ratedSearch struct {
	ID       string         `json:"id"`
	Template string         `json:"template_id"`
	Request  jsontext.Value `json:"request"`
	Ratings  []located[struct {
		Document string         `json:"_id"`
		Grade    jsontext.Value `json:"rating"`
	}] `json:"ratings"`
}

func (r *reader) rankEval(searches []located[ratedSearch], line func(offset int64) int) {
	for _, s := range searches {
		search := s.value
		if search.Template != "" || search.Request.Kind() != '{' {
			r.fail(line(s.end), "request %q: want the search itself in \"request\"; templates are not read", search.ID)
			continue
		}
		r.query(line(s.end), Query{ID: search.ID, Body: search.Request})
		for _, g := range search.Ratings {
			r.grade(line(g.end), strings.TrimSpace(search.ID), g.value.Document, string(g.value.Grade))
		}
	}
}
