package proxy

import (
	"net/http"

	"github.com/gin-gonic/gin"
)

// A relay is the ResponseWriter under gin's. The proxy writes to it directly,
// since gin's own writer holds status lines back until the first byte of a
// body, which would lose 1xx responses. It adds nothing that the cluster did
// not send, and ignores what gin would write after an answer.
type relay struct {
	http.ResponseWriter
	wrote bool
}

// relayed returns h behind a relay.
func relayed(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(&relay{ResponseWriter: w}, r)
	})
}

// relayOf returns the writer under gin's.
func relayOf(c *gin.Context) http.ResponseWriter {
	return c.Writer.(interface{ Unwrap() http.ResponseWriter }).Unwrap() // gin has it since 1.10
}

// Unwrap lets [http.ResponseController] flush and hijack.
func (w *relay) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader writes the status line. Elasticsearch sends no Date, and no
// Content-Type without a body; a nil entry keeps net/http from making one up.
func (w *relay) WriteHeader(status int) {
	if w.wrote {
		return
	}
	if status >= http.StatusOK || status == http.StatusSwitchingProtocols {
		w.wrote = true
		h := w.Header()
		for _, name := range []string{"Date", "Content-Type"} {
			if _, ok := h[name]; !ok {
				h[name] = nil
			}
		}
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write writes a piece of the body.
func (w *relay) Write(p []byte) (int, error) {
	if !w.wrote {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(p)
}
