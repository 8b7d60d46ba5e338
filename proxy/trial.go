package proxy

import (
	"bytes"
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

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/expand/dsl"
	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/internal/budget"
	"github.com/akin-search/akin/proxy/answer"
	"github.com/akin-search/akin/proxy/held"
	"github.com/akin-search/akin/proxy/trial"
	"github.com/akin-search/akin/proxy/wire"
)

// queryIDHeader names an interleaved search in its answer, so that clicks can
// be reported for it.
const queryIDHeader = "X-Akin-Query-Id"

// What became of a search that was to be interleaved, values of the label
// "result". Others are reasons why it cannot be, or causes of errors; then the
// client gets the answer of one arm, or to its original search.
const (
	interleaveDone    = "interleaved"
	interleavePage    = "page"       // it ends too far behind, or is asked for in an odd way
	interleaveNoHits  = "no_hits"    // an arm finds none: the answer is the other's
	interleaveBusy    = "busy"       // as many are under way as may be
	interleaveLate    = "late"       // an arm takes much longer than the other
	interleaveNoReply = "unanswered" // no node answers the search of an arm
	interleaveAnswer  = "unreadable" // an answer is too long, or its hits have no ids
)

const (
	// maxInterleaved is how many searches are interleaved at a time; one client
	// gets half.
	maxInterleaved = 256
	// maxInterleavedHits is where a page ends at most.
	maxInterleavedHits = 100
	// armGrace is how long the second answer may take after the first, besides as
	// long as that took.
	armGrace = 100 * time.Millisecond
	// maxQueryID is the longest id of a search that a client may give.
	maxQueryID = 128
)

// A part is that of a search in a trial.
type part struct {
	*trial.Trial

	unit string // that the arm is drawn for
	arm  string // in an explanation
	// both has the search interleaved, if it can be: a page of the hits for text,
	// named id. rawQuery asks for all hits up to the end of the page.
	both       bool
	from, size int
	text, id   string
	rawQuery   string
}

// An enroller has searches take part in trials.
type enroller struct{ *Server }

// enroll has a search take part in the first trial of its index, unless the
// client says how it is to be searched.
func (s enroller) enroll(x *search, r *http.Request) {
	at := slices.IndexFunc(s.opts.Trials, func(t trial.Trial) bool { return t.Covers(x.index) })
	if at < 0 || x.control.off || x.control.profile != "" {
		return
	}
	p := &part{Trial: &s.opts.Trials[at], unit: x.client.Name}
	if p.Header != "" {
		p.unit = r.Header.Get(p.Header)
	}
	drawn := p.unit != "" && p.Draws(p.unit)
	p.both = drawn && p.Interleave && !x.control.dryRun
	arm := 0
	if drawn && !p.Interleave {
		arm = 1
	}
	x.part = p
	x.join(arm)
	if !p.both {
		s.metrics.trial(p, arm)
	}
}

// join has a search go the way of an arm.
func (x *search) join(arm int) {
	p := *x.part
	p.arm = p.Arms[arm]
	x.part, x.control.profile = &p, p.arm
	if x.control.off = p.arm == trial.Off; x.control.off {
		x.control.profile = ""
	}
}

// interleaves reports whether both arms of a search are to be searched.
func (x *search) interleaves() bool { return x.part != nil && x.part.both }

// prepare notes what has to be known of a search to interleave it, unless it is
// none of those; where that cannot be done the search gets the first arm.
func (s enroller) prepare(x *search, h http.Header, unread string) {
	if !x.interleaves() {
		return
	}
	why := unread
	if err := s.guard.Do("preparing a trial", func() error {
		why = cmp.Or(why, s.interleavable(x, h))
		return nil
	}); err != nil {
		why = causePanic
	}
	if why == "" && !s.interleaving.Take(x.client.Name) {
		why = interleaveBusy
	}
	if why != "" {
		x.part.both = false
		s.metrics.interleaved.WithLabelValues(x.part.Name, why).Inc()
		s.metrics.trial(x.part, 0)
	}
}

// interleavable notes page, text and id of a search, or returns why it cannot
// be interleaved.
func (s enroller) interleavable(x *search, h http.Header) (why string) {
	p := x.part
	parameters, odd := dsl.ReadParameters(x.rawQuery)
	switch {
	case x.endpoint != expand.EndpointSearch || x.isAsync() || x.isTemplate() || x.typed:
		return string(reason.Endpoint)
	case len(x.body.plain) == 0:
		return string(reason.NoClause)
	case odd != "":
		return string(odd)
	case !wire.AnswersJSON(x.rawQuery, h):
		return answer.HiddenByFormat
	}
	for arm := range p.Arms {
		own := *x
		if own.join(arm); s.unfit.has(s.unfit.hash(&own).Sum64()) {
			return string(reason.TooLong)
		}
	}
	said, odd := new(dsl.Parser).Parse(x.body.plain, &parameters)
	page, known := said.Page(&parameters)
	for i := range said.Clauses {
		p.text = cmp.Or(p.text, said.Clauses[i].Text)
	}
	p.from, p.size, p.rawQuery = page.From, page.Size, x.rawQuery
	if p.from > 0 {
		p.rawQuery = wire.CutParameters(x.rawQuery, func(name, _ string) bool { return name == "from" || name == "size" })
		p.rawQuery = strings.TrimPrefix(p.rawQuery+"&from=0&size="+strconv.Itoa(p.from+p.size), "&") // parameters go before the body
	}
	switch {
	case odd != "":
		return string(odd)
	case said.PIT.Has:
		return string(reason.PointInTime)
	case said.NoRescore != "": // sort, scroll, collapse and the like
		return string(said.NoRescore)
	case !known || p.from > maxInterleavedHits-p.size:
		return interleavePage
	case p.text == "":
		return string(reason.NoClause)
	}
	p.name(x.body.plain)
	return ""
}

