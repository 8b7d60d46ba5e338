package serve

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/e2e/check"
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
	if _, _, err := Listen(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "admin: ") {
		t.Errorf("error %v", err)
	}
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
