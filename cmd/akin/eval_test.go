package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/internal/demo"
	"github.com/akin-search/akin/tools/evaluate"
)

// judgedQueries is how many of the demo's queries are searched for.
const judgedQueries = 30

// A demoSet has the judged queries of the demo corpus in the files of BEIR, and
// a matrix learned from it.
type demoSet struct{ engine, queries, judgments, template, matrix string }

func newDemoSet(t *testing.T) *demoSet {
	t.Helper()
	var queries, judgments strings.Builder
	judgments.WriteString("query-id\tcorpus-id\tscore\n")
	for _, q := range demo.Queries()[:judgedQueries] {
		fmt.Fprintf(&queries, "{\"_id\": %q, \"text\": %q}\n", q.ID, q.Text)
		for _, id := range slices.Sorted(maps.Keys(q.Judgments)) {
			fmt.Fprintf(&judgments, "%s\t%s\t%v\n", q.ID, id, q.Judgments[id])
		}
	}
	return &demoSet{
		demoEngine(t), write(t, "queries.jsonl", queries.String()), write(t, "qrels.tsv", judgments.String()),
		write(t, "template.json", `{"query": {"multi_match": {"query": "{{query}}", "fields": ["title", "body"]}}}`), demoMatrix(t),
	}
}

// args returns a command line that evaluates, with more at its end.
func (s *demoSet) args(more ...string) []string {
	return append([]string{
		"eval", "--cluster", s.engine, "--index", demoIndices, "--queries", s.queries, "--judgments", s.judgments, "--template", s.template,
	}, more...)
}

func evalJSON(t *testing.T, args []string) *evaluate.Result {
	t.Helper()
	var r evaluate.Result
	check.OK(t, json.Unmarshal([]byte(mustAkin(t, append(args, "--json")...)), &r))
	return &r
}

func TestEvalComparesARunningAkinAndCandidatesWithTheCluster(t *testing.T) {
	s := newDemoSet(t)
	served := serveDemo(t, "expansion: {budget: 5s, mode: soft}\nprofiles: {weak: {strength: 0}}\n")
	r := evalJSON(t, s.args("--akin", served.proxy, "--akin-admin", served.admin, "--title", "title", "--arm", "direct", "--arm", "profile:weak", "--arm", "running=akin",
		"--arm", "candidate=matrix:"+s.matrix+",mode=soft", "--arm", "few=matrix:"+s.matrix+",max_added_terms=1,strength=1.5"))
	var names []string
	for _, a := range r.Arms {
		names = append(names, a.Name)
	}
	if diff := cmp.Diff([]string{"direct", "profile-weak", "running", "candidate", "few"}, names); diff != "" {
		t.Fatal(diff)
	}
	direct, running, candidate, few := r.Arms[0], r.Arms[2], r.Arms[3], r.Arms[4]
	if gain := running.Measures["MAP"].Gain; gain == nil || gain.Mean <= 0 || gain.P > 0.01 { // nDCG@10 of these 30 queries is as without akin
		t.Errorf("MAP of akin: %+v", gain)
	}
	check.Equal(t, running.Measures, candidate.Measures, "running (want) and in this process")
	if direct.AddedTerms != nil || *running.AddedTerms <= *few.AddedTerms || *few.AddedTerms <= 0 || *few.AddedTerms > 1 {
		t.Errorf("added terms: %v, %v, %v", direct.AddedTerms, running.AddedTerms, few.AddedTerms)
	}
	check.That(t, candidate.Latency.P50 > 0 && candidate.Expanded > 27 && candidate.Warning == "" && direct.Share() == "-", "%+v", candidate)
	first := r.Queries[0].Arms[3]
	check.That(t, len(first.Added) != 0 && first.Added[0].Boost != 0 && first.Hits[0].Title != "", "%+v", first)
}

func TestEvalPrintsATableAndWritesFiles(t *testing.T) {
	s := newDemoSet(t)
	s.judgments = write(t, "qrels.tsv", read(t, s.judgments)+"q01\tnowhere\t1\nnobody\thelp-001\t1\n")
	out, page := filepath.Join(t.TempDir(), "runs"), filepath.Join(t.TempDir(), "page.html")
	ends(t, 0, s.args("--arm", "direct", "--arm", "new=matrix:"+s.matrix, "--runs", out, "--report", page),
		"nDCG@10", "new against direct", "p = ", "1 judged queries without a text are left out: \"nobody\"",
		"1 judged documents are not in the index, and count as not found: \"nowhere\"", "searching: ")
	if run := read(t, filepath.Join(out, "new.run")); !strings.HasPrefix(run, "q01 Q0 ") || !strings.HasSuffix(run, " new\n") {
		t.Errorf("run file %.100s", run)
	}
	contains(t, "the page", read(t, page), "1 judged documents are not in the index", "queries better")
	contains(t, "qrels", read(t, filepath.Join(out, "qrels.txt")), "q01 0 nowhere 1\n")
}

