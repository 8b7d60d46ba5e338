package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/amazontest"
	"github.com/akin-search/akin/e2e/check"
)

// signedEngine is the demo's engine behind a stand-in for Amazon, with the
// credentials for it in the environment.
func signedEngine(t *testing.T) (front *amazontest.Front, address string) {
	t.Helper()
	engine := check.Got(url.Parse(demoEngine(t)))(t)
	front = &amazontest.Front{Region: "eu-central-1", Service: "aoss", Next: httputil.NewSingleHostReverseProxy(engine)}
	front.Accept(amazontest.Key{ID: "AKID", Secret: "secret", Token: "token"})
	server := httptest.NewServer(front)
	t.Cleanup(server.Close)
	none := filepath.Join(t.TempDir(), "none")
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_SESSION_TOKEN": "token",
		"AWS_CONFIG_FILE": none, "AWS_SHARED_CREDENTIALS_FILE": none, "AWS_EC2_METADATA_DISABLED": "true",
	} {
		t.Setenv(name, value)
	}
	return front, server.URL
}

// Everything that akin asks is signed, but for the questions whether a cluster
// asks for credentials.
func TestClusterOnAmazonIsServed(t *testing.T) {
	front, address := signedEngine(t)
	const aws = ", aws: {region: eu-central-1, service: aoss}}\n"
	matrix := filepath.Join(t.TempDir(), "m.akin")
	build := []string{"matrix", "build", "--cluster", address, "--index", demoIndices, "--field", "body", "--out", matrix}
	ends(t, exitFailure, build, "Missing Authentication Token")
	ends(t, exitUsage, append(build, "--aws-region", "Frankfurt", "--aws-service", "s3"), "region: must be the code of a region", "service: must be one of es, aoss")
	signed := []string{"--aws-region", "eu-central-1", "--aws-service", "aoss"}
	mustAkin(t, append(build, signed...)...)
	proposal := mustAkin(t, append([]string{"init", "--cluster", address, "--index", demoIndices, "--out", "-"}, signed...)...)
	contains(t, "init", proposal, "aws: {region: eu-central-1, service: aoss}")
	unsigned := len(front.Failed())

	s := startServe(t, "cluster: {urls: ['"+address+"']"+aws+"expansion: {budget: 5s}\nmatrices: [{name: demo, file: '"+matrix+"'}]\n")
	req := check.Got(http.NewRequestWithContext(t.Context(), http.MethodPost, s.proxy+"/catalogue/_search?pretty", strings.NewReader(`{"query":{"match":{"body":"comfortable couch"}}}`)))(t)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=client/20260101/eu-central-1/aoss/aws4_request, SignedHeaders=host, Signature=1")
	res, err := http.DefaultClient.Do(req)
	check.OK(t, err)
	text := string(check.Got(io.ReadAll(res.Body))(t))
	check.OK(t, res.Body.Close())
	check.That(t, res.StatusCode == http.StatusOK && strings.Contains(strings.ToLower(text), "sofa"), "%d %s", res.StatusCode, text)
	get(t, s.proxy+"/catalogue/_search?explain=true&df=body&q=couch") // the demo's engine does not explain
	contains(t, "metrics", s.metrics(t), "akin_client_signatures_total 1\n", `outcome="unchanged",reason="hidden"} 1`)
	check.Equal(t, unsigned, len(front.Failed()), front.Failed())

	config := checkConfig(address, matrix)
	for listen, want := range map[string]string{
		"": "", "listen: {address: '0.0.0.0:9280'}\n": "warning: none, and akin signs requests",
		"listen: {address: '0.0.0.0:9280', auth: {api_key_file: '" + write(t, "key", "sixteen letters!") + "'}}\n": "",
	} {
		r, status := checked(t, listen+strings.Replace(config, "}\n", aws, 1))
		got := verdictOf(&r, "listen.auth")
		check.That(t, status == 0 && strings.HasPrefix(got, want) && (want != "" || got == ""), "%s: status %d, %+v", listen, status, r)
		security := verdictOf(&r, "security of the cluster")
		check.That(t, strings.HasPrefix(security, "ok: on"), "%s", security)
	}
}

func TestMissingCredentialsForAmazonAreTold(t *testing.T) {
	front, address := signedEngine(t)
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	config := strings.Replace(checkConfig(address, demoMatrix(t)), "}\n", ", aws: {region: eu-central-1, service: aoss}}\n", 1)
	r, status := checked(t, config)
	said := verdictOf(&r, "node ")
	check.That(t, status == exitFailure && strings.Contains(said, "no credentials to sign"), "status %d: %s", status, said)

	s := startServe(t, config)
	status, text := get(t, s.admin+"/readyz")
	check.That(t, status == http.StatusServiceUnavailable && strings.Contains(text, "no credentials to sign"), "%d %s", status, text)
	for _, path := range []string{"/catalogue/_search", "/_cat/indices"} {
		status, text = get(t, s.proxy+path)
		check.That(t, status == http.StatusServiceUnavailable && strings.Contains(text, `"type":"akin_credentials_exception"`), "%d %s", status, text)
	}
	contains(t, "the log", s.log.String(), "no new credentials to sign requests with")
	check.Equal(t, 0, front.Passed())
	for _, failed := range front.Failed() {
		check.Equal(t, "GET /: Missing Authentication Token", failed, "sent unsigned") // akin check asks whether there is security
	}
}
