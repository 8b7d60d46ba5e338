package proxy

import (
	stdcmp "cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/internal/limits"
	"github.com/akin-search/akin/proxy/report"
)

// hitsPage is an answer to a search.
func hitsPage(total string, ids ...string) string {
	hits := make([]string, len(ids))
	for i, id := range ids {
		hits[i] = fmt.Sprintf(`{"_index":"a","_id":%q,"_score":1.5,"_source":{"_id":"x"}}`, id)
	}
	return `{"took":1,"hits":{"total":` + total + `,"max_score":1,"hits":[` + strings.Join(hits, ",") + `]}}`
}

// startShadow starts a proxy with o that shadows all searches, which rewrites to
// [rewritten] unless o says otherwise. The node answers originals and rewritten
// searches by two texts, "" for an empty page.
func startShadow(t *testing.T, o Options, onOriginal, onExpanded string) *rig {
	t.Helper()
	return startShadowFunc(t, o, func(r rawRequest) string {
		if r.body == rewritten {
			return onExpanded
		}
		return onOriginal
	})
}

func startShadowFunc(t *testing.T, o Options, answer func(r rawRequest) string) *rig {
	t.Helper()
	o.Shadow = 1
	if o.Expander == nil {
		o.Expander = rewriteTo(rewritten)
	}
	return start(t, o, func(_ int, r rawRequest) string { return stdcmp.Or(answer(r), answerOf(hitsPage("0"))) })
}

// overlap returns the sum of the overlaps that were observed.
func (p *rig) overlap(t *testing.T) (sum float64) {
	t.Helper()
	families, err := p.server.opts.Registry.Gather()
	check.OK(t, err)
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == "akin_shadow_overlap_at_10" {
				sum += m.GetHistogram().GetSampleSum()
			}
		}
	}
	return sum
}

// awaitShadow waits until n searches, and no others, ended in an outcome.
func (p *rig) awaitShadow(t *testing.T, outcome string, n float64) {
	t.Helper()
	waitFor(t, "shadows to be "+outcome, func() bool { return p.value(t, "akin_shadow_searches_total", "outcome", outcome) == n })
	p.counted(t, n, "akin_shadow_searches_total")
}

func TestShadowComparesAndTheClientGetsTheOriginal(t *testing.T) {
	first := hitsPage(`{"value":3,"relation":"eq"}`, "1", "2", "3")
	second := hitsPage(`{"value":40,"relation":"eq"}`, "3", "9", "1", "7")
	for _, packed := range []bool{false, true} {
		want, other, header := first, second, jsonType
		if packed {
			want, other, header = pack(t, first), pack(t, second), jsonType+gzipCoding
		}
		p := startShadow(t, Options{}, answerWith(200, header, want), answerWith(200, header, other))
		check.Equal(t, want, bodyOf(p.post(t, "/a/_search?pretty", jsonType+"Authorization: Basic YTpi\nX-Akin-Profile: \nAccept-Encoding: gzip\n", original)), "the client")
		p.awaitShadow(t, report.ShadowCompared, 1)
		p.arrived(t, original, rewritten)
		shadow := p.all()[1]
		check.That(t, slices.Equal(shadow.get("Authorization"), []string{"Basic YTpi"}) && shadow.get("X-Akin-Profile") == nil, "the shadow is %q", shadow)
		if got := p.overlap(t); got != 0.5 { // 1 and 3 of four
			t.Errorf("overlap %v, want 0.5", got)
		}
		for search, hits := range map[string]float64{"original": 3, "expanded": 40} {
			p.counted(t, hits, "akin_shadow_hits_total", "search", search)
			p.counted(t, 1, "akin_shadow_duration_seconds", "search", search)
			p.counted(t, 0, "akin_shadow_empty_pages_total", "search", search)
		}
	}
}

