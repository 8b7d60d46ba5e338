package proxy

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/akin-search/akin/evaluate/clicks"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/expand/dsl"
	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/internal/budget"
	"github.com/akin-search/akin/internal/jsonspan"
	"github.com/akin-search/akin/internal/nodes"
	"github.com/akin-search/akin/proxy/answer"
	"github.com/akin-search/akin/proxy/explain"
	"github.com/akin-search/akin/proxy/held"
	"github.com/akin-search/akin/proxy/playground"
	"github.com/akin-search/akin/proxy/trial"
	"github.com/akin-search/akin/proxy/wire"
)

// A search in a trial is one of the profile that its arm names. One that is
// interleaved is that of the first arm, on the way that every search goes; the
// hits of the second arm join its answer. Whatever becomes of these, the client
// gets what it would get without a trial.

// queryIDHeader names an interleaved search in its answer, so that clicks can
// be reported for it.
const queryIDHeader = "X-Akin-Query-Id"

// What became of a search that was to be interleaved, values of the label
// "result", with [explain.FailedOpen] for that of the first arm. Others are
// reasons why it cannot be, or causes of errors of the second arm.
const (
	interleaveDone    = "interleaved"
	interleavePage    = "page"       // it ends too far behind, or is asked for in an odd way
	interleaveNoHits  = "no_hits"    // an arm finds none: the answer is the other's
	interleaveBusy    = "busy"       // as many are under way as may be
	interleaveLate    = "late"       // the second arm takes much longer than the first
	interleaveNoReply = "unanswered" // no node answers the search of the second arm
	interleaveAnswer  = "unreadable" // an answer is too long or of some shards only, or its hits have no ids
)

const (
	// maxInterleaved is how many searches are interleaved at a time; one client
	// gets half.
	maxInterleaved = 256
	// maxInterleavedHits is where a page ends at most.
	maxInterleavedHits = 100
	// armGrace is how long the second arm may take after the first has its answer,
	// besides as long as that took.
	armGrace = 100 * time.Millisecond
	// maxQueryID is the longest id of a search that a client may give.
	maxQueryID = 128
)

// A part is that of a search in a trial.
type part struct {
	*trial.Trial

	unit string // that the arm is drawn for
	// second is the search of the second arm, nil where only one is searched for.
	// Both ask for all hits up to end. The client's rawQuery asks for those behind
	// the first from; it searches for text, and the page is named id.
	second    *search
	from, end int
	text, id  string
	rawQuery  string
}

// An enroller has searches take part in trials.
type enroller struct{ *Server }

// enroll has a search take part in the first trial of its index, unless the
// client says how it is to be searched, or it is no user's.
func (s enroller) enroll(x *search, r *http.Request) {
	at := slices.IndexFunc(s.opts.Trials, func(t trial.Trial) bool { return t.Covers(x.index) })
	if _, tried := playground.Adjusted(r.Context()); tried || at < 0 || x.control.off || x.control.profile != "" || x.control.feedback != 0 {
		return
	}
	p := &part{Trial: &s.opts.Trials[at], unit: x.client.Name}
	if p.Header != "" {
		p.unit = r.Header.Get(p.Header)
	}
	x.part = p
	drawn, arm := p.unit != "" && p.Draws(p.unit), 0
	if drawn && !p.Interleave {
		arm = 1
	}
	second := *x
	second.join(1)
	x.join(arm)
	switch {
	case !drawn || !p.Interleave || x.control.dryRun:
		s.metrics.Trial(p.Name, p.Arms[arm])
	case x.endpoint != expand.EndpointSearch || x.isAsync() || x.isTemplate() || x.typed:
		s.alone(x, string(reason.Endpoint))
	case !wire.AnswersJSON(x.rawQuery, r.Header):
		s.alone(x, answer.HiddenByFormat)
	case s.unfit.has(s.unfit.hash(x).Sum64()), s.unfit.has(s.unfit.hash(&second).Sum64()):
		s.alone(x, string(reason.TooLong))
	case s.pause.on.Load():
		s.alone(x, reasonPaused)
	default:
		p.second = &second
	}
}

// join has a search go the way of an arm.
func (x *search) join(arm int) {
	if x.control.off = x.part.Arms[arm] == trial.Off; !x.control.off {
		x.control.profile = x.part.Arms[arm]
	}
}

// interleaves reports whether both arms of a search are searched for.
func (x *search) interleaves() bool { return x.part != nil && x.part.second != nil }

// alone has a search get the first arm only, and counts why.
func (s enroller) alone(x *search, why string) {
	x.part.second = nil
	s.metrics.Interleaved.WithLabelValues(x.part.Name, why).Inc()
	s.metrics.Trial(x.part.Name, x.part.Arms[0])
}

// prepare makes the search of the second arm, unless that cannot be, as where
// the body is unread.
func (s enroller) prepare(x *search, unread string) {
	if !x.interleaves() {
		return
	}
	why := causePanic
	_ = s.guard.Do("preparing a trial", func() error {
		why = cmp.Or(unread, s.second(x))
		return nil
	})
	if why == "" && !s.interleaving.Take(x.client.Name) {
		why = interleaveBusy
	}
	if why != "" {
		s.alone(x, why)
	}
}

