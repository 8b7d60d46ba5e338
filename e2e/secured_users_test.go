package e2e

import (
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
	const learnedIndex = "akin-e2e-learned" // in which nothing else scrolls
	e.makeIndex(t, learnedIndex, securedDefinition)
	e.index(t, learnedIndex, securedDocuments())
	ca := filepath.Join(certificates(t), "ca.crt")
	build := func(user string, more ...string) commandResult {
		out := newPath(t, "m.akin")
		return runAkinAs(t, user, append([]string{
			"matrix", "build", "--cluster", e.as("").url, "--ca-file", ca, "--index", learnedIndex, "--field", "body", "--out", out,
		}, more...)...)
	}
	t.Run("builds", func(t *testing.T) {
		for _, more := range [][]string{nil, {"--exact-analysis"}} {
			if r := build(userAkin, more...); r.status != 0 || !strings.Contains(r.stderr, fmt.Sprintf("read %d documents", len(securedDocuments()))) {
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
