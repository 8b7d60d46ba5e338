package proxy

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/akin-search/akin/expand"
)

// explanationHeader names, in the answer of a search that asked for it, the
// record that the admin port shows.
const explanationHeader = "X-Akin-Explanation"

// Bounds of the explanations that are kept. They are for somebody who has just
// sent a search, or looks at what searches are like right now; what happens
// over hours is in the metrics.
const (
	// maxExplained is some seconds of searches on a busy proxy, and more than
	// anybody reads.
	maxExplained = 1000
	// maxExplainedBytes is an eighth of the default cache of rows. Searches of
	// 2 KiB, before and after, reach both bounds at about the same time.
	maxExplainedBytes = 8 << 20
	// maxExplainedBody is the largest body that is kept; one more would drive
	// out hundreds of others. Without vectors and long lists of ids few bodies
	// are larger.
	maxExplainedBody = 64 << 10
	// entryBytes is the memory of an entry beside what it points to: the size of
	// the struct, and its id.
	entryBytes = 512
	// textBytes is that of a text in a list beside the text itself.
	textBytes = 16
)

// An entry is what is kept of one search. Nothing in it is modified later but
// refused and reranked.
type entry struct {
	id        string
	when      time.Time
	took      time.Duration
	endpoint  expand.Endpoint
	index     string
	profile   string
	outcome   string   // outcomeRewritten, outcomeUnchanged or outcomeFailedOpen
	reason    string   // of outcomeUnchanged
	cause     string   // of outcomeFailedOpen
	asItCame  bool     // rewritten, but the original was sent: a dry run, or shadow mode
	refused   bool     // under the lock of explanations
	reranked  []string // of each search, what became of its hits that were to be ordered anew, else ""; so, too
	original  message
	rewritten message
	clauses   []expand.Clause
	added     int // terms, in all clauses
	cut       int // clauses that are not in clauses, or without their terms
	failures  []string
	size      int // the memory that it holds, about
}

// A message is the part of a request that is rewritten.
type message struct {
	rawQuery string
	body     []byte // nil where it is larger than maxExplainedBody
	size     int    // of the body
	packed   bool   // body is gzip
}

func newMessage(rawQuery string, body []byte) message {
	m := message{rawQuery: strings.Clone(rawQuery), size: len(body)} // it is a part of the request line
	if cap(body) <= maxExplainedBody {                               // what is behind the length is kept alive, too
		m.body = body
	}
	return m
}

// measure estimates the memory that e holds, its clauses, which take
// clauseSizes, included.
func (e *entry) measure(clauseSizes int) int {
	n := entryBytes + clauseSizes + len(e.index) + len(e.profile) + len(e.reason) + len(e.cause) +
		len(e.original.rawQuery) + cap(e.original.body) + len(e.rewritten.rawQuery) + cap(e.rewritten.body)
	for _, text := range e.failures {
		n += textBytes + len(text)
	}
	return n
}

// explanations keep the last searches that were looked at, up to maxExplained
// of them and maxExplainedBytes. It is safe for concurrent use.
type explanations struct {
	mu    sync.Mutex
	ring  [maxExplained]*entry
	next  int // where the next entry goes
	count int
	size  int // bytes of all
}

