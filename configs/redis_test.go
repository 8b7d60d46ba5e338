package configs

import (
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
)

// parseURL parses a configuration with a URL of Redis and its other keys.
func parseURL(url, more string) error {
	_, err := Parse("akin.yml", []byte("redis:\n  url: '"+url+"'\n"+more))
	return err
}

func TestFormsOfRedisURLs(t *testing.T) {
	for _, url := range []string{
		"redis://h", "redis://h:7000", "redis://h/3", "REDIS://h/", "redis://[::1]:7000/0", "rediss://h",
		"unix:///run/redis.sock", "unix:///run/a b",
		"redis+sentinel://h/main", "redis+sentinel://a,b:7000,[::1]/main/3", "rediss+sentinel://h/my%20main/",
		"redis+cluster://h", "redis+cluster://a:1,b:2/", "rediss+cluster://a,b",
	} {
		err := parseURL(url, "")
		check.That(t, err == nil, "%s: %v", url, err)
	}
	for url, want := range map[string]string{
		"h:6379":                          "must be redis://host",
		"http://h":                        "must be redis://host",
		"redis+unix:///run/redis.sock":    "must be redis://host",
		"redis://":                        "must be redis://host",
		"redis://a,b":                     "must be redis://host",
		"redis://h:port":                  "must be redis://host",
		"redis+cluster://a,":              "must be redis://host",
		"redis+sentinel:///main":          "must be redis://host",
		"redis://h/main":                  "must be redis://host",
		"redis://h/1/2":                   "must be redis://host",
		"redis+sentinel://h/main/x":       "must be redis://host",
		"redis+sentinel://h":              "must name the master",
		"redis+sentinel://h/":             "must name the master",
		"redis+cluster://h/1":             "must end with the hosts",
		"unix://":                         "must be redis://host",
		"unix://run/redis.sock":           "must be redis://host",
		"redis://h#x":                     "must be redis://host",
		"redis://:hunter2@h":              "must not hold credentials",
		"unix://u:hunter2@/run/a":         "must not hold credentials",
		"redis+cluster://u:hunter2@a,b":   "must not hold credentials",
		"redis+sentinel://a/m?x=hunter2":  "must not hold credentials or options",
		"rediss://h?skip_verify=true":     "must not hold credentials or options",
		"redis+sentinel://u:hunter2@a,b/": "must not hold credentials",
	} {
		err := parseURL(url, "")
		if err == nil || !strings.Contains(err.Error(), "akin.yml:2: redis.url: "+want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, want %q", url, err, want)
		}
	}
}

func TestCertificatesOfRedisAreForTLS(t *testing.T) {
	const files = "  tls: {ca_file: ca.pem, cert_file: crt.pem, key_file: key.pem}\n"
	for _, url := range []string{"rediss://h", "rediss+sentinel://h/m", "rediss+cluster://h"} {
		err := parseURL(url, files)
		check.That(t, err == nil, "%s: %v", url, err)
	}
	for _, url := range []string{"", "redis://h", "unix:///run/redis.sock", "redis+cluster://h"} {
		err := parseURL(url, files)
		check.That(t, err != nil && strings.Count(err.Error(), "only for a URL of Redis that begins with rediss") == 2, "%s: %v", url, err)
	}
}
