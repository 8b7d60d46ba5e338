package proxy

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/internal/budget"
)

// Bounds of what is read of a refusal.
const (
	maxRefusal     = 64 << 10 // bytes
	maxCauses      = 64       // a hundred shards say the same
	maxCauseDepth  = 16
	maxReasonBytes = 512 // the longest sentence that means something has 250
)

// unknownSearch stands for the number of a search.
const unknownSearch = -1

// A refusal is what the cluster says against a rewritten search.
type refusal struct {
	status int // of the answer, 0 where it is good
	causes []expand.Cause
	// busy says that the reason is the state of the cluster, and not the search.
	busy bool
	// search is the number of the search that it is about, of a request that
	// holds several, unknownSearch where that cannot be seen.
	search int
}

// busyTypes are those of errors of shards that have too much to do.
var busyTypes = []string{"rejected_execution_exception", "es_rejected_execution_exception", "circuit_breaking_exception"}

// isBusy reports whether an error says that the cluster has too much to do, or
// is not well: the original would fare the same.
func isBusy(status int, causes []expand.Cause) bool {
	switch status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return slices.ContainsFunc(causes, func(c expand.Cause) bool { return slices.Contains(busyTypes, c.Type) })
}

// isDenied reports whether a status means that the client may not search. The
// answer to the original would be the same.
func isDenied(status int) bool {
	return status == http.StatusUnauthorized || status == http.StatusForbidden
}

// refusal reads what an answer with a status of 4xx or 5xx says, and puts it
// back.
func (s *Server) refusal(ex *exchange, res *http.Response) *refusal {
	var causes causeReader
	_ = s.peek(ex, res, maxRefusal, func(d *jsontext.Decoder) error { // what there is of it
		causes.d = d
		return eachMember(d, func(name string) error {
			if name == "error" {
				_, err := causes.read(0)
				return err
			}
			return d.SkipValue()
		})
	})
	r := &refusal{status: res.StatusCode, causes: causes.all, search: unknownSearch}
	// What fails since akin asked for an error where single shards fail is none to
	// the original.
	partly := ex.strict && slices.ContainsFunc(r.causes, func(c expand.Cause) bool { return c.Reason == "Partial shards failure" })
	r.busy = !partly && isBusy(r.status, r.causes)
	return r
}

// peek has the beginning of an answer read, at most limit bytes, decompressed
// as many, and puts all of it back; its memory is held until the client has it.
// An answer in another encoding than gzip cannot be read.
func (s *Server) peek(ex *exchange, res *http.Response, limit int64, read func(d *jsontext.Decoder) error) error {
	encoding, known := contentEncoding(res.Header["Content-Encoding"])
	if !known {
		return errUnchecked
	}
	begun := &beginning{from: res.Body, held: s.opts.Memory.Hold(budget.Answer, ex.client)}
	answer := io.LimitReader(begun, limit)
	defer func() {
		res.Body = &peeked{putBack{first: begun.read, held: begun.held, rest: res.Body, Closer: res.Body}}
	}()
	if encoding == "gzip" {
		gz := s.gzipReader()
		defer s.putGzip(gz)
		if err := gz.Reset(answer); err != nil {
			return err
		}
		answer = io.LimitReader(gz, limit)
	}
	return read(newDecoder(answer))
}

// A beginning is read of an answer and kept in memory of held.
type beginning struct {
	from io.Reader
	held *budget.Hold
	read []byte
}

// Read reads, or returns [errNoRoom].
func (b *beginning) Read(p []byte) (int, error) {
	if !b.held.Take(int64(len(p))) {
		return 0, errNoRoom
	}
	n, err := b.from.Read(p)
	b.held.Give(int64(len(p) - n))
	b.read = append(b.read, p[:n]...)
	return n, err
}

// A peeked is an answer whose beginning was read and put back.
type peeked struct{ putBack }

// Close closes the answer and lets go of what is held.
func (p *peeked) Close() error {
	p.first = nil
	p.held.Release()
	return p.putBack.Close()
}

// A causeReader gathers the errors that the cluster's error objects tell of. It
// looks at their own members alone: other texts may be those of a request.
type causeReader struct {
	d   *jsontext.Decoder
	all []expand.Cause
}

