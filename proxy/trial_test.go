package proxy

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/akin-search/akin/evaluate/clicks"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/internal/budget"
	"github.com/akin-search/akin/proxy/explain"
	"github.com/akin-search/akin/proxy/health"
	"github.com/akin-search/akin/proxy/held"
	"github.com/akin-search/akin/proxy/trial"
)

const (
	trialBody = `{"query":{"match":{"body":"brown fox"}}}`
	newBody   = `{"query":{"new":1}}`
)

// hitsAnswer is an answer with the documents named, whose scores fall from top.
func hitsAnswer(total int, top float64, ids string) string {
	var hits []string
	for k, id := range strings.Fields(ids) {
		hits = append(hits, fmt.Sprintf(`{"_index":"t","_id":"%s","_score":%.1f,"_source":{"of":%d}}`, id, top-float64(k), total))
	}
	most := "null"
	if len(hits) > 0 {
		most = fmt.Sprintf("%.1f", top)
	}
	return fmt.Sprintf(`{"took":%d,"timed_out":false,"_shards":{"total":1,"successful":1,"failed":0},"hits":{"total":{"value":%d,"relation":"eq"},"max_score":%s,"hits":[%s]},"aggregations":{"of":%d}}`,
		total, total, most, strings.Join(hits, ","), total)
}

// A trialNode answers the searches of two arms.
type trialNode struct{ first, second func(r rawRequest) string }

func (n trialNode) start(t *testing.T) *rawNode {
	t.Helper()
	return startRawNode(t, func(_ int, r rawRequest) string {
		if r.body == newBody {
			return n.second(r)
		}
		return n.first(r)
	})
}

// answersWith answers with hits.
func answersWith(body string) func(rawRequest) string {
	return func(rawRequest) string { return answerOf(body) }
}

// trialOptions are a trial of off against new, on all searches.
func trialOptions(node *rawNode, change func(*trial.Trial)) Options {
	tried := trial.Trial{Name: "t", Covers: func(index string) bool { return index == "t" }, Arms: [2]string{"off", "new"}, Share: 1, Header: "X-Session", Interleave: true}
	if change != nil {
		change(&tried)
	}
	return Options{
		Upstreams: []string{node.URL}, Expander: expander(leaveAlone), Trials: []trial.Trial{tried},
		Profiles: map[string]Expander{"old": expander(leaveAlone), "new": rewriteTo(newBody)},
	}
}

// A trialAnswer is what a client gets.
type trialAnswer struct {
	status int
	header http.Header
	body   string
}

// searchInTrial sends a search of a session.
func searchInTrial(t *testing.T, addr, session, target, body string) trialAnswer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr+target, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Session", session)
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return trialAnswer{status: res.StatusCode, header: res.Header, body: string(got)}
}

// impressionsIn returns the impressions in a file, once there are n.
func impressionsIn(t *testing.T, path string, n int) (all []clicks.Impression) {
	t.Helper()
	for until := time.Now().Add(patience); len(all) != n && time.Now().Before(until); time.Sleep(time.Millisecond) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all = nil
		for line := range strings.Lines(string(data)) {
			var i clicks.Impression
			if json.Unmarshal([]byte(line), &i) == nil {
				all = append(all, i)
			}
		}
	}
	return all
}

func TestACanaryIsStickyAndKeepsItsShare(t *testing.T) {
	node := trialNode{answersWith(hitsAnswer(1, 3, "a")), answersWith(hitsAnswer(2, 3, "b"))}.start(t)
	addr, registry := startProxy(t, trialOptions(node, func(c *trial.Trial) { c.Interleave, c.Share = false, .5 }))
	second := 0
	for i := range 200 {
		session := "s" + strconv.Itoa(i)
		first := searchInTrial(t, addr, session, "/t/_search", trialBody)
		if again := searchInTrial(t, addr, session, "/t/_search", trialBody); again.body != first.body {
			t.Fatalf("session %d: %s, then %s", i, hitIDs(first.body), hitIDs(again.body))
		}
		if hitIDs(first.body) == "b" {
			second++
		}
	}
	if second < 65 || second > 135 { // five standard deviations of 200 tosses
		t.Errorf("%d of 200 sessions have the second arm", second)
	}
	if n := counter(t, registry, "akin_trial_searches_total", "trial", "t", "arm", "new"); n != float64(2*second) {
		t.Errorf("%v searches of the second arm counted, want %d", n, 2*second)
	}
	for name, target := range map[string]string{
		"another index": "/u/_search", "akin=off": "/t/_search?akin=off", "a profile": "/t/_search?akin_profile=old",
		"feedback": "/t/_search?akin=feedback", "no feedback": "/t/_search?akin=no-feedback",
	} {
		for i := range 20 {
			if got := searchInTrial(t, addr, "s"+strconv.Itoa(i), target, trialBody); hitIDs(got.body) != "a" {
				t.Errorf("%s: a search of the trial", name)
			}
		}
	}
	if n := counter(t, registry, "akin_trial_searches_total"); n != 400 {
		t.Errorf("%v searches in the trial, want 400", n)
	}
	if got := searchInTrial(t, addr, "", "/t/_search", trialBody); hitIDs(got.body) != "a" {
		t.Error("a search without the header has the second arm")
	}
}

