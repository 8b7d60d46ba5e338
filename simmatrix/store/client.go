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
	// dialTimeout bounds the way to a connection: the name, TLS, and the answer of
	// the Sentinels. A look-up does not wait for it: it goes on by itself.
	dialTimeout = 2 * time.Second
	// sentinelTimeout is the least time that a Sentinel has for its answer.
	sentinelTimeout = 250 * time.Millisecond
	// sentinelLifetime bounds the age of a connection behind Sentinel, after
	// which a master that lost the Sentinels, though not us, is left.
	sentinelLifetime = time.Minute
)

// A Redis says how to reach Redis and which certificates to trust.
type Redis struct {
	// URL has one of the forms of package redisurl.
	URL string
	// TLS has the authorities to trust (RootCAs) and the client certificates
	// (Certificates), only for URLs with TLS. Nil trusts the authorities of the
	// system.
	TLS *tls.Config
}

// ErrURL is wrapped by the errors for a URL of Redis. They do not repeat the
// URL, which may hold a password.
var ErrURL = errors.New("redis URL")

// errSentinel is wrapped by the error for a Sentinel that names no master.
var errSentinel = errors.New("the Sentinel names no master")

// newClient returns a client whose every step ends within timeout or with its
// context. It connects when first used. Reads go to masters, as writes do, so
// that a client sees what another has written.
func newClient(r Redis, timeout time.Duration) (redis.UniversalClient, error) {
	u, err := redisurl.Parse(r.URL)
	if err == nil && r.TLS != nil && u.TLSConfig == nil {
		err = errors.New("certificates are for URLs that begin with rediss only")
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrURL, err)
	}
	o := options(r.dialer(u.TLSConfig), timeout)
	o.Addrs, o.DB, o.Username, o.Password = u.Addrs, u.DB, u.Username, u.Password
	o.MasterName, o.SentinelUsername, o.SentinelPassword = u.MasterName, u.SentinelUsername, u.SentinelPassword
	switch {
	case u.MasterName != "":
		f := o.Failover()
		f.ReadTimeout = max(o.ReadTimeout, sentinelTimeout)
		f.WriteTimeout, f.PoolTimeout = f.ReadTimeout, f.ReadTimeout
		f.ConnMaxLifetime = sentinelLifetime
		f.OnConnect = checkSentinel(f.MasterName)
		return redis.NewFailoverClient(f), nil
	case u.IsClusterMode:
		// The client learns from one of the nodes where the slots are, and again
		// when it is redirected or a call failed.
		return redis.NewClusterClient(o.Cluster()), nil
	}
	return redis.NewClient(o.Simple()), nil
}

// options returns what all clients share. Replies are bounded whatever dial
// connects to.
func options(dial dialer, timeout time.Duration) *redis.UniversalOptions {
	return &redis.UniversalOptions{
		Dialer:                boundReplies(dial),
		Protocol:              2, // no push messages to look out for before every reply
		ContextTimeoutEnabled: true,
		DialTimeout:           max(dialTimeout, timeout), ReadTimeout: timeout, WriteTimeout: timeout, PoolTimeout: timeout,
		DialerRetries:    1,
		MaxRetries:       -1, // 0 is three; who waits for a row has no time for a second try
		PipelinePoolSize: -1, // one pool: pipelines are rare here
		DisableIdentity:  true,
		// Where they are on, the library also looks host names up first.
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}

// checkSentinel returns a hook that asks a new connection to a Sentinel for
// the master before the library does, which does not check the answer's
// length, so that a server that is no Sentinel could end the process.
func checkSentinel(master string) func(context.Context, *redis.Conn) error {
	return func(ctx context.Context, c *redis.Conn) error {
		if strings.Contains(c.String(), "<FailoverClient ") { // what the library calls a connection to the master
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

// refresh makes the client of a cluster look up where the slots are. The
// library does so only when a node redirects it, which a dead node does not.
func refresh(ctx context.Context, client redis.UniversalClient) {
	if c, ok := client.(*redis.ClusterClient); ok {
		c.ReloadState(ctx)
	}
}

// dialer returns the function that connects, with TLS unless config is nil. The
// certificate must be for the host of the address, not for the first one of
// the URL, as the library would require.
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

// refusal reports whether err is Redis's valid answer about a single key, not
// a sign that Redis is in trouble.
func refusal(err error) bool {
	return errors.Is(err, redis.Nil) || redis.HasErrorPrefix(err, "WRONGTYPE")
}
