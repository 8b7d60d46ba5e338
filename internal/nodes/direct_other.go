//go:build !unix

package nodes

import "net/http"

// A direct transport is net/http's, where it cannot be seen whether the other
// side has closed an idle connection.
type direct struct{ *http.Transport }

func newDirect(t *http.Transport) http.RoundTripper { return direct{t} }

// RoundTrip sends req.
func (t direct) RoundTrip(req *http.Request) (*http.Response, error) {
	return roundTrip(t.Transport, req)
}

// IsHere reports whether all of an answer has come, so that reading it does not
// wait. Unsure, it reports false.
func IsHere(res *http.Response) bool { return res.Body == http.NoBody }