func TestShadowThatCannotBeComparedIsCounted(t *testing.T) {
	good := hitsPage("1", "1")
	breaksOff := strings.Replace(answerOf(good), "Content-Length: ", "Content-Length: 9", 1) + hangUp
	long := `{"x":"` + strings.Repeat("x", maxShadowed) + `",` + good[1:]
	failed := `{"_shards":` + failedShards(shardFailure) + "," + good[1:]
	for _, tt := range []struct {
		name               string
		original, expanded string
		status             int
		outcome            string
		runs               int
	}{
		{"the original is refused", answerWith(400, jsonType, "no"), "", 400, report.ShadowRejected, 1},
		{"the original shows no hits", answerOf(`{"took":1}`), "", 200, report.ShadowUnreadable, 1},
		{"the original is too long", answerOf(long), "", 200, report.ShadowUnreadable, 1},
		{"the original fails on a shard", answerOf(failed), "", 200, report.ShadowRejected, 1},
		{"the original is not answered", hangUp, "", 502, report.ShadowUnanswered, 1},
		{"the shadow is not answered", answerOf(good), hangUp, 200, report.ShadowUnanswered, 2},
		{"the shadow's answer breaks off", answerOf(good), breaksOff, 200, report.ShadowUnanswered, 2},
		{"the shadow's answer is too long", answerOf(good), answerOf(long), 200, report.ShadowUnreadable, 2},
		{"the shadow's answer is none", answerOf(good), answerOf("]"), 200, report.ShadowUnreadable, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := startShadow(t, Options{}, tt.original, tt.expanded)
			got := p.post(t, "/a/_search", jsonType, original)
			check.That(t, strings.HasPrefix(got, fmt.Sprintf("HTTP/1.1 %d ", tt.status)), "the client got %.100q", got)
			p.awaitShadow(t, tt.outcome, 1)
			check.Equal(t, tt.runs, len(p.searches()), "requests arrived")
			for _, name := range []string{"akin_shadow_overlap_at_10", "akin_shadow_duration_seconds", "akin_shadow_hits_total"} {
				p.counted(t, 0, name)
			}
		})
	}
}

// What the cluster refuses of a shadow, or fails on some shards, teaches akin as
// much as what it refuses of a client's search.
func TestRefusedShadowIsReported(t *testing.T) {
	good := hitsPage("1", "1")
	for want, refused := range map[string]string{
		"help too_many_clauses":           answerWith(400, jsonType, `{"error":{"type":"too_many_clauses","reason":"x"},"status":400}`),
		"help illegal_argument_exception": answerOf(`{"_shards":` + failedShards(shardFailure) + "," + good[1:]),
	} {
		var told reports
		p := startShadow(t, Options{OnRefused: told.add}, answerOf(good), refused)
		check.Equal(t, good, bodyOf(p.post(t, "/help/_search", jsonType, original)), "the client")
		p.awaitShadow(t, report.ShadowRejected, 1)
		told.check(t, want)
		p.counted(t, 1, "akin_rejected_searches_total", "original", "accepted")
	}
}

// A shard that no node serves is missing for both. The engines answer
// rest_total_hits_as_int with -1 where nobody counts.
func TestShadowIsComparedWhereSomethingIsMissingForBoth(t *testing.T) {
	for _, answer := range []string{
		`{"_shards":` + failedShards(unservedOne) + "," + hitsPage("0", "1")[1:],
		hitsPage("-1", "1"), hitsPage(`{"value":-1}`, "1"), hitsPage("null", "1"), hitsPage(`"x"`, "1"),
	} {
		p := startShadow(t, Options{}, answerOf(answer), answerOf(answer))
		p.post(t, "/a/_search?track_total_hits=false&rest_total_hits_as_int=true", jsonType, original)
		p.awaitShadow(t, report.ShadowCompared, 1)
		p.counted(t, 0, "akin_shadow_hits_total")
		p.counted(t, 0, "akin_panics_total")
	}
}

func TestClientDoesNotWaitForItsShadow(t *testing.T) {
	expands, asks := make(chan struct{}), make(chan struct{})
	looked, reached := make(chan *expand.Request, 1), make(chan struct{})
	p := startShadowFunc(t, Options{Budget: patience, Expander: expander(func(ctx context.Context, r *expand.Request) (*expand.Result, error) {
		looked <- r
		<-expands
		return rewriteTo(rewritten)(ctx, r)
	})}, func(r rawRequest) string {
		if r.body == rewritten {
			close(reached)
			<-asks
		}
		return answerOf(hitsPage("1", "1"))
	})
	answer := p.post(t, "/a/_search?pretty", jsonType+gzipCoding, pack(t, original)) // until the connection is closed
	check.Equal(t, hitsPage("1", "1"), bodyOf(answer), answer, "the client")
	want := &expand.Request{Endpoint: expand.EndpointSearch, Index: "a", RawQuery: "pretty", Body: []byte(original)}
	check.Equal(t, want, receive(t, "the expansion", looked), "the expander")
	close(expands)
	receive(t, "the shadow", reached)
	close(asks)
	p.awaitShadow(t, report.ShadowCompared, 1)
	check.Equal(t, 1, p.overlap(t), "overlap")
}

