package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/akin-search/akin/e2e/requests"
)

// TestRequestsBecomeWhatTheirFilesSay sends every request of testdata/requests
// through akin to a real engine and directly, and compares what arrives there
// and what is answered with what the file says. With -update it writes into the
// files what akin does now; every difference is then to be read and judged. It
// also records what the engines answer to akin, for the test of the same name in
// expand.
func TestRequestsBecomeWhatTheirFilesSay(t *testing.T) {
	files := requestFiles(t)
	if len(files) < 150 {
		t.Errorf("%d files", len(files))
	}
	var written sync.Map
	eachEngine(t, func(t *testing.T, e *engine) {
		s := newRequestSetting(t, e)
		for _, recorded := range []bool{true, false} {
			for _, f := range files {
				if !f.Suits(e.name, e.scripts) || recorded != (f.Recorded() == e.name) {
					continue
				}
				t.Run(f.Name, func(t *testing.T) {
					if _, was := written.LoadOrStore(f.Name, true); *update && !was {
						f.Want = ""
					}
					s.check(t, f)
				})
			}
			if recorded {
				s.writeRecording(t)
			}
		}
		if n := len(s.changed); n > 0 {
			t.Errorf("the cluster refused %d of the rewritten searches whose original it took: %v", n, s.changed)
		}
	})
}

// check sends the request of a file and compares.
func (s *requestSetting) check(t *testing.T, file requests.File) {
	t.Helper()
	f, restore := s.fillIn(t, file)
	direct := exchange(t, s.engine.url, toCluster(f))
	before := s.counters(t)
	s.arrivals.Take()
	through := exchange(t, s.akin.url, rawRequest{method: f.Method, target: f.Target, header: f.ToAkin(), body: f.Body})
	sent := s.arrivals.Take()
	outcome := requests.OutcomeOf(before, s.counters(t))
	if len(sent) == 0 {
		t.Fatalf("nothing arrived at the cluster: %s %s", through.status, through.body)
	}
	first, last := sent[0], sent[len(sent)-1]
	original := requests.Arrived{Method: f.Method, Target: f.ClusterTarget(), Body: f.Body}

	compareRequest(t, &file, restore(f.Got(outcome, first, s.shown(t, f, first, outcome))))

	if !outcome.Rewritten() && (len(sent) > 1 || first != original) {
		t.Errorf("%s, but what arrived is\n%+v\nand not\n%+v", outcome.Outcome, sent, original)
	}
	if !outcome.Rewritten() || last == original { // the engine takes neither
		if want, got := stableAnswer(t, direct), stableAnswer(t, through); want != got {
			t.Errorf("directly\n%.600s\nthrough akin\n%.600s", want, got)
		}
	}
	// A search that is not valid is answered with 200, too.
	if strings.HasPrefix(direct.status, "2") && !strings.Contains(direct.body, `"valid":false`) && len(sent) > 1 && last == original {
		s.changed = append(s.changed, f.Name)
		t.Errorf("refused by the cluster, which takes the original: %s", first.Body)
	}
	if record := through.header.Get("X-Akin-Explanation"); (record != "") != f.WantsRecord() {
		t.Errorf("the answer names the explanation %q", record)
	} else if record != "" {
		s.akin.admin.must(t, http.MethodGet, "/_akin/explanations/"+record, "")
	}
	if err := keepsMatches(f, direct.body, through.body); err != nil {
		t.Error(err)
	}
	s.checkCount(t, f, through.body)
	if want, got := failedShards(direct), failedShards(through); want != got {
		t.Errorf("failed shards directly %d, through akin %d: %s", want, got, through.body)
	}
}

// compareRequest compares what became of a request with what its file says, or
// writes it there.
func compareRequest(t *testing.T, f *requests.File, got string) {
	t.Helper()
	if got == f.Want {
		return
	}
	if !*update || f.Want != "" {
		t.Errorf("%s:\ngot\n%s\nwant\n%s", f.Path, got, f.Want)
	} else if err := f.Write(got); err != nil {
		t.Fatal(err)
	}
}

