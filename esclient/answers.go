package esclient

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf16"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/akin-search/akin/esclient/mapping"
)

// Lenient returns the options to read answers with: documents may hold half a
// surrogate pair, or a name twice, and come back as they are.
func Lenient() json.Options {
	return json.JoinOptions(jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
}

// Decode decodes JSON of an answer.
func Decode(b []byte, out any) error { return json.Unmarshal(b, out, Lenient()) }

// EachMember calls fn for each member of the object that d comes to; fn reads
// the member's value.
func EachMember(d *jsontext.Decoder, fn func(name string) error) error {
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return cmp.Or(err, errors.New("want an object"))
	}
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return err
		}
		if err := fn(name.String()); err != nil {
			return err
		}
	}
	_, err := d.ReadToken()
	return err
}

// EachElement calls fn for each element of the array that d comes to; fn reads
// it.
func EachElement(d *jsontext.Decoder, fn func() error) error {
	if t, err := d.ReadToken(); err != nil || t.Kind() != jsontext.KindBeginArray {
		return cmp.Or(err, errors.New("want an array"))
	}
	for d.PeekKind() != jsontext.KindEndArray {
		if err := fn(); err != nil {
			return err
		}
	}
	_, err := d.ReadToken()
	return err
}

// An Error is the cluster's answer to a call that it refused.
type Error struct {
	// Status is the HTTP status.
	Status int
	// Type and Reason are the root cause as the cluster gives it, both empty where
	// the answer is none of its own. Reason is cut to 300 bytes, and may quote the
	// call.
	Type, Reason string
}

// Error implements error.
func (e *Error) Error() string {
	s := fmt.Sprintf("the cluster answered %d", e.Status)
	if e.Type != "" {
		s += ": " + e.Type
	}
	if e.Reason != "" {
		s += ": " + e.Reason
	}
	return s
}

// ParseError returns the error that an answer's body tells of.
func ParseError(status int, body []byte) *Error {
	type cause struct {
		Type   string `json:"type"`
		Reason string `json:"reason"`
	}
	var answer struct {
		Error jsontext.Value `json:"error"`
	}
	var tree struct {
		cause
		RootCause []cause `json:"root_cause"`
	}
	e := &Error{Status: status}
	if Decode(body, &answer) != nil {
		return e
	}
	// "no handler found for uri" comes as a plain string.
	if Decode(answer.Error, &e.Reason) != nil {
		if Decode(answer.Error, &tree) != nil {
			return e
		}
		first := tree.cause
		if len(tree.RootCause) > 0 {
			first = tree.RootCause[0]
		}
		e.Type, e.Reason = first.Type, first.Reason
	}
	e.Reason = shorten(e.Reason)
	return e
}

// shorten cuts a reason to what [Error] promises.
func shorten(reason string) string {
	const maxReason = 300
	if len(reason) <= maxReason {
		return reason
	}
	return strings.ToValidUTF8(reason[:maxReason], "") + "…"
}

// An ItemError is what the cluster says of one of several documents.
type ItemError struct {
	Type   string `json:"type"`
	Reason string `json:"reason"`
}

// AsError returns it as the error of a call.
func (e *ItemError) AsError(status int) *Error {
	return &Error{Status: status, Type: e.Type, Reason: shorten(e.Reason)}
}

// A Token is one token of an _analyze answer. Offsets are in UTF-16 units.
type Token struct {
	Token    string `json:"token"`
	Start    int    `json:"start_offset"`
	End      int    `json:"end_offset"`
	Position int    `json:"position"`
	// Length is the number of positions it spans, 0 for 1.
	Length int `json:"positionLength"`
}

// SplitTokens gives each token of an _analyze call to its word. It reports
// false if the answer leaves that open.
//
// Offsets count from the start of the first text, with one unit between texts,
// but fall short where a filter stops early (limit). Positions grow by
// PositionGap or more from text to text, but within a text, too. A word takes a
// token only where the two agree.
func SplitTokens(words []string, tokens []Token) ([][]string, bool) {
	terms := make([][]string, len(words))
	if len(words) == 1 {
		for _, t := range tokens {
			terms[0] = append(terms[0], t.Token)
		}
		return terms, true
	}
	word, start, end, last := 0, 0, utf16Len(words[0]), 0
	for _, t := range tokens {
		if t.Position < last {
			return nil, false
		}
		for range (t.Position - last) / mapping.PositionGap {
			word++
			if word == len(words) {
				return nil, false
			}
			start = end + 1
			end = start + utf16Len(words[word])
		}
		if t.Start < start || t.End > end {
			return nil, false
		}
		last = t.Position
		terms[word] = append(terms[word], t.Token)
	}
	return terms, true
}

// Written returns for each token, in the order of positions, the part of the
// text that it is made of, "" where that is the token itself, where tokens
// share it, as synonyms do, and where its offsets are not of the text; nil if
// all are "".
func Written(text string, tokens []Token) (parts []string) {
	units := utf16.Encode([]rune(text))
	for i, t := range tokens {
		share := func(k int) bool {
			return k >= 0 && k < len(tokens) && (tokens[k].Position == t.Position || tokens[k].Start == t.Start)
		}
		if share(i-1) || share(i+1) || t.Start < 0 || t.End > len(units) || t.Start >= t.End {
			continue
		}
		var part string
		if len(units) == len(text) { // ASCII
			part = text[t.Start:t.End]
		} else {
			part = string(utf16.Decode(units[t.Start:t.End]))
		}
		if part == t.Token {
			continue
		}
		if parts == nil {
			parts = make([]string, len(tokens))
		}
		parts[i] = part
	}
	return parts
}

// utf16Len returns the length of s in UTF-16 units, in which Java counts.
func utf16Len(s string) int {
	n := 0
	for _, r := range s {
		n += utf16.RuneLen(r)
	}
	return n
}

// A ScoreExplanation is a node of the tree that explains a score.
type ScoreExplanation struct {
	Value       float64            `json:"value"`
	Description string             `json:"description"`
	Details     []ScoreExplanation `json:"details"`
}

// Scale returns the factor of the first BM25 score in the tree: k1+1 or, where
// the score names no factor, 1. It reports false if there is none, or with
// another factor.
func (e *ScoreExplanation) Scale() (float64, bool) {
	// "score(freq=2.0), computed as boost * idf * tf from:", since Lucene 8.
	if !strings.HasPrefix(e.Description, "score(freq=") || !strings.Contains(e.Description, "boost * idf * tf") {
		for i := range e.Details {
			if scale, ok := e.Details[i].Scale(); ok {
				return scale, ok
			}
		}
		return 0, false
	}
	boost, k1 := 1.0, math.NaN()
	for _, d := range e.Details {
		switch {
		case d.Description == "boost":
			boost = d.Value
		case strings.HasPrefix(d.Description, "tf,"):
			for _, p := range d.Details {
				if strings.HasPrefix(p.Description, "k1,") {
					k1 = p.Value
				}
			}
		}
	}
	// The engine computes with 32-bit floats.
	const precision = 1e-5
	if boost > 0 && (boost == 1 || math.Abs(boost-(k1+1)) <= precision*boost) {
		return boost, true
	}
	return 0, false
}
