package proxy

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/internal/limits"
	"github.com/akin-search/akin/internal/nodes"
	"github.com/akin-search/akin/internal/tracing"
	"github.com/akin-search/akin/proxy/answer"
	"github.com/akin-search/akin/proxy/playground"
	"github.com/akin-search/akin/proxy/report"
)

// The life of a search, in the order of this file. Server.search reads it and
// has it rewritten; callExpander adds feedback. forward sends it: the original,
// or what only orders its hits, if more is done only where these are few
// (askFew); the original with a shadow behind it; and otherwise the rewritten
// search (ask), or the original if the cluster rejects that. rerank reorders its
// hits, and the answer goes out like any other (forward.go). Last come lessons
// from the cluster, shadows, and reports.

const (
	// maxKeptBody is the largest body kept for a retry although akin does not
	// read it.
	maxKeptBody = 64 << 10
	// maxDrained is how much of a rejection is read to reuse its connection.
	maxDrained = 64 << 10
)

// A search is a search request from arrival to answer. One goroutine uses it; a
// shadow, which outlives the answer, gets a copy.
type search struct {
	match

	rawQuery string // without akin's own parameters
	control  control
	client   limits.Recipient
	header   http.Header  // of the client's request, read-only
	from     caller       // the client, as the cluster knows it
	ticket   uint64       // of the trial in a pause; 0 for none
	hold     *limits.Hold // the memory it uses
	body     body
	// rewritten is sent first, second if the original found few hits, or as a
	// shadow. It is nil if only the original is sent.
	rewritten *rewrittenSearch
	// shadow rewrites it after the client has the answer to the original.
	shadow Expander
	// wait rewrites the search if the first that is sent finds fewer hits than are
	// enough, see [expand.Expander.Below] and [expand.Part]; nil for any other
	// search. few lists the searches of the request that find fewer.
	wait   Expander
	enough []expand.Enough
	few    []int
	// plain says that the answer was asked for without a coding.
	plain bool
	asked *sync.Map // the client's accessKeys
	// rendered is what templates are rendered to.
	rendered []byte
	// tried says that the search comes from a playground, with changed settings.
	tried   bool
	changes expand.Changes
	report  report.Search
}

// A body is the body of a search.
type body struct {
	arriving *limits.Arriving // nil if it is not read
	// whole says that raw is the complete body as it came. plain is raw
	// decompressed; nil if akin does not read it.
	whole      bool
	raw, plain []byte
}

// A rewrittenSearch is the expander's result for a search.
type rewrittenSearch struct {
	*expand.Result

	// rawQuery and body are what is sent: the expander's, with failures made
	// visible and templates sealed.
	rawQuery string
	body     []byte
	filtered bool // akin has extended filter_path: the answer shows failures, but not of which search
	strict   bool // the cluster rejects the search if a shard fails
}

// search forwards a search, rewritten if possible. The context names the
// client.
func (s *Server) search(w *relay, r *http.Request, m match) {
	x := s.arrive(w, r, m)
	defer s.leave(r.Context(), x)
	expander, why := s.choose(x)
	var err error
	if why == "" {
		_, span := tracing.Start(r.Context(), "read")
		why, err = s.readBody(w, r, x)
		span.End()
	}
	if n := r.ContentLength; why != "" && err == nil && x.body.arriving == nil && n > 0 && n <= maxKeptBody && s.upstream.Several() {
		_, err = s.takeBody(w, r, x, n) // so that it can be sent to another node
	}
	if err != nil { // the request itself is broken: nothing to forward
		s.brokenBody(w, x.body.arriving.IsLate())
		return
	}
	if why == "" {
		why = s.backsOff(x)
	}
	s.lookedAt(x)

	t := s.depart(w, r)
	defer t.end()
	x.from = caller{t.out.Header, x.rawQuery}
	switch {
	case why != "":
		x.made(&expand.Result{Reason: reason.Reason(why)})
		x.report.Outcome = report.Unchanged
		x.report.Why = why
		x.report.Explain = x.control.asks()
		if why == reasonMemory { // this is a failure
			x.report.Outcome = report.FailedOpen
			x.report.Fail(r.Context(), report.Failure{What: failedSearch, Cause: why})
		}
	case s.opts.Shadow > 0 && !x.control.asks(): // the client does not wait for the expansion
		x.report.Outcome, x.report.Why = report.Unchanged, reasonShadow
		x.shadow = expander
	default:
		if below := x.waits(expander); below != nil {
			x.wait = expander
			for _, hits := range below {
				x.enough = append(x.enough, expand.Enough{Hits: hits})
			}
			x.report.Outcome = report.Unchanged
			x.report.Why = reasonEnoughHits // until the original is known to find few
			x.report.Explain = x.control.asks()
		} else {
			x.rewritten = s.rewrite(r.Context(), x, expander)
			x.waitForEnough(expander)
		}
	}
	if x.body.arriving != nil && !x.body.whole { // report now: the client may be slow to send the rest
		s.tell(r.Context(), x, nil)
	}
	res, err := s.forward(t.out, x) //nolint:contextcheck // A shadow outlives the request of the client.
	if err == nil {
		s.tell(r.Context(), x, res)
	}
	kept := s.collecting.watch(x, res, err)
	s.answer(w, r, t, res, err)
	s.collecting.take(x, res, kept)
	if err == nil {
		s.follow(x, expander) //nolint:contextcheck // It goes on when the client has gone.
	}
}

