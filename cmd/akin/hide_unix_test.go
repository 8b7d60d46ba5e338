//go:build unix

package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
)

// TestWordsAreHiddenOnceTheClusterHasSecurity has a cluster that refuses some
// requests: from then on, explanations show no added words, also after a reload
// that takes what told akin of security away.
func TestWordsAreHiddenOnceTheClusterHasSecurity(t *testing.T) {
	target, err := url.Parse(demoEngine(t))
	if err != nil {
		t.Fatal(err)
	}
	engine := httputil.NewSingleHostReverseProxy(target)
	door := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, _, known := r.BasicAuth(); !known && r.URL.Path == "/secret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		engine.ServeHTTP(w, r)
	}))
	t.Cleanup(door.Close)
	config := freePorts + "cluster: {urls: ['" + door.URL + "']AUTH}\nexpansion: {budget: 5s, scoring: linearHIDE}\nmatrices: [{name: demo, file: '" + demoMatrix(t) + "'}]\n"
	with := func(auth, hide string) string { return strings.NewReplacer("AUTH", auth, "HIDE", hide).Replace(config) }
	shows := func(s *served, want bool) {
		t.Helper()
		res, err := http.Post(s.proxy+"/catalogue/_search?explain=true", "application/json", strings.NewReader(`{"query":{"match":{"body":"comfortable couch"}}}`))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		answer, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("%v, %d: %s", err, res.StatusCode, answer)
		}
		if got := strings.Contains(string(answer), "body:sofa"); got != want {
			t.Errorf("shows added words: %v, want %v", got, want)
		}
	}
	t.Run("after a 401 of any request", func(t *testing.T) {
		s := startServed(t, with("", ""))
		shows(s, true)
		get(t, s.proxy+"/secret")
		shows(s, false)
		s.reload(t, with("", ""))
		shows(s, false)
	})
	t.Run("with credentials of akin's own, and after they are gone", func(t *testing.T) {
		secret := write(t, "password", "hunter2")
		s := startServed(t, with(", auth: {username: akin, password_file: '"+secret+"'}", ""))
		shows(s, false)
		s.reload(t, with("", ""))
		shows(s, false)
	})
	t.Run("an empty list shows", func(t *testing.T) {
		s := startServed(t, with("", ", hide_from: []"))
		get(t, s.proxy+"/secret")
		shows(s, true)
	})
}
