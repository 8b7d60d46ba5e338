package serve

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/e2e/check"
)

// newPair returns a certificate with this serial number, and its key, in PEM.
func newPair(t *testing.T, serial int64) (cert, key []byte) {
	t.Helper()
	private := check.Got(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour)}
	der := check.Got(x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private))(t)
	encoded := check.Got(x509.MarshalPKCS8PrivateKey(private))(t)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})
}

// writtenPair returns the files of a new certificate.
func writtenPair(t *testing.T, serial int64) configs.ServerTLS {
	t.Helper()
	dir := t.TempDir()
	paths := configs.ServerTLS{CertFile: filepath.Join(dir, "cert.pem"), KeyFile: filepath.Join(dir, "key.pem")}
	cert, key := newPair(t, serial)
	for path, content := range map[string][]byte{paths.CertFile: cert, paths.KeyFile: key} {
		check.OK(t, os.WriteFile(path, content, 0o600))
	}
	return paths
}

func TestRenewedCertificateIsTakenUp(t *testing.T) {
	files, others := writtenPair(t, 1), writtenPair(t, 3)
	modified := time.Now()
	put := func(name string, content []byte) {
		t.Helper()
		modified = modified.Add(time.Second) // however coarse the clock of the file system is
		check.OK(t, os.WriteFile(name, content, 0o600))
		check.OK(t, os.Chtimes(name, modified, modified))
	}
	var log lockedBuffer
	c := check.Got(newCertificate(files, slog.New(slog.NewTextHandler(&log, nil))))(t)
	shown := func() int64 {
		t.Helper()
		c.mu.Lock()
		c.checked = time.Time{} // as if some seconds had gone by
		c.mu.Unlock()
		near, far := net.Pipe()
		defer near.Close()
		go func() { _ = tls.Server(far, c.config()).HandshakeContext(t.Context()) }()
		conn := tls.Client(near, &tls.Config{InsecureSkipVerify: true})
		check.OK(t, conn.HandshakeContext(t.Context()))
		return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	cert, key := newPair(t, 2)
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
		check.Equal(t, step.want, shown(), step.name)
	}
	next := check.Got(newCertificate(others, slog.New(slog.DiscardHandler)))(t)
	c.replace(next)
	check.Equal(t, 3, shown(), "the certificate of other files is not shown")
	if n := strings.Count(log.String(), "cannot be used"); n != 3 { // the certificate alone, half a key, a file gone
		t.Errorf("the log tells of %d changes that cannot be used:\n%s", n, log.String())
	}
}

func TestReloadShowsTheCertificateOfTheFilesThatItNames(t *testing.T) {
	node := refusingCluster(t, http.StatusOK)
	first, second, broken := writtenPair(t, 1), writtenPair(t, 2), writtenPair(t, 3)
	broken.KeyFile = first.KeyFile // of another certificate
	shown := check.Got(newCertificate(first, slog.New(slog.DiscardHandler)))(t)
	a, log := startApp(t, node, func(cfg *configs.Config) { cfg.Listen.TLS = first })
	r := reloaderOf(t, a, log, "")
	r.shown = shown
	for _, paths := range []configs.ServerTLS{second, broken} {
		config := fmt.Sprintf("listen: {tls: {cert_file: '%s', key_file: '%s'}}\ncluster: {urls: ['%s']}\n", paths.CertFile, paths.KeyFile, node)
		check.OK(t, os.WriteFile(r.file, []byte(config), 0o600))
		r.reload(t.Context())
		pair, err := shown.get(nil)
		check.That(t, err == nil && pair.Leaf.SerialNumber.Int64() == 2, "another one is shown, %v, and the log says\n%s", err, log.String())
	}
	if r.app == a || !r.app.process.reloadFailed.Load() {
		t.Error("the files of a pair that does not fit together are no failure, or those of one that does are")
	}
	r.close()
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
			check.Equal(t, tt.want, connections(tt.configured, tt.files))
		})
	}
}
