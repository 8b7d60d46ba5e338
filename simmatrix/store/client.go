package store

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/akin-search/akin/internal/redisurl"
)

const (
	// dialTimeout limits connecting: name, TLS, and the Sentinels' answer. It
	// continues after a look-up has given up.
	dialTimeout = 2 * time.Second
	// sentinelTimeout is the minimum time for a Sentinel's answer.
	sentinelTimeout = 250 * time.Millisecond
	// sentinelLifetime limits the age of a connection behind Sentinel, so that
	// akin leaves a master that has lost the Sentinels but not akin.
	sentinelLifetime = time.Minute
)

// A Redis says how to reach Redis, and which certificates to trust.
type Redis struct {
	// URL has one of the forms of package redisurl.
	URL string
	// TLS has the authorities to trust (RootCAs) and client certificates
	// (Certificates), only for URLs with TLS. nil trusts the system's authorities.
	TLS *tls.Config
}

// ErrURL is wrapped by errors in a Redis URL. They do not repeat the URL, which
// may hold a password.
var ErrURL = errors.New("redis URL")

// errSentinel is wrapped by the error of a Sentinel that names no master.
var errSentinel = errors.New("the Sentinel names no master")

// NewClient returns a client whose every step ends within timeout or with its
// context. It connects on first use. Reads go to masters, like writes, so a
// client sees what others have written.
func NewClient(r Redis, timeout time.Duration) (redis.UniversalClient, error) {
	u, err := redisurl.Parse(r.URL)
	if err == nil && r.TLS != nil && u.TLSConfig == nil {
		err = errors.New("certificates are for URLs that begin with rediss only")
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrURL, err)
	}
	o := options(r.dialer(u.TLSConfig), timeout)
	o.Addrs = u.Addrs
	o.DB = u.DB
	o.Username = u.Username
	o.Password = u.Password
	o.MasterName = u.MasterName
	o.SentinelUsername = u.SentinelUsername
	o.SentinelPassword = u.SentinelPassword
	switch {
	case u.MasterName != "":
		f := o.Failover()
		f.ReadTimeout = max(o.ReadTimeout, sentinelTimeout)
		f.WriteTimeout, f.PoolTimeout = f.ReadTimeout, f.ReadTimeout
		f.ConnMaxLifetime = sentinelLifetime
		f.OnConnect = checkSentinel(f.MasterName)
		return redis.NewFailoverClient(f), nil
	case u.IsClusterMode:
		// The client learns the slots from one of the nodes, and again after a
		// redirect or a failed call.
		return redis.NewClusterClient(o.Cluster()), nil
	}
	return redis.NewClient(o.Simple()), nil
}

// options returns the common options of all clients. Replies are limited
// whatever dial connects to.
func options(dial dialer, timeout time.Duration) *redis.UniversalOptions {
	return &redis.UniversalOptions{
		Dialer:                boundReplies(dial),
		Protocol:              2, // no push messages to handle before every reply
		ContextTimeoutEnabled: true,
		DialTimeout:           max(dialTimeout, timeout), ReadTimeout: timeout, WriteTimeout: timeout, PoolTimeout: timeout,
		DialerRetries:    1,
		MaxRetries:       -1, // 0 means three; a look-up has no time for a second try
		PipelinePoolSize: -1, // one pool: pipelines are rare here
		DisableIdentity:  true,
		// If on, the library also looks up host names first.
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}

// checkSentinel returns a hook that asks a new connection to a Sentinel for the
// master before the library does. The library does not check the answer's
// length, so a non-Sentinel server could end the process.
func checkSentinel(master string) func(context.Context, *redis.Conn) error {
	return func(ctx context.Context, c *redis.Conn) error {
		if strings.Contains(c.String(), "<FailoverClient ") { // the library's name for a connection to the master
			return nil
		}
		answer, err := c.Do(ctx, "sentinel", "get-master-addr-by-name", master).StringSlice()
		switch {
		case errors.Is(err, redis.Nil):
			err = errors.New("it knows no master of that name")
		case err == nil && (len(answer) != 2 || answer[0] == ""):
			err = fmt.Errorf("%w: %d values for an address", errReply, len(answer))
		case err == nil:
			_, err = strconv.ParseUint(answer[1], 10, 16)
		}
		if err != nil {
			return fmt.Errorf("%w: %w", errSentinel, err)
		}
		return nil
	}
}

// refresh makes a cluster's client look up the slots again. The library does so
// only when a node redirects it, which a dead node does not.
func refresh(ctx context.Context, client redis.UniversalClient) {
	if c, ok := client.(*redis.ClusterClient); ok {
		c.ReloadState(ctx)
	}
}

// dialer returns the function that connects, with TLS unless config is nil. The
// certificate must be for the host of each address; the library would require
// the URL's first host.
func (r Redis) dialer(config *tls.Config) dialer {
	if config == nil {
		return new(net.Dialer).DialContext
	}
	c := config.Clone()
	c.ServerName = ""
	if r.TLS != nil {
		c.RootCAs, c.Certificates = r.TLS.RootCAs, r.TLS.Certificates
	}
	return (&tls.Dialer{Config: c}).DialContext
}

// refusal reports whether err is Redis's valid answer, not a sign of trouble.
func refusal(err error) bool {
	return errors.Is(err, redis.Nil) || redis.HasErrorPrefix(err, "WRONGTYPE")
}
