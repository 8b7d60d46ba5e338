package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
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
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/expand/embedding"
	"github.com/akin-search/akin/expand/soft"
	"github.com/akin-search/akin/internal/cache"
	"github.com/akin-search/akin/internal/demo"
	"github.com/akin-search/akin/internal/limits"
	"github.com/akin-search/akin/proxy/report"
)

func TestStartUpLineTellsWhatIsServedAndWhatIsMissing(t *testing.T) {
	engine := startNode(t, demo.NewEngine())
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
		{"hard without weights", engine, func(cfg *configs.Config) { cfg.Expansion.Mode = expand.ModeHard }, "WARN", []string{"softcosine without weights"}},
		{"a profile that is hard without weights", engine, func(cfg *configs.Config) {
			cfg.Profiles["p"] = configs.Profile{Profile: expand.Profile{Mode: expand.ModeHard}}
		}, "WARN", []string{"softcosine without weights"}},
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
			if line.Msg != "started" || line.Level != c.level || line.Akin != "v1" || line.Scoring != "auto" || line.Matching != "auto" {
				t.Errorf("got %+v in\n%s", line, log.String())
			}
			check.Equal(t, c.url == engine, strings.HasPrefix(line.Cluster, "akin-demo "), "cluster", line.Cluster)
			if len(line.Missing) != len(c.missing) || len(c.missing) > 0 && !strings.Contains(line.Missing[0], c.missing[0]) {
				t.Errorf("missing %q, want %q", line.Missing, c.missing)
			}
			b := line.Matrices
			check.That(t, c.name == "no matrices" || len(b) != 0 && b[0].Source == "file" && b[0].Version != "" && b[0].Terms == 2, "matrices %+v", b)
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
	check.OK(t, err)
	t.Cleanup(func() { l.Close() })
	a, _ := startApp(t, "http://"+l.Addr().String(), nil)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	answered := make(chan report.Condition, 1)
	go func() { answered <- a.check(ctx) }()
	select {
	case c := <-answered:
		check.That(t, len(c.NotReady) != 0 && strings.Contains(c.NotReady[0], "no node"), "not ready: %q", c.NotReady)
	case <-time.After(20 * time.Second):
		t.Error("the check waits for the cluster")
	}
}

func TestReadyOnceAClusterThatWasAwayAnswers(t *testing.T) {
	var logged atomic.Pointer[lockedBuffer]
	a, log := startApp(t, startNode(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if l := logged.Load(); l == nil || !strings.Contains(l.String(), `"msg":"started"`) {
			panic(http.ErrAbortHandler)
		}
		answer := `{}`
		if r.URL.Path == "/" {
			answer = `{"version":{"number":"8.1.2"}}`
		}
		io.WriteString(w, answer)
	})), nil)
	logged.Store(log)
	if code, answer := readyz(a); code != http.StatusServiceUnavailable || !strings.Contains(answer, "no node") || !strings.Contains(answer, "starting") {
		t.Errorf("away: %d %s", code, answer)
	}
	a.start(t.Context())
	code, answer := readyz(a)
	check.That(t, code == http.StatusOK, "there: %d %s", code, answer)
	log.has(t, `"msg":"started"`, `"cluster":"unknown"`, `"msg":"the cluster answers","cluster":"elasticsearch 8.1.2"`, `"msg":"warmed up"`)
}

func TestWarmUpEndsWithItsTimeAndSaysSo(t *testing.T) {
	a, log := startApp(t, startNode(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			<-r.Context().Done()
		}
	})), nil)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	a.warmUp(ctx)
	log.has(t, `"level":"WARN","msg":"warm-up is not complete`, `"cause":"budget"`)
}

func TestLogHasDurationsWithTheirUnit(t *testing.T) {
	log := &lockedBuffer{}
	newLogger(configs.Log{Level: "info"}, log).Info("warmed up", "took", 12*time.Millisecond, "fields", 3)
	log.has(t, `"took":"12ms","fields":3`)
}

// Each question takes the cluster longer than the budget.
func TestFirstSearchesDoNotFailOpen(t *testing.T) {
	engine := demo.NewEngine()
	call(engine, http.MethodPut, "/books", `{"mappings":{"properties":{"title":{"type":"text"}}}}`)
	call(engine, http.MethodPost, "/books/_bulk", `{"index":{"_id":"1"}}
{"title":"an automobile"}
{"index":{"_id":"2"}}
{"title":"a car"}
`)
	a, _ := startApp(t, startNode(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(5 * time.Millisecond)
		engine.ServeHTTP(w, r)
	})), func(cfg *configs.Config) { cfg.Expansion.Budget = configs.Duration(time.Millisecond) })
	w := call(a.server.Handler(), http.MethodPost, "/books/_search", `{"query":{"match":{"title":"car"}}}`)
	check.That(t, strings.Contains(w.Body.String(), "automobile"), "not expanded: %s", w.Body)
}

