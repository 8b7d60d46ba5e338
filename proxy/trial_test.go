package proxy

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
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

// startTrial starts a proxy with a trial of off against new, on all searches of
// the index t, before a node that answers the searches of the two arms.
func startTrial(t *testing.T, change func(*Options), first, second string) *rig {
	t.Helper()
	o := Options{
		Expander: expander(leaveAlone),
		Trials:   []Trial{{Name: "t", Covers: func(index string) bool { return index == "t" }, Arms: [2]string{"off", "new"}, Share: 1, Header: "X-Session"}},
		Profiles: map[string]Expander{"old": expander(leaveAlone), "new": rewriteTo(newBody)},
	}
	if change != nil {
		change(&o)
	}
	return start(t, o, func(_ int, r rawRequest) string {
		if r.body == newBody {
			return second
		}
		return first
	})
}

// searchIn sends a search of a session and returns the answer.
func (p *rig) searchIn(t *testing.T, session, target string) string {
	t.Helper()
	return p.post(t, target, jsonType+"X-Session: "+session+"\n", trialBody)
}

func TestACanaryIsSticky(t *testing.T) {
	p := startTrial(t, func(o *Options) { o.Trials[0].Share = .5 }, answerOf(hitsAnswer(1, 3, "a")), answerOf(hitsAnswer(2, 3, "b")))
	second := 0.0
	for i := range 20 {
		session, want := "s"+strconv.Itoa(i), "a"
		if p.server.opts.Trials[0].Draws(session) {
			want, second = "b", second+1
		}
		for target, want := range map[string]string{
			"/t/_search": want, "/u/_search": "a", "/t/_search?akin=off": "a", "/t/_search?akin_profile=old": "a", "/t/_search?akin=feedback": "a", "/t/_search?akin=no-feedback": "a",
		} {
			check.Equal(t, want, hitIDs(p.searchIn(t, session, target)), target, i)
		}
	}
	got := hitIDs(p.searchIn(t, "", "/t/_search"))
	check.That(t, got == "a" && second != 0, "without the header it finds %s; %v sessions have the second arm", got, second)
	p.counted(t, second, "akin_trial_searches_total", "trial", "t", "arm", "new")
	p.counted(t, 21, "akin_trial_searches_total") // with that without the header
}

func TestACanaryThatCannotBeExpandedOrIsRefusedFailsOpen(t *testing.T) {
	good := hitsAnswer(5, 5, "1 2 3")
	for cause, e := range map[string]expander{causeRejected: rewriteTo(newBody), "panic": panics, "error": fails(errRedis), "budget": outlasts} {
		p := startTrial(t, func(o *Options) { o.Profiles["new"] = e }, answerOf(good), answerWith(400, jsonType, `{"error":{"type":"parsing_exception"},"status":400}`))
		check.Equal(t, good, bodyOf(p.searchIn(t, "one", "/t/_search")), cause)
		refused := p.value(t, "akin_rejected_searches_total", "original", originalAccepted)
		failed := p.value(t, "akin_requests_total", "outcome", report.FailedOpen, "reason", cause)
		check.That(t, failed+refused == 1, "%s is not counted", cause)
		p.arrived(t, []string{newBody, trialBody}[1-int(refused):]...)
		p.counted(t, 1, "akin_trial_searches_total", "arm", "new")
	}
}

func TestExplanationsNameTheArm(t *testing.T) {
	p := startTrial(t, nil, answerOf(hitsAnswer(1, 3, "a")), answerOf(hitsAnswer(2, 3, "b")))
	e := p.explained(t, p.searchIn(t, "one", "/t/_search?akin=explain"))
	check.That(t, e["trial"] == "t" && e["arm"] == "new" && e["outcome"] == report.Rewritten, "%+v", e)
}

func TestAUnitStaysInItsArmAndTheShareIsKept(t *testing.T) {
	const units = 20_000
	small, large := Trial{Name: "t", Share: .1}, Trial{Name: "t", Share: .3}
	other := Trial{Name: "u", Share: .1}
	in, both := 0, 0
	for i := range units {
		unit := "session " + strconv.Itoa(i)
		drawn := small.Draws(unit)
		check.Must(t, drawn == small.Draws(unit), "another draw for the same unit")
		check.Must(t, !drawn || large.Draws(unit), "a larger share leaves out who was in")
		if drawn {
			in++
			if other.Draws(unit) {
				both++
			}
		}
	}
	// Five standard deviations of a binomial.
	sd := math.Sqrt(units * .1 * .9)
	check.That(t, math.Abs(float64(in)-units*.1) <= 5*sd, "%d of %d are in a tenth", in, units)
	n := float64(in)
	check.That(t, math.Abs(float64(both)-n*.1) <= 5*math.Sqrt(n*.1*.9), "of %d in a trial %d are in a tenth of another: they depend on each other", in, both)
	none, all := (&Trial{}), (&Trial{Share: 1})
	check.That(t, !none.Draws("x") && all.Draws("x"), "a share of 0 or 1 is not exact")
}
