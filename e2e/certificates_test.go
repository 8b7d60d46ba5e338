package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// runAuthority signs the certificates of the run. The tests' client trusts it.
var runAuthority = newAuthority()

// An authority signs certificates.
type authority struct {
	cert *x509.Certificate
	der  []byte
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
}

func newAuthority() *authority {
	a := &authority{pool: x509.NewCertPool()}
	template := certificateOf("ca")
	template.IsCA, template.KeyUsage = true, x509.KeyUsageCertSign
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		panic(err)
	}
	if a.der, err = x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key); err != nil {
		panic(err)
	}
	if a.cert, err = x509.ParseCertificate(a.der); err != nil {
		panic(err)
	}
	a.pool.AddCert(a.cert)
	return a
}

// certificateOf is what a certificate of 127.0.0.1 says, for a server as well as
// for a client whose name is the common name.
func certificateOf(name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
}

// issue writes ca.crt, and NAME.crt and NAME.key of each name, into a folder.
func (a *authority) issue(dir string, names ...string) error {
	files := map[string]*pem.Block{"ca.crt": {Type: "CERTIFICATE", Bytes: a.der}}
	for _, name := range names {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return err
		}
		der, err := x509.CreateCertificate(rand.Reader, certificateOf(name), a.cert, key.Public(), a.key)
		if err != nil {
			return err
		}
		private, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			return err
		}
		files[name+".crt"], files[name+".key"] = &pem.Block{Type: "CERTIFICATE", Bytes: der}, &pem.Block{Type: "PRIVATE KEY", Bytes: private}
	}
	for name, block := range files {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// certificates makes a folder with the authority of the run and certificates
// that it signed.
func certificates(tb testing.TB, names ...string) string {
	tb.Helper()
	dir := newDir(tb, "certificates")
	if err := runAuthority.issue(dir, names...); err != nil {
		tb.Fatal(err)
	}
	return dir
}
