//go:build unix

package serve

import (
	"log/slog"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A named pipe would stop the handshake that finds it, and with it all later
// ones.
func TestACertificateThatBecomesAPipeIsNotRead(t *testing.T) {
	paths := writtenPair(t, 1)
	var log lockedBuffer
	c, err := newCertificate(paths, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(paths.CertFile); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(paths.CertFile, 0o600); err != nil {
		t.Fatal(err)
	}
	c.checked = time.Time{}
	got := make(chan error, 1)
	go func() {
		_, err := c.get(nil)
		got <- err
	}()
	select {
	case err := <-got:
		if err != nil || !strings.Contains(log.String(), "not a regular file") {
			t.Errorf("%v; the log: %s", err, log.String())
		}
	case <-time.After(20 * time.Second):
		t.Fatal("it waits for a writer")
	}
	if _, err := newCertificate(paths, slog.Default()); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("at the start: %v", err)
	}
}
