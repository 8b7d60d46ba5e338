package proxy

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/proxy/report"
)

const manySearches = 60

// mostRepeated is how many of the searches may be sent once more: the one that
// the retry budget begins with, and its share.
const mostRepeated = 1 + manySearches/10

// neverTold fails the test when a refusal is reported.
func neverTold(t *testing.T) func(*expand.Refusal) bool {
	t.Helper()
	return func(*expand.Refusal) bool {
		t.Error("reported a refusal")
		return false
	}
}

// reports are the refusals that were reported, each an index and types of
// causes.
type reports struct {
	mu  sync.Mutex
	all []string
}

func (r *reports) add(refusal *expand.Refusal) (news bool) {
	words := []string{refusal.Index}
	for _, c := range refusal.Causes {
		words = append(words, c.Type)
	}
	text := strings.Join(words, " ")
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, text)
	return false
}

func (r *reports) check(t *testing.T, want ...string) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	check.That(t, slices.Equal(r.all, want), "reported %.500q, want %.500q", r.all, want)
}

// The original is sent once, as it came, and its answer counts. What the cluster
// refuses for another reason than its load is reported.
func TestRefusedSearchIsFollowedByTheOriginal(t *testing.T) {
	const reason = `{"error":{"root_cause":[{"type":"query_shard_exception"}],"type":"search_phase_execution_exception","failed_shards":[{"reason":{"type":"too_many_clauses"}}]},"status":400}`
	const search, types = "/help/_search?x", "help search_phase_execution_exception query_shard_exception too_many_clauses"
	plain, of := searchOf(search, jsonType, original), func(header, body string) string { return answerWith(400, header, body) }
	for name, tt := range map[string]struct {
		request, first string
		told           []string
	}{
		"too many clauses":       {plain, of(jsonType, reason), []string{types}},
		"compressed":             {plain, of(jsonType+gzipCoding, pack(t, reason)), []string{types}},
		"behind much":            {plain, of(jsonType, reason+strings.Repeat(" ", 1<<20)), []string{types}},
		"beyond the bound":       {plain, of(jsonType, strings.Repeat(" ", 1<<20)+reason), []string{"help"}},
		"broken gzip":            {plain, of(jsonType+gzipCoding, reason), []string{"help"}},
		"another coding":         {plain, of(jsonType+"Content-Encoding: deflate\n", "xyz"), []string{"help"}},
		"of a proxy":             {plain, of("Content-Type: text/html\n", "<html>"), []string{"help"}},
		"nothing":                {plain, of("", ""), []string{"help"}},
		"a server error":         {plain, answerWith(500, jsonType, reason), []string{types}},
		"overload":               {plain, answerWith(429, jsonType, reason), nil},
		"a compressed search":    {searchOf(search, jsonType+gzipCoding, pack(t, original)), of(jsonType, reason), []string{types}},
		"a search in parameters": {"GET /_search?q=car HTTP/1.1\nHost: a\nConnection: close\n\n", of("", ""), []string{""}},
	} {
		t.Run(name, func(t *testing.T) {
			var told reports
			p := start(t, Options{Expander: rewriteTo(rewritten), OnRefused: told.add}, inTurn(tt.first, answerWith(200, "", "of the original")))
			got := exchangeRaw(t, p.addr, tt.request)
			check.That(t, strings.HasPrefix(got, "HTTP/1.1 200 ") && bodyOf(got) == "of the original", "the client got %q", got)
			head, body, _ := strings.Cut(tt.request, "\n\n")
			p.arrived(t, rewritten, body)
			second := append([]string{p.all()[1].line}, p.all()[1].header...)
			want := strings.Split(strings.Replace(strings.Replace(head, "Host: a", "Host: "+p.rawNode.addr, 1), "\nConnection: close", "", 1), "\n")
			if slices.Sort(second); !slices.Equal(second, slices.Sorted(slices.Values(want))) {
				t.Errorf("the original is sent as %q, want %q", second, want)
			}
			p.counted(t, 1, "akin_rejected_searches_total", "original", "accepted")
			told.check(t, tt.told...)
		})
	}
}

