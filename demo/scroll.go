package demo

import (
	"crypto/rand"
	"hash/fnv"
	"net/http"
	"sync"
	"time"
)

// Limits of scrolls, those of the real engines.
const (
	maxScrolls    = 500
	maxScrollLife = 24 * time.Hour
	maxSlices     = 1024
)

// A slice is one of max parts of the documents, which hold each document once.
// A max of 0 is all of them.
type slice struct{ id, max int }

// slice reads the slice member of a search body.
func (m *mistake) slice(v any) slice {
	a := m.members("slice", v)
	if field := a.str("field", "_id"); field != "_id" {
		m.fail(unsupported("slices by the field [%s]", field))
	}
	s := slice{id: a.integer("id", -1), max: a.integer("max", -1)}
	_ = a.done() // it stays with m
	switch {
	case s.max < 2:
		m.fail(badRequest("x_content_parse_exception", "[slice] failed to parse field [max]: max must be greater than 1"))
	case s.id < 0 || s.id >= s.max:
		m.fail(badRequest("x_content_parse_exception", "[slice] failed to parse field [id]: max must be greater than id"))
	case s.max > maxSlices:
		m.fail(badRequest("illegal_argument_exception",
			"The number of slices [%d] is too large. It must be less than [%d].", s.max, maxSlices))
	}
	return s
}

// of returns the results whose documents are in the slice: by their ids, as in
// the real engines, though other ones.
func (s slice) of(all []result) []result {
	if s.max == 0 {
		return all
	}
	var out []result
	for _, r := range all {
		h := fnv.New32a()
		_, _ = h.Write([]byte(r.ix.docs[r.doc].id)) // never fails
		if int64(h.Sum32())%int64(s.max) == int64(s.id) {
			out = append(out, r)
		}
	}
	return out
}

// A scroll is a search whose answer is read in pages, over the documents as
// they were when it began.
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

// page returns the next page of a scroll and keeps it open for life, or as long
// as before if life is 0.
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
