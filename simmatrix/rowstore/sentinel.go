package rowstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// sentinelTimeout bounds what one Sentinel is waited for. They are asked one
// after the other, so it is short.
const sentinelTimeout = 250 * time.Millisecond

// errSentinel is wrapped by the errors for Sentinels that name no master.
var errSentinel = errors.New("no Sentinel names the master")

// sentinels ask which Redis is the master, for every new connection. That is
// enough to follow a failover: connections to a master that died break, and
// Sentinel ends those to one that it makes a replica.
//
// The library has a client of its own for this. It indexes into what a
// Sentinel answers without looking at the length, and so ends the process
// where something else answers, and it holds its lock while it waits for the
// network.
type sentinels struct {
	target  *target
	clients []*redis.Client
	first   atomic.Int32 // the one that answered last
}

// newSentinels returns the Sentinels of t. Their connections have the bounds
// of o.
func newSentinels(t *target, o redis.Options) *sentinels {
	s := &sentinels{target: t}
	o.Username, o.Password, o.DB = t.sentinelUsername, t.sentinelPassword, 0
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = sentinelTimeout, sentinelTimeout, sentinelTimeout, sentinelTimeout
	o.PoolSize = 2
	for _, addr := range t.addrs {
		o.Network, o.Addr = t.network, addr
		options := o
		s.clients = append(s.clients, redis.NewClient(&options))
	}
	return s
}

// dial connects to the master of this moment, whatever addr is.
func (s *sentinels) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	addr, err := s.master(ctx)
	if err != nil {
		return nil, err
	}
	return s.target.dial(ctx, network, addr)
}

// master returns what the first Sentinel that answers says.
func (s *sentinels) master(ctx context.Context) (string, error) {
	errs := []error{errSentinel}
	first := s.first.Load()
	for i := range s.clients {
		k := (int(first) + i) % len(s.clients)
		addr, err := ask(ctx, s.clients[k], s.target.master)
		if err == nil {
			s.first.CompareAndSwap(first, int32(k)) //nolint:gosec // an index of a list in a URL
			return addr, nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", s.target.addrs[k], err))
	}
	return "", errors.Join(errs...)
}

// ask asks one Sentinel for the address of a master.
func ask(ctx context.Context, c *redis.Client, master string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, sentinelTimeout)
	defer cancel()
	answer, err := c.Do(ctx, "sentinel", "get-master-addr-by-name", master).StringSlice()
	if errors.Is(err, redis.Nil) {
		return "", errors.New("knows no master of that name")
	}
	if err != nil {
		return "", err
	}
	if len(answer) != 2 || answer[0] == "" {
		return "", fmt.Errorf("%w: %d values for an address", errReply, len(answer))
	}
	if _, err := strconv.ParseUint(answer[1], 10, 16); err != nil {
		return "", fmt.Errorf("%w: a port that is no number", errReply)
	}
	return net.JoinHostPort(answer[0], answer[1]), nil
}

func (s *sentinels) close() error {
	errs := make([]error, len(s.clients))
	for i, c := range s.clients {
		errs[i] = c.Close()
	}
	return errors.Join(errs...)
}

// A sentinelClient is a client of the master that closes its Sentinels, too.
type sentinelClient struct {
	*redis.Client

	sentinels *sentinels
}

// Close ends the connections.
func (c *sentinelClient) Close() error { return errors.Join(c.Client.Close(), c.sentinels.close()) }
