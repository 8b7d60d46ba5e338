// Package proxy sits between clients and the search cluster. It has an
// [Expander] rewrite searches, and forwards everything else.
//
// Two rules hold everywhere. Requests that are not recognized as searches
// stream through unchanged: path, raw query, headers (except akin's own) and
// both bodies. They also stream through unread, but for the beginning of ES|QL
// queries, which are counted. And if akin fails on a search, the client's
// original bytes go to the cluster.
//
// routes.go lists the requests that are recognized.
package proxy

import (
	"context"
	"maps"
	"net/http"
	"time"

	"github.com/akin-search/akin/internal/limits"
	"github.com/akin-search/akin/internal/tracing"
	"github.com/akin-search/akin/proxy/report"
)

// New returns a server. It panics if the registry has metrics of the same
// names.
func New(o Options) *Server {
	s := &Server{
		opts: o, log: o.Logger, guard: o.Guard, upstream: o.Nodes,
		bodyGrace: limits.BodyGrace, answerGrace: limits.AnswerGrace,
		unrerankable: newBackoffs(1), shapes: newBackoffs(maxFailures),
		shadows: newBackground(), clearing: newBackground(), following: newFollower(), cause: causeOf(o.Cause),
	}
	s.tokens.log = o.Logger
	s.opts.Previous = nil // else no old server would ever be freed
	if p := o.Previous; p != nil {
		s.registry = p.registry
		s.metrics = p.metrics
		s.explanations = p.explanations
		s.health = p.health
		s.pause = p.pause
	} else {
		hints := maps.Clone(ownHints)
		maps.Copy(hints, o.Causes)
		s.registry, s.explanations = o.Registry, &report.Ring{}
		s.metrics = report.NewMetrics(o.Registry, knownValues(o.Causes))
		s.health = report.NewHealth(o.Registry, o.Logger, hints)
		s.pause = newPause(o.Registry)
	}
	for i := range o.Trials {
		for _, arm := range o.Trials[i].Arms { // so that the series exists before the first search
			s.metrics.Trials.WithLabelValues(o.Trials[i].Name, arm)
		}
	}
	s.calls = &calls{upstream: o.Nodes, memory: o.Memory}
	s.calls.secured.Store(o.Secured || o.Previous != nil && o.Previous.calls.secured.Load())
	s.access = newAccess(s.calls, s.guard, s.log, s.metrics.Authorizing)
	s.judge = judge{memory: s.opts.Memory, gunzip: &s.gunzip}
	s.feedback = feedback{terms: o.HitTerms, guard: s.guard, places: limits.NewPlaces(maxFirstPasses), cause: s.cause}
	s.reranking = reranking{reranker: o.Reranker, budget: o.RerankBudget, guard: s.guard, cause: s.cause, log: s.log}
	s.transport = s.upstream
	s.buffers.New = func() any { return new([copyBufferSize]byte) }
	s.collecting = s.newCollecting(o.Collect)
	s.router = newRouter(s.takeSearch, s.passThrough)
	s.proxy = tracing.Handler(relayed(s.serve, s.guard, s.metrics, o.Tracer != nil, o.AccessLog), o.Tracer)
	s.admin = s.adminEngine()
	return s
}

// Handler returns the handler of the proxy's listener.
func (s *Server) Handler() http.Handler { return s.proxy }

// AdminHandler returns the admin listener's, which shows texts of searches.
func (s *Server) AdminHandler() http.Handler { return s.admin }

// serve answers a client's request: gin calls takeSearch or passThrough.
// Panics go to net/http: [http.ErrAbortHandler] must cut the client's
// connection, or a broken answer would look complete.
func (s *Server) serve(w *relay, r *http.Request) {
	if r.ProtoMajor != 1 { // the HTTP/2 preface, which net/http leaves to its handler
		writeError(w, http.StatusHTTPVersionNotSupported, "akin_request_exception", "akin speaks HTTP/1.1")
		return
	}
	if !s.opts.Clients.admit(r) {
		s.metrics.Unauthorized.Inc()
		w.Header()["Www-Authenticate"] = s.opts.Clients.challenge()
		writeError(w, http.StatusUnauthorized, "akin_unauthorized_exception", "akin asks for its own user name and password, or its API key")
		return
	}
	if s.opts.Signs && takeSignature(r) {
		s.metrics.Signatures.Inc()
	}
	dispatch(s.router, w, r)
}

// takeSearch answers a search. The context names the client from here on.
func (s *Server) takeSearch(w *relay, r *http.Request, m match) {
	w.search = true
	s.search(w, r.WithContext(context.WithValue(r.Context(), clientKey{}, limits.Client(r.RemoteAddr))), m)
}

// passThrough forwards a request that is not a search.
func (s *Server) passThrough(w *relay, r *http.Request) {
	s.metrics.PassedThrough.Inc()
	t := s.depart(w, r)
	defer t.end()
	if isESQL(r) && t.out.Body != nil {
		t.lent.Reader = &esqlReader{Reader: t.lent.Reader, found: s.metrics.ESQL.Inc}
	}
	sent := time.Now()
	res, err := s.transport.RoundTrip(markSafe(t.out, s.upstream, false))
	w.followed.Note(report.PassedThrough, "", time.Since(sent))
	if err == nil && s.judge.showsSecurity(res) {
		s.access.secure(r.Context(), res.StatusCode)
	}
	s.answer(w, r, t, res, err)
}

// Close stops background work. Clients' requests are still forwarded.
func (s *Server) Close() {
	s.shadows.close()
	s.clearing.close()
	s.following.background.close()
	s.collecting.close()
	s.access.close()
	s.tokens.flush()
	s.upstream.Close()
}