func TestAPageHasTheHitsOfBothArms(t *testing.T) {
	first, second := hitsAnswer(12, 9, "a b c d e f"), hitsAnswer(30, 20.5, "e x c y z a")
	node := trialNode{answersWith(first), answersWith(second)}.start(t)
	o := trialOptions(node, nil)
	o.Impressions = filepath.Join(t.TempDir(), "pages.jsonl")
	addr, registry := startProxy(t, o)
	got := searchInTrial(t, addr, "one", "/t/_search?size=6&akin=explain", trialBody)
	if again := searchInTrial(t, addr, "one", "/t/_search?size=6", trialBody); again.body != got.body {
		t.Errorf("a repeated search has\n%s\nwant\n%s", again.body, got.body)
	}
	pages := impressionsIn(t, o.Impressions, 2)
	page := pages[0]
	if page.Query != "brown fox" || page.QueryID != got.header.Get(queryIDHeader) || pages[1].QueryID == page.QueryID || page.QueryID == "" {
		t.Errorf("%+v, named %q", page, got.header.Get(queryIDHeader))
	}
	if strings.Join(page.Shown, " ") != hitIDs(got.body) || len(page.Arms) != 6 {
		t.Errorf("shown %v by %v, answered %s", page.Shown, page.Arms, hitIDs(got.body))
	}
	whose := map[string]int{}
	for k, id := range page.Shown {
		from := map[string]string{"off": first, "new": second}[page.Arms[k]]
		_, hit, _ := strings.Cut(from, `{"_index":"t","_id":"`+id)
		if hit, _, _ = strings.Cut(hit, "}}"); hit == "" || !strings.Contains(got.body, id+hit+"}}") || slices.Index(page.Shown, id) != k {
			t.Errorf("%s is not there, whole and once, as %s has it", id, page.Arms[k])
		}
		whose[page.Arms[k]]++
	}
	if whose["off"] != 3 || whose["new"] != 3 {
		t.Errorf("the arms have %v", whose)
	}
	for _, part := range []string{`"took":12,`, `"total":{"value":12,`, `"max_score":20.5,`, `"aggregations":{"of":12}`} {
		if !json.Valid([]byte(got.body)) || !strings.Contains(got.body, part) {
			t.Errorf("%s is not in %s", part, got.body)
		}
	}
	if ids := strings.Split(got.header.Get(explanationHeader), ","); len(ids) != 2 || got.header.Get("Content-Length") != strconv.Itoa(len(got.body)) {
		t.Errorf("header %v", got.header)
	}
	if counter(t, registry, "akin_trial_interleaved_total", "result", interleaveDone) != 2 || counter(t, registry, "akin_impressions_total", "result", "written") != 2 {
		t.Error("not counted")
	}
}

