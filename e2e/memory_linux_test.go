package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// memory returns the resident memory of the process in MiB, now ("VmRSS") or at
// most so far ("VmHWM").
func (a *akin) memory(tb testing.TB, what string) int {
	tb.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", a.proc.cmd.Process.Pid))
	if err != nil {
		tb.Fatal(err)
	}
	found := regexp.MustCompile(what + `:\s+(\d+) kB`).FindSubmatch(status)
	if found == nil {
		tb.Fatalf("no %s in %s", what, status)
	}
	kibibytes, err := strconv.Atoi(string(found[1]))
	if err != nil {
		tb.Fatal(err)
	}
	return kibibytes >> 10
}

// TestWithheldBodiesAreBoundedInSum opens 800 connections that withhold the last
// byte of a search of 1 MiB each. akin keeps no more of them than
// memory.in_flight, answers another search meanwhile, and gives the memory back.
func TestWithheldBodiesAreBoundedInSum(t *testing.T) {
	t.Parallel()
	const clients, size = 800, 1 << 20
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "{}")
	}))
	defer node.Close()
	a := startAkin(t, section{
		"cluster":  section{"urls": []string{node.URL}},
		"matrices": []section{{"name": "main", "file": "none.akin"}}, // without one no search is read
	})
	before := a.memory(t, "VmRSS")
	body := "{" + strings.Repeat(" ", size-2)
	var sent errgroup.Group
	sent.SetLimit(128) // all stay open, but a busy machine does not take 800 connections of the node at once in time
	for range clients {
		sent.Go(func() error {
			c, err := net.DialTimeout("tcp", strings.TrimPrefix(a.url, "http://"), 20*time.Second)
			if err != nil {
				return err
			}
			t.Cleanup(func() { c.Close() })
			c.SetDeadline(time.Now().Add(time.Minute))
			fmt.Fprintf(c, "POST /i/_search HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", size)
			_, err = io.WriteString(c, body)
			return err
		})
	}
	if err := sent.Wait(); err != nil {
		t.Error(err)
	}
	a.must(t, http.MethodPost, "/i/_search", `{"query":{"match_all":{}}}`)
	waitFor(t, time.Minute, "the memory to be given back", func() error {
		if n := a.metric(t, "akin_request_memory_bytes"); n > 0 {
			return fmt.Errorf("%.0f bytes are held", n)
		}
		if now := a.memory(t, "VmRSS"); now > before+150 {
			return fmt.Errorf("%d MiB are resident", now)
		}
		return nil
	})
	most, now := a.memory(t, "VmHWM"), a.memory(t, "VmRSS")
	t.Logf("resident: %d MiB before, at most %d MiB, then %d MiB", before, most, now)
	// One client gets 64 MiB, of which Go makes twice as much, and each connection
	// has the buffers of four sockets and streams.
	if most > before+450 {
		t.Errorf("at most %d MiB were resident", most)
	}
	if n := a.metric(t, "akin_request_memory_rejections_total", `kind="search_body"`); n == 0 {
		t.Error("nothing was refused")
	}
}
