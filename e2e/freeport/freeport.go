// Package freeport finds ports for the servers that tests start, where a server
// cannot choose one itself.
package freeport

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"sync/atomic"
)

// Ports are taken from [lowest, lowest+count): below those that Linux gives to
// outgoing connections (from 32768; others from 49152, RFC 6335, section 6).
const (
	lowest = 10_000
	count  = 20_000
)

var (
	first  = rand.Uint32N(count) //nolint:gosec // test binaries run side by side; a port is no secret
	looked atomic.Uint32         // how many ports were looked at
)

// Pick returns a port of 127.0.0.1 on which nothing listens. A process gets the
// same one again only after all others.
func Pick(ctx context.Context) (string, error) {
	var listen net.ListenConfig
	for range count {
		port := strconv.Itoa(lowest + int((first+looked.Add(1))%count))
		if l, err := listen.Listen(ctx, "tcp", "127.0.0.1:"+port); err == nil {
			return port, l.Close()
		}
	}
	return "", errors.New("127.0.0.1 has no free port")
}