// arrive returns a new search, with what the client or a trial asks of akin.
func (s *Server) arrive(w *relay, r *http.Request, m match) *search {
	x := &search{match: m, header: r.Header, asked: new(sync.Map), client: limits.Recipient{
		Name: ClientOf(r.Context()), Conn: http.NewResponseController(w), Grace: s.answerGrace, CutOff: s.metrics.SlowRead,
	}}
	x.hold = s.opts.Memory.Hold(limits.SearchBody, x.client.Name)
	x.report.Followed = w.followed
	w.followed.Name(r.Method, m.shape)
	x.rawQuery, x.control = cutControl(r.URL.RawQuery, r.Header)
	x.changes, x.tried = playground.Changes(r.Context())
	if !x.tried && !x.control.off && x.control.profile == "" && x.control.feedback == 0 && x.control.effort == 0 && x.control.embeddings == 0 {
		x.report.Trial, x.report.Arm = drawArm(s.opts.Trials, x.index, x.client.Name, r.Header)
	}
	if x.report.Trial != "" {
		if x.control.off = x.report.Arm == Off; !x.control.off {
			x.control.profile = x.report.Arm
		}
	}
	return x
}

// choose returns the expander for a search, or why the original is forwarded.
func (s *Server) choose(x *search) (e Expander, why string) {
	switch {
	case x.control.off:
		return nil, reasonOff
	case x.isTemplate() && !s.opts.Templates:
		return nil, reasonTemplateOff
	case s.opts.Shadow > 0 && !x.control.asks() && !sampled(s.opts.Shadow, x.match, x.rawQuery):
		return nil, reasonShadow
	}
	if e, why = s.expanderFor(x.control.profile); why == "" {
		why = answer.Hidden(x.endpoint, x.isAsync(), x.rawQuery, x.header)
	}
	return e, why
}

// expanderFor returns the expander of a profile, or why there is none.
func (s *Server) expanderFor(profile string) (e Expander, why string) {
	e, known := s.opts.Expander, true
	if profile != "" {
		e, known = s.opts.Profiles[profile]
	}
	if !known {
		return nil, reasonUnknownProfile
	}
	if e == nil {
		return nil, reasonDisabled
	}
	return e, ""
}

// readBody reads and decompresses the body of a search, or returns why the
// original is forwarded. An error means that the body broke off.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request, x *search) (why string, err error) {
	if r.ContentLength == 0 {
		return "", nil
	}
	types := r.Header["Content-Type"]
	readable := answer.IsJSON(types) || x.endpoint == expand.EndpointMultiSearch && answer.IsLines(types)
	coding, known := answer.ContentEncoding(r.Header)
	switch {
	case len(types) > 0 && !readable, len(types) == 0 && r.ContentLength > 0:
		return reasonContentType, nil
	case !known:
		return reasonEncoding, nil
	case r.ContentLength > s.opts.MaxBody:
		return reasonTooLarge, nil
	}
	b := &x.body
	if why, err = s.takeBody(w, r, x, s.opts.MaxBody); why != "" || err != nil || len(b.raw) == 0 {
		return why, err
	}
	switch {
	case len(types) == 0:
		return reasonContentType, nil
	case coding == "":
		b.plain = b.raw
	default:
		if b.plain, err = s.gunzip.Read(b.raw, x.hold, s.opts.MaxBody); err != nil {
			why, _ = reasonOfBody(err)
			return cmp.Or(why, reasonEncoding), nil
		}
	}
	return "", nil
}

// takeBody reads a body of at most limit bytes, or returns why it does not.
func (s *Server) takeBody(w http.ResponseWriter, r *http.Request, x *search, limit int64) (why string, err error) {
	buffer := s.opts.Memory.Hold(limits.SearchBody, x.client.Name)
	x.body.arriving = limits.NewArriving(w, r, s.bodyGrace, s.opts.BodyTimeout, s.guard, buffer)
	x.body.raw, err = x.body.arriving.Take(r, x.hold, limit)
	x.body.whole = err == nil
	return reasonOfBody(err)
}

// reasonOfBody returns why a body is not read, or the error of a broken body.
func reasonOfBody(err error) (why string, broken error) {
	switch {
	case errors.Is(err, limits.ErrNoRoom):
		return reasonMemory, nil
	case errors.Is(err, limits.ErrSlow):
		return reasonSlow, nil
	case errors.Is(err, limits.ErrTooLarge):
		return reasonTooLarge, nil
	}
	return "", err
}

// backsOff returns why a search is not rewritten after the cluster recently
// refused others, or "" if it is rewritten.
func (s *Server) backsOff(x *search) (why string) {
	paused := false
	switch {
	case !s.shapes.empty() && s.shapes.has(s.shapes.shapeOf(x)):
		return reasonRejected
	case !x.control.dryRun: // a dry run sends no rewritten search
		x.ticket, paused = s.pause.enter()
	}
	if paused {
		return reasonPaused
	}
	return ""
}

// lookedAt tells the report which search this is.
func (s *Server) lookedAt(x *search) {
	coding, _ := answer.ContentEncoding(x.header)
	x.report.Endpoint = x.endpoint
	x.report.Index = x.index
	x.report.Profile = x.control.profile
	x.report.Original, x.report.Packed = report.Message{RawQuery: answer.Known(x.rawQuery), Body: x.body.raw}, coding != ""
	x.report.AsItCame = x.control.dryRun || s.opts.Shadow > 0
}