func TestEvalExportsWhatTheClusterGot(t *testing.T) {
	s := newDemoSet(t)
	s.queries = write(t, "queries.tsv", "q01\tcouch\nq02\t22\" couch\n")
	s.judgments = write(t, "qrels.tsv", "q01 0 catalogue-001 1\nq02 0 catalogue-001 2\n")
	out := t.TempDir()
	args := s.args("--arm", "direct", "--arm", "new=matrix:"+s.matrix+",mode=bm25", "--arm", "soft=matrix:"+s.matrix+",mode=soft", "--export", out)
	ends(t, 0, s.args("--arm", "direct", "--export", t.TempDir()), "A search configuration has one index or alias, not "+demoIndices)
	ends(t, 0, append(args, "--index", "catalogue"), `1 queries are left out, which the workbench refuses for their characters or length: ["q02"]`,
		"soft: akin put the hits of 1 searches in order after the engine")
	var set evaluate.WorkbenchQuerySet
	check.OK(t, json.Unmarshal([]byte(read(t, filepath.Join(out, "query_set.json"))), &set))
	check.Equal(t, 1, len(set.Queries))
	direct := check.Got(base64.StdEncoding.DecodeString(set.Queries[0]["query0_0_0"]))(t)
	var expanded []byte
	for name, value := range set.Queries[0] { // of the arm new
		if strings.HasPrefix(name, "query1_") && strings.HasSuffix(name, "_0") {
			query := check.Got(base64.StdEncoding.DecodeString(value[:len(value)/4*4]))(t)
			expanded = append(expanded, query...)
		}
	}
	check.That(t, !strings.Contains(string(direct), "sofa") && bytes.Contains(expanded, []byte("sofa")), "%s\n%s", direct, expanded)
	contains(t, "judgments", read(t, filepath.Join(out, "judgments.json")), "IMPORT_JUDGMENT", `{"docId":"catalogue-001","rating":"1"}`)
	contains(t, "the search", read(t, filepath.Join(out, "search_new.json")), `"name":"akin new"`, "{{#form1_0}}")
	contains(t, "ratings", read(t, filepath.Join(out, "quepid.csv")), "query,docid,rating\n", "\"22\"\" couch\",catalogue-001,2\n")
}

// A search that is sent before a path is found wrong may be the first of many.
func TestEvalAndCompareCheckWhereTheyWriteBeforeTheySearch(t *testing.T) {
	engine := answering(t, func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("the cluster is asked for %s", r.URL.Path)
		http.Error(w, "{}", http.StatusInternalServerError)
	})
	s := &demoSet{
		engine, write(t, "queries.tsv", "1\tcouch\n"), write(t, "qrels", "1 0 a 1\n"), write(t, "template.json", `{"query": {"match": {"body": "{{query}}"}}}`), "",
	}
	file, foreign := write(t, "file", ""), write(t, "foreign", "mine\n")
	compare := []string{
		"compare", "--cluster", s.engine, "--index", "i", "--template", s.template, "--log", write(t, "log", "couch\n"), "--title", "title", "--arm", "direct", "--arm", "b=direct",
	}
	for _, test := range []struct {
		args []string
		want string
	}{
		{s.args("--runs", filepath.Join(file, "runs")), "--runs: "},
		{s.args("--report", filepath.Join(file, "page.html")), "--report: "},
		{s.args("--export", filepath.Join(file, "workbench")), "--export: "},
		{s.args("--resume", foreign), "--resume " + foreign + ": line 1: "},
		{s.args("--resume", filepath.Join("nowhere", "state")), "--resume nowhere/state: "},
		{append(compare, "--judge", filepath.Join(file, "pairs.csv")), "--judge: "},
		{append(compare, "--resume", foreign), "--resume " + foreign + ": line 1: "},
	} {
		if _, stderr, status := akin(t, test.args...); status == 0 || !strings.Contains(stderr, test.want) {
			t.Errorf("%q: status %d, want %q in\n%s", test.args, status, test.want, stderr)
		}
	}
	if read(t, foreign) != "mine\n" {
		t.Error("a foreign file was written to")
	}
}

