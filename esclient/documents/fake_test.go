package documents

import (
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/e2e/clustertest"
	"github.com/akin-search/akin/esclient"
)

// client returns the API of the fake, without a network.
func client(tb testing.TB, f *clustertest.Fake) API {
	tb.Helper()
	c, err := esclient.New(esclient.Options{Transport: f})
	check.OK(tb, err)
	return API{c}
}

// anyDoc is a function for documents that do not matter.
func anyDoc(string, []string, []string) error { return nil }

// textsByID scans and returns the texts of documents by their ids.
func textsByID(tb testing.TB, c API, o ScanOptions) map[string][]string {
	tb.Helper()
	got := map[string][]string{}
	check.OK(tb, c.Scan(tb.Context(), o, func(id string, texts, _ []string) error { got[id] = texts; return nil }))
	return got
}