// name takes id and text of a search from what OpenSearch's User Behavior
// Insights has in its body, or gives it an id.
func (p *part) name(body []byte) {
	var said struct {
		Ext struct {
			UBI struct {
				QueryID   string `json:"query_id"`
				UserQuery string `json:"user_query"`
			} `json:"ubi"`
		} `json:"ext"`
	}
	if bytes.Contains(body, []byte(`"ubi"`)) {
		_ = json.Unmarshal(body, &said) // what is of another kind is not there
	}
	if p.id = said.Ext.UBI.QueryID; p.id == "" || len(p.id) > maxQueryID || strings.ContainsFunc(p.id, unicode.IsControl) { // no value of a header
		p.id = rand.Text()
	}
	p.text = cmp.Or(said.Ext.UBI.UserQuery, p.text)
}

// An armAnswer is what came of the search of an arm.
type armAnswer struct {
	arm  int
	own  *search
	res  *http.Response // nil for none
	list *answer.HitList
	// cause is why list is not the ranking of the arm, "" where it is; refused is
	// what the cluster has against its search. An answer is final where the
	// original would get no better one.
	cause   string
	refused *answer.Failure
	final   bool
}

func (a *armAnswer) close() {
	if a != nil && a.res != nil {
		_ = a.res.Body.Close()
	}
}

// interleave sends the searches of both arms and returns one page of their hits
// in the answer of the first. Where an arm fails that is the other's answer,
// and where both do that to the original.
func (t *searchTransport) interleave(out *http.Request, x *search) (*http.Response, error) {
	defer t.interleaving.Give(x.client.Name)
	ctx := out.Context()
	both, err := t.searchBoth(out, x)
	if err != nil {
		return nil, err
	}
	result := cmp.Or(both[0].cause, both[1].cause)
	whose := both[0]
	switch {
	case result == "":
		if err := t.guard.Do("interleaving", func() error {
			result, whose = t.mix(x, both)
			return nil
		}); err != nil {
			result = causePanic
		}
	case whose.cause != "" && (both[1].cause == "" || both[1].final && !whose.final):
		whose = both[1]
	}
	other := both[1-whose.arm]
	other.close()
	t.metrics.interleaved.WithLabelValues(x.part.Name, result).Inc()
	if result != interleaveDone && result != interleaveNoHits {
		switch {
		case ctx.Err() != nil, other.cause == causeRejected && whose.cause == causeRejected: // the client has gone, or is wrong
		case other.refused != nil && other.own.rewritten.Rewritten && whose.cause == "":
			t.refused(ctx, other.own, true, other.refused)
		default:
			t.health.FailedOpen(ctx, failedTrial, result, x.index)
		}
	}
	x.id = strings.Join(slices.DeleteFunc([]string{both[0].own.id, both[1].own.id}, func(id string) bool { return id == "" }), ",")
	if whose.cause != "" && !whose.final {
		whose.close()
		return t.sendOriginal(out, x)
	}
	if result != interleaveDone {
		t.metrics.trial(x.part, whose.arm)
		t.cut(x, whose)
	}
	return whose.res, nil
}

// searchBoth returns what came of both arms. Once one has its answer the other
// one gets as long again and armGrace. An error says that the client has gone.
func (t *searchTransport) searchBoth(out *http.Request, x *search) (both [2]*armAnswer, err error) {
	var searching sync.WaitGroup
	defer searching.Wait()
	answers, start := make(chan *armAnswer), time.Now()
	var cancels [2]context.CancelFunc // of the one that is used by the end of the request
	for k := range both {
		ctx, cancel := context.WithCancel(out.Context())
		cancels[k] = cancel
		searching.Go(func() {
			a := &armAnswer{arm: k, own: x, cause: causePanic}
			_ = t.guard.Do("searching for an arm", func() error {
				t.searchArm(ctx, out, x, a)
				return nil
			})
			select {
			case answers <- a:
			case <-ctx.Done():
				a.close()
			}
		})
	}
	var late <-chan time.Time
	for both[0] == nil || both[1] == nil {
		select {
		case a := <-answers:
			both[a.arm] = a
			if a.cause == "" && late == nil {
				late = time.After(time.Since(start) + armGrace)
			}
		case <-late:
			k := slices.Index(both[:], nil)
			cancels[k]()
			both[k] = &armAnswer{arm: k, own: x, cause: interleaveLate}
		case <-out.Context().Done():
			both[0].close()
			both[1].close()
			return both, out.Context().Err()
		}
	}
	return both, nil
}

