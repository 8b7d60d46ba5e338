package proxy

import (
	"cmp"
	"encoding/base64"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/amazontest"
	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/internal/limits"
	"github.com/akin-search/akin/internal/nodes"
	"github.com/akin-search/akin/internal/sign"
)

// Every target that passes arrives signed, with all its parameters, or is
// refused because the engines would refuse its escapes, too.
func TestTargetsThatPassAreSigned(t *testing.T) {
	var got []string
	front := &amazontest.Front{Region: "eu-central-1", Service: "es", Next: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got = append(got, r.RequestURI)
	})}
	front.Accept(amazontest.Key{ID: "AKID", Secret: "secret"})
	t.Setenv("AWS_ACCESS_KEY_ID", "AKID")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	t.Setenv("AWS_SESSION_TOKEN", "")
	node := httptest.NewServer(front)
	t.Cleanup(node.Close)
	signer := sign.New(sign.Options{Region: "eu-central-1", Service: "es", Memory: limits.New(1 << 20)})
	changed := map[string]string{
		"/_cat/indices?v&&h=a+b%20c&=&x":           "/_cat/indices?v=&h=a%20b%20c&=&x=",
		"/%3Clogs-%7Bnow%2Fd%7D%3E/_search?pretty": "/%3Clogs-%7Bnow%2Fd%7D%3E/_search?pretty=",
		"/a|b/\"c\"^`?x|y\"^`{}":                   "/a|b/\"c\"^`?x%7Cy%22%5E%60%7B%7D=",
		"/größe?größe":                             "/größe?gr%C3%B6%C3%9Fe=",
		"/a#b?c#d":                                 "/a#b?c%23d=",
		"/_search?q=a%2Bb+c;d&akin_profil=x":       "/_search?q=a%2Bb%20c&d=&akin_profil=x",
		"/_search?q":                               "/_search?q=",
		"/_cat/indices?a=b;c=%zz":                  "",
	}
	for _, prefix := range []string{"", "/e%2Fs"} {
		p := start(t, Options{
			Nodes: poolOf(nodes.Options{URLs: []string{node.URL + prefix}, Sign: signer.Transport}), Signs: true, Expander: expander(leaveAlone),
		}, nil)
		for _, target := range passedTargets {
			got = nil
			answer := exchangeRaw(t, p.addr, "GET "+target+" HTTP/1.1\nHost: a\nConnection: close\n\n")
			want, others := changed[target]
			if others && want == "" {
				check.That(t, strings.HasPrefix(answer, "HTTP/1.1 400 ") && strings.Contains(answer, "akin cannot sign the request") && len(got) == 0, "%s: %q", target, answer)
				continue
			}
			want = prefix + cmp.Or(want, target)
			check.That(t, slices.Equal(got, []string{want}), "the node got %q, want %q: %q %.300q", got, want, front.Failed(), answer)
		}
	}
}

func TestSignaturesOfClientsGoNoFurther(t *testing.T) {
	const signed = "Authorization: AWS4-HMAC-SHA256 Credential=A/20260101/eu-central-1/es/aws4_request, SignedHeaders=host, Signature=1\n" +
		"X-Amz-Date: 20260101T000000Z\nX-Amz-Security-Token: t\nX-Amz-Content-Sha256: 1\n"
	for name, tt := range map[string]struct {
		signs         bool
		target, head  string
		want          string
		authorization int
		counted       float64
	}{
		"in headers":               {true, "/i/_doc/1?a=b", signed, "/i/_doc/1?a=b", 0, 1},
		"of a search":              {true, "/i/_search?a=b", signed, "/i/_search?a=b", 0, 1},
		"in the query string":      {true, "/i/_doc/1?X-Amz-Algorithm=AWS4-HMAC-SHA256&a=b&X-Amz-Credential=c&X-Amz-Signature=1", "", "/i/_doc/1?a=b", 0, 1},
		"none":                     {true, "/i/_doc/1", "Authorization: Basic YTpi\n", "/i/_doc/1", 1, 0},
		"where akin signs nothing": {false, "/i/_doc/1?X-Amz-Signature=1", signed, "/i/_doc/1?X-Amz-Signature=1", 4, 0},
	} {
		p := start(t, Options{Signs: tt.signs, Expander: expander(leaveAlone)}, nil)
		exchangeRaw(t, p.addr, "GET "+tt.target+" HTTP/1.1\nHost: a\nConnection: close\n"+tt.head+"\n")
		got, left := p.only(t), 0
		for _, line := range got.header {
			if lower := strings.ToLower(line); strings.HasPrefix(lower, "x-amz-") || strings.HasPrefix(lower, "authorization:") {
				left++
			}
		}
		check.That(t, got.line == "GET "+tt.want+" HTTP/1.1" && left == tt.authorization, "%s: %q, %q", name, got.line, got.header)
		p.counted(t, tt.counted, "akin_client_signatures_total")
	}
}

