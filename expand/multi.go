package expand

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// searchesSideBySide is how many searches of one request are expanded at the
// same time. With cold caches each waits for the cluster.
const searchesSideBySide = 4

// maxSearches bounds the searches of one request that is expanded, and with it
// the size of what comes out: at most some 20 KiB are added to each, in
// [ModeHard] as much to all as [maxSharedTerms] allows.
const maxSearches = 256

// headerBytes is what [appendHeader] adds to a search_type.
const headerBytes = 20

// A part is one search of a request that holds several.
type part struct {
	req Request
	// header is where the line before the search stands in the body of the
	// request, zero where there is none.
	header span
	// at is where the search stands in it.
	at span
	// skip is why the search is left alone, "" where it is not.
	skip Reason
	res  *Result
	err  error
}

// expandParts expands each of the parts as a search of its own and returns the
// whole body with those that were rewritten in their places.
func (e *Expander) expandParts(ctx context.Context, req *Request, parts []part) (*Result, error) {
	_ = inParallel(len(parts), searchesSideBySide, func(i int) error {
		p := &parts[i]
		if p.skip != "" {
			p.res = &Result{Reason: p.skip}
		} else {
			p.res, p.err = e.expandOne(ctx, &p.req, len(parts))
		}
		return nil // each part has its own
	})
	room := len(req.Body)
	for i := range parts {
		if res := parts[i].res; res != nil {
			room += len(res.Body) + len(dfs) + headerBytes
		}
	}
	out := &Result{RawQuery: req.RawQuery, Body: make([]byte, 0, room), Indices: make([]string, len(parts))}
	at := 0
	for i := range parts {
		p := &parts[i]
		out.Indices[i] = p.req.Index
		if p.err != nil {
			out.Failures = append(out.Failures, p.err)
			continue
		}
		out.tell(i, p.res)
		if !p.res.Rewritten {
			continue
		}
		out.Rewritten = true
		out.order(i, len(parts), p.res)
		out.Leaves = max(out.Leaves, p.res.Leaves)
		if p.res.RawQuery != p.req.RawQuery {
			out.Body = append(out.Body, req.Body[at:p.header.start]...)
			out.Body = appendHeader(out.Body, p.header.of(req.Body))
			at = p.header.end
		}
		out.Body = append(out.Body, req.Body[at:p.at.start]...)
		out.Body = append(out.Body, p.res.Body...)
		at = p.at.end
	}
	if !out.Rewritten {
		return out.unchanged()
	}
	out.Body = append(out.Body, req.Body[at:]...)
	return out, nil
}

// tell adds what became of search i.
func (r *Result) tell(i int, search *Result) {
	number := "[" + strconv.Itoa(i) + "]"
	if search.Reason != "" {
		r.Clauses = append(r.Clauses, Clause{Path: number, Reason: search.Reason})
	}
	for _, c := range search.Clauses {
		c.Path = number + "." + c.Path
		r.Clauses = append(r.Clauses, c)
	}
}

// order adds how the hits of search i, of n, are to be ordered.
func (r *Result) order(i, n int, search *Result) {
	if len(search.Reranks) == 0 {
		return
	}
	if r.Reranks == nil {
		r.Reranks = make([]*Rerank, n)
	}
	r.Reranks[i] = search.Reranks[0]
}

// unchanged returns the result of a request of which no search was rewritten:
// the failure of one of them, or the reason of the first.
func (r *Result) unchanged() (*Result, error) {
	if len(r.Failures) > 0 {
		return nil, errors.Join(r.Failures...)
	}
	reason := ReasonNoClause
	if len(r.Clauses) > 0 {
		reason = r.Clauses[0].Reason
	}
	return &Result{Clauses: r.Clauses, Reason: reason}, nil
}

// multiSearch takes the body of _msearch apart: lines of headers and searches
// in turn. It returns nil where it is not that, or begins with an empty line,
// which the versions of the engines understand differently.
func multiSearch(req *Request) []part {
	body := req.Body
	if len(body) == 0 || body[0] == '\n' || body[len(body)-1] != '\n' {
		return nil
	}
	var parts []part
	for at := 0; at < len(body); {
		var p part
		if p.header, at = line(body, at); at == len(body) {
			return nil
		}
		p.at, at = line(body, at)
		var err error
		if p.req, err = search(req, p.header.of(body)); err != nil {
			p.skip = ReasonMultiSearch
		}
		p.req.Body = p.at.of(body)
		parts = append(parts, p)
	}
	if len(parts) > maxReranked {
		for i := range parts {
			parts[i].req.Fixed = cmp.Or(req.Fixed, ReasonTooManyReranked)
		}
	}
	return parts
}

// line returns the line that begins at the place given, without its newline,
// and the place behind that.
func line(body []byte, at int) (span, int) {
	end := at + bytes.IndexByte(body[at:], '\n')
	return span{at, end}, end + 1
}