// rewrite returns the rewritten search, or nil if the original is sent; the
// report then says why.
func (s *Server) rewrite(ctx context.Context, x *search, e Expander) *rewrittenSearch {
	made, err := s.expand(ctx, x, e)
	told := &x.report
	switch {
	case err != nil:
		told.Outcome, told.Why = report.FailedOpen, told.Cause
	case !made.Rewritten && len(made.Failures()) > 0: // its parts report the failures
	case !made.Rewritten:
		told.Outcome, told.Why = report.Unchanged, told.Reason
	case x.control.dryRun:
		told.Outcome, told.Why = report.Unchanged, reasonDryRun
	case s.opts.Shadow > 0:
		told.Outcome, told.Why = report.Unchanged, reasonShadow
	default:
		told.Outcome, told.Sent = report.Rewritten, true
		x.hold.Add(int64(len(made.body)))
		return made
	}
	return nil
}

// expand calls the expander within the budget and reports the result.
func (s *Server) expand(ctx context.Context, x *search, e Expander) (made *rewrittenSearch, err error) {
	traced, span := tracing.Start(ctx, "expand")
	defer span.End()
	budget, end := s.opts.ColdStart.budget(x.index, s.opts.Budget)
	defer end()
	bounded, cancel := context.WithTimeout(traced, budget)
	defer cancel()
	start := time.Now()
	err = s.guard.Do("expanding", func() (err error) {
		made, err = s.callExpander(bounded, x, e)
		return err
	})
	told := &x.report
	told.Took = time.Since(start)
	told.Expanded = true
	told.Explain = true
	if errors.Is(err, errUndecided) {
		made, err = &rewrittenSearch{Result: &expand.Result{Reason: reasonUndecided}}, nil
	}
	for _, result := range told.Feedback {
		if result != feedbackUsed && result != feedbackNoHits && result != feedbackNoTerms && result != feedbackTooMany {
			told.Fail(ctx, report.Failure{What: failedFeedback, Cause: result, Minor: true})
		}
	}
	if err != nil {
		told.Cause = s.cause(err)
		told.Fail(ctx, report.Failure{What: failedSearch, Cause: told.Cause})
		s.log.DebugContext(ctx, "search was not expanded", "index", x.index, "cause", told.Cause, "err", err)
		return nil, err
	}
	for i := range made.Parts {
		p := &made.Parts[i]
		switch {
		case p.Err == nil:
			continue
		case errors.Is(p.Err, errUndecided):
			told.Parts = append(told.Parts, report.Part{Outcome: report.Unchanged, Why: reasonUndecided})
			p.Err = nil
			continue
		}
		cause := s.cause(p.Err)
		told.Parts = append(told.Parts, report.Part{Outcome: report.FailedOpen, Why: cause})
		told.Fail(ctx, report.Failure{What: failedSearch, Cause: cause})
		s.log.DebugContext(ctx, "a search of several was not expanded", "index", x.index, "cause", cause, "err", p.Err)
	}
	x.made(made.Result)
	if s.opts.LogQueries {
		s.log.InfoContext(ctx, "search", "index", x.index, "query", answer.Known(x.rawQuery), "body", string(x.body.plain),
			"rewritten", made.Rewritten, "rewritten_query", answer.Known(made.RawQuery), "rewritten_body", string(made.Body))
	}
	return made, nil
}

// callExpander returns the expander's result as it is sent.
func (s *Server) callExpander(ctx context.Context, x *search, e Expander) (made *rewrittenSearch, err error) {
	in := &expand.Request{
		Endpoint: x.endpoint, Index: x.index, RawQuery: x.rawQuery, Body: x.body.plain, Preview: x.control.dryRun,
		Changes: x.changes, NameAdded: x.tried, Fixed: s.fixed(x), Feedback: x.control.feedback, Effort: x.control.effort,
		Embeddings: x.control.embeddings,
	}
	if x.few != nil {
		in.Again = x.report.Result // nil if the first was the original
	}
	if x.endpoint == expand.EndpointMultiSearch && x.few != nil {
		in.Body = expand.Only(in, x.few)
	}
	if s.calls.secured.Load() {
		in.Allowed = s.access.checker(x.from, x.client.Name, x.asked)
	}
	var t *templateRendering
	if x.isTemplate() {
		var why string
		if t, why, err = render(ctx, in, s.guard, s.calls.as(x.from, x.hold)); err != nil {
			return nil, err
		} else if why != "" {
			return &rewrittenSearch{Result: &expand.Result{Reason: reason.Reason(why)}}, nil
		} else if int64(len(t.rendered)) > s.opts.MaxBody {
			return &rewrittenSearch{Result: &expand.Result{Reason: reasonTooLarge}}, nil
		}
		in.Body, x.rendered = t.rendered, t.rendered
		for _, template := range t.templates {
			if options, _ := templateOptions(template); bytes.Contains(options, []byte("true")) { // set beside the search
				in.Discloses = expand.DiscloseProfile | expand.DiscloseExplain
			}
		}
	}
	made = new(rewrittenSearch)
	if made.Result, err = e.Expand(ctx, in); err == nil && s.feedback.terms != nil && slices.ContainsFunc(made.Parts, wantsFirstPass) {
		made.Result, x.report.Feedback = s.withFeedback(ctx, x, e, made.Result)
	}
	if err != nil || !made.Rewritten {
		return made, err
	}
	made.body = made.Body
	if t != nil {
		made.body, err = t.seal(made.Body, made.rewrote)
	}
	made.rawQuery, made.filtered = answer.ShowFailures(x.endpoint, made.RawQuery)
	return made, err
}

