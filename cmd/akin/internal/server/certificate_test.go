package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/akin-search/akin/configs"
)

// newPair returns a certificate with this serial number, and its key, in PEM.
func newPair(t *testing.T, serial int64) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})
}

// While a new pair is being written, a file at a time, clients are shown the old
// one; the log says once that it cannot be used.
func TestRenewedCertificateIsTakenUp(t *testing.T) {
	dir := t.TempDir()
	files := configs.ServerTLS{CertFile: filepath.Join(dir, "cert.pem"), KeyFile: filepath.Join(dir, "key.pem")}
	modified := time.Now()
	put := func(name string, content []byte) {
		t.Helper()
		modified = modified.Add(time.Second) // however coarse the clock of the file system is
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(name, modified, modified); err != nil {
			t.Fatal(err)
		}
	}
	cert, key := newPair(t, 1)
	put(files.CertFile, cert)
	put(files.KeyFile, key)
	var log lockedBuffer
	c, err := newCertificate(files, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", c.config())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_ = conn.(*tls.Conn).HandshakeContext(t.Context())
			conn.Close()
		}
	}()
	shown := func() int64 {
		t.Helper()
		c.mu.Lock()
		c.checked = time.Time{} // as if some seconds had gone by
		c.mu.Unlock()
		conn, err := tls.DialWithDialer(&net.Dialer{Timeout: 10 * time.Second}, "tcp", l.Addr().String(), &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	cert, key = newPair(t, 2)
	for _, step := range []struct {
		name string
		do   func()
		want int64
	}{
		{"at the start", func() {}, 1},
		{"the certificate alone is new", func() { put(files.CertFile, cert) }, 1},
		{"and once more", func() {}, 1},
		{"half a key", func() { put(files.KeyFile, key[:len(key)/2]) }, 1},
		{"both are new", func() { put(files.KeyFile, key) }, 2},
		{"a file is gone", func() { os.Remove(files.CertFile) }, 2},
		{"and is there again", func() { put(files.CertFile, cert) }, 2},
	} {
		step.do()
		if got := shown(); got != step.want {
			t.Errorf("%s: certificate %d is shown, want %d", step.name, got, step.want)
		}
	}
	cert, key = newPair(t, 3)
	files = configs.ServerTLS{CertFile: filepath.Join(dir, "cert-3.pem"), KeyFile: filepath.Join(dir, "key-3.pem")}
	put(files.CertFile, cert)
	put(files.KeyFile, key)
	next, err := newCertificate(files, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if c.replace(next); shown() != 3 {
		t.Error("the certificate of other files is not shown")
	}
	if n := strings.Count(log.String(), "cannot be used"); n != 3 { // the certificate alone, half a key, a file gone
		t.Errorf("the log tells of %d changes that cannot be used:\n%s", n, log.String())
	}
}

func TestConnectionsLeaveFilesForAllElse(t *testing.T) {
	for _, tt := range []struct {
		name       string
		configured int
		files      uint64
		want       int
	}{
		{"configured", 7, 256, 7},
		{"256 files", 0, 256, 42}, // (256 - 128) / 3
		{"1024 files", 0, 1024, 298},
		{"hardly any files", 0, 50, 16},
		{"very many files", 0, 1 << 20, 10000},
		{"no bound", 0, math.MaxUint64, 10000},
		{"not known", 0, 0, 10000},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := connections(tt.configured, tt.files); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}