func TestWarmUpTakesTheBoundFieldsOfIndicesAndAliases(t *testing.T) {
	var many strings.Builder
	for k := range 2 * maxWarm {
		fmt.Fprintf(&many, `,"many-%03d":{"mappings":{"properties":{"f":{"type":"text"}}}}`, k)
	}
	indices := `{"docs":{"aliases":{"live":{}},"mappings":{"properties":{"a":{"type":"text"},"b":{"type":"text"},"n":{"type":"long"}}}},` +
		`"other":{"mappings":{"properties":{"a":{"type":"text"}}}},".system":{"mappings":{"properties":{"a":{"type":"text"}}}}`
	answer, asked := "", ""
	cluster := startNode(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked == "" { // further questions are what single names stand for
			asked = r.URL.Path
		}
		io.WriteString(w, answer)
	}))
	a, _ := startApp(t, cluster, func(cfg *configs.Config) {
		cfg.Matrices = []configs.Matrix{
			{Name: "main", Indices: []string{"docs", "live"}, Fields: []string{"*"}},
			{Name: "main", Indices: []string{"many-*"}, Fields: []string{"f"}},
		}
	})
	answer, asked = indices+"}", ""
	got, err := a.boundFields(t.Context(), a.Expression(), maxWarm)
	want := []boundField{{"docs", "a"}, {"live", "a"}, {"docs", "b"}, {"live", "b"}}
	diff := cmp.Diff(want, got, cmp.AllowUnexported(boundField{}))
	check.That(t, err == nil && diff == "", "%v (-want +got):\n%s", err, diff)
	check.Equal(t, "/docs,live,many-*", asked, "asked for")
	answer = indices + many.String() + "}"
	got, err = a.boundFields(t.Context(), a.Expression(), maxWarm)
	check.That(t, err == nil && len(got) == maxWarm, "%d fields, %v, want %d", len(got), err, maxWarm)
}

func TestOperationsTellOfEachCauseAndDegradation(t *testing.T) {
	data := check.Got(os.ReadFile(filepath.Join("..", "..", "docs", "operations.md")))(t)
	text := string(data)
	names := slices.Collect(maps.Keys(causes()))
	for _, name := range append(names, report.Credentials, report.Throttled, report.Calls, report.Matrix,
		report.Weights, report.Reload, report.FailingOpen) {
		check.That(t, strings.Contains(text, "`"+name+"`"), "docs/operations.md does not name %s", name)
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
		{"of the mode soft, a hit that is gone", fmt.Errorf("hits: %w", soft.ErrMissing), "missing"},
		{"hits without terms", soft.ErrNoTerms, "no_terms"},
		{"too many terms", soft.ErrTooLarge, "too_large"},
		{"a text without a vector", embedding.ErrRejected, "model_rejects"},
		{"the end of akin", cache.ErrClosed, "error"},
		// OpenSearch 2.19 and Elasticsearch 7.10 on a query of a nested field.
		{"expensive queries", &esclient.Error{Status: 400, Type: "exception", Reason: "[joining] queries cannot be executed when 'search.allow_expensive_queries' is set to false."}, "expensive_queries_disabled"},
		{"fields", stage(expand.StageFields, io.EOF), "fields"},
		{"rows", stage(expand.StageRows, io.EOF), "rows"},
		{"statistics", stage(expand.StageStatistics, io.EOF), "statistics"},
		{"linear", stage(expand.StageLinear, io.EOF), "linear"},
		{"vectors", stage(expand.StageVectors, io.EOF), "vectors"},
		{"weights", stage(expand.StageWeights, io.EOF), "weights"},
	} {
		t.Run(c.name, func(t *testing.T) {
			check.Equal(t, c.want, cause(c.err))
			check.That(t, causes()[c.want] != "", "no hint for %s", c.want)
		})
	}
}

func TestPanicsOfTheStartAreCounted(t *testing.T) {
	a, log := startApp(t, refusingCluster(t, http.StatusOK), nil)
	a.warm.Store(true)
	a.client = nil
	code, answer := readyz(a)
	check.That(t, code == http.StatusOK && strings.Contains(answer, report.Calls), "%d %s", code, answer)
	a.warmUp(t.Context())
	log.has(t, `"cause":"panic"`, `"operation":"asking for the state"`)
}

func TestCredentialsOfClientsDoNotDegradeAkin(t *testing.T) {
	cluster := startNode(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if user, _, _ := r.BasicAuth(); user != "akin" && r.Method != http.MethodHead {
			w.WriteHeader(http.StatusUnauthorized)
		}
		io.WriteString(w, `{}`)
	}))
	for name, templates := range map[string]bool{"searches": false, "templates": true} {
		a, _ := startApp(t, cluster, func(cfg *configs.Config) {
			cfg.Cluster.Auth.Username, cfg.Cluster.Auth.Password = "akin", configs.NewSecret("secret")
			cfg.Expansion.Templates = templates
		})
		a.warm.Store(true)
		path, body := "/a/_search", `{"query":{"match":{"b":"car"}}}`
		if templates {
			path, body = path+"/template", `{"source":`+body+`}`
		}
		for i := range 40 {
			w := call(a.server.Handler(), http.MethodPost, path, body, func(r *http.Request) { r.SetBasicAuth("client", strconv.Itoa(i%2)) })
			check.Must(t, w.Code == http.StatusUnauthorized, "%s: status %d", name, w.Code)
		}
		if code, answer := readyz(a); code != http.StatusOK || strings.Contains(answer, report.Credentials) || strings.Contains(answer, report.FailingOpen) {
			t.Errorf("%s: %d %s", name, code, answer)
		}
	}
}

