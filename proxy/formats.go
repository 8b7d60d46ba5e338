package proxy

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/akin-search/akin/expand"
)

// partialParameter set to false has the cluster refuse a search of which some
// shards fail.
const partialParameter = "allow_partial_search_results"

// hidesFailures returns why a search is left alone whose answer would not tell
// that it failed in its rewritten form, "" for one whose answer does, or that
// can be made to. A count that fails on some shards cannot be made to.
func hidesFailures(m match, rawQuery string, h http.Header) (reason string) {
	// With partialParameter, a failure after the first answer would take from
	// the client what the other shards found.
	async := strings.HasSuffix(m.shape, "/_async_search")
	switch {
	case !async && failurePaths[m.endpoint] == "" && m.endpoint != expand.EndpointValidate:
		return ""
	case async && filterPath(rawQuery) != "", !showsFailures(m.endpoint, rawQuery):
		return reasonFilterPath
	case !answersJSON(rawQuery, h):
		return reasonFormat
	}
	return ""
}

// askForFailures changes a rewritten request such that its answer tells of
// failures, or is one.
func (ex *exchange) askForFailures(out *http.Request) {
	if ex.endpoint == expand.EndpointExplain {
		return // its status tells
	}
	askForGzip(out.Header)
	query := out.URL.RawQuery
	if ex.endpoint != expand.EndpointSearch || answersJSON(query, out.Header) && showsShards(filterPath(query)) {
		return
	}
	named := false
	cutParameters(query, func(name, _ string) bool {
		named = named || name == partialParameter
		return false
	})
	if named {
		return
	}
	if query != "" && !strings.HasSuffix(query, "&") {
		query += "&"
	}
	out.URL.RawQuery = query + partialParameter + "=false"
	ex.strict = true
}

// answersJSON reports whether the cluster answers a request with JSON, for
// certain. It does for most types that it does not know, too.
func answersJSON(rawQuery string, h http.Header) bool {
	certain := true
	cutParameters(rawQuery, func(name, value string) bool {
		if name == "format" { // goes before the header; the last one counts
			certain = strings.EqualFold(value, "json")
		}
		return false
	})
	for _, list := range h["Accept"] {
		for one := range strings.SplitSeq(list, ",") {
			mediaType := mediaTypeOf([]string{one})
			switch strings.ToLower(mediaType) {
			case "*/*", "application/*", "text/plain":
			default:
				certain = certain && isJSON([]string{mediaType})
			}
		}
	}
	return certain
}

// showsShards reports whether the value of filter_path leaves in the answer to
// a search what tells of shards that failed, for certain.
func showsShards(filter string) bool {
	some, shown := false, false
	for pattern := range strings.SplitSeq(filter, ",") {
		pattern, excludes := strings.CutPrefix(strings.TrimSpace(pattern), "-")
		first, rest, _ := strings.Cut(pattern, ".")
		switch {
		case excludes && (first == "_shards" || strings.Contains(first, "*")):
			return false
		case excludes || pattern == "":
			continue
		}
		some = true
		switch {
		case pattern == "*" || pattern == "**":
			shown = true
		case first == "_shards":
			shown = shown || rest == "" || rest == "*" || rest == "**" || rest == "failed" || rest == "failures"
		}
	}
	return shown || !some
}

// askForGzip takes all codings but gzip out of the header that names those that
// the client takes, since answers in others cannot be looked at. None at all
// always suits.
func askForGzip(h http.Header) {
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
