package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// TestRequestsBecomeWhatTheirFilesSay sends every request of testdata/requests
// through akin to a real engine and directly, and compares what arrives there
// and what is answered with what the file says. With -update it writes into the
// files what akin does now; every difference is then to be read and judged.
func TestRequestsBecomeWhatTheirFilesSay(t *testing.T) {
	files := requestFiles(t)
	if len(files) < 150 {
		t.Errorf("%d files", len(files))
	}
	var written sync.Map
	eachEngine(t, func(t *testing.T, e *engine) {
		s := newRequestSetting(t, e)
		for _, f := range files {
			if !f.suits(e) {
				continue
			}
			t.Run(f.name, func(t *testing.T) {
				if _, was := written.LoadOrStore(f.name, true); *update && !was {
					f.want = ""
				}
				s.check(t, f)
			})
		}
		if n := len(s.changed); n > 0 {
			t.Errorf("the cluster refused %d of the rewritten searches whose original it took: %v", n, s.changed)
		}
	})
}

// check sends the request of a file and compares.
func (s *requestSetting) check(t *testing.T, f requestFile) {
	t.Helper()
	f, restore := s.fillIn(t, f)
	direct := exchange(t, s.engine.url, f.raw("", nil))
	before := requestOutcomes(t, s.akin)
	s.record.reset()
	through := exchange(t, s.akin.url, f.raw(requestMark, f.headers))
	sent := s.record.taken()
	outcome, reason := newOutcome(before, requestOutcomes(t, s.akin))
	if len(sent) == 0 {
		t.Fatalf("nothing arrived at the cluster: %s %s", through.status, through.body)
	}
	first, last := sent[0], sent[len(sent)-1]
	original := arrived{f.method, f.targetWithoutControl(), f.body}

	got := first.text(f)
	if outcome != "rewritten" {
		got = outcome + " " + reason + "\n"
	}
	if clauses, ok := s.shown(t, f, first, outcome, reason); ok && clauses != "" {
		got += separator + clauses
	}
	f.compare(t, restore(got))

	if outcome != "rewritten" && (len(sent) > 1 || first != original) {
		t.Errorf("%s, but what arrived is\n%+v\nand not\n%+v", outcome, sent, original)
	}
	if outcome != "rewritten" || last == original { // the engine takes neither
		if want, got := stableAnswer(t, direct), stableAnswer(t, through); want != got {
			t.Errorf("directly\n%.600s\nthrough akin\n%.600s", want, got)
		}
	}
	// A search that is not valid is answered with 200, too.
	if strings.HasPrefix(direct.status, "2") && !strings.Contains(direct.body, `"valid":false`) && len(sent) > 1 {
		s.changed = append(s.changed, f.name)
		t.Errorf("refused by the cluster, which takes the original: %s", first.body)
	}
	if record := through.header.Get("X-Akin-Explanation"); (record != "") != f.wantsRecord() {
		t.Errorf("the answer names the explanation %q", record)
	} else if record != "" {
		s.akin.admin.must(t, http.MethodGet, "/_akin/explanations/"+record, "")
	}
	if err := f.keepsMatches(direct.body, through.body); err != nil {
		t.Error(err)
	}
	s.checkCount(t, f, through.body)
	if want, got := failedShards(direct), failedShards(through); want != got {
		t.Errorf("failed shards directly %d, through akin %d: %s", want, got, through.body)
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
func (f requestFile) keepsMatches(direct, through string) error {
	total := regexp.MustCompile(`"(?:total":\{"value"|count)":(\d+)`)
	want, got := total.FindAllStringSubmatch(direct, -1), total.FindAllStringSubmatch(through, -1)
	for i := range min(len(want), len(got)) {
		before, _ := strconv.Atoi(want[i][1])
		after, _ := strconv.Atoi(got[i][1])
		if after < before || strings.HasPrefix(f.profile, "same") && after != before {
			return fmt.Errorf("%d documents found directly, %d through akin", before, after)
		}
	}
	return nil
}

// checkCount compares the total of a search through akin with what _count says
// of its query, for searches whose total is the number of documents that match.
func (s *requestSetting) checkCount(t *testing.T, f requestFile, answer string) {
	t.Helper()
	var search map[string]json.RawMessage
	path, isSearch := strings.CutSuffix(f.target, "/_search")
	if json.Unmarshal([]byte(f.body), &search) != nil || !isSearch || search["query"] == nil || f.headers != nil {
		return
	}
	for _, other := range []string{"post_filter", "min_score", "terminate_after", "knn", "pit", "slice", "runtime_mappings"} {
		if search[other] != nil {
			return
		}
	}
	var hits hitList
	if err := json.Unmarshal([]byte(answer), &hits); err != nil || hits.Shards.Total == 0 {
		return // an error
	}
	ask := rawRequest{method: http.MethodPost, target: path + "/_count", header: []string{jsonType}, body: `{"query":` + string(search["query"]) + `}`}
	if f.profile != "" {
		ask.header = append(ask.header, "X-Akin-Profile: "+f.profile)
	}
	var counted struct{ Count int }
	counts := exchange(t, s.akin.url, ask)
	if err := json.Unmarshal([]byte(counts.body), &counted); err != nil || counted.Count != hits.Hits.Total.Value {
		t.Errorf("the search finds %d documents, and _count says %s", hits.Hits.Total.Value, counts.body)
	}
}

var failedShard = regexp.MustCompile(`"_shards":\{[^}]*"failed":([1-9])`)

func failedShards(r rawResponse) int { return len(failedShard.FindAllString(r.body, -1)) }

// requestOutcomes returns the counters of requests by outcome and reason.
func requestOutcomes(t *testing.T, a *akin) map[string]string {
	t.Helper()
	counters := map[string]string{}
	for line := range strings.Lines(string(a.admin.must(t, http.MethodGet, "/metrics", ""))) {
		if rest, ok := strings.CutPrefix(line, requestsMetric+"{"); ok {
			labels, n, _ := strings.Cut(rest, "} ")
			counters[labels] = n
		}
	}
	return counters
}

var outcomeLabels = regexp.MustCompile(`outcome="([^"]*)",reason="([^"]*)"`)

// newOutcome returns the labels of the counter that differs: "rewritten" where
// a part of several searches failed as well.
func newOutcome(before, after map[string]string) (outcome, reason string) {
	for labels, n := range after {
		if before[labels] == n {
			continue
		}
		if m := outcomeLabels.FindStringSubmatch(labels); m != nil && n != "0\n" && outcome != "rewritten" {
			outcome, reason = m[1], m[2]
		}
	}
	return outcome, reason
}

// shown asks the admin port what becomes of the request and compares that with
// what became of it. It returns what is reported of the clauses, and false for a
// request that the admin port cannot be asked about.
func (s *requestSetting) shown(t *testing.T, f requestFile, sent arrived, outcome, reason string) (string, bool) {
	t.Helper()
	path, ok := f.adminPath()
	if !ok || outcome == "passed_through" || strings.HasSuffix(f.profile, "feedback") { // the admin port shows searches without
		return "", false
	}
	ask := f.raw("", nil)
	ask.method, ask.target = http.MethodPost, path
	answer := exchange(t, s.akin.admin.url, ask)
	var e struct {
		explanation
		Rewritten     bool
		Reason, Cause string
		RawQuery      string `json:"raw_query"`
	}
	if err := json.Unmarshal([]byte(answer.body), &e); err != nil || !strings.HasPrefix(answer.status, "200") {
		t.Errorf("admin port: %s %v: %s", answer.status, err, answer.body)
		return "", false
	}
	var text string
	if json.Unmarshal(e.Body, &text) != nil { // the lines of _msearch are a text
		text = string(e.Body)
	}
	if e.Rewritten != (outcome == "rewritten") || e.Reason+e.Cause != reason {
		t.Errorf("the admin port says rewritten %t, reason %q", e.Rewritten, e.Reason)
	}
	if _, query, _ := strings.Cut(sent.target, "?"); e.Rewritten && (compact(text) != compact(sent.body) || e.RawQuery != query) {
		t.Errorf("the admin port shows ?%s\n%s\nand what was sent is\n%+v", e.RawQuery, text, sent)
	}
	return e.text(), true
}

// compact takes the white space out of JSON, as the admin port does.
func compact(s string) string {
	var b bytes.Buffer
	if json.Compact(&b, []byte(s)) != nil {
		return s
	}
	return b.String()
}

// text describes each clause in one line.
func (e explanation) text() string {
	var b strings.Builder
	for _, c := range e.Clauses {
		b.WriteString(c.Path)
		if c.Field != "" {
			b.WriteString(" " + c.Field)
		}
		b.WriteString(": " + c.Form)
		if c.Phase == "rescore" {
			b.WriteString(" as rescore")
		}
		switch {
		case c.Form == "":
			b.WriteString(c.Reason)
		case c.Reason != "":
			b.WriteString(" (" + c.Reason + ")")
		}
		for _, a := range c.Added {
			fmt.Fprintf(&b, ", %s → %s", a.From, a.Term)
		}
		b.WriteString("\n")
	}
	return b.String()
}