func TestLongRefusalIsCutOff(t *testing.T) {
	cut := make(chan error, 1)
	node := startNode(t, func(w http.ResponseWriter, r *http.Request) {
		if body, _ := io.ReadAll(r.Body); string(body) != rewritten {
			return
		}
		w.WriteHeader(http.StatusInternalServerError)
		for piece := make([]byte, 1<<20); ; {
			if _, err := w.Write(piece); err != nil {
				cut <- err
				return
			}
		}
	})
	p := start(t, Options{Nodes: nodesAt(node), Expander: rewriteTo(rewritten)}, nil)
	got := p.post(t, "/_search", jsonType, original)
	check.That(t, strings.HasPrefix(got, "HTTP/1.1 200 "), "the client got %q", got)
	receive(t, "the end of the refusal", cut)
}

// An answer that says that the cluster has too much to do, or that the client
// may not search, reaches the client as it came. More searches would make it
// worse.
func TestOverloadIsNotAmplified(t *testing.T) {
	reason := `{"error":{"type":"x","reason":"` + strings.Repeat("y", 2*maxLooked) + `"}}`
	for _, tt := range []struct {
		status, most int
		header, body string
	}{
		{429, mostRepeated, jsonType, reason},
		{502, mostRepeated, "Content-Type: text/html\n", "<html>"},
		{503, mostRepeated, jsonType + gzipCoding, pack(t, reason)},
		{504, mostRepeated, "", ""},
		{500, mostRepeated, jsonType, `{"error":{"root_cause":[{"type":"circuit_breaking_exception"}]},"status":500}`},
		{401, 0, jsonType, reason},
		{403, 0, jsonType, reason},
	} {
		t.Run(strconv.Itoa(tt.status), func(t *testing.T) {
			p := start(t, Options{Expander: rewriteTo(rewritten), OnRefused: neverTold(t)}, inTurn(answerWith(tt.status, tt.header, tt.body)))
			for range manySearches {
				got := p.post(t, "/a/_search", jsonType, original)
				check.Must(t, strings.HasPrefix(got, fmt.Sprintf("HTTP/1.1 %d ", tt.status)) && bodyOf(got) == tt.body, "the client got %.300q", got)
			}
			again := len(p.searches()) - manySearches
			refused, unsent := p.value(t, "akin_rejected_searches_total", "original", "rejected"), p.value(t, "akin_rejected_searches_total", "original", "not_sent")
			check.That(t, again <= tt.most && again == int(refused) && refused+unsent == manySearches, "%d of %d searches were sent again; %v counted as that, %v as not sent", again, manySearches, refused, unsent)
			// The originals are refused, too: nothing is learned.
			p.counted(t, 0, "akin_requests_total", "reason", reasonPaused)
		})
	}
}

// The retry budget is for a node that has too much to do, not for searches that
// were rewritten badly, nor for an error that akin asked for in place of failures
// that filter_path would hide: to the original that is none.
func TestOriginalIsSentWithoutLimitWhereTheRewrittenSearchIsTheReason(t *testing.T) {
	for target, refusal := range map[string]string{
		"/a/_search":                  answerWith(500, jsonType, `{"error":{"type":"too_many_clauses"}}`),
		"/a/_search?filter_path=hits": answerWith(503, jsonType, `{"error":{"type":"search_phase_execution_exception","reason":"Partial shards failure"},"status":503}`),
	} {
		p := start(t, Options{Expander: rewriteTo(rewritten), OnRefused: func(*expand.Refusal) bool { return true }}, func(_ int, r rawRequest) string {
			if r.body == rewritten && strings.Contains(r.line, "allow_partial_search_results=false") == strings.Contains(target, "filter_path") {
				return refusal
			}
			return emptyAnswer
		})
		for range manySearches {
			got := p.post(t, target, jsonType, original)
			check.Must(t, strings.HasPrefix(got, "HTTP/1.1 200 "), "the client got %q", got)
		}
		check.Equal(t, 2*manySearches, len(p.all()), target)
	}
}

