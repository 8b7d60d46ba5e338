package esclient

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/akin-search/akin/esclient/mapping"
	"github.com/akin-search/akin/internal/glob"
)

// ErrRemote says that an index expression names indices of another cluster,
// whose mappings and terms are unknown here.
var ErrRemote = errors.New("indices of a remote cluster")

// Indices are the indices that a search goes to.
type Indices struct {
	// Expression is the unescaped index expression: names, patterns and date math,
	// separated by commas. "" means all indices.
	Expression string
	// Options say how the cluster resolves it: a query string of
	// allow_no_indices, expand_wildcards, ignore_throttled and
	// ignore_unavailable. Any other parameter is an error.
	Options string
}

// maxOptions bounds [Indices.Options] in bytes.
const maxOptions = 512

// check returns why the cluster must not be asked about the indices.
func (i Indices) check() error {
	// No index or alias begins with "_": that would be another API.
	if strings.HasPrefix(i.Expression, "_") && i.Expression != "_all" {
		return fmt.Errorf("%q is no index: %w", i.Expression, mapping.ErrNotText)
	}
	if i.remote() {
		return fmt.Errorf("%q: %w", i.Expression, ErrRemote)
	}
	if len(i.Options) > maxOptions {
		return fmt.Errorf("index options of %d bytes, want at most %d", len(i.Options), maxOptions)
	}
	_, err := i.options()
	return err
}

// options are the parameters of [Indices.Options]; nil and "" stand for those
// that are not there.
type options struct {
	allowNone, ignoreUnavailable, ignoreThrottled *bool
	expandWildcards                               string
}

// errOption says that the cluster refuses an option, and so the search itself.
var errOption = errors.New("want true or false")

// options reads the options. Others must not get into a URL: they could change
// what a call does.
func (i Indices) options() (o options, err error) {
	values, err := url.ParseQuery(i.Options)
	if err != nil {
		return o, fmt.Errorf("index options: %w", err)
	}
	for name, all := range values {
		value := all[len(all)-1]
		var isSet *bool
		if value == "true" || value == "false" {
			isSet = new(value == "true")
		}
		switch name {
		case "expand_wildcards":
			o.expandWildcards = value
			continue
		case "allow_no_indices":
			o.allowNone = isSet
		case "ignore_unavailable":
			o.ignoreUnavailable = isSet
		case "ignore_throttled":
			o.ignoreThrottled = isSet
		default:
			return o, fmt.Errorf("%q is no option of an index expression", name)
		}
		if isSet == nil {
			return o, fmt.Errorf("index option %s=%q: %w", name, value, errOption)
		}
	}
	return o, nil
}

// remote reports whether a name has a colon outside date math (as in
// "<logs-{now/d{HH:mm}}>"). "cluster:index" has one; no name in the cluster
// itself does.
func (i Indices) remote() bool {
	depth := 0
	for _, r := range i.Expression {
		switch r {
		case '<':
			depth++
		case '>':
			depth--
		case ':':
			if depth <= 0 {
				return true
			}
		}
	}
	return false
}

// single reports whether the expression looks like one name, for _analyze.
func (i Indices) single() bool {
	return !i.all() && !strings.ContainsAny(i.Expression, "*,:")
}

// aliasFilter returns the filter_path of GET /{index} for the aliases that the
// expression may name, or "" if it names none.
func (i Indices) aliasFilter() string {
	name := i.Expression
	switch {
	case i.all():
		return ""
	case strings.ContainsAny(name, ",<"):
		name = "*" // the expression may be as long as a URL
	}
	// A dot would end the segment of the filter.
	if at := strings.IndexAny(name, `*.\\`); at >= 0 {
		name = name[:at] + "*"
	}
	return "*.aliases." + name
}

// mayName reports whether the search may reach an index through that alias. It
// can be wrong: in OpenSearch 2 an alias that a pattern matches, or that stands
// next to its index's name, does not route the search.
func (i Indices) mayName(alias string) bool {
	if i.all() {
		return false
	}
	for part := range strings.SplitSeq(i.Expression, ",") {
		// Date math can become any name.
		if strings.HasPrefix(part, "<") || glob.Match(part, alias) {
			return true
		}
	}
	return false
}

// all reports whether the expression means all indices, without naming them.
func (i Indices) all() bool { return i.Expression == "" || i.Expression == "_all" }
