package dsl

import (
	"net/url"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/akin-search/akin/expand/reason"
)

// DFS is the search_type that first gathers the statistics of all shards. With
// several shards the saturated form needs it, because it inverts scores by
// statistics that are the same everywhere.
const DFS = "dfs_query_then_fetch"

// A role is how a URL parameter affects rewriting.
type role uint8

const (
	roleOther   role = iota + 1
	roleQuery        // part of the query of a request without a body
	roleSource       // the body of a request without one
	rolePage         // which hits come back
	roleHit          // which parts of each hit come back
	roleIndices      // how the index expression is resolved
	roleHeader       // roleOther, allowed in a header of _msearch
)

// totalAsInt makes totals integers, as in Elasticsearch 6.
const totalAsInt = "rest_total_hits_as_int"

var roles = map[string]role{
	"q": roleQuery, "df": roleQuery, "analyzer": roleQuery, "default_operator": roleQuery, "lenient": roleQuery, "analyze_wildcard": roleQuery,
	"source": roleSource, "source_content_type": roleSource,
	"from": rolePage, "size": rolePage,
	"seq_no_primary_term": roleHit, "version": roleHit, "stored_fields": roleHit, "docvalue_fields": roleHit,
	"_source": roleHit, "_source_includes": roleHit, "_source_excludes": roleHit, "_source_include": roleHit, "_source_exclude": roleHit,
	"include_named_queries_score": roleHit,
	"allow_no_indices":            roleIndices, "expand_wildcards": roleIndices, "ignore_throttled": roleIndices, "ignore_unavailable": roleIndices,
	"search_type": roleHeader, "routing": roleHeader, "preference": roleHeader, "search_pipeline": roleHeader,
	"scroll": roleOther, "suggest_field": roleOther, "sort": roleOther, "track_scores": roleOther, "min_score": roleOther,
	"terminate_after": roleOther, "filter_path": roleOther,
	"track_total_hits": roleOther, totalAsInt: roleOther,
}

// Parameters are the URL parameters that matter for expansion.
type Parameters struct {
	values map[string]string
	// oddPage says that a value for the page is one that the engines refuse or
	// interpret differently.
	oddPage bool
}

// ReadParameters parses the raw query string. Of a repeated parameter the last
// one counts, as in the engines.
func ReadParameters(raw string) (p Parameters, why reason.Reason) {
	if strings.Contains(raw, ";") {
		return p, reason.Semicolon
	}
	for part := range strings.SplitSeq(raw, "&") {
		name, value, _ := strings.Cut(part, "=")
		if strings.Contains(name, "%") { // an escaped name: no client needs it, and Rewritten would not recognize it
			return Parameters{}, reason.Parameters
		}
		role := roles[name]
		if role == 0 {
			continue
		}
		value, err := url.QueryUnescape(value)
		if err != nil {
			return Parameters{}, reason.Parameters // the engine refuses it
		}
		if p.values == nil {
			p.values = map[string]string{}
		}
		p.values[name] = value
		p.oddPage = p.oddPage || role == rolePage && !isCount(value)
	}
	return p, ""
}

// Get returns the value of a parameter, or "".
func (p *Parameters) Get(name string) string { return p.values[name] }

// Routed reports whether routing or preference may limit the search to some of
// the shards. All statistics are then those of these shards.
func (p *Parameters) Routed() bool {
	preference := p.Get("preference")
	return p.Get("routing") != "" || strings.HasPrefix(preference, "_shards") || strings.HasPrefix(preference, "_only")
}

// CountsAll reports whether hits may be counted beyond the engines' default.
func (p *Parameters) CountsAll() bool {
	_, asInt := p.values[totalAsInt] // counts all, even without a value
	return asInt || p.Get("track_total_hits") != ""
}

// IndexOptions returns the parameters for resolving the index expression, as a
// query string sorted by name.
func (p *Parameters) IndexOptions() string {
	if len(p.values) == 0 {
		return ""
	}
	options := url.Values{}
	for name, value := range p.values {
		if roles[name] == roleIndices && value != "" {
			options.Set(name, value)
		}
	}
	return options.Encode()
}

// apply completes s: parameters override the body's members.
func (p *Parameters) apply(s *Search) {
	if size := p.Get("size"); size != "" {
		s.Hits.None = size == "0"
	}
	if track := p.Get("track_scores"); track != "" {
		s.Scores.Tracked = track == isTrue
	}
	if sort := p.Get("sort"); sort != "" {
		s.NoRescore = reason.Sort
		first, _, _ := strings.Cut(sort, ",")
		name, order, _ := strings.Cut(first, ":")
		s.Scores.Sorted, s.Scores.Key = name != "_score" || order == "asc", strings.Contains(sort, "_score")
	}
	if p.Get("scroll") != "" {
		s.NoRescore = reason.Scroll
	}
	s.Scores.Min = s.Scores.Min || p.Get("min_score") != ""
	if after := p.Get("terminate_after"); after != "" {
		s.Scores.FirstOnly = after != "0"
	}
	s.Hits.Bare = s.Hits.Bare || strings.Contains(p.Get("stored_fields"), "_none_") || p.Get("search_pipeline") != "" ||
		!Keeps(p.Get("filter_path"), "hits", hitsAlone...)
}

