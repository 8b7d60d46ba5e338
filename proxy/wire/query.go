// Package wire reads what stands around the JSON of requests and answers: query
// strings, of which the bytes that are not akin's stay as they came, and
// headers.
package wire

import (
	"net/url"
	"strings"
)

// CutParameters returns a raw query string without the parameters for whose
// unescaped names and values take returns true. A semicolon is an ampersand, as
// for the engines.
func CutParameters(rawQuery string, take func(name, value string) bool) string {
	var kept []byte // set once something is cut
	cut := false
	for rest, at := rawQuery, 0; rest != ""; {
		part, separator := rest, ""
		if i := strings.IndexAny(rest, "&;"); i >= 0 {
			part, separator = rest[:i], rest[i:i+1]
		}
		rest = rest[len(part)+len(separator):]
		name, value, _ := strings.Cut(part, "=")
		switch {
		case take(unescape(name), unescape(value)):
			if !cut {
				cut, kept = true, append(kept, rawQuery[:at]...)
			}
			if separator == "" && len(kept) > 0 {
				kept = kept[:len(kept)-1] // nothing follows
			}
		case cut:
			kept = append(append(kept, part...), separator...)
		}
		at += len(part) + len(separator)
	}
	if !cut {
		return rawQuery
	}
	return string(kept)
}

// unescape returns a part of a query string as it is meant, or as it stands.
func unescape(s string) string {
	if plain, err := url.QueryUnescape(s); err == nil {
		return plain
	}
	return s
}

// EachParameter calls f with the name and the value of each parameter.
func EachParameter(rawQuery string, f func(name, value string)) {
	CutParameters(rawQuery, func(name, value string) bool {
		f(name, value)
		return false
	})
}

// Has reports whether a query string has a parameter.
func Has(rawQuery, parameter string) (has bool) {
	EachParameter(rawQuery, func(name, _ string) { has = has || name == parameter })
	return has
}

// FilterPath returns the last parameter filter_path.
func FilterPath(rawQuery string) (filter string) {
	EachParameter(rawQuery, func(name, value string) {
		if name == "filter_path" {
			filter = value
		}
	})
	return filter
}