// The node answers with what a search asks for, of a list as long as it takes.
func TestTheSecondPageGoesOnWhereTheFirstEnds(t *testing.T) {
	list := func(prefix string) func(rawRequest) string {
		return func(r rawRequest) string {
			var ids []string
			from, size := 0, 10
			_, query, _ := strings.Cut(r.line, "?")
			query, _, _ = strings.Cut(query, " ")
			for part := range strings.SplitSeq(query, "&") {
				fmt.Sscanf(part, "from=%d", &from)
				fmt.Sscanf(part, "size=%d", &size)
			}
			for k := range size {
				if (from+k)%3 == 0 {
					ids = append(ids, fmt.Sprintf("both%d", from+k))
				} else {
					ids = append(ids, fmt.Sprintf("%s%d", prefix, from+k))
				}
			}
			return answerOf(hitsAnswer(1000, 500, strings.Join(ids, " ")))
		}
	}
	node := trialNode{list("a"), list("b")}.start(t)
	addr, _ := startProxy(t, trialOptions(node, nil))
	all := strings.Fields(hitIDs(searchInTrial(t, addr, "one", "/t/_search?size=40", trialBody).body))
	var pages []string
	for from := 0; from < 40; from += 8 {
		pages = append(pages, strings.Fields(hitIDs(searchInTrial(t, addr, "one", fmt.Sprintf("/t/_search?size=8&from=%d", from), trialBody).body))...)
	}
	if !slices.Equal(all, pages) || len(all) != 40 {
		t.Errorf("in pages %v\nat once %v", pages, all)
	}
	body := `{"size":8,"from":16,` + trialBody[1:]
	if got := hitIDs(searchInTrial(t, addr, "one", "/t/_search", body).body); got != strings.Join(all[16:24], " ") {
		t.Errorf("by the body: %s", got)
	}
	if got := strings.Fields(hitIDs(searchInTrial(t, addr, "one", "/t/_search?size=50&from=60", trialBody).body)); got[0] != "both60" || got[1] != "a61" {
		t.Errorf("far behind: %v is not the first arm's", got[:2])
	}
}

func TestWhatCannotBeInterleavedGetsTheFirstArm(t *testing.T) {
	node := trialNode{answersWith(hitsAnswer(1, 3, "a")), answersWith(hitsAnswer(2, 3, "b"))}.start(t)
	addr, registry := startProxy(t, trialOptions(node, nil))
	for why, c := range map[string]struct{ target, body string }{
		"sort":          {"/t/_search", `{"sort":["price"],` + trialBody[1:]},
		"scroll":        {"/t/_search?scroll=1m", trialBody},
		"collapse":      {"/t/_search", `{"collapse":{"field":"x"},` + trialBody[1:]},
		"search_after":  {"/t/_search", `{"search_after":[1],` + trialBody[1:]},
		"point_in_time": {"/t/_search", `{"pit":{"id":"x"},` + trialBody[1:]},
		"page":          {"/t/_search?size=101", trialBody},
		"no_clause":     {"/t/_search", `{"query":{"match_all":{}}}`},
		"not_json":      {"/t/_search", `{"query":`},
		"answer_format": {"/t/_search?format=yaml", trialBody},
		"endpoint":      {"/t/_count", trialBody},

		"answer_members": {"/t/_search?filter_path=hits.hits._source", trialBody},
	} {
		before := len(node.all())
		if got := searchInTrial(t, addr, "one", c.target, c.body); hitIDs(got.body) != "a" || got.header.Get(queryIDHeader) != "" {
			t.Errorf("%s: %s", why, got.body)
		}
		if sent := node.all()[before:]; len(sent) != 1 || sent[0].body != c.body {
			t.Errorf("%s: sent %q", why, sent)
		}
		if counter(t, registry, "akin_trial_interleaved_total", "result", why) != 1 {
			t.Errorf("%s is not counted", why)
		}
	}
	if n := counter(t, registry, "akin_trial_searches_total", "arm", "off"); n != 11 {
		t.Errorf("%v searches of the first arm", n)
	}
}

// Requests of other kinds stream through an arm that is off.
func TestBodiesThatAreNotInterleavedAreNotRead(t *testing.T) {
	node := trialNode{answersWith(hitsAnswer(1, 3, "a")), answersWith(hitsAnswer(2, 3, "b"))}.start(t)
	o := trialOptions(node, nil)
	o.MaxBody = 1 // a body that is read is too large
	addr, registry := startProxy(t, o)
	for n, target := range []string{"/t/_count", "/t/_msearch", "/t/_search/template", "/t/_async_search"} {
		searchInTrial(t, addr, "one", target, trialBody)
		if counter(t, registry, "akin_trial_interleaved_total", "result", string(reason.Endpoint)) != float64(n+1) {
			t.Errorf("%s: the body is read", target)
		}
	}
}

