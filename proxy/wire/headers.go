package wire

import (
	"net/http"
	"strconv"
	"strings"
)

// IsJSON reports whether the values of a Content-Type or Accept header name one
// media type whose text is one JSON value.
func IsJSON(values []string) bool {
	return isOne(values, "application/json", "application/vnd.elasticsearch+json")
}

// IsLines reports whether the values of a Content-Type header name a media type
// whose text is lines of JSON.
func IsLines(values []string) bool {
	return isOne(values, "application/x-ndjson", "application/vnd.elasticsearch+x-ndjson")
}

// isOne reports whether the values of a header are one media type, a or b.
// Several values are an error to Elasticsearch.
func isOne(values []string, a, b string) bool {
	if len(values) != 1 {
		return false
	}
	mediaType, _, _ := strings.Cut(values[0], ";")
	mediaType = strings.TrimSpace(mediaType)
	return strings.EqualFold(mediaType, a) || strings.EqualFold(mediaType, b)
}

// ContentEncoding returns the coding that the headers name, "" for none, and
// whether it is one that can be decoded.
func ContentEncoding(h http.Header) (coding string, known bool) {
	values := h["Content-Encoding"]
	switch {
	case len(values) == 0:
		return "", true
	case len(values) > 1:
		return "", false
	}
	switch strings.ToLower(strings.TrimSpace(values[0])) {
	case "", "identity":
		return "", true
	case "gzip", "x-gzip":
		return "gzip", true
	default:
		return "", false
	}
}

// AnswersJSON reports whether the cluster answers a request with JSON, for
// certain. It does for most types that it does not know, too.
func AnswersJSON(rawQuery string, h http.Header) bool {
	certain := true
	EachParameter(rawQuery, func(name, value string) {
		if name == "format" { // goes before the header; the last one counts
			certain = strings.EqualFold(value, "json")
		}
	})
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

// AskForGzip takes all codings but gzip out of Accept-Encoding: answers in others
// cannot be looked at.
func AskForGzip(h http.Header) {
	gzip, others := false, false
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
	switch {
	case !others:
	case gzip:
		h["Accept-Encoding"] = []string{"gzip"}
	default:
		delete(h, "Accept-Encoding")
	}
}

// isZero reports whether a parameter of a header is a weight of 0.
func isZero(weight string) bool {
	name, value, _ := strings.Cut(strings.TrimSpace(weight), "=")
	q, err := strconv.ParseFloat(value, 64)
	return strings.EqualFold(name, "q") && err == nil && q == 0
}
