package proxy

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/proxy/report"
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
func trialOptions(node *rawNode, change func(*Trial)) Options {
	tried := Trial{Name: "t", Covers: func(index string) bool { return index == "t" }, Arms: [2]string{"off", "new"}, Share: 1, Header: "X-Session"}
	if change != nil {
		change(&tried)
	}
	return Options{
		Nodes: nodesAt(node.URL), Expander: expander(leaveAlone), Trials: []Trial{tried},
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
func searchInTrial(t *testing.T, addr, session, target string) trialAnswer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr+target, strings.NewReader(trialBody))
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

func TestACanaryIsStickyAndKeepsItsShare(t *testing.T) {
	node := trialNode{answersWith(hitsAnswer(1, 3, "a")), answersWith(hitsAnswer(2, 3, "b"))}.start(t)
	addr, registry := startProxy(t, trialOptions(node, func(c *Trial) { c.Share = .5 }))
	second := 0
	for i := range 200 {
		session := "s" + strconv.Itoa(i)
		first := searchInTrial(t, addr, session, "/t/_search")
		if again := searchInTrial(t, addr, session, "/t/_search"); again.body != first.body {
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
			if got := searchInTrial(t, addr, "s"+strconv.Itoa(i), target); hitIDs(got.body) != "a" {
				t.Errorf("%s: a search of the trial", name)
			}
		}
	}
	if n := counter(t, registry, "akin_trial_searches_total"); n != 400 {
		t.Errorf("%v searches in the trial, want 400", n)
	}
	if got := searchInTrial(t, addr, "", "/t/_search"); hitIDs(got.body) != "a" {
		t.Error("a search without the header has the second arm")
	}
}

func refusesTrial(rawRequest) string {
	return strings.Replace(answerOf(`{"error":{"type":"parsing_exception"},"status":400}`), "200 OK", "400 Bad Request", 1)
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
		o := trialOptions(node, nil)
		o.Profiles["new"] = e
		addr, registry := startProxy(t, o)
		if got := searchInTrial(t, addr, "one", "/t/_search"); got.body != good {
			t.Errorf("%s: %s", cause, got.body)
		}
		sent := node.all()
		if last := sent[len(sent)-1]; last.body != trialBody {
			t.Errorf("%s: sent %q", cause, sent)
		}
		refused := counter(t, registry, "akin_rejected_searches_total", "original", originalAccepted)
		if failed := counter(t, registry, "akin_requests_total", "outcome", report.FailedOpen, "reason", cause); failed+refused != 1 {
			t.Errorf("%s is not counted", cause)
		}
		if counter(t, registry, "akin_trial_searches_total", "arm", "new") != 1 {
			t.Errorf("%s: the arm is not counted", cause)
		}
	}
}

func TestExplanationsNameTheArm(t *testing.T) {
	node := trialNode{answersWith(hitsAnswer(1, 3, "a")), answersWith(hitsAnswer(2, 3, "b"))}.start(t)
	s := newServer(t, trialOptions(node, nil))
	addr := startServer(t, s)
	got := searchInTrial(t, addr, "one", "/t/_search?akin=explain")
	var e report.Explanation
	getAdmin(t, s, "/_akin/explanations/"+got.header.Get(explanationHeader), &e)
	if e.Trial != "t" || e.Arm != "new" || e.Outcome != report.Rewritten {
		t.Errorf("%+v", e)
	}
}