// fixed returns why the hits of the answer cannot be reranked, or "" if they
// can. Of several searches it checks filter_path; of one the expander does.
func (s *Server) fixed(x *search) reason.Reason {
	switch {
	case x.isAsync():
		return reason.Endpoint
	case !answer.AnswersJSON(x.rawQuery, x.header), x.endpoint == expand.EndpointMultiSearch && answer.FilterPath(x.rawQuery) != "":
		return reason.Answer
	case s.unrerankable.has(s.unrerankable.kindOf(x)):
		return reason.TooLong
	}
	return ""
}

// withFeedback adds terms of the first hits that an expansion asks for. It
// returns the result and the outcome of each first pass. If that or a search in
// it fails, or nothing is added, the result is that of the expansion.
func (s *Server) withFeedback(ctx context.Context, x *search, e Expander, first *expand.Result) (out *expand.Result, results []string) {
	ctx, span := tracing.Start(ctx, "feedback")
	defer span.End()
	hits, results := s.feedback.firstHits(ctx, first.Parts, x.client.Name, x.hold, s.calls.as(x.from, x.hold))
	result := feedbackUsed
	out = first
	if slices.Contains(results, feedbackUsed) {
		err := s.guard.Do("expanding", func() (err error) {
			out, err = e.WithFirstHits(ctx, first, hits)
			return err
		})
		if err == nil && len(out.Failures()) > len(first.Failures()) {
			err = out.Failures()[0]
		}
		switch {
		case err != nil:
			out, result = first, s.cause(err)
		case !out.Rewritten:
			out, result = first, feedbackNoTerms
		}
	}
	for i := range results {
		if results[i] == feedbackUsed {
			results[i] = result
		}
	}
	return out, slices.DeleteFunc(results, func(result string) bool { return result == "" })
}

// made reports the expander's result.
func (x *search) made(res *expand.Result) {
	shown := *res
	shown.RawQuery = answer.Known(res.RawQuery) // the rest may be credentials
	if x.endpoint == expand.EndpointMultiSearch && x.few != nil {
		x.number(&shown)
	}
	x.report.Result, x.report.Reason = &shown, reasonOf(res)
}

// number numbers the searches of a result, which are those of x.few, among
// all of the request, and adds what is known of the others.
func (x *search) number(res *expand.Result) {
	few := res.Clauses
	parts := make([]expand.Part, len(x.enough))
	res.Clauses = nil
	if first := x.report.Result; first != nil {
		copy(parts, first.Parts)
		for _, c := range first.Clauses {
			k, _ := numberOf(c.Path)
			if !slices.Contains(x.few, k) {
				res.Clauses = append(res.Clauses, c)
			}
		}
	}
	for i, p := range res.Parts[:min(len(res.Parts), len(x.few))] {
		parts[x.few[i]] = p
	}
	res.Parts = parts
	for _, c := range few {
		k, rest := numberOf(c.Path)
		if k >= 0 && k < len(x.few) {
			c.Path = "[" + strconv.Itoa(x.few[k]) + "]" + rest
		}
		res.Clauses = append(res.Clauses, c)
	}
}

// numberOf returns the number of the search that a path begins with, -1 for
// none, and the rest.
func numberOf(path string) (k int, rest string) {
	number, rest, _ := strings.Cut(strings.TrimPrefix(path, "["), "]")
	k, err := strconv.Atoi(number)
	if err != nil {
		return -1, path
	}
	return k, rest
}

// reasonOf returns why nothing was rewritten: of the whole, or of the first
// clause that has a reason.
func reasonOf(res *expand.Result) string {
	if res.Reason != "" {
		return string(res.Reason)
	}
	for i := range res.Clauses {
		if why := res.Clauses[i].Reason; why != "" {
			return string(why)
		}
	}
	return reasonNothing
}

// forward sends a search to the cluster and learns from the answer.
func (s *Server) forward(out *http.Request, x *search) (res *http.Response, err error) {
	out.URL.RawQuery = x.rawQuery
	if x.body.whole {
		delete(out.Header, "Expect") // already met: the body is here
	}
	out = markSafe(out, s.upstream, true)
	sent, expanded := time.Now(), x.report.Took
	switch {
	case x.shadow != nil:
		res, err = s.sendShadowed(out, x)
	case x.wait != nil:
		res, err = s.askFew(out, x)
	case x.rewritten != nil:
		res, err = s.ask(out, x, nil)
	default:
		res, err = s.sendOriginal(out, x)
	}
	waited := time.Since(sent)
	if x.few != nil { // the search was expanded meanwhile
		waited -= x.report.Took - expanded
	}
	x.report.Upstream = waited
	switch {
	case err == nil:
		s.access.learn(out.Context(), x.asked, x.endpoint == expand.EndpointMultiSearch, res.StatusCode, s.judge.denies(x.sent(), res))
		if x.plain && answer.AcceptsGzip(x.header) {
			answer.Compress(res)
		}
	case x.body.arriving.IsLate():
		err = limits.ErrSlow
	}
	return res, err
}

