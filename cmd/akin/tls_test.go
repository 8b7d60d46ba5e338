package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/internal/demo"
)

// TestClusterOverTLSIsVerified serves the embedded engine over HTTPS with a
// certificate of its own authority, and akin over HTTPS with the same.
func TestClusterOverTLSIsVerified(t *testing.T) {
	var mu sync.Mutex
	var own []string // the credentials of akin's own calls
	engine := demo.NewEngine()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/_analyze") {
			mu.Lock()
			own = append(own, r.Header.Get("Authorization"))
			mu.Unlock()
		}
		engine.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	dir := t.TempDir()
	cert := filepath.Join(dir, "cert.pem")
	put := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	put("cert.pem", "CERTIFICATE", server.Certificate().Raw)
	key, err := x509.MarshalPKCS8PrivateKey(server.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	keyFile := put("key.pem", "PRIVATE KEY", key)
	ca, err := os.ReadFile(cert)
	if err != nil {
		t.Fatal(err)
	}
	client, err := esclient.New(esclient.Options{URL: server.URL, CA: ca})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := loadDemo(t.Context(), client, io.Discard); err != nil {
		t.Fatal(err)
	}
	matrix := filepath.Join(dir, "m.akin")
	build := []string{"matrix", "build", "--from-index", server.URL, "--index", demoIndices, "--field", "body", "--out", matrix}
	if _, stderr, status := akin(t, build...); status == 0 || !strings.Contains(stderr, "certificate") {
		t.Errorf("an unknown authority: status %d\n%s", status, stderr)
	}
	if _, stderr, status := akin(t, append(build, "--ca-file", cert)...); status != 0 {
		t.Fatalf("status %d\n%s", status, stderr)
	}

	t.Setenv("AKIN_CLUSTER_USERNAME", "akin")
	t.Setenv("AKIN_CLUSTER_PASSWORD", "of its own")
	mu.Lock()
	own = nil
	mu.Unlock()
	config := func(clusterTLS string) string {
		return write(t, "akin.yml", `
listen: {address: "127.0.0.1:0", tls: {cert_file: "`+cert+`", key_file: "`+keyFile+`"}}
admin: {address: "127.0.0.1:0"}
cluster: {urls: ["`+server.URL+`"]`+clusterTLS+`}
expansion: {budget: 5s}
matrices: [{name: demo, file: "`+matrix+`"}]
`)
	}
	trusted := x509.NewCertPool()
	trusted.AddCert(server.Certificate())
	browser := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}}}
	search := func(proxy string) (status int, body string) {
		url := strings.Replace(proxy, "http:", "https:", 1) + "/catalogue/_search"
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(`{"query":{"match":{"body":"comfortable couch"}}}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := browser.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		data, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(data)
	}
	for name, tt := range map[string]struct {
		tls    string
		status int
		found  string
	}{
		"known authority":   {`, tls: {ca_file: "` + cert + `"}`, 200, "sofa"},
		"verification off":  {`, tls: {insecure_skip_verify: true}`, 200, "sofa"},
		"unknown authority": {``, 502, "akin_upstream_exception"},
	} {
		proxy, _ := serveConfig(t, config(tt.tls))
		if status, body := search(proxy); status != tt.status || !strings.Contains(strings.ToLower(body), tt.found) {
			t.Errorf("%s: status %d, %s", name, status, body)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(own) == 0 || own[0] != "Basic YWtpbjpvZiBpdHMgb3du" { // akin:of its own
		t.Errorf("akin's own calls carry %q", own)
	}
}
