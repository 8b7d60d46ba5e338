package proxy

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/internal/limits"
	"github.com/akin-search/akin/internal/recovery"
	"github.com/akin-search/akin/internal/searches"
	"github.com/akin-search/akin/proxy/answer"
	"github.com/akin-search/akin/proxy/report"
)

// The texts of searches that find nothing or little are collected behind the
// answer: its beginning is kept while it goes to the client (watch), and read by
// a goroutine that no client waits for (take, countAll).

const (
	// maxAnswerKept is how much of an answer is kept for its total, maxLooked where
	// that may be missing or come late, and maxSeveralKept of several searches.
	maxAnswerKept  = 4 << 10
	maxSeveralKept = 512 << 10
	// collectEvery is the pause after which those that wait are read together: to
	// wake somebody for each takes longer than to read it. maxCollecting is how
	// many wait at most.
	collectEvery  = 50 * time.Millisecond
	maxCollecting = 4096
)

// Collecting says which searches are counted by what they find.
type Collecting struct {
	// Searches keeps their texts. nil collects nothing.
	Searches *searches.Collector
	// Below is how many hits are few, exclusively.
	Below int
	// Covers reports whether texts of searches in an index expression are kept.
	Covers func(expression string) bool
}

// A collecting reads answered searches.
type collecting struct {
	Collecting

	metrics *report.Metrics
	memory  *limits.Budget
	gunzip  *limits.Gunzip
	hidden  func() bool // whether texts are kept from everybody
	guard   *recovery.Guard
	reader  expand.TextReader
	running sync.WaitGroup
	stop    chan struct{}

	mu      sync.Mutex
	waiting []*answered
	closed  bool
}

// An answered search is what is kept of one until it is counted.
type answered struct {
	request expand.Request
	hold    *limits.Hold
	// clauses explain the search. parts and typed are what its expansion says, and
	// how many hits each of its searches has as it was typed, see
	// [report.Record.Found].
	clauses []expand.Explanation
	parts   []expand.Part
	typed   []int64
	status  int
	header  http.Header
	text    []byte // the beginning of the answer
}

// newCollecting returns what collects, nil if nothing is collected.
func (s *Server) newCollecting(o Collecting) *collecting {
	if o.Searches == nil {
		return nil
	}
	c := &collecting{
		Collecting: o, metrics: s.metrics, memory: s.opts.Memory, gunzip: &s.gunzip, hidden: s.hides, guard: s.guard, stop: make(chan struct{}),
	}
	c.running.Go(func() {
		tick := time.NewTicker(collectEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				c.countAll()
			case <-c.stop:
				c.countAll()
				return
			}
		}
	})
	return c
}

// countAll counts what waits.
func (c *collecting) countAll() {
	c.mu.Lock()
	all := c.waiting
	c.waiting = nil
	c.mu.Unlock()
	for _, a := range all {
		if c.guard.Do("counting searches", func() error { c.count(a); return nil }) != nil {
			c.metrics.Found.WithLabelValues(foundUnread).Inc()
		}
		a.hold.Release()
	}
}

// close counts what waits, and ends.
func (c *collecting) close() {
	if c == nil {
		return
	}
	c.mu.Lock()
	if !c.closed {
		c.closed = true
		close(c.stop)
	}
	c.mu.Unlock()
	c.running.Wait()
}

// foundUnread is where the answer does not tell how much a search finds.
const foundUnread = "unread"

// foundNames are the other values of the label "hits".
func foundNames() (names []string) {
	for _, found := range searches.AllFound() {
		names = append(names, found.String())
	}
	return names
}

// A beginning is an answer whose first bytes are kept while they are read.
type beginning struct {
	io.ReadCloser

	most int
	kept []byte
}

// Read reads from the answer.
func (b *beginning) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.kept = append(b.kept, p[:min(n, b.most-len(b.kept))]...)
	return n, err
}

