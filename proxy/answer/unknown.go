package answer

import "strings"

// searchParameters are the parameters of the URL that the search APIs of
// Elasticsearch 7 to 9 and OpenSearch 2 and 3 have, by their REST
// specifications, and akin's own.
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

// Unknown returns the parameters of a raw query string that no search API has,
// as they came: a cluster may know a client by them, such as by a token in the
// URL. With none it is "".
func Unknown(rawQuery string) string {
	if rawQuery == "" {
		return ""
	}
	return strings.Trim(CutParameters(rawQuery, func(name, _ string) bool { return name == "" || searchParameters[name] }), "&;")
}

// Known returns a raw query string without what [Unknown] returns: what may be
// kept and shown.
func Known(rawQuery string) string {
	return CutParameters(rawQuery, func(name, _ string) bool { return !searchParameters[name] })
}
