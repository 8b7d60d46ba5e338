package serve

import (
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/expand/vectors"
	"github.com/akin-search/akin/proxy/playground"
	"github.com/akin-search/akin/simmatrix"
)

func TestNodesAndForwardedHeadersAreWired(t *testing.T) {
	var forwardedFor string
	node := startNode(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { forwardedFor = r.Header.Get("X-Forwarded-For") }))
	dead := httptest.NewServer(nil)
	dead.Close()
	for on, want := range map[bool]string{true: "192.0.2.1", false: ""} {
		a, _ := startApp(t, node, func(cfg *configs.Config) {
			cfg.Cluster.URLs = []string{dead.URL, node}
			cfg.Listen.ForwardedHeaders = on
		})
		for range 8 {
			check.OK(t, a.client.Ping(t.Context()))
		}
		w := call(a.server.Handler(), http.MethodPost, "/i/_doc", "")
		check.That(t, w.Code == http.StatusOK && forwardedFor == want, "status %d, X-Forwarded-For %q, want %q", w.Code, forwardedFor, want)
	}
}

func TestNoListenerIsLeftWhereTheOtherCannotBeOpened(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	check.OK(t, err)
	defer taken.Close()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	check.OK(t, err)
	free.Close()
	cfg := configs.Default()
	cfg.Listen.Address, cfg.Admin.Address = free.Addr().String(), taken.Addr().String()
	_, _, err = Listen(t.Context(), cfg)
	check.Message(t, "admin: ", err)
	again, err := net.Listen("tcp", cfg.Listen.Address)
	check.Must(t, err == nil, "the first one is open still: %v", err)
	again.Close()
}

func TestLimitsOfTheListenersReachTheServer(t *testing.T) {
	a, _ := startApp(t, refusingCluster(t, http.StatusOK), func(cfg *configs.Config) {
		cfg.Shutdown = configs.Shutdown{Delay: configs.Duration(1 * time.Second)}
		cfg.Listen.IdleTimeout, cfg.Listen.BodyTimeout = configs.Duration(3*time.Second), configs.Duration(4*time.Second)
		cfg.Listen.MaxConnections = 5
	})
	o := a.proxyOptions()
	got := []any{o.ShutdownDelay, o.IdleTimeout, o.BodyTimeout, o.MaxConnections}
	check.Equal(t, []any{1 * time.Second, 3 * time.Second, 4 * time.Second, 5}, got)
}

func TestWordsAreReadForModesThatAskForThem(t *testing.T) {
	near, off := expand.Profile{NearestWords: true}, expand.Profile{}
	hard, byVectors, soft := near, near, near
	hard.Mode, byVectors.Mode, soft.Mode = expand.ModeHard, expand.ModeVectors, expand.ModeSoft
	for _, tt := range []struct {
		about             string
		all, some         expand.Profile
		enabled, wantsAny bool
	}{
		{"all searches", near, off, false, true},
		{"a profile", off, soft, true, true},
		{"a profile that is switched off", off, near, false, false},
		{"hard and vectors", hard, byVectors, true, false},
		{"a profile of another mode", hard, near, true, true},
	} {
		cfg := &configs.Config{}
		cfg.Expansion.Profile = tt.all
		cfg.Profiles = map[string]configs.Profile{"some": {Enabled: tt.enabled, Profile: tt.some}}
		check.Equal(t, tt.wantsAny, wantsWords(cfg), tt.about)
	}
}

// A reload keeps the configuration in use where the new one has such a file.
func TestModelsThatCannotBeReadAreAnErrorOfTheConfiguration(t *testing.T) {
	damaged := written(t, "damaged", "akin-V\r\n")
	for path, want := range map[string]error{damaged: vectors.ErrFormat, damaged + "-not": fs.ErrNotExist} {
		cfg := configs.Default()
		cfg.Vectors = []string{path}
		_, err := New(t.Context(), Options{Config: cfg, Log: slog.New(slog.DiscardHandler)})
		if !errors.Is(err, want) || !strings.Contains(err.Error(), "vectors[0]") || !strings.Contains(err.Error(), path) {
			t.Errorf("%v, want %v of vectors[0], %s", err, want, path)
		}
	}
}

func TestThePlaygroundLooksWordsUpAsPeopleWriteThem(t *testing.T) {
	m := matrixOf(t, []simmatrix.TermRow{
		{Term: "kidnei", Form: "kidney", DocFreq: 5, Neighbors: []simmatrix.Neighbor{{Term: "renal", Similarity: 1}}},
		{Term: "renal"},
		{Term: "ga", Form: "gas"},
		{Term: "gaa", Form: "ga"},
	}...)
	a, _ := startAppOf(t, refusingCluster(t, http.StatusOK), m, nil)
	for word, want := range map[string]playground.Row{
		"kidney": {Term: "kidnei", Word: "kidney", DocFreq: 5}, "Kidney": {Term: "kidnei", Word: "kidney", DocFreq: 5}, "kidnei": {Term: "kidnei", Word: "kidney", DocFreq: 5},
		"renal": {Term: "renal"}, "ga": {Term: "gaa", Word: "ga"}, "gas": {Term: "ga", Word: "gas"},
		"kidnay": {Term: "kidnay", Nearest: "kidney"}, "zebra": {Term: "zebra"},
	} {
		w := call(a.server.AdminHandler(), http.MethodPost, "/_akin/playground/neighbors", `{"matrix":"main","term":"`+word+`"}`,
			func(r *http.Request) { r.Host = "localhost" })
		var got playground.Row
		err := json.Unmarshal(w.Body.Bytes(), &got)
		check.Must(t, err == nil && w.Code == http.StatusOK, "%s: %d %s", word, w.Code, w.Body)
		neighbors := len(got.Neighbors)
		check.That(t, (neighbors > 0) == (got.Term == "kidnei"), "%s: %d neighbors", word, neighbors)
		got.Version, got.Neighbors = "", nil
		check.Equal(t, want, got, word)
	}
}