// watch has the beginning of the answer to a search kept. It returns nil for a
// search that is not counted.
func (c *collecting) watch(x *search, res *http.Response, err error) *beginning {
	if c == nil || err != nil || x.tried || x.endpoint != expand.EndpointSearch && x.endpoint != expand.EndpointMultiSearch {
		return nil
	}
	late := func(text string) bool {
		return strings.Contains(x.rawQuery, text) || bytes.Contains(x.body.plain, []byte(text))
	}
	most := maxAnswerKept
	switch {
	case x.endpoint == expand.EndpointMultiSearch:
		most = maxSeveralKept
	case late("track_total_hits"), late("filter_path"), late("scroll"), late("pit"):
		most = maxLooked
	}
	b := &beginning{ReadCloser: res.Body, most: most}
	res.Body = b
	return b
}

// take has an answered search counted. It keeps nothing of x.
func (c *collecting) take(x *search, res *http.Response, b *beginning) {
	if b == nil {
		return
	}
	a := &answered{hold: c.memory.Hold(limits.Collected, ""), typed: x.report.Found, status: res.StatusCode, header: res.Header, text: b.kept}
	body := x.body.plain
	if x.rendered != nil {
		body = x.rendered
	}
	if result := x.report.Result; result != nil {
		a.clauses, a.parts = result.Clauses, result.Parts
	}
	taken := a.hold.Take(int64(len(body) + cap(b.kept)))
	if taken {
		a.request = expand.Request{Endpoint: x.endpoint, Index: x.index, RawQuery: x.rawQuery, Body: slices.Clone(body)} // the client's may be used again
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if taken && !c.closed && len(c.waiting) < maxCollecting {
		c.waiting = append(c.waiting, a)
		return
	}
	a.hold.Release()
	c.metrics.Found.WithLabelValues(foundUnread).Inc()
}

// count counts what each search of a request found.
func (c *collecting) count(a *answered) {
	hidden := c.hidden()
	if hidden {
		c.Searches.Drop()
	}
	wanted := c.reader.Read(&a.request, a.clauses)
	totals := c.totals(a)
	counted := map[[3]string]bool{} // facets are counted by the same text again
	for k := range max(len(wanted), 1) {
		var w expand.Wanted
		if k < len(wanted) {
			w = wanted[k]
		}
		found, ok := c.found(a, k, w.Page, totals)
		name := foundUnread
		if ok {
			name = found.String()
		}
		c.metrics.Found.WithLabelValues(name).Inc()
		if !ok || hidden || !c.Covers(w.Index) {
			continue
		}
		for _, t := range w.Texts {
			of := [3]string{w.Index, strings.Join(t.Fields, ","), t.Text}
			if !counted[of] {
				counted[of] = true
				c.Searches.Add(of[0], of[1], of[2], found)
			}
		}
	}
}

// totals returns how much the searches of a request find, as far as the answer
// tells.
func (c *collecting) totals(a *answered) (totals []answer.Total) {
	coding, known := answer.ContentEncoding(a.header)
	if a.status != http.StatusOK || !known || !answer.IsJSON(a.header["Content-Type"]) {
		return nil
	}
	read := func(r io.Reader) (err error) {
		totals, err = answer.ReadTotals(io.LimitReader(r, limits.MaxAnswer), a.request.Endpoint)
		return err
	}
	if coding == "" {
		_ = read(bytes.NewReader(a.text)) // the rest is not here
	} else {
		_ = c.gunzip.With(bytes.NewReader(a.text), read)
	}
	return totals
}

// found returns what the k-th search of a request found, or false if the answer
// does not tell. page is [expand.Wanted.Page].
func (c *collecting) found(a *answered, k, page int, totals []answer.Total) (found searches.Found, ok bool) {
	if k >= len(totals) || totals[k].Failed {
		return 0, false
	}
	t := totals[k]
	if int64(t.Page) > t.Hits {
		t.Hits, t.AtLeast = int64(t.Page), true
	}
	hits, result := foundBy(&t, expand.Enough{Hits: c.Below, Page: page})
	nothing := k < len(a.parts) && a.parts[k].Nothing && a.parts[k].How == expand.Widened || k < len(a.typed) && a.typed[k] == 0
	switch {
	case result == fewUnread:
		return 0, false
	case hits == 0:
		return searches.None, true
	case nothing:
		return searches.Related, true
	case result == fewEnough:
		return searches.Enough, true
	}
	return searches.Few, true
}