func TestNewConfigurationHasToReachTheCluster(t *testing.T) {
	a, log := startApp(t, refusingCluster(t, http.StatusOK), nil)
	r := reloaderOf(t, a, log, "cluster: {urls: ['http://127.0.0.1:1']}")
	ctx, cancel := context.WithTimeout(t.Context(), askTimeout) // else it takes readyWithin
	defer cancel()
	_, err := r.replace(ctx)
	check.That(t, err != nil && strings.Contains(err.Error(), "127.0.0.1:1") && r.app == a, "%v, and the new configuration is in use: %t", err, r.app != a)
}

func TestWhatAReloadReplacesIsClosedBehindItsLastRequest(t *testing.T) {
	reached, gate := make(chan struct{}), make(chan struct{})
	node := startNode(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			close(reached)
			<-gate
		}
	}))
	a, log := startApp(t, node, func(cfg *configs.Config) {
		cfg.Listen.Address, cfg.Admin.Address, cfg.Shutdown.Delay = "127.0.0.1:0", "127.0.0.1:0", 0
	})
	closed := make(chan struct{})
	a.onClose(sync.OnceFunc(func() { close(closed) }))
	clients, admin, err := Listen(t.Context(), a.cfg)
	check.OK(t, err)
	r := reloaderOf(t, a, log, "shutdown: {delay: 0s}\ncluster: {urls: ['"+node+"']}")
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() { _ = r.front.Serve(ctx, clients, admin) })
	running.Go(func() {
		if res, err := http.Get("http://" + clients.Addr().String() + "/slow"); err != nil {
			t.Error(err)
		} else {
			_ = res.Body.Close()
		}
	})
	<-reached
	r.reload(ctx)
	check.Must(t, r.app != a, "nothing is replaced:\n%s", log)
	select {
	case <-closed:
		t.Error("it is closed while a request is under way")
	case <-time.After(100 * time.Millisecond): // time for what must not happen
	}
	close(gate)
	<-closed
	r.close()
}

func TestAPanicInAReloadEndsNothing(t *testing.T) {
	node := refusingCluster(t, http.StatusOK)
	a, log := startApp(t, node, nil)
	r := reloaderOf(t, a, log, "cluster: {urls: ['"+node+"']}")
	r.front = nil
	r.reload(t.Context())
	check.That(t, r.app == a && a.process.reloadFailed.Load(), "the new configuration is in use")
	log.has(t, `"operation":"reloading"`)
}

// What is held for requests under way counts for those of the new configuration,
// too, and panics are said to its log.
func TestReloadGoesOnWithTheMemoryBudgetAndTheGuard(t *testing.T) {
	node, log := refusingCluster(t, http.StatusOK), &lockedBuffer{}
	a, _ := startApp(t, node, func(cfg *configs.Config) { cfg.Memory.InFlight = 16 << 20 })
	r := reloaderOf(t, a, log, "cluster: {urls: ['"+node+"']}\nmemory: {in_flight: 32MiB}")
	defer r.close()
	held := a.process.memory.Hold(limits.SearchBody, "client")
	check.Must(t, held.Take(8<<20), "half of the budget is refused")
	r.reload(t.Context())
	check.Must(t, r.app != a && r.app.process.memory == a.process.memory, "another budget, or no reload:\n%s", log)
	again := a.process.memory.Hold(limits.SearchBody, "client")
	check.That(t, !again.Take(8<<20+1) && again.Take(8<<20), "what is held, or the new limit, does not count")
	_ = r.app.process.guard.Do("work", func() error { panic(1) })
	log.has(t, `"operation":"work"`)
}

func TestHangupWithoutAFileChangesNothing(t *testing.T) {
	a, log := startApp(t, refusingCluster(t, http.StatusOK), nil)
	r := reloaderOf(t, a, log, "")
	r.file = ""
	r.reload(t.Context())
	check.That(t, r.app == a && !a.process.reloadFailed.Load(), "it counts as a failed reload")
	log.has(t, "no configuration file")
}

func TestAnswersHaveTheHeaderThatTheConfigurationAsksFor(t *testing.T) {
	for _, want := range []string{"", "unchanged; reason=off"} {
		a, _ := startApp(t, refusingCluster(t, http.StatusOK), func(cfg *configs.Config) { cfg.Answers.Header = want != "" })
		w := call(a.server.Handler(), http.MethodPost, "/i/_search?akin=off", "{}")
		check.Equal(t, want, w.Header().Get("X-Akin-Result"))
	}
}