func TestEvalGoesOnAfterTheClusterWentAway(t *testing.T) {
	s := newDemoSet(t)
	var searches, most atomic.Int64
	most.Store(40)
	shaky := relayTo(t, s.engine, func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/_search") && searches.Add(1) > most.Load() {
			panic(http.ErrAbortHandler)
		}
		return false
	})
	state := filepath.Join(t.TempDir(), "state")
	arms := []string{"--arm", "direct", "--arm", "again=direct"}
	want := evalJSON(t, s.args(arms...))
	s.engine = shaky
	_, stderr, status := akin(t, s.args(append(arms, "--resume", state)...)...)
	kept := strings.Count(read(t, state), `"key"`)
	if kept < 10 || status != exitFailure || !strings.Contains(stderr, fmt.Sprintf("\n%d of %d queries are in %s: the same command goes on", kept/2, judgedQueries, state)) {
		t.Fatalf("status %d after %d answers\n%s", status, kept, stderr)
	}
	most.Store(1 << 30)
	searches.Store(0)
	got := evalJSON(t, s.args(append(arms, "--resume", state)...))
	times := cmpopts.IgnoreFields(evaluate.Ranked{}, "TookMillis")
	check.Equal(t, want, got, times, cmpopts.IgnoreTypes(evaluate.Latency{}), "at once (want) and resumed")
	// Both arms once to warm up and once for each query that was missing, and the look for documents.
	if n, want := int(searches.Load()), 2*judgedQueries-kept+2+1; n != want {
		t.Errorf("%d searches, want %d", n, want)
	}
	searches.Store(0)
	evalJSON(t, s.args("--arm", "direct", "--arm", "new=direct", "--resume", state))
	if n, want := int(searches.Load()), judgedQueries+1+1; n != want {
		t.Errorf("%d searches where one arm is new, want %d", n, want)
	}
}

func TestEvalFailsUnderWhatIsAskedFor(t *testing.T) {
	s := newDemoSet(t)
	arms := []string{"--arm", "direct", "--arm", "new=matrix:" + s.matrix, "--measures", "nDCG@10,MAP"}
	for _, test := range []struct {
		condition string
		status    int
	}{{"nDCG@10=0.1", 0}, {"nDCG@10=0.99", exitBelow}, {"MAP=+0.1%", 0}, {"MAP=+90%", exitBelow}, {"MAP=-5%", 0}, {"P@10=0.1", exitUsage}, {"MAP=5%", exitUsage}, {"MAP=+0.1", exitUsage}} {
		stdout, stderr, status := akin(t, s.args(append(arms, "--fail-under", test.condition)...)...)
		if status != test.status || status == exitBelow && (!strings.Contains(stderr, "arm new has 0.") || !strings.Contains(stdout, "new against direct")) {
			t.Errorf("%s: status %d, want %d\n%s", test.condition, status, test.status, stderr)
		}
	}
}

func TestEvalReportsWhatIsWrongWithItsInput(t *testing.T) {
	s := newDemoSet(t)
	template := func(body string) []string { return []string{"--template", write(t, "t.json", body)} }
	arm := func(arm string) []string { return []string{"--arm", arm} }
	for want, args := range map[string][]string{
		"give --judgments FILE":                                          {"--judgments", ""},
		"none of the judgments is of a query in ":                        {"--queries", write(t, "queries", "x\ttext\n")},
		"has only the ids of queries: give --queries FILE":               {"--queries", ""},
		"t.json: no {{query}} in the search body":                        template("{}"),
		"t.json: the search body is no JSON object":                      template(`{"query": {{query}}}`),
		"a query with a text needs a template":                           {"--template", ""},
		"recall@101 looks at 101 hits, and the search asks for 100":      {"--measures", "recall@101"},
		"the search asks for 5":                                          template(`{"size": 5, "query": {"match": {"body": "{{query}}"}}}`),
		`--measures: "NDCG" is no measure`:                               {"--measures", "NDCG"},
		"--fail-under: a change from the first arm needs a second --arm": {"--fail-under", "nDCG@10=+1%"},
		"--fail-under: nDCG@10=NaN: want a measure":                      {"--fail-under", "nDCG@10=NaN"},
		"--report: nowhere/page.html: nowhere is no folder":              {"--report", "nowhere/page.html"},
		"--arm x=what: want [NAME=]direct":                               arm("x=what"),
		"two are named direct":                                           {"--arm", "direct", "--arm", "direct"},
		"--arm akin: give --akin and --akin-admin":                       arm("akin"),
		"profiles.x.power":                                               arm("x=matrix:" + s.matrix + ",power=1"),
		"profiles.x.strength: 6 is out of range":                         arm("x=matrix:" + s.matrix + ",strength=6"),
		"strength: want KEY=VALUE":                                       arm("x=matrix:" + s.matrix + ",strength"),
		"nowhere.akin":                                                   arm("x=matrix:nowhere.akin"),
		"index_not_found":                                                {"--index", "nowhere"},
		"arm direct, query q01: ":                                        template(`{"query": {"matches": "{{query}}"}}`),
	} {
		if _, stderr, status := akin(t, s.args(args...)...); status == 0 || !strings.Contains(stderr, want) {
			t.Errorf("%q: status %d, want %q in\n%s", args, status, want, stderr)
		}
	}
	served := serveDemo(t, "profiles: {new: {}}\nexpansion: {trials: [{name: canary, arms: ['off', new]}]}\n")
	for arm, want := range map[string]string{
		"profile:nobody": `akin has no profile "nobody"`,
		"akin":           `akin has the search in the trial "canary"`, // whose first arm is as direct search
	} {
		ends(t, exitFailure, s.args("--akin", served.proxy, "--akin-admin", served.admin, "--arm", arm), want)
	}
}