func (s *Server) sendOriginal(out *http.Request, x *search) (*http.Response, error) {
	if x.body.whole {
		setBody(out, x.body.raw)
	}
	return s.transport.RoundTrip(out)
}

// waits returns the numbers of hits below which searches are expanded, nil to
// do it at once, as for templates: what they ask for is not known before.
func (x *search) waits(e Expander) []int {
	if x.tried || x.control.dryRun || x.isAsync() || x.isTemplate() {
		return nil
	}
	return e.Below(&expand.Request{Endpoint: x.endpoint, Index: x.index, RawQuery: x.rawQuery, Body: x.body.plain})
}

// waitForEnough has the search expanded again, by the same expander, if it
// finds fewer hits than are enough.
func (x *search) waitForEnough(e Expander) {
	if x.report.Result == nil || x.report.AsItCame {
		return
	}
	parts := x.report.Result.Parts
	if !slices.ContainsFunc(parts, func(p expand.Part) bool { return p.Enough.Hits > 0 }) {
		return
	}
	x.wait = e
	for _, p := range parts {
		x.enough = append(x.enough, p.Enough)
	}
}

// askFew sends the original, or the search that was rewritten to order its
// hits. If that finds too few, the client gets the answer to the search that
// is rewritten now; of several searches, to those that find too few.
func (s *Server) askFew(out *http.Request, x *search) (*http.Response, error) {
	several, ordered := x.endpoint == expand.EndpointMultiSearch, x.rewritten
	if several {
		out.Header.Del("Accept-Encoding") // the answer is read and may be changed
		x.plain = true
	}
	var first *http.Response
	var err error
	if ordered != nil {
		first, err = s.ask(out, x, nil)
	} else {
		first, err = s.sendOriginal(out, x)
	}
	switch {
	case err != nil:
		return nil, err
	case x.report.Fallback != "": // the cluster rejects rewritten searches like this one
		return first, nil
	}
	x.few, x.report.Found, x.report.FewHits = s.judge.few(x, first)
	if len(x.few) == 0 {
		if ordered == nil && x.report.Result == nil {
			x.made(&expand.Result{Reason: reasonEnoughHits})
		}
		return first, nil
	}
	if !s.shapes.empty() && s.shapes.has(s.shapes.shapeOf(x)) { // the cluster rejects them expanded
		if ordered == nil && x.report.Result == nil {
			x.report.Why = reasonRejected
			x.made(&expand.Result{Reason: reasonRejected})
		}
		return first, nil
	}
	before := x.report
	x.report.Feedback = nil
	x.rewritten = s.rewrite(out.Context(), x, x.wait)
	x.report.Feedback = append(before.Feedback, x.report.Feedback...)
	x.report.Took += before.Took
	if x.rewritten == nil {
		x.stays(ordered, &before)
		return first, nil
	}
	x.report.Reranked, x.report.Uncut = nil, false // of the first
	x.report.Ordered = nil
	res, err := s.ask(out, x, first)
	switch {
	case err != nil:
		_ = first.Body.Close() // the client does not get it
		return nil, err
	case res == first:
		x.stays(ordered, &before)
		return first, nil
	case !several:
		return res, nil
	}
	defer func() { _ = res.Body.Close() }() // res.Body is replaced below
	whole, err := x.client.Whole(s.opts.Memory, first)
	others, errOthers := x.client.Whole(s.opts.Memory, res)
	if cmp.Or(err, errOthers) == nil {
		if joined := answer.ReplaceSearches(whole, others, x.few); joined != nil {
			s.replace(x, first, joined)
			x.joinReranked(before.Reranked)
			return first, nil
		}
	}
	x.report.Fail(out.Context(), report.Failure{What: failedSearch, Cause: causeUnchecked})
	x.stays(ordered, &before)
	return first, nil
}

// stays has the report tell of the first search, if that was ordered: the
// client gets its answer, whatever became of the second.
func (x *search) stays(ordered *rewrittenSearch, before *report.Search) {
	if ordered == nil {
		return
	}
	x.rewritten = ordered
	told := &x.report
	told.Outcome, told.Why = before.Outcome, before.Why
	told.Result, told.Reason = before.Result, before.Reason
	told.Reranked, told.RerankTook = before.Reranked, before.RerankTook
	told.Refused, told.Uncut = before.Refused, before.Uncut
	told.Ordered = before.Ordered
}

// joinReranked numbers the outcomes of x.few among those of all searches of the
// request.
func (x *search) joinReranked(first []string) {
	if first == nil && x.report.Reranked == nil {
		return
	}
	all := make([]string, len(x.enough))
	copy(all, first)
	for i, k := range x.few {
		all[k] = ""
		if i < len(x.report.Reranked) {
			all[k] = x.report.Reranked[i]
		}
	}
	x.report.Reranked = all
}

