package wire

import (
	"net/http"
	"strconv"
	"strings"
)

// IsJSON reports whether Content-Type or Accept is one media type of JSON.
func IsJSON(values []string) bool {
	return isOne(values, "application/json", "application/vnd.elasticsearch+json")
}

// IsLines reports whether Content-Type is a media type of lines of JSON.
func IsLines(values []string) bool {
	return isOne(values, "application/x-ndjson", "application/vnd.elasticsearch+x-ndjson")
}

// isOne reports whether values, of which engines take one, are type a or b.
func isOne(values []string, a, b string) bool {
	if len(values) != 1 {
		return false
	}
	mediaType, _, _ := strings.Cut(values[0], ";")
	mediaType = strings.TrimSpace(mediaType)
	return strings.EqualFold(mediaType, a) || strings.EqualFold(mediaType, b)
}

// ContentEncoding returns the coding, "" for none, and whether it is known.
func ContentEncoding(h http.Header) (coding string, known bool) {
	switch strings.ToLower(strings.TrimSpace(strings.Join(h["Content-Encoding"], ","))) {
	case "", "identity":
		return "", true
	case "gzip", "x-gzip":
		return "gzip", true
	}
	return "", false
}

// AnswersJSON reports whether the cluster answers with JSON, for certain.
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

// AskForGzip leaves gzip only in Accept-Encoding, to look at answers.
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
