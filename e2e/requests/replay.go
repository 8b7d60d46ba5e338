package requests

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/internal/serve"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/source"
)

// recordAgain is how what akin asks of the cluster is recorded.
const recordAgain = "go test ./e2e -run TestRequestsBecomeWhatTheirFilesSay -count=1 -update"

// Replay sends the requests of the files below folder that keep selects through
// an akin in this process to a cluster that answers from what was recorded of real
// engines, and compares what arrives there with what the file says. What only e2e
// sees is what real engines make of the searches: refusals, after which the
// original is sent, and the hits.
func Replay(t *testing.T, folder string, keep func(*File) bool) {
	t.Helper()
	files, err := Files(folder, false)
	check.OK(t, err)
	files = slices.DeleteFunc(files, func(f File) bool { return !keep(&f) })
	check.Must(t, len(files) > 0, "no file in %s is selected", folder)
	recordings, err := Recordings(filepath.Join(folder, "fixture", "recorded"))
	check.OK(t, err)
	for engine, facts := range recordings {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			r := serveRecording(t, folder, facts)
			for _, f := range files {
				if f.Recorded() == engine {
					t.Run(f.Name, func(t *testing.T) { r.check(t, f) })
				}
			}
		})
	}
	for _, f := range files {
		check.That(t, recordings[f.Recorded()] != nil, "%s: there is no recording of %q; record: %s", f.Name, f.Recorded(), recordAgain)
	}
}

// A replay is akin before a cluster that answers from a recording.
type replay struct {
	cluster      *Cluster
	arrivals     Arrivals
	pit          string
	proxy, admin string            // host and port
	counters     map[string]string // of requests, as they were last
}

// check sends the request of a file and compares.
func (r *replay) check(t *testing.T, f File) {
	t.Helper()
	path := f.Path
	want := strings.ReplaceAll(f.Want, PIT, r.pit)
	f.Body = strings.ReplaceAll(f.Body, PIT, r.pit)
	answer := send(t, r.proxy, f.Method, f.Target, f.Body, f.ToAkin())
	sent := r.arrivals.Take()
	before := r.counters
	r.counters = Counters(r.metrics(t))
	outcome := OutcomeOf(before, r.counters)
	check.Must(t, len(sent) != 0, "nothing arrived at the cluster: %s", answer)
	clauses := ""
	if target, ok := f.AdminTarget(); ok && outcome.Outcome != "passed_through" {
		var e Explanation
		shown := send(t, r.admin, http.MethodPost, target, f.Body, f.ToCluster())
		err := json.Unmarshal(shown, &e)
		check.Must(t, err == nil, "admin port: %v: %s", err, shown)
		check.Error(t, nil, e.Compare(outcome, sent[0]))
		clauses = e.Text()
	}
	check.Equal(t, want, f.Got(outcome, sent[0], clauses), path)
	original := (Arrived{Method: f.Method, Target: f.ClusterTarget(), Body: f.Body})
	check.That(t, outcome.Rewritten() || sent[0] == original, "%s, but what arrived is\n%+v\nand not\n%+v", outcome.Outcome, sent[0], original)
	for _, question := range r.cluster.Unknown() {
		t.Errorf("not in the recording: %s\nrecord it on real engines: %s", question, recordAgain)
	}
}

// metrics returns what /metrics says.
func (r *replay) metrics(t *testing.T) string {
	t.Helper()
	return string(send(t, r.admin, http.MethodGet, "/metrics", "", nil))
}

// send sends a request with its target as it is, which may be broken, and
// returns the body of the answer.
func send(t *testing.T, host, method, target, body string, header []string) []byte {
	t.Helper()
	path, query, has := strings.Cut(target, "?")
	req := &http.Request{
		Method: method, Header: http.Header{}, ContentLength: int64(len(body)), Body: io.NopCloser(strings.NewReader(body)),
		URL: &url.URL{Scheme: "http", Host: host, Opaque: path, RawQuery: query, ForceQuery: has},
	}
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		req.Header.Add(name, value)
	}
	res, err := http.DefaultClient.Do(req.WithContext(t.Context()))
	check.OK(t, err)
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	check.OK(t, err)
	return answer
}

// found is the answer to every search: what becomes of the hits is not tested
// here.
const found = `{"took":1,"timed_out":false,"_shards":{"total":1,"successful":1,"skipped":0,"failed":0},` +
	`"hits":{"total":{"value":0,"relation":"eq"},"max_score":null,"hits":[]},"count":0,"responses":[]}`

// serveRecording starts an akin before a cluster of facts, and returns when it
// is ready.
func serveRecording(t *testing.T, folder string, facts *Facts) *replay {
	t.Helper()
	r := &replay{cluster: NewCluster(facts), pit: facts.PIT}
	searches := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, found)
	})
	cluster := httptest.NewServer(r.arrivals.Before(searches, r.cluster))
	t.Cleanup(cluster.Close)

	list, err := os.ReadFile(filepath.Join(folder, "fixture", "matrix.tsv"))
	check.OK(t, err)
	m, err := source.ReadTSV(bytes.NewReader(list), "")
	check.OK(t, err)
	var encoded bytes.Buffer
	check.OK(t, simmatrix.Encode(&encoded, m))
	dir := t.TempDir()
	matrix, weights := filepath.Join(dir, "matrix.akin"), filepath.Join(dir, "weights.akin")
	for path, content := range map[string][]byte{matrix: encoded.Bytes(), weights: facts.Weights} {
		check.OK(t, os.WriteFile(path, content, 0o600))
	}
	config := Config(cluster.URL, matrix, weights)
	config["listen"] = map[string]any{"address": "127.0.0.1:0"}
	config["admin"] = map[string]any{"address": "127.0.0.1:0"}
	config["shutdown"] = map[string]any{"delay": "0s"}
	written, err := json.Marshal(config) // which is YAML, too
	check.OK(t, err)
	cfg, err := configs.Parse("akin.yml", written)
	check.OK(t, err)
	r.serve(t, cfg)
	return r
}

// serve runs an akin until the test has ended.
func (r *replay) serve(t *testing.T, cfg *configs.Config) {
	t.Helper()
	app, err := serve.New(t.Context(), serve.Options{Config: cfg, Log: slog.New(slog.NewJSONHandler(t.Output(), nil))})
	check.OK(t, err)
	clients, admin, err := serve.Listen(t.Context(), cfg)
	check.OK(t, err)
	r.proxy, r.admin = clients.Addr().String(), admin.Addr().String()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- app.Serve(ctx, clients, admin) }()
	t.Cleanup(func() {
		stop()
		err := <-ended
		check.That(t, err == nil, "akin: %v", err)
		app.Close()
	})
	for end := time.Now().Add(time.Minute); !r.ready(t); time.Sleep(10 * time.Millisecond) { // It loads files and asks over sockets, which no event tells.
		check.Must(t, !time.Now().After(end), "akin does not become ready")
	}
	r.counters = Counters(r.metrics(t))
}

// ready reports whether akin has the matrix and the weights, and has asked what
// it asks at its start.
func (r *replay) ready(t *testing.T) bool {
	t.Helper()
	metrics := r.metrics(t)
	return strings.Contains(metrics, "akin_matrix_info{") && strings.Contains(metrics, "akin_weights_info{") &&
		strings.Contains(string(send(t, r.admin, http.MethodGet, "/readyz", "", nil)), `"status":"ok"`)
}