// ask sends the rewritten search. If the cluster answers 4xx or 5xx, reports a
// failure inside a 200, or returns no page of reranked hits, ask sends the
// original once and returns its answer; if original is not nil, it is that
// answer already, and no partial one replaces it. If no node answers, ask
// returns original, or the error. It returns a refusal as it is if the client
// may not search, or if the cluster is overloaded and the retry budget is
// spent.
func (s *Server) ask(out *http.Request, x *search, original *http.Response) (*http.Response, error) {
	ctx := out.Context()
	rewritten := x.asRewritten(ctx, out)
	x.rewritten.strict = answer.MakeVisible(x.endpoint, rewritten)
	s.reranking.begin(ctx, x.rewritten.Reranks())
	res, err := s.transport.RoundTrip(rewritten)
	switch {
	case err == nil:
	case original == nil || ctx.Err() != nil:
		return nil, err
	default:
		x.report.Fail(ctx, report.Failure{What: failedSearch, Cause: s.cause(err)})
		return original, nil
	}
	v := s.judge.verdict(x.sent(), res)
	if v.err != nil && ctx.Err() == nil {
		x.report.Unchecked = true
		x.report.Fail(ctx, report.Failure{What: failedSearch, Cause: causeUnchecked, Minor: true})
	}
	refused, fits := v.refused, false
	switch {
	case ctx.Err() != nil: // the client has gone
	case refused == nil:
		s.accepted(ctx, x)
		fits = (original == nil || !s.judge.partial(x, res)) && s.rerank(ctx, x, res)
	case original == nil && !s.mayRepeat(x, refused): // the client gets this answer
		s.refused(ctx, x, refused, originalNotSent)
		// A refusal goes out as it is. A 200 with failures (status 0) has hits to
		// rerank; if that fails, the original is sent in spite of the spent budget,
		// since the client cannot read those hits.
		fits = refused.Status != 0 || s.rerank(ctx, x, res)
		refused = nil // it is told
	default: // the original is sent below
	}
	if fits {
		if original != nil && x.endpoint != expand.EndpointMultiSearch {
			drop(original)
		}
		return res, nil
	}
	drop(res)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if v.scroll != "" {
		s.clearScroll(v.scroll, s.calls.as(x.from.later(), nil)) //nolint:contextcheck // It goes on when the client has gone.
	}
	if res = original; res == nil {
		again, span := tracing.Start(nodes.Repeated(ctx), "fallback")
		res, err = s.sendOriginal(out.WithContext(again), x)
		span.End()
	}
	if refused != nil {
		became := originalRejected
		// An answer to the original that cannot be checked counts as good.
		if original != nil || err == nil && res.StatusCode < http.StatusBadRequest && s.judge.verdict(x.sent(), res).refused == nil {
			became = originalAccepted
		}
		s.refused(ctx, x, refused, became)
	}
	return res, err
}

// clearScroll closes, in the background and with the client's credentials, the
// scroll of a rewritten search whose answer is dropped. The client gets the
// answer to the original, with another scroll. If clearing fails, the scroll
// expires by itself.
func (s *Server) clearScroll(id string, ask sender) {
	if !s.clearing.reserve() {
		return
	}
	s.clearing.start(func(ctx context.Context) {
		err := s.guard.Do("clearing scrolls", func() error {
			body := esclient.JSON(map[string][]string{"scroll_id": {id}})
			_, _, err := ask(ctx, esapi.ClearScrollRequest{Body: body})
			return err
		})
		if err != nil {
			s.log.DebugContext(ctx, "a scroll that nobody reads was not cleared", "err", err)
		}
	}, func() {})
}

// drop closes an answer that the client does not get. It reads up to maxDrained
// bytes so that the connection can be reused.
func drop(res *http.Response) {
	_, _ = io.CopyN(io.Discard, res.Body, maxDrained)
	_ = res.Body.Close()
}

// asRewritten returns a copy of out with the rewritten search, of the same
// method and media type.
func (x *search) asRewritten(ctx context.Context, out *http.Request) *http.Request {
	sent := out.Clone(ctx)
	sent.URL.RawQuery = x.rewritten.rawQuery
	sent.TransferEncoding = nil
	sent.ContentLength = int64(len(x.rewritten.body))
	setBody(sent, x.rewritten.body)
	h := sent.Header
	h.Del("Content-Encoding")
	if len(x.rewritten.Reranks()) > 0 {
		h.Del("Accept-Encoding") // the answer is read and changed
		x.plain = true
	}
	if len(x.body.raw) == 0 {
		// Without a body there was no type. Elasticsearch 8 requires the same version
		// in Accept and Content-Type.
		h["Content-Type"] = []string{"application/json"}
		if answer.IsJSON(h["Accept"]) {
			h["Content-Type"] = h["Accept"]
		}
	}
	return sent
}

// setBody sets the body but not its length: a chunked original stays chunked.
// GetBody allows a retry if an idle connection was closed.
func setBody(out *http.Request, body []byte) {
	out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	out.Body = io.NopCloser(bytes.NewReader(body))
}

