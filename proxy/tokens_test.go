package proxy

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestWrongTokensAreLoggedOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var book logBook
		w := &wrongTokens{log: book.logger()}
		logged := func(want string) {
			t.Helper()
			synctest.Wait()
			var got []string
			for _, line := range book.lines(t) {
				got = append(got, fmt.Sprintf("%v last_from=%v", line["count"], line["last_from"]))
			}
			if all := strings.Join(got, "; "); all != want {
				t.Errorf("%q, want %q", all, want)
			}
		}
		note := func(n int) {
			for i := range n {
				w.note(fmt.Sprintf("10.0.0.1:%d", i))
			}
		}
		note(1)
		logged("1 last_from=10.0.0.1:0")
		note(2999)
		time.Sleep(59 * time.Second)
		logged("")
		time.Sleep(2 * time.Second)
		logged("2999 last_from=10.0.0.1:2998")
		time.Sleep(10 * time.Minute)
		logged("")
		note(3) // long after the last line
		logged("1 last_from=10.0.0.1:0")
		w.flush()
		logged("2 last_from=10.0.0.1:2")
		time.Sleep(10 * time.Minute)
		logged("")
	})
}

// TestWrongTokensOfTheAdminPortAreLogged sends many, and requests that are no
// guess.
func TestWrongTokensOfTheAdminPortAreLogged(t *testing.T) {
	const token = "0123456789abcdef"
	var lines strings.Builder
	s := build(Options{
		Nodes: nodesAt("http://127.0.0.1:9"), Gate: Gate{Token: token}, Logger: slog.New(slog.NewTextHandler(&lines, nil)),
	})
	ask := func(path, credentials string, want int) {
		r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1:9281"+path, nil)
		if credentials != "" {
			r.Header.Set("Authorization", credentials)
		}
		w := httptest.NewRecorder()
		s.AdminHandler().ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%s with %q: %d, want %d", path, credentials, w.Code, want)
		}
	}
	ask(explanationsPath, "", http.StatusUnauthorized) // a browser asks for the password after that
	ask(explanationsPath, "Bearer "+token, http.StatusOK)
	ask("/metrics", "Bearer wrong", http.StatusOK)
	if lines.Len() > 0 {
		t.Errorf("logged without a guess: %s", lines.String())
	}
	const guesses = 3000
	for range guesses {
		ask(explanationsPath, "Bearer a guess", http.StatusUnauthorized)
	}
	s.Close() // the rest is not lost
	got := lines.String()
	if n := strings.Count(got, "\n"); n != 2 || !strings.Contains(got, "count=1 ") || !strings.Contains(got, fmt.Sprintf("count=%d ", guesses-1)) {
		t.Errorf("%d lines:\n%s", n, got)
	}
	if strings.Contains(got, "guess") || strings.Contains(got, token) {
		t.Errorf("a token is logged:\n%s", got)
	}
}
