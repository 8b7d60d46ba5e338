package documents

import (
	"testing"

	"github.com/akin-search/akin/e2e/clustertest"
	"github.com/akin-search/akin/esclient"
)

// client returns the API of the fake, without a network.
func client(tb testing.TB, f *clustertest.Fake) API {
	tb.Helper()
	c, err := esclient.New(esclient.Options{Transport: f})
	if err != nil {
		tb.Fatal(err)
	}
	return API{c}
}
