package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/proxy/answer"
	"github.com/akin-search/akin/proxy/report"
)

// Bounds of what is read of an answer that streams on.
const (
	// maxRefusal is what is read of a rejection, maxLooked of another answer for
	// shards that failed: identifiers of several kilobytes may come before them.
	maxRefusal = 64 << 10
	maxLooked  = 64 << 10
)

// errUnchecked says that an answer cannot be looked at.
var errUnchecked = errors.New("no JSON, or in a coding that is not known")

// readRefusal reads what an answer with a status of 4xx or 5xx says, and puts
// it back.
func (s *Server) readRefusal(x *search, res *http.Response) (refused *answer.Failure) {
	strict := x.rewritten != nil && x.rewritten.strict
	if s.peek(x, res, maxRefusal, func(r io.Reader) error {
		refused = answer.ReadRefusal(r, res.StatusCode, strict)
		return nil
	}) != nil {
		refused = &answer.Failure{Status: res.StatusCode, Busy: answer.IsBusy(res.StatusCode, nil), Whole: true, Search: answer.UnknownSearch}
	}
	return refused
}

// tellsOfBlock reports whether an answer of status 403 tells of a block, and
// not of a client's rights. In YAML, CBOR and SMILE, too, types of errors stand
// in plain text.
func (s *Server) tellsOfBlock(x *search, res *http.Response) bool {
	if answer.IsJSON(res.Header["Content-Type"]) {
		return s.readRefusal(x, res).Blocks()
	}
	var text []byte
	err := s.peek(x, res, maxRefusal, func(r io.Reader) (err error) {
		text, err = io.ReadAll(r)
		return err
	})
	return err == nil && bytes.Contains(text, []byte("cluster_block_exception"))
}

// showsSecurity reports whether the answer to a request that is no search shows
// that the cluster has security: a 401, or a 403 that tells of something else
// than a block. Of a 403 it reads what comes first, and puts it back; one
// without a body may be a block.
func (s *Server) showsSecurity(res *http.Response) bool {
	if res.StatusCode != http.StatusForbidden {
		return res.StatusCode == http.StatusUnauthorized
	}
	first := make([]byte, 4<<10)
	n, _ := res.Body.Read(first) // an error comes again
	text := first[:n]
	res.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(text), res.Body), res.Body}
	if coding, _ := answer.ContentEncoding(res.Header); coding != "" {
		_ = s.gunzip.With(bytes.NewReader(text), func(r io.Reader) error { // only the beginning of it may be here
			text, _ = io.ReadAll(io.LimitReader(r, maxRefusal))
			return nil
		})
	}
	return len(text) > 0 && !bytes.Contains(text, []byte("cluster_block_exception"))
}

// peek has the beginning of an answer read, at most limit bytes, decompressed
// as many, and puts all of it back.
func (s *Server) peek(x *search, res *http.Response, limit int64, read func(io.Reader) error) error {
	coding, known := answer.ContentEncoding(res.Header)
	if !known {
		return errUnchecked
	}
	return x.client.Peek(s.opts.Memory, res, limit, func(r io.Reader) error {
		if coding == "" {
			return read(r)
		}
		return s.gunzip.With(r, func(r io.Reader) error { return read(io.LimitReader(r, limit)) })
	})
}

// backsOff returns why a search is not rewritten, since the cluster recently
// refused others that were, "" where it is.
func (s *Server) backsOff(x *search) (why string) {
	paused := false
	switch {
	case s.wasRejected(x):
		return reasonRejected
	case !x.control.dryRun: // else no rewritten search is sent
		x.ticket, paused = s.pause.enter()
	}
	if paused {
		return reasonPaused
	}
	return ""
}

// sendsOriginal decides whether the original of a rejected search is sent, to
// an overloaded cluster only within the retry budget, or where the search is
// the trial of a pause.
func (s *Server) sendsOriginal(ctx context.Context, x *search, r *answer.Failure) bool {
	if answer.IsDenied(r.Status) || r.Busy && x.ticket == 0 && !s.upstream.MayRepeat() {
		x.report.Fallback = originalNotSent
		if r.Busy && r.Whole {
			s.pause.refused(ctx, s.log, x.ticket, r, originalNotSent)
		}
		return false
	}
	return true
}

// originalAnswered notes the answer to the original of a rejected search.
func (s *Server) originalAnswered(ctx context.Context, x *search, r *answer.Failure, res *http.Response, err error) {
	taken := err == nil && res.StatusCode < http.StatusBadRequest
	if taken {
		failed, _ := s.verdict(x, res) // one that cannot be looked at counts as good
		taken = failed == nil
	}
	s.refused(ctx, x, taken, r)
}

// refused notes that the cluster rejected a rewritten search, and whether it
// accepted the original. Where it did not, the mistake is the client's, and
// nothing is learned from it.
func (s *Server) refused(ctx context.Context, x *search, taken bool, r *answer.Failure) {
	x.report.Refused = true
	s.log.DebugContext(ctx, "the cluster rejected a rewritten search", "index", x.index, "status", r.Status,
		"busy", r.Busy, "original_accepted", taken)
	original := originalRejected
	if taken {
		original = originalAccepted
	}
	x.report.Fallback = original
	if r.Busy && r.Whole {
		s.pause.refused(ctx, s.log, x.ticket, r, original)
	}
	if !taken {
		return
	}
	if x.shadow == nil { // else no client has felt it
		x.report.Fail(ctx, report.Failure{What: failedSearch, Cause: causeRejected})
	}
	if r.Busy || answer.IsDenied(r.Status) {
		return
	}
	news := s.opts.OnRefused != nil &&
		s.opts.OnRefused(&expand.Refusal{Index: x.rewritten.indexOf(x.index, r.Search), ClauseCount: x.rewritten.ClauseCount, Causes: r.Causes})
	if !news { // the next one like it would probably be refused, too
		s.shapes.failure(s.shapeOf(x))
	}
}

// accepted notes that the cluster accepted a rewritten search.
func (s *Server) accepted(ctx context.Context, x *search) {
	s.pause.accepted(ctx, s.log, x.ticket)
	if s.shapes.count.Load() > 0 {
		s.shapes.reset(s.shapeOf(x))
	}
}

// indexOf returns the index expression of the k-th search of a request whose
// path has the one given. Where it is not known which of several differing ones
// it is, that is "": a search of all indices goes to that one, too.
func (w *rewrittenSearch) indexOf(path string, k int) string {
	all := slices.Compact(slices.Clone(w.Indices))
	switch {
	case len(all) == 0:
		return path
	case k >= 0 && k < len(w.Indices):
		return w.Indices[k]
	case len(all) > 1:
		return ""
	}
	return all[0]
}

// rewrote reports whether the k-th search of a request with several is another
// than the client's: something was added, or it asks for other hits.
func (w *rewrittenSearch) rewrote(k int) bool {
	if k < len(w.Reranks) && w.Reranks[k] != nil {
		return true
	}
	prefix := "[" + strconv.Itoa(k) + "]"
	return slices.ContainsFunc(w.Clauses, func(c expand.Explanation) bool { return c.Form != "" && strings.HasPrefix(c.Path, prefix) })
}
