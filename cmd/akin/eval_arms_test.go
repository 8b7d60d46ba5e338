package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/tools/evaluate"
)

func TestAnswersThatAreNotWholeAreErrors(t *testing.T) {
	for _, text := range []string{`{"timed_out": true}`, `{"_shards": {"failed": 1}, "hits": {"hits": []}}`, `{"hits": {"hits": {}}}`, `what`} {
		if hits, err := (&target{}).hits([]byte(text)); err == nil {
			t.Errorf("%s: %v", text, hits)
		}
	}
}

func TestHitsWithoutScoresKeepTheirOrder(t *testing.T) {
	hits, err := (&target{title: "name"}).hits([]byte(`{"hits": {"hits": [
		{"_id": "b", "_score": null, "_source": {"name": "B"}}, {"_id": "a", "_score": null, "_source": {"name": ["A"]}}]}}`))
	if err != nil || hits[0].Score != 2 || hits[1].Score != 1 || hits[0].Title != "B" || hits[1].Title != "" {
		t.Errorf("%+v, %v", hits, err)
	}
}

func TestSettingsOfALineAreKeysOfAProfile(t *testing.T) {
	cfg, err := (&armOptions{Cluster: cli.Cluster{URL: "http://c"}}).configure("x", "m.akin", "strength=0.4,feedback.documents=10,matching=same")
	if err != nil {
		t.Fatal(err)
	}
	p := cfg.Profiles["x"]
	if p.Strength != 0.4 || p.Feedback.Documents != 10 || !p.SameMatches {
		t.Errorf("%+v", p)
	}
}

// Without a profile it would be measured what a trial makes of this machine's
// searches, which may be nothing.
func TestSearchesInATrialAreNotMeasured(t *testing.T) {
	serve := func(answers map[string]string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Akin-Explanation", "7")
			_, _ = w.Write([]byte(answers[r.URL.Path]))
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	set, err := openArms(t.Context(), armOptions{
		Arms: []string{"akin"}, Cluster: cli.Cluster{Index: "i"}, Akin: serve(map[string]string{"/i/_search": `{"hits": {"hits": []}}`}),
		Admin: serve(map[string]string{"/_akin/explanations/7": `{"outcome": "unchanged", "trial": "canary", "arm": "off", "clauses": []}`}),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	if answer, err := set.List[0].Search(t.Context(), []byte(`{}`)); err == nil || !strings.Contains(err.Error(), `in the trial "canary"`) {
		t.Errorf("%+v, %v", answer, err)
	}
}

// The admin port is another server than the cluster, often without encryption.
func TestCredentialsGoToSearchesOnly(t *testing.T) {
	t.Setenv(configs.EnvClusterUsername, "u")
	t.Setenv(configs.EnvClusterPassword, "p")
	var asked []string
	serve := func(answer string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _, secret := r.BasicAuth()
			asked = append(asked, r.URL.Path+map[bool]string{true: " with password", false: ""}[secret])
			w.Header().Set("X-Akin-Explanation", "7")
			_, _ = w.Write([]byte(answer))
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	set, err := openArms(t.Context(), armOptions{
		Arms: []string{"akin"}, Cluster: cli.Cluster{Index: "i"}, Akin: serve(`{"hits": {"hits": []}}`), Admin: serve(`{"outcome": "failed_open", "clauses": []}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	answer, err := set.List[0].Search(t.Context(), []byte(`{}`))
	if err != nil || !answer.FailedOpen || answer.Added == nil {
		t.Errorf("%+v, %v", answer, err)
	}
	if got, want := strings.Join(asked, ", "), "/i/_search with password, /_akin/explanations/7"; got != want {
		t.Errorf("asked %s, want %s", got, want)
	}
}

// The ring of explanations holds those of the last searches only.
func TestSearchesWithoutAnExplanationAreCounted(t *testing.T) {
	akin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/_akin/") {
			http.Error(w, `{"error": "no such explanation"}`, http.StatusNotFound)
			return
		}
		w.Header().Set("X-Akin-Explanation", "7")
		_, _ = w.Write([]byte(`{"hits": {"hits": []}}`))
	}))
	defer akin.Close()
	client, err := esclient.New(esclient.Options{URL: akin.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	answer, err := (&target{client: client, admin: client, index: "i"}).search(t.Context(), []byte(`{}`))
	if err != nil || !answer.Unexplained || answer.Added != nil {
		t.Errorf("%+v, %v", answer, err)
	}
}

func TestTwoRunsWithOneFileKeepAllAnswers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "answers")
	open := func() *searchCount {
		s := &searchCount{Resume: path}
		if err := s.Open(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		return s
	}
	template, err := evaluate.NewTemplate([]byte(`{"query": "{{query}}"}`), 1, "")
	if err != nil {
		t.Fatal(err)
	}
	var asked []string
	set := func(name string) *armSet {
		return &armSet{List: []evaluate.Arm{{Name: name, Search: func(context.Context, []byte) (evaluate.Answer, error) {
			asked = append(asked, name)
			return evaluate.Answer{Hits: []evaluate.Hit{{ID: name}}}, nil
		}}}}
	}
	query := []evaluate.Query{{ID: "1", Text: "x"}}
	first, second := open(), open()
	for name, s := range map[string]*searchCount{"a": first, "b": second} {
		if _, err := s.Send(t.Context(), set(name), query, template, nil, io.Discard); err != nil {
			t.Fatal(err)
		}
	}
	asked = nil
	for _, name := range []string{"a", "b"} {
		answered, err := open().Send(t.Context(), set(name), query, template, nil, io.Discard)
		if err != nil || answered[0].Answers[0].Hits[0].ID != name || asked != nil {
			t.Errorf("%s: %+v, %v, asked again %q", name, answered, err, asked)
		}
	}
}

func TestAdminPortGetsItsToken(t *testing.T) {
	t.Setenv(configs.EnvAdminToken, "0123456789abcdef")
	admin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, password, _ := r.BasicAuth(); password != "0123456789abcdef" {
			t.Errorf("the password is %q", password)
		}
		_, _ = w.Write([]byte(`{"outcome": "rewritten", "clauses": []}`))
	}))
	defer admin.Close()
	akin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("searches have the token, too")
		}
		w.Header().Set("X-Akin-Explanation", "7")
		_, _ = w.Write([]byte(`{"hits": {"hits": []}}`))
	}))
	defer akin.Close()
	set, err := openArms(t.Context(), armOptions{
		Arms: []string{"akin"}, Cluster: cli.Cluster{Index: "i"}, Akin: akin.URL, Admin: admin.URL,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	if answer, err := set.List[0].Search(t.Context(), []byte(`{}`)); err != nil || answer.Unexplained {
		t.Errorf("%+v, %v", answer, err)
	}
}