// rerank reranks the hits of an answer if requested, and puts in the client's
// pages. It returns false if it cannot; then the answer must not go out.
func (s *Server) rerank(ctx context.Context, x *search, res *http.Response) (fits bool) {
	reranks := x.rewritten.Reranks()
	if len(reranks) == 0 {
		return true
	}
	var whole, out []byte
	err := errUnchecked // also if it is encoded, which was not asked for
	if len(res.Header["Content-Encoding"]) == 0 && answer.IsJSON(res.Header["Content-Type"]) {
		whole, err = x.client.Whole(s.opts.Memory, res)
	}
	if err != nil && ctx.Err() != nil { // the client has gone
		return false
	}
	ctx, span := tracing.Start(ctx, "rerank")
	defer span.End()
	results := ofEach(reranks, rerankUnreadable)
	start, odd := time.Now(), errors.Is(err, errUnchecked) || errors.Is(err, limits.ErrTooLarge) // otherwise it broke off, or there was no memory
	if err == nil {
		out, results, x.report.Ordered, odd = s.reranking.answer(ctx, x.endpoint, reranks, whole, s.calls.as(x.from, x.hold))
	}
	if out == nil && ctx.Err() != nil { // as above
		return false
	}
	x.report.RerankTook = time.Since(start)
	x.report.Reranked = results
	x.report.Uncut = out == nil
	for k, result := range results {
		if result != "" && reranks[k].Feedback.Documents > 0 {
			x.report.Feedback = append(x.report.Feedback, strings.Replace(result, rerankedHits, feedbackUsed, 1))
		}
		if result != "" && result != rerankedHits && result != rerankNothing && result != rerankNotRemembered {
			x.report.Fail(ctx, report.Failure{What: failedRerank, Cause: result})
		}
	}
	if out == nil {
		if odd {
			s.unrerankable.failed(s.unrerankable.kindOf(x))
		}
		s.log.DebugContext(ctx, "an answer could not be reranked", "index", x.index, "err", err)
		return false
	}
	s.replace(x, res, out)
	return true
}

// replace replaces the body of an answer to x.
func (s *Server) replace(x *search, res *http.Response, body []byte) {
	x.client.Replace(s.opts.Memory, res, body)
	if res.ContentLength >= 0 {
		res.ContentLength = int64(len(body))
		res.Header["Content-Length"] = []string{strconv.Itoa(len(body))}
	}
}

// mayRepeat reports whether the original of a rejected search may be sent: not
// if access was denied, and to an overloaded cluster only within the retry
// budget or as the trial of a pause.
func (s *Server) mayRepeat(x *search, r *answer.Failure) bool {
	return !answer.IsDenied(r.Status) && (!r.Busy || x.ticket != 0 || s.upstream.TakeRepeat())
}

// accepted records that the cluster accepted a rewritten search.
func (s *Server) accepted(ctx context.Context, x *search) {
	s.pause.accepted(ctx, s.log, x.ticket)
	if !s.shapes.empty() {
		s.shapes.accepted(s.shapes.shapeOf(x))
	}
}

// refused records that the cluster rejected a rewritten search, and what became
// of the original. If it did not accept that, the client's search may be wrong,
// and nothing is learned but for a pause.
func (s *Server) refused(ctx context.Context, x *search, r *answer.Failure, original string) {
	x.report.Fallback = original
	if r.Busy && r.Whole {
		s.pause.refused(ctx, s.log, x.ticket, r, original)
	}
	if original == originalNotSent { // the client gets the refusal
		return
	}
	x.report.Refused = true
	s.log.DebugContext(ctx, "the cluster rejected a rewritten search", "index", x.index, "status", r.Status,
		"busy", r.Busy, "original", original)
	if original == originalRejected {
		return
	}
	if x.shadow == nil { // clients do not notice a shadow
		x.report.Fail(ctx, report.Failure{What: failedSearch, Cause: causeRejected})
	}
	if r.Busy || answer.IsDenied(r.Status) {
		return
	}
	news := s.opts.OnRefused != nil &&
		s.opts.OnRefused(&expand.Refusal{Index: x.rewritten.indexOf(x.index, r.Search), ClauseCount: x.rewritten.ClauseCount, Causes: r.Causes})
	if !news { // the next one would probably be refused, too
		s.shapes.failed(s.shapes.shapeOf(x))
	}
}

// sendShadowed sends the original, whose answer the client gets. Then a copy of
// the search is expanded and sent in the background, and the answers are
// compared. Neither waits for the other; the shadow finds the cluster a little
// warmer.
func (s *Server) sendShadowed(out *http.Request, x *search) (*http.Response, error) {
	hold := shadowRoom(s.opts.Memory, x.client.Name, x.body.plain, x.body.raw)
	if hold != nil && !s.shadows.reserve() {
		hold.Release()
		hold = nil
	}
	sent := time.Now()
	res, err := s.sendOriginal(out, x)
	took := time.Since(sent)
	if hold == nil {
		x.report.Shadow.Outcome = report.ShadowDropped
		return res, err
	}
	own := *x // the client's search may still be in use
	own.hold = hold
	own.report = report.Search{Record: x.report.Record}
	own.body.arriving = nil
	x.ticket = 0
	leave := func() {
		own.report.Parts = nil // the client's search counts as unchanged
		s.leave(context.WithoutCancel(out.Context()), &own)
	}
	end := func(outcome string) {
		s.shadows.release()
		own.report.Shadow.Outcome = outcome
		leave()
	}
	switch {
	case err != nil:
		end(report.ShadowUnanswered)
		return res, err
	case res.StatusCode != http.StatusOK:
		end(report.ShadowRejected)
		return res, nil
	}
	header := res.Header.Clone()
	res.Body = &keeper{ReadCloser: res.Body, hold: hold, outcome: report.ShadowClientGone, closed: func(text []byte, outcome string) {
		if outcome != "" {
			end(outcome)
			return
		}
		s.shadows.start(func(ctx context.Context) {
			told := report.Shadow{Outcome: report.ShadowFailed} // if it panics
			_ = s.guard.Do("shadowing", func() error {
				told = s.compare(ctx, out, &own, header, text, took)
				return nil
			})
			if told.Outcome == report.ShadowCompared || s.shadows.ctx.Err() == nil { // else it was cut off because the server closes
				own.report.Shadow = told
			}
		}, leave)
	}}
	return res, nil
}

