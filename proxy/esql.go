package proxy

import (
	"io"
	"net/http"
	"regexp"
)

// maxESQL is how much is read of an ES|QL query while it passes.
const maxESQL = 16 << 10

// textInESQL finds what searches for text in an ES|QL query, which is a string
// in JSON: MATCH(…), QSTR(…), and a field, a colon and a literal or parameter.
var textInESQL = regexp.MustCompile("(?i)\\b(?:match|qstr)\\s*\\(|[\\w`]\\s*:\\s*(?:\\\\\"|\\?)")

// isESQL reports whether a request is an ES|QL query.
func isESQL(r *http.Request) bool {
	path := r.URL.EscapedPath()
	return r.Method == http.MethodPost && (path == "/_query" || path == "/_query/async")
}

// An esqlReader passes on the body of an ES|QL query. At its end it calls found
// if the query searches for text.
type esqlReader struct {
	io.Reader

	head  []byte
	found func()
}

// Read reads from the body.
func (e *esqlReader) Read(p []byte) (int, error) {
	n, err := e.Reader.Read(p)
	e.head = append(e.head, p[:min(n, maxESQL-len(e.head))]...)
	if err == io.EOF && textInESQL.Match(e.head) {
		e.found()
		e.head = nil
	}
	return n, err
}
