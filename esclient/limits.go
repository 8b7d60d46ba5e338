package esclient

import (
	"context"
	"fmt"
	"math"
	"strconv"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"github.com/akin-search/akin/esclient/memory"
)

// Settings that bound what a search may ask for.
const (
	// MaxClauses is that of the cluster for the clauses of a query.
	MaxClauses = "indices.query.bool.max_clause_count"
	// MaxRescoreWindow and MaxResultWindow are those of an index.
	MaxRescoreWindow = "index.max_rescore_window"
	MaxResultWindow  = "index.max_result_window"
)

// AskLimit has the cluster asked, apart from the caller, for the value of a
// setting for an index expression, the smallest of several indices, and calls
// tell with it; not where the cluster does not tell, is being asked already, or
// too many other calls are under way.
func (c *Cached) AskLimit(setting, index string, tell func(n int64)) {
	k := key{Indices: Indices{Expression: index}, field: setting}
	memory.Start(context.Background(), &c.limits, k, memory.Unknown[int64],
		func(ctx context.Context) (int64, error) {
			if setting == MaxClauses {
				return c.client.maxClauses(ctx)
			}
			return c.client.indexLimit(ctx, setting, index)
		},
		func(n int64, err error) {
			if err == nil {
				tell(n)
			}
		})
}

// maxClauses asks for the cluster's setting. A transient value goes before a
// persistent one, and that before the default, which may be of the node's file.
func (c *Client) maxClauses(ctx context.Context) (int64, error) {
	type group struct {
		Indices struct {
			Query struct {
				Bool struct {
					MaxClauseCount string `json:"max_clause_count"`
				} `json:"bool"`
			} `json:"query"`
		} `json:"indices"`
	}
	var answer struct {
		Transient  group `json:"transient"`
		Persistent group `json:"persistent"`
		Defaults   group `json:"defaults"`
	}
	defaults := true
	r := Request{API: esapi.ClusterGetSettingsRequest{IncludeDefaults: &defaults, FilterPath: []string{"*." + MaxClauses}}}
	if err := c.Call(ctx, r, &answer); err != nil {
		return 0, err
	}
	for _, g := range []group{answer.Transient, answer.Persistent, answer.Defaults} {
		if text := g.Indices.Query.Bool.MaxClauseCount; text != "" {
			return positive(MaxClauses, text)
		}
	}
	return 0, fmt.Errorf("the cluster does not tell %s", MaxClauses)
}

// indexLimit asks for the setting of indices and returns the smallest.
func (c *Client) indexLimit(ctx context.Context, setting, index string) (int64, error) {
	var answer map[string]struct {
		Settings map[string]string `json:"settings"`
		Defaults map[string]string `json:"defaults"`
	}
	path := IndexPath(index, "/_settings/"+setting+"?include_defaults=true&flat_settings=true")
	if err := c.get(ctx, path, &answer); err != nil {
		return 0, err
	}
	least := int64(math.MaxInt64)
	for _, of := range answer {
		text, own := of.Settings[setting]
		if !own {
			text = of.Defaults[setting]
		}
		n, err := positive(setting, text)
		if err != nil {
			return 0, err
		}
		least = min(least, n)
	}
	if len(answer) == 0 {
		return 0, fmt.Errorf("no index has %s", setting)
	}
	return least, nil
}

// positive returns the value of a setting.
func positive(setting, text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n <= 0 {
		return 0, fmt.Errorf("%s is %q, not a positive number", setting, text)
	}
	return n, nil
}
