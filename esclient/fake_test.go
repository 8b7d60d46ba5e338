package esclient

import (
	"testing"
	"time"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/e2e/clustertest"
)

// client returns a client of the fake, without a network.
func client(tb testing.TB, f *clustertest.Fake) *Client {
	tb.Helper()
	c, err := New(Options{Transport: f})
	check.OK(tb, err)
	return c
}

// cached returns a cache in front of the fake.
func cached(tb testing.TB, f *clustertest.Fake) *Cached {
	tb.Helper()
	c := NewCached(client(tb, f), CacheOptions{AnalysisBytes: 4 << 20, StatisticsBytes: 4 << 20, TTL: time.Minute})
	tb.Cleanup(c.Close)
	return c
}

// analyze returns the analysis of a text by the field's own analyzer.
func analyze(tb testing.TB, c *Cached, index, field, text string) *Analysis {
	tb.Helper()
	a, err := c.Analyze(tb.Context(), at(index), field, "", text)
	check.OK(tb, err)
	return a
}

// at returns the indices of an expression without options.
func at(index string) Indices { return Indices{Expression: index} }
