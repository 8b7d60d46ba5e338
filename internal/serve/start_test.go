package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/e2e/freeport"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/internal/cache"
	"github.com/akin-search/akin/internal/demo"
	"github.com/akin-search/akin/internal/limits"
	"github.com/akin-search/akin/proxy"
	"github.com/akin-search/akin/proxy/report"
	"github.com/akin-search/akin/simmatrix/learn"
	"github.com/akin-search/akin/simmatrix/source"
	"github.com/akin-search/akin/simmatrix/store"
)

// A lockedBuffer may be written and read at the same time.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// carMatrix relates two words.
func carMatrix(t *testing.T) store.Loader {
	t.Helper()
	v, err := source.ReadVectors(strings.NewReader("car 1 0\nautomobile 0.9 0.1\n"), source.ReadVectorsOptions{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := learn.FromVectors(t.Context(), v, learn.DefaultVectorOptions(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return store.InMemory(m)
}

// startApp wires an akin before a cluster, with a matrix for all unless change
// takes it away, and returns what it logs.
func startApp(t *testing.T, url string, change func(cfg *configs.Config)) (*App, *lockedBuffer) {
	t.Helper()
	cfg := configs.Default()
	cfg.Cluster.URLs = []string{url}
	cfg.Matrices = []configs.Matrix{{Name: "main", Indices: []string{"*"}, Fields: []string{"*"}}}
	if change != nil {
		change(cfg)
	}
	log := &lockedBuffer{}
	a, err := New(t.Context(), Options{
		Config: cfg, Files: map[string]store.Loader{"main": carMatrix(t)}, Log: slog.New(slog.NewJSONHandler(log, nil)), Build: Build{Version: "v1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return a, log
}

// refusingCluster answers every call with a status.
func refusingCluster(t *testing.T, status int) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	t.Cleanup(s.Close)
	return s.URL
}

// readyz asks an akin for its state.
func readyz(a *App) (status int, answer string) {
	w := httptest.NewRecorder()
	a.server.AdminHandler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/readyz", nil))
	return w.Code, w.Body.String()
}

func TestStartUpLineTellsWhatIsServedAndWhatIsMissing(t *testing.T) {
	server := httptest.NewServer(demo.NewEngine())
	t.Cleanup(server.Close)
	engine := server.URL
	away := httptest.NewServer(nil)
	away.Close()
	for _, c := range []struct {
		name, url string
		change    func(cfg *configs.Config)
		level     string
		missing   []string // parts of the entries
	}{
		{"nothing is missing", engine, nil, "INFO", nil},
		{"no matrices", engine, func(cfg *configs.Config) { cfg.Matrices = nil }, "WARN", []string{"forwarded unexpanded"}},
		{"hard without weights", engine, func(cfg *configs.Config) { cfg.Expansion.Mode = expand.ModeHard }, "WARN", []string{"hard without weights"}},
		{"a matrix that is not there", engine, func(cfg *configs.Config) {
			cfg.Matrices = append(cfg.Matrices, configs.Matrix{Name: "other", Indices: []string{"*"}, Fields: []string{"*"}, File: "/no/such/file"})
		}, "WARN", []string{`matrix "other": no version`}},
		{"switched off", engine, func(cfg *configs.Config) { cfg.Expansion.Enabled = false }, "INFO", []string{"expansion.enabled"}},
		{"shadow", engine, func(cfg *configs.Config) { cfg.Expansion.Shadow = 0.5 }, "INFO", []string{"expansion.shadow"}},
		{"admin port for other machines", engine, func(cfg *configs.Config) { cfg.Admin.Address = ":9281" }, "INFO", []string{"AKIN_ADMIN_TOKEN"}},
		{"no credentials", refusingCluster(t, 401), nil, "WARN", []string{"AKIN_CLUSTER_"}},
		{"cluster away", away.URL, nil, "WARN", []string{"connection refused"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, log := startApp(t, c.url, c.change)
			info, err := a.ask(t.Context())
			a.announce(t.Context(), info, err)
			var line struct {
				Level, Msg, Akin, Cluster, Mode, Scoring, Matching string
				Matrices                                           []binding
				Missing                                            []string
			}
			for text := range strings.Lines(log.String()) {
				if err := json.Unmarshal([]byte(text), &line); err == nil && line.Msg == "started" {
					break
				}
			}
			if line.Msg != "started" || line.Level != c.level || line.Akin != "v1" || line.Scoring != "auto" || line.Matching != "widen" {
				t.Errorf("got %+v in\n%s", line, log.String())
			}
			if known := strings.HasPrefix(line.Cluster, "akin-demo "); known != (c.url == engine) {
				t.Errorf("cluster %q", line.Cluster)
			}
			if len(line.Missing) != len(c.missing) || len(c.missing) > 0 && !strings.Contains(line.Missing[0], c.missing[0]) {
				t.Errorf("missing %q, want %q", line.Missing, c.missing)
			}
			if b := line.Matrices; c.name != "no matrices" && (len(b) == 0 || b[0].Source != "file" || b[0].Version == "" || b[0].Terms != 2) {
				t.Errorf("matrices %+v", b)
			}
		})
	}
}

func TestReadyWhereAnyAnswerComesFromTheCluster(t *testing.T) {
	for status, want := range map[int]string{
		200: `{"status":"ok"}`,
		401: "credentials: ", 403: "credentials: ", 429: "throttled: ", 500: "cluster_calls: ", 503: "cluster_calls: ",
	} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			a, _ := startApp(t, refusingCluster(t, status), nil)
			a.start(t.Context())
			code, answer := readyz(a)
			if code != http.StatusOK || !strings.Contains(answer, want) || status != 200 && !strings.HasPrefix(answer, `{"status":"degraded"`) {
				t.Errorf("/readyz: %d %s, want 200 with %s", code, answer, want)
			}
		})
	}
}

func TestReadyzIsRedWithinItsBoundWhileTheClusterHangs(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // nobody accepts
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	a, _ := startApp(t, "http://"+l.Addr().String(), nil)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	answered := make(chan report.Condition, 1)
	go func() { answered <- a.check(ctx) }()
	select {
	case c := <-answered:
		if len(c.NotReady) == 0 || !strings.Contains(c.NotReady[0], "no node") {
			t.Errorf("not ready: %q", c.NotReady)
		}
	case <-time.After(20 * time.Second):
		t.Error("the check waits for the cluster")
	}
}

func TestOneNodeOfSeveralIsEnough(t *testing.T) {
	hangs, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { hangs.Close() })
	url := refusingCluster(t, 200)
	a, _ := startApp(t, url, func(cfg *configs.Config) { cfg.Cluster.URLs = []string{"http://" + hangs.Addr().String(), url} })
	for range 4 { // calls go round among the nodes
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		began := time.Now()
		if c := a.check(ctx); len(c.NotReady) > 0 && strings.Contains(c.NotReady[0], "no node") || time.Since(began) > 10*time.Second {
			t.Errorf("after %v: %v", time.Since(began), c)
		}
		cancel()
	}
}

// Requests are forwarded from the start; /readyz is red until a node answers
// and the warm-up is over.
func TestReadyOnceAClusterThatWasAwayAnswers(t *testing.T) {
	port, err := freeport.Pick(t.Context()) // which no outgoing connection takes meanwhile
	if err != nil {
		t.Fatal(err)
	}
	addr := net.JoinHostPort("127.0.0.1", port)
	a, log := startApp(t, "http://"+addr, nil)
	started := make(chan struct{})
	go func() { defer close(started); a.start(t.Context()) }()
	if code, answer := readyz(a); code != http.StatusServiceUnavailable || !strings.Contains(answer, "no node") || !strings.Contains(answer, "starting") {
		t.Errorf("away: %d %s", code, answer)
	}
	for !strings.Contains(log.String(), `"msg":"started"`) && t.Context().Err() == nil {
		time.Sleep(time.Millisecond)
	}
	l, err := net.Listen("tcp", addr)
	for range 100 { // another test binary may look whether the port is free
		if err == nil {
			break
		}
		time.Sleep(50 * time.Millisecond)
		l, err = net.Listen("tcp", addr)
	}
	if err != nil {
		t.Fatal(err)
	}
	cluster := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			io.WriteString(w, `{"version":{"number":"8.1.2"}}`)
			return
		}
		io.WriteString(w, `{}`)
	}))
	cluster.Listener.Close()
	cluster.Listener = l
	cluster.Start()
	t.Cleanup(cluster.Close)
	select {
	case <-started:
	case <-time.After(20 * time.Second):
		t.Fatal("not started")
	}
	if code, answer := readyz(a); code != http.StatusOK {
		t.Errorf("there: %d %s", code, answer)
	}
	for _, want := range []string{`"msg":"started"`, `"cluster":"unknown"`, `"msg":"the cluster answers","cluster":"elasticsearch 8.1.2"`, `"msg":"warmed up"`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no %s in\n%s", want, log.String())
		}
	}
}

