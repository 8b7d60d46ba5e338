package rowstore

import (
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// newClient returns a client whose every step ends within timeout or with its
// context. It connects when first used.
func newClient(url string, timeout time.Duration) (*redis.Client, error) {
	o, err := redis.ParseURL(url)
	if err != nil { // not wrapped: it may quote the password
		return nil, errors.New("redis URL: want redis://[user:password@]host[:port][/db], rediss://... or unix:///path")
	}
	o.Protocol = 2 // no push messages to look out for before every reply
	o.DisableIdentity = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	o.ContextTimeoutEnabled = true
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = timeout, timeout, timeout, timeout
	o.DialerRetries = 1
	o.MaxRetries = -1       // 0 is three; who waits for a row has no time for a second try
	o.PipelinePoolSize = -1 // one pool: pipelines are rare here
	o.Dialer = boundReplies(redis.NewDialer(o))
	return redis.NewClient(o), nil
}

// refusal reports whether err is Redis's sound answer about a single key, not
// a sign that Redis is in trouble.
func refusal(err error) bool {
	return errors.Is(err, redis.Nil) || redis.HasErrorPrefix(err, "WRONGTYPE")
}
