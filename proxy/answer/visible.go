package answer

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/proxy/wire"
)

// partialParameter set to false has the cluster refuse a search of which some
// shards fail.
const partialParameter = "allow_partial_search_results"

// Why a search cannot be rewritten, since its answer would not tell that it
// failed.
const (
	HiddenByFilter = "filter_path"
	HiddenByFormat = "answer_format" // it would be told in another format than JSON
)

// failurePaths lead to what answers of endpoints have only where some searches
// failed, so that filter_path can name it, too.
var failurePaths = map[expand.Endpoint]string{
	expand.EndpointMultiSearch: "responses.error.type,responses._shards.failures.reason.type",
	expand.EndpointRankEval:    "failures.*.error.type",
}

// TellsInside reports whether a good answer of an endpoint can say inside that a
// search failed, other than by "_shards" at its beginning.
func TellsInside(endpoint expand.Endpoint) bool {
	return failurePaths[endpoint] != "" || endpoint == expand.EndpointValidate
}

// Hidden returns why a search is not rewritten: its answer would not say that it
// failed, and cannot be made to; "" where it can.
func Hidden(endpoint expand.Endpoint, async bool, rawQuery string, h http.Header) (reason string) {
	filter := wire.FilterPath(rawQuery)
	// "valid" is always there, hence cannot be asked for on top, and an exclusion
	// makes what stands with it an exception of it.
	added := endpoint != expand.EndpointValidate && !strings.HasPrefix(filter, "-") && !strings.Contains(filter, ",-")
	switch {
	case !async && !TellsInside(endpoint):
		return ""
	case filter != "" && (async || !added):
		// With partialParameter a failure after the first answer to an asynchronous
		// search would take from the client what the other shards found.
		return HiddenByFilter
	case !wire.AnswersJSON(rawQuery, h):
		return HiddenByFormat
	}
	return ""
}

// ShowFailures returns a query string with which the answer tells of failures,
// and whether filter_path had to be changed for that.
func ShowFailures(endpoint expand.Endpoint, rawQuery string) (changed string, filtered bool) {
	path, filter := failurePaths[endpoint], wire.FilterPath(rawQuery)
	if path == "" || filter == "" {
		return rawQuery, false
	}
	return rawQuery + "&filter_path=" + url.QueryEscape(filter+","+path), true
}

// MakeVisible changes a rewritten request such that its answer tells of
// failures, or, if strict, is one where a shard fails.
func MakeVisible(endpoint expand.Endpoint, out *http.Request) (strict bool) {
	if endpoint == expand.EndpointExplain {
		return false // its status tells
	}
	wire.AskForGzip(out.Header)
	query := out.URL.RawQuery
	if endpoint != expand.EndpointSearch || wire.Has(query, partialParameter) ||
		wire.AnswersJSON(query, out.Header) && showsShards(wire.FilterPath(query)) {
		return false
	}
	if query != "" && !strings.HasSuffix(query, "&") {
		query += "&"
	}
	out.URL.RawQuery = query + partialParameter + "=false"
	return true
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
