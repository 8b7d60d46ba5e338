package redisurl_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/internal/redisurl"
)

func TestForms(t *testing.T) {
	for url, want := range map[string]redis.UniversalOptions{
		"redis://h":                           {Addrs: []string{"h:6379"}},
		"redis://h/":                          {Addrs: []string{"h:6379"}},
		"REDIS://127.0.0.1:7000/3":            {Addrs: []string{"127.0.0.1:7000"}, DB: 3},
		"redis://[::1]:7000?db=2":             {Addrs: []string{"[::1]:7000"}, DB: 2},
		"redis://[fe80::1]":                   {Addrs: []string{"[fe80::1]:6379"}},
		"redis://:p@h":                        {Addrs: []string{"h:6379"}, Password: "p"},
		"redis://u:p%40%2f%3a:@h":             {Addrs: []string{"h:6379"}, Username: "u", Password: "p@/::"},
		"redis://u:p+q%5E%22%3C@%3E@h":        {Addrs: []string{"h:6379"}, Username: "u", Password: "p+q^\"<@>"},
		"unix:///run/redis.sock":              {Addrs: []string{"/run/redis.sock"}},
		"unix://u:p@/run/a%20b?db=1":          {Addrs: []string{"/run/a b"}, Username: "u", Password: "p", DB: 1},
		"redis+cluster://a":                   {IsClusterMode: true, Addrs: []string{"a:6379"}},
		"redis+cluster://u:p@a:1,b:2,[::1]/":  {IsClusterMode: true, Addrs: []string{"a:1", "b:2", "[::1]:6379"}, Username: "u", Password: "p"},
		"redis+sentinel://a,b:7/main":         {Addrs: []string{"a:26379", "b:7"}, MasterName: "main"},
		"redis+sentinel://u:p@a/my%20main/2/": {Addrs: []string{"a:26379"}, MasterName: "my main", DB: 2, Username: "u", Password: "p"},
		"redis+sentinel://:a%3D%26b@a/m":      {Addrs: []string{"a:26379"}, MasterName: "m", Password: "a=&b"},
		"redis+sentinel://a/m?sentinel_username=s&sentinel_password=q%26": {
			Addrs: []string{"a:26379"}, MasterName: "m", SentinelUsername: "s", SentinelPassword: "q&",
		},
		"redis+sentinel://u:p@[::1]/m?sentinel_password=q%40%2F": {
			Addrs: []string{"[::1]:26379"}, MasterName: "m", Username: "u", Password: "p", SentinelPassword: "q@/",
		},
	} {
		got, err := redisurl.Parse(url)
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		if !reflect.DeepEqual(&want, got) { // it has functions, which cmp does not compare
			t.Errorf("%s:\n%+v, want\n%+v", url, got, &want)
		}
	}
}

func TestTLSOfURLs(t *testing.T) {
	for url, skip := range map[string]bool{
		"rediss://h": false, "rediss+cluster://a,b": false, "rediss+sentinel://a/m": false,
		"rediss://h?skip_verify=true": true, "rediss+cluster://a?skip_verify=true": true, "rediss+sentinel://a/m?skip_verify=true": true,
		"rediss://h?skip_verify=false": false,
	} {
		u, err := redisurl.Parse(url)
		check.That(t, err == nil && u.TLSConfig != nil && u.TLSConfig.InsecureSkipVerify == skip, "%s: %+v, %v", url, u, err)
	}
}

// badURLs are refused; all but the first few hold a secret.
var badURLs = []string{
	"", "redis", "redis://", "://h", "h:6379",
	"hunter2\x7f", "http://u:hunter2@h", "redis+unix://u:hunter2@h", "redis-sentinel://u:hunter2@h/m", "redisss://u:hunter2@h", "rediss+://u:hunter2@h",
	"redis://u:hunter2@", "redis://u:hunter2@/1", "redis://u:hunter2@h:port", "redis://u:12#hunter2@h", "redis+sentinel://u:12/hunter2@h",
	"redis://u:hunter2@h/x", "redis://u:hunter2@h/-1", "redis://u:hunter2@h/1/2", "redis://u:hunter2@a,b",
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
		check.That(t, err != nil && !strings.Contains(err.Error(), "hunter2") && strings.HasPrefix(err.Error(), "must "), "%s: %+v, error %v", url, u, err)
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
		check.That(t, len(u.Addrs) != 0 && (!u.IsClusterMode || u.MasterName == ""), "%q: %+v", url, u)
		check.Equal(t, strings.HasPrefix(strings.ToLower(url), "rediss"), u.TLSConfig != nil, url)
	})
}
