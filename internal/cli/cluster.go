// Package cli is shared by the commands: flags for cluster and Redis, and
// advice after errors (cluster.go, next.go), files read and written whole
// (files.go), and progress and messages (terminal.go).
package cli

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/internal/limits"
	"github.com/akin-search/akin/internal/sign"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/store"
)

// Credentials says in help texts where credentials come from.
const Credentials = `Credentials for the cluster come from ` + configs.EnvClusterUsername + ` and ` + configs.EnvClusterPassword + ` or
from ` + configs.EnvClusterAPIKey + `.`

// maxUpload limits the bodies that a command holds to sign them.
const maxUpload = 128 << 20

// A Cluster names a cluster, and for most commands indices in it.
type Cluster struct {
	URL, CAFile, Index string
	AWS                configs.AWS
}

// Register adds the flags; usage is that of --cluster.
func (f *Cluster) Register(flags *pflag.FlagSet, usage string) {
	f.RegisterServer(flags, "cluster", usage)
	flags.StringVar(&f.Index, "index", "", "index, alias, data stream, or several as in a search")
}

// RegisterServer adds only the flags of the cluster; name is that of its URL.
func (f *Cluster) RegisterServer(flags *pflag.FlagSet, name, usage string) {
	flags.StringVar(&f.URL, name, "", usage)
	flags.StringVar(&f.CAFile, "ca-file", "", "PEM file of the authorities that sign the cluster's certificate; default the system's")
	flags.StringVar(&f.AWS.Region, "aws-region", "", "sign requests for Amazon OpenSearch Service in this region, with the credentials of AWS_*")
	flags.StringVar(&f.AWS.Service, "aws-service", "es", "what is signed for: es, or aoss for serverless collections")
}

// Signing returns what signs the requests to a cluster on Amazon, or nil.
func Signing(aws *configs.AWS, memory *limits.Budget, log *slog.Logger) func(http.RoundTripper) http.RoundTripper {
	if !aws.Signs() {
		return nil
	}
	return sign.New(sign.Options{
		Region: aws.Region, Service: aws.Service, Profile: aws.Profile, RoleARN: aws.RoleARN, Spool: aws.Spool, Memory: memory, Logger: log,
	}).Transport
}

// Open returns a client with the credentials in the environment.
func (f *Cluster) Open() (*esclient.Client, error) {
	ca, err := ReadAuthorities(f.CAFile)
	if err = errors.Join(err, (&configs.Cluster{URLs: []string{f.URL}, AWS: f.AWS}).CheckAWS()); err != nil {
		return nil, Usage(err)
	}
	client, err := esclient.New(esclient.Options{
		URL:      f.URL,
		CA:       ca,
		Sign:     Signing(&f.AWS, limits.New(maxUpload), nil),
		Username: os.Getenv(configs.EnvClusterUsername),
		Password: os.Getenv(configs.EnvClusterPassword),
		APIKey:   os.Getenv(configs.EnvClusterAPIKey),
	})
	return client, Usage(err)
}

// A Redis names a matrix in a Redis.
type Redis struct {
	URL, Name string
	TLS       configs.RedisTLS
}

// Register adds the flags.
func (f *Redis) Register(cmd *cobra.Command) {
	f.RegisterServer(cmd)
	cmd.Flags().StringVar(&f.Name, "name", "main", "name of the matrix, as in the configuration")
}

// RegisterServer adds the flags of the Redis, without the matrix.
func (f *Redis) RegisterServer(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.URL, "redis", "", "URL of Redis, Sentinels or a cluster; default $"+configs.EnvRedisURL+
		", which keeps a password out of the process list")
	flags.StringVar(&f.TLS.CAFile, "redis-ca-file", "", "PEM file of the authorities that sign the certificate of Redis; default the system's")
	flags.StringVar(&f.TLS.CertFile, "redis-cert-file", "", "PEM file of a certificate to show to Redis")
	flags.StringVar(&f.TLS.KeyFile, "redis-key-file", "", "PEM file of its private key")
}

// With calls call with the Redis that the flags name.
func (f *Redis) With(call func(admin *store.Admin) error) error {
	url := cmp.Or(f.URL, os.Getenv(configs.EnvRedisURL))
	if url == "" {
		return Usage(errors.New("no Redis: give --redis URL or set " + configs.EnvRedisURL))
	}
	certificates, err := RedisTLS(f.TLS)
	if err != nil {
		return Usage(err)
	}
	admin, err := store.OpenAdmin(store.Redis{URL: url, TLS: certificates})
	if err != nil {
		return Usage(err)
	}
	if err = call(admin); errors.Is(err, store.ErrName) {
		err = Usage(err)
	}
	return errors.Join(err, admin.Close())
}

// MatrixHelp explains MATRIX on command lines.
const MatrixHelp = `MATRIX is a file, or NAME@VERSION or NAME@active in Redis. A file of that name goes
before Redis.`

const activeVersion = "active"

// inRedis matches NAME@VERSION. Names have no other characters.
var inRedis = regexp.MustCompile(`^[A-Za-z0-9._-]+@[A-Za-z0-9._-]+$`)

// Matrix reads the matrix ref, see [MatrixHelp], from a file or from Redis,
// with progress on stderr.
func (f *Redis) Matrix(ctx context.Context, stderr io.Writer, ref string) (*simmatrix.Matrix, error) {
	_, err := os.Stat(ref)
	if !errors.Is(err, fs.ErrNotExist) {
		return ReadMatrix(ctx, ref)
	}
	if !inRedis.MatchString(ref) {
		return nil, fmt.Errorf("%w; name a file, or NAME@VERSION or NAME@%s in Redis", err, activeVersion)
	}
	name, version, _ := strings.Cut(ref, "@")
	if version == activeVersion {
		version = ""
	}
	var m *simmatrix.Matrix
	err = f.With(func(admin *store.Admin) (err error) {
		report := NewProgress(stderr)
		defer report.End()
		m, _, err = admin.Pull(ctx, name, version, report.Step)
		return err
	})
	switch {
	case errors.As(err, new(UsageError)):
		return nil, fmt.Errorf("%s is no file, and cannot be looked for in Redis: %w", ref, err)
	case errors.Is(err, store.ErrUnknownVersion), errors.Is(err, store.ErrNoVersion):
		return nil, fmt.Errorf("%s in Redis: %w; akin matrix list --name %s lists the versions", ref, err, name)
	case err != nil:
		return nil, fmt.Errorf("%s in Redis: %w", ref, err)
	}
	return m, nil
}

// ReadAuthorities reads a PEM file of certificate authorities, nil for "".
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

// LoadPair reads a certificate and its private key. Both must be regular files:
// they are read again when they change, and a pipe would never end.
func LoadPair(cert, key string) (*tls.Certificate, error) {
	if err := errors.Join(isRegular(cert), isRegular(key)); err != nil {
		return nil, err
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	return &pair, err
}

// isRegular returns an error unless path is a regular file or a link to one.
func isRegular(path string) error {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: not a regular file", path)
	}
	return err
}

// Authorities returns those of a PEM file; nil, the system's, for "".
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

// ClusterTLS returns the TLS settings for clients' requests and for akin's own
// calls, which show the configured certificate. Without one they are the same.
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

// RedisTLS reads the certificates for Redis, nil if none is configured.
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
