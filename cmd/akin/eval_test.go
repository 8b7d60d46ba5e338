package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

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
	dir := t.TempDir()
	s := &demoSet{demoEngine(t), filepath.Join(dir, "queries.jsonl"), filepath.Join(dir, "qrels.tsv"), "", demoMatrix(t)}
	var queries, judgments strings.Builder
	judgments.WriteString("query-id\tcorpus-id\tscore\n")
	for _, q := range demo.Queries()[:judgedQueries] {
		fmt.Fprintf(&queries, "{\"_id\": %q, \"text\": %q}\n", q.ID, q.Text)
		for _, id := range slices.Sorted(maps.Keys(q.Judgments)) {
			fmt.Fprintf(&judgments, "%s\t%s\t%v\n", q.ID, id, q.Judgments[id])
		}
	}
	for name, content := range map[string]string{s.queries: queries.String(), s.judgments: judgments.String()} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.template = write(t, "template.json", `{"query": {"multi_match": {"query": "{{query}}", "fields": ["title", "body"]}}}`)
	return s
}

// args returns a command line that evaluates, with more at its end.
func (s *demoSet) args(more ...string) []string {
	return append([]string{
		"eval", "--cluster", s.engine, "--index", demoIndices, "--queries", s.queries, "--judgments", s.judgments, "--template", s.template,
	}, more...)
}

func evalJSON(t *testing.T, args []string) *evaluate.Result {
	t.Helper()
	stdout, stderr, status := akin(t, append(args, "--json")...)
	if status != 0 {
		t.Fatalf("status %d\n%s", status, stderr)
	}
	var r evaluate.Result
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatal(err)
	}
	return &r
}

func TestEvalComparesARunningAkinAndCandidatesWithTheCluster(t *testing.T) {
	s := newDemoSet(t)
	proxy, admin := serveConfig(t, write(t, "akin.yml", `
listen: {address: "127.0.0.1:0"}
admin: {address: "127.0.0.1:0"}
cluster: {urls: ["`+s.engine+`"]}
expansion: {budget: 5s}
profiles: {weak: {strength: 0}}
matrices: [{name: demo, file: "`+s.matrix+`"}]
`))
	r := evalJSON(t, s.args("--akin", proxy, "--akin-admin", admin, "--title", "title", "--arm", "direct", "--arm", "profile:weak", "--arm", "running=akin",
		"--arm", "candidate=matrix:"+s.matrix, "--arm", "few=matrix:"+s.matrix+",max_added_terms=1,strength=1.5"))
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
	if diff := cmp.Diff(running.Measures, candidate.Measures); diff != "" {
		t.Errorf("the same matrix and settings (-running +in this process)\n%s", diff)
	}
	if direct.AddedTerms != nil || *running.AddedTerms <= *few.AddedTerms || *few.AddedTerms <= 0 || *few.AddedTerms > 1 {
		t.Errorf("added terms: %v, %v, %v", direct.AddedTerms, running.AddedTerms, few.AddedTerms)
	}
	if candidate.Latency.P50 <= 0 || candidate.FailedOpen != 0 {
		t.Errorf("%+v", candidate)
	}
	first := r.Queries[0].Arms[3]
	if len(first.Added) == 0 || first.Added[0].Boost == 0 || first.Hits[0].Title == "" {
		t.Errorf("%+v", first)
	}
}

