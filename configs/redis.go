package configs

import (
	"strings"

	"github.com/akin-search/akin/internal/redisurl"
)

// redisURL reports what is wrong with the URL that the file gives.
func (d *decoder) redisURL(s string) {
	const key = "redis.url"
	if strings.ContainsAny(s, "@?") {
		// The URL's query can carry a password, too.
		d.add(key, "must not hold credentials or options; give the whole URL in %s", EnvRedisURL)
	} else if _, err := redisurl.Parse(s); err != nil {
		d.add(key, "%w", err)
	}
}

// redisTLS reports certificates of Redis that are not complete or not used.
func (d *decoder) redisTLS(r *Redis) {
	d.together("redis.tls.cert_file", r.TLS.CertFile, "redis.tls.key_file", r.TLS.KeyFile)
	if strings.HasPrefix(strings.ToLower(r.URL.Reveal()), "rediss") {
		return
	}
	const unused = "is only for a URL of Redis that begins with rediss"
	if r.TLS.CAFile != "" {
		d.add("redis.tls.ca_file", unused)
	}
	if r.TLS.CertFile != "" {
		d.add("redis.tls.cert_file", unused)
	}
}
