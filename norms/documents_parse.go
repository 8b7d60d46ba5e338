package norms

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Errors of what a client wrote. The cluster tells the client of them.
var (
	errJSON   = errors.New("not one JSON object without a name twice")
	errAction = errors.New("not a bulk request")
)

// A span is the range [start, end) of bytes of a body.
type span struct{ start, end int }

func (s span) of(body []byte) []byte { return body[s.start:s.end] }

// A member is a member of an object in a body.
type member struct {
	name string
	// at begins with the name and ends with the value, and value is that alone.
	at, value span
}

// A tree is a JSON object in a body with its members in their order.
type tree struct {
	// at begins with the brace and ends with the other one.
	at      span
	members []member
}

// find returns the member of a name, nil where there is none.
func (t *tree) find(name string) *member {
	for i := range t.members {
		if t.members[i].name == name {
			return &t.members[i]
		}
	}
	return nil
}

// newDecoder returns a decoder of JSON, which it reads in place. The engines
// take strings with half a surrogate pair.
func newDecoder(text []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowInvalidUTF8(true))
}

// readTree reads the JSON object that is all of a part of a body but for
// white space.
func readTree(body []byte, part span) (tree, error) {
	d := newDecoder(part.of(body))
	if d.PeekKind() != '{' {
		return tree{}, errJSON
	}
	if _, err := d.ReadToken(); err != nil {
		return tree{}, errJSON
	}
	t := tree{at: span{start: part.start + int(d.InputOffset()) - 1}}
	value := func() (span, error) {
		v, err := d.ReadValue()
		end := part.start + int(d.InputOffset())
		return span{end - len(v), end}, err
	}
	for d.PeekKind() != '}' {
		name, err := value()
		if err != nil {
			return tree{}, errJSON
		}
		v, err := value()
		if err != nil {
			return tree{}, errJSON
		}
		unquoted, err := jsontext.AppendUnquote(nil, name.of(body))
		if err != nil {
			return tree{}, errJSON
		}
		t.members = append(t.members, member{string(unquoted), span{name.start, v.end}, v})
	}
	if _, err := d.ReadToken(); err != nil {
		return tree{}, errJSON
	}
	t.at.end = part.start + int(d.InputOffset())
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return tree{}, errJSON
	}
	return t, nil
}

// An action is what a write does with one document.
type action struct {
	// index is the name that the document is written by, id and routing are ""
	// where the request has none.
	index, id, routing string
	// pipeline names the one that the request asks for, "" for none.
	pipeline string
	// versionType is as the request has it.
	versionType string
	// update says that the source is an update.
	update bool
	// source is where the document or the update stands.
	source span
}

// external reports whether the client counts the versions of the document:
// one more write would take a version that the client has yet to give.
func (a *action) external() bool {
	return a.versionType != "" && !strings.EqualFold(a.versionType, "internal")
}

// An actionReader reads what a request does.
type actionReader struct {
	write *Write
	at    int
	// ended says that all has been read.
	ended bool
}

// next appends the next actions, up to actionsAtOnce. It leaves out what has
// no source. With an error of stop it ends early; with errAction the rest of
// the request cannot be read.
func (r *actionReader) next(actions []action, stop func() error) ([]action, error) {
	w := r.write
	whole := action{
		index: w.Index, id: w.ID, routing: w.Routing, pipeline: w.Pipeline, versionType: w.VersionType,
		update: w.Update, source: span{0, len(w.Body)},
	}
	if !w.Bulk {
		r.ended = true
		return append(actions, whole), nil
	}
	for r.at < len(w.Body) && len(actions) < actionsAtOnce {
		if err := stop(); err != nil {
			return actions, err
		}
		line := nextLine(w.Body, r.at)
		r.at = min(line.end+1, len(w.Body))
		if len(bytes.TrimSpace(line.of(w.Body))) == 0 {
			continue // the engines pass over empty lines
		}
		a := whole
		sourced, err := a.readHeader(w.Body, line)
		if err != nil {
			r.ended = true
			return actions, err
		}
		if !sourced {
			continue
		}
		a.source = nextLine(w.Body, r.at)
		r.at = min(a.source.end+1, len(w.Body))
		actions = append(actions, a)
	}
	r.ended = r.at == len(w.Body)
	return actions, nil
}

// nextLine returns the line that begins at a place, without its end.
func nextLine(body []byte, at int) span {
	if n := bytes.IndexByte(body[at:], '\n'); n >= 0 {
		return span{at, at + n}
	}
	return span{at, len(body)}
}

// readHeader reads a line of a bulk request that says what is done, over
// what the request says for all of them. It reports whether a source
// follows.
func (a *action) readHeader(body []byte, line span) (sourced bool, err error) {
	header, err := readTree(body, line)
	if err != nil {
		body = plainJSON(line.of(body))
		header, err = readTree(body, span{0, len(body)})
	}
	if err != nil || len(header.members) == 0 {
		return false, errAction
	}
	first := &header.members[0] // the engines read no further
	a.id, a.versionType = "", ""
	switch first.name {
	case "index", "create":
		a.update = false
	case "update":
		a.update = true
	case "delete":
		return false, nil
	default:
		return false, errAction
	}
	about, err := readTree(body, first.value)
	if err != nil {
		return false, errAction
	}
	for i := range about.members {
		m := &about.members[i]
		value, ok := scalar(m.value.of(body))
		if !ok {
			continue
		}
		switch m.name {
		case "_index":
			a.index = value
		case "_id":
			a.id = value
		case "routing":
			a.routing = value
		case "pipeline":
			a.pipeline = value
		case "version_type":
			a.versionType = value
		}
	}
	return true, nil
}

// plainJSON returns a copy of JSON with spaces for what the engines read over,
// a byte order mark and comments.
func plainJSON(text []byte) []byte {
	out := bytes.Clone(text)
	blank := func(from, to int) {
		for i := from; i < to; i++ {
			out[i] = ' '
		}
	}
	if bytes.HasPrefix(out, []byte("\xef\xbb\xbf")) {
		blank(0, 3)
	}
	quoted := false
	for i := 0; i < len(out); i++ {
		switch {
		case quoted && out[i] == '\\':
			i++
		case out[i] == '"':
			quoted = !quoted
		case quoted:
		case bytes.HasPrefix(out[i:], []byte("/*")):
			n := bytes.Index(out[i+2:], []byte("*/"))
			if n < 0 {
				return out
			}
			blank(i, i+n+4)
		case bytes.HasPrefix(out[i:], []byte("//")):
			n := bytes.IndexByte(out[i:], '\n')
			if n < 0 {
				n = len(out) - i
			}
			blank(i, i+n)
		}
	}
	return out
}

// scalar returns the text of a string, a number or a boolean.
func scalar(v jsontext.Value) (string, bool) {
	switch v.Kind() {
	case jsontext.KindString:
		text, err := jsontext.AppendUnquote(nil, v)
		return string(text), err == nil
	case jsontext.KindNumber, jsontext.KindTrue, jsontext.KindFalse:
		return string(v), true
	default:
		return "", false
	}
}

// An updateBody is the body of an update.
type updateBody struct {
	// doc and upsert are nil where the update has none.
	doc, upsert *member
	// scripted says that a script makes the document.
	scripted bool
}

// readUpdate reads the body of an update.
func readUpdate(body []byte, source span) (updateBody, error) {
	t, err := readTree(body, source)
	if err != nil {
		return updateBody{}, err
	}
	return updateBody{doc: t.find("doc"), upsert: t.find("upsert"), scripted: t.find("script") != nil}, nil
}
