package proxy

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestWhoMayComeIn(t *testing.T) {
	const token = "0123456789abcdef"
	open, closed := Gate{}, Gate{Token: token, Exposed: true, Hosts: []string{"akin.example.org"}}
	basic := func(user, password string) func(*http.Request) {
		return func(r *http.Request) { r.SetBasicAuth(user, password) }
	}
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	for name, tt := range map[string]struct {
		gate   Gate
		url    string
		change func(*http.Request)
		status int
	}{
		"this machine, no token set":         {open, "http://127.0.0.1:9281/", nil, 0},
		"other machines, no token set":       {Gate{Exposed: true}, "http://10.0.0.1:9281/", nil, 403},
		"no token set, one sent":             {Gate{Exposed: true}, "http://10.0.0.1:9281/", header("Authorization", "Bearer "), 403},
		"no token sent":                      {closed, "http://10.0.0.1:9281/", nil, 401},
		"this machine, no token sent":        {Gate{Token: token}, "http://127.0.0.1:9281/", nil, 401},
		"bearer":                             {closed, "http://10.0.0.1:9281/", header("Authorization", "Bearer "+token), 0},
		"empty bearer":                       {closed, "http://10.0.0.1:9281/", header("Authorization", "Bearer "), 401},
		"password of any user":               {closed, "http://10.0.0.1:9281/", basic("anybody", token), 0},
		"password without a user":            {closed, "http://10.0.0.1:9281/", basic("", token), 0},
		"token as the user":                  {closed, "http://10.0.0.1:9281/", basic(token, ""), 401},
		"beginning of the token":             {closed, "http://10.0.0.1:9281/", basic("akin", token[:15]), 401},
		"more than the token":                {closed, "http://10.0.0.1:9281/", basic("akin", token+"0"), 401},
		"other scheme":                       {closed, "http://10.0.0.1:9281/", header("Authorization", token), 401},
		"name that is known":                 {closed, "http://Akin.example.org:9281/", basic("", token), 0},
		"name that a page had resolved":      {open, "http://evil.example.org:9281/", nil, 403},
		"name, with the token of a browser":  {closed, "http://evil.example.org:9281/", basic("", token), 403},
		"post of another site, with a token": {closed, "http://10.0.0.1:9281/", func(r *http.Request) { basic("", token)(r); r.Header.Set("Origin", "http://evil.example.org") }, 403},
		"post of the page itself":            {closed, "http://10.0.0.1:9281/", func(r *http.Request) { basic("", token)(r); r.Header.Set("Origin", "http://10.0.0.1:9281") }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPost, tt.url, strings.NewReader("{}"))
			if tt.change != nil {
				tt.change(r)
			}
			h := http.Header{}
			status, why := tt.gate.Refuses(r, h)
			if status != tt.status || (why == "") != (status == 0) {
				t.Errorf("refused with %d %q, want %d", status, why, tt.status)
			}
			if asks := h.Get("WWW-Authenticate") != ""; asks != (status == 401) || strings.Contains(why, token) {
				t.Errorf("asks for a password: %v, says %q", asks, why)
			}
		})
	}
}
