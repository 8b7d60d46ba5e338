package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// as returns the same address for a user of the secured engine, "" for nobody.
// A password may stand behind a colon.
func (c cluster) as(user string) cluster {
	scheme, host, _ := strings.Cut(c.url, "//")
	if _, rest, known := strings.Cut(host, "@"); known {
		host = rest
	}
	if user != "" && !strings.Contains(user, ":") {
		user += ":" + password
	}
	if user != "" {
		host = user + "@" + host
	}
	return cluster{url: scheme + "//" + host}
}

// serveSecured starts akin before a secured engine with credentials of its own.
// The recorder between the two does not delay.
func serveSecured(t *testing.T, e *engine, expansion section) (*akin, *recorder) {
	t.Helper()
	r := startRecorder(t, e, tripDelay)
	options := section{"budget": widePatience}
	maps.Copy(options, expansion)
	a := startAkin(t, section{
		"cluster":   section{"urls": []string{r.url}, "auth": section{"username": "akin"}},
		"expansion": options,
		"matrices":  []section{{"name": "main", "file": relatedFile(t, vectorsA)}},
	}, "AKIN_CLUSTER_PASSWORD="+password)
	a.awaitMatrix(t, "main")
	r.settle()
	return a, r
}

func TestSearchesOfASecuredCluster(t *testing.T) {
	t.Parallel()
	e := securedEngine(t)
	makeRelated(t, e)
	const secret = "akin-e2e-secret"
	e.makeIndex(t, secret, relatedDefinition)
	e.index(t, secret, relatedDocuments())
	t.Run("who may not search costs one question", func(t *testing.T) { deniedSearches(t, e, secret) })
	t.Run("who may search is served", func(t *testing.T) { acceptedSearches(t, e) })
	t.Run("several searches are judged one by one", func(t *testing.T) { severalSecuredSearches(t, e, secret) })
	t.Run("a role with a document query", func(t *testing.T) { documentSecurity(t, e) })
	t.Run("akin check names the right that a user lacks", func(t *testing.T) { checkedRights(t, e) })
}

// checkedRights has akin check tried with the credentials of several users.
func checkedRights(t *testing.T, e *engine) {
	t.Helper()
	matrix := relatedFile(t, vectorsA)
	for _, c := range []struct {
		user, password string
		status         int
		want           []string
	}{
		{"akin", password, 0, []string{"on: searches are expanded for clients that may search", "indices:admin/analyze", "akin-e2e-related body"}},
		{"akin", "wrong", 1, []string{"answered 401", "set AKIN_CLUSTER_USERNAME"}},
		{"reader", password, 1, []string{"answered 403", "the right cluster:monitor/main; docs/security.md"}},
	} {
		t.Run(c.user+" "+c.password, func(t *testing.T) {
			config := writeFile(t, "akin.yml", toJSON(t, section{
				"cluster":  section{"urls": []string{e.cluster.as("").url}, "tls": section{"ca_file": filepath.Join(certificates(t), "ca.crt")}, "auth": section{"username": c.user, "password_file": writeFile(t, "password", c.password)}},
				"matrices": []section{{"name": "main", "file": matrix, "indices": []string{"akin-e2e-related"}, "fields": []string{"body"}}},
			}))
			r := runAkin(t, "check", "--config", config)
			words := strings.Join(strings.Fields(r.stdout), " ")
			for _, want := range c.want {
				if !strings.Contains(words, want) {
					t.Errorf("%q is not in\n%s", want, r.stdout)
				}
			}
			if r.status != c.status {
				t.Errorf("status %d, want %d\n%s%s", r.status, c.status, r.stdout, r.stderr)
			}
		})
	}
}

// deniedSearches sends 50 searches of each kind of client that is denied.
func deniedSearches(t *testing.T, e *engine, secret string) {
	t.Helper()
	tests := []struct {
		name, user, path string
		status           int
	}{
		{"without credentials", "", relatedPath, http.StatusUnauthorized},
		{"without credentials, of no index", "", "/akin-e2e-nowhere/_search", http.StatusUnauthorized},
		{"of a user without roles", userNone, relatedPath, http.StatusForbidden},
		{"of an index that the user may not see", "reader", "/" + secret + "/_search", http.StatusForbidden},
		{"of an index that the user may not see and that is missing", "reader", "/akin-e2e-nowhere/_search", http.StatusForbidden},
		{"by a pattern that finds nothing for the user", "reader", "/akin-e2e-secret*/_search?ignore_unavailable=true", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, r := serveSecured(t, e, nil)
			r.take()
			const n = 50
			for k := range n {
				status, answer, err := a.as(tt.user).call(t.Context(), http.MethodPost, tt.path, relatedSearch(fmt.Sprintf("car filler %d", k)))
				if err != nil || tt.status != 0 && status != tt.status {
					t.Fatalf("%v, %d, want %d: %.500s", err, status, tt.status, answer)
				}
			}
			// A verdict is valid for ten seconds, so that a slow machine asks again.
			trips := r.take()
			if questions := len(trips) - n; questions < 1 || questions > 3 {
				t.Errorf("%d searches cost %d calls: %v", n, len(trips), names(trips))
			}
			for _, trip := range trips {
				if !strings.HasSuffix(trip.what, "/_search") {
					t.Errorf("a call of akin's own for a client that is denied: %s", trip.what)
				}
			}
			if rewritten := a.metric(t, requestsMetric, rewrittenOutcome); rewritten != 0 {
				t.Errorf("%v searches were rewritten", rewritten)
			}
		})
	}
}

