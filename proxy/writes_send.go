package proxy

import (
	"bytes"
	"io"
	"net/http"
	"slices"
)

// maxBeginning is how much of the answer to a bulk request is kept.
const maxBeginning = 64 << 10

// A writing is what is known of a write while it is forwarded.
type writing struct {
	bulk bool
	// changed says that the body is a new one; original is it as it came, encoding
	// and length are what its headers say of it.
	changed  bool
	original []byte
	encoding []string
	length   int64
	// status is that of the answer, 0 for none, and again says that it is the
	// answer to the original, after the cluster had refused the new body.
	status int
	again  bool
	// beginning is what the answer begins with, in its coding.
	beginning bytes.Buffer
	coding    []string
}

type writingKey struct{}

// refused reports whether a status says that the new body, as a whole, was not
// taken: of a document, or one that has become too long. Nothing is written
// twice then.
func (wr *writing) refused(status int) bool {
	return wr.changed && (status == http.StatusRequestEntityTooLarge || status == http.StatusBadRequest && !wr.bulk)
}

// asItCame returns out with the original body.
func (wr *writing) asItCame(out *http.Request) *http.Request {
	original := out.Clone(out.Context())
	original.ContentLength = wr.length
	original.Body = io.NopCloser(bytes.NewReader(wr.original))
	if len(wr.encoding) > 0 {
		original.Header["Content-Encoding"] = slices.Clone(wr.encoding)
	}
	return original
}

// answer returns what is known of the answer.
func (wr *writing) answer(s *Server) WriteAnswer {
	a := WriteAnswer{Status: wr.status, Original: wr.again, Beginning: wr.beginning.Bytes()}
	if encoding, _ := contentEncoding(wr.coding); encoding == "gzip" {
		gz := s.gzipReader()
		defer s.putGzip(gz)
		a.Beginning = nil
		if gz.Reset(&wr.beginning) == nil {
			a.Beginning, _ = readUpTo(gz, 0, maxBeginning) // what there is of it
		}
	}
	return a
}

// A writeTransport sends writes and notes their answers. Where the cluster
// refuses one for its norms it sends the original.
type writeTransport struct {
	server *Server
	next   http.RoundTripper
}

// RoundTrip sends out.
func (t *writeTransport) RoundTrip(out *http.Request) (*http.Response, error) {
	wr, ok := out.Context().Value(writingKey{}).(*writing)
	if !ok {
		return t.next.RoundTrip(out)
	}
	res, err := t.next.RoundTrip(out)
	if err == nil && wr.refused(res.StatusCode) {
		_, _ = io.CopyN(io.Discard, res.Body, maxDrained) // to its end, if that is near: the connection can be used again
		_ = res.Body.Close()
		wr.again = true
		res, err = t.next.RoundTrip(wr.asItCame(out))
		taken := err == nil && res.StatusCode < http.StatusBadRequest
		t.server.metrics.refusedWrite(taken)
		if taken {
			t.server.writeFailedOpen(out.Context(), causeRefused, "")
		}
	}
	if err != nil {
		return nil, err
	}
	wr.status = res.StatusCode
	if wr.changed && wr.bulk && !wr.again {
		wr.coding = res.Header["Content-Encoding"]
		res.Body = &notedBody{res.Body, &wr.beginning}
	}
	return res, nil
}

// A notedBody keeps what it begins with.
type notedBody struct {
	io.ReadCloser

	beginning *bytes.Buffer
}

// Read reads.
func (b *notedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.beginning.Write(p[:min(n, maxBeginning-b.beginning.Len())])
	return n, err
}
