// Package redisurl parses URLs of Redis:
//
//	redis://[user:password@]host[:port][/db]
//	unix://[user:password@]/path/of/socket[?db=number]
//	redis+sentinel://[user:password@]host[:port][,host[:port]...]/master[/db]
//	redis+cluster://[user:password@]host[:port][,host[:port]...]
//
// with rediss instead of redis for TLS, also to the Sentinels. This package
// splits several hosts and has [redis.ParseURL] parse each: the library has no
// schemes for them, its ParseClusterURL has no skip_verify, and its
// ParseFailoverURL takes the login before the @ for that of the Sentinels.
package redisurl

import (
	"errors"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Errors. Unlike the library's they do not repeat the URL, or its password.
var (
	errForm = errors.New("must be redis://host, rediss://host (TLS), unix:///socket, redis+sentinel://host,host/master or " +
		"redis+cluster://host,host; a host may have a :port, a number of a database follows a /, and user:password@ or :password@ " +
		"stands before the hosts, where @ / : ? # % are %40 %2F %3A %3F %23 %25")
	errOptions = errors.New("must have no other options than db, skip_verify (TLS), sentinel_username and sentinel_password (Sentinels)")
	errMaster  = errors.New("must name the master behind the Sentinels, such as redis+sentinel://host1,host2/mymaster")
	errCluster = errors.New("must end with the hosts: a cluster has no databases to choose from")
)

var schemes = []string{"unix", "redis", "rediss", "redis+sentinel", "rediss+sentinel", "redis+cluster", "rediss+cluster"}

// Parse parses a URL. The options have a MasterName for Sentinels,
// IsClusterMode for a cluster, and a TLSConfig for TLS. Errors do not repeat
// the URL.
func Parse(s string) (*redis.UniversalOptions, error) {
	name, rest, _ := strings.Cut(s, "://")
	name = strings.ToLower(name)
	scheme, topology, several := strings.Cut(name, "+")
	rest, query, _ := strings.Cut(rest, "?")
	authority, path, _ := strings.Cut(rest, "/")
	at := strings.LastIndexByte(authority, '@') + 1
	login, hosts := authority[:at], authority[at:]
	// A # would end the URL, and an @ in the path would be part of a password.
	if !slices.Contains(schemes, name) || strings.Contains(s, "#") || strings.Contains(path, "@") ||
		(scheme == "unix") != (hosts == "") || scheme == "unix" && path == "" {
		return nil, errForm
	}
	q, err := url.ParseQuery(query)
	for option := range q { // the library has more
		if !slices.Contains([]string{"db", "skip_verify", "sentinel_username", "sentinel_password"}, option) {
			return nil, errOptions
		}
	}
	if err != nil {
		return nil, errOptions
	}
	u := &redis.UniversalOptions{IsClusterMode: topology == "cluster"}
	if topology == "sentinel" {
		u.SentinelUsername, u.SentinelPassword = q.Get("sentinel_username"), q.Get("sentinel_password")
		q.Del("sentinel_username")
		q.Del("sentinel_password")
		master, database, _ := strings.Cut(path, "/")
		if u.MasterName, err = url.PathUnescape(master); err != nil || u.MasterName == "" {
			return nil, errMaster
		}
		path = database
	}
	for host := range strings.SplitSeq(hosts, ",") { // hosts is "" for a socket
		o, err := redis.ParseURL(scheme + "://" + login + host + "/" + path + "?" + q.Encode())
		if err != nil {
			return nil, errForm
		}
		if o.Network == "tcp" {
			h := url.URL{Host: host}
			if h.Hostname() == "" { // the library would take localhost
				return nil, errForm
			}
			if u.MasterName != "" && h.Port() == "" {
				o.Addr = net.JoinHostPort(h.Hostname(), "26379")
			}
		}
		u.Addrs = append(u.Addrs, o.Addr)
		u.DB = o.DB
		u.Username = o.Username
		u.Password = o.Password
		u.TLSConfig = o.TLSConfig
	}
	switch {
	case u.IsClusterMode && u.DB != 0:
		return nil, errCluster
	case !several && len(u.Addrs) > 1, u.DB < 0,
		login != "" && u.Password == "", u.SentinelUsername != "" && u.SentinelPassword == "": // the library would not log in
		return nil, errForm
	}
	return u, nil
}