func acceptedSearches(t *testing.T, e *engine) {
	t.Helper()
	a, r := serveSecured(t, e, nil)
	for _, user := range []string{"reader", "reader", "admin"} {
		if got, _ := a.as(user).search(t.Context(), relatedPath, relatedSearch("car")); len(got.ids()) != 4 {
			t.Errorf("%s finds %v, want what is about automobiles, too", user, got.ids())
		}
	}
	r.settle()
	if _, err := a.as("reader").search(t.Context(), relatedPath, relatedSearch("car")); err != nil {
		t.Fatal(err)
	}
	if trips := r.take(); len(trips) != 1 {
		t.Errorf("a warm search takes %v", names(trips))
	}
	// What another user taught akin is of no use to one who is denied.
	status, _, err := a.as(userNone).call(t.Context(), http.MethodPost, relatedPath, relatedSearch("car"))
	if err != nil || status != http.StatusForbidden {
		t.Errorf("%v, %d, want 403", err, status)
	}
	if n := a.metric(t, requestsMetric, `outcome="unchanged"`, `reason="not_authorized"`); n != 1 {
		t.Errorf("%v searches were not authorized, want 1", n)
	}
	if n := a.metric(t, requestsMetric, rewrittenOutcome); n != 4 {
		t.Errorf("%v searches were rewritten, want 4", n)
	}
}

func severalSecuredSearches(t *testing.T, e *engine, secret string) {
	t.Helper()
	a, r := serveSecured(t, e, nil)
	r.take()
	body := `{"index":"` + relatedIndex + `"}` + "\n" + relatedSearch("car") + "\n" +
		`{"index":"` + secret + `"}` + "\n" + relatedSearch("car") + "\n"
	status, answer, err := a.as("reader").call(t.Context(), http.MethodPost, "/_msearch", body)
	if err != nil || status != http.StatusOK {
		t.Fatalf("%v, %d: %.500s", err, status, answer)
	}
	var page struct {
		Responses []struct {
			Status int
			Hits   struct{ Hits []struct{} }
		}
	}
	if err := json.Unmarshal(answer, &page); err != nil || len(page.Responses) != 2 {
		t.Fatalf("%v: %.500s", err, answer)
	}
	if got := page.Responses; len(got[0].Hits.Hits) != 4 || got[1].Status != http.StatusForbidden {
		t.Errorf("answers %+v, want four hits and a 403", got)
	}
	for _, trip := range r.take() {
		if strings.Contains(trip.what, secret) && trip.what != "GET /"+secret+"/_search" {
			t.Errorf("a call of akin's own for a client that is denied: %s", trip.what)
		}
	}
}

// documentSecurity looks for related words in all that the cluster says of a
// search to a user whose role lets only documents about cars through.
func documentSecurity(t *testing.T, e *engine) {
	t.Helper()
	requests := []struct{ name, path, body string }{
		// The plugin refuses to profile where a role has a document query.
		{"explain", relatedPath, `{"explain":true,` + relatedSearch("car")[1:]},
		{"_explain", "/" + relatedIndex + "/_explain/car-automobile", `{"query":{"match":{"body":"car"}}}`},
		{"_validate", "/" + relatedIndex + "/_validate/query?explain=true", `{"query":{"match":{"body":"boat"}}}`},
	}
	open, _ := serveSecured(t, e, section{"hide_from": []string{}})
	hiding, _ := serveSecured(t, e, nil)
	for _, tt := range requests {
		t.Run(tt.name, func(t *testing.T) {
			for a, shown := range map[*akin]bool{open: true, hiding: false} {
				status, answer, err := a.as("own").call(t.Context(), http.MethodPost, tt.path, tt.body)
				if err != nil || status != http.StatusOK {
					t.Fatalf("%v, %d: %.500s", err, status, answer)
				}
				related := strings.Contains(string(answer), "body:ship") || strings.Contains(string(answer), "body:automobile")
				if related != shown {
					t.Errorf("shows related words: %v, want %v: %.3000s", related, shown, answer)
				}
			}
		})
	}
	if n := hiding.metric(t, requestsMetric, `reason="hidden"`); n != float64(len(requests)) {
		t.Errorf("%v requests were hidden, want %d", n, len(requests))
	}
	// The documents that feedback comes from are those that the role lets through.
	feeding, _ := serveSecured(t, e, section{"feedback": section{"documents": 10}})
	visible, err := feeding.as("own").search(t.Context(), relatedPath, `{"size":100,"query":{"match_all":{}}}`)
	if err != nil {
		t.Fatal(err)
	}
	terms := explainedFeedback(t, feeding, feeding.as("own").url, relatedPath, relatedSearch("automobile"))
	for _, f := range terms {
		for _, id := range f.Documents {
			if !slices.Contains(visible.ids(), id) {
				t.Errorf("%s is from %s, which the client may not see", f.Term, id)
			}
		}
	}
	if used := feeding.metric(t, feedbackMetric, `result="used"`); used != 1 {
		t.Errorf("%v searches with feedback, whose terms are %+v", used, terms)
	}
	// A search that shows nothing is expanded all the same.
	waitFor(t, 5*time.Second, "an expanded search", func() error {
		got, err := hiding.as("own").search(t.Context(), relatedPath, relatedSearch("automobile"))
		if err == nil && len(got.ids()) < 2 {
			err = fmt.Errorf("hits %v", got.ids())
		}
		return err
	})
}