func TestEvalTakesRankEvalRequestsAndATextWithQuotes(t *testing.T) {
	s := newDemoSet(t)
	body := `{"query": {"match": {"body": "couch"}}, "_source": true}`
	judgments := write(t, "rank_eval.json", `{"requests": [{"id": "sofa", "request": `+body+`, "ratings": [{"_index": "catalogue", "_id": "catalogue-001", "rating": 1}]}]}`)
	r := evalJSON(t, []string{"eval", "--cluster", s.engine, "--index", demoIndices, "--judgments", judgments, "--arm", "new=matrix:" + s.matrix})
	check.That(t, len(r.Queries) == 1 && len(r.Queries[0].Arms[0].Added) != 0, "%+v", r.Queries)
	quoted := write(t, "judged.csv", "query,document,grade\n\"a \"\"soft\"\" \\couch\",catalogue-001,1\n")
	r = evalJSON(t, []string{"eval", "--cluster", s.engine, "--index", demoIndices, "--judgments", quoted, "--template", s.template})
	check.That(t, len(r.Queries) == 1 && len(r.Queries[0].Arms[0].Hits) != 0, "%+v", r.Queries)
}

func TestAnswersThatAreNotWholeAreErrors(t *testing.T) {
	for _, text := range []string{`{"timed_out": true}`, `{"_shards": {"failed": 1}, "hits": {"hits": []}}`, `{"hits": {"hits": {}}}`, `what`} {
		if hits, _, err := (&target{}).hits([]byte(text)); err == nil {
			t.Errorf("%s: %v", text, hits)
		}
	}
}

// A cluster that rejects all that akin rewrites gives +0.0 % for both.
func TestEvalWarnsIfMostSearchesWereNotExpanded(t *testing.T) {
	s := newDemoSet(t)
	s.engine = relayTo(t, s.engine, func(w http.ResponseWriter, r *http.Request) bool {
		body, err := io.ReadAll(r.Body)
		check.OK(t, err)
		r.Body = io.NopCloser(bytes.NewReader(body))
		refused := strings.HasSuffix(r.URL.Path, "/_search") && bytes.Contains(body, []byte(`"boost"`))
		if refused {
			http.Error(w, `{"error":{"type":"too_many_clauses"},"status":400}`, http.StatusBadRequest)
		}
		return refused
	})
	page := filepath.Join(t.TempDir(), "page.html")
	args := s.args("--arm", "direct", "--arm", "new=matrix:"+s.matrix, "--report", page)
	ends(t, 0, args, "warning: new: only 0 of 30 searches were expanded (", " rejected", "30 searches of new went to the cluster as they came: ")
	contains(t, "the page", read(t, page), "only 0 of 30 searches were expanded</h1>", "Warning: <bdi>new</bdi>")
	r := evalJSON(t, args)
	check.That(t, r.Arms[0].Warning == "" && r.Arms[1].Warning != "" && r.Arms[1].Unexpanded["rejected"] > 0, "%+v", r.Arms[1].Expansion)
}

func TestHitsWithoutScoresKeepTheirOrder(t *testing.T) {
	hits, _, err := (&target{title: "name"}).hits([]byte(`{"hits": {"hits": [
		{"_id": "b", "_score": null, "_source": {"name": "B"}}, {"_id": "a", "_score": null, "_source": {"name": ["A"]}}]}}`))
	check.That(t, err == nil && hits[0].Score == 2 && hits[1].Score == 1 && hits[0].Title == "B" && hits[1].Title == "", "%+v, %v", hits, err)
}