// searchArm has the search of an arm expanded and sent, and its hits read.
func (t *searchTransport) searchArm(ctx context.Context, out *http.Request, x *search, a *armAnswer) {
	own := *x // the other arm has one, too
	a.own = &own
	own.join(a.arm)
	own.rawQuery = own.part.rawQuery
	own.hold = t.opts.Memory.Hold(budget.SearchBody, x.client.Name)
	defer own.hold.Release()
	defer t.searched(&own)
	out = out.Clone(context.WithValue(ctx, searchKey{}, &own))
	out.RemoteAddr = ""               // what is said of it is there already
	out.Header.Del("Accept-Encoding") // the answer is read
	e, why := t.choose(&own, out.Header)
	switch {
	case why != "":
		t.metrics.unchanged(why)
		t.recordUnchanged(&own, out, why)
	case t.wasRejected(&own):
		a.cause = reasonRejected
		return
	default:
		if err := (rewriter{t.Server}).rewriteSearch(out, &own, e); err != nil {
			a.cause = t.cause(err)
			return
		}
	}
	if own.rewritten == nil {
		own.rewritten = &rewrittenSearch{Result: new(expand.Result), rawQuery: own.rawQuery, body: own.body.plain}
	}
	sent := own.asRewritten(out)
	own.rewritten.strict = answer.MakeVisible(own.endpoint, sent)
	var err error
	if a.res, err = t.next.RoundTrip(sent); err != nil { //nolint:bodyclose // The client gets it, or armAnswer.close is called.
		a.res, a.cause = nil, interleaveNoReply
		return
	}
	t.readArm(ctx, a)
}

// readArm reads the hits of an arm, or notes the cause why it cannot.
func (t *searchTransport) readArm(ctx context.Context, a *armAnswer) {
	own := a.own
	var fits bool
	var gone error
	a.cause = interleaveAnswer
	switch a.refused, fits, gone = t.accept(ctx, own, a.res); {
	case gone != nil:
		return
	case a.refused != nil || a.res.StatusCode != http.StatusOK:
		a.cause, a.final = causeRejected, a.refused == nil
		return
	case !fits || own.failedOpen: // counted
		return
	}
	whole, err := own.client.Whole(t.opts.Memory, a.res)
	switch {
	case errors.Is(err, held.ErrTooLarge):
		t.unfit.note(t.unfit.hash(own).Sum64()) // the next one would be like it
		return
	case err != nil:
		a.cause = t.cause(err)
		return
	}
	all := &expand.Rerank{Size: own.part.from + own.part.size, KeepSeqNo: true, KeepVersion: true}
	if lists, err := answer.ReadHitLists(whole, own.endpoint, []*expand.Rerank{all}); err == nil && lists[0] != nil {
		a.list, a.cause = lists[0], ""
	}
}

// mix puts a page of both arms into the answer of the first, unless one has no
// hits, and returns what became of it and whose answer goes out.
func (t *searchTransport) mix(x *search, both [2]*armAnswer) (result string, whose *armAnswer) {
	a, b, p := both[0].list, both[1].list, x.part
	switch {
	case b.IsEmpty():
		return interleaveNoHits, both[0]
	case a.IsEmpty():
		return interleaveNoHits, both[1]
	}
	namesA, idsA, okA := a.Names()
	namesB, idsB, okB := b.Names()
	if !okA || !okB {
		return interleaveAnswer, both[0]
	}
	picks := p.Draft(p.unit, p.text, namesA, namesB, p.from+p.size)
	shown := trial.Impression{QueryID: p.id, Query: p.text, Shown: []string{}, Trial: p.Name, Between: p.Arms[:], Arms: []string{}, Clicked: []string{}}
	var page [][]byte
	texts, ids := [2][][]byte{a.Texts(), b.Texts()}, [2][]string{idsA, idsB}
	for _, pick := range picks[min(p.from, len(picks)):] {
		arm := ""
		if pick.Arm != trial.Neither {
			arm = p.Arms[pick.Arm]
		}
		page = append(page, texts[pick.List][pick.Rank])
		shown.Shown, shown.Arms = append(shown.Shown, ids[pick.List][pick.Rank]), append(shown.Arms, arm)
	}
	t.replace(x, both[0].res, a.WithTexts(page, b))
	both[0].res.Header.Set(queryIDHeader, p.id)
	if len(page) > 0 {
		t.impressions.Add(shown)
	}
	return interleaveDone, both[0]
}

// cut leaves the client's page in the answer of one arm.
func (t *searchTransport) cut(x *search, a *armAnswer) {
	if p := x.part; p.from > 0 && a.list != nil && !a.list.IsEmpty() {
		texts := a.list.Texts()
		t.replace(x, a.res, a.list.WithTexts(texts[min(p.from, len(texts)):], a.list))
	}
}
