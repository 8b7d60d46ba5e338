package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestSecuredRoleOfAkin builds, checks and serves with the role of
// docs/security.md as it stands there.
func TestSecuredRoleOfAkin(t *testing.T) {
	t.Parallel()
	e := securedEngine(t)
	makeSecured(t, e)
	makeLearned(t, e)
	ca := filepath.Join(certificates(t), "ca.crt")
	build := func(user string, more ...string) commandResult {
		out := newPath(t, "m.akin")
		return runAkinAs(t, user, append([]string{
			"matrix", "build", "--from-index", e.as("").url, "--ca-file", ca, "--index", learnedIndex, "--field", "body", "--out", out,
		}, more...)...)
	}
	t.Run("builds", func(t *testing.T) {
		for _, more := range [][]string{nil, {"--exact-analysis"}} {
			if r := build(userAkin, more...); r.status != 0 || !strings.Contains(r.stderr, "read 206 documents") {
				t.Errorf("%v: status %d\n%s%s", more, r.status, r.stdout, r.stderr)
			}
		}
		if r := build(userReader); r.status != 1 || !strings.Contains(r.stderr, "docs/security.md") {
			t.Errorf("a role that lacks rights: status %d\n%s", r.status, r.stderr)
		}
	})
	check := func(user string) commandResult {
		config := securedConfig(t, e, nil, section{"auth": section{"username": user, "password_file": writeFile(t, "password", password)}})
		return runAkin(t, "check", "--config", writeFile(t, "akin.yml", toJSON(t, config)))
	}
	t.Run("checks", func(t *testing.T) {
		r := check(userAkin)
		rights := 0
		for line := range strings.Lines(r.stdout) {
			if verdict, about, _ := strings.Cut(line, " "); strings.HasPrefix(strings.TrimSpace(about), "right to ") {
				if rights++; verdict != "ok" {
					t.Errorf("%s", line)
				}
			}
		}
		if rights != 7 || r.status != 0 {
			t.Errorf("%d rights were tried, status %d:\n%s%s", rights, r.status, r.stdout, r.stderr)
		}
	})
	t.Run("check names what building lacks", func(t *testing.T) {
		r := check(userLacking)
		for _, right := range []string{"indices:data/read/scroll/clear", "indices:monitor/settings/get", "cluster:admin/search/pipeline/get"} {
			if !strings.Contains(r.stdout, "give akin's user the right "+right+";") {
				t.Errorf("%s is not named:\n%s", right, r.stdout)
			}
		}
		if r.status != 0 {
			t.Errorf("status %d: serving lacks nothing", r.status)
		}
	})
	t.Run("reads search pipelines", func(t *testing.T) {
		const pipeline = "akin-e2e-secured-pipeline"
		e.must(t, http.MethodPut, "/_search/pipeline/"+pipeline, `{"request_processors":[{"neural_query_enricher":{"default_model_id":"m"}}]}`)
		for user, outcome := range map[string]string{userAkin: rewrittenOutcome, userLacking: `reason="search_pipeline"`} {
			a := setupSecured(t, e, securedConfig(t, e, nil, section{"auth": section{"username": user, "password_file": writeFile(t, "password", password)}}))
			if _, err := a.as(userAll).search(t.Context(), "/"+securedIndex+"/_search?search_pipeline="+pipeline, `{"query":{"match":{"body":"car"}}}`); err != nil {
				t.Errorf("%s: %v", user, err)
			}
			if n := a.metric(t, requestsMetric, outcome); n != 1 {
				t.Errorf("%s: %v searches of %s", user, n, outcome)
			}
		}
	})
	t.Run("serves", func(t *testing.T) {
		for _, options := range []section{nil, {"mode": "soft"}, {"feedback": section{"documents": 5}}, {"hide_from": []string{}}} {
			a := setupSecured(t, e, securedConfig(t, e, options, nil))
			for _, user := range []string{userReader, userAll} {
				if got, err := a.as(user).search(t.Context(), "/"+securedIndex+"/_search", `{"size":50,"query":{"match":{"body":"car"}}}`); err != nil || len(got.ids()) != 12 {
					t.Errorf("%v: %s finds %v, %v; want what is about automobiles, too", options, user, got.ids(), err)
				}
			}
			if n := a.metric(t, "akin_failed_open_total"); n != 0 {
				t.Errorf("%v: %v searches failed open", options, n)
			}
			for _, line := range a.logLines(t) {
				if line["level"] == "WARN" || line["level"] == "ERROR" {
					t.Errorf("%v: %v", options, line)
				}
			}
		}
	})
	var stats struct {
		All struct {
			Total struct {
				Search struct {
					Opened int `json:"scroll_total"`
					Open   int `json:"open_contexts"`
				}
			}
		} `json:"_all"`
	}
	waitFor(t, 10*time.Second, "closed scrolls", func() error { // a context is freed after the answer that it is
		err := e.getJSON(t.Context(), "/"+learnedIndex+"/_stats/search", &stats)
		if s := stats.All.Total.Search; err == nil && (s.Open > 0 || s.Opened == 0) {
			return fmt.Errorf("scrolls of the index: %+v", s)
		}
		return err
	})
}

