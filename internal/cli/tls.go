package cli

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
	err := isRegular(path)
	var pem []byte
	if err == nil {
		pem, err = os.ReadFile(path) //nolint:gosec // the operator names the file
	}
	if err != nil {
		return nil, fmt.Errorf("certificate authorities: %w", err)
	}
	return pem, nil
}

// LoadPair reads a certificate and its private key. Both have to be regular
// files: they are read again when they change, and a pipe would never end.
func LoadPair(cert, key string) (*tls.Certificate, error) {
	if err := errors.Join(isRegular(cert), isRegular(key)); err != nil {
		return nil, err
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	return &pair, err
}

// isRegular returns an error where path is no regular file, nor a link to one.
func isRegular(path string) error {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: not a regular file", path)
	}
	return err
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

// ClusterTLS returns how the requests of clients reach the nodes, and how
// akin's own calls do: these show the certificate that is named. Without one
// the two are the same.
func ClusterTLS(paths configs.ClientTLS) (clients, own *tls.Config, err error) {
	clients = &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: paths.InsecureSkipVerify, //nolint:gosec // off unless the operator asks for it
	}
	if clients.RootCAs, err = Authorities(paths.CAFile); err != nil {
		return nil, nil, fmt.Errorf("cluster.tls.ca_file: %w", err)
	}
	if paths.Certificate == "" {
		return clients, clients, nil
	}
	shown, err := LoadPair(paths.Certificate, paths.Key)
	if err != nil {
		return nil, nil, fmt.Errorf("cluster.tls.certificate: %w", err)
	}
	own = clients.Clone()
	own.Certificates = []tls.Certificate{*shown}
	return clients, own, nil
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
	switch {
	case (paths.CertFile == "") != (paths.KeyFile == ""):
		return nil, errors.New("a certificate to show to Redis needs its private key, and the other way round")
	case paths.CertFile != "":
		shown, err := LoadPair(paths.CertFile, paths.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("certificate to show to Redis: %w", err)
		}
		c.Certificates = []tls.Certificate{*shown}
	}
	return c, nil
}
