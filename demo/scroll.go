package demo

import (
	"crypto/rand"
	"net/http"
	"sync"
	"time"
)

// Limits of scrolls, those of the real engines.
const (
	maxScrolls    = 500
	maxScrollLife = 24 * time.Hour
)

// A scroll is a search whose answer is read in pages. It holds on to the
// documents as they were when it began.
type scroll struct {
	request *searchRequest
	all     []result
	next    int // the first result of the next page
	expires time.Time
}

// scrolls are the open scrolls by id.
type scrolls struct {
	mu   sync.Mutex
	open map[string]*scroll
}

// start opens a scroll whose first page was read.
func (s *scrolls) start(now time.Time, life time.Duration, r *searchRequest, all []result) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, sc := range s.open {
		if now.After(sc.expires) {
			delete(s.open, id)
		}
	}
	if len(s.open) >= maxScrolls {
		return "", &apiError{
			status: http.StatusTooManyRequests, kind: "too_many_scroll_contexts_exception",
			reason: "Trying to create too many scroll contexts. Must be less than or equal to: [500].",
		}
	}
	id := rand.Text()
	s.open[id] = &scroll{r, all, min(r.size, len(all)), now.Add(life)}
	return id, nil
}

// page returns the next page of a scroll and keeps it open for life, or for as
// long as before where life is 0.
func (s *scrolls) page(now time.Time, id string, life time.Duration) (*scroll, []result, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sc := s.open[id]
	if sc == nil || now.After(sc.expires) {
		return nil, nil, &apiError{
			status: http.StatusNotFound, kind: "search_context_missing_exception", reason: "No search context found for id [" + id + "]",
		}
	}
	end := min(sc.next+sc.request.size, len(sc.all))
	page := sc.all[sc.next:end]
	sc.next = end
	if life > 0 {
		sc.expires = now.Add(life)
	}
	return sc, page, nil
}

// free closes scrolls and returns how many there were; "_all" closes all.
func (s *scrolls) free(ids []string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	freed := 0
	for _, id := range ids {
		if id == "_all" {
			freed += len(s.open)
			clear(s.open)
		}
		if s.open[id] != nil {
			delete(s.open, id)
			freed++
		}
	}
	return freed
}

// scrollLife reads a time such as "1m" or "30s".
func scrollLife(text string) (time.Duration, error) {
	life, err := time.ParseDuration(text)
	if err != nil || life <= 0 || life > maxScrollLife {
		return 0, badRequest("illegal_argument_exception", "failed to parse setting [scroll] with value [%s] as a time value", text)
	}
	return life, nil
}
