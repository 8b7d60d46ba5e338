// Package redisurl reads the URLs that say where Redis is:
//
//	redis://[user:password@]host[:port][/db]
//	unix://[user:password@]/path/of/socket[?db=number]
//	redis+sentinel://[user:password@]host[:port][,host[:port]...]/master[/db]
//	redis+cluster://[user:password@]host[:port][,host[:port]...]
//
// with rediss in place of redis for TLS, also to the Sentinels. It checks them
// strictly and translates them into the forms that go-redis reads.
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
	// Library is the URL for go-redis: for ParseURL, ParseFailoverURL or
	// ParseClusterURL, as the topology is.
	Library string
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
	base, _, _ := strings.Cut(name, "+")
	lib, more, err := known.place(authority[at+1:], strings.TrimSuffix(path, "/"))
	if err == nil && at >= 0 {
		lib.User, err = userOf(authority[:at])
	}
	var options url.Values
	if err == nil {
		options, err = known.read(query)
	}
	if err != nil {
		return nil, err
	}
	u.SkipVerify = options.Get("skip_verify") == "true"
	if db := options.Get("db"); db != "" {
		more.Set("db", db)
	}
	if u.Topology == Sentinel { // the library uses the URL's user for Sentinels, and an option for Redis
		if password, ok := lib.User.Password(); ok {
			more.Set("username", lib.User.Username())
			more.Set("password", password)
		}
		lib.User = url.UserPassword(options.Get("sentinel_username"), options.Get("sentinel_password"))
	}
	lib.Scheme, lib.RawQuery = base, more.Encode()
	u.Library = lib.String()
	return u, nil
}

// place reads the hosts and what follows. It returns the URL with the first
// host, and the options for the library.
func (s *scheme) place(hosts, path string) (u url.URL, more url.Values, err error) {
	more = url.Values{}
	if s.port == "" {
		u.Path, err = url.PathUnescape("/" + path)
		if hosts != "" || path == "" || err != nil {
			err = errors.New("must be unix:// and the full path of a socket, such as unix:///run/redis.sock")
		}
		return u, more, err
	}
	for host := range strings.SplitSeq(hosts, ",") {
		h, err := url.Parse("redis://" + host)
		if err != nil || h.Host != host || h.Hostname() == "" || strings.HasSuffix(host, ":") || strings.Contains(host, " ") ||
			strings.Contains(h.Hostname(), ":") && host[0] != '[' {
			return u, nil, errHost
		}
		port := cmp.Or(h.Port(), s.port)
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return u, nil, errHost
		}
		more.Add("addr", net.JoinHostPort(h.Hostname(), port))
	}
	u.Host, more["addr"] = more["addr"][0], more["addr"][1:]
	switch {
	case s.topology == Single && len(more["addr"]) > 0:
		return u, nil, errHost
	case s.topology == Cluster && path != "":
		return u, nil, errors.New("must end with the hosts: a cluster has no databases to choose from")
	case s.topology == Sentinel:
		var master string
		master, path, _ = strings.Cut(path, "/")
		if master, err = url.PathUnescape(master); err != nil || master == "" {
			return u, nil, errors.New("must name the master behind the Sentinels, such as redis+sentinel://host1,host2/mymaster")
		}
		more.Set("master_name", master)
	}
	u.Path = path
	return u, more, checkDatabase(path)
}

func userOf(s string) (*url.Userinfo, error) {
	name, password, _ := strings.Cut(s, ":")
	name, errName := url.PathUnescape(name)
	password, errPassword := url.PathUnescape(password)
	if errName != nil || errPassword != nil || password == "" {
		return nil, errors.New("must have user:password or :password before the @; a % in them is written %25")
	}
	return url.UserPassword(name, password), nil
}

// read reads the options behind the question mark.
func (s *scheme) read(query string) (url.Values, error) {
	options, err := url.ParseQuery(query)
	for name, values := range options {
		if !slices.Contains(s.options, name) || len(values) > 1 {
			err = errors.New("other option")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("must have no other options than these, each once: %s", strings.Join(s.options, ", "))
	}
	if options.Get("sentinel_username") != "" && options.Get("sentinel_password") == "" {
		return nil, errors.New("must have a sentinel_password with the sentinel_username")
	}
	if !slices.Contains([]string{"", "false", "true"}, options.Get("skip_verify")) {
		return nil, errors.New("must have true or false for skip_verify")
	}
	return options, checkDatabase(options.Get("db"))
}

func checkDatabase(s string) error {
	if _, err := strconv.ParseUint(s, 10, 31); s != "" && err != nil {
		return errors.New("must end in the number of the database, such as /0, or in nothing")
	}
	return nil
}