// Items and shards tell of an overload in an answer whose status is good.
func TestOverloadInsideAnAnswerIsNotAmplified(t *testing.T) {
	const (
		busyItem   = `{"error":{"root_cause":[{"type":"rejected_execution_exception","reason":"x"}],"type":"search_phase_execution_exception","reason":"all shards failed"},"status":429}`
		busyShard  = `{"shard":0,"index":"b","reason":{"type":"es_rejected_execution_exception","reason":"x"}}`
		deniedItem = `{"error":{"root_cause":[{"type":"security_exception","reason":"x"}],"type":"security_exception"},"status":403}`
	)
	for name, tt := range map[string]struct {
		target, answer string
		most           int
	}{
		"an item":         {"/_msearch", responses(busyItem, goodItem, goodItem), mostRepeated},
		"a shard":         {"/_search", searchAnswer(failedShards(busyShard)), mostRepeated},
		"a denied item":   {"/_msearch", responses(deniedItem, goodItem, goodItem), 0},
		"a badly written": {"/_msearch", responses(busyItem, goodItem, badItem), manySearches},
		"a shard beside":  {"/_search", searchAnswer(failedShards(busyShard, shardFailure)), manySearches},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, Options{Expander: expander(rewriteFirstAndLast), OnRefused: neverTold(t)}, inTurn(answerOf(tt.answer)))
			for range manySearches {
				got := bodyOf(p.post(t, tt.target, jsonType, lines))
				check.Must(t, got == tt.answer, "the client got %q", got)
			}
			n := len(p.all()) - manySearches
			check.That(t, n <= tt.most && (tt.most != manySearches || n == manySearches), "%d searches were sent again", n)
		})
	}
}

// A page that came is still cut to what the client asked for where a search
// with it met an overload.
func TestPagesBesideAnOverloadAreCut(t *testing.T) {
	busy := `{"error":{"type":"rejected_execution_exception","reason":"x"},"status":429}`
	p := start(t, Options{Expander: expander(rerankFirstAndLast), Reranker: rerankerFunc(backwards)}, frames(`{"responses":[`+threeHits+`,{},`+busy+`]}`))
	for p.server.upstream.TakeRepeat() { // until nothing is left
	}
	got := p.search(t, "/_msearch")
	check.That(t, strings.HasSuffix(got, busy+`]}`) && strings.Count(got, `"_index"`) < strings.Count(threeHits, `"_index"`) && p.kinds() == "frame page", "asked for %s, got %s", p.kinds(), got)
}