func TestClientsNeedTheirCredentials(t *testing.T) {
	basic := Clients{Username: "shop", Password: "sixteen letters!"}
	key := Clients{APIKey: "a2V5IG9mIGFraW4="}
	of := func(s string) string {
		return "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(s)) + "\n"
	}
	for name, tt := range map[string]struct {
		clients Clients
		head    string
		admits  bool
	}{
		"nothing asked for":        {Clients{}, "", true},
		"password":                 {basic, of("shop:sixteen letters!"), true},
		"scheme in lower case":     {basic, strings.Replace(of("shop:sixteen letters!"), "Basic", "basic", 1), true},
		"no credentials":           {basic, "", false},
		"wrong password":           {basic, of("shop:sixteen letters?"), false},
		"wrong user":               {basic, of("other:sixteen letters!"), false},
		"the beginning":            {basic, of("shop:sixteen letters"), false},
		"the password alone":       {basic, "Authorization: Basic sixteen letters!\n", false},
		"password as key":          {basic, strings.Replace(of("shop:sixteen letters!"), "Basic", "ApiKey", 1), false},
		"key":                      {key, "Authorization: ApiKey a2V5IG9mIGFraW4=\n", true},
		"wrong key":                {key, "Authorization: ApiKey a2V5IG9mIGFraW5=\n", false},
		"key as bearer":            {key, "Authorization: Bearer a2V5IG9mIGFraW4=\n", false},
		"a signature in its place": {key, "Authorization: AWS4-HMAC-SHA256 Credential=a\n", false},
	} {
		for _, target := range []string{"/i/_search", "/i/_doc/1"} {
			p := start(t, Options{Clients: tt.clients, Expander: expander(leaveAlone)}, inTurn("HTTP/1.1 204 No Content\r\n\r\n"))
			answer := exchangeRaw(t, p.addr, "GET "+target+" HTTP/1.1\nHost: a\nConnection: close\n"+tt.head+"\n")
			if tt.admits {
				check.That(t, strings.HasPrefix(answer, "HTTP/1.1 204 ") && p.only(t).get("Authorization") == nil, "%s: %q, %q", name, answer, p.only(t).header)
				continue
			}
			check.That(t, strings.HasPrefix(answer, "HTTP/1.1 401 ") && strings.Contains(answer, `"status":401`) && strings.Contains(answer, "Www-Authenticate: "+tt.clients.scheme()), "%s: %q", name, answer)
			check.Equal(t, 0, len(p.all()), name, "requests at the node")
			p.counted(t, 1, "akin_unauthorized_requests_total")
		}
	}
}

// A request that is not sent says nothing of the node.
func TestRefusalsAreAnswered(t *testing.T) {
	refusing := func(http.RoundTripper) http.RoundTripper {
		return roundTripper(func(*http.Request) (*http.Response, error) {
			return nil, &nodes.NotSentError{Status: http.StatusServiceUnavailable, Type: "akin_credentials_exception", Reason: "no credentials", Err: errors.New("the cause")}
		})
	}
	node := startRawNode(t, nil)
	p := start(t, Options{Nodes: poolOf(nodes.Options{URLs: []string{node.URL}, Sign: refusing}), Expander: rewriteTo(`{"query":{}}`)}, nil)
	for range 20 {
		for _, target := range []string{"/i/_search", "/i/_doc/1"} {
			answer := p.post(t, target, jsonType, someSearch)
			check.That(t, strings.HasPrefix(answer, "HTTP/1.1 503 ") && strings.Contains(answer, `"reason":"no credentials"`) && !strings.Contains(answer, "the cause"), "%q", answer)
		}
	}
	p.counted(t, 0, "akin_upstream_errors_total")
	check.Equal(t, 0, len(node.all()))
}
