//go:build unix

package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// TestWordsAreHiddenOnceTheClusterHasSecurity has a cluster that refuses some
// requests: from then on, explanations show no added words, also after a reload
// that takes what told akin of security away.
func TestWordsAreHiddenOnceTheClusterHasSecurity(t *testing.T) {
	door := relayTo(t, demoEngine(t), func(w http.ResponseWriter, r *http.Request) bool {
		_, _, known := r.BasicAuth()
		refused := !known && r.URL.Path == "/secret"
		if refused {
			w.WriteHeader(http.StatusUnauthorized)
		}
		return refused
	})
	config := freePorts + "cluster: {urls: ['" + door + "']AUTH}\nexpansion: {budget: 5s, scoring: linearHIDE}\nmatrices: [{name: demo, file: '" + demoMatrix(t) + "'}]\n"
	with := func(auth, hide string) string { return strings.NewReplacer("AUTH", auth, "HIDE", hide).Replace(config) }
	shows := func(s *served, want bool) {
		t.Helper()
		var answer json.RawMessage
		post(t, s.proxy+"/catalogue/_search?explain=true", `{"query":{"match":{"body":"comfortable couch"}}}`, &answer)
		if got := strings.Contains(string(answer), "body:sofa"); got != want {
			t.Errorf("shows added words: %v, want %v", got, want)
		}
	}
	t.Run("after a 401 of any request", func(t *testing.T) {
		s := startServe(t, with("", ""))
		shows(s, true)
		get(t, s.proxy+"/secret")
		shows(s, false)
		s.reload(t, with("", ""))
		shows(s, false)
	})
	t.Run("with credentials of akin's own, and after they are gone", func(t *testing.T) {
		secret := write(t, "password", "hunter2")
		s := startServe(t, with(", auth: {username: akin, password_file: '"+secret+"'}", ""))
		shows(s, false)
		s.reload(t, with("", ""))
		shows(s, false)
	})
	t.Run("an empty list shows", func(t *testing.T) {
		s := startServe(t, with("", ", hide_from: []"))
		get(t, s.proxy+"/secret")
		shows(s, true)
	})
}
