package e2e

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// With 256 files and 400 clients that are connected and say nothing, the admin
// port answers, and so does the proxy to one more client.
func TestIdleClientsDoNotShutOutProbesAndSearches(t *testing.T) {
	t.Parallel()
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "{}") }))
	t.Cleanup(node.Close)
	a := launchAkinUnder(t, "ulimit -n 256", section{"cluster": section{"urls": []string{node.URL}}})
	for range 400 {
		c, err := net.DialTimeout("tcp", strings.TrimPrefix(a.url, "http://"), 20*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
	}
	a.admin.must(t, http.MethodGet, "/healthz", "")
	if open := a.metric(t, "akin_connections", `port="proxy"`); open > 42 { // (256 - 128) / 3
		t.Errorf("%v connections are open", open)
	}
	a.must(t, http.MethodGet, "/a/_search", "")
	for _, line := range a.logLines(t) {
		if line["msg"] == "all connections are taken: those that are idle are closed for new ones" {
			return
		}
	}
	t.Error("the log does not say that all connections are taken")
}