// stableAnswer is the status and the body of an answer without what differs
// between two equal searches. That headers are carried on is tested elsewhere.
func stableAnswer(t *testing.T, r rawResponse) string {
	t.Helper()
	r.header = http.Header{"Content-Encoding": r.header["Content-Encoding"]}
	answer := requestVolatile.ReplaceAllString(r.stable(t), "*")
	answer, _, _ = strings.Cut(answer, `"profile":{`)
	return answer
}

// requestVolatile matches ids and times that differ from answer to answer.
var requestVolatile = regexp.MustCompile(`"pit_id":"[^"]*"|"id":"[^"]{40,}"|"took" : \d+`)

// keepsMatches compares how many documents are found: related words lose none,
// and where matching is to stay the same bring none in.
func keepsMatches(f *requests.File, direct, through string) error {
	total := regexp.MustCompile(`"(?:total":\{"value"|count)":(\d+)`)
	want, got := total.FindAllStringSubmatch(direct, -1), total.FindAllStringSubmatch(through, -1)
	for i := range min(len(want), len(got)) {
		before, _ := strconv.Atoi(want[i][1])
		after, _ := strconv.Atoi(got[i][1])
		if after < before || strings.HasPrefix(f.Profile, "same") && after != before {
			return fmt.Errorf("%d documents found directly, %d through akin", before, after)
		}
	}
	return nil
}

// checkCount compares the total of a search through akin with what _count says
// of its query, for searches whose total is the number of documents that match.
func (s *requestSetting) checkCount(t *testing.T, f *requests.File, answer string) {
	t.Helper()
	var search map[string]json.RawMessage
	path, isSearch := strings.CutSuffix(f.Target, "/_search")
	if json.Unmarshal([]byte(f.Body), &search) != nil || !isSearch || search["query"] == nil || f.Headers != nil {
		return
	}
	for _, other := range []string{"post_filter", "min_score", "terminate_after", "knn", "pit", "slice", "runtime_mappings"} {
		if search[other] != nil {
			return
		}
	}
	var hits found
	if err := json.Unmarshal([]byte(answer), &hits); err != nil || hits.Shards.Total == 0 {
		return // an error
	}
	ask := post(path+"/_count", `{"query":`+string(search["query"])+`}`, "X-Opaque-Id: "+requests.Mark)
	if f.Profile != "" {
		ask.header = append(ask.header, "X-Akin-Profile: "+f.Profile)
	}
	var counted struct{ Count int }
	counts := exchange(t, s.akin.url, ask)
	if err := json.Unmarshal([]byte(counts.body), &counted); err != nil || counted.Count != hits.Hits.Total.Value {
		t.Errorf("the search finds %d documents, and _count says %s", hits.Hits.Total.Value, counts.body)
	}
}

var failedShard = regexp.MustCompile(`"_shards":\{[^}]*"failed":([1-9])`)

func failedShards(r rawResponse) int { return len(failedShard.FindAllString(r.body, -1)) }

// counters returns the counters of requests by outcome and reason.
func (s *requestSetting) counters(t *testing.T) map[string]string {
	t.Helper()
	return requests.Counters(string(s.akin.admin.must(t, http.MethodGet, "/metrics", "")))
}

// shown asks the admin port what becomes of the request and compares that with
// what became of it. It returns what is reported of the clauses.
func (s *requestSetting) shown(t *testing.T, f *requests.File, sent requests.Arrived, outcome requests.Outcome) string {
	t.Helper()
	target, ok := f.AdminTarget()
	if !ok || outcome.Outcome == "passed_through" {
		return ""
	}
	ask := toCluster(f)
	ask.method, ask.target = http.MethodPost, target
	answer := exchange(t, s.akin.admin.url, ask)
	var e requests.Explanation
	if err := json.Unmarshal([]byte(answer.body), &e); err != nil || !strings.HasPrefix(answer.status, "200") {
		t.Errorf("admin port: %s %v: %s", answer.status, err, answer.body)
		return ""
	}
	if err := e.Compare(outcome, sent); err != nil {
		t.Error(err)
	}
	return e.Text()
}

// toCluster is the request as it is sent to the cluster without akin.
func toCluster(f *requests.File) rawRequest {
	return rawRequest{method: f.Method, target: f.ClusterTarget(), header: slices.Clone(f.ToCluster()), body: f.Body}
}