func TestShadowEndsWithTheServer(t *testing.T) {
	reached := make(chan struct{})
	node := startNode(t, func(w http.ResponseWriter, r *http.Request) {
		if body, _ := io.ReadAll(r.Body); string(body) == rewritten {
			close(reached)
			<-r.Context().Done()
		}
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, hitsPage("0"))
	})
	s := build(Options{Nodes: nodesAt(node), Expander: rewriteTo(rewritten), Shadow: 1})
	proxy, _, stop := startServe(t, s)
	exchangeRaw(t, proxy, searchOf("/a/_search", jsonType, original))
	receive(t, "the shadow", reached)
	err := stop()
	check.That(t, err == nil, "Serve = %v", err)
	check.Equal(t, 0, counter(t, s.opts.Registry, "akin_shadow_searches_total"), "outcomes of a search that was cut off by the end")
	s.shadows.reserve()
	released := false
	s.shadows.start(func(context.Context) { t.Error("a shadow runs after the end") }, func() { released = true })
	check.That(t, released, "its slot is still taken")
}

func TestShadowIsDroppedWhereAllSlotsAreTaken(t *testing.T) {
	p := startShadow(t, Options{}, "", "")
	for p.server.shadows.reserve() { // takes all
	}
	check.Equal(t, hitsPage("0"), bodyOf(p.post(t, "/a/_search", jsonType, original)), "the client")
	p.awaitShadow(t, report.ShadowDropped, 1)
	p.server.shadows.release()
	p.post(t, "/a/_search", jsonType, original)
	waitFor(t, "a free slot to be taken", func() bool { return p.value(t, "akin_shadow_searches_total", "outcome", report.ShadowCompared) == 1 })
	p.counted(t, 2, "akin_shadow_empty_pages_total")
	p.counted(t, 0, "akin_shadow_overlap_at_10") // of two empty pages
}

func TestShadowsAreFewAtATime(t *testing.T) {
	var now, most atomic.Int64
	proceed, reached := make(chan struct{}), make(chan struct{}, maxInBackground)
	p := startShadowFunc(t, Options{}, func(r rawRequest) string {
		if r.body == rewritten {
			most.Store(max(most.Load(), now.Add(1))) // exact until some proceed
			reached <- struct{}{}
			<-proceed
			now.Add(-1)
		}
		return ""
	})
	for range maxInBackground {
		p.post(t, "/a/_search", jsonType, original)
	}
	for range backgroundWorkers {
		receive(t, "a shadow", reached)
	}
	close(proceed)
	p.awaitShadow(t, report.ShadowCompared, maxInBackground)
	check.Equal(t, backgroundWorkers, most.Load(), "at a time")
}

