//go:build unix

package server

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/akin-search/akin/configs"
)

// A named pipe would stop the handshake that finds it, and with it all later
// ones.
func TestACertificateThatBecomesAPipeIsNotRead(t *testing.T) {
	dir := t.TempDir()
	paths := configs.ServerTLS{CertFile: filepath.Join(dir, "cert.pem"), KeyFile: filepath.Join(dir, "key.pem")}
	cert, key := newPair(t, 1)
	for path, content := range map[string][]byte{paths.CertFile: cert, paths.KeyFile: key} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
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