// second notes page, text and id of a search and makes that of the second arm,
// or returns why it cannot be interleaved.
func (s enroller) second(x *search) (why string) {
	p, second := x.part, x.part.second
	if len(x.body.plain) == 0 {
		return string(reason.NoClause)
	}
	var insights ubi
	second.body = x.body
	second.body.plain, insights = withoutUBI(x.body.plain)
	parameters, odd := dsl.ReadParameters(x.rawQuery)
	if odd != "" {
		return string(odd)
	}
	said, odd := new(dsl.Parser).Parse(second.body.plain, &parameters)
	page, known := said.Page(&parameters)
	for i := range said.Clauses {
		p.text = cmp.Or(p.text, said.Clauses[i].Text)
	}
	switch {
	case odd != "":
		return string(odd)
	case said.PIT.Has:
		return string(reason.PointInTime)
	case said.NoRescore != "": // sort, scroll, collapse and the like
		return string(said.NoRescore)
	case said.Hits.Bare, said.Hits.Ext && len(second.body.plain) == len(x.body.plain): // by filter_path, for one
		return string(reason.Answer)
	case !known || page.From > maxInterleavedHits-page.Size:
		return interleavePage
	case p.text == "":
		return string(reason.NoClause)
	}
	p.text = cmp.Or(insights.UserQuery, p.text)
	if p.id = insights.QueryID; p.id == "" || len(p.id) > maxQueryID || strings.ContainsFunc(p.id, unicode.IsControl) { // no value of a header
		p.id = rand.Text()
	}
	p.from, p.end, p.rawQuery = page.From, page.From+page.Size, x.rawQuery
	first := *x
	if p.from > 0 {
		first.rawQuery = wire.CutParameters(x.rawQuery, func(name, _ string) bool { return name == "from" || name == "size" })
		first.rawQuery = strings.TrimPrefix(first.rawQuery+"&from=0&size="+strconv.Itoa(p.end), "&") // parameters go before the body
	}
	second.rawQuery = first.rawQuery
	if s.wasRejected(&first) || s.wasRejected(second) {
		return reasonRejected
	}
	x.rawQuery = first.rawQuery
	return ""
}

// A ubi is what User Behavior Insights of OpenSearch has in a search.
type ubi struct {
	QueryID   string `json:"query_id"`
	UserQuery string `json:"user_query"`
}

// withoutUBI returns a body without what User Behavior Insights has in ext,
// where that has nothing else, and what it says: the cluster records each
// search that has it, and these are two for one.
func withoutUBI(body []byte) (rest []byte, said ubi) {
	var r jsonspan.Reader
	r.Reset(body)
	rest = body
	_ = r.Object(func(name []byte) error { // it is parsed again
		at, err := r.Value()
		var ext map[string]ubi
		if err == nil && string(name) == "ext" && json.Unmarshal(at.Of(body), &ext) == nil && len(ext) == 1 {
			if u, has := ext["ubi"]; has {
				said, rest = u, jsonspan.AppendEdited(nil, body, 0, len(body), []jsonspan.Edit{{At: at, Text: "{}"}})
			}
		}
		return err
	})
	return rest, said
}

// A secondAnswer is what came of the search of the second arm.
type secondAnswer struct {
	list    *answer.HitList
	cause   string          // why list is not the ranking of the arm, "" where it is
	refused *answer.Failure // what the cluster has against the search
}

// searchSecond has the search of the second arm expanded and sent, and its hits
// read.
func (t *searchTransport) searchSecond(out *http.Request, own *search) (b secondAnswer) {
	if e, why := t.choose(own, out.Header); why != "" {
		t.metrics.Unchanged(why)
		t.recordUnchanged(own, out, why)
	} else if err := (rewriter{t.Server}).rewriteSearch(out, own, e); err != nil {
		b.cause = t.cause(err)
		return b
	}
	if own.rewritten == nil {
		own.rewritten = &rewrittenSearch{Result: new(expand.Result), rawQuery: own.rawQuery, body: own.body.plain}
	}
	sent := own.asRewritten(out)
	own.rewritten.strict = answer.MakeVisible(own.endpoint, sent)
	res, err := t.next.RoundTrip(sent)
	if err != nil {
		b.cause = interleaveNoReply
		return b
	}
	defer func() { _ = res.Body.Close() }()
	var fits bool
	switch b.refused, fits, err = t.accept(out.Context(), own, res); {
	case err != nil:
		b.cause = interleaveNoReply
	case b.refused != nil || res.StatusCode != http.StatusOK:
		b.cause = causeRejected
	case !fits || own.failedOpen: // counted
		b.cause = interleaveAnswer
	default:
		whole, err := own.client.Whole(t.opts.Memory, res)
		own.hold.Add(int64(len(whole))) // until it is mixed: res is closed before
		b.list, b.cause = t.readHits(own, whole, err)
	}
	return b
}