func TestClientThatLeavesIsCounted(t *testing.T) {
	p := startShadow(t, Options{}, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", "")
	c := dial(t, p.addr)
	io.WriteString(c, strings.ReplaceAll(searchOf("/a/_search", jsonType, "{}"), "\n", "\r\n"))
	_, err := io.ReadFull(c, make([]byte, 12))
	check.OK(t, err)
	c.Close()
	p.awaitShadow(t, report.ShadowClientGone, 1)
}

// A request that leaves something behind, or holds several searches, is not
// sent twice.
func TestOnlyPlainSearchesHaveShadows(t *testing.T) {
	for _, target := range []string{"/a/_search?scroll=1m", "/a/_search?pretty;scroll=1m", "/a/_async_search", "/a/_count", "/a/_explain/1", "/a/_validate/query", "/a/_doc/1"} {
		for _, share := range []float64{1e-300, 1} {
			p := start(t, Options{Expander: rewriteTo(rewritten), Shadow: share}, nil)
			p.post(t, target, jsonType, original)
			p.arrived(t, original)
			p.counted(t, 0, "akin_shadow_searches_total")
			p.counted(t, 0, "akin_search_stage_duration_seconds", "stage", "expand") // it was not looked at
			got := p.value(t, "akin_requests_total", "reason", reasonShadow)
			check.That(t, (got == 1) != strings.Contains(target, "_doc"), "%s: counted %v times", target, got)
		}
	}
}

func TestSampleIsTheShare(t *testing.T) {
	for share, bounds := range map[float64][2]int{0: {0, 0}, 1: {10_000, 10_000}, 0.3: {2500, 3500}} { // 11 standard deviations
		n := 0
		for range 10_000 {
			if sampled(share, match{route: &routes[0]}, "") {
				n++
			}
		}
		check.That(t, n >= bounds[0] && n <= bounds[1], "%d of 10,000 at %v", n, share)
	}
}

// What a shadow reads of its own answer, and what comes of it decompressed,
// takes memory of the budget like all else. What is too long to be compared is
// too long to be kept for that.
func TestShadowsAreHeldWithinTheBudget(t *testing.T) {
	long := hitsPage("1", "x") + strings.Repeat(" ", maxShadowed/2)
	packed, short := answerWith(200, jsonType+gzipCoding, pack(t, long)), answerOf(hitsPage("1", "x"))
	for name, tt := range map[string]struct {
		search           string
		first, second    string
		memory, arrivals int
	}{
		"its own":             {original, short, answerOf(long), maxShadowed / 2, 2},
		"its own, compressed": {original, short, packed, maxShadowed / 2, 2},
		"the original's":      {original, packed, short, maxShadowed / 2, 1},
		"the search":          {original + strings.Repeat(" ", maxShadowed), short, short, 100 * maxShadowed, 1},
	} {
		t.Run(name, func(t *testing.T) {
			o := Options{Memory: limits.New(int64(tt.memory)), MaxBody: 4 * maxShadowed}
			p := startShadow(t, o, tt.first, tt.second)
			p.post(t, "/a/_search", jsonType, tt.search)
			p.awaitShadow(t, report.ShadowDropped, 1)
			check.Equal(t, tt.arrivals, len(p.searches()), "requests arrived")
			waitFor(t, "the memory to be given back", func() bool { return heldBytes(o.Memory) == 0 })
		})
	}
}

// The question whether the client may search says the client's address once.
func TestForwardedHeadersOfAShadowNameTheClientOnce(t *testing.T) {
	p := startShadow(t, Options{ForwardedHeaders: true, Secured: true, Budget: patience, Expander: expander(func(ctx context.Context, r *expand.Request) (*expand.Result, error) {
		_ = r.Allowed(ctx, esclient.Indices{Expression: r.Index})
		return leaveAlone(ctx, r)
	})}, "", "")
	p.post(t, "/a/_search", jsonType, original)
	p.awaitShadow(t, report.ShadowUnchanged, 1)
	question := p.all()[1]
	check.That(t, slices.Equal(question.get("X-Forwarded-For"), []string{"127.0.0.1"}), "the question is %q", question)
}

// Each search counts once, as one that was sent as it came, whatever becomes of
// its shadow, and the expansion has a budget of its own.
func TestShadowsThatAreNotSentAreCounted(t *testing.T) {
	for _, tt := range []struct {
		name     string
		expander expander
		outcome  string
		record   map[string]any
	}{
		{"left alone", leaveAlone, report.ShadowUnchanged, map[string]any{"outcome": "unchanged", "reason": "left alone"}},
		{"out of budget", outlasts, report.ShadowFailed, map[string]any{"outcome": "failed_open", "cause": "budget"}},
		{"a panic", panics, report.ShadowFailed, map[string]any{"outcome": "failed_open", "cause": "panic"}},
		{"rewritten", rewriteTo(rewritten), report.ShadowCompared, map[string]any{"outcome": "rewritten"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := startShadow(t, Options{Expander: tt.expander, Budget: 20 * time.Millisecond}, "", "")
			check.Equal(t, hitsPage("0"), bodyOf(p.post(t, "/a/_search", jsonType, original)), "the client")
			p.awaitShadow(t, tt.outcome, 1)
			var list struct{ Explanations []map[string]any }
			waitFor(t, "the record of the search", func() bool { // which comes after the shadow is counted
				getAdmin(t, p.server, explanationsPath, &list)
				return len(list.Explanations) == 1
			})
			tt.record["sent"] = "original"
			for name, want := range tt.record {
				check.Equal(t, want, list.Explanations[0][name], name)
			}
			p.became(t, report.Unchanged, reasonShadow)
		})
	}
}

func TestPanicOfAShadowIsCounted(t *testing.T) {
	p := startShadow(t, Options{Cause: panicOn, Expander: fails(errRedis)}, "", "") // the cause is asked for in the goroutine of the shadow
	for n := range 2 {                                                              // after the first all its slots are free again
		p.post(t, "/a/_search", jsonType, original)
		p.awaitShadow(t, report.ShadowFailed, float64(n+1))
	}
	p.counted(t, 2, "akin_panics_total", "operation", "shadowing")
}

func TestSearchThatAsksForAnExplanationHasNoShadow(t *testing.T) {
	p := startShadow(t, Options{}, "", "")
	for control, reason := range map[string]string{"explain": reasonShadow, "dry-run": reasonDryRun} {
		shown := p.explained(t, p.post(t, "/a/_search?akin="+control, jsonType, original))
		check.That(t, shown["outcome"] == "rewritten" && shown["sent"] == "original", "%s: shown %v", control, shown)
		p.counted(t, 1, "akin_requests_total", "reason", reason)
	}
	p.arrived(t, original, original)
	p.counted(t, 0, "akin_shadow_searches_total")
}

func TestReadHits(t *testing.T) {
	eleven := strings.Split("a b c d e f g h i j k", " ")
	ten := make([]hitID, 10)
	for i := range ten {
		ten[i] = hitID{"a", eleven[i]}
	}
	for _, tt := range []struct {
		name, encoding, answer string
		want                   topHits
		wrong                  bool
	}{
		{"total as an object", "", hitsPage(`{"value":7,"relation":"gte"}`, "x"), topHits{total: 7, first: []hitID{{"a", "x"}}}, false},
		{"total as a number", "identity", hitsPage(`7`, "x"), topHits{total: 7, first: []hitID{{"a", "x"}}}, false},
		{"no total", "", `{"hits":{"hits":[{"_index":"b","_id":"y"}]}}`, topHits{total: 0, first: []hitID{{"b", "y"}}}, false},
		{"ten count", "", hitsPage("11", eleven...), topHits{total: 11, first: ten}, false},
		{"no hit", "", hitsPage("0"), topHits{total: 0, first: []hitID{}}, false},
		{"gzip", "gzip", pack(t, hitsPage("1", "x")), topHits{total: 1, first: []hitID{{"a", "x"}}}, false},
		{"no gzip", "gzip", hitsPage("1", "x"), topHits{}, true},
		{"gzip that breaks off", "gzip", pack(t, hitsPage("1", "x"))[:40], topHits{}, true},
		{"too much gzip", "gzip", pack(t, strings.Repeat(" ", maxShadowed)+hitsPage("1", "x")), topHits{}, true},
		{"another encoding", "br", hitsPage("1", "x"), topHits{}, true},
		{"filtered away", "", `{"took":1,"hits":{"total":{"value":1}}}`, topHits{}, true},
		{"an error", "", `{"error":{}}`, topHits{}, true},
		{"no JSON", "", "hits", topHits{}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := readTopHits(http.Header{"Content-Encoding": {tt.encoding}}, []byte(tt.answer), limits.New(128<<20).Hold(limits.Shadow, ""))
			check.Must(t, (err != nil) == tt.wrong, "error %v", err)
			check.Equal(t, tt.want, got, cmp.AllowUnexported(topHits{}))
		})
	}
}

