//go:build unix

package serve

import (
	"log/slog"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/akin-search/akin/e2e/check"
)

// A named pipe would stop the handshake that finds it, and with it all later
// ones.
func TestACertificateThatBecomesAPipeIsNotRead(t *testing.T) {
	paths := writtenPair(t, 1)
	var log lockedBuffer
	c := check.Got(newCertificate(paths, slog.New(slog.NewTextHandler(&log, nil))))(t)
	check.OK(t, os.Remove(paths.CertFile))
	check.OK(t, syscall.Mkfifo(paths.CertFile, 0o600))
	c.checked = time.Time{}
	got := make(chan error, 1)
	go func() {
		_, err := c.get(nil)
		got <- err
	}()
	select {
	case err := <-got:
		check.That(t, err == nil && strings.Contains(log.String(), "not a regular file"), "%v; the log: %s", err, log.String())
	case <-time.After(20 * time.Second):
		t.Fatal("it waits for a writer")
	}
	check.Message(t, "not a regular file", check.ErrOf(newCertificate(paths, slog.Default())), "at the start")
}
