package documents

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/e2e/clustertest"
	"github.com/akin-search/akin/esclient"
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

// client returns the API of the fake, without a network.
func client(tb testing.TB, f *clustertest.Fake) API {
	tb.Helper()
	c, err := esclient.New(esclient.Options{Transport: f})
	must(tb, err)
	return API{c}
}

// anyDoc is a function for documents that do not matter.
func anyDoc(string, []string, []string) error { return nil }

// textsByID scans and returns the texts of documents by their ids.
func textsByID(tb testing.TB, c API, o ScanOptions) map[string][]string {
	tb.Helper()
	got := map[string][]string{}
	must(tb, c.Scan(tb.Context(), o, func(id string, texts, _ []string) error { got[id] = texts; return nil }))
	return got
}