func TestWarmUpEndsWithItsTimeAndSaysSo(t *testing.T) {
	cluster := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			<-r.Context().Done()
		}
	}))
	t.Cleanup(cluster.Close)
	a, log := startApp(t, cluster.URL, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	a.warmUp(ctx)
	if !strings.Contains(log.String(), `"level":"WARN","msg":"warm-up is not complete`) || !strings.Contains(log.String(), `"cause":"budget"`) {
		t.Errorf("the log says\n%s", log.String())
	}
}

// The fields that are warmed up are those that have a matrix, one of each index
// in turn.
func TestWarmUpTakesTheBoundFieldsOfIndicesAndAliases(t *testing.T) {
	var many strings.Builder
	for k := range 2 * maxWarm {
		fmt.Fprintf(&many, `,"many-%03d":{"mappings":{"properties":{"f":{"type":"text"}}}}`, k)
	}
	indices := `{"docs":{"aliases":{"live":{}},"mappings":{"properties":{"a":{"type":"text"},"b":{"type":"text"},"n":{"type":"long"}}}},` +
		`"other":{"mappings":{"properties":{"a":{"type":"text"}}}},".system":{"mappings":{"properties":{"a":{"type":"text"}}}}`
	answer, asked := "", ""
	cluster := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked == "" { // further questions are what single names stand for
			asked = r.URL.Path
		}
		io.WriteString(w, answer)
	}))
	t.Cleanup(cluster.Close)
	a, _ := startApp(t, cluster.URL, func(cfg *configs.Config) {
		cfg.Matrices = []configs.Matrix{
			{Name: "main", Indices: []string{"docs", "live"}, Fields: []string{"*"}},
			{Name: "main", Indices: []string{"many-*"}, Fields: []string{"f"}},
		}
	})
	answer, asked = indices+"}", ""
	got, err := a.boundFields(t.Context(), maxWarm)
	want := []boundField{{"docs", "a"}, {"live", "a"}, {"docs", "b"}, {"live", "b"}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(boundField{})); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if asked != "/docs,live,many-*" {
		t.Errorf("asked for %s", asked)
	}
	answer = indices + many.String() + "}"
	if got, err = a.boundFields(t.Context(), maxWarm); err != nil || len(got) != maxWarm {
		t.Errorf("%d fields, %v, want %d", len(got), err, maxWarm)
	}
}