// A short text can list very many hits.
func TestHitsAreReadWithinTheMemory(t *testing.T) {
	body := []byte(`{"hits":{"hits":[{}` + strings.Repeat(`,{}`, maxShadowed/3) + `]}}`)
	memory := limits.New(128 << 20)
	got, err := readTopHits(nil, body, memory.Hold(limits.Shadow, ""))
	check.That(t, err == nil && len(got.first) == overlapDepth && cap(got.first) <= 2*overlapDepth, "%d hits with room for %d, %v", len(got.first), cap(got.first), err)
	check.Equal(t, int64(len(body)), memory.Stats(limits.Shadow).Held, len(body), "bytes are held")
	check.Error(t, limits.ErrNoRoom, check.ErrOf(readTopHits(nil, body, limits.New(maxShadowed).Hold(limits.Shadow, ""))), "without the memory")
}

func TestOverlap(t *testing.T) {
	list := func(ids string) (l topHits) {
		for _, id := range ids {
			l.first = append(l.first, hitID{"a", string(id)})
		}
		return l
	}
	for _, tt := range []struct {
		a, b string
		want float64
	}{{"abc", "abc", 1}, {"abc", "cab", 1}, {"abcd", "xayb", 0.5}, {"a", "abcd", 0.25}, {"", "ab", 0}, {"ab", "", 0}, {"ab", "cd", 0}} {
		got, ok := overlap(list(tt.a), list(tt.b))
		check.That(t, ok && got == tt.want, "overlap(%q, %q) = %v, %v, want %v", tt.a, tt.b, got, ok, tt.want)
	}
	if _, ok := overlap(list(""), list("")); ok {
		t.Error("two empty lists have an overlap")
	}
	other := topHits{first: []hitID{{"b", "a"}}}
	if got, _ := overlap(list("a"), other); got != 0 {
		t.Error("documents of two indices are the same")
	}
}