// The cluster records each search that has ext.ubi.
func TestUBIRecordsAnInterleavedSearchOnce(t *testing.T) {
	node := trialNode{answersWith(hitsAnswer(1, 3, "a")), nil}.start(t)
	addr, registry := startProxy(t, trialOptions(node, func(c *trial.Trial) { c.Arms = [2]string{"off", "old"} }))
	got := searchInTrial(t, addr, "one", "/t/_search", `{"ext": {"ubi":{"query_id":"mine"}} ,`+trialBody[1:])
	sent := node.all()
	if len(sent) != 2 || got.header.Get(queryIDHeader) != "mine" {
		t.Fatalf("%q, named %q", sent, got.header.Get(queryIDHeader))
	}
	slices.SortFunc(sent, func(a, b rawRequest) int { return len(a.body) - len(b.body) })
	if sent[0].body != `{"ext": {} ,`+trialBody[1:] || !strings.Contains(sent[1].body, "mine") {
		t.Errorf("sent %q", sent)
	}
	// What another plugin does with a search nobody knows.
	for _, ext := range []string{`{"ubi":{},"other":{}}`, `{"other":{}}`, `{}`} {
		searchInTrial(t, addr, "one", "/t/_search", `{"ext":`+ext+`,`+trialBody[1:])
	}
	if n := counter(t, registry, "akin_trial_interleaved_total", "result", string(reason.Answer)); n != 3 {
		t.Errorf("%v searches for other plugins are not interleaved", n)
	}
}

func TestDocumentsOfTwoIndicesWithOneIDAreTwo(t *testing.T) {
	other := strings.ReplaceAll(hitsAnswer(2, 3, "a b"), `"_index":"t"`, `"_index":"u"`)
	node := trialNode{answersWith(hitsAnswer(2, 3, "a b")), answersWith(other)}.start(t)
	addr, _ := startProxy(t, trialOptions(node, nil))
	ids := strings.Fields(hitIDs(searchInTrial(t, addr, "one", "/t/_search", trialBody).body))
	if slices.Sort(ids); !slices.Equal(ids, []string{"a", "a", "b", "b"}) {
		t.Errorf("shows %v", ids)
	}
}

func TestUBINamesTheSearch(t *testing.T) {
	node := trialNode{answersWith(hitsAnswer(1, 3, "a")), answersWith(hitsAnswer(2, 3, "b"))}.start(t)
	o := trialOptions(node, nil)
	o.Impressions = filepath.Join(t.TempDir(), "pages.jsonl")
	addr, _ := startProxy(t, o)
	got := searchInTrial(t, addr, "one", "/t/_search", `{"ext":{"ubi":{"query_id":"mine","user_query":"Brown Fox!"}},`+trialBody[1:])
	page := impressionsIn(t, o.Impressions, 1)[0]
	if got.header.Get(queryIDHeader) != "mine" || page.QueryID != "mine" || page.Query != "Brown Fox!" {
		t.Errorf("%v, %+v", got.header, page)
	}
	for _, id := range []string{strings.Repeat("x", 1000), `a\u0000b`, `a\r\nX-B: c`} {
		got = searchInTrial(t, addr, "one", "/t/_search", `{"ext":{"ubi":{"query_id":"`+id+`"}},`+trialBody[1:])
		if id := got.header.Get(queryIDHeader); len(id) != len(rand.Text()) {
			t.Errorf("named %q", id)
		}
	}
}

const trialRefusal = `{"error":{"type":"parsing_exception"},"status":400}`

func refusesTrial(rawRequest) string {
	return strings.Replace(answerOf(trialRefusal), "200 OK", "400 Bad Request", 1)
}

// badArms are ways of an arm to fail that would else answer with good.
func badArms(good string) map[string]func(rawRequest) string {
	return map[string]func(rawRequest) string{
		"hangs up":   func(rawRequest) string { return hangUp },
		"refuses":    refusesTrial,
		"no JSON":    func(rawRequest) string { return answerOf("<html>") },
		"no ids":     answersWith(strings.ReplaceAll(good, `"_id"`, `"id"`)),
		"too long":   answersWith(good[:len(good)-1] + `,"x":"` + strings.Repeat("x", held.MaxAnswer) + `"}`),
		"shards":     answersWith(strings.Replace(good, `"failed":0`, `"failed":1`, 1)),
		"broken off": func(rawRequest) string { return answerOf(good)[:300] + hangUp },
	}
}

