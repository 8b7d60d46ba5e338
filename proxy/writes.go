package proxy

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/akin-search/akin/internal/budget"
)

// Defaults of [Options] for writes.
const (
	// DefaultWriteBudget is the time that akin takes for its own work on a write.
	DefaultWriteBudget = time.Second
	// DefaultMaxWriteBody is the size of the largest body of a write that is read.
	DefaultMaxWriteBody = 20 << 20
)

// A Write is a request that writes documents. Fields that say nothing are
// "".
type Write struct {
	// Bulk says that Body is the lines of a bulk request, Update that it is an
	// update; else it is a document.
	Bulk, Update bool
	// Index is the name of an index or an alias, unescaped, ID and Routing are the
	// document's; with Bulk they are for those lines that do not say their own.
	Index, ID, Routing string
	// Pipeline and VersionType are the parameters of the request.
	Pipeline, VersionType string
	// Body is the body, decompressed, nil where it was not read.
	Body []byte
}

// Written is what becomes of a [Write].
type Written struct {
	// Body is the new body, nil where the write goes on as it came.
	Body []byte
	// Documents are the numbers of documents by what becomes of them, in one or
	// two words from a fixed small set: they label metrics.
	Documents map[string]int
	// Done, unless nil, is called once the client has the cluster's answer, or it
	// is clear that there will be none. It returns more numbers as in Documents,
	// for what has turned out only now.
	Done func(a WriteAnswer) map[string]int
}

// A WriteAnswer is the cluster's answer to a write.
type WriteAnswer struct {
	// Status is 0 where there was none.
	Status int
	// Original says that the cluster refused the new body as a whole, and that
	// this is its answer to the write as it came.
	Original bool
	// Beginning is what the answer to a bulk request with a new body begins with,
	// at most 64 KiB, decompressed.
	Beginning []byte
}

// Norms puts the norms of documents into them on their way to the cluster.
// The norms package implements it.
type Norms interface {
	// Write returns what becomes of w, until ctx ends at the latest. An error
	// means that something failed: then a part of the documents has norms at
	// most, and with nil the original goes to the cluster. It must not modify w.
	Write(ctx context.Context, w *Write) (*Written, error)
}

// What is done with writes, values of the label "result" beside the reasons
// to leave a body alone and the causes of failures.
const (
	writeChanged   = "changed"   // norms were put in
	writeUnchanged = "unchanged" // none of its documents is to have norms
	writeBusy      = "busy"      // other requests take all the memory
	writeEmpty     = "no_body"   // there is none
)

// A writeRoute is a row of the table of writes.
type writeRoute struct {
	methods []string
	// shape is as that of a [route].
	shape        string
	bulk, update bool
}

// putOrPost are the methods of most writes.
var putOrPost = []string{http.MethodPut, http.MethodPost}

// writeRoutes lists the writes whose documents get norms. Not here are the
// paths with a mapping type, which only Elasticsearch 7 has, _reindex and
// _update_by_query, which name no document: a backfill does those.
var writeRoutes = []writeRoute{
	{putOrPost, "/{index}/_doc/{id}", false, false},
	{post, "/{index}/_doc", false, false},
	{putOrPost, "/{index}/_create/{id}", false, false},
	{post, "/{index}/_update/{id}", false, true},
	{putOrPost, "/_bulk", true, false},
	{putOrPost, "/{index}/_bulk", true, false},
}

// recogniseWrite returns what a request writes, false where it writes
// nothing that is in the table.
func recogniseWrite(method, escapedPath, rawQuery string) (*Write, bool) {
	path := strings.TrimRight(escapedPath, "/")
	slashes := strings.Count(path, "/")
	for i := range writeRoutes {
		r := &writeRoutes[i]
		if strings.Count(r.shape, "/") != slashes || !slices.Contains(r.methods, method) {
			continue
		}
		w, ok := r.fit(path)
		if !ok {
			continue
		}
		cutParameters(rawQuery, func(name, value string) bool {
			switch name {
			case "routing":
				w.Routing = value
			case "pipeline":
				w.Pipeline = value
			case "version_type":
				w.VersionType = value
			}
			return false
		})
		return w, true
	}
	return nil, false
}

// fit compares path with the shape, which has as many slashes.
func (r *writeRoute) fit(path string) (*Write, bool) {
	w := &Write{Bulk: r.bulk, Update: r.update}
	ok := fits(r.shape, path, func(place, segment string) (ok bool) {
		switch place {
		case "{index}":
			w.Index, ok = indexOf(segment)
		case "{id}":
			id, err := url.PathUnescape(segment)
			w.ID, ok = id, err == nil && id != ""
		}
		return ok
	})
	return w, ok
}