func TestSettingsOfALineAreKeysOfAProfile(t *testing.T) {
	cfg, err := (&armOptions{Cluster: cli.Cluster{URL: "http://c"}}).configure("x", "m.akin", "strength=0.4,feedback.documents=10,matching=same")
	check.OK(t, err)
	p := cfg.Profiles["x"]
	check.That(t, p.Strength == 0.4 && p.Feedback.Documents == 10 && p.Matching == expand.Same, "%+v", p)
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
		"failed open":        {200, `{"outcome": "failed_open", "cause": "budget", "clauses": []}`, "", evaluate.Answer{Unexpanded: "failed_open: budget"}},
		"expanded":           {200, `{"outcome": "rewritten", "sent": "rewritten", "clauses": []}`, "", evaluate.Answer{}},
		"left alone":         {200, `{"outcome": "unchanged", "reason": "no_terms", "sent": "original"}`, "", evaluate.Answer{Unexpanded: "no_terms"}},
		"rejected":           {200, `{"outcome": "rewritten", "sent": "original", "rejected": true}`, "", evaluate.Answer{Unexpanded: "rejected"}},
		"not put in order":   {200, `{"outcome": "rewritten", "sent": "original", "reranked": "unreadable"}`, "", evaluate.Answer{Unexpanded: "unreadable"}},
		"in the shadow mode": {200, `{"outcome": "rewritten", "sent": "original"}`, "", evaluate.Answer{Unexpanded: "dry_run"}},
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
			} else if err != nil || answer.Unexpanded != tt.want.Unexpanded || answer.Unexplained != tt.want.Unexplained || (answer.Added == nil) != tt.want.Unexplained {
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

// compareArgs returns a command line that compares the cluster with a matrix.
func (s *demoSet) compareArgs(log string, more ...string) []string {
	return append([]string{
		"compare", "--cluster", s.engine, "--index", demoIndices, "--template", s.template, "--log", log, "--title", "title",
		"--arm", "direct", "--arm", "new=matrix:" + s.matrix,
	}, more...)
}

// demoLog is a log of the demo's queries.
func demoLog(t *testing.T) string {
	t.Helper()
	var lines strings.Builder
	for _, q := range demo.Queries()[:judgedQueries] {
		lines.WriteString(q.Text + "\n")
	}
	return write(t, "log.txt", lines.String())
}

func TestCompareSaysWhatChangesAndWritesPairsThatEvalReads(t *testing.T) {
	s := newDemoSet(t)
	pairs := filepath.Join(t.TempDir(), "pairs.csv")
	said := ends(t, 0, s.compareArgs(demoLog(t), "--judge", pairs),
		"30 queries, 30 searches", "overlap@10", "new against direct", "searches that had no hits and get some")
	table := read(t, pairs)
	n := strings.Count(table, "\n") - 1 // but for its head
	check.That(t, n >= 100 && n <= 200 && strings.Contains(said, fmt.Sprintf("%d pairs to be judged are in %s", n, pairs)), "%d lines\n%s", n, said)
	graded := write(t, "graded.csv", strings.Replace(table, ",\n", ",2\n", 3))
	r := evalJSON(t, []string{"eval", "--cluster", s.engine, "--index", demoIndices, "--template", s.template, "--judgments", graded, "--arm", "direct"})
	check.That(t, r.LeftOut.Ungraded == n-3 && len(r.Queries) != 0, "%d queries, left out: %+v", len(r.Queries), r.LeftOut)
}

func TestCompareCountsLinesAndQueriesThatCannotBeUsed(t *testing.T) {
	s := newDemoSet(t)
	s.template = write(t, "template.json", `{"query": {"query_string": {"query": "{{query}}", "default_field": "body"}}}`)
	log := write(t, "log.jsonl", `{"query": "couch", "count": 4}`+"\n"+`{"query": "", "count": 2}`+"\n"+`{"query": "(couch", "id": "broken"}`+"\n")
	stdout, stderr, status := akin(t, s.compareArgs(log, "--json")...)
	check.Must(t, status == 0 && strings.Contains(stderr, "1 lines are left out:\n"+log+`:2: no "query"`), "status %d\n%s", status, stderr)
	var c evaluate.Comparison
	check.OK(t, json.Unmarshal([]byte(stdout), &c))
	check.That(t, c.Queries == 1 && c.Searches == 4 && len(c.Refused) == 1 && c.Refused[0] == "broken", "%+v", c)
	ends(t, exitFailure, s.compareArgs(write(t, "log.txt", "(couch")), "the cluster refuses all queries\narm ")
	for _, empty := range []string{"", "\n \n"} {
		ends(t, exitFailure, s.compareArgs(write(t, "empty.txt", empty)), "empty.txt: ")
	}
}
