package proxy

import (
	"context"
	"encoding/json"
	"net/http"
)

// clearScroll has the cluster let go of what it keeps for a scroll whose first
// answer the client does not get: the original opens another. It is done for
// the client, who knows nothing of it, with its credentials, and nobody waits.
// What there is no time for the cluster lets go when the time of the scroll is
// over.
func (s *Server) clearScroll(h http.Header, id string) {
	if id == "" || !s.clearing.reserve() {
		return
	}
	as := &http.Request{Header: h.Clone()}
	s.clearing.start(func(ctx context.Context) {
		err := s.guard.Do("clearing scrolls", func() error {
			body, err := json.Marshal(map[string][]string{"scroll_id": {id}})
			if err == nil {
				_, _, err = s.ask(ctx, as, http.MethodDelete, "/_search/scroll", body)
			}
			return err
		})
		if err != nil {
			s.log.DebugContext(ctx, "a scroll that nobody reads was not cleared", "err", err)
		}
	}, func() {})
}
