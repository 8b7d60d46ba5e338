package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/internal/budget"
	"github.com/akin-search/akin/internal/nodes"
	"github.com/akin-search/akin/internal/recovery"
)

// Reasons of the proxy's own to leave a search alone; the expander has more.
const (
	reasonNothing     = "nothing_added"  // the expander gave no reason
	reasonRankEvalOff = "rank_eval_off"  // [Options.RankEval] is not set
	reasonTemplateOff = "templates_off"  // [Options.Templates] is not set
	reasonTypedPath   = "typed_path"     // the cluster has no mapping types, or does not say so
	reasonFilterPath  = "filter_path"    // the answer would not show that the search failed
	reasonFormat      = "answer_format"  // the answer would tell of it in another format than JSON
	reasonDryRun      = "dry_run"        // the client asked for it
	reasonShadow      = "shadow"         // [Options.Shadow] is set
	reasonRefused     = "refused_before" // the cluster refused a search of the same shape of late
)

// An exchange is what the proxy knows of a search while it is forwarded.
type exchange struct {
	endpoint expand.Endpoint
	index    string
	// rawQuery is the query string without akin's own parameters.
	rawQuery string
	// read says that original is the whole body as it came; else the body is
	// still to be read from the request.
	read     bool
	original []byte
	// arriving is the body where it is read here; client is who sent it, held
	// what memory it takes, and conn his connection.
	arriving *arriving
	client   string
	held     *budget.Hold
	conn     *http.ResponseController
	// rewritten is what is sent first, or as a shadow; nil for the original alone.
	rewritten *expand.Result
	// shadow is what runs after the client has the answer to the original, nil
	// for nothing.
	shadow *shadowed
	// filtered says that the answer shows what failed, but not of which search.
	filtered bool
	// strict says that the cluster refuses the rewritten search where a shard
	// fails, so that its status tells all.
	strict bool
	// control is what the client asks of akin.
	control control
	// failedOpen says that something of it failed open.
	failedOpen bool
	// scrollID names the scroll that the answer to the rewritten search opened, ""
	// for none.
	scrollID string
	// asked are the questions whether the client may search.
	asked *accessKeys
	// took is the time of akin's own work, record names the explanation.
	took   time.Duration
	record string
}

type exchangeKey struct{}

// exchangeOf returns the exchange of a search, nil for other requests.
func exchangeOf(ctx context.Context) *exchange {
	ex, _ := ctx.Value(exchangeKey{}).(*exchange)
	return ex
}

// search forwards a search, rewritten where that is possible.
func (s *Server) search(w http.ResponseWriter, r *http.Request, m match) {
	ex := &exchange{
		endpoint: m.endpoint, index: m.index, asked: new(accessKeys), client: clientOf(r.RemoteAddr), conn: http.NewResponseController(w),
	}
	defer s.searched(ex)
	ex.held = s.opts.Memory.Hold(budget.SearchBody, ex.client)
	defer func() {
		ex.held.Release()
		ex.arriving.free()
	}()
	r = r.WithContext(context.WithValue(r.Context(), exchangeKey{}, ex))
	ex.rawQuery, ex.control = cutControl(r.URL.RawQuery, r.Header)
	expander, why := s.choose(m, ex, r.Header)
	var body []byte
	var err error
	if why == "" {
		body, why, err = s.readBody(w, r, ex)
	}
	if why != "" && err == nil {
		err = s.keepBody(w, r, ex)
	}
	if err != nil { // the request itself is broken: there is nothing to forward
		s.brokenBody(w, ex)
		return
	}
	if why == "" && s.wasRefused(ex, body) {
		why = reasonRefused
	}
	switch {
	case why != "":
		s.metrics.countLeft(why)
		if why == reasonMemory {
			s.failedOpen(r.Context(), ex, failedSearch, why) //nolint:contextcheck // It is the client's.
		}
		if ex.control.asks() {
			s.record(ex, r, m, &expand.Result{Reason: reason.Reason(why)}, "")
		}
	case s.opts.Shadow > 0 && !ex.control.asks(): // nobody waits for the expansion
		s.metrics.unchanged(reasonShadow)
		ex.shadow = &shadowed{m, expander, body}
	default:
		s.expandSearch(r, m, ex, expander, body)
	}
	s.send(w, r)
}