// hitsAlone are the parts of an answer's member hits that contain all hits.
var hitsAlone = []string{"hits", "hits.*", "hits.**"}

// Body returns the body, or the one that the parameters q or source mean, or
// else why there is none to expand.
func (p *Parameters) Body(body []byte, empty bool) ([]byte, reason.Reason) {
	q, source := p.Get("q"), p.Get("source")
	switch {
	case q != "" && p.Get("suggest_field") != "":
		return nil, reason.SuggestText
	case q != "" && (!empty || source != ""):
		return nil, reason.QAndBody
	case q != "":
		return p.query(), ""
	case source != "":
		mediaType, _, _ := strings.Cut(p.Get("source_content_type"), ";")
		if !empty || !strings.EqualFold(strings.TrimSpace(mediaType), "application/json") {
			return nil, reason.SourceParameter
		}
		return []byte(source), ""
	case empty:
		return nil, reason.NoClause
	}
	return body, ""
}

// query returns the body that q and its parameters mean.
func (p *Parameters) query() []byte {
	out := []byte(`{"query":{"query_string":{"query":`)
	out, _ = jsontext.AppendQuote(out, p.Get("q"))
	for _, name := range []string{"df", "analyzer", "default_operator", "lenient", "analyze_wildcard"} {
		option := name
		if name == "df" {
			option = "default_field"
		}
		if value := p.Get(name); value != "" {
			out = append(out, `,"`+option+`":`...)
			out, _ = jsontext.AppendQuote(out, value)
		}
	}
	return append(out, `}}}`...)
}

// Rewritten returns raw without the parameters that are now in the body (keyed
// says: also those about hits), and with search_type if the body needs it. All
// else stays as it came.
func (p *Parameters) Rewritten(raw string, needDFS, keyed bool) string {
	q, source := p.Get("q") != "", p.Get("source") != ""
	needDFS = needDFS && p.Get("search_type") == ""
	if !q && !source && !needDFS && !keyed {
		return raw
	}
	var kept []string
	for part := range strings.SplitSeq(raw, "&") {
		name, _, _ := strings.Cut(part, "=")
		role := roles[name]
		said := q && role == roleQuery || source && role == roleSource || keyed && (role == rolePage || role == roleHit)
		if part != "" && !said {
			kept = append(kept, part)
		}
	}
	if needDFS {
		kept = append(kept, "search_type="+DFS)
	}
	return strings.Join(kept, "&")
}

// first are the parameters that, with those of [roleIndices], decide which hits
// of a search come first.
var first = []string{"preference", "routing", "search_type", "terminate_after"}

// FirstPass returns the raw parameters that decide which hits come first.
func FirstPass(raw string) string {
	return only(raw, func(name string) bool { return slices.Contains(first, name) })
}

// OfHits returns the parameters for where a search's hits are and which parts
// of each come back; OfPage also those for which hits.
func OfHits(raw string) string {
	return only(raw, func(name string) bool {
		return name == "preference" || name == "routing" || name == totalAsInt || roles[name] == roleHit
	})
}

// OfPage is described at [OfHits].
func OfPage(raw string) string {
	return only(raw, func(name string) bool {
		return slices.Contains(first, name) || name == totalAsInt || roles[name] == roleHit || roles[name] == rolePage
	})
}

// only returns the wanted parameters of a raw query string, and those for
// resolving the index expression.
func only(raw string, wanted func(name string) bool) string {
	var kept []string
	for part := range strings.SplitSeq(raw, "&") {
		if name, _, _ := strings.Cut(part, "="); roles[name] == roleIndices || wanted(name) {
			kept = append(kept, part)
		}
	}
	return strings.Join(kept, "&")
}

// Keeps reports whether filter_path leaves all of a member in the answer, or
// one of the given parts.
func Keeps(filter, member string, parts ...string) bool {
	some, kept := false, false
	for pattern := range strings.SplitSeq(filter, ",") {
		pattern, excludes := strings.CutPrefix(strings.TrimSpace(pattern), "-")
		first, rest, _ := strings.Cut(pattern, ".")
		switch {
		case excludes && (first == member || strings.Contains(first, "*")):
			return false
		case excludes || pattern == "":
			continue
		}
		some = true
		kept = kept || pattern == "*" || pattern == "**" ||
			pattern == member || first == member && (rest == "*" || rest == "**" || slices.Contains(parts, rest))
	}
	return kept || !some
}

// isTrue is the value of a switch. The engines also accept it in quotes.
const isTrue = "true"

func isCount(text string) bool { return text != "" && strings.Trim(text, "0123456789") == "" }
