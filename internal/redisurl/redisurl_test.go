package redisurl_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/akin-search/akin/internal/redisurl"
)

// A target is what go-redis makes of a URL.
type target struct {
	network, master    string
	addrs              []string // of the Redis, the Sentinels or some nodes
	db                 int
	username, password string // for Redis

	sentinelUsername, sentinelPassword string
}

// parse reads a URL as a client does.
func parse(s string) (*redisurl.URL, target, error) {
	u, err := redisurl.Parse(s)
	if err != nil {
		return nil, target{}, err
	}
	switch u.Topology {
	case redisurl.Sentinel:
		o, err := redis.ParseFailoverURL(u.Library)
		if err != nil {
			return nil, target{}, err
		}
		return u, target{"tcp", o.MasterName, o.SentinelAddrs, o.DB, o.Username, o.Password, o.SentinelUsername, o.SentinelPassword}, nil
	case redisurl.Cluster:
		o, err := redis.ParseClusterURL(u.Library)
		if err != nil {
			return nil, target{}, err
		}
		return u, target{network: "tcp", addrs: o.Addrs, username: o.Username, password: o.Password}, nil
	case redisurl.Single:
	}
	o, err := redis.ParseURL(u.Library)
	if err != nil {
		return nil, target{}, err
	}
	return u, target{network: o.Network, addrs: []string{o.Addr}, db: o.DB, username: o.Username, password: o.Password}, nil
}

func TestForms(t *testing.T) {
	for url, want := range map[string]target{
		"redis://h":                           {network: "tcp", addrs: []string{"h:6379"}},
		"redis://h/":                          {network: "tcp", addrs: []string{"h:6379"}},
		"REDIS://127.0.0.1:7000/3":            {network: "tcp", addrs: []string{"127.0.0.1:7000"}, db: 3},
		"redis://[::1]:7000?db=2":             {network: "tcp", addrs: []string{"[::1]:7000"}, db: 2},
		"redis://[fe80::1]":                   {network: "tcp", addrs: []string{"[fe80::1]:6379"}},
		"redis://:p@h":                        {network: "tcp", addrs: []string{"h:6379"}, password: "p"},
		"redis://u:p%40%2f%3a:@h":             {network: "tcp", addrs: []string{"h:6379"}, username: "u", password: "p@/::"},
		"redis://u:p+q^\"<@>@h":               {network: "tcp", addrs: []string{"h:6379"}, username: "u", password: "p+q^\"<@>"},
		"unix:///run/redis.sock":              {network: "unix", addrs: []string{"/run/redis.sock"}},
		"unix://u:p@/run/a%20b?db=1":          {network: "unix", addrs: []string{"/run/a b"}, username: "u", password: "p", db: 1},
		"redis+cluster://a":                   {network: "tcp", addrs: []string{"a:6379"}},
		"redis+cluster://u:p@a:1,b:2,[::1]/":  {network: "tcp", addrs: []string{"a:1", "b:2", "[::1]:6379"}, username: "u", password: "p"},
		"redis+sentinel://a,b:7/main":         {network: "tcp", addrs: []string{"a:26379", "b:7"}, master: "main"},
		"redis+sentinel://u:p@a/my%20main/2/": {network: "tcp", addrs: []string{"a:26379"}, master: "my main", db: 2, username: "u", password: "p"},
		"redis+sentinel://:a%3D%26b@a/m":      {network: "tcp", addrs: []string{"a:26379"}, master: "m", password: "a=&b"},
		"redis+sentinel://a/m?sentinel_username=s&sentinel_password=q%26": {
			network: "tcp", addrs: []string{"a:26379"}, master: "m", sentinelUsername: "s", sentinelPassword: "q&",
		},
		"redis+sentinel://u:p@a/m?sentinel_password=q%40%2F": {
			network: "tcp", addrs: []string{"a:26379"}, master: "m", username: "u", password: "p", sentinelPassword: "q@/",
		},
	} {
		_, got, err := parse(url)
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(target{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", url, diff)
		}
	}
}

func TestTLSOfURLs(t *testing.T) {
	for url, skip := range map[string]bool{
		"rediss://h": false, "rediss+cluster://a,b": false, "rediss+sentinel://a/m": false,
		"rediss://h?skip_verify=true": true, "rediss+cluster://a?skip_verify=true": true, "rediss+sentinel://a/m?skip_verify=true": true,
		"rediss://h?skip_verify=false": false,
	} {
		if u, _, err := parse(url); err != nil || !u.TLS || u.SkipVerify != skip {
			t.Errorf("%s: %+v, %v", url, u, err)
		}
	}
}

// badURLs are refused; all but the first few hold a secret.
var badURLs = []string{
	"", "redis", "redis://", "://h", "h:6379",
	"hunter2\x7f", "http://u:hunter2@h", "redis+unix://u:hunter2@h", "redis-sentinel://u:hunter2@h/m", "redisss://u:hunter2@h", "rediss+://u:hunter2@h",
	"redis://u:hunter2@", "redis://u:hunter2@/1", "redis://u:hunter2@h:", "redis://u:hunter2@h:port", "redis://u:hunter2@h:0",
	"redis://u:hunter2@h:65536", "redis://u:hunter2@h/x", "redis://u:hunter2@h/-1", "redis://u:hunter2@h/1/2", "redis://u:hunter2@a,b",
	"redis://u:hunter2@a b", "redis://u:hunter2/@h", "redis://u:hunter2?x@h", "redis://u:hunter2#@h", "redis://u:hunter2%@h", "redis://hunter2@h",
	"redis://u:@hunter2:x", "redis://h?password=hunter2", "redis://h?hunter2", "redis://h?db=1&db=hunter2", "redis://h?%hunter2", "redis://h?db=hunter2",
	"redis://h?skip_verify=hunter2", "rediss://u:hunter2@h?skip_verify=yes", "redis://u:hunter2@h?dial_timeout=1h",
	"unix://hunter2", "unix://hunter2/run/redis", "unix://u:hunter2@", "unix:///%hunter2",
	"redis+cluster://u:hunter2@a/1", "redis+cluster://u:hunter2@a,", "redis+cluster://u:hunter2@a,,b", "redis+cluster://u:hunter2@a?db=1",
	"redis+sentinel://u:hunter2@a", "redis+sentinel://u:hunter2@a/", "redis+sentinel://u:hunter2@a/m/x", "redis+sentinel://u:hunter2@a/m/1/2",
	"redis+sentinel://a/m?sentinel_username=hunter2", "redis+sentinel://a/m?sentinel_passwort=hunter2",
}

func TestErrorsKeepTheSecret(t *testing.T) {
	for _, url := range badURLs {
		u, err := redisurl.Parse(url)
		if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.HasPrefix(err.Error(), "must ") {
			t.Errorf("%s: %+v, error %v", url, u, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, url := range badURLs {
		f.Add(url)
	}
	f.Add("rediss+sentinel://u:p@a,b:1/m/3?sentinel_username=x&sentinel_password=y&skip_verify=true")
	f.Fuzz(func(t *testing.T, url string) {
		u, err := redisurl.Parse(url)
		if err != nil {
			return
		}
		_, got, err := parse(url)
		if err != nil {
			t.Fatalf("%q: go-redis refuses %q: %v", url, u.Library, err)
		}
		if len(got.addrs) == 0 || (u.Topology == redisurl.Sentinel) != (got.master != "") {
			t.Errorf("%q: %+v", url, got)
		}
		if u.TLS != strings.HasPrefix(strings.ToLower(url), "rediss") {
			t.Errorf("%q: TLS %t", url, u.TLS)
		}
	})
}
