package esclient

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/e2e/clustertest"
)

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// equal wants what was got to be what was wanted. Of what it is may be told.
func equal[T any](tb testing.TB, want, got T, of ...any) {
	tb.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		tb.Error(append(of, "(-want +got)\n"+diff)...)
	}
}

// wantErr wants an error of this kind. Of what it is may be told.
func wantErr(tb testing.TB, want, err error, of ...any) {
	tb.Helper()
	if !errors.Is(err, want) {
		tb.Error(append(of, fmt.Sprintf("error %v, want %v", err, want))...)
	}
}

func errOf[T any](_ T, err error) error { return err }

// client returns a client of the fake, without a network.
func client(tb testing.TB, f *clustertest.Fake) *Client {
	tb.Helper()
	c, err := New(Options{Transport: f})
	must(tb, err)
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
	must(tb, err)
	return a
}

// at returns the indices of an expression without options.
func at(index string) Indices { return Indices{Expression: index} }
