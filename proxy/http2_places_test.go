package proxy

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/akin-search/akin/proxy/connections"
)

// TestPlaceOfAConnectionGoesToItsNextRequest has as many connections as there
// are places, with two requests at a time on one of them: none has to leave.
func TestPlaceOfAConnectionGoesToItsNextRequest(t *testing.T) {
	reached, proceed := make(chan struct{}, 2), make(chan struct{})
	node := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		reached <- struct{}{}
		<-proceed
	}))
	defer node.Close()
	f := startHTTP2(t, Options{Upstreams: []string{node.URL}, MaxConnections: 1}, false)
	c := dial2(t, f.addr)
	for range 2 {
		if _, err := c.ask(); err != nil {
			t.Fatal(err)
		}
	}
	receive(t, "a request at the node", reached)
	proceed <- struct{}{}
	receive(t, "the other one", reached)
	close(proceed)
	for ended := 0; ended < 2; {
		frame, err := c.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		if frame.Header().Flags.Has(http2.FlagDataEndStream) && frame.Header().Type != http2.FrameSettings {
			ended++
		}
	}
}

// TestClientThatStopsShortAnswersMakesRoom asks for an answer that fits in the
// server's buffer, on as many connections as there are places, and reads none.
func TestClientThatStopsShortAnswersMakesRoom(t *testing.T) {
	node := startRawNode(t, nil)
	f := startHTTP2(t, Options{Upstreams: []string{node.URL}, MaxConnections: 3}, false)
	for range 3 {
		c := dial2(t, f.addr, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
		go c.ends()
		if _, err := c.ask(); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(2 * connections.ShortSilence)
	res, err := f.Get(f.url + "/b")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if body, err := io.ReadAll(res.Body); string(body) != "{}" || err != nil {
		t.Errorf("another client gets %s %q %v", res.Status, body, err)
	}
}

// TestLongFrameEndsItsConnection announces a frame for which the server would
// have to take a megabyte of memory.
func TestLongFrameEndsItsConnection(t *testing.T) {
	node := startRawNode(t, nil)
	f := startHTTP2(t, Options{Upstreams: []string{node.URL}}, false)
	c := dial2(t, f.addr)
	if _, err := c.Write([]byte{0x10, 0, 0, byte(http2.FrameData), 0, 0, 0, 0, 1}); err != nil {
		t.Fatal(err)
	}
	if err := c.ends(); err != nil {
		if timeout, ok := err.(net.Error); ok && timeout.Timeout() { //nolint:errorlint // as io.Copy returns it
			t.Errorf("the server waits for the rest: %v", err)
		}
	}
}
