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
	from, size, sort, trackScores     string
	ignoreUnavailable, allowNoIndices string
	expandWildcards, ignoreThrottled  string
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
		into := p.field(name)
		if into == nil {
			continue
		}
		value, err := url.QueryUnescape(value)
		if err != nil {
			return parameters{}, ReasonOptions // the engine refuses it
		}
		*into = value
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
	case "scroll":
		return &p.scroll
	case "suggest_field":
		return &p.suggestField
	case "from":
		return &p.from
	case "size":
		return &p.size
	case "sort":
		return &p.sort
	case "track_scores":
		return &p.trackScores
	case "ignore_unavailable":
		return &p.ignoreUnavailable
	case "allow_no_indices":
		return &p.allowNoIndices
	case "expand_wildcards":
		return &p.expandWildcards
	case "ignore_throttled":
		return &p.ignoreThrottled
	}
	return nil
}

// isQuery reports whether the parameter is one of those that body says.
func isQuery(name string) bool {
	switch name {
	case "q", "df", "analyzer", "default_operator", "lenient", "analyze_wildcard":
		return true
	}
	return false
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
	if p.from != "" {
		s.from = count([]byte(p.from))
	}
	if p.size != "" {
		s.size = count([]byte(p.size))
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
	if p.q == "" && p.source == "" && !needDFS {
		return raw
	}
	var kept []string
	for part := range strings.SplitSeq(raw, "&") {
		name, _, _ := strings.Cut(part, "=")
		said := p.q != "" && isQuery(name) || p.source != "" && (name == "source" || name == "source_content_type")
		if part != "" && !said {
			kept = append(kept, part)
		}
	}
	if needDFS {
		kept = append(kept, "search_type="+dfs)
	}
	return strings.Join(kept, "&")
}
