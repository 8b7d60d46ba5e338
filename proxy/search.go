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

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/internal/limits"
	"github.com/akin-search/akin/internal/nodes"
	"github.com/akin-search/akin/internal/recovery"
	"github.com/akin-search/akin/internal/tracing"
	"github.com/akin-search/akin/proxy/answer"
	"github.com/akin-search/akin/proxy/playground"
	"github.com/akin-search/akin/proxy/report"
)

// The way of a search, in the order of this file: Server.search takes it in and
// reads it, rewriteSearch has it rewritten, and send (forward.go) sends it with
// forward: that sends the rewritten search, looks at the answer and takes it, or
// sends the original.

const (
	// maxKeptBody is the largest body that is kept though akin does not look at it.
	maxKeptBody = 64 << 10
	// maxDrained is how much of a rejection is read to use its connection again.
	maxDrained = 64 << 10
)

// A search is one on its way from the client to the answer.
type search struct {
	match

	rawQuery string // without akin's own parameters
	control  control
	client   limits.Recipient
	header   http.Header  // of the client's request, not to be modified
	ticket   uint64       // of the trial in a pause, 0 for none
	hold     *limits.Hold // the memory that it takes
	body     body
	// rewritten is what is sent first, or as a shadow; nil for the original only.
	rewritten *rewrittenSearch
	// shadow rewrites it after the client has the answer to the original.
	shadow Expander
	asked  *sync.Map // the accessKeys of the client
	report report.Search
}

// A body is that of a search.
type body struct {
	arriving *limits.Arriving // nil where it is not read
	// whole says that raw is all of it as it came. plain is raw decompressed, nil
	// where akin does not look at it.
	whole      bool
	raw, plain []byte
}

// A rewrittenSearch is what the expander made of one.
type rewrittenSearch struct {
	*expand.Result

	// rawQuery and body are as they are sent, for templates not as the expander's.
	rawQuery string
	body     []byte
	filtered bool   // the answer shows what failed, but not of which search
	strict   bool   // the cluster rejects the search where a shard fails
	scroll   string // the scroll that the answer opened, "" for none
}

// search forwards a search, rewritten where that is possible.
func (s *Server) search(w http.ResponseWriter, r *http.Request, m match) {
	x := &search{match: m, header: r.Header, asked: new(sync.Map), client: limits.Recipient{
		Name: limits.Client(r.RemoteAddr), Conn: http.NewResponseController(w), Grace: s.answerGrace, CutOff: s.metrics.SlowRead,
	}}
	x.hold = s.opts.Memory.Hold(limits.SearchBody, x.client.Name)
	defer func() { //nolint:contextcheck // It is the client's.
		s.tell(r.Context(), x, nil)
		if x.shadow == nil { // else the shadow is the trial of a pause
			s.pause.leave(x.ticket)
		}
		x.hold.Release()
		x.body.arriving.Free()
	}()
	r = r.WithContext(context.WithValue(r.Context(), clientKey{}, x.client.Name))
	report.Name(r, m.shape)
	x.rawQuery, x.control = cutControl(r.URL.RawQuery, r.Header)
	if _, tried := playground.Adjusted(r.Context()); !tried && !x.control.off && x.control.profile == "" && x.control.feedback == 0 {
		x.report.Trial, x.report.Arm = drawArm(s.opts.Trials, x.index, x.client.Name, r.Header)
	}
	if x.report.Trial != "" {
		s.metrics.Trial(x.report.Trial, x.report.Arm)
		if x.control.off = x.report.Arm == Off; !x.control.off {
			x.control.profile = x.report.Arm
		}
	}
	expander, why := s.choose(x, r.Header)
	var err error
	if why == "" {
		_, span := tracing.Start(r.Context(), "read")
		why, err = s.readBody(w, r, x)
		span.End()
	}
	if why != "" && err == nil {
		err = s.keepBody(w, r, x)
	}
	if err != nil { // the request itself is broken: there is nothing to forward
		s.brokenBody(w, x)
		return
	}
	if why == "" {
		why = s.backsOff(x)
	}
	s.lookedAt(x, r)
	switch {
	case why != "":
		x.made(&expand.Result{Reason: reason.Reason(why)})
		x.report.Outcome, x.report.Why, x.report.Explain = report.Unchanged, why, x.control.asks()
		if why == reasonMemory { // it has failed
			x.report.Outcome = report.FailedOpen
			x.report.Fail(r.Context(), report.Failure{What: failedSearch, Cause: why})
		}
	case s.opts.Shadow > 0 && !x.control.asks(): // nobody waits for the expansion
		x.report.Outcome, x.report.Why = report.Unchanged, reasonShadow
		x.shadow = expander
	default:
		x.rewritten = s.rewriteSearch(r, x, expander)
	}
	if x.rewritten == nil { // what comes now is the cluster's affair, and may take long
		s.tell(r.Context(), x, nil)
	}
	s.send(w, r, x)
}

