package main

import (
	"context"
	"errors"
	"net"
	"testing"
)

func TestDemoClosesAListenerWhereTheOtherCannotBeOpened(t *testing.T) {
	var first net.Listener
	failure := errors.New("no port is left")
	_, err := listenTwice(t.Context(), func(ctx context.Context, network, address string) (net.Listener, error) {
		if first != nil {
			return nil, failure
		}
		l, err := new(net.ListenConfig).Listen(ctx, network, address)
		first = l
		return l, err
	})
	if !errors.Is(err, failure) {
		t.Errorf("error %v", err)
	}
	if err := first.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the first one was open still: %v", err)
	}
}
