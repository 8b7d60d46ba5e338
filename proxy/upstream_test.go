package proxy

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestCertificatesAreVerified(t *testing.T) {
	node := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "secret") }))
	node.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	node.StartTLS()
	defer node.Close()
	roots := x509.NewCertPool()
	roots.AddCert(node.Certificate())
	for name, tt := range map[string]struct {
		config *tls.Config
		want   int
	}{
		"by default":   {nil, http.StatusBadGateway},
		"with a root":  {&tls.Config{RootCAs: roots}, http.StatusOK},
		"switched off": {&tls.Config{InsecureSkipVerify: true}, http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			addr, _ := startProxy(t, Options{Upstreams: []string{node.URL}, TLS: tt.config})
			res, err := client.Get("http://" + addr + "/")
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if res.StatusCode != tt.want {
				t.Errorf("status %d, want %d", res.StatusCode, tt.want)
			}
		})
	}
}

func TestNewRefusesUnusableURLs(t *testing.T) {
	tests := map[string]struct {
		urls []string
		want string
	}{
		"none":        {nil, "proxy: no URL of a cluster node"},
		"no scheme":   {[]string{"es:9200"}, `proxy: cluster URL 1: scheme "es" is not http or https`},
		"no host":     {[]string{"http:///es"}, "proxy: cluster URL 1: it has no host"},
		"second":      {[]string{"http://a", "ftp://b"}, `proxy: cluster URL 2: scheme "ftp" is not http or https`},
		"credentials": {[]string{"http://me:hunter2@a"}, "proxy: cluster URL 1: it holds credentials; those of the clients are passed on"},
		"broken":      {[]string{"http://me:hunter2@a:%zz"}, "proxy: cluster URL 1: not a URL"},
		"query":       {[]string{"http://a/?b"}, "proxy: cluster URL 1: it has a query or a fragment"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := New(Options{Upstreams: tt.urls})
			if err == nil || err.Error() != tt.want {
				t.Errorf("New = %v, want %s", err, tt.want)
			}
		})
	}
}