func TestEvalPrintsATableAndWritesFiles(t *testing.T) {
	s := newDemoSet(t)
	judgments, err := os.ReadFile(s.judgments)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.judgments, append(judgments, "q01\tnowhere\t1\nnobody\thelp-001\t1\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "runs")
	page := filepath.Join(t.TempDir(), "page.html")
	stdout, stderr, status := akin(t, s.args("--arm", "direct", "--arm", "new=matrix:"+s.matrix, "--runs", out, "--report", page)...)
	if status != 0 {
		t.Fatalf("status %d\n%s", status, stderr)
	}
	for _, want := range []string{
		"nDCG@10", "new against direct", "p = ", "1 judged queries without a text are left out: \"nobody\"",
		"1 judged documents are not in the index, and count as not found: \"nowhere\"",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
	if !strings.Contains(stderr, "searching: ") {
		t.Errorf("no progress in %s", stderr)
	}
	run := read(t, filepath.Join(out, "new.run"))
	if !strings.HasPrefix(run, "q01 Q0 ") || !strings.HasSuffix(run, " new\n") {
		t.Errorf("run file %.100s", run)
	}
	for _, want := range []string{"1 judged documents are not in the index", "queries better"} {
		if !strings.Contains(read(t, page), want) {
			t.Errorf("no %q in the page", want)
		}
	}
	if qrels := read(t, filepath.Join(out, "qrels.txt")); !strings.Contains(qrels, "q01 0 nowhere 1\n") {
		t.Errorf("qrels %.100s", qrels)
	}
}

// A search that is sent before a path is found wrong may be the first of many.
func TestEvalAndCompareCheckWhereTheyWriteBeforeTheySearch(t *testing.T) {
	asked := make(chan string, 100)
	s := &demoSet{engine: failing(t, asked), template: write(t, "template.json", `{"query": {"match": {"body": "{{query}}"}}}`)}
	s.queries, s.judgments = write(t, "queries.tsv", "1\tcouch\n"), write(t, "qrels", "1 0 a 1\n")
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
		{s.args("--resume", foreign), "--resume " + foreign + ": line 1: "},
		{s.args("--resume", filepath.Join("nowhere", "state")), "--resume nowhere/state: "},
		{append(compare, "--judge", filepath.Join(file, "pairs.csv")), "--judge: "},
		{append(compare, "--resume", foreign), "--resume " + foreign + ": line 1: "},
	} {
		_, stderr, status := akin(t, test.args...)
		if status == 0 || !strings.Contains(stderr, test.want) {
			t.Errorf("%q: status %d, want %q in\n%s", test.args, status, test.want, stderr)
		}
	}
	if len(asked) > 0 {
		t.Errorf("%d requests, the first to %s", len(asked), <-asked)
	}
	if read(t, foreign) != "mine\n" {
		t.Error("a foreign file was written to")
	}
}

// failing is a cluster that notes who asks for what.
func failing(t *testing.T, asked chan<- string) (url string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Path
		http.Error(w, "{}", http.StatusInternalServerError)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func read(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestEvalGoesOnAfterTheClusterWentAway(t *testing.T) {
	s := newDemoSet(t)
	engine, err := url.Parse(s.engine)
	if err != nil {
		t.Fatal(err)
	}
	var searches, most atomic.Int64
	most.Store(40)
	shaky := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/_search") && searches.Add(1) > most.Load() {
			panic(http.ErrAbortHandler)
		}
		httputil.NewSingleHostReverseProxy(engine).ServeHTTP(w, r)
	}))
	t.Cleanup(shaky.Close)
	state := filepath.Join(t.TempDir(), "state")
	arms := []string{"--arm", "direct", "--arm", "again=direct"}
	want := evalJSON(t, s.args(arms...))
	s.engine = shaky.URL
	_, stderr, status := akin(t, s.args(append(arms, "--resume", state)...)...)
	kept := strings.Count(read(t, state), `"key"`)
	if kept < 10 || status != exitFailure || !strings.Contains(stderr, fmt.Sprintf("\n%d of %d queries are in %s: the same command goes on", kept/2, judgedQueries, state)) {
		t.Fatalf("status %d after %d answers\n%s", status, kept, stderr)
	}
	most.Store(1 << 30)
	searches.Store(0)
	got := evalJSON(t, s.args(append(arms, "--resume", state)...))
	times := cmpopts.IgnoreFields(evaluate.Ranked{}, "TookMillis")
	if diff := cmp.Diff(want, got, times, cmpopts.IgnoreTypes(evaluate.Latency{})); diff != "" {
		t.Errorf("(-at once +resumed)\n%s", diff)
	}
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
	for _, test := range []struct {
		name string
		args []string
		want string
	}{
		{"no judgments", []string{"--judgments", ""}, "give --judgments FILE"},
		{"no queries", []string{"--queries", write(t, "queries", "x\ttext\n")}, "none of the judgments is of a query in "},
		{"ids of queries only", []string{"--queries", ""}, "has only the ids of queries: give --queries FILE"},
		{"no placeholder", []string{"--template", write(t, "t.json", "{}")}, "t.json: no {{query}} in the search body"},
		{"no JSON", []string{"--template", write(t, "t.json", `{"query": {{query}}}`)}, "t.json: the search body is no JSON object"},
		{"no template", []string{"--template", ""}, "a query with a text needs a template"},
		{"a deep measure", []string{"--measures", "recall@101"}, "recall@101 looks at 101 hits, and the search asks for 100"},
		{"a short page", []string{"--template", write(t, "t.json", `{"size": 5, "query": {"match": {"body": "{{query}}"}}}`)}, "the search asks for 5"},
		{"an unknown measure", []string{"--measures", "NDCG"}, `--measures: "NDCG" is no measure`},
		{"a change of one arm", []string{"--fail-under", "nDCG@10=+1%"}, "--fail-under: a change from the first arm needs a second --arm"},
		{"a bound of no number", []string{"--fail-under", "nDCG@10=NaN"}, "--fail-under: nDCG@10=NaN: want a measure"},
		{"a page in no folder", []string{"--report", "nowhere/page.html"}, "--report: nowhere/page.html: nowhere is no folder"},
		{"an unknown arm", []string{"--arm", "x=what"}, "--arm x=what: want [NAME=]direct"},
		{"two names", []string{"--arm", "direct", "--arm", "direct"}, "two are named direct"},
		{"no akin", []string{"--arm", "akin"}, "--arm akin: give --akin and --akin-admin"},
		{"an unknown key", []string{"--arm", "x=matrix:" + s.matrix + ",power=1"}, "profiles.x.power"},
		{"a wrong value", []string{"--arm", "x=matrix:" + s.matrix + ",strength=6"}, "profiles.x.strength: 6 is out of range"},
		{"a key that files had", []string{"--arm", "x=matrix:" + s.matrix + ",strength.linear=0.3"}, "profiles.x.strength.linear: is strength now"},
		{"no value", []string{"--arm", "x=matrix:" + s.matrix + ",strength"}, "strength: want KEY=VALUE"},
		{"no matrix", []string{"--arm", "x=matrix:nowhere.akin"}, "nowhere.akin"},
		{"no index", []string{"--index", "nowhere"}, "index_not_found"},
		{"a broken search", []string{"--template", write(t, "t.json", `{"query": {"matches": "{{query}}"}}`)}, "arm direct, query q01: "},
	} {
		if _, stderr, status := akin(t, s.args(test.args...)...); status == 0 || !strings.Contains(stderr, test.want) {
			t.Errorf("%s: status %d, want %q in\n%s", test.name, status, test.want, stderr)
		}
	}
	proxy, admin := serveConfig(t, write(t, "akin.yml", "listen: {address: '127.0.0.1:0'}\nadmin: {address: '127.0.0.1:0'}\ncluster: {urls: ['"+s.engine+"']}\n"+
		"profiles: {new: {}}\nmatrices: [{name: demo, file: '"+s.matrix+"'}]\nexpansion: {trials: [{name: canary, arms: ['off', new]}]}\n"))
	for arm, want := range map[string]string{
		"profile:nobody": `akin has no profile "nobody"`,
		"akin":           `akin has the search in the trial "canary"`, // whose first arm is as direct search
	} {
		_, stderr, status := akin(t, s.args("--akin", proxy, "--akin-admin", admin, "--arm", arm)...)
		if status == 0 || !strings.Contains(stderr, want) {
			t.Errorf("%s: status %d, want %q in\n%s", arm, status, want, stderr)
		}
	}
}

func TestEvalTakesRankEvalRequestsAndATextWithQuotes(t *testing.T) {
	s := newDemoSet(t)
	body := `{"query": {"match": {"body": "couch"}}, "_source": true}`
	judgments := write(t, "rank_eval.json", `{"requests": [{"id": "sofa", "request": `+body+`, "ratings": [{"_index": "catalogue", "_id": "catalogue-001", "rating": 1}]}]}`)
	r := evalJSON(t, []string{"eval", "--cluster", s.engine, "--index", demoIndices, "--judgments", judgments, "--arm", "new=matrix:" + s.matrix})
	if len(r.Queries) != 1 || len(r.Queries[0].Arms[0].Added) == 0 {
		t.Errorf("%+v", r.Queries)
	}
	quoted := write(t, "judged.csv", "query,document,grade\n\"a \"\"soft\"\" \\couch\",catalogue-001,1\n")
	r = evalJSON(t, []string{"eval", "--cluster", s.engine, "--index", demoIndices, "--judgments", quoted, "--template", s.template})
	if len(r.Queries) != 1 || len(r.Queries[0].Arms[0].Hits) == 0 {
		t.Errorf("%+v", r.Queries)
	}
}
