package dsl

import (
	"bytes"
	"cmp"
	"errors"
	"net/url"
	"strings"

	"github.com/akin-search/akin/internal/jsonspan"
)

// A Part is one of several searches in a request.
type Part struct {
	// Header is the place of the line before the search, zero without one. At is
	// the place of the search.
	Header, At jsonspan.Span
	// Index and RawQuery are those of the search. Its header overrides path and
	// parameters of the request.
	Index, RawQuery string
	// Odd says that akin does not understand the header.
	Odd bool
}

// MultiSearch splits the body of _msearch: alternating lines of headers and
// searches. It returns nil if it is not that, or begins with an empty line,
// which engine versions treat differently.
func MultiSearch(body []byte, index, rawQuery string) []Part {
	if len(body) == 0 || body[0] == '\n' || body[len(body)-1] != '\n' {
		return nil
	}
	var parts []Part
	for at := 0; at < len(body); {
		p := Part{Index: index}
		if p.Header, at = line(body, at); at == len(body) {
			return nil
		}
		p.At, at = line(body, at)
		p.Odd = p.readHeader(p.Header.Of(body), rawQuery) != nil
		parts = append(parts, p)
	}
	return parts
}

// line returns the line at a place, and the place of the next.
func line(body []byte, at int) (jsonspan.Span, int) {
	end := at + bytes.IndexByte(body[at:], '\n')
	return jsonspan.Span{Start: at, End: end}, end + 1
}

func (p *Part) readHeader(header []byte, rawQuery string) error {
	said := url.Values{}
	for part := range strings.SplitSeq(rawQuery, "&") {
		if name, value, _ := strings.Cut(part, "="); inHeader(name) || name == totalAsInt {
			value, err := url.QueryUnescape(value)
			if err != nil {
				return err
			}
			said.Set(name, value)
		}
	}
	if len(bytes.TrimSpace(header)) > 0 {
		if err := jsonspan.Members(header, func(name, value []byte) error {
			return p.member(string(name), value, said)
		}); err != nil {
			return err
		}
	}
	p.RawQuery = said.Encode()
	return nil
}

// member reads a member of a header; said are the parameters of the search.
func (p *Part) member(name string, value []byte, said url.Values) error {
	switch {
	case name == "index" || name == "indices":
		index, err := expression(value)
		p.Index = cmp.Or(index, p.Index)
		return err
	case name == "routing" || name == "preference": // the engines make a string of any value
		word, err := string(value), error(nil)
		switch value[0] {
		case 'n':
			word = ""
		case '"':
			word, err = text(value)
		}
		said.Set(name, word)
		return err
	case inHeader(name):
		words, err := expression(value)
		if words == "" {
			err = errors.Join(err, errOptions)
		}
		said.Set(name, words)
		return err
	}
	return nil
}

// inHeader reports whether a parameter is allowed in a header of _msearch.
func inHeader(name string) bool { return roles[name] == roleHeader || roles[name] == roleIndices }

// expression returns a string, a boolean, or a comma-separated list.
func expression(value []byte) (string, error) {
	switch value[0] {
	case 'n':
		return "", nil
	case '"':
		return text(value)
	case 't', 'f':
		return string(value), nil
	}
	var names []string
	err := jsonspan.Elements(value, func(raw []byte) error {
		name, err := text(raw)
		names = append(names, name)
		return err
	})
	return strings.Join(names, ","), err
}

// HeaderRoom is what [AppendHeader] adds to a header, besides the search_type.
const HeaderRoom = 20

// AppendHeader appends a header with the search_type for the rewritten search;
// the header has none.
func AppendHeader(out, header []byte) []byte {
	const member = `"search_type":"` + DFS + `"`
	open := bytes.IndexByte(header, '{')
	if open < 0 { // an empty line
		return append(out, "{"+member+"}"...)
	}
	out = append(append(out, header[:open+1]...), member...)
	rest := header[open+1:]
	if bytes.TrimSpace(rest)[0] != '}' {
		out = append(out, ',')
	}
	return append(out, rest...)
}

// RankEval splits the body of _rank_eval: the searches are the members
// "request" in the list "requests". It returns nil if the body is not JSON.
// Unless the request says otherwise, shards score by their own statistics: the
// list has one search_type for all.
func RankEval(body []byte, index, rawQuery string) []Part {
	if !strings.Contains(rawQuery, "search_type=") {
		rawQuery += "&search_type=query_then_fetch"
	}
	parts := []Part{}
	var r jsonspan.Reader
	r.Reset(body)
	rated := func(name []byte) error {
		at, err := r.Value()
		if err == nil && string(name) == "request" {
			parts = append(parts, Part{At: at, Index: index, RawQuery: rawQuery})
		}
		return err
	}
	err := r.Object(func(name []byte) error {
		if string(name) != "requests" || r.Kind() != '[' {
			return r.Skip()
		}
		return r.List(func(int) error {
			if r.Kind() != '{' {
				return r.Skip()
			}
			return r.Object(rated)
		})
	})
	if err != nil {
		return nil
	}
	return parts
}