// explanationHeader names the record of a search that asked for it in its
// answer.
const explanationHeader = "X-Akin-Explanation"

// tell tells what became of a search, once, and names its record in the answer
// res if the client asked for it.
func (s *Server) tell(ctx context.Context, x *search, res *http.Response) {
	x.report.Tell(ctx, s.metrics, s.health, s.explanations)
	if x.report.ID != "" && res != nil && x.control.asks() {
		res.Header.Set(explanationHeader, x.report.ID)
	}
}

func (x *search) kind() kind { return kind{x.endpoint, x.index, x.control.profile} }

// sent is what an answer to it is the answer to.
func (x *search) sent() *sentSearch {
	to := &sentSearch{client: &x.client, endpoint: x.endpoint}
	if w := x.rewritten; w != nil {
		if to.strict = w.strict; !w.filtered {
			to.rewrote = w.rewrote
		}
	}
	return to
}

// shapeOf returns the hash by which it is remembered that the cluster rejects
// searches like x of its client.
func (s *Server) shapeOf(x *search) uint64 {
	return s.shapes.shapeOf(x.kind(), x.client.Name, x.header, x.rawQuery, x.body.plain)
}

// lookedAt reports which search it is.
func (s *Server) lookedAt(x *search, r *http.Request) {
	coding, _ := answer.ContentEncoding(r.Header)
	x.report.Endpoint, x.report.Index, x.report.Profile = x.endpoint, x.index, x.control.profile
	x.report.Original, x.report.Packed = report.Message{RawQuery: answer.Known(x.rawQuery), Body: x.body.raw}, coding != ""
	x.report.AsItCame = x.control.dryRun || s.opts.Shadow > 0
}

// made reports what the expander made of the search.
func (x *search) made(res *expand.Result) {
	shown := *res
	shown.RawQuery = answer.Known(res.RawQuery) // the rest may be credentials
	x.report.Result, x.report.Reason = &shown, reasonOf(res)
}

// choose returns the expander for a search, or why it is forwarded as it came.
func (s *Server) choose(x *search, h http.Header) (e Expander, reason string) {
	switch {
	case x.control.off:
		return nil, reasonOff
	case x.endpoint == expand.EndpointRankEval && !s.opts.RankEval:
		return nil, reasonRankEvalOff
	case x.isTemplate() && !s.opts.Templates:
		return nil, reasonTemplateOff
	case s.opts.Shadow > 0 && !x.control.asks() && !sampled(s.opts.Shadow, x.match, x.rawQuery):
		return nil, reasonShadow
	}
	if e, reason = s.expanderFor(x.control.profile); reason == "" {
		reason = answer.Hidden(x.endpoint, x.isAsync(), x.rawQuery, h)
	}
	return e, reason
}

// expanderFor returns the expander of a profile, or why there is none.
func (s *Server) expanderFor(profile string) (e Expander, reason string) {
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
// search is forwarded as it came. An error says that the body broke off.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request, x *search) (reason string, err error) {
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
	if reason, err = s.takeBody(w, r, x, s.opts.MaxBody); reason != "" || err != nil || len(b.raw) == 0 {
		return reason, err
	}
	switch {
	case len(types) == 0:
		return reasonContentType, nil
	case coding == "":
		b.plain = b.raw
	default:
		if b.plain, err = s.gunzip.Read(b.raw, x.hold, s.opts.MaxBody); err != nil {
			reason, _ = reasonOfBody(err)
			return cmp.Or(reason, reasonEncoding), nil
		}
	}
	return "", nil
}

