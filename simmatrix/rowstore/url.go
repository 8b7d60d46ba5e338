package rowstore

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// A Redis says where Redis is and whom to trust there.
type Redis struct {
	// URL has one of the forms
	//
	//	redis://[user:password@]host[:port][/db]
	//	unix://[user:password@]/path/of/socket[?db=number]
	//	redis+sentinel://[user:password@]host[:port][,host[:port]...]/master[/db]
	//	redis+cluster://[user:password@]host[:port][,host[:port]...]
	//
	// and rediss in place of redis for TLS, also to the Sentinels. The port is
	// 6379 where it is left out, that of Sentinels 26379. User and password
	// are those of Redis; the options sentinel_username and sentinel_password
	// are for Sentinels that ask for some. skip_verify=true accepts every
	// certificate. What means something in a URL has to be percent-encoded.
	URL string
	// TLS has the authorities to trust (RootCAs) and what to show to a server
	// that asks for it (Certificates), for URLs with TLS alone. Nil trusts the
	// authorities of the system.
	TLS *tls.Config
}

// ErrURL is wrapped by the errors for a URL of Redis. They do not repeat the
// URL, which may hold a password.
var ErrURL = errors.New("redis URL")

// A topology is a way in which Redis is run.
type topology int

const (
	single topology = iota
	sentinel
	cluster
)

// A target is a parsed [Redis].
type target struct {
	topology           topology
	network            string   // of addrs, for package net
	addrs              []string // of the Redis, the Sentinels or some nodes
	master             string   // what the Sentinels call it
	db                 int
	username, password string // for Redis
	// sentinelUsername and sentinelPassword are for the Sentinels.
	sentinelUsername, sentinelPassword string
	tls                                *tls.Config // nil for none
}

// A form is what a scheme of URLs stands for.
type form struct {
	topology topology
	tls      bool
	port     string   // the default, "" where there are no hosts
	options  []string // allowed in the query
}

// forms has the schemes.
func forms() map[string]form {
	return map[string]form{
		"redis":           {single, false, "6379", []string{"db"}},
		"rediss":          {single, true, "6379", []string{"db", "skip_verify"}},
		"unix":            {single, false, "", []string{"db"}},
		"redis+sentinel":  {sentinel, false, "26379", []string{"sentinel_username", "sentinel_password"}},
		"rediss+sentinel": {sentinel, true, "26379", []string{"sentinel_username", "sentinel_password", "skip_verify"}},
		"redis+cluster":   {cluster, false, "6379", nil},
		"rediss+cluster":  {cluster, true, "6379", []string{"skip_verify"}},
	}
}

// parse returns what r says. Errors wrap [ErrURL].
func (r Redis) parse() (*target, error) {
	t, err := r.target()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrURL, err)
	}
	return t, nil
}

func (r Redis) target() (*target, error) {
	scheme, rest, _ := strings.Cut(r.URL, "://")
	f, known := forms()[strings.ToLower(scheme)]
	if !known {
		return nil, errors.New("want redis://, rediss://, redis+sentinel://, rediss+sentinel://, redis+cluster://, " +
			"rediss+cluster:// or unix://")
	}
	if strings.Contains(rest, "#") {
		return nil, errors.New("a # has to be written as %23")
	}
	t := &target{topology: f.topology, network: "tcp"}
	rest, query, _ := strings.Cut(rest, "?")
	authority, path, _ := strings.Cut(rest, "/")
	hosts := authority
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		hosts = authority[i+1:]
		if err := t.setUser(authority[:i]); err != nil {
			return nil, err
		}
	}
	if f.tls {
		t.tls = &tls.Config{MinVersion: tls.VersionTLS12}
		if r.TLS != nil {
			t.tls.RootCAs, t.tls.Certificates = r.TLS.RootCAs, r.TLS.Certificates
		}
	} else if r.TLS != nil {
		return nil, errors.New("certificates are of use for rediss://, rediss+sentinel:// and rediss+cluster:// alone")
	}
	if err := errors.Join(t.setHosts(hosts, f.port), t.setPath(path)); err != nil {
		return nil, err
	}
	return t, t.setOptions(query, f.options)
}

