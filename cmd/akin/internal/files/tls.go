package files

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	"github.com/akin-search/akin/configs"
)

// ReadAuthorities reads a PEM file of certificate authorities; nil for "".
func ReadAuthorities(path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(path) //nolint:gosec // the operator names the file
	if err != nil {
		return nil, fmt.Errorf("certificate authorities: %w", err)
	}
	return pem, nil
}

// Authorities returns those of a PEM file; nil for "", which are the system's.
func Authorities(path string) (*x509.CertPool, error) {
	pem, err := ReadAuthorities(path)
	if err != nil || pem == nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s: no certificate in it", path)
	}
	return pool, nil
}

// RedisTLS reads the certificates that are named; nil where none is.
func RedisTLS(paths configs.RedisTLS) (*tls.Config, error) {
	if paths == (configs.RedisTLS{}) {
		return nil, nil
	}
	pool, err := Authorities(paths.CAFile)
	if err != nil {
		return nil, err
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}
	if (paths.CertFile == "") != (paths.KeyFile == "") {
		return nil, errors.New("a certificate to show to Redis needs its private key, and the other way round")
	}
	if paths.CertFile != "" {
		shown, err := tls.LoadX509KeyPair(paths.CertFile, paths.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("certificate to show to Redis: %w", err)
		}
		c.Certificates = []tls.Certificate{shown}
	}
	return c, nil
}
