package report

import (
	"encoding/json"
	"time"

	"github.com/akin-search/akin/expand"
)

// endpoints are the endpoints as the admin port names them.
var endpoints = map[expand.Endpoint]string{
	expand.EndpointSearch:      "search",
	expand.EndpointMultiSearch: "msearch",
	expand.EndpointCount:       "count",
	expand.EndpointValidate:    "validate",
	expand.EndpointExplain:     "explain",
	expand.EndpointRankEval:    "rank_eval",
}

// Endpoint returns the endpoint of a name, a search for "".
func Endpoint(name string) (expand.Endpoint, bool) {
	for e, n := range endpoints {
		if n == name {
			return e, true
		}
	}
	return expand.EndpointSearch, name == ""
}

// Values of [Summary.Sent].
const (
	sentOriginal  = "original"
	sentRewritten = "rewritten"
)

// A Summary is a search in a list.
type Summary struct {
	ID       string    `json:"id"`
	Time     time.Time `json:"time"`
	Endpoint string    `json:"endpoint"`
	Index    string    `json:"index"`
	// Text is that of the first clause that was analyzed, where searches are listed.
	Text       string  `json:"text,omitempty"`
	Profile    string  `json:"profile,omitempty"`
	Outcome    string  `json:"outcome"`
	Reason     string  `json:"reason,omitempty"`
	Cause      string  `json:"cause,omitempty"`
	AddedTerms int     `json:"added_terms"`
	TookMillis float64 `json:"took_ms"`
	// Trial is the trial that the search was in, and Arm the arm that it got.
	Trial string `json:"trial,omitempty"`
	Arm   string `json:"arm,omitempty"`
	// Sent is what the client got the answer to: original or rewritten.
	Sent    string `json:"sent"`
	Refused bool   `json:"rejected,omitempty"`
	// Reranked is what became of the hits that were to be reranked, a result of the
	// metric akin_reranked_total, or of several searches "[0] reranked, [2] budget".
	Reranked string `json:"reranked,omitempty"`
}

// A ShownMessage is a message in an explanation.
type ShownMessage struct {
	RawQuery string          `json:"raw_query"`
	Body     json.RawMessage `json:"body,omitempty"`
	// Size is the size of a body that is not here because it is too large.
	Size int `json:"body_size,omitempty"`
}

// An Explanation is all that is known of a search.
type Explanation struct {
	Summary

	Original  ShownMessage         `json:"original"`
	Rewritten *ShownMessage        `json:"rewritten,omitempty"`
	Failures  []string             `json:"failures,omitempty"`
	Clauses   []expand.Explanation `json:"clauses"`
	// Cut is the number of clauses that are left out, or without their terms.
	Cut int `json:"clauses_cut,omitempty"`
}

func (m ShownMessage) shown() ShownMessage {
	if m.Body != nil {
		m.Size = 0
	}
	m.Body = Body(m.Body)
	return m
}

// Body returns a body for an answer, as a text where it is no JSON.
func Body(body []byte) json.RawMessage {
	if len(body) == 0 || json.Valid(body) {
		return body
	}
	text, _ := json.Marshal(string(body)) // strings always encode
	return text
}
