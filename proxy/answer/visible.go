package answer

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/akin-search/akin/expand"
)

// partialParameter set to false has a search with failing shards rejected.
const partialParameter = "allow_partial_search_results"

// Why a search is not rewritten: its answer would not show that it failed.
const (
	HiddenByFilter = "filter_path"
	HiddenByFormat = "answer_format" // it would be reported in another format than JSON
)

// failurePaths lead to what answers have only where searches failed, so that
// filter_path can name it, too.
var failurePaths = map[expand.Endpoint]string{
	expand.EndpointMultiSearch: "responses.error.type,responses._shards.failures.reason.type",
	expand.EndpointRankEval:    "failures.*.error.type",
}

// TellsInside reports whether a good answer can say that a search failed
// elsewhere than in "_shards" at its beginning.
func TellsInside(endpoint expand.Endpoint) bool {
	return failurePaths[endpoint] != "" || endpoint == expand.EndpointValidate
}

// Hidden returns why a search is not rewritten: its answer would not say that
// it failed, and cannot be made to; "" where it can.
func Hidden(endpoint expand.Endpoint, async bool, rawQuery string, h http.Header) (reason string) {
	filter := FilterPath(rawQuery)
	// "valid" is always there, and an exclusion would except what is added.
	added := endpoint != expand.EndpointValidate && !strings.HasPrefix(filter, "-") && !strings.Contains(filter, ",-")
	switch {
	case !async && !TellsInside(endpoint):
		return ""
	case filter != "" && (async || !added):
		// With partialParameter a late failure would take all from the client.
		return HiddenByFilter
	case !AnswersJSON(rawQuery, h):
		return HiddenByFormat
	}
	return ""
}

// ShowFailures returns a query string whose answer shows failures, and whether
// its filter_path was changed.
func ShowFailures(endpoint expand.Endpoint, rawQuery string) (changed string, filtered bool) {
	path, filter := failurePaths[endpoint], FilterPath(rawQuery)
	if path == "" || filter == "" {
		return rawQuery, false
	}
	return rawQuery + "&filter_path=" + url.QueryEscape(filter+","+path), true
}

// MakeVisible changes a request so that its answer shows failures, or, if
// strict, is one where a shard fails.
func MakeVisible(endpoint expand.Endpoint, out *http.Request) (strict bool) {
	if endpoint == expand.EndpointExplain {
		return false // its status says it
	}
	AskForGzip(out.Header)
	query := out.URL.RawQuery
	if endpoint != expand.EndpointSearch || Has(query, partialParameter) ||
		AnswersJSON(query, out.Header) && showsShards(FilterPath(query)) {
		return false
	}
	if query != "" && !strings.HasSuffix(query, "&") {
		query += "&"
	}
	out.URL.RawQuery = query + partialParameter + "=false"
	return true
}

// showsShards reports whether filter_path leaves failed shards in the answer.
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