// Whatever the second arm does, the client gets the page of the first.
func TestAFailingSecondArmLeavesTheFirst(t *testing.T) {
	good := hitsAnswer(5, 5, "1 2 3 4 5")
	for name, bad := range badArms(good) {
		for _, c := range []struct{ target, ids string }{{"/t/_search", "1 2 3 4 5"}, {"/t/_search?from=2&size=3", "3 4 5"}} {
			t.Run(name+c.target, func(t *testing.T) {
				addr, registry := startProxy(t, trialOptions(trialNode{answersWith(good), bad}.start(t), nil))
				got := searchInTrial(t, addr, "one", c.target, trialBody)
				if hitIDs(got.body) != c.ids || got.status != http.StatusOK || !json.Valid([]byte(got.body)) {
					t.Errorf("%d %.300s", got.status, got.body)
				}
				if counter(t, registry, "akin_trial_interleaved_total") != 1 || counter(t, registry, "akin_trial_interleaved_total", "result", interleaveDone) != 0 {
					t.Error("not counted")
				}
				if counter(t, registry, "akin_trial_searches_total", "arm", "off") != 1 {
					t.Error("the arm is not counted")
				}
			})
		}
	}
}

// Where the cluster has no good answer to the first arm, the client gets what
// there is, as without a trial.
func TestAFailingFirstArmIsAsWithoutATrial(t *testing.T) {
	good := hitsAnswer(5, 5, "1 2 3 4 5")
	for name, bad := range badArms(good) {
		if name == "broken off" {
			continue // and so is the client's
		}
		for _, target := range []string{"/t/_search", "/t/_search?from=2&size=3"} {
			t.Run(name+target, func(t *testing.T) {
				o := trialOptions(trialNode{bad, answersWith(good)}.start(t), nil)
				addr, registry := startProxy(t, o)
				o.Trials, o.Registry = nil, nil
				without, _ := startProxy(t, o)
				got, want := searchInTrial(t, addr, "one", target, trialBody), searchInTrial(t, without, "one", target, trialBody)
				if got.status != want.status || got.body != want.body {
					t.Errorf("%d %.300s\nwant %d %.300s", got.status, got.body, want.status, want.body)
				}
				if counter(t, registry, "akin_trial_interleaved_total", "result", interleaveDone) != 0 {
					t.Error("counted as interleaved")
				}
			})
		}
	}
}

func TestAnArmWithoutHitsLeavesThoseOfTheOther(t *testing.T) {
	none, some := answersWith(hitsAnswer(0, 0, "")), answersWith(hitsAnswer(5, 5, "1 2 3 4 5"))
	for arm, node := range map[string]trialNode{"new": {none, some}, "off": {some, none}} {
		addr, registry := startProxy(t, trialOptions(node.start(t), nil))
		for target, want := range map[string]string{"/t/_search": "1 2 3 4 5", "/t/_search?from=2&size=3": "3 4 5"} {
			if got := searchInTrial(t, addr, "one", target, trialBody); hitIDs(got.body) != want || !json.Valid([]byte(got.body)) {
				t.Errorf("%s%s: %s", arm, target, got.body)
			}
		}
		if counter(t, registry, "akin_trial_interleaved_total", "result", interleaveNoHits) != 2 || counter(t, registry, "akin_trial_searches_total", "arm", arm) != 2 {
			t.Errorf("the hits of %s are not counted", arm)
		}
	}
	addr, _ := startProxy(t, trialOptions(trialNode{none, none}.start(t), nil))
	if got := searchInTrial(t, addr, "one", "/t/_search", trialBody); got.body != hitsAnswer(0, 0, "") {
		t.Errorf("of none: %s", got.body)
	}
}

// The answers of an arm that are too long to read are not asked for again.
func TestAnArmWithLongAnswersIsLeftOut(t *testing.T) {
	good := hitsAnswer(5, 5, "1 2 3")
	whole := answerOf(good[:len(good)-1] + `,"x":"` + strings.Repeat("x", held.MaxAnswer) + `"}`)
	long := func(rawRequest) string { return whole } // at once, so that it is not late
	for arm, nodes := range []trialNode{{long, answersWith(good)}, {answersWith(good), long}} {
		node := nodes.start(t)
		addr, registry := startProxy(t, trialOptions(node, nil))
		for range 2 {
			searchInTrial(t, addr, "one", "/t/_search", trialBody)
		}
		if len(node.all()) != 3 || counter(t, registry, "akin_trial_interleaved_total", "result", string(reason.TooLong)) != 1 {
			t.Errorf("arm %d: %d searches are sent", arm, len(node.all()))
		}
	}
}

