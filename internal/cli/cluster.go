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
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/internal/limits"
	"github.com/akin-search/akin/internal/searches"
	"github.com/akin-search/akin/internal/sign"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/store"
)

// Credentials says in help texts where credentials come from.
const Credentials = `Credentials for the cluster come from ` + configs.EnvClusterUsername + ` and ` + configs.EnvClusterPassword + ` or
from ` + configs.EnvClusterAPIKey + `; without --cluster those of the configuration count, too.`

// maxUpload limits the bodies that a command holds to sign them.
const maxUpload = 128 << 20

// A Cluster names a cluster, and for most commands indices in it.
type Cluster struct {
	URL, CAFile, Index string
	AWS                configs.AWS

	configured *configs.Cluster // unless --cluster names another
}

// Register adds the flags; usage is that of --cluster.
func (f *Cluster) Register(flags *pflag.FlagSet, usage string) {
	f.RegisterServer(flags, usage)
	flags.StringVar(&f.Index, "index", "", "index, alias, data stream, or several as in a search")
}

// RegisterServer adds only the flags of the cluster.
func (f *Cluster) RegisterServer(flags *pflag.FlagSet, usage string) {
	flags.StringVar(&f.URL, "cluster", "", usage)
	flags.StringVar(&f.CAFile, "ca-file", "", "PEM file of the authorities that sign the cluster's certificate; default the system's")
	flags.StringVar(&f.AWS.Region, "aws-region", "", "sign requests for Amazon OpenSearch Service in this region, with the credentials of AWS_*")
	flags.StringVar(&f.AWS.Service, "aws-service", "es", "what is signed for: es, or aoss for serverless collections")
}

// Configure takes the cluster of the configuration, its credentials and
// certificates, unless --cluster names one.
func (f *Cluster) Configure(c *configs.Config, given func(flag string) bool) error {
	if given("cluster") {
		return nil
	}
	at := c.Cluster
	at.URLs = at.URLs[:1] // commands ask one node
	if given("ca-file") {
		at.TLS.CAFile = f.CAFile
	}
	if given("aws-region") {
		at.AWS.Region = f.AWS.Region
	}
	if given("aws-service") {
		at.AWS.Service = f.AWS.Service
	}
	f.URL, f.CAFile = at.URLs[0], at.TLS.CAFile
	f.AWS, f.configured = at.AWS, &at
	return nil
}

// Config returns the cluster as a configuration has it, with the credentials of
// the configuration or else the environment.
func (f *Cluster) Config() configs.Cluster {
	if f.configured != nil {
		return *f.configured
	}
	return configs.Cluster{
		URLs: []string{f.URL}, TLS: configs.ClientTLS{CAFile: f.CAFile}, AWS: f.AWS,
		Auth: configs.Auth{
			Username: os.Getenv(configs.EnvClusterUsername),
			Password: configs.NewSecret(os.Getenv(configs.EnvClusterPassword)),
			APIKey:   configs.NewSecret(os.Getenv(configs.EnvClusterAPIKey)),
		},
	}
}

// At returns the same at another URL, of an akin that signs by itself.
func (f *Cluster) At(url string) *Cluster {
	c := f.Config()
	c.AWS = configs.AWS{}
	return &Cluster{URL: url, CAFile: f.CAFile, configured: &c}
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

// Open returns a client of the cluster.
func (f *Cluster) Open() (*esclient.Client, error) {
	if f.URL == "" {
		return nil, Usage(errors.New("give --cluster URL, or write a configuration that names it: akin init"))
	}
	c := f.Config()
	if err := c.CheckAWS(); err != nil {
		return nil, Usage(err)
	}
	_, own, err := ClusterTLS(c.TLS)
	if err != nil && f.configured == nil {
		err = fmt.Errorf("--ca-file: %w", errors.Unwrap(err))
	}
	if err != nil {
		return nil, Usage(err)
	}
	client, err := esclient.New(esclient.Options{
		URL:      f.URL,
		TLS:      own,
		Sign:     Signing(&c.AWS, limits.New(maxUpload), nil),
		Username: c.Auth.Username, Password: c.Auth.Password.Reveal(), APIKey: c.Auth.APIKey.Reveal(),
	})
	if err != nil && !strings.Contains(f.URL, "://") {
		err = fmt.Errorf("--cluster %s: give it with http:// or https://", f.URL)
	}
	return client, Usage(err)
}

// A Redis names a matrix in a Redis.
type Redis struct {
	URL, Name string // Name is "" for that of the configuration, or main
	TLS       configs.RedisTLS

	named bool // the command asks for a name
}

// Register adds the flags.
func (f *Redis) Register(cmd *cobra.Command) {
	f.RegisterServer(cmd)
	f.named = true
	cmd.Flags().StringVar(&f.Name, "name", "", "name of the matrix, as in the configuration; default the only one there that has no file, or main")
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

// Configure takes the Redis of the configuration, unless --redis names one, and
// the name of its matrix.
func (f *Redis) Configure(c *configs.Config, given func(flag string) bool) error {
	if !given("redis") {
		files := c.Redis.TLS
		f.URL = c.Redis.URL.Reveal()
		f.TLS.CAFile = cmp.Or(f.TLS.CAFile, files.CAFile)
		f.TLS.CertFile, f.TLS.KeyFile = cmp.Or(f.TLS.CertFile, files.CertFile), cmp.Or(f.TLS.KeyFile, files.KeyFile)
	}
	stored := slices.DeleteFunc(slices.Clone(c.Matrices), func(m configs.Matrix) bool { return m.File != "" })
	switch {
	case f.Name != "":
	case len(stored) > 1 && f.named:
		return fmt.Errorf("several matrices are in Redis, %s: choose one with --name", names(stored))
	case len(stored) == 1:
		f.Name = stored[0].Name
	}
	return nil
}

// With calls call with the Redis that the flags name.
func (f *Redis) With(call func(admin *store.Admin) error) error {
	url := cmp.Or(f.URL, os.Getenv(configs.EnvRedisURL))
	if url == "" {
		return Usage(errors.New("no Redis: give --redis URL, set " + configs.EnvRedisURL + ", or name it in " + UsualConfig))
	}
	f.Name = cmp.Or(f.Name, "main")
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

// IsMatrix reports whether ref names a matrix, see [MatrixHelp]: a file that is
// there or ends in .akin, or a version in Redis.
func IsMatrix(ref string) bool {
	info, err := os.Stat(ref)
	return err == nil && !info.IsDir() || filepath.Ext(ref) == ".akin" || inRedis.MatchString(ref)
}

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

// Searches returns where the texts of searches are kept.
func Searches(cfg *configs.Config) (searches.Options, error) {
	certificates, err := RedisTLS(cfg.Redis.TLS)
	return searches.Options{
		Keep: int(time.Duration(cfg.Searches.Keep) / (24 * time.Hour)), File: cfg.Searches.File,
		Redis: store.Redis{URL: cfg.Redis.URL.Reveal(), TLS: certificates},
	}, err
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