// A search that the cluster refuses in its rewritten form alone would run twice
// each time.
func TestShapesThatWereRefusedAreNotRewrittenAgain(t *testing.T) {
	told, news := 0, false
	p := start(t, Options{Expander: rewriteTo(rewritten), OnRefused: func(*expand.Refusal) bool {
		told++
		return news
	}}, func(_ int, r rawRequest) string {
		if r.body == rewritten {
			return answerWith(400, jsonType, `{"error":{"type":"x_content_parse_exception","reason":"x"},"status":400}`)
		}
		return emptyAnswer
	})
	const car, boats = `{"query":{"match":{"body":"car"}},"size":3}`, ` {"query":{"match":{"body":"two boats"}},"size":10}`
	const anotherUser = jsonType + "Authorization: Basic YTpi\n"
	for _, step := range []struct {
		name, target, header, body string
		news                       bool
		requests                   int
	}{
		{"a limit was learned", "/a/_search", jsonType, car, true, 2},
		{"the first", "/a/_search", jsonType, car, false, 2},
		{"a limit was learned again", "/a/_search", jsonType, car, true, 2},
		{"the second", "/a/_search", jsonType, boats, false, 2},
		{"the third", "/a/_search", jsonType, car, false, 2},
		{"the same", "/a/_search", jsonType, car, false, 1},
		{"other words", "/a/_search", jsonType, boats, false, 1},
		{"packed", "/a/_search", jsonType + gzipCoding, pack(t, car), false, 1},
		{"another user", "/a/_search", anotherUser, car, false, 2},
		{"another index", "/b/_search", jsonType, car, false, 2},
		{"another profile", "/a/_search?akin_profile=none", jsonType, car, false, 1},
		{"another field", "/a/_search", jsonType, `{"query":{"match":{"title":"car"}},"size":3}`, false, 2},
		{"another parameter", "/a/_search?routing=x", jsonType, car, false, 2},
	} {
		news = step.news
		before := len(p.all())
		got := p.post(t, step.target, step.header, step.body)
		check.That(t, strings.HasPrefix(got, "HTTP/1.1 200 ") && len(p.all())-before == step.requests, "%s: %d requests, want %d; the client got %q", step.name, len(p.all())-before, step.requests, got)
	}
	p.counted(t, 3, "akin_requests_total", "outcome", report.Unchanged, "reason", reasonRejected)
	check.Equal(t, 9, told, "reported refusals")
}

// A search that the cluster refuses in both forms says nothing of akin: one user
// must not switch expansion off for those whose searches have the same shape. And
// one that is taken ends a row of failures.
func TestSearchesThatAreRefusedInBothFormsTeachNothing(t *testing.T) {
	const wrong, unlucky, right = `{"query":{"match":{"body":"foo"}},"size":100000}`, `{"query":{"match":{"body":"bar"}},"size":10}`, `{"query":{"match":{"body":"foo"}},"size":10}`
	p := start(t, Options{OnRefused: func(*expand.Refusal) bool { return false }, Expander: expander(func(_ context.Context, r *expand.Request) (*expand.Result, error) {
		return &expand.Result{Rewritten: true, RawQuery: r.RawQuery, Body: append([]byte(" "), r.Body...)}, nil
	})}, func(_ int, r rawRequest) string {
		if strings.Contains(r.body, "100000") || strings.HasPrefix(r.body, " ") && strings.Contains(r.body, "bar") {
			return answerWith(400, jsonType, `{"error":{"type":"query_shard_exception","reason":"x"},"status":400}`)
		}
		return emptyAnswer
	})
	for range manySearches {
		p.post(t, "/a/_search", jsonType, wrong)
	}
	for range manySearches {
		for _, body := range []string{unlucky, unlucky, right} {
			p.post(t, "/a/_search", jsonType, body)
		}
	}
	check.Equal(t, (2+5)*manySearches, len(p.all()), "requests")
	p.counted(t, 0, "akin_requests_total", "outcome", report.Unchanged)
}

// A shadow runs for each search of its shape as well.
func TestShapesOfRefusedShadowsAreRemembered(t *testing.T) {
	p := startShadow(t, Options{}, "", answerWith(400, jsonType, "{}"))
	for n := range maxFailures {
		p.post(t, "/a/_search", jsonType, original)
		p.awaitShadow(t, report.ShadowRejected, float64(n+1))
	}
	p.post(t, "/a/_search", jsonType, original)
	got := p.searches()
	check.That(t, len(got) == 2*maxFailures+1, "the node got %q", got)
	p.counted(t, 1, "akin_requests_total", "reason", reasonRejected)
}

// An overloaded cluster says nothing of what is known of its indices.
func TestOverloadOfAShadowTeachesNothing(t *testing.T) {
	for _, status := range []int{403, 429, 503} {
		p := startShadow(t, Options{OnRefused: neverTold(t)}, "", answerWith(status, jsonType, "{}"))
		for k := range 2 {
			p.post(t, "/a/_search", jsonType, original)
			p.awaitShadow(t, report.ShadowRejected, float64(k+1))
		}
	}
}
