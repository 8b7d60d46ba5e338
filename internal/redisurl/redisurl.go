// Package redisurl reads the URLs that say where Redis is:
//
//	redis://[user:password@]host[:port][/db]
//	unix://[user:password@]/path/of/socket[?db=number]
//	redis+sentinel://[user:password@]host[:port][,host[:port]...]/master[/db]
//	redis+cluster://[user:password@]host[:port][,host[:port]...]
//
// with rediss in place of redis for TLS, also to the Sentinels. It checks them
// strictly.
package redisurl

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// A Topology is a way in which Redis is run.
type Topology int

// The topologies.
const (
	Single Topology = iota
	Sentinel
	Cluster
)

// A URL is a checked URL of Redis.
type URL struct {
	Topology Topology
	// TLS says that every connection uses TLS, SkipVerify that any certificate
	// is accepted.
	TLS, SkipVerify bool
	// Addrs are host:port of the Redis, of the Sentinels or of some nodes, or the
	// path of a socket, which begins with a slash.
	Addrs              []string
	DB                 int
	Username, Password string
	// These are for Sentinels only.
	Master, SentinelUsername, SentinelPassword string
}

// A scheme is what URLs of one scheme have in common.
type scheme struct {
	topology Topology
	port     string // where a host has none
	options  []string
}

var (
	errForm = errors.New("must be redis://host, rediss://host (TLS), unix:///socket, redis+sentinel://host,host/master or " +
		"redis+cluster://host,host; a host may have a :port")
	errHost = fmt.Errorf("%w; in a name or a password @ / : ? %% are %%40 %%2F %%3A %%3F %%25", errForm)
)

// Parse reads a URL. Its errors repeat nothing of the URL, which may hold a
// password.
func Parse(s string) (*URL, error) {
	name, rest, _ := strings.Cut(s, "://")
	name = strings.ToLower(name)
	known, ok := map[string]scheme{
		"unix":           {Single, "", []string{"db"}},
		"redis":          {Single, "6379", []string{"db"}},
		"redis+sentinel": {Sentinel, "26379", []string{"sentinel_username", "sentinel_password"}},
		"redis+cluster":  {Cluster, "6379", nil},
	}[strings.Replace(name, "rediss", "redis", 1)]
	if strings.Contains(s, "#") {
		return nil, errors.New("must not have a #; write %23")
	}
	if !ok {
		return nil, errForm
	}
	u := &URL{Topology: known.topology, TLS: strings.HasPrefix(name, "rediss")}
	if u.TLS {
		known.options = append(known.options, "skip_verify")
	}
	rest, query, _ := strings.Cut(rest, "?")
	authority, path, _ := strings.Cut(rest, "/")
	at := strings.LastIndexByte(authority, '@')
	err := u.place(authority[at+1:], strings.TrimSuffix(path, "/"), known.port)
	if err == nil && at >= 0 {
		err = u.login(authority[:at])
	}
	if err == nil {
		err = u.read(query, known.options)
	}
	if err != nil {
		return nil, err
	}
	return u, nil
}

// place reads the hosts and what follows.
func (u *URL) place(hosts, path, defaultPort string) error {
	if defaultPort == "" {
		socket, err := url.PathUnescape("/" + path)
		if hosts != "" || path == "" || err != nil {
			return errors.New("must be unix:// and the full path of a socket, such as unix:///run/redis.sock")
		}
		u.Addrs = []string{socket}
		return nil
	}
	for host := range strings.SplitSeq(hosts, ",") {
		h, err := url.Parse("redis://" + host)
		if err != nil || h.Host != host || h.Hostname() == "" || strings.HasSuffix(host, ":") || strings.Contains(host, " ") ||
			strings.Contains(h.Hostname(), ":") && host[0] != '[' {
			return errHost
		}
		port := cmp.Or(h.Port(), defaultPort)
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return errHost
		}
		u.Addrs = append(u.Addrs, net.JoinHostPort(h.Hostname(), port))
	}
	switch {
	case u.Topology == Single && len(u.Addrs) > 1:
		return errHost
	case u.Topology == Cluster && path != "":
		return errors.New("must end with the hosts: a cluster has no databases to choose from")
	case u.Topology == Sentinel:
		master, rest, _ := strings.Cut(path, "/")
		var err error
		if u.Master, err = url.PathUnescape(master); err != nil || u.Master == "" {
			return errors.New("must name the master behind the Sentinels, such as redis+sentinel://host1,host2/mymaster")
		}
		path = rest
	}
	return u.setDatabase(path)
}

// login reads the user and the password.
func (u *URL) login(s string) error {
	name, password, _ := strings.Cut(s, ":")
	var errName, errPassword error
	u.Username, errName = url.PathUnescape(name)
	u.Password, errPassword = url.PathUnescape(password)
	if errName != nil || errPassword != nil || u.Password == "" {
		return errors.New("must have user:password or :password before the @; a % in them is written %25")
	}
	return nil
}

// read reads the options behind the question mark.
func (u *URL) read(query string, known []string) error {
	options, err := url.ParseQuery(query)
	for name, values := range options {
		if !slices.Contains(known, name) || len(values) > 1 {
			err = errors.New("other option")
		}
	}
	if err != nil {
		return fmt.Errorf("must have no other options than these, each once: %s", strings.Join(known, ", "))
	}
	u.SentinelUsername, u.SentinelPassword = options.Get("sentinel_username"), options.Get("sentinel_password")
	if u.SentinelUsername != "" && u.SentinelPassword == "" {
		return errors.New("must have a sentinel_password with the sentinel_username")
	}
	skip := options.Get("skip_verify")
	if !slices.Contains([]string{"", "false", "true"}, skip) {
		return errors.New("must have true or false for skip_verify")
	}
	u.SkipVerify = skip == "true"
	return u.setDatabase(options.Get("db"))
}

// setDatabase sets the number of the database, unless it is not given.
func (u *URL) setDatabase(s string) error {
	if s == "" {
		return nil
	}
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil {
		return errors.New("must end in the number of the database, such as /0, or in nothing")
	}
	u.DB = int(n)
	return nil
}