// compare expands and sends a search and compares its answer with the
// original's, which the cluster began after originalTook.
func (s *Server) compare(ctx context.Context, out *http.Request, x *search, h http.Header, text []byte, originalTook time.Duration) report.Shadow {
	original, err := readTopHits(h, text, x.hold)
	if err != nil {
		return report.Shadow{Outcome: shadowOutcome(err)}
	}
	again := &http.Response{StatusCode: http.StatusOK, Header: h, Body: io.NopCloser(bytes.NewReader(text))}
	v := s.judge.verdict(x.sent(), again)
	_ = again.Body.Close() // frees what was kept of it
	if v.refused != nil {
		return report.Shadow{Outcome: report.ShadowRejected}
	}
	made, err := s.expand(ctx, x, x.shadow)
	switch {
	case err != nil:
		return report.Shadow{Outcome: report.ShadowFailed}
	case !made.Rewritten:
		return report.Shadow{Outcome: report.ShadowUnchanged}
	}
	x.rewritten, x.report.Sent = made, true
	x.hold.Add(int64(len(made.body)))
	sent := time.Now()
	res, err := s.upstream.RoundTrip(x.asRewritten(ctx, out))
	if err != nil {
		return report.Shadow{Outcome: report.ShadowUnanswered}
	}
	defer func() { _ = res.Body.Close() }() // res.Body is replaced below
	took := time.Since(sent)
	if refused := s.judge.verdict(x.sent(), res).refused; refused != nil { // learn from it as from a client's search
		s.refused(ctx, x, refused, originalAccepted)
		return report.Shadow{Outcome: report.ShadowRejected}
	}
	text, err = limits.Read(res.Body, x.hold, res.ContentLength, maxShadowed)
	if err != nil {
		return report.Shadow{Outcome: shadowOutcome(err)}
	}
	if reranks := x.rewritten.Reranks(); len(reranks) > 0 && res.Header.Get("Content-Encoding") == "" {
		if reranked, _, _, _ := s.reranking.answer(ctx, x.endpoint, reranks, text, s.calls.as(x.from, x.hold)); reranked != nil {
			x.hold.Add(int64(cap(reranked)))
			text = reranked
		}
	}
	hits, err := readTopHits(res.Header, text, x.hold)
	if err != nil {
		return report.Shadow{Outcome: shadowOutcome(err)}
	}
	s.accepted(ctx, x)
	return compared(original, hits, originalTook, took)
}

// explanationHeader has the id of the explanation, in the answer to a search
// that asked for one.
const explanationHeader = "X-Akin-Explanation"

// resultHeader has what the client got, see [report.Search.Became].
const resultHeader = "X-Akin-Result"

// tell reports the outcome of a search, once, and sets the headers above in res
// if the client asked for them.
func (s *Server) tell(ctx context.Context, x *search, res *http.Response) {
	x.report.Tell(ctx, s.metrics, s.health, s.explanations)
	if res == nil {
		return
	}
	if x.report.ID != "" && x.control.asks() {
		res.Header.Set(explanationHeader, x.report.ID)
	}
	if became := x.report.Became(); became != "" && (s.opts.ResultHeader || x.control.explain) && !s.hides() {
		res.Header.Set(resultHeader, became)
	}
}

// hides reports whether HideFrom applies: then nobody learns related words, nor
// what others search for.
func (s *Server) hides() bool {
	hide := s.opts.HideFrom
	return hide&^expand.DiscloseSecured != 0 || hide != 0 && s.calls.secured.Load()
}

// leave ends a search: it reports the outcome and frees memory.
func (s *Server) leave(ctx context.Context, x *search) {
	s.tell(ctx, x, nil)
	s.pause.leave(x.ticket)
	x.hold.Release()
	x.body.arriving.Free()
}

// sent describes the search for judging an answer to it.
func (x *search) sent() *sentSearch {
	to := &sentSearch{client: &x.client, endpoint: x.endpoint}
	if w := x.rewritten; w != nil {
		to.strict = w.strict
		if !w.filtered {
			to.rewrote = w.rewrote
		}
	}
	return to
}

// rewrote reports whether the k-th search of a request differs from the
// client's: it has added terms or asks for other hits.
func (w *rewrittenSearch) rewrote(k int) bool {
	if k < len(w.Parts) && w.Parts[k].Rerank != nil {
		return true
	}
	prefix := "[" + strconv.Itoa(k) + "]"
	return slices.ContainsFunc(w.Clauses, func(c expand.Explanation) bool { return c.Form != "" && strings.HasPrefix(c.Path, prefix) })
}

// indexOf returns the index expression of the k-th search of a request with the
// given index in its path. It returns "" if k is unknown and the searches have
// different indices: a search of all indices includes that one.
func (w *rewrittenSearch) indexOf(path string, k int) string {
	switch {
	case len(w.Parts) == 0:
		return path
	case k >= 0 && k < len(w.Parts):
		return w.Parts[k].Index
	case slices.ContainsFunc(w.Parts, func(p expand.Part) bool { return p.Index != w.Parts[0].Index }):
		return ""
	}
	return w.Parts[0].Index
}