func TestOperationsTellOfEachCauseAndDegradation(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "docs", "operations.md"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	names := slices.Collect(maps.Keys(causes()))
	for _, name := range append(names, report.Credentials, report.Throttled, report.Calls, report.Matrix,
		report.Weights, report.Reload, report.FailingOpen) {
		if !strings.Contains(text, "`"+name+"`") {
			t.Errorf("docs/operations.md does not name %s", name)
		}
	}
}

func TestEachCauseHasAHint(t *testing.T) {
	stage := func(s expand.Stage, err error) error { return &expand.StageError{Stage: s, Err: err} }
	refused := func(status int, kind string) error {
		return stage(expand.StageAnalyze, &esclient.Error{Status: status, Type: kind})
	}
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"no credentials", refused(401, ""), "credentials"},
		{"no rights", refused(403, "security_exception"), "credentials"},
		{"a blocked index", refused(403, "cluster_block_exception"), "unknown_to_cluster"},
		{"too many requests", refused(429, ""), "throttled"},
		{"a missing index", refused(404, ""), "unknown_to_cluster"},
		{"a failure", refused(503, ""), "analyze"},
		{"too many calls", stage(expand.StageRows, cache.ErrBusy), "busy"},
		{"out of time", stage(expand.StageRows, context.DeadlineExceeded), "budget"},
		{"the client has gone", stage(expand.StageRows, context.Canceled), "client_gone"},
		{"unexpected", io.EOF, "error"},
		{"fields", stage(expand.StageFields, io.EOF), "fields"},
		{"rows", stage(expand.StageRows, io.EOF), "rows"},
		{"statistics", stage(expand.StageStatistics, io.EOF), "statistics"},
		{"linear", stage(expand.StageLinear, io.EOF), "linear"},
		{"vectors", stage(expand.StageVectors, io.EOF), "vectors"},
		{"weights", stage(expand.StageWeights, io.EOF), "weights"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := cause(c.err); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			if causes()[c.want] == "" {
				t.Errorf("no hint for %s", c.want)
			}
		})
	}
}

