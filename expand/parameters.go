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
	q, df, analyzer, operator, lenient, analyzeWildcard string

	searchType                    string
	sizeZero, sorted, trackScores bool
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
	var size, sort, track, source string
	for part := range strings.SplitSeq(raw, "&") {
		name, value, _ := strings.Cut(part, "=")
		switch name {
		case "size":
			size = value
		case "sort":
			sort = value
		case "track_scores":
			track = value
		case "source":
			source = value
		}
	}
	p.sizeZero, p.trackScores = size == "0", track == "true"
	p.sorted = sort != "" && !strings.Contains(sort, "_score")
	if source != "" {
		return p, ReasonSourceParameter
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
	case "search_type":
		return &p.searchType
	}
	return nil
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
	if p.q == "" && (!needDFS || p.searchType != "") {
		return raw
	}
	var kept []string
	for part := range strings.SplitSeq(raw, "&") {
		name, _, _ := strings.Cut(part, "=")
		if into := p.field(name); part == "" || p.q != "" && into != nil && into != &p.searchType {
			continue
		}
		kept = append(kept, part)
	}
	if needDFS && p.searchType == "" {
		kept = append(kept, "search_type="+dfs)
	}
	return strings.Join(kept, "&")
}
