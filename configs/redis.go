package configs

import (
	"errors"
	"net/url"
	"strconv"
	"strings"
)

// redisURL reports what is wrong with the URL that the file gives.
func (d *decoder) redisURL(s string) {
	const key = "redis.url"
	if strings.ContainsAny(s, "@?") {
		// The URL's query can carry a password, too.
		d.add(key, "must not hold credentials or options; give the whole URL in %s", EnvRedisURL)
	} else if err := checkRedisURL(s); err != nil {
		d.add(key, "%w", err)
	}
}

// checkRedisURL returns what is wrong with a URL of Redis, without the URL,
// which may hold a password. Of credentials and options it sees nothing; those
// are read when Redis is opened.
func checkRedisURL(s string) error {
	scheme, rest, _ := strings.Cut(s, "://")
	scheme = strings.ToLower(scheme)
	rest, _, _ = strings.Cut(rest, "?")
	authority, path, _ := strings.Cut(rest, "/")
	hosts := strings.Split(authority[strings.LastIndexByte(authority, '@')+1:], ",")
	path = strings.TrimSuffix(path, "/")
	switch {
	case strings.Contains(s, "#"):
		return errors.New("must not have a #; write %23")
	case scheme == "unix":
		if hosts[0] != "" || path == "" {
			return errors.New("must be unix:// and the full path of a socket, such as unix:///run/redis.sock")
		}
		return nil
	case (scheme == "redis" || scheme == "rediss") && len(hosts) == 1 && areHosts(hosts):
		return checkDatabase(path)
	case (scheme == "redis+sentinel" || scheme == "rediss+sentinel") && areHosts(hosts):
		master, database, _ := strings.Cut(path, "/")
		if master == "" {
			return errors.New("must name the master behind the Sentinels, such as redis+sentinel://host1,host2/mymaster")
		}
		return checkDatabase(database)
	case (scheme == "redis+cluster" || scheme == "rediss+cluster") && areHosts(hosts):
		if path != "" {
			return errors.New("must end with the hosts: a cluster has no databases to choose from")
		}
		return nil
	default:
		return errors.New("must be redis://host, rediss://host (TLS), unix:///socket, redis+sentinel://host,host/master or " +
			"redis+cluster://host,host; a host may have a :port")
	}
}

// areHosts reports whether each is host or host:port.
func areHosts(hosts []string) bool {
	for _, h := range hosts {
		u, err := url.Parse("redis://" + h)
		if err != nil || u.Host != h || !isHost(u) {
			return false
		}
	}
	return true
}

func checkDatabase(s string) error {
	if _, err := strconv.ParseUint(s, 10, 31); s != "" && err != nil {
		return errors.New("must end in the number of the database, such as /0, or in nothing")
	}
	return nil
}

// redisTLS reports certificates of Redis that are not complete or not used.
func (d *decoder) redisTLS(r *Redis) {
	d.together("redis.tls.cert_file", r.TLS.CertFile, "redis.tls.key_file", r.TLS.KeyFile)
	if strings.HasPrefix(strings.ToLower(r.URL.Reveal()), "rediss") {
		return
	}
	const unused = "is of use for a URL of Redis that begins with rediss alone"
	if r.TLS.CAFile != "" {
		d.add("redis.tls.ca_file", unused)
	}
	if r.TLS.CertFile != "" {
		d.add("redis.tls.cert_file", unused)
	}
}