// A panic in the work for /readyz, or in the warm-up, is said and ends nothing.
func TestPanicsOfTheStartAreCounted(t *testing.T) {
	a, log := startApp(t, refusingCluster(t, http.StatusOK), nil)
	a.warm.Store(true)
	client := a.client
	t.Cleanup(func() { a.client = client })
	a.client = nil
	if code, answer := readyz(a); code != http.StatusOK || !strings.Contains(answer, report.Calls) {
		t.Errorf("%d %s", code, answer)
	}
	if a.warmUp(t.Context()); !strings.Contains(log.String(), `"cause":"panic"`) {
		t.Errorf("warmed up without a client:\n%s", log.String())
	}
	if !strings.Contains(log.String(), `"operation":"asking for the state"`) {
		t.Errorf("the log says\n%s", log.String())
	}
}

// Clients that the cluster does not let search say nothing of akin's own
// credentials.
func TestCredentialsOfClientsDoNotDegradeAkin(t *testing.T) {
	cluster := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if user, _, _ := r.BasicAuth(); user != "akin" && r.Method != http.MethodHead {
			w.WriteHeader(http.StatusUnauthorized)
		}
		io.WriteString(w, `{}`)
	}))
	t.Cleanup(cluster.Close)
	for name, templates := range map[string]bool{"searches": false, "templates": true} {
		a, _ := startApp(t, cluster.URL, func(cfg *configs.Config) {
			cfg.Cluster.Auth.Username, cfg.Cluster.Auth.Password = "akin", configs.NewSecret("secret")
			cfg.Expansion.Templates = templates
		})
		a.warm.Store(true)
		path, body := "/a/_search", `{"query":{"match":{"b":"car"}}}`
		if templates {
			path, body = path+"/template", `{"source":`+body+`}`
		}
		for i := range 40 {
			r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			r.SetBasicAuth("client", strconv.Itoa(i%2))
			w := httptest.NewRecorder()
			if a.server.Handler().ServeHTTP(w, r); w.Code != http.StatusUnauthorized {
				t.Fatalf("%s: status %d", name, w.Code)
			}
		}
		if code, answer := readyz(a); code != http.StatusOK || strings.Contains(answer, report.Credentials) || strings.Contains(answer, report.FailingOpen) {
			t.Errorf("%s: %d %s", name, code, answer)
		}
	}
}

