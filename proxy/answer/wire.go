package answer

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// CutParameters returns a raw query string without the parameters for which
// take, called with unescaped name and value, returns true. A semicolon
// separates like an ampersand, as in the engines.
func CutParameters(rawQuery string, take func(name, value string) bool) string {
	kept := make([]byte, 0, len(rawQuery))
	for rest := rawQuery; rest != ""; {
		part, separator := rest, ""
		if i := strings.IndexAny(rest, "&;"); i >= 0 {
			part, separator = rest[:i], rest[i:i+1]
		}
		rest = rest[len(part)+len(separator):]
		name, value, _ := strings.Cut(part, "=")
		if !take(unescape(name), unescape(value)) {
			kept = append(append(kept, part...), separator...)
		} else if separator == "" && len(kept) > 0 {
			kept = kept[:len(kept)-1] // nothing follows
		}
	}
	return string(kept)
}

// unescape returns a part of a query string unescaped, if it can be.
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

// parameter returns the last value of a parameter, and whether there is one.
func parameter(rawQuery, name string) (value string, has bool) {
	EachParameter(rawQuery, func(n, v string) {
		if n == name {
			value, has = v, true
		}
	})
	return value, has
}

// Has reports whether a query string has a parameter.
func Has(rawQuery, name string) bool {
	_, has := parameter(rawQuery, name)
	return has
}

// FilterPath returns the last parameter filter_path.
func FilterPath(rawQuery string) string {
	filter, _ := parameter(rawQuery, "filter_path")
	return filter
}

// IsJSON reports whether Content-Type or Accept is a single JSON media type.
func IsJSON(values []string) bool {
	return isOne(values, "application/json", "application/vnd.elasticsearch+json")
}

// IsLines reports whether Content-Type is a media type of lines of JSON.
func IsLines(values []string) bool {
	return isOne(values, "application/x-ndjson", "application/vnd.elasticsearch+x-ndjson")
}

// isOne reports whether values is one media type (engines take one), a or b.
func isOne(values []string, a, b string) bool {
	if len(values) != 1 {
		return false
	}
	mediaType, _, _ := strings.Cut(values[0], ";")
	mediaType = strings.TrimSpace(mediaType)
	return strings.EqualFold(mediaType, a) || strings.EqualFold(mediaType, b)
}

// ContentEncoding returns the coding, or "", and whether it is known.
func ContentEncoding(h http.Header) (coding string, known bool) {
	switch strings.ToLower(strings.TrimSpace(strings.Join(h["Content-Encoding"], ","))) {
	case "", "identity":
		return "", true
	case "gzip", "x-gzip":
		return "gzip", true
	}
	return "", false
}

// AnswersJSON reports whether the cluster is certain to answer with JSON.
func AnswersJSON(rawQuery string, h http.Header) bool {
	format, has := parameter(rawQuery, "format") // overrides the header
	certain := !has || strings.EqualFold(format, "json")
	for _, list := range h["Accept"] {
		for one := range strings.SplitSeq(list, ",") {
			mediaType, _, _ := strings.Cut(one, ";")
			switch strings.ToLower(strings.TrimSpace(mediaType)) {
			case "*/*", "application/*", "text/plain":
			default:
				certain = certain && IsJSON([]string{mediaType})
			}
		}
	}
	return certain
}

// AskForGzip reduces Accept-Encoding to gzip, so that akin can read the answer.
func AskForGzip(h http.Header) {
	switch gzip, others := accepted(h); {
	case !others:
	case gzip:
		h["Accept-Encoding"] = []string{"gzip"}
	default:
		delete(h, "Accept-Encoding")
	}
}

// AcceptsGzip reports whether Accept-Encoding has gzip.
func AcceptsGzip(h http.Header) bool {
	gzip, _ := accepted(h)
	return gzip
}

// accepted reports whether Accept-Encoding has gzip and other codings.
func accepted(h http.Header) (gzip, others bool) {
	for _, list := range h["Accept-Encoding"] {
		for one := range strings.SplitSeq(list, ",") {
			coding, weight, _ := strings.Cut(one, ";")
			switch strings.ToLower(strings.TrimSpace(coding)) {
			case "gzip", "x-gzip":
				gzip = gzip || !isZero(weight)
			case "*":
				gzip, others = gzip || !isZero(weight), true
			case "", "identity":
			default:
				others = true
			}
		}
	}
	return gzip, others
}

// isZero reports whether a header parameter is a weight of 0.
func isZero(weight string) bool {
	name, value, _ := strings.Cut(strings.TrimSpace(weight), "=")
	q, err := strconv.ParseFloat(value, 64)
	return strings.EqualFold(name, "q") && err == nil && q == 0
}
