// Package freeport finds ports for the servers that tests start, where a server
// cannot choose one itself.
package freeport

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync/atomic"
)

// Ports are taken from [lowest, lowest+count). Systems take those of outgoing
// connections from above: Linux from 32768, others as RFC 6335, section 6,
// from 49152. Otherwise one of the many connections of a test run may take the
// port before the server does.
const (
	lowest = 10_000
	count  = 20_000
)

// errNone says that something listens on every port of the range.
var errNone = errors.New("no port is free")

var (
	// first is where a process begins: test binaries run side by side.
	first = rand.Uint32N(count) //nolint:gosec // a port is no secret
	// looked counts the ports that were looked at.
	looked atomic.Uint32
)

// Pick returns a port of 127.0.0.1 on which nothing listens. A process gets the
// same one again only after all others.
func Pick(ctx context.Context) (string, error) {
	var listen net.ListenConfig
	for range count {
		port := strconv.Itoa(lowest + int((first+looked.Add(1))%count))
		l, err := listen.Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", port))
		if err != nil {
			continue
		}
		return port, l.Close()
	}
	return "", fmt.Errorf("127.0.0.1: %w from %d to %d", errNone, lowest, lowest+count-1)
}
