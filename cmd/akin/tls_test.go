package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/internal/demo"
)

// TestClusterOverTLSIsVerified serves the embedded engine over HTTPS with a
// certificate of its own authority, and akin over HTTPS with the same.
func TestClusterOverTLSIsVerified(t *testing.T) {
	var own sync.Map // the credentials of akin's own calls
	engine := demo.NewEngine()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/_analyze") {
			own.Store(r.Header.Get("Authorization"), true)
		}
		engine.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	encoded := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	ca := encoded("CERTIFICATE", server.Certificate().Raw)
	key, err := x509.MarshalPKCS8PrivateKey(server.TLS.Certificates[0].PrivateKey)
	check.OK(t, err)
	cert, keyFile := write(t, "cert.pem", ca), write(t, "key.pem", encoded("PRIVATE KEY", key))
	client, err := esclient.New(esclient.Options{URL: server.URL, CA: []byte(ca)})
	check.OK(t, err)
	defer client.Close()
	check.OK(t, loadDemo(t.Context(), client, io.Discard))
	matrix := filepath.Join(t.TempDir(), "m.akin")
	build := []string{"matrix", "build", "--cluster", server.URL, "--index", demoIndices, "--field", "body", "--out", matrix}
	ends(t, exitFailure, build, "certificate")
	mustAkin(t, append(build, "--ca-file", cert)...)

	t.Setenv("AKIN_CLUSTER_USERNAME", "akin")
	t.Setenv("AKIN_CLUSTER_PASSWORD", "of its own")
	own.Clear()
	trusted := x509.NewCertPool()
	trusted.AddCert(server.Certificate())
	browser := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}}}
	for name, tt := range map[string]struct {
		tls    string
		status int
		found  string
	}{
		"known authority":   {`, tls: {ca_file: "` + cert + `"}`, 200, "sofa"},
		"verification off":  {`, tls: {insecure_skip_verify: true}`, 200, "sofa"},
		"unknown authority": {``, 502, "akin_upstream_exception"},
	} {
		s := startServe(t, `
listen: {address: "127.0.0.1:0", tls: {cert_file: "`+cert+`", key_file: "`+keyFile+`"}}
admin: {address: "127.0.0.1:0"}
shutdown: {delay: 0s}
cluster: {urls: ["`+server.URL+`"]`+tt.tls+`}
expansion: {budget: 5s}
matrices: [{name: demo, file: "`+matrix+`"}]
`)
		resp, err := browser.Post(strings.Replace(s.proxy, "http:", "https:", 1)+"/catalogue/_search", "application/json",
			strings.NewReader(`{"query":{"match":{"body":"comfortable couch"}}}`))
		check.OK(t, err)
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != tt.status || !strings.Contains(strings.ToLower(string(body)), tt.found) {
			t.Errorf("%s: status %d, %s", name, resp.StatusCode, body)
		}
	}
	_, with := own.Load("Basic YWtpbjpvZiBpdHMgb3du") // akin:of its own
	if _, without := own.Load(""); without || !with {
		t.Error("akin's own calls do not carry its own credentials")
	}
}