// readHits reads the hits in an arm's whole answer, or returns the cause why
// they are not its ranking.
func (t *searchTransport) readHits(x *search, whole []byte, err error) (list *answer.HitList, cause string) {
	cause = interleaveAnswer
	switch {
	case errors.Is(err, held.ErrTooLarge):
		t.unfit.note(t.unfit.hash(x).Sum64()) // the next one would be like it
	case err != nil:
		cause = t.cause(err)
	default:
		if list, err = answer.ReadHitList(whole, x.part.end); err == nil {
			cause = ""
		}
	}
	return list, cause
}

// searchBoth sends the search of the first arm, and at the same time that of
// the second, which has as long as the first one takes, and armGrace.
func (t *searchTransport) searchBoth(out *http.Request, x *search) (res *http.Response, b secondAnswer, err error) {
	own, start := x.part.second, time.Now()
	out.Header.Del("Accept-Encoding") // the answers are read
	ctx, cancel := context.WithCancel(context.WithValue(out.Context(), searchKey{}, own))
	second := out.Clone(ctx)
	second.RemoteAddr = "" // what is said of it is there already
	b.cause = causePanic
	var searching sync.WaitGroup
	searching.Go(func() {
		_ = t.guard.Do("searching for the second arm", func() error {
			b = t.searchSecond(second, own)
			return nil
		})
	})
	defer searching.Wait()
	defer cancel()
	if res, err = t.sendRewritten(out, x); err != nil {
		return nil, b, err
	}
	late := time.AfterFunc(time.Since(start)+armGrace, cancel)
	defer late.Stop()
	searching.Wait()
	if ctx.Err() != nil {
		b.cause = interleaveLate
	}
	return res, b, nil
}

// interleave returns the answer to the first arm with the hits of both.
func (t *searchTransport) interleave(out *http.Request, x *search) (*http.Response, error) {
	p, own, ctx := x.part, x.part.second, out.Context()
	defer t.interleaving.Give(x.client.Name)
	own.hold = t.opts.Memory.Hold(budget.SearchBody, x.client.Name)
	defer own.hold.Release()
	defer t.searched(own)
	res, b, err := t.searchBoth(out, x)
	if err != nil {
		return nil, err
	}
	x.id = strings.Trim(x.id+","+own.id, ",")
	good, why, arm := res.StatusCode == http.StatusOK, b.cause, 0
	failed := why
	switch {
	case b.refused != nil && own.rewritten.Rewritten:
		t.originalAnswered(ctx, own, b.refused, res, nil)
		failed = "" // noted
	case !good:
		why, failed = causeRejected, ""
	}
	if x.failedOpen { // it is not the arm's answer
		why = explain.FailedOpen
	}
	result := why
	if good && (why == "" || p.from > 0) {
		if why != "" {
			b.list = new(answer.HitList)
		}
		mixed := causePanic
		_ = t.guard.Do("interleaving", func() error {
			mixed, arm = t.mix(x, res, b.list)
			return nil
		})
		result = cmp.Or(why, mixed)
		if mixed != interleaveDone && mixed != interleaveNoHits {
			if failed = mixed; p.from > 0 { // the page cannot be cut out
				_ = res.Body.Close()
				out.URL.RawQuery = p.rawQuery
				res, err = t.sendOriginal(out.WithContext(nodes.Repeated(ctx)), x)
			}
		}
	}
	if failed != "" && ctx.Err() == nil {
		t.health.FailedOpen(ctx, failedTrial, failed, x.index)
	}
	t.metrics.Interleaved.WithLabelValues(p.Name, result).Inc()
	if result != interleaveDone {
		t.metrics.Trial(p.Name, p.Arms[arm])
	}
	return res, err
}

// mix puts a page of the hits of both arms into the answer to the first, or
// into the second's where the first has none. It returns what became of it, and
// whose answer it is.
func (t *searchTransport) mix(x *search, res *http.Response, second *answer.HitList) (result string, arm int) {
	whole, err := x.client.Whole(t.opts.Memory, res)
	first, why := t.readHits(x, whole, err)
	if why != "" {
		return why, 0
	}
	p, lists := x.part, [2]*answer.HitList{first, second}
	switch result = interleaveDone; {
	case second.IsEmpty():
		result = interleaveNoHits
	case first.IsEmpty():
		result, arm = interleaveNoHits, 1
	}
	if lists[arm].IsEmpty() {
		return result, arm
	}
	picks := p.Draft(p.unit, p.text, first.Names(), second.Names(), p.end)
	shown := clicks.Impression{QueryID: p.id, Query: p.text, Trial: p.Name, Between: p.Arms[:], Clicked: []string{}}
	var page [][]byte
	for _, pick := range picks[min(p.from, len(picks)):] {
		id, text := lists[pick.List].Hit(pick.Rank)
		whose := ""
		if pick.Arm != trial.Neither {
			whose = p.Arms[pick.Arm]
		}
		page, shown.Shown, shown.Arms = append(page, text), append(shown.Shown, id), append(shown.Arms, whose)
	}
	t.replace(x, res, lists[arm].WithTexts(page, lists[1-arm]))
	if result == interleaveDone {
		res.Header.Set(queryIDHeader, p.id)
		if len(page) > 0 {
			t.impressions.Add(shown)
		}
	}
	return result, arm
}