// keepBody reads a small body that akin does not look at, so that another node
// can be sent the search. An error says that the body broke off.
func (s *Server) keepBody(w http.ResponseWriter, r *http.Request, x *search) error {
	if x.body.arriving != nil || r.ContentLength <= 0 || r.ContentLength > maxKeptBody || !s.upstream.Several() {
		return nil
	}
	_, err := s.takeBody(w, r, x, r.ContentLength)
	return err
}

// takeBody reads a body of at most limit bytes, or returns why it does not.
func (s *Server) takeBody(w http.ResponseWriter, r *http.Request, x *search, limit int64) (reason string, err error) {
	buffer := s.opts.Memory.Hold(limits.SearchBody, x.client.Name)
	x.body.arriving = limits.NewArriving(w, r, s.bodyGrace, s.opts.BodyTimeout, s.guard, buffer)
	x.body.raw, err = x.body.arriving.Take(r, x.hold, limit)
	x.body.whole = err == nil
	return reasonOfBody(err)
}

// reasonOfBody returns why a body is not read, or the error where it is broken.
func reasonOfBody(err error) (reason string, broken error) {
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

// backsOff returns why a search is not rewritten, since the cluster recently
// refused others that were, "" where it is.
func (s *Server) backsOff(x *search) (why string) {
	paused := false
	switch {
	case s.shapes.count.Load() > 0 && s.shapes.has(s.shapeOf(x)):
		return reasonRejected
	case !x.control.dryRun: // else no rewritten search is sent
		x.ticket, paused = s.pause.enter()
	}
	if paused {
		return reasonPaused
	}
	return ""
}

// rewriteSearch returns what a search becomes that is rewritten; nil where the
// original is sent, which the report says why.
func (s *Server) rewriteSearch(r *http.Request, x *search, e Expander) *rewrittenSearch {
	made, err := s.expand(r.Context(), r, x, e)
	told := &x.report
	switch {
	case err != nil:
		told.Outcome, told.Why = report.FailedOpen, told.Cause
	case !made.Rewritten && len(made.Failures) > 0: // its parts say it all
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

// expand has the search rewritten within the budget, and reports what the
// expander made of it.
func (s *Server) expand(ctx context.Context, r *http.Request, x *search, e Expander) (made *rewrittenSearch, err error) {
	traced, span := tracing.Start(ctx, "expand")
	defer span.End()
	bounded, cancel := context.WithTimeout(traced, s.opts.Budget)
	defer cancel()
	start := time.Now()
	err = s.guard.Do("expanding", func() (err error) {
		made, err = s.callExpander(bounded, r, x, e)
		return err
	})
	told := &x.report
	told.Took, told.Expanded, told.Explain = time.Since(start), true, true
	if errors.Is(err, errUndecided) {
		made, err = &rewrittenSearch{Result: &expand.Result{Reason: reasonUndecided}}, nil
	}
	if err != nil {
		told.Cause = s.cause(err)
		told.Fail(ctx, report.Failure{What: failedSearch, Cause: told.Cause})
		s.log.DebugContext(ctx, "search was not expanded", "index", x.index, "cause", told.Cause, "err", err)
		return nil, err
	}
	made.Failures = slices.DeleteFunc(made.Failures, func(err error) bool {
		undecided := errors.Is(err, errUndecided)
		if undecided {
			told.Parts = append(told.Parts, report.Part{Outcome: report.Unchanged, Why: reasonUndecided})
		}
		return undecided
	})
	for _, failure := range made.Failures {
		cause := s.cause(failure)
		told.Parts = append(told.Parts, report.Part{Outcome: report.FailedOpen, Why: cause})
		told.Fail(ctx, report.Failure{What: failedSearch, Cause: cause})
		s.log.DebugContext(ctx, "a search of several was not expanded", "index", x.index, "cause", cause, "err", failure)
	}
	x.made(made.Result)
	if s.opts.LogQueries {
		s.log.InfoContext(ctx, "search", "index", x.index, "query", answer.Known(x.rawQuery), "body", string(x.body.plain),
			"rewritten", made.Rewritten, "rewritten_query", answer.Known(made.RawQuery), "rewritten_body", string(made.Body))
	}
	return made, nil
}

// callExpander returns what the expander makes of a search, as it is sent.
func (s *Server) callExpander(ctx context.Context, r *http.Request, x *search, e Expander) (made *rewrittenSearch, err error) {
	adjusted, _ := playground.Adjusted(ctx)
	in := &expand.Request{
		Endpoint: x.endpoint, Index: x.index, RawQuery: x.rawQuery, Body: x.body.plain, Preview: x.control.dryRun,
		Adjusted: adjusted, Fixed: s.fixed(x, r.Header), Feedback: x.control.feedback,
	}
	if s.access.secured.Load() {
		in.Allowed = s.access.checker(s.sentHeader(r), x.rawQuery, x.client.Name, x.asked)
	}
	var t *templateRendering
	if x.isTemplate() {
		var why string
		if t, why, err = (&templateRenderer{Guard: s.guard, Ask: s.asking(r, x)}).Render(ctx, in); err != nil {
			return nil, err
		} else if why != "" {
			return &rewrittenSearch{Result: &expand.Result{Reason: reason.Reason(why)}}, nil
		}
		in.Body, in.Discloses = t.Rendered, t.Discloses()
	}
	made = new(rewrittenSearch)
	if made.Result, err = e.Expand(ctx, in); err == nil && len(made.FirstPasses) > 0 {
		made.Result = s.withFeedback(ctx, r, x, e, in, made.Result)
	}
	if err != nil || !made.Rewritten {
		return made, err
	}
	made.body = made.Body
	if t != nil {
		made.body, err = t.Seal(made.Body, made.rewrote)
	}
	made.rawQuery, made.filtered = answer.ShowFailures(x.endpoint, made.RawQuery)
	return made, err
}

// fixed returns why the hits of the answer to a request cannot be reranked, ""
// where they can. The expander reads filter_path, but not of several searches.
func (s *Server) fixed(x *search, h http.Header) reason.Reason {
	switch {
	case x.isAsync():
		return reason.Endpoint
	case !answer.AnswersJSON(x.rawQuery, h), x.endpoint == expand.EndpointMultiSearch && answer.FilterPath(x.rawQuery) != "":
		return reason.Answer
	case s.unrerankable.has(s.unrerankable.hash(x.kind()).Sum64()):
		return reason.TooLong
	}
	return ""
}

// withFeedback returns the result of a second expansion, which knows the first
// hits that the first one asks for; where that fails, the first.
func (s *Server) withFeedback(ctx context.Context, r *http.Request, x *search, e Expander, in *expand.Request, first *expand.Result) *expand.Result {
	if s.feedback.terms == nil {
		return first
	}
	ctx, span := tracing.Start(ctx, "feedback")
	defer span.End()
	second := *in
	second.Pins = first.Pins
	var results []string
	second.FirstHits, results = s.feedback.firstHits(ctx, first.FirstPasses, x.client.Name, x.hold, s.asking(r, x))
	out := first
	if slices.Contains(results, feedbackUsed) {
		var result string
		out, result = s.expandAgain(ctx, e, &second, first)
		for i := range results {
			if results[i] == feedbackUsed {
				results[i] = result
			}
		}
	}
	x.report.Feedback = map[string]int{feedbackTooMany: first.TooManyFirstPasses}
	for _, result := range results {
		if result == "" {
			continue
		}
		x.report.Feedback[result]++
		if result != feedbackUsed && result != feedbackNoHits && result != feedbackNoTerms {
			x.report.Fail(r.Context(), report.Failure{What: failedFeedback, Cause: result, Minor: true}) //nolint:contextcheck // The budget may be over; what counts is whether the client is there.
		}
	}
	return out
}

// expandAgain returns the result of the second expansion, and what became of
// the feedback; where one of the searches fails, that of the first.
func (s *Server) expandAgain(ctx context.Context, e Expander, in *expand.Request, first *expand.Result) (out *expand.Result, result string) {
	err := s.guard.Do("expanding", func() (err error) {
		out, err = e.Expand(ctx, in)
		return err
	})
	if err == nil && len(out.Failures) > len(first.Failures) {
		err = out.Failures[0]
	}
	switch {
	case err != nil:
		return first, s.cause(err)
	case !out.Rewritten:
		return first, feedbackNoTerms
	}
	return out, feedbackUsed
}

func (s *Server) cause(err error) string {
	switch {
	case errors.Is(err, recovery.ErrPanic):
		return causePanic
	case errors.Is(err, limits.ErrNoRoom):
		return reasonMemory
	}
	return s.opts.Cause(err)
}

// reasonOf returns why nothing was rewritten, in the whole or a first clause.
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

// forward sends out to the cluster: a search x, or with nil another request. It
// learns from the answer.
func (s *Server) forward(out *http.Request, x *search) (res *http.Response, err error) {
	out = markSafe(out, s.upstream, x != nil)
	if x == nil {
		if res, err = s.transport.RoundTrip(out); err == nil && s.judge.showsSecurity(res) {
			s.access.secure(out.Context(), res.StatusCode)
		}
		return res, err
	}
	start := time.Now()
	defer func() { s.metrics.Upstream.Observe(time.Since(start).Seconds()) }()
	if x.shadow != nil {
		res, err = s.shadow(out, x)
	} else {
		res, err = s.sendRewritten(out, x)
	}
	if err == nil {
		// An index that is blocked (index.blocks.read) answers 403, too.
		denied := answer.IsDenied(res.StatusCode) && (res.StatusCode != http.StatusForbidden || !s.judge.tellsOfBlock(x.sent(), res))
		s.access.learn(out.Context(), x.asked, x.endpoint == expand.EndpointMultiSearch, res.StatusCode, denied)
	}
	return res, err
}

// sendRewritten sends the rewritten search, if there is one, and after a 4xx or
// 5xx, or a failure inside a 200, once the original, whose answer counts: not
// if the client may not search or nobody answers, and within the retry budget
// if the cluster is overloaded.
func (s *Server) sendRewritten(out *http.Request, x *search) (*http.Response, error) {
	if x.rewritten == nil {
		return s.sendOriginal(out, x)
	}
	ctx := out.Context()
	rewritten := x.asRewritten(out)
	x.rewritten.strict = answer.MakeVisible(x.endpoint, rewritten)
	res, err := s.transport.RoundTrip(rewritten)
	if err != nil {
		return nil, err
	}
	refused, fits, gone := s.accept(ctx, x, res)
	if fits {
		return res, nil
	}
	_, _ = io.CopyN(io.Discard, res.Body, maxDrained) // to its end, if that is near: the connection can be used again
	_ = res.Body.Close()
	if gone != nil {
		return nil, gone
	}
	s.clearScroll(out, x.rewritten.scroll) //nolint:contextcheck // It goes on when the client has gone.
	again, span := tracing.Start(nodes.Repeated(ctx), "fallback")
	res, err = s.sendOriginal(out.WithContext(again), x)
	span.End()
	if refused != nil {
		s.originalAnswered(ctx, x, refused, res, err)
	}
	return res, err
}

// accept looks at the answer to a rewritten search and reranks its hits, if
// asked to. It returns whether the client gets it, or what the cluster has
// against the search. An error says that the client has gone and broke the
// answer off.
func (s *Server) accept(ctx context.Context, x *search, res *http.Response) (refused *answer.Failure, fits bool, gone error) {
	v := s.judge.verdict(x.sent(), res)
	refused, x.rewritten.scroll = v.refused, v.scroll
	if gone = ctx.Err(); gone != nil {
		return nil, false, gone
	}
	if v.err != nil {
		x.report.Unchecked = true
		x.report.Fail(ctx, report.Failure{What: failedSearch, Cause: causeUnchecked, Minor: true})
	}
	if refused != nil && !s.sendsOriginal(ctx, x, refused) {
		if refused.Status != 0 {
			return nil, true, nil
		}
		refused = nil // the client gets what there is
	} else if refused == nil {
		s.accepted(ctx, x)
	}
	if refused != nil || len(x.rewritten.Reranks) == 0 {
		return refused, refused == nil, nil
	}
	fits, gone = s.rerank(ctx, x, res)
	return nil, fits, gone
}

// rerank reranks the hits of an answer and cuts the client's pages out of them.
// It reports false where it cannot: then the client must not get the answer. An
// error says that the client has gone.
func (s *Server) rerank(ctx context.Context, x *search, res *http.Response) (fits bool, gone error) {
	var whole, out []byte
	err := errUnchecked // also where it is encoded, which was not asked for
	if len(res.Header["Content-Encoding"]) == 0 && answer.IsJSON(res.Header["Content-Type"]) {
		whole, err = x.client.Whole(s.opts.Memory, res)
	}
	if err != nil && ctx.Err() != nil {
		return false, ctx.Err()
	}
	ctx, span := tracing.Start(ctx, "rerank")
	defer span.End()
	reranks := x.rewritten.Reranks
	results := ofEach(reranks, rerankUnreadable)
	start := time.Now()
	if err == nil {
		out, results = s.reranking.answer(ctx, x.endpoint, reranks, whole)
	}
	x.report.RerankTook, x.report.Reranked, x.report.Uncut = time.Since(start), results, out == nil
	for _, result := range results {
		if result != "" && result != rerankedHits && result != rerankNothing {
			x.report.Fail(ctx, report.Failure{What: failedRerank, Cause: result})
		}
	}
	if out == nil {
		if err == nil || errors.Is(err, errUnchecked) || errors.Is(err, limits.ErrTooLarge) {
			s.unrerankable.note(s.unrerankable.hash(x.kind()).Sum64()) // the next one would be like it; else it broke off, or there was no room
		}
		s.log.DebugContext(ctx, "an answer could not be reranked", "index", x.index, "err", err)
		return false, nil
	}
	s.replace(x, res, out)
	return true, nil
}

// replace puts another body in the place of an answer.
func (s *Server) replace(x *search, res *http.Response, body []byte) {
	x.client.Replace(s.opts.Memory, res, body)
	if res.ContentLength >= 0 {
		res.ContentLength = int64(len(body))
		res.Header["Content-Length"] = []string{strconv.Itoa(len(body))}
	}
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
		taken = s.judge.verdict(x.sent(), res).refused == nil // one that cannot be looked at counts as good
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

func (s *Server) sendOriginal(out *http.Request, x *search) (*http.Response, error) {
	if x.body.whole {
		setBody(out, x.body.raw)
	}
	return s.transport.RoundTrip(out)
}

// asRewritten returns a copy of out with the rewritten search, of the same
// method and media type.
func (x *search) asRewritten(out *http.Request) *http.Request {
	sent := out.Clone(out.Context())
	sent.URL.RawQuery = x.rewritten.rawQuery
	sent.TransferEncoding = nil
	sent.ContentLength = int64(len(x.rewritten.body))
	setBody(sent, x.rewritten.body)
	h := sent.Header
	h.Del("Content-Encoding")
	if len(x.rewritten.Reranks) > 0 {
		h.Del("Accept-Encoding") // the answer is read and changed
	}
	if len(x.body.raw) == 0 {
		// There was no body to have a type. Elasticsearch 8 wants the versions in
		// Accept and Content-Type to be the same.
		h["Content-Type"] = []string{"application/json"}
		if answer.IsJSON(h["Accept"]) {
			h["Content-Type"] = h["Accept"]
		}
	}
	return sent
}

// setBody sets the body, not its length: a chunked original stays chunked.
// GetBody lets a connection that was closed while idle be replaced.
func setBody(out *http.Request, body []byte) {
	out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	out.Body = io.NopCloser(bytes.NewReader(body))
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