func TestALateSecondArmIsNotWaitedFor(t *testing.T) {
	good := hitsAnswer(5, 5, "1 2 3")
	release := make(chan struct{})
	defer close(release)
	addr, registry := startProxy(t, trialOptions(trialNode{answersWith(good), func(rawRequest) string { <-release; return hangUp }}.start(t), nil))
	if got := searchInTrial(t, addr, "one", "/t/_search", trialBody); got.body != good {
		t.Errorf("%d %s", got.status, got.body)
	}
	if counter(t, registry, "akin_trial_interleaved_total", "result", interleaveLate) != 1 {
		t.Error("not counted")
	}
}

// badExpanders are ways not to expand, by their causes.
var badExpanders = map[string]expander{
	"panic": func(context.Context, *expand.Request) (*expand.Result, error) { panic("a mistake") },
	"error": func(context.Context, *expand.Request) (*expand.Result, error) { return nil, io.ErrUnexpectedEOF },
	"budget": func(ctx context.Context, _ *expand.Request) (*expand.Result, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	},
}

func TestACanaryThatCannotBeExpandedOrIsRefusedFailsOpen(t *testing.T) {
	good := hitsAnswer(5, 5, "1 2 3")
	ways := map[string]expander{causeRejected: rewriteTo(newBody)}
	maps.Copy(ways, badExpanders)
	for cause, e := range ways {
		node := trialNode{answersWith(good), refusesTrial}.start(t)
		o := trialOptions(node, func(c *trial.Trial) { c.Interleave = false })
		o.Profiles["new"] = e
		addr, registry := startProxy(t, o)
		if got := searchInTrial(t, addr, "one", "/t/_search", trialBody); got.body != good {
			t.Errorf("%s: %s", cause, got.body)
		}
		sent := node.all()
		if last := sent[len(sent)-1]; last.body != trialBody {
			t.Errorf("%s: sent %q", cause, sent)
		}
		refused := counter(t, registry, "akin_rejected_searches_total", "original", originalAccepted)
		if failed := counter(t, registry, "akin_requests_total", "outcome", explain.FailedOpen, "reason", cause); failed+refused != 1 {
			t.Errorf("%s is not counted", cause)
		}
		if counter(t, registry, "akin_trial_searches_total", "arm", "new") != 1 {
			t.Errorf("%s: the arm is not counted", cause)
		}
	}
}

// The client gets the page of the original.
func TestAFirstArmThatFailsOpenIsNotInterleaved(t *testing.T) {
	good := hitsAnswer(5, 5, "1 2 3 4 5")
	ways := map[string]expander{causeRejected: rewriteTo(newBody)}
	maps.Copy(ways, badExpanders)
	for cause, e := range ways {
		for target, want := range map[string]string{"/t/_search": "1 2 3 4 5", "/t/_search?from=2&size=3": "3 4 5"} {
			o := trialOptions(trialNode{answersWith(good), refusesTrial}.start(t), func(c *trial.Trial) { c.Arms = [2]string{"new", "old"} })
			o.Profiles["new"] = e
			addr, registry := startProxy(t, o)
			if got := searchInTrial(t, addr, "one", target, trialBody); hitIDs(got.body) != want {
				t.Errorf("%s%s: %s", cause, target, got.body)
			}
			if counter(t, registry, "akin_trial_interleaved_total", "result", explain.FailedOpen) != 1 {
				t.Errorf("%s%s: not counted", cause, target)
			}
		}
	}
}

func TestArmsThatCannotBeExpandedLeaveTheOther(t *testing.T) {
	good := hitsAnswer(5, 5, "1 2 3")
	for name, e := range badExpanders {
		node := trialNode{answersWith(good), answersWith(good)}.start(t)
		o := trialOptions(node, nil)
		o.Profiles["new"] = e
		addr, registry := startProxy(t, o)
		if got := searchInTrial(t, addr, "one", "/t/_search", trialBody); got.body != good {
			t.Errorf("%s: %s", name, got.body)
		}
		if len(node.all()) != 1 || counter(t, registry, "akin_trial_interleaved_total", "result", name) != 1 {
			t.Errorf("%s is not counted, or %d searches are sent", name, len(node.all()))
		}
	}
}

