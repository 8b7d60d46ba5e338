package proxy

import (
	"net/http"
	"time"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/proxy/explain"
	"github.com/akin-search/akin/proxy/wire"
)

// explanationHeader names, in the answer of a search that asked for it, the
// record that the admin port shows.
const explanationHeader = "X-Akin-Explanation"

// record keeps what became of a search and notes the name of that. Where res is
// nil, the search failed open for the cause.
func (s *Server) record(x *search, r *http.Request, took time.Duration, res *expand.Result, cause string) {
	coding, _ := wire.ContentEncoding(r.Header)
	kept := &explain.Search{
		Endpoint: x.endpoint, Index: x.index, Profile: x.control.profile, Took: took,
		Original: explain.Message{RawQuery: x.rawQuery, Body: x.body.raw}, Packed: coding != "",
		Result: res, Cause: cause, AsItCame: x.control.dryRun || s.opts.Shadow > 0,
	}
	if res != nil {
		s.metrics.clauses(res)
		kept.Reason = reasonOf(res)
	}
	if id := s.explanations.Add(kept); id != "" {
		x.id = id
	}
}

// recordLeft keeps why a search was left alone whose client wants to know.
func (s *Server) recordLeft(x *search, r *http.Request, why string) {
	if x.control.asks() {
		s.record(x, r, 0, &expand.Result{Reason: reason.Reason(why)}, "")
	}
}

// mark names the record of a search in its answer, where the client asked for
// that.
func (*Server) mark(x *search, res *http.Response) {
	if x.id != "" && x.control.asks() {
		res.Header.Set(explanationHeader, x.id)
	}
}
