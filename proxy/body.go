package proxy

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/internal/budget"
)

// Reasons to leave a search alone that lie in its body's envelope.
const (
	reasonContentType = "content_type"     // neither JSON nor, where that is asked for, lines of JSON
	reasonEncoding    = "content_encoding" // neither plain nor sound gzip
	reasonTooLarge    = "body_too_large"   // before or after decompression
	reasonSlow        = "slow_body"        // it comes too slowly to wait for
	reasonMemory      = "memory"           // too much is held for other requests
)

// maxKeptBody is the length of the largest body that is kept though akin has no
// need to look at it. Searches have few kilobytes.
const maxKeptBody = 64 << 10

// errNoRoom says that too much is held to hold this, too.
var errNoRoom = errors.New("too much is held for other requests")

// readBody reads the body of a search and returns it decompressed, or the
// reason why the search is to be forwarded as it came; r and ex are left such
// that it will be. An error says that the client's body broke off.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request, ex *exchange) (body []byte, reason string, err error) {
	if r.ContentLength == 0 {
		return nil, "", nil
	}
	types := r.Header["Content-Type"]
	readable := isJSON(types) || ex.endpoint == expand.EndpointMultiSearch && isLines(types)
	encoding, known := contentEncoding(r.Header["Content-Encoding"])
	switch {
	case len(types) > 0 && !readable, len(types) == 0 && r.ContentLength > 0:
		return nil, reasonContentType, nil
	case !known:
		return nil, reasonEncoding, nil
	case r.ContentLength > s.opts.MaxBody:
		return nil, reasonTooLarge, nil
	}
	ex.arriving = s.newArriving(w, r, s.opts.BodyTimeout, s.opts.Memory.Hold(budget.SearchBody, ex.client))
	raw, reason, err := takeBody(r, ex.arriving, ex.held, s.opts.MaxBody)
	if err != nil || reason != "" {
		return nil, reason, err
	}
	ex.read, ex.original = true, raw
	switch {
	case len(raw) == 0:
		return nil, "", nil
	case len(types) == 0:
		return nil, reasonContentType, nil
	case encoding == "gzip":
		body, reason = s.decompress(raw, ex.held, s.opts.MaxBody)
		return body, reason, nil
	default:
		return raw, "", nil
	}
}

// keepBody reads the body of a search that akin does not look at, where it is
// small, so that the search can be sent once more where a node does not answer.
// An error says that the client's body broke off.
func (s *Server) keepBody(w http.ResponseWriter, r *http.Request, ex *exchange) error {
	if ex.arriving != nil || r.ContentLength <= 0 || r.ContentLength > maxKeptBody || !s.upstream.Several() {
		return nil
	}
	ex.arriving = s.newArriving(w, r, s.opts.BodyTimeout, s.opts.Memory.Hold(budget.SearchBody, ex.client))
	raw, reason, err := takeBody(r, ex.arriving, ex.held, r.ContentLength)
	if err == nil && reason == "" {
		ex.read, ex.original = true, raw
	}
	return err
}

// takeBody reads a body of at most limit bytes into memory of held. Where that
// is not to be it returns the reason, and r goes on with the whole body.
func takeBody(r *http.Request, body *arriving, held *budget.Hold, limit int64) (raw []byte, reason string, err error) {
	raw, err = readHeld(body, held, r.ContentLength, limit+1)
	switch {
	case errors.Is(err, errNoRoom):
		reason = reasonMemory
	case errors.Is(err, errSlow):
		reason = reasonSlow
	case err != nil:
		return nil, "", err
	case int64(len(raw)) > limit:
		reason = reasonTooLarge
	default:
		body.free()
		return raw, "", nil
	}
	body.awaited = false
	r.Body = &putBack{first: raw, held: held, rest: body, Closer: body.body}
	return nil, reason, nil
}

// countLeft counts a search that is left alone for a reason: one that akin has
// no memory for has failed.
func (m *metrics) countLeft(reason string) {
	if reason == reasonMemory {
		m.failedOpen(reason)
		return
	}
	m.unchanged(reason)
}

// A putBack is a body of which the first bytes were read: they come first, and
// their memory is given back with the last of them.
type putBack struct {
	io.Closer

	first []byte
	held  *budget.Hold
	rest  io.Reader
}

// Read reads.
func (b *putBack) Read(p []byte) (int, error) {
	if len(b.first) == 0 {
		return b.rest.Read(p)
	}
	n := copy(p, b.first)
	if b.first = b.first[n:]; len(b.first) == 0 {
		b.first = nil
		b.held.Release()
	}
	return n, nil
}

