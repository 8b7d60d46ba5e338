package rowstore

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

const (
	// dialTimeout bounds the way to a connection: the name, TLS, and the answer
	// of the Sentinels. No look-up waits for it beyond its own time: the
	// library dials beside it and keeps the connection for the next one.
	dialTimeout = 2 * time.Second
	// sentinelLifetime is how old a connection gets behind Sentinel. A master
	// that lost touch with the Sentinels, though not with us, is left then.
	sentinelLifetime = time.Minute
)

// newClient returns a client whose every step ends within timeout or with its
// context. It connects when first used. Reads go to masters, as writes do, so
// that what one client has written the next one finds.
func newClient(r Redis, timeout time.Duration) (redis.UniversalClient, error) {
	t, err := r.parse()
	if err != nil {
		return nil, err
	}
	o := options(t.dial, timeout)
	o.Username, o.Password, o.DB = t.username, t.password, t.db
	switch t.topology {
	case single:
		o.Network, o.Addr = t.network, t.addrs[0]
	case sentinel:
		s := newSentinels(t, o)
		o.Dialer, o.ConnMaxLifetime = boundReplies(s.dial), sentinelLifetime
		return &sentinelClient{redis.NewClient(&o), s}, nil
	case cluster:
		return redis.NewClusterClient(clusterOptions(t.addrs, o)), nil
	}
	return redis.NewClient(&o), nil
}

// options returns what all clients share. What dial connects to may say
// whatever it likes.
func options(dial dialer, timeout time.Duration) redis.Options {
	return redis.Options{
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

// clusterOptions returns o for the nodes of a cluster. The client learns from
// one of them which slots are where, and again when it is sent on or a call
// failed: then it goes on at the right one, at most three times.
func clusterOptions(addrs []string, o redis.Options) *redis.ClusterOptions {
	return &redis.ClusterOptions{
		Addrs: addrs, Username: o.Username, Password: o.Password, Dialer: o.Dialer, Protocol: o.Protocol,
		ContextTimeoutEnabled: o.ContextTimeoutEnabled,
		DialTimeout:           o.DialTimeout, ReadTimeout: o.ReadTimeout, WriteTimeout: o.WriteTimeout, PoolTimeout: o.PoolTimeout,
		DialerRetries: o.DialerRetries, MaxRetries: o.MaxRetries, PipelinePoolSize: o.PipelinePoolSize,
		DisableIdentity: o.DisableIdentity, MaintNotificationsConfig: o.MaintNotificationsConfig,
	}
}

// refresh lets the client of a cluster find out where the slots are now. The
// library does so only when a node sends it on, which one that is gone does
// not.
func refresh(ctx context.Context, client redis.UniversalClient) {
	if c, ok := client.(*redis.ClusterClient); ok {
		c.ReloadState(ctx)
	}
}

// dial connects to addr, with TLS where the URL says so. The certificate has
// to be for the host of addr: one of the URL, or one that Sentinel or the
// cluster named.
func (t *target) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if t.tls == nil {
		return new(net.Dialer).DialContext(ctx, t.network, addr)
	}
	return (&tls.Dialer{Config: t.tls}).DialContext(ctx, network, addr)
}

// refusal reports whether err is Redis's sound answer about a single key, not
// a sign that Redis is in trouble.
func refusal(err error) bool {
	return errors.Is(err, redis.Nil) || redis.HasErrorPrefix(err, "WRONGTYPE")
}
