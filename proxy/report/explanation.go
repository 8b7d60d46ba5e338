package report

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
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

// Last returns the last searches in short, at most n, the newest first.
func (x *Ring) Last(n int) []Summary {
	x.mu.Lock()
	defer x.mu.Unlock()
	all := make([]Summary, min(n, x.count))
	for age := range all {
		e := x.at(age)
		all[age] = e.shown()
		all[age].Text = textOf(e.Clauses)
	}
	return all
}

// textOf returns the words of the first clause that has some, as they were
// written where that is known.
func textOf(clauses []expand.Explanation) string {
	for _, c := range clauses {
		words := slices.Clone(c.Terms)
		for k := range min(len(words), len(c.Written)) {
			words[k] = cmp.Or(c.Written[k], words[k])
		}
		if len(words) > 0 {
			return clipped(strings.Join(words, " "))
		}
	}
	return ""
}

// Find returns all that is known of a search, false where it is not kept.
// unpack decompresses gzip, to nil where it cannot.
func (x *Ring) Find(id string, unpack func([]byte) []byte) (all Explanation, ok bool) {
	packed := false
	ok = x.find(id, func(e *entry) { all, all.Summary, packed = e.Explanation, e.shown(), e.packed })
	if body := all.Original.Body; packed && body != nil {
		all.Original.Body = unpack(body)
	}
	all.Original = all.Original.shown()
	if all.Rewritten != nil {
		rewritten := all.Rewritten.shown()
		all.Rewritten = &rewritten
	}
	all.Clauses = append([]expand.Explanation{}, all.Clauses...)
	return all, ok
}

func (e *entry) shown() Summary {
	s := e.Summary
	var all []string
	for k, result := range e.reranked {
		if result != "" && e.several {
			result = "[" + strconv.Itoa(k) + "] " + result
		}
		if result != "" {
			all = append(all, result)
		}
	}
	s.Reranked = strings.Join(all, ", ")
	return s
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
