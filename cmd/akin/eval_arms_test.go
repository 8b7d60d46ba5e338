package main

import (
	"context"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/e2e/check"
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
	check.That(t, err == nil && hits[0].Score == 2 && hits[1].Score == 1 && hits[0].Title == "B" && hits[1].Title == "", "%+v, %v", hits, err)
}

func TestSettingsOfALineAreKeysOfAProfile(t *testing.T) {
	cfg, err := (&armOptions{Cluster: cli.Cluster{URL: "http://c"}}).configure("x", "m.akin", "strength=0.4,feedback.documents=10,matching=same")
	check.OK(t, err)
	p := cfg.Profiles["x"]
	check.That(t, p.Strength == 0.4 && p.Feedback.Documents == 10 && p.SameMatches, "%+v", p)
}

// TestSearchesOfAnAkin has the answers of an admin port, and what is made of them.
// That is another server than the cluster, often without encryption: credentials
// go to searches only, and its token goes there only.
func TestSearchesOfAnAkin(t *testing.T) {
	t.Setenv(configs.EnvClusterUsername, "u")
	t.Setenv(configs.EnvClusterPassword, "p")
	t.Setenv(configs.EnvAdminToken, "0123456789abcdef")
	for name, tt := range map[string]struct {
		status      int
		explanation string
		refusal     string
		want        evaluate.Answer
	}{
		"failed open": {200, `{"outcome": "failed_open", "clauses": []}`, "", evaluate.Answer{FailedOpen: true}},
		"expanded":    {200, `{"outcome": "rewritten", "clauses": []}`, "", evaluate.Answer{}},
		// The ring of explanations holds those of the last searches only.
		"forgotten": {404, `{"error": "no such explanation"}`, "", evaluate.Answer{Unexplained: true}},
		// Without a profile it would be measured what a trial makes of this machine's
		// searches, which may be nothing.
		"in a trial": {200, `{"outcome": "unchanged", "trial": "canary", "arm": "off", "clauses": []}`, `in the trial "canary"`, evaluate.Answer{}},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []string
			note := func(r *http.Request) {
				user, password, _ := r.BasicAuth()
				asked = append(asked, r.URL.Path+" "+user+":"+password)
			}
			set, err := openArms(t.Context(), armOptions{
				Arms: []string{"akin"}, Cluster: cli.Cluster{Index: "i"},
				Akin: answering(t, func(w http.ResponseWriter, r *http.Request) {
					note(r)
					w.Header().Set("X-Akin-Explanation", "7")
					_, _ = w.Write([]byte(`{"hits": {"hits": []}}`))
				}),
				Admin: answering(t, func(w http.ResponseWriter, r *http.Request) {
					note(r)
					w.WriteHeader(tt.status)
					_, _ = w.Write([]byte(tt.explanation))
				}),
			})
			check.OK(t, err)
			defer set.Close()
			answer, err := set.List[0].Search(t.Context(), []byte(`{}`))
			if tt.refusal != "" {
				check.Message(t, tt.refusal, err)
			} else if err != nil || answer.FailedOpen != tt.want.FailedOpen || answer.Unexplained != tt.want.Unexplained || (answer.Added == nil) != tt.want.Unexplained {
				t.Errorf("%+v, %v", answer, err)
			}
			if got := strings.Join(asked, ", "); !strings.HasPrefix(got, "/i/_search u:p, /_akin/explanations/7 ") || !strings.HasSuffix(got, ":0123456789abcdef") {
				t.Errorf("asked %s", got)
			}
		})
	}
}

func TestTwoRunsWithOneFileKeepAllAnswers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "answers")
	open := func() *searchCount {
		s := &searchCount{Resume: path}
		check.OK(t, s.Open())
		t.Cleanup(s.Close)
		return s
	}
	template, err := evaluate.NewTemplate([]byte(`{"query": "{{query}}"}`), 1, "")
	check.OK(t, err)
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
		check.OK(t, check.ErrOf(s.Send(t.Context(), set(name), query, template, nil, io.Discard)))
	}
	asked = nil
	for _, name := range []string{"a", "b"} {
		answered, err := open().Send(t.Context(), set(name), query, template, nil, io.Discard)
		check.That(t, err == nil && answered[0].Answers[0].Hits[0].ID == name && asked == nil, "%s: %+v, %v, asked again %q", name, answered, err, asked)
	}
}