const (
	// firstRead is the most that is set aside for a body before it is there.
	firstRead = 16 << 10
	// leastRead is what is set aside where its length is not known.
	leastRead = 4 << 10
)

// readHeld reads at most limit bytes of r, which is expected to hold size; a
// negative size says nothing. It takes the memory for what it reads of held, as
// that grows. With an error, [errNoRoom] where held takes no more, it returns
// what was read before that; no byte of r is lost.
func readHeld(r io.Reader, held *budget.Hold, size, limit int64) (read []byte, err error) {
	for {
		if len(read) == cap(read) {
			if read, err = grow(read, held, size, limit); err != nil {
				return read, err
			}
		}
		n, err := r.Read(read[len(read):cap(read)])
		read = read[:len(read)+n]
		switch {
		case errors.Is(err, io.EOF):
			return read, nil
		case err != nil || int64(len(read)) == limit:
			return read, err
		}
	}
}

// grow returns read with room for more: twice as much, but not beyond what is
// expected and the byte in which its end shows.
func grow(read []byte, held *budget.Hold, size, limit int64) ([]byte, error) {
	had := int64(cap(read))
	room := max(2*had, leastRead)
	if size >= had {
		room = min(max(2*had, firstRead), size+1)
	}
	room = min(room, limit)
	if !held.Take(room - had) {
		return read, errNoRoom
	}
	return append(make([]byte, 0, room), read...), nil
}

// readUpTo reads at most limit bytes of r, which is expected to hold size; a
// negative size says nothing.
func readUpTo(r io.Reader, size, limit int64) ([]byte, error) {
	var buf bytes.Buffer
	buf.Grow(int(max(size, 0)) + bytes.MinRead)
	_, err := buf.ReadFrom(io.LimitReader(r, limit))
	return buf.Bytes(), err
}

// decompress returns the content of a gzip stream, in memory of held, or the
// reason why there is none: it is broken, larger than limit, or there is no
// memory.
func (s *Server) decompress(raw []byte, held *budget.Hold, limit int64) (body []byte, reason string) {
	gz := s.gzipReader()
	defer s.putGzip(gz)
	if err := gz.Reset(bytes.NewReader(raw)); err != nil {
		return nil, reasonEncoding
	}
	body, err := readHeld(gz, held, -1, limit+1)
	switch {
	case errors.Is(err, errNoRoom):
		return nil, reasonMemory
	case err != nil:
		return nil, reasonEncoding
	case int64(len(body)) > limit:
		return nil, reasonTooLarge
	}
	return body, ""
}

// gzipReader returns a reader to be reset and then given to putGzip.
func (s *Server) gzipReader() *gzip.Reader {
	if gz, ok := s.gunzip.Get().(*gzip.Reader); ok {
		return gz
	}
	return new(gzip.Reader)
}

// emptyGzip is the header of a gzip stream (RFC 1952, section 2.3).
const emptyGzip = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"

// putGzip keeps a reader for the next stream. It must not keep the body that it
// has read; the decompressor inside lets go of it only for a stream with a good
// header.
func (s *Server) putGzip(gz *gzip.Reader) {
	if gz.Reset(strings.NewReader(emptyGzip)) == nil {
		s.gunzip.Put(gz)
	}
}

// isJSON reports whether the values of a Content-Type or Accept header name one
// media type whose text is one JSON value.
func isJSON(values []string) bool {
	mediaType := mediaTypeOf(values)
	return strings.EqualFold(mediaType, "application/json") ||
		strings.EqualFold(mediaType, "application/vnd.elasticsearch+json")
}

// isLines reports whether the values of a Content-Type header name a media type
// whose text is lines of JSON.
func isLines(values []string) bool {
	mediaType := mediaTypeOf(values)
	return strings.EqualFold(mediaType, "application/x-ndjson") ||
		strings.EqualFold(mediaType, "application/vnd.elasticsearch+x-ndjson")
}

// mediaTypeOf returns the media type that the values of a header name, without
// its parameters; "" for several, which are an error to Elasticsearch.
func mediaTypeOf(values []string) string {
	if len(values) != 1 {
		return ""
	}
	mediaType, _, _ := strings.Cut(values[0], ";")
	return strings.TrimSpace(mediaType)
}

// contentEncoding returns the coding that the values of a Content-Encoding
// header name, "" for none, and whether it is one that can be decoded.
func contentEncoding(values []string) (coding string, known bool) {
	switch {
	case len(values) == 0:
		return "", true
	case len(values) > 1:
		return "", false
	}
	switch strings.ToLower(strings.TrimSpace(values[0])) {
	case "", "identity":
		return "", true
	case "gzip", "x-gzip":
		return "gzip", true
	default:
		return "", false
	}
}
