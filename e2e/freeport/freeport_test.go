package freeport

import (
	"net"
	"strconv"
	"testing"
)

// TestPortsAreFreeAndBelowThoseOfOutgoingConnections takes several at once, as
// a cluster of servers does.
func TestPortsAreFreeAndBelowThoseOfOutgoingConnections(t *testing.T) {
	seen := map[string]bool{}
	for range 50 {
		port, err := Pick(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if n, err := strconv.Atoi(port); err != nil || n < 1024 || n >= 32768 || seen[port] {
			t.Errorf("port %q, want another one from 1024 to 32767", port)
		}
		seen[port] = true
		l, err := net.Listen("tcp", "127.0.0.1:"+port)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
	}
}

// TestPortsInUseAreNotPicked has a server on the port that is next.
func TestPortsInUseAreNotPicked(t *testing.T) {
	port, err := Pick(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	looked.Add(^uint32(0)) // back by one
	if again, err := Pick(t.Context()); err != nil || again == port {
		t.Errorf("port %s, %v; a server has %s", again, err, port)
	}
}