func TestNewConfigurationHasToReachTheCluster(t *testing.T) {
	file := filepath.Join(t.TempDir(), "akin.yml")
	if err := os.WriteFile(file, []byte("cluster: {urls: ['http://127.0.0.1:1']}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a, log := startApp(t, refusingCluster(t, http.StatusOK), nil)
	r := newReloader(file, a, nil, proxy.NewFront(a.server, nil), log)
	ctx, cancel := context.WithTimeout(t.Context(), askAgain/2) // else it takes readyWithin
	defer cancel()
	if _, err := r.replace(ctx); err == nil || !strings.Contains(err.Error(), "127.0.0.1:1") || r.app != a {
		t.Errorf("%v, and the new configuration is in use: %t", err, r.app != a)
	}
}

func TestWhatAReloadReplacesIsClosedBehindItsLastRequest(t *testing.T) {
	reached, gate := make(chan struct{}), make(chan struct{})
	node := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			close(reached)
			<-gate
		}
	}))
	defer node.Close()
	file := filepath.Join(t.TempDir(), "akin.yml")
	if err := os.WriteFile(file, []byte("shutdown: {delay: 0s}\ncluster: {urls: ['"+node.URL+"']}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a, log := startApp(t, node.URL, func(cfg *configs.Config) {
		cfg.Listen.Address, cfg.Admin.Address, cfg.Shutdown.Delay = "127.0.0.1:0", "127.0.0.1:0", 0
	})
	closed := make(chan struct{})
	a.onClose(sync.OnceFunc(func() { close(closed) }))
	clients, admin, err := Listen(t.Context(), a.cfg)
	if err != nil {
		t.Fatal(err)
	}
	front := proxy.NewFront(a.server, nil)
	r := newReloader(file, a, nil, front, log)
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() { _ = front.Serve(ctx, clients, admin) })
	running.Go(func() {
		res, err := http.Get("http://" + clients.Addr().String() + "/slow")
		if err != nil {
			t.Error(err)
			return
		}
		_ = res.Body.Close()
	})
	<-reached
	if r.reload(ctx); r.app == a {
		t.Fatalf("nothing is replaced:\n%s", log.String())
	}
	select {
	case <-closed:
		t.Error("it is closed while a request is under way")
	case <-time.After(100 * time.Millisecond):
	}
	close(gate)
	<-closed
	r.close()
}

// A panic in a reload leaves the old configuration in use.
func TestAPanicInAReloadEndsNothing(t *testing.T) {
	node, file := refusingCluster(t, http.StatusOK), filepath.Join(t.TempDir(), "akin.yml")
	if err := os.WriteFile(file, []byte("cluster: {urls: ['"+node+"']}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a, log := startApp(t, node, nil)
	r := newReloader(file, a, nil, nil, log) // without a front to replace
	if r.reload(t.Context()); r.app != a || !a.process.reloadFailed.Load() {
		t.Error("the new configuration is in use")
	}
	if !strings.Contains(log.String(), `"operation":"reloading"`) {
		t.Errorf("the log says\n%s", log.String())
	}
}

// What is held for requests under way counts for those of the new configuration,
// too, and panics are said to its log.
func TestReloadGoesOnWithTheMemoryBudgetAndTheGuard(t *testing.T) {
	node, file := refusingCluster(t, http.StatusOK), filepath.Join(t.TempDir(), "akin.yml")
	write := func(size string) {
		config := "listen: {address: '127.0.0.1:0'}\nadmin: {address: '127.0.0.1:0'}\n" +
			"cluster: {urls: ['" + node + "']}\nmemory: {in_flight: " + size + "}\n"
		if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("16MiB")
	cfg, err := configs.Load(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	write("32MiB")
	a, err := New(t.Context(), Options{Config: cfg, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	log := &lockedBuffer{}
	r := newReloader(file, a, nil, proxy.NewFront(a.server, nil), log)
	defer r.close()
	held := a.process.memory.Hold(limits.SearchBody, "client")
	if !held.Take(8 << 20) {
		t.Fatal("half of the budget is refused")
	}
	if r.reload(t.Context()); r.app == a || r.app.process.memory != a.process.memory {
		t.Fatalf("another budget, or no reload:\n%s", log.String())
	}
	if again := a.process.memory.Hold(limits.SearchBody, "client"); again.Take(8<<20+1) || !again.Take(8<<20) {
		t.Error("what is held, or the new limit, does not count")
	}
	_ = r.app.process.guard.Do("work", func() error { panic(1) })
	if !strings.Contains(log.String(), `"operation":"work"`) {
		t.Errorf("the log of the new configuration says\n%s", log.String())
	}
}
