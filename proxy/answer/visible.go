package answer

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/expand/dsl"
)

// With partialParameter=false the cluster rejects a search with failing shards.
const partialParameter = "allow_partial_search_results"

// Reasons not to rewrite a search because its answer would hide failures.
const (
	HiddenByFilter = "filter_path"
	HiddenByFormat = "answer_format" // failures would come in another format than JSON
)

// failurePaths add to filter_path what answers have only if searches failed.
var failurePaths = map[expand.Endpoint]string{
	expand.EndpointMultiSearch: "responses.error.type,responses._shards.failures.reason.type",
	expand.EndpointRankEval:    "failures.*.error.type",
}

// TellsInside reports whether a good answer can report failures elsewhere than
// in "_shards" at its beginning.
func TellsInside(endpoint expand.Endpoint) bool {
	return failurePaths[endpoint] != "" || endpoint == expand.EndpointValidate
}

// Hidden returns why a search is not rewritten, if its answer would hide
// failures and cannot be made to show them, else "".
func Hidden(endpoint expand.Endpoint, async bool, rawQuery string, h http.Header) (reason string) {
	filter := FilterPath(rawQuery)
	// "valid" is always there, and an exclusion would exclude what is added.
	added := endpoint != expand.EndpointValidate && !strings.HasPrefix(filter, "-") && !strings.Contains(filter, ",-")
	switch {
	case !async && !TellsInside(endpoint):
		return ""
	case filter != "" && (async || !added):
		// With partialParameter a late failure would cost the client all hits.
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
// strict, so that the cluster rejects it when a shard fails.
func MakeVisible(endpoint expand.Endpoint, out *http.Request) (strict bool) {
	if endpoint == expand.EndpointExplain {
		return false // its status tells
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
func showsShards(filter string) bool { return dsl.Keeps(filter, "_shards", "failed", "failures") }

// searchParameters are the URL parameters of the search APIs of Elasticsearch 7
// to 9 and OpenSearch 2 and 3, from their REST specifications, and akin's own.
var searchParameters = func() map[string]bool {
	known := map[string]bool{}
	for name := range strings.FieldsSeq(`
		_source _source_exclude _source_excludes _source_include _source_includes akin akin_profile all_shards allow_no_indices
		allow_partial_search_results analyze_wildcard analyzer batched_reduce_size cancel_after_time_interval
		ccs_minimize_roundtrips default_operator df docvalue_fields error_trace expand_wildcards explain filter_path
		force_synthetic_source format from human id ignore_throttled ignore_unavailable include_named_queries_score index
		keep_alive keep_on_completion lenient max_concurrent_searches max_concurrent_shard_requests min_compatible_shard_node
		min_score parent phase_took pre_filter_shard_size preference pretty profile project_routing q request_cache
		rest_total_hits_as_int rewrite routing scroll search_pipeline search_type seq_no_primary_term shard_info size sort source
		source_content_type stats stored_fields suggest_field suggest_mode suggest_size suggest_text terminate_after timeout
		track_scores track_total_hits type typed_keys verbose_pipeline version wait_for_checkpoints wait_for_checkpoints_timeout
		wait_for_completion_timeout`) {
		known[name] = true
	}
	return known
}()

// Unknown returns the raw parameters that no search API has, or "": a cluster
// may know a client by them, such as by a token in the URL.
func Unknown(rawQuery string) string {
	if rawQuery == "" {
		return ""
	}
	return strings.Trim(CutParameters(rawQuery, func(name, _ string) bool { return name == "" || searchParameters[name] }), "&;")
}

// Known returns a raw query string without those: it may be kept and shown.
func Known(rawQuery string) string {
	return CutParameters(rawQuery, func(name, _ string) bool { return !searchParameters[name] })
}
