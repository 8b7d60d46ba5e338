package configs

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/akin-search/akin/internal/redisurl"
)

// The largest sizes that Load reads. Servers accept maxSecret in a header.
const maxFile, maxSecret = mebibyte, 8 * kibibyte

// Load reads the configuration file at path, and credentials from the
// environment and from files. File names in the configuration are relative to
// its folder. Certificate files must exist; matrix files may come later.
//
// The error joins all problems, each an [Error].
func Load(ctx context.Context, path string) (*Config, error) {
	data, err := readFile(ctx, path, maxFile)
	if err != nil {
		return nil, &Error{File: path, Err: err}
	}
	return LoadText(ctx, path, data)
}

// LoadText is like [Load], but takes the data of the file. path is for errors,
// and file names are relative to its folder.
func LoadText(ctx context.Context, path string, data []byte) (*Config, error) {
	return read(path, data, func(d *decoder, c *Config) {
		environment(d, c)
		files(ctx, d, c, filepath.Dir(path))
	})
}

// Parse is like [Load], but takes the data of the file. name is only for
// errors. It ignores the environment and reads no other files.
func Parse(name string, data []byte) (*Config, error) {
	return read(name, data, func(*decoder, *Config) {})
}

// read decodes data over the defaults, lets outside add what is not in the
// file, and checks everything.
func read(name string, data []byte, outside func(*decoder, *Config)) (*Config, error) {
	c := Default()
	d := newDecoder(name)
	if d.document(data, c) {
		d.cloud(&c.Cluster)
		d.redisURL(c.Redis.URL.Reveal()) // that of the environment may hold credentials
		outside(d, c)
		d.check(c)
	}
	if err := d.err(); err != nil {
		return nil, err
	}
	return c, nil
}

// cloud sets the URL of a cluster that has a cloud ID.
func (d *decoder) cloud(c *Cluster) {
	const key = "cluster.cloud_id"
	if c.CloudID == "" {
		return
	}
	node, err := cloudNode(c.CloudID)
	if err != nil {
		d.add(key, "%w", err)
		return
	}
	if d.lines["cluster.urls"] > 0 {
		d.add(key, "names the cluster, as cluster.urls does: give one of them")
		return
	}
	c.URLs = []string{node}
}

func environment(d *decoder, c *Config) {
	for auth, names := range map[*Auth]authNames{&c.Cluster.Auth: clusterAuth, &c.Listen.Auth: listenAuth} {
		auth.Username = cmp.Or(os.Getenv(names.username), auth.Username)
		auth.Password = NewSecret(os.Getenv(names.password))
		auth.APIKey = NewSecret(os.Getenv(names.apiKey))
	}
	c.Admin.Token = NewSecret(os.Getenv(EnvAdminToken))
	c.Embeddings.Key = NewSecret(os.Getenv(EnvEmbeddingsKey))
	if url := os.Getenv(EnvRedisURL); url != "" {
		c.Redis.URL = NewSecret(url)
		if _, err := redisurl.Parse(url); err != nil {
			d.addAt(0, EnvRedisURL, "%w", err)
		}
	}
}

// files reads credentials from files, unless the environment has them, and
// makes file names relative to dir.
func files(ctx context.Context, d *decoder, c *Config, dir string) {
	auth := &c.Cluster.Auth
	listen, clients := &c.Listen.TLS, &c.Listen.Auth
	redis := &c.Redis.TLS
	content := map[string][]byte{}
	for _, f := range []struct {
		key    string
		name   *string
		secret *Secret // nil: the file must exist and is read later
	}{
		{"listen.tls.cert_file", &listen.CertFile, nil},
		{"listen.tls.key_file", &listen.KeyFile, nil},
		{"listen.auth.password_file", &clients.PasswordFile, &clients.Password},
		{"listen.auth.api_key_file", &clients.APIKeyFile, &clients.APIKey},
		{"cluster.tls.ca_file", &c.Cluster.TLS.CAFile, nil},
		{"cluster.tls.certificate", &c.Cluster.TLS.Certificate, nil},
		{"cluster.tls.key", &c.Cluster.TLS.Key, nil},
		{"cluster.auth.password_file", &auth.PasswordFile, &auth.Password},
		{"cluster.auth.api_key_file", &auth.APIKeyFile, &auth.APIKey},
		{"admin.token_file", &c.Admin.TokenFile, &c.Admin.Token},
		{"embeddings.key_file", &c.Embeddings.KeyFile, &c.Embeddings.Key},
		{"embeddings.ca_file", &c.Embeddings.CAFile, nil},
		{"redis.tls.ca_file", &redis.CAFile, nil},
		{"redis.tls.cert_file", &redis.CertFile, nil},
		{"redis.tls.key_file", &redis.KeyFile, nil},
	} {
		if *f.name == "" {
			continue
		}
		*f.name = under(dir, *f.name)
		if f.secret != nil && f.secret.Reveal() != "" {
			continue
		}
		data, err := readFile(ctx, *f.name, maxFile)
		if err == nil && f.secret != nil {
			*f.secret, err = secretOf(data)
		}
		if err != nil {
			d.add(f.key, "%w", err)
			continue
		}
		content[f.key] = data
	}
	if cert, private := content["cluster.tls.certificate"], content["cluster.tls.key"]; cert != nil && private != nil {
		if _, err := tls.X509KeyPair(cert, private); err != nil {
			d.add("cluster.tls.certificate", "%w", err)
		}
	}
	for _, list := range [][]Matrix{c.Matrices, c.Weights} {
		for i := range list {
			if m := &list[i]; m.File != "" {
				m.File = under(dir, m.File)
			}
		}
	}
	if spool := &c.Cluster.AWS.Spool; *spool != "" {
		*spool = under(dir, *spool)
		if info, err := os.Stat(*spool); err != nil || !info.IsDir() {
			d.add("cluster.aws.spool", "must be a folder that exists")
		}
	}
	if file := &c.Embeddings.File; *file != "" {
		*file = under(dir, *file)
	}
	for i, file := range c.Vectors {
		c.Vectors[i] = under(dir, file)
	}
}

func under(dir, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(dir, name)
}

// secretOf returns the credential in a file of one line.
func secretOf(data []byte) (Secret, error) {
	text := strings.TrimRight(string(data), "\r\n")
	if text == "" || len(data) > int(maxSecret) || strings.ContainsAny(text, "\r\n\x00") {
		return Secret{}, errors.New("the file must hold the credential and nothing else, on one line")
	}
	return NewSecret(text), nil
}

// readFile reads a file of at most limit bytes. Its errors do not contain the
// file name, which may be a credential under the wrong key.
func readFile(ctx context.Context, name string, limit Bytes) ([]byte, error) {
	f, err := Open(ctx, name)
	if err != nil {
		return nil, unreadable(err)
	}
	defer func() { _ = f.Close() }() // the file was only read
	data, err := io.ReadAll(io.LimitReader(f, int64(limit)+1))
	if err != nil {
		return nil, unreadable(err)
	}
	if len(data) > int(limit) {
		return nil, fmt.Errorf("the file is larger than %s", limit)
	}
	return data, nil
}

// unreadable returns why a file cannot be read, without its name.
func unreadable(err error) error {
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		err = pathErr.Err
	}
	return fmt.Errorf("the file cannot be read: %w", err)
}
