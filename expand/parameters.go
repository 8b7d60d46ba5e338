package expand

import (
	"net/url"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// dfs is the search_type that gathers the statistics of all shards first. The
// saturated form needs it with several shards, because it inverts scores by
// statistics that are the same everywhere.
const dfs = "dfs_query_then_fetch"

// parameters are the URL parameters that matter to expansion.
type parameters struct {
	// The query of a request without a body.
	q, df, analyzer, operator, lenient, analyzeWildcard string
	// The body of a request without one.
	source, sourceContentType string

	searchType, scroll, suggestField  string
	routing, preference               string
	size, sort, trackScores           string
	minScore, terminateAfter          string
	ignoreUnavailable, allowNoIndices string
	expandWildcards, ignoreThrottled  string

	from, seqNo, version                     string
	filterPath, storedFields, searchPipeline string
	// paged says that the body now says which hits come back, and oddPage that a
	// parameter says it in a way that the engines refuse, or take for something
	// else: "version" without a value takes back what the body says.
	paged, oddPage bool
}

// readParameters reads the raw query string. A parameter that stands twice
// counts as the engines count it: the last one.
func readParameters(raw string) (parameters, Reason) {
	var p parameters
	if strings.Contains(raw, ";") {
		return p, ReasonSemicolon
	}
	for part := range strings.SplitSeq(raw, "&") {
		name, value, _ := strings.Cut(part, "=")
		if strings.Contains(name, "%") { // nobody needs to, and rewritten would not see it
			return parameters{}, ReasonParameters
		}
		into := p.field(name)
		if into == nil {
			continue
		}
		value, err := url.QueryUnescape(value)
		if err != nil {
			return parameters{}, ReasonParameters // the engine refuses it
		}
		*into = value
		p.oddPage = p.oddPage || isPage(name) && !isPageValue(name, value)
	}
	return p, ""
}

// field returns where the value of the named parameter belongs, nil for one
// that does not matter.
func (p *parameters) field(name string) *string {
	switch name {
	case "q":
		return &p.q
	case "df":
		return &p.df
	case "analyzer":
		return &p.analyzer
	case "default_operator":
		return &p.operator
	case "lenient":
		return &p.lenient
	case "analyze_wildcard":
		return &p.analyzeWildcard
	case "source":
		return &p.source
	case "source_content_type":
		return &p.sourceContentType
	case "search_type":
		return &p.searchType
	}
	return p.envelope(name)
}

// envelope returns where the value of a parameter belongs that says what is
// done with the query.
func (p *parameters) envelope(name string) *string {
	switch name {
	case "routing":
		return &p.routing
	case "preference":
		return &p.preference
	case "scroll":
		return &p.scroll
	case "suggest_field":
		return &p.suggestField
	case "size":
		return &p.size
	case "sort":
		return &p.sort
	case "track_scores":
		return &p.trackScores
	case "min_score":
		return &p.minScore
	case "terminate_after":
		return &p.terminateAfter
	case "ignore_unavailable":
		return &p.ignoreUnavailable
	case "allow_no_indices":
		return &p.allowNoIndices
	case "expand_wildcards":
		return &p.expandWildcards
	case "ignore_throttled":
		return &p.ignoreThrottled
	}
	return p.answer(name)
}

// answer returns where the value of a parameter belongs that says what comes
// back.
func (p *parameters) answer(name string) *string {
	switch name {
	case "from":
		return &p.from
	case "seq_no_primary_term":
		return &p.seqNo
	case "version":
		return &p.version
	case "filter_path":
		return &p.filterPath
	case "stored_fields":
		return &p.storedFields
	case "search_pipeline":
		return &p.searchPipeline
	}
	return nil
}

// routed reports whether the search goes to some of the shards only, or may do
// so: with a routing, or a preference for shards or for the copies of one node.
// All statistics then are those of these shards.
func (p *parameters) routed() bool {
	return p.routing != "" || strings.HasPrefix(p.preference, "_shards") || strings.HasPrefix(p.preference, "_only")
}

// isQuery reports whether the parameter is one of those that body says.
func isQuery(name string) bool {
	switch name {
	case "q", "df", "analyzer", "default_operator", "lenient", "analyze_wildcard":
		return true
	}
	return false
}

// isPage reports whether the parameter says which hits come back, or with what
// that they are ordered by.
func isPage(name string) bool {
	switch name {
	case "from", "size", "seq_no_primary_term", "version":
		return true
	}
	return false
}

// isPageValue reports whether a parameter of isPage has a value whose meaning
// is known.
func isPageValue(name, value string) bool {
	switch name {
	case "from", "size":
		return isCount(value)
	default:
		return isBoolean(value)
	}
}

// indices returns the options of the request's indices, see [Indices].
func (p *parameters) indices() string {
	var options []string
	for _, option := range []struct{ name, value string }{
		{"allow_no_indices", p.allowNoIndices},
		{"expand_wildcards", p.expandWildcards},
		{"ignore_throttled", p.ignoreThrottled},
		{"ignore_unavailable", p.ignoreUnavailable},
	} {
		if option.value != "" {
			options = append(options, option.name+"="+url.QueryEscape(option.value))
		}
	}
	return strings.Join(options, "&")
}

// apply completes s by what the parameters say: they go before the body's
// members.
func (p *parameters) apply(s *scan) {
	if p.size != "" {
		s.noHits = p.size == "0"
	}
	if p.trackScores != "" {
		s.trackScores = p.trackScores == "true"
	}
	if p.sort != "" {
		s.bar = ReasonSort
		s.sorted = !strings.Contains(p.sort, "_score")
	}
	if p.scroll != "" {
		s.bar = ReasonScroll
	}
	s.minScore = s.minScore || p.minScore != ""
	if p.terminateAfter != "" {
		s.terminates = p.terminateAfter != "0"
	}
}

// jsonBody returns the body that the parameter source holds, false where it is
// none of JSON.
func (p *parameters) jsonBody() ([]byte, bool) {
	mediaType, _, _ := strings.Cut(p.sourceContentType, ";")
	return []byte(p.source), strings.EqualFold(strings.TrimSpace(mediaType), "application/json")
}

// body returns the body that means what the parameter q and those beside it
// mean.
func (p *parameters) body() []byte {
	out := []byte(`{"query":{"query_string":{"query":`)
	quote := func(s string) { out, _ = jsontext.AppendQuote(out, s) }
	quote(p.q)
	for _, option := range []struct{ name, value string }{
		{"default_field", p.df},
		{"analyzer", p.analyzer},
		{"default_operator", p.operator},
		{"lenient", p.lenient},
		{"analyze_wildcard", p.analyzeWildcard},
	} {
		if option.value != "" {
			out = append(out, `,"`+option.name+`":`...)
			quote(option.value)
		}
	}
	return append(out, `}}}`...)
}

// rewritten returns raw without the parameters that the body now says, and
// with search_type where the body needs it. All else stays as it came.
func (p *parameters) rewritten(raw string, needDFS bool) string {
	needDFS = needDFS && p.searchType == ""
	if p.q == "" && p.source == "" && !needDFS && !p.paged {
		return raw
	}
	var kept []string
	for part := range strings.SplitSeq(raw, "&") {
		name, _, _ := strings.Cut(part, "=")
		said := p.q != "" && isQuery(name) || p.source != "" && (name == "source" || name == "source_content_type")
		said = said || p.paged && isPage(name)
		if part != "" && !said {
			kept = append(kept, part)
		}
	}
	if needDFS {
		kept = append(kept, "search_type="+dfs)
	}
	return strings.Join(kept, "&")
}