// search returns the search that a header of _msearch begins, without a body.
// What the header says goes before the request's path and parameters.
func search(req *Request, header []byte) (Request, error) {
	out := Request{
		Endpoint: EndpointSearch, Index: req.Index, Preview: req.Preview, Fixed: req.Fixed,
		Allowed: req.Allowed, Discloses: req.Discloses,
	}
	said := url.Values{}
	for part := range strings.SplitSeq(req.RawQuery, "&") {
		if name, value, _ := strings.Cut(part, "="); inHeader(name) {
			value, err := url.QueryUnescape(value)
			if err != nil {
				return out, err
			}
			said.Set(name, value)
		}
	}
	if len(bytes.TrimSpace(header)) > 0 {
		if err := members(header, func(name, value []byte) error {
			return out.header(string(name), value, said)
		}); err != nil {
			return out, err
		}
	}
	out.RawQuery = said.Encode()
	return out, nil
}

// header takes a member of a header of _msearch; said are its parameters.
func (r *Request) header(name string, value []byte, said url.Values) error {
	switch {
	case name == "index" || name == "indices":
		index, err := expression(value)
		if index != "" {
			r.Index = index
		}
		return err
	case name == "routing" || name == "preference":
		word, err := loose(value)
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

// inHeader reports whether a parameter of the URL may stand in a header of
// _msearch and matters to expansion.
func inHeader(name string) bool {
	switch name {
	case "search_type", "routing", "preference",
		"ignore_unavailable", "allow_no_indices", "expand_wildcards", "ignore_throttled":
		return true
	}
	return false
}

// expression returns a string, a boolean, or a list of strings joined by
// commas; "" for null.
func expression(value []byte) (string, error) {
	switch value[0] {
	case 'n':
		return "", nil
	case '"':
		return text(value)
	case 't', 'f':
		return string(value), nil
	case '[':
	default:
		return "", errOptions
	}
	var names []string
	dec := jsontext.NewDecoder(bytes.NewReader(value))
	if _, err := dec.ReadToken(); err != nil {
		return "", err
	}
	for dec.PeekKind() != ']' {
		raw, err := dec.ReadValue()
		if err != nil {
			return "", err
		}
		name, err := text(raw)
		if err != nil {
			return "", err
		}
		names = append(names, name)
	}
	return strings.Join(names, ","), nil
}

// loose returns a value that the engines make a string of, whatever it is; ""
// for null.
func loose(value []byte) (string, error) {
	switch value[0] {
	case 'n':
		return "", nil
	case '"':
		return text(value)
	default:
		return string(value), nil
	}
}

// appendHeader appends a header with the search_type that the rewritten search
// needs; it has none.
func appendHeader(out, header []byte) []byte {
	const member = `"search_type":"` + dfs + `"`
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

// rankEval takes the body of _rank_eval apart: the searches stand in the
// members "request" of the list "requests". It returns nil where the body is no
// JSON. The shards score by their own statistics there as far as the request
// does not say otherwise: the list has one search_type for all.
func rankEval(req *Request) []part {
	var s scanner
	s.body = req.Body
	s.buffer = *bytes.NewBuffer(req.Body)
	s.dec.Reset(&s.buffer)
	rawQuery := req.RawQuery
	if !strings.Contains(rawQuery, "search_type=") {
		rawQuery += "&search_type=query_then_fetch"
	}
	var parts []part
	rated := func(name []byte) error {
		v, err := s.value()
		if err == nil && string(name) == "request" {
			in := Request{
				Endpoint: EndpointRankEval, Index: req.Index, RawQuery: rawQuery, Body: v.of(req.Body), Allowed: req.Allowed,
			}
			parts = append(parts, part{req: in, at: v})
		}
		return err
	}
	err := s.object(func(name []byte) error {
		if string(name) != "requests" || s.dec.PeekKind() != '[' {
			return s.dec.SkipValue()
		}
		return s.list(func() error {
			if s.dec.PeekKind() != '{' {
				return s.dec.SkipValue()
			}
			return s.object(rated)
		})
	})
	if err != nil {
		return nil
	}
	if parts == nil {
		parts = []part{} // none to expand
	}
	return parts
}

// expandSeveral expands a request that holds several searches.
func (e *Expander) expandSeveral(ctx context.Context, req *Request) (*Result, error) {
	takeApart, reason := multiSearch, ReasonMultiSearch
	if req.Endpoint == EndpointRankEval {
		takeApart, reason = rankEval, ReasonNotJSON
	}
	parts := takeApart(req)
	if len(parts) > maxSearches {
		return &Result{Reason: ReasonTooManySearches}, nil
	}
	if parts == nil {
		return &Result{Reason: reason}, nil
	}
	res, err := e.expandParts(ctx, req, parts)
	if err != nil {
		return nil, fmt.Errorf("of %d searches: %w", len(parts), err)
	}
	return res, nil
}
