package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// A body over http.max_content_length is refused by its head, through akin as
// by the engine itself, and does not count against the node.
func TestRefusedBodiesStayWithTheClient(t *testing.T) {
	t.Parallel()
	e := newEngine(engineKinds[0])
	home, err := makeDir("small-bodies")
	if err == nil {
		err = e.launchIn(home, nil, "http.max_content_length=100kb")
	}
	if err != nil {
		skipOrFail(t, "needs %s, which cannot be started: %v", e.name, err)
	}
	a := startAkin(t, section{"cluster": section{"urls": []string{e.url}}})
	for name, base := range map[string]string{"directly": e.url, "through akin": a.url} {
		for range 5 {
			status, uploaded := uploadIfWanted(t, base, 10<<20)
			if status != http.StatusRequestEntityTooLarge || uploaded {
				t.Errorf("%s: status %d, the body is wanted: %t", name, status, uploaded)
			}
			// Clients that do not ask send all of it.
			request := rawRequest{method: http.MethodPost, target: "/a/_doc", header: []string{jsonType}, body: strings.Repeat(" ", 1<<20)}
			if got := exchange(t, base, request); got.status != "413 Request Entity Too Large" {
				t.Errorf("%s: a body that is sent at once gets %s", name, got.status)
			}
		}
	}
	if n := a.metric(t, "akin_node_failures_total"); n != 0 {
		t.Errorf("%v failures of the node are counted", n)
	}
	if up := a.metric(t, "akin_node_up"); up != 1 {
		t.Errorf("akin_node_up is %v", up)
	}
}

// uploadIfWanted asks the server at base whether it wants a body of size
// bytes, sends it then, and returns the status of the answer.
func uploadIfWanted(t *testing.T, base string, size int) (status int, uploaded bool) {
	t.Helper()
	conn, err := net.DialTimeout("tcp", strings.TrimPrefix(base, "http://"), 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(60 * time.Second)); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "POST /a/_doc HTTP/1.1\r\nHost: x\r\n%s\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", jsonType, size)
	for r := bufio.NewReader(conn); ; {
		res, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusContinue {
			return res.StatusCode, uploaded
		}
		uploaded = true
		go io.WriteString(conn, strings.Repeat(" ", size))
	}
}