// choose returns the expander for a search, or the reason why it is forwarded
// as it came. It looks at all but the body.
func (s *Server) choose(m match, ex *exchange, h http.Header) (e Expander, reason string) {
	switch {
	case ex.control.off:
		return nil, reasonOff
	case m.endpoint == expand.EndpointRankEval && !s.opts.RankEval:
		return nil, reasonRankEvalOff
	case m.how == renderTemplate && !s.opts.Templates:
		return nil, reasonTemplateOff
	case s.opts.Shadow > 0 && !ex.control.asks() && !s.sampled(m, ex.rawQuery):
		return nil, reasonShadow
	}
	if e, reason = s.expanderFor(ex.control.profile); reason == "" {
		reason = hidesFailures(m, ex.rawQuery, h)
	}
	return e, reason
}

// expandSearch has the search rewritten and counts what came of it. Where it
// fails ex.rewritten stays nil.
func (s *Server) expandSearch(r *http.Request, m match, ex *exchange, e Expander, body []byte) {
	res, toSend, err := s.look(r.Context(), r, m, ex, e, body)
	if err != nil {
		s.metrics.failedOpen(s.cause(err))
		return
	}
	for _, failure := range res.Failures {
		s.metrics.failedOpen(s.cause(failure))
	}
	s.decide(ex, res, toSend)
}

// look has the search rewritten within the budget and keeps what came of it.
func (s *Server) look(ctx context.Context, r *http.Request, m match, ex *exchange, e Expander, body []byte) (res, toSend *expand.Result, err error) {
	bounded, cancel := context.WithTimeout(ctx, s.opts.Budget)
	defer cancel()
	start := time.Now()
	err = s.guard.Do("preparing", func() (err error) {
		res, toSend, err = s.expanded(bounded, r, m, ex, e, body)
		return err
	})
	ex.took = time.Since(start)
	s.metrics.expand.Observe(ex.took.Seconds())
	if err != nil {
		cause := s.notExpanded(ctx, ex, err)
		s.log.DebugContext(ctx, "search was not expanded", "index", m.index, "cause", cause, "err", err)
		s.record(ex, r, m, nil, cause)
		return nil, nil, err
	}
	for _, failure := range res.Failures {
		cause := s.notExpanded(ctx, ex, failure)
		s.log.DebugContext(ctx, "a search of several was not expanded", "index", m.index, "cause", cause, "err", failure)
	}
	s.record(ex, r, m, res, "")
	if s.opts.LogQueries {
		s.log.InfoContext(ctx, "search", "index", m.index, "query", ex.rawQuery, "body", string(body),
			"rewritten", res.Rewritten, "rewritten_query", res.RawQuery, "rewritten_body", string(res.Body))
	}
	return res, toSend, nil
}

// notExpanded notes that a search, or one of several in a request, was not
// expanded, unless it is one that nobody knows the client may make, and returns
// the cause.
func (s *Server) notExpanded(ctx context.Context, ex *exchange, err error) (cause string) {
	cause = s.cause(err)
	if !errors.Is(err, errUndecided) {
		s.failedOpen(ctx, ex, failedSearch, cause)
	}
	return cause
}

// decide settles what is sent of a search that was looked at, and counts it.
func (s *Server) decide(ex *exchange, res, toSend *expand.Result) {
	switch {
	case !res.Rewritten && len(res.Failures) > 0: // counted already
	case !res.Rewritten:
		s.metrics.unchanged(reasonOf(res))
	case ex.control.dryRun:
		s.metrics.unchanged(reasonDryRun)
	case s.opts.Shadow > 0:
		s.metrics.unchanged(reasonShadow)
	default:
		ex.rewritten = toSend
		ex.held.Add(int64(len(toSend.Body)))
		s.metrics.rewritten.Inc()
		s.metrics.addedTerms.Add(float64(res.AddedTerms()))
	}
}