// add keeps e, and lets the oldest go for it. It reports false for one that is
// too large for all of the memory.
func (x *explanations) add(e *entry) bool {
	if e.size > maxExplainedBytes {
		return false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for x.count == maxExplained || x.count > 0 && x.size+e.size > maxExplainedBytes {
		oldest := &x.ring[(x.next-x.count+maxExplained)%maxExplained]
		x.size -= (*oldest).size
		*oldest = nil
		x.count--
	}
	x.ring[x.next] = e
	x.next = (x.next + 1) % maxExplained
	x.count++
	x.size += e.size
	return true
}

// last returns copies of the last entries, at most n, the newest first.
func (x *explanations) last(n int) []entry {
	x.mu.Lock()
	defer x.mu.Unlock()
	entries := make([]entry, 0, min(n, x.count))
	for age := range min(n, x.count) {
		entries = append(entries, *x.at(age))
	}
	return entries
}

// find returns a copy of the entry with an id.
func (x *explanations) find(id string) (entry, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for age := range x.count {
		if e := x.at(age); e.id == id {
			return *e, true
		}
	}
	return entry{}, false
}

// refuse notes that the cluster did not take the rewritten search of an entry,
// which may have gone meanwhile.
func (x *explanations) refuse(id string) { x.amend(id, func(e *entry) { e.refused = true }) }

// reranked notes what became of the hits that were to be ordered anew, of each
// search of an entry. The results must not be modified afterwards.
func (x *explanations) reranked(id string, results []string) {
	x.amend(id, func(e *entry) { e.reranked = results })
}

// amend changes an entry, which may have gone meanwhile.
func (x *explanations) amend(id string, change func(e *entry)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for age := range x.count {
		if e := x.at(age); e.id == id {
			change(e)
			return
		}
	}
}

// at returns the entry of an age, 0 for the newest. The lock is held.
func (x *explanations) at(age int) *entry {
	return x.ring[(x.next-1-age+2*maxExplained)%maxExplained]
}

// record keeps what became of a search and notes the name of that in ex. Where
// res is nil, the search failed open for the cause.
func (s *Server) record(ex *exchange, r *http.Request, m match, res *expand.Result, cause string) {
	e := &entry{
		id: rand.Text(), when: time.Now(), took: ex.took,
		endpoint: m.endpoint, index: strings.Clone(ex.index), profile: strings.Clone(ex.control.profile),
		outcome: outcomeFailedOpen, cause: cause,
		asItCame: ex.control.dryRun || s.opts.Shadow > 0,
		original: newMessage(ex.rawQuery, ex.original),
	}
	encoding, _ := contentEncoding(r.Header["Content-Encoding"])
	e.original.packed = encoding != ""
	size := 0
	if res != nil {
		s.metrics.clauses(res)
		e.cause, e.added, e.failures = "", res.AddedTerms(), keepErrors(res.Failures)
		e.clauses, size, e.cut = keepClauses(res.Clauses)
		size += len(res.Reranks) * textBytes // for what will be known of them
		if res.Rewritten {
			e.outcome, e.rewritten = outcomeRewritten, newMessage(res.RawQuery, res.Body)
		} else {
			e.outcome, e.reason = outcomeUnchanged, strings.Clone(clipped(reasonOf(res)))
		}
	}
	e.size = e.measure(size)
	if s.explanations.add(e) {
		ex.record = e.id
	}
}

// mark names the record of a search in its answer, where the client asked for
// that.
func (*Server) mark(ex *exchange, res *http.Response) {
	if ex.record != "" && ex.control.asks() {
		res.Header.Set(explanationHeader, ex.record)
	}
}

// A summary is an entry in a list.
type summary struct {
	ID         string    `json:"id"`
	Time       time.Time `json:"time"`
	Endpoint   string    `json:"endpoint"`
	Index      string    `json:"index"`
	Profile    string    `json:"profile,omitempty"`
	Outcome    string    `json:"outcome"`
	Reason     string    `json:"reason,omitempty"`
	Cause      string    `json:"cause,omitempty"`
	AddedTerms int       `json:"added_terms"`
	TookMillis float64   `json:"took_ms"`
	// Sent is what the client got the answer to: original or rewritten.
	Sent    string `json:"sent"`
	Refused bool   `json:"refused,omitempty"`
	// Reranked is what became of the hits that were to be ordered anew, a result
	// of the metric akin_reranked_total; "" where none were to be. Of several
	// searches it is a list with the number of each, as in the paths of clauses:
	// "[0] reranked, [2] budget".
	Reranked string `json:"reranked,omitempty"`
}

// A shownMessage is a message in an explanation.
type shownMessage struct {
	RawQuery string          `json:"raw_query"`
	Body     json.RawMessage `json:"body,omitempty"`
	// Size is the size of a body that is not here because it is too large.
	Size int `json:"body_size,omitempty"`
}

// An explanation is all that is known of a search.
type explanation struct {
	summary
	Original  shownMessage    `json:"original"`
	Rewritten *shownMessage   `json:"rewritten,omitempty"`
	Failures  []string        `json:"failures,omitempty"`
	Clauses   []expand.Clause `json:"clauses"`
	// Cut is the number of clauses that are not here, or without their terms,
	// because there are too many.
	Cut int `json:"clauses_cut,omitempty"`
}

func (e *entry) summary() summary {
	sent := "original"
	if e.outcome == outcomeRewritten && !e.asItCame && !e.refused && !slices.Contains(e.reranked, rerankUnreadable) {
		sent = "rewritten"
	}
	return summary{
		ID: e.id, Time: e.when.UTC(), Endpoint: endpointNames[e.endpoint], Index: e.index, Profile: e.profile,
		Outcome: e.outcome, Reason: e.reason, Cause: e.cause, AddedTerms: e.added,
		TookMillis: float64(e.took.Microseconds()) / 1000, Sent: sent, Refused: e.refused, Reranked: e.rerankedText(),
	}
}

// rerankedText returns what is shown as [summary.Reranked].
func (e *entry) rerankedText() string {
	var all []string
	for k, result := range e.reranked {
		switch {
		case result == "":
		case e.endpoint == expand.EndpointMultiSearch:
			all = append(all, "["+strconv.Itoa(k)+"] "+result)
		default:
			all = append(all, result)
		}
	}
	return strings.Join(all, ", ")
}

// explain returns all of e, its bodies readable.
func (s *Server) explain(e *entry) explanation {
	x := explanation{
		summary: e.summary(), Original: s.shown(e.original),
		Failures: e.failures, Clauses: append([]expand.Clause{}, e.clauses...), Cut: e.cut,
	}
	if e.outcome == outcomeRewritten {
		rewritten := s.shown(e.rewritten)
		x.Rewritten = &rewritten
	}
	return x
}

func (s *Server) shown(m message) shownMessage {
	x := shownMessage{RawQuery: m.rawQuery}
	body := m.body
	if m.packed && body != nil {
		body, _ = s.decompressShown(body) // one that cannot be is not shown
	}
	if body == nil {
		x.Size = m.size
	}
	x.Body = shownBody(body)
	return x
}
