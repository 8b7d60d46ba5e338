package expand

import (
	"bytes"
	"slices"
	"strings"

	"github.com/akin-search/akin/internal/jsonspan"
)

// discloses returns in which ways the answer to a search with a body would show
// the terms that are added to it.
func discloses(req *Request, body []byte) Disclosure {
	d := req.Discloses
	switch req.Endpoint {
	case EndpointExplain:
		d |= DiscloseExplain
	case EndpointValidate:
		if asksFor(req.RawQuery, "explain", "rewrite", "all_shards") {
			d |= DiscloseValidate
		}
	default:
		if asksFor(req.RawQuery, "explain") {
			d |= DiscloseExplain
		}
		d |= disclosedBy(body)
	}
	return d
}

// asksFor reports whether one of the parameters is there and not "false".
func asksFor(rawQuery string, parameters ...string) bool {
	for part := range strings.SplitSeq(rawQuery, "&") {
		name, value, _ := strings.Cut(part, "=")
		if value != "false" && slices.Contains(parameters, name) {
			return true
		}
	}
	return false
}

// disclosedBy returns what a search body asks for: "profile" stands at its
// top, "explain" in inner hits and in aggregations, too. It may take the
// name of a field for that, and one search more is not expanded.
func disclosedBy(body []byte) (d Disclosure) {
	if !bytes.Contains(body, []byte(`"explain"`)) && !bytes.Contains(body, []byte(`"profile"`)) && !bytes.Contains(body, []byte(`\u`)) {
		return 0 // nearly every search
	}
	var r jsonspan.Reader
	r.Reset(body)
	_ = d.read(&r, body, DiscloseExplain|DiscloseProfile) // the body was read before
	return d
}

// read adds what a value asks for, of the ways given at its top.
func (d *Disclosure) read(r *jsonspan.Reader, body []byte, ways Disclosure) error {
	if r.Kind() == '[' {
		return r.List(func(int) error { return d.read(r, body, DiscloseExplain) })
	}
	if r.Kind() != '{' {
		return r.Skip()
	}
	return r.Object(func(name []byte) error {
		var way Disclosure
		switch string(name) {
		case "explain":
			way = DiscloseExplain
		case "profile":
			way = DiscloseProfile
		}
		if kind := r.Kind(); way&ways == 0 || kind != 't' && kind != '"' {
			return d.read(r, body, DiscloseExplain)
		}
		at, err := r.Value()
		on := at.Of(body)
		if err == nil && on[0] == '"' {
			on, err = jsonspan.Unquote(on)
		}
		if string(on) == "true" {
			*d |= way
		}
		return err
	})
}