// expanded returns what the expander makes of a search, and the same as it is
// sent: they differ for a template.
func (s *Server) expanded(ctx context.Context, r *http.Request, m match, ex *exchange, e Expander, body []byte) (res, toSend *expand.Result, err error) {
	in := &expand.Request{Endpoint: m.endpoint, Index: m.index, RawQuery: ex.rawQuery, Body: body, Preview: ex.control.dryRun}
	in.Fixed = s.fixed(m, ex, r.Header)
	in.Allowed = s.access.checker(r, ex)
	var t *templates
	if m.how == renderTemplate {
		var why string
		if t, why, err = s.render(ctx, r, in); err != nil {
			return nil, nil, err
		} else if why != "" {
			return &expand.Result{Reason: reason.Reason(why)}, nil, nil
		}
		in.Body, in.Discloses = t.rendered, t.discloses()
	}
	if res, err = s.callExpander(ctx, e, in); err != nil || !res.Rewritten {
		return res, nil, err
	}
	if m.typed && !s.knowsTypes(ctx, r) {
		return &expand.Result{Reason: reasonTypedPath}, nil, nil
	}
	sent := *res
	if t != nil {
		if sent.Body, err = t.seal(res); err != nil {
			return nil, nil, err
		}
	}
	sent.RawQuery, ex.filtered = showFailures(m.endpoint, res.RawQuery)
	return res, &sent, nil
}

// callExpander calls the expander.
func (s *Server) callExpander(ctx context.Context, e Expander, in *expand.Request) (res *expand.Result, err error) {
	err = s.guard.Do("expanding", func() (err error) {
		res, err = e.Expand(ctx, in)
		return err
	})
	return res, err
}

func (s *Server) cause(err error) string {
	switch {
	case errors.Is(err, recovery.ErrPanic):
		return causePanic
	case errors.Is(err, errNoRoom):
		return reasonMemory
	}
	return s.opts.Cause(err)
}

// reasonOf returns why nothing was rewritten: the reason of the whole, else
// that of the first clause that has one.
func reasonOf(res *expand.Result) string {
	if res.Reason != "" {
		return string(res.Reason)
	}
	for i := range res.Clauses {
		if reason := res.Clauses[i].Reason; reason != "" {
			return string(reason)
		}
	}
	return reasonNothing
}

// A searchTransport sends the rewritten form of a search and, where the cluster
// refuses it, the original.
type searchTransport struct {
	server *Server
	next   http.RoundTripper
}

// RoundTrip sends out. A rewritten search that is answered with a 4xx or 5xx,
// or with a failure inside a 200, is followed once by the original, whose
// answer counts; not one that the client may not make, or that is not answered,
// and those that meet an overloaded cluster within a budget.
func (t *searchTransport) RoundTrip(out *http.Request) (*http.Response, error) {
	ex := exchangeOf(out.Context())
	out = markSafe(out, ex != nil)
	if ex == nil {
		return t.next.RoundTrip(out)
	}
	start := time.Now()
	defer func() { t.server.metrics.upstream.Observe(time.Since(start).Seconds()) }()
	res, err := t.exchange(out, ex)
	if err == nil {
		t.server.mark(ex, res)
		t.server.access.learn(out.Context(), ex, res.StatusCode) //nolint:contextcheck // It is the client's.
	}
	return res, err
}