// write forwards a write, with norms in its documents where that is
// possible.
func (s *Server) write(w http.ResponseWriter, r *http.Request, what *Write) {
	wr := &writing{bulk: what.Bulk}
	r = r.WithContext(context.WithValue(r.Context(), writingKey{}, wr)) // a copy, to change
	held := s.opts.Memory.Hold(budget.WriteBody, clientOf(r.RemoteAddr))
	defer held.Release()
	reason, err := s.readWrite(w, r, what, wr, held)
	if err != nil { // the request itself is broken: there is nothing to forward
		writeError(w, http.StatusBadRequest, "akin_request_exception", "the body of the request broke off")
		return
	}
	written := s.putNorms(r, what, wr, reason)
	if written != nil {
		held.Add(int64(len(written.Body)))
	}
	if written != nil && written.Done != nil {
		defer func() { // also of a client that goes away
			_ = s.guard.Do("counting written documents", func() error {
				s.countDocuments(written.Done(wr.answer(s)))
				return nil
			})
		}()
	}
	s.send(w, r)
}

func (s *Server) countDocuments(documents map[string]int) {
	for what, n := range documents {
		s.metrics.normDocuments.WithLabelValues(what).Add(float64(n))
	}
}

// putNorms has the norms put into a write and changes r to it. reason is why
// the body was not read, "" where it was.
func (s *Server) putNorms(r *http.Request, what *Write, wr *writing, reason string) *Written {
	start := time.Now()
	written, err := s.callNorms(r.Context(), what)
	s.metrics.normTime.Observe(time.Since(start).Seconds())
	if written == nil {
		written = &Written{}
	}
	switch {
	case err != nil:
		cause := s.cause(err)
		s.log.DebugContext(r.Context(), "a write has no norms", "index", what.Index, "cause", cause, "err", err)
		s.metrics.normWrites.WithLabelValues(cause).Inc()
		s.writeFailedOpen(r.Context(), cause, what.Index)
	case reason != "":
		s.metrics.normWrites.WithLabelValues(reason).Inc()
		if reason == writeBusy {
			s.writeFailedOpen(r.Context(), reason, what.Index)
		}
	case written.Body == nil:
		s.metrics.normWrites.WithLabelValues(writeUnchanged).Inc()
	default:
		s.metrics.normWrites.WithLabelValues(writeChanged).Inc()
	}
	if written.Body != nil && reason == "" {
		wr.changed, wr.encoding, wr.length = true, r.Header["Content-Encoding"], r.ContentLength
		r.Header = r.Header.Clone()
		r.Header.Del("Content-Encoding")
		r.ContentLength, r.TransferEncoding = int64(len(written.Body)), nil
		r.Body = io.NopCloser(bytes.NewReader(written.Body))
	}
	s.countDocuments(written.Documents)
	return written
}

// callNorms calls the norms within the budget. A panic is caught here: a
// write must not be lost to a mistake of ours.
func (s *Server) callNorms(ctx context.Context, what *Write) (written *Written, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.WriteBudget)
	defer cancel()
	err = s.guard.Do("computing norms", func() (err error) {
		written, err = s.opts.Norms.Write(ctx, what)
		return err
	})
	return written, err
}

// readWrite reads the body of a write into what.Body, decompressed, and as it
// came into wr, or returns why it did not; r is left such that the write will
// go on as it came. An error says that the client's body broke off.
func (s *Server) readWrite(
	w http.ResponseWriter, r *http.Request, what *Write, wr *writing, held *budget.Hold,
) (reason string, err error) {
	types := r.Header["Content-Type"]
	encoding, known := contentEncoding(r.Header["Content-Encoding"])
	readable := isJSON(types) || what.Bulk && isLines(types)
	limit := s.opts.MaxWriteBody
	switch {
	case r.ContentLength == 0:
		what.Body = []byte{} // the cluster refuses it
		return writeEmpty, nil
	case !readable:
		return reasonContentType, nil
	case !known:
		return reasonEncoding, nil
	case r.ContentLength > limit:
		return reasonTooLarge, nil
	}
	const never = 0 // a bulk load may take as long as it does
	raw, reason, err := takeBody(r, newArriving(w, r, s.bodyGrace, never), held, limit)
	if err != nil || reason != "" {
		return writeReason(reason), err
	}
	// Without GetBody the transport never sends it twice.
	r.Body = io.NopCloser(bytes.NewReader(raw))
	r.Header = r.Header.Clone()
	r.Header.Del("Expect") // met already: the body is here
	what.Body, wr.original = raw, raw
	if encoding == "gzip" {
		what.Body, reason = s.decompress(raw, held, limit)
	}
	return writeReason(reason), nil
}

// writeReason returns the reason to leave a search alone as one of a write.
func writeReason(reason string) string {
	if reason == reasonMemory {
		return writeBusy
	}
	return reason
}
