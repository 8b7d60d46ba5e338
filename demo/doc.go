// Package demo is a small search engine held in memory, and a corpus to try it
// on. It serves the part of Elasticsearch's HTTP interface that akin and its
// demonstration need, with the terms and the BM25 scores of the real engines:
// on the same documents its scores agree with those of Elasticsearch 7, 8 and
// OpenSearch 2 to a relative error under 1e-4.
//
// # What it is not
//
// It keeps no positions, so there are no phrases; it has one shard, no
// aggregations, no aliases, and of scripts it knows akin's own, by their
// text: [ScriptInvert], [ScriptSaturate] and [ScriptProbe]. It makes no terms
// of emoji and of Thai, Lao, Burmese and Khmer script. What it does not know
// of a request it refuses with status 400, and the error names it: nothing is
// silently ignored that would change an answer, but filter_path, which only
// shortens it.
package demo