func (t *searchTransport) exchange(out *http.Request, ex *exchange) (*http.Response, error) {
	switch {
	case ex.shadow != nil:
		return t.server.shadow(out, ex) //nolint:contextcheck // What runs after it outlives the client's request.
	case ex.rewritten == nil:
		return t.sendOriginal(out, ex)
	}
	rewritten := ex.rewrite(out)
	ex.askForFailures(rewritten)
	res, err := t.next.RoundTrip(rewritten)
	if err != nil {
		return nil, err
	}
	refused, fits, err := t.accept(out.Context(), ex, res)
	if fits {
		if res.StatusCode < http.StatusBadRequest {
			t.server.pardon(ex, out.Header)
		}
		return res, nil
	}
	_, _ = io.CopyN(io.Discard, res.Body, maxDrained) // to its end, if that is near: the connection can be used again
	_ = res.Body.Close()
	if err != nil {
		return nil, err
	}
	t.server.clearScroll(out.Header, ex.scrollID) //nolint:contextcheck // It goes on when the client has gone.
	h := out.Header.Clone()                       // out belongs to who sends it
	res, err = t.sendOriginal(out.WithContext(nodes.Repeated(out.Context())), ex)
	if refused == nil {
		return res, err
	}
	taken := err == nil && res.StatusCode < http.StatusBadRequest
	if taken {
		failed, _ := t.failure(ex, res) // one that cannot be looked at counts as good
		taken = failed == nil
	}
	if !taken && err == nil && !refused.busy && !isDenied(res.StatusCode) && !isBusy(res.StatusCode, nil) {
		t.server.shapes.strike(t.server.shapeOf(ex, t.server.plainBody(ex, h))) // it is wrong in itself
	}
	t.server.refused(out.Context(), ex, h, taken, refused)
	return res, err
}

// accept looks at the answer to a rewritten search and puts its hits in order
// where that is to be done. It returns what the cluster says against the
// search, else whether the answer is one to the client's request. An error
// says that the client has gone meanwhile: the answer broke off for that, and
// tells nothing of the search.
func (t *searchTransport) accept(ctx context.Context, ex *exchange, res *http.Response) (refused *refusal, fits bool, gone error) {
	refused, err := t.refusal(ex, res)
	if gone = ctx.Err(); gone != nil {
		return nil, false, gone
	}
	if err != nil {
		t.server.metrics.unchecked.Inc()
		t.server.health.failedOpen(ctx, failedSearch, causeUnchecked, ex.index)
	}
	if refused != nil && !t.server.sendsOriginal(refused) {
		if refused.status != 0 {
			return nil, true, nil
		}
		refused = nil
	}
	if refused != nil || len(ex.rewritten.Reranks) == 0 {
		return refused, refused == nil, nil
	}
	fits, gone = t.rerank(ctx, ex, res)
	return nil, fits, gone
}

// refusal returns what the cluster says against a rewritten search, nil where
// it takes it.
func (t *searchTransport) refusal(ex *exchange, res *http.Response) (*refusal, error) {
	switch {
	case res.StatusCode < http.StatusBadRequest:
		return t.failure(ex, res)
	case isDenied(res.StatusCode):
		return &refusal{status: res.StatusCode}, nil
	}
	return t.server.refusal(ex, res), nil
}

func (t *searchTransport) sendOriginal(out *http.Request, ex *exchange) (*http.Response, error) {
	if ex.read {
		setBody(out, ex.original)
	}
	return t.next.RoundTrip(out)
}

// rewrite returns a copy of out with the rewritten search. It keeps the method
// and the media type of the original.
func (ex *exchange) rewrite(out *http.Request) *http.Request {
	rewritten := out.Clone(out.Context())
	rewritten.URL.RawQuery = ex.rewritten.RawQuery
	rewritten.TransferEncoding = nil
	rewritten.ContentLength = int64(len(ex.rewritten.Body))
	setBody(rewritten, ex.rewritten.Body)
	h := rewritten.Header
	h.Del("Content-Encoding")
	if len(ex.rewritten.Reranks) > 0 {
		h.Del("Accept-Encoding") // the answer is read and changed
	}
	if len(ex.original) == 0 {
		// There was no body to have a type. Elasticsearch 8 wants the versions
		// in Accept and Content-Type to be the same.
		h["Content-Type"] = []string{"application/json"}
		if isJSON(h["Accept"]) {
			h["Content-Type"] = h["Accept"]
		}
	}
	return rewritten
}

// setBody sets the body, not its announced length: a chunked original stays
// chunked. GetBody lets a connection that was closed while idle be replaced.
func setBody(out *http.Request, body []byte) {
	out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	out.Body = io.NopCloser(bytes.NewReader(body))
}
