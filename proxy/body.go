package proxy

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/akin-search/akin/expand"
)

// Reasons to leave a search alone that lie in its body's envelope.
const (
	reasonContentType = "content_type"     // neither JSON nor, where that is asked for, lines of JSON
	reasonEncoding    = "content_encoding" // neither plain nor sound gzip
	reasonTooLarge    = "body_too_large"   // before or after decompression
)

// firstRead is the most that is set aside for a body before it is there.
const firstRead = 16 << 10

// readBody reads the body of a search and returns it decompressed, or the
// reason why the search is to be forwarded as it came; r and ex are left such
// that it will be. An error says that the client's body broke off.
func (s *Server) readBody(r *http.Request, ex *exchange) (body []byte, reason string, err error) {
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
	raw, err := readUpTo(r.Body, min(r.ContentLength, firstRead), s.opts.MaxBody+1)
	if err != nil {
		return nil, "", err
	}
	if int64(len(raw)) > s.opts.MaxBody {
		r.Body = resumed{io.MultiReader(bytes.NewReader(raw), r.Body), r.Body}
		return nil, reasonTooLarge, nil
	}
	ex.read, ex.original = true, raw
	switch {
	case len(raw) == 0:
		return nil, "", nil
	case len(types) == 0:
		return nil, reasonContentType, nil
	case encoding == "gzip":
		body, reason = s.decompress(raw, s.opts.MaxBody)
		return body, reason, nil
	default:
		return raw, "", nil
	}
}

// resumed is a body of which the first bytes were read and put back.
type resumed struct {
	io.Reader
	io.Closer
}

// readUpTo reads at most limit bytes of r, which is expected to hold size; a
// negative size says nothing.
func readUpTo(r io.Reader, size, limit int64) ([]byte, error) {
	var buf bytes.Buffer
	buf.Grow(int(max(size, 0)) + bytes.MinRead)
	_, err := buf.ReadFrom(io.LimitReader(r, limit))
	return buf.Bytes(), err
}

// decompress returns the content of a gzip stream, or the reason why there is
// none: it is broken, or larger than limit.
func (s *Server) decompress(raw []byte, limit int64) (body []byte, reason string) {
	return s.decompressThrough(raw, limit, func(gz io.Reader) io.Reader { return gz })
}

// decompressThrough is decompress by what through returns of the reader, whose
// errBusy is a reason, too.
func (s *Server) decompressThrough(raw []byte, limit int64, through func(io.Reader) io.Reader) (body []byte, reason string) {
	gz := s.gzipReader()
	defer s.gunzip.Put(gz)
	if err := gz.Reset(bytes.NewReader(raw)); err != nil {
		return nil, reasonEncoding
	}
	body, err := readUpTo(through(gz), min(4*int64(len(raw)), firstRead), limit+1)
	switch {
	case errors.Is(err, errBusy):
		return nil, writeBusy
	case err != nil:
		return nil, reasonEncoding
	case int64(len(body)) > limit:
		return nil, reasonTooLarge
	}
	return body, ""
}

// gzipReader returns a reader to be reset and then put into s.gunzip.
func (s *Server) gzipReader() *gzip.Reader {
	if gz, ok := s.gunzip.Get().(*gzip.Reader); ok {
		return gz
	}
	return new(gzip.Reader)
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