// A search that is wrong in itself gets what the cluster says of it.
func TestBothArmsFailing(t *testing.T) {
	for name, c := range map[string]struct {
		arms  [2]string
		sends int
	}{"the original": {[2]string{"off", "new"}, 2}, "both rewritten": {[2]string{"new", "newer"}, 3}} {
		node := trialNode{refusesTrial, refusesTrial}.start(t)
		o := trialOptions(node, func(t *trial.Trial) { t.Arms = c.arms })
		o.Profiles["newer"] = rewriteTo(newBody)
		addr, registry := startProxy(t, o)
		for range searches {
			before := len(node.all())
			got := searchInTrial(t, addr, "one", "/t/_search?from=3&size=2", trialBody)
			sent := node.all()[before:]
			if got.status != http.StatusBadRequest || got.body != trialRefusal || !slices.ContainsFunc(sent, func(r rawRequest) bool { return r.body == trialBody }) {
				t.Errorf("%s: %d %s after %q", name, got.status, got.body, sent)
			}
			if len(sent) != c.sends {
				t.Errorf("%s: %d searches are sent, want %d", name, len(sent), c.sends)
			}
		}
		if counter(t, registry, "akin_trial_interleaved_total", "result", causeRejected) != searches {
			t.Errorf("%s: not counted", name)
		}
		if n := counter(t, registry, "akin_requests_total", "outcome", explain.FailedOpen); n != 0 {
			t.Errorf("%s: %v failed open by the client's mistake", name, n)
		}
	}
}

func TestARefusedSecondArmIsAFailureOfAkin(t *testing.T) {
	good := hitsAnswer(5, 5, "1 2 3")
	o := trialOptions(trialNode{answersWith(good), refusesTrial}.start(t), nil)
	o.OnRefused = func(*expand.Refusal) bool { return true } // so that the next one is sent, too
	s := newServer(t, o)
	addr := startServer(t, s)
	for range 20 {
		searchInTrial(t, addr, "one", "/t/_search", trialBody)
	}
	if c := (adminPort{s}).condition(t.Context()); len(c.Degraded) != 1 || c.Degraded[0].Reason != health.FailingOpen {
		t.Errorf("%+v", c)
	}
	if n := counter(t, s.registry, "akin_rejected_searches_total", "original", originalAccepted); n != 20 {
		t.Errorf("%v are rejected, want 20", n)
	}
}

func TestExplanationsNameTheArm(t *testing.T) {
	node := trialNode{answersWith(hitsAnswer(1, 3, "a")), answersWith(hitsAnswer(2, 3, "b"))}.start(t)
	s := newServer(t, trialOptions(node, nil))
	addr := startServer(t, s)
	got := searchInTrial(t, addr, "one", "/t/_search?akin=explain", trialBody)
	var arms []string
	for id := range strings.SplitSeq(got.header.Get(explanationHeader), ",") {
		var e explain.Explanation
		getAdmin(t, s, "/_akin/explanations/"+id, &e)
		arms = append(arms, e.Trial+" "+e.Arm+" "+e.Outcome)
	}
	if strings.Join(arms, ", ") != "t off unchanged, t new rewritten" {
		t.Errorf("%q", arms)
	}
}

func TestAThousandInterleavedSearchesAtOnce(t *testing.T) {
	node := trialNode{answersWith(hitsAnswer(12, 9, "a b c d e f")), answersWith(hitsAnswer(30, 20.5, "e x c y z a"))}.start(t)
	o := trialOptions(node, nil)
	o.Impressions, o.Memory = filepath.Join(t.TempDir(), "pages.jsonl"), budget.New(budget.Default)
	o.Registry = prometheus.NewRegistry()
	addr, registry := startProxy(t, o)
	var searching sync.WaitGroup
	for worker := range 50 {
		searching.Go(func() {
			for i := range 20 {
				got := searchInTrial(t, addr, fmt.Sprint(worker, i), "/t/_search?size=6", trialBody)
				ids := strings.Fields(hitIDs(got.body))
				slices.Sort(ids)
				if len(slices.Compact(ids)) != 6 || !json.Valid([]byte(got.body)) {
					t.Errorf("%s", got.body)
				}
			}
		})
	}
	searching.Wait()
	done := counter(t, registry, "akin_trial_interleaved_total", "result", interleaveDone)
	if all := counter(t, registry, "akin_trial_interleaved_total"); all != 1000 || done == 0 {
		t.Errorf("%v of %v interleaved", done, all)
	}
	for _, kind := range budget.Kinds() {
		if n := o.Memory.Stats(kind).Held; n != 0 {
			t.Errorf("%d bytes of %s are held after the end", n, kind)
		}
	}
}