// read reads the error that the decoder is before, with all that caused it, and
// returns its type, "" where it has none.
func (c *causeReader) read(depth int) (kind string, err error) {
	if c.d.PeekKind() != '{' || depth == maxCauseDepth || len(c.all) == maxCauses {
		return "", c.d.SkipValue()
	}
	at := len(c.all)
	c.all = append(c.all, expand.Cause{}) // it goes before what caused it, also where the answer breaks off
	err = eachMember(c.d, func(name string) error {
		var err error
		text := c.d.PeekKind() == '"'
		switch {
		case name == "type" && text:
			c.all[at].Type, err = c.text()
		case name == "reason" && text:
			c.all[at].Reason, err = c.text()
		case name == "caused_by":
			_, err = c.read(depth + 1)
		case name == "root_cause":
			err = c.list(func() error { _, err := c.read(depth + 1); return err })
		case name == "failed_shards":
			err = c.list(func() error { _, err := c.shard(depth + 1); return err })
		default:
			err = c.d.SkipValue()
		}
		return err
	})
	return c.all[at].Type, err
}

// shard reads what failed on one shard and returns the type of that.
func (c *causeReader) shard(depth int) (kind string, err error) {
	err = eachMember(c.d, func(name string) error {
		if name != "reason" {
			return c.d.SkipValue()
		}
		var err error
		kind, err = c.read(depth)
		return err
	})
	return kind, err
}

// list calls element before each value of a list.
func (c *causeReader) list(element func() error) error {
	if c.d.PeekKind() != '[' {
		return c.d.SkipValue()
	}
	if _, err := c.d.ReadToken(); err != nil {
		return err
	}
	for c.d.PeekKind() != ']' {
		if err := element(); err != nil {
			return err
		}
	}
	_, err := c.d.ReadToken()
	return err
}

// text returns the beginning of the string that the decoder is before.
func (c *causeReader) text() (string, error) {
	t, err := c.d.ReadToken()
	if err != nil {
		return "", err
	}
	text := t.String()
	return strings.Clone(text[:min(len(text), maxReasonBytes)]), nil
}

// sendsOriginal decides, for a rewritten search that was refused, whether the
// original is sent. An overloaded cluster gets it within the retry budget only.
func (s *Server) sendsOriginal(r *refusal) bool {
	if isDenied(r.status) || r.busy && !s.upstream.MayRepeat() {
		s.metrics.refused.WithLabelValues("not_sent").Inc()
		return false
	}
	return true
}

// refused notes that the cluster did not take a rewritten search, and whether
// it took the original. Where it did not, the mistake is the client's. h are
// the headers of the original.
func (s *Server) refused(ctx context.Context, ex *exchange, h http.Header, originalTaken bool, r *refusal) {
	s.metrics.refusedSearch(originalTaken)
	s.explanations.refuse(ex.record)
	s.log.DebugContext(ctx, "the cluster refused a rewritten search", "index", ex.index, "status", r.status,
		"busy", r.busy, "original_taken", originalTaken)
	if !originalTaken {
		return
	}
	if ex.shadow == nil { // else no client has felt it
		s.failedOpen(ctx, ex, failedSearch, causeRefused)
	}
	if r.busy || isDenied(r.status) {
		return
	}
	news := s.opts.OnRefused != nil &&
		s.opts.OnRefused(&expand.Refusal{Index: ex.indexOf(r), ClauseCount: ex.rewritten.ClauseCount, Causes: r.causes})
	if !news { // the next one like it would be refused, too
		s.shapes.note(s.shapeOf(ex, s.plainBody(ex, h)))
	}
}

// pardon forgets refusals of searches that were wrong in themselves: the cluster
// has taken one of the same shape.
func (s *Server) pardon(ex *exchange, h http.Header) {
	if s.shapes.count.Load() > 0 {
		s.shapes.pardon(s.shapeOf(ex, s.plainBody(ex, h)))
	}
}

// plainBody returns the body of the original search, decompressed.
func (s *Server) plainBody(ex *exchange, h http.Header) []byte {
	if ex.shadow != nil {
		return ex.shadow.body
	}
	if encoding, _ := contentEncoding(h["Content-Encoding"]); encoding == "gzip" {
		body, _ := s.decompress(ex.original, ex.held, s.opts.MaxBody) // it was before
		return body
	}
	return ex.original
}
