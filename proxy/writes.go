package proxy

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// Defaults of [Options] for writes.
const (
	// DefaultWriteBudget is the time that akin takes for its own work on a write.
	DefaultWriteBudget = time.Second
	// DefaultMaxWriteBody is the size of the largest body of a write that is read.
	DefaultMaxWriteBody = 20 << 20
)

// writesAtOnce times [Options.MaxWriteBody] bytes of bodies are held at
// most.
const writesAtOnce = 8

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
	// Done, unless nil, is called once the client has the cluster's answer, with
	// its status; it is not called where there is none.
	Done func(status int)
}

// Norms puts the norms of documents into them on their way to the cluster.
// The norms package implements it.
type Norms interface {
	// Write returns what becomes of w, until ctx ends at the latest. An error
	// means that something failed: then the original goes to the cluster, and
	// what is returned beside it, unless nil, has no body. It must not modify w.
	Write(ctx context.Context, w *Write) (*Written, error)
}

// What is done with writes, values of the label "result" beside the reasons
// to leave a body alone and the causes of failures.
const (
	writeChanged   = "changed"   // norms were put in
	writeUnchanged = "unchanged" // none of its documents is to have norms
	writeBusy      = "busy"      // the bodies of other writes take all the memory
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
	for shape := r.shape; shape != ""; {
		var want, got string
		want, shape = cutSegment(shape)
		got, path = cutSegment(path)
		ok := want == got
		switch want {
		case "{index}":
			w.Index, ok = indexOf(got)
		case "{id}":
			id, err := url.PathUnescape(got)
			w.ID, ok = id, err == nil && id != ""
		}
		if !ok {
			return nil, false
		}
	}
	return w, true
}

// A writing is what is known of a write while it is forwarded.
type writing struct{ status int }

type writingKey struct{}

// A writeTransport notes the status of the answers to writes.
type writeTransport struct{ next http.RoundTripper }

// RoundTrip sends out.
func (t *writeTransport) RoundTrip(out *http.Request) (*http.Response, error) {
	res, err := t.next.RoundTrip(out)
	if wr, ok := out.Context().Value(writingKey{}).(*writing); ok && err == nil {
		wr.status = res.StatusCode
	}
	return res, err
}

// write forwards a write, with norms in its documents where that is
// possible.
func (s *Server) write(w http.ResponseWriter, r *http.Request, what *Write) {
	wr := &writing{}
	r = r.WithContext(context.WithValue(r.Context(), writingKey{}, wr)) // a copy, to change
	held, reason, err := s.readWrite(r, what)
	defer s.writing.Add(-held)
	if err != nil { // the request itself is broken: there is nothing to forward
		writeError(w, http.StatusBadRequest, "akin_request_exception", "the body of the request broke off")
		return
	}
	written := s.putNorms(r, what, reason)
	defer func() { // of a client that goes away, too
		if written != nil && written.Done != nil && wr.status != 0 {
			written.Done(wr.status)
		}
	}()
	s.send(w, r)
}

// putNorms has the norms put into a write and changes r to it. reason is why
// the body was not read, "" where it was.
func (s *Server) putNorms(r *http.Request, what *Write, reason string) *Written {
	start := time.Now()
	written, err := s.callNorms(r.Context(), what)
	s.metrics.normTime.Observe(time.Since(start).Seconds())
	switch {
	case err != nil:
		cause := s.cause(err)
		s.log.DebugContext(r.Context(), "a write has no norms", "index", what.Index, "cause", cause, "err", err)
		s.metrics.normWrites.WithLabelValues(cause).Inc()
	case reason != "":
		s.metrics.normWrites.WithLabelValues(reason).Inc()
	case written == nil || written.Body == nil:
		s.metrics.normWrites.WithLabelValues(writeUnchanged).Inc()
	default:
		s.metrics.normWrites.WithLabelValues(writeChanged).Inc()
		r.Header = r.Header.Clone()
		r.Header.Del("Content-Encoding")
		r.ContentLength, r.TransferEncoding = int64(len(written.Body)), nil
		r.Body = io.NopCloser(bytes.NewReader(written.Body))
	}
	if written == nil {
		return nil
	}
	for what, n := range written.Documents {
		s.metrics.normDocuments.WithLabelValues(what).Add(float64(n))
	}
	return written
}

// callNorms calls the norms within the budget. A panic is caught here: a
// write must not be lost to a mistake of ours.
func (s *Server) callNorms(ctx context.Context, what *Write) (written *Written, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.WriteBudget)
	defer cancel()
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		written, err = nil, errPanic
		text := fmt.Sprintf("%T", v) // the value may hold a document's text
		if e, ok := v.(runtime.Error); ok {
			text = e.Error()
		}
		s.log.ErrorContext(ctx, "panic while norms were computed", "panic", text, "stack", string(debug.Stack()))
	}()
	return s.opts.Norms.Write(ctx, what)
}

// readWrite reads the body of a write into what.Body, decompressed, or
// returns why it did not; r is left such that the write will go on as it
// came. held is what the body counts for until the answer is there. An error
// says that the client's body broke off.
func (s *Server) readWrite(r *http.Request, what *Write) (held int64, reason string, err error) {
	types := r.Header["Content-Type"]
	encoding, known := contentEncoding(r.Header["Content-Encoding"])
	readable := isJSON(types) || what.Bulk && isLines(types)
	limit := s.opts.MaxWriteBody
	switch {
	case r.ContentLength == 0:
		return 0, reasonContentType, nil // the cluster refuses it
	case !readable:
		return 0, reasonContentType, nil
	case !known:
		return 0, reasonEncoding, nil
	case r.ContentLength > limit:
		return 0, reasonTooLarge, nil
	}
	held = r.ContentLength
	if held < 0 || encoding != "" {
		held = limit // as much as it may become
	}
	if s.writing.Add(held) > writesAtOnce*limit {
		return held, writeBusy, nil
	}
	raw, err := readUpTo(r.Body, min(r.ContentLength, limit), limit+1)
	if err != nil {
		return held, "", err
	}
	if int64(len(raw)) > limit {
		r.Body = resumed{io.MultiReader(bytes.NewReader(raw), r.Body), r.Body}
		return held, reasonTooLarge, nil
	}
	// Without GetBody the transport never sends it twice.
	r.Body = io.NopCloser(bytes.NewReader(raw))
	r.Header = r.Header.Clone()
	r.Header.Del("Expect") // met already: the body is here
	what.Body = raw
	if encoding == "gzip" {
		what.Body, reason = s.decompress(raw, limit)
	}
	return held, reason, nil
}
