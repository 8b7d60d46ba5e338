package rowstore

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestURLForms(t *testing.T) {
	for url, want := range map[string]target{
		"redis://h":                           {network: "tcp", addrs: []string{"h:6379"}},
		"redis://h/":                          {network: "tcp", addrs: []string{"h:6379"}},
		"REDIS://127.0.0.1:7000/3":            {network: "tcp", addrs: []string{"127.0.0.1:7000"}, db: 3},
		"redis://[::1]:7000?db=2":             {network: "tcp", addrs: []string{"[::1]:7000"}, db: 2},
		"redis://[fe80::1]":                   {network: "tcp", addrs: []string{"[fe80::1]:6379"}},
		"redis://:p@h":                        {network: "tcp", addrs: []string{"h:6379"}, password: "p"},
		"redis://u:p%40%2f%3a:@h":             {network: "tcp", addrs: []string{"h:6379"}, username: "u", password: "p@/::"},
		"redis://u:p+q@h":                     {network: "tcp", addrs: []string{"h:6379"}, username: "u", password: "p+q"},
		"unix:///run/redis.sock":              {network: "unix", addrs: []string{"/run/redis.sock"}},
		"unix://u:p@/run/a%20b?db=1":          {network: "unix", addrs: []string{"/run/a b"}, username: "u", password: "p", db: 1},
		"redis+cluster://a":                   {topology: cluster, network: "tcp", addrs: []string{"a:6379"}},
		"redis+cluster://u:p@a:1,b:2,[::1]/":  {topology: cluster, network: "tcp", addrs: []string{"a:1", "b:2", "[::1]:6379"}, username: "u", password: "p"},
		"redis+sentinel://a,b:7/main":         {topology: sentinel, network: "tcp", addrs: []string{"a:26379", "b:7"}, master: "main"},
		"redis+sentinel://u:p@a/my%20main/2/": {topology: sentinel, network: "tcp", addrs: []string{"a:26379"}, master: "my main", db: 2, username: "u", password: "p"},
		"redis+sentinel://a/m?sentinel_username=s&sentinel_password=q%26": {
			topology: sentinel, network: "tcp", addrs: []string{"a:26379"}, master: "m", sentinelUsername: "s", sentinelPassword: "q&",
		},
	} {
		got, err := Redis{URL: url}.parse()
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		if diff := cmp.Diff(&want, got, cmp.AllowUnexported(target{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", url, diff)
		}
	}
}

func TestTLSOfURLs(t *testing.T) {
	given := &tls.Config{RootCAs: x509.NewCertPool(), Certificates: make([]tls.Certificate, 1), ServerName: "no other host's"}
	for url, skip := range map[string]bool{
		"rediss://h": false, "rediss+cluster://a,b": false, "rediss+sentinel://a/m": false,
		"rediss://h?skip_verify=true": true, "rediss+cluster://a?skip_verify=true": true, "rediss+sentinel://a/m?skip_verify=true": true,
		"rediss://h?skip_verify=false": false,
	} {
		got, err := Redis{URL: url, TLS: given}.parse()
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		c := got.tls
		if c == nil || c.RootCAs != given.RootCAs || len(c.Certificates) != 1 || c.ServerName != "" ||
			c.MinVersion != tls.VersionTLS12 || c.InsecureSkipVerify != skip {
			t.Errorf("%s: %+v", url, c)
		}
		if got, err := (Redis{URL: url}).parse(); err != nil || got.tls == nil || got.tls.RootCAs != nil {
			t.Errorf("%s without certificates: %+v, %v", url, got, err)
		}
	}
}

// badURLs are refused; all but the first few hold a secret.
var badURLs = []string{
	"", "redis", "redis://", "://h", "h:6379",
	"hunter2\x7f", "http://u:hunter2@h", "redis+unix://u:hunter2@h", "redis-sentinel://u:hunter2@h/m",
	"redis://u:hunter2@", "redis://u:hunter2@/1", "redis://u:hunter2@h:", "redis://u:hunter2@h:port", "redis://u:hunter2@h:0",
	"redis://u:hunter2@h:65536", "redis://u:hunter2@h/x", "redis://u:hunter2@h/-1", "redis://u:hunter2@h/1/2", "redis://u:hunter2@a,b",
	"redis://u:hunter2@a b", "redis://u:hunter2/@h", "redis://u:hunter2?x@h", "redis://u:hunter2#@h", "redis://u:hunter2%@h", "redis://hunter2@h",
	"redis://u:@hunter2:x", "redis://h?password=hunter2", "redis://h?hunter2", "redis://h?db=1&db=hunter2", "redis://h?%hunter2", "redis://h?db=hunter2",
	"redis://h?skip_verify=hunter2", "rediss://u:hunter2@h?skip_verify=yes",
	"unix://hunter2", "unix://hunter2/run/redis", "unix://u:hunter2@", "unix:///%hunter2",
	"redis+cluster://u:hunter2@a/1", "redis+cluster://u:hunter2@a,", "redis+cluster://u:hunter2@a,,b", "redis+cluster://u:hunter2@a?db=1",
	"redis+sentinel://u:hunter2@a", "redis+sentinel://u:hunter2@a/", "redis+sentinel://u:hunter2@a/m/x", "redis+sentinel://u:hunter2@a/m/1/2",
	"redis+sentinel://a/m?sentinel_username=hunter2", "redis+sentinel://a/m?sentinel_passwort=hunter2",
}

func TestURLErrorsKeepTheSecret(t *testing.T) {
	for _, url := range badURLs {
		a, err := OpenAdmin(Redis{URL: url})
		if !errors.Is(err, ErrURL) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: error %v", url, err)
		}
		if err == nil {
			a.Close()
		}
	}
	if _, err := (Redis{URL: "redis://u:hunter2@h", TLS: new(tls.Config)}).parse(); !errors.Is(err, ErrURL) || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("certificates without TLS: %v", err)
	}
}

func FuzzURL(f *testing.F) {
	for _, url := range badURLs {
		f.Add(url)
	}
	f.Add("rediss+sentinel://u:p@a,b:1/m/3?sentinel_username=x&sentinel_password=y&skip_verify=true")
	f.Fuzz(func(t *testing.T, url string) {
		got, err := Redis{URL: url}.parse()
		if err != nil {
			if !errors.Is(err, ErrURL) {
				t.Errorf("error %v", err)
			}
			return
		}
		if len(got.addrs) == 0 || (got.topology == single && len(got.addrs) != 1) || (got.topology == sentinel) != (got.master != "") {
			t.Errorf("%q: %+v", url, got)
		}
		if (got.tls != nil) != strings.HasPrefix(strings.ToLower(url), "rediss") {
			t.Errorf("%q: TLS %+v", url, got.tls)
		}
	})
}