// setUser takes what stands before the @.
func (t *target) setUser(s string) error {
	user, password, ok := strings.Cut(s, ":")
	var errs [2]error
	t.username, errs[0] = url.PathUnescape(user)
	t.password, errs[1] = url.PathUnescape(password)
	if errs[0] != nil || errs[1] != nil { // they quote what is wrong
		return errors.New("a % in a name or a password has to be written as %25")
	}
	if !ok || t.password == "" {
		return errors.New("want user:password or :password before the @")
	}
	return nil
}

// setHosts takes the hosts, or for the port "" none, as of a socket.
func (t *target) setHosts(hosts, port string) error {
	if port == "" {
		t.network = "unix"
		if hosts != "" {
			return errors.New("want unix:/// and the path of a socket")
		}
		return nil
	}
	list := strings.Split(hosts, ",")
	if t.topology == single && len(list) > 1 {
		return errors.New("more than one host, as for Sentinel or Cluster")
	}
	for _, host := range list {
		addr, err := address(host, port)
		if err != nil {
			return err
		}
		t.addrs = append(t.addrs, addr)
	}
	return nil
}

// address returns host[:port] with a port.
func address(host, port string) (string, error) {
	u, err := url.Parse("redis://" + host)
	if err != nil || u.Hostname() == "" || u.Host != host || strings.HasSuffix(host, ":") {
		return "", errors.New("want host or host:port between // and /; a / or an @ in a password has to be written as %2F or %40")
	}
	if p := u.Port(); p != "" {
		if n, err := strconv.ParseUint(p, 10, 16); err != nil || n == 0 {
			return "", errors.New("a port is not between 1 and 65535")
		}
		port = p
	}
	return net.JoinHostPort(u.Hostname(), port), nil
}

// setPath takes what stands behind the hosts.
func (t *target) setPath(path string) error {
	if t.network == "unix" {
		if path == "" {
			return errors.New("the path of the socket is missing")
		}
		unescaped, err := url.PathUnescape(path)
		if err != nil {
			return errors.New("a % in a path has to be written as %25")
		}
		t.addrs = []string{"/" + unescaped}
		return nil
	}
	path = strings.TrimSuffix(path, "/")
	switch t.topology {
	case single:
		return t.setDB(path)
	case cluster:
		if path != "" {
			return errors.New("a cluster has no databases to choose from")
		}
		return nil
	case sentinel:
	}
	master, db, _ := strings.Cut(path, "/")
	if t.master, _ = url.PathUnescape(master); t.master == "" {
		return errors.New("the name of the master is missing: .../master or .../master/db")
	}
	return t.setDB(db)
}

func (t *target) setDB(s string) error {
	if s == "" {
		return nil
	}
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil {
		return errors.New("want the number of the database at the end")
	}
	t.db = int(n)
	return nil
}

// setOptions takes the query.
func (t *target) setOptions(query string, allowed []string) error {
	options, err := url.ParseQuery(query)
	if err != nil {
		return errors.New("the options behind ? cannot be read")
	}
	for name, values := range options {
		if !slices.Contains(allowed, name) || len(values) != 1 {
			return fmt.Errorf("unknown or repeated option; allowed: %s", strings.Join(append(allowed, "nothing else"), ", "))
		}
	}
	t.sentinelUsername, t.sentinelPassword = options.Get("sentinel_username"), options.Get("sentinel_password")
	if t.sentinelUsername != "" && t.sentinelPassword == "" {
		return errors.New("sentinel_username needs a sentinel_password")
	}
	switch options.Get("skip_verify") {
	case "", "false":
	case "true":
		t.tls.InsecureSkipVerify = true
	default:
		return errors.New("skip_verify is neither true nor false")
	}
	return t.setDB(options.Get("db"))
}