// TestSecuredWordsAreHidden sends every way to search that can show the words of
// a rewritten query. None shows one, unless hide_from is empty.
func TestSecuredWordsAreHidden(t *testing.T) {
	t.Parallel()
	e := securedEngine(t)
	makeSecured(t, e)
	showing, hiding := setupSecured(t, e, securedConfig(t, e, section{"hide_from": []string{}}, nil)), setupSecured(t, e, securedConfig(t, e, nil, nil))
	shown := map[string][]string{}
	for _, user := range []string{userOwn, userFields, userMasked, userAll} {
		field, word, added := "body", "boat", "body:ship"
		if user == userFields || user == userMasked {
			field, word, added = "notes", "price", "bribe"
		}
		for _, r := range securedRequests {
			path, body := r.on(securedIndex, field, word)
			says := func(c cluster) bool {
				status, answer, err := c.as(user).call(t.Context(), http.MethodPost, path, body)
				if err != nil {
					t.Fatal(err)
				}
				return status == http.StatusOK && strings.Contains(string(answer), added)
			}
			if says(e.cluster) {
				t.Errorf("%s: %s shows %q by itself: it says nothing of akin", user, r.name, added)
			}
			if says(showing.cluster) {
				if shown[user] = append(shown[user], r.name); !r.shows {
					t.Errorf("%s: %s shows %q; is it a kind to hide?", user, r.name, added)
				}
			}
			if says(hiding.cluster) {
				t.Errorf("%s: %s shows %q", user, r.name, added)
			}
		}
	}
	for user, kinds := range shown {
		t.Logf("%d kinds of requests show %s added words with hide_from: []: %s", len(kinds), user, strings.Join(kinds, ", "))
	}
	if len(shown[userOwn]) < 15 || len(shown[userFields]) < 9 {
		t.Error("too few kinds of requests show added words where they are not hidden")
	}
	if n := hiding.metric(t, requestsMetric, `reason="hidden"`); n < 15 {
		t.Errorf("%v searches were hidden", n)
	}
}

// TestSecuredSearchesOfNineUsers sends a thousand searches directly and through
// akin: the statuses are the same, and nobody sees what he may not.
func TestSecuredSearchesOfNineUsers(t *testing.T) {
	t.Parallel()
	e := securedEngine(t)
	makeSecured(t, e)
	a := setupSecured(t, e, securedConfig(t, e, nil, nil))
	users := []string{userAll, userAkin, userReader, userOwn, userFields, userMasked, userAlias, userNone, userWrong}
	searches, differ, words := 0, 0, 0
	for round := 0; searches < 1000; round++ {
		for _, r := range securedRequests {
			for _, user := range users {
				index, field, word := securedIndex, "body", []string{"car", "boat", "car red", "filler 7"}[round%4]
				if user == userAlias {
					index = securedAlias
				}
				if hiddenFrom[user] == "bribe" {
					field, word = "notes", []string{"price", "list", "price list", "filler 7"}[round%4]
				}
				path, body := r.on(index, field, strings.ReplaceAll(word, " ", "+"))
				if r.body != "" {
					path, body = r.on(index, field, word)
				}
				searches++
				want, direct := statusesOf(t, e.as(user), path, body)
				got, through := statusesOf(t, a.as(user), path, body)
				if want != got {
					differ++
					t.Errorf("%s: %s of %q: %s, directly %s: %.500s", user, r.name, word, got, want, through)
				}
				if hidden := hiddenFrom[user]; hidden != "" && strings.Contains(through, hidden) && !strings.Contains(direct, hidden) {
					words++
					t.Errorf("%s: %s of %q shows %q: %.2000s", user, r.name, word, hidden, through)
				}
			}
		}
	}
	rewritten, failed := a.metric(t, requestsMetric, rewrittenOutcome), a.metric(t, "akin_failed_open_total")
	t.Logf("%d searches of %d users, %v rewritten, %v failed open: %d differing statuses, %d hidden words", searches, len(users), rewritten, failed, differ, words)
	if rewritten < 100 {
		t.Errorf("only %v searches were rewritten", rewritten)
	}
	if failed > 0 {
		t.Errorf("%v failed open", failed)
	}
}

// statusesOf returns the status of an answer, with those of the searches in it,
// and the answer.
func statusesOf(t *testing.T, c cluster, path, body string) (statuses, answer string) {
	t.Helper()
	status, content, err := c.call(t.Context(), http.MethodPost, path, body)
	if err != nil {
		t.Fatal(err)
	}
	var page struct{ Responses []struct{ Status int } }
	if strings.Contains(path, "_msearch") && status == http.StatusOK {
		if err := json.Unmarshal(content, &page); err != nil {
			t.Fatal(err)
		}
	}
	return fmt.Sprint(status, page.Responses), string(content)
}
