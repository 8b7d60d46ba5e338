package configs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/akin-search/akin/e2e/check"
)

// write puts files into a folder of their own and returns it. It also empties
// the environment of what Load reads.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	for _, name := range []string{EnvClusterUsername, EnvClusterPassword, EnvClusterAPIKey, EnvRedisURL} {
		t.Setenv(name, "")
	}
	dir := t.TempDir()
	for name, content := range files {
		check.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	return dir
}

func TestLoadReadsCredentialFiles(t *testing.T) {
	dir := write(t, map[string]string{
		"akin.yml": "cluster: {auth: {username: akin, password_file: password}}\n",
		"password": "hunter2\r\n",
	})
	c := check.Got(Load(t.Context(), filepath.Join(dir, "akin.yml")))(t)
	want := Auth{Username: "akin", PasswordFile: filepath.Join(dir, "password"), Password: NewSecret("hunter2")}
	check.Equal(t, want, c.Cluster.Auth, secrets)
}

func TestEnvironmentOverridesTheFile(t *testing.T) {
	dir := write(t, map[string]string{
		"akin.yml": `
cluster: {auth: {username: file, password_file: password-that-does-not-exist}}
redis: {url: "redis://from-file:6379"}
`,
	})
	t.Setenv(EnvClusterUsername, "env")
	t.Setenv(EnvClusterPassword, "hunter2")
	t.Setenv(EnvRedisURL, "rediss://akin:hunter3@from-env/2?skip_verify=true")
	c := check.Got(Load(t.Context(), filepath.Join(dir, "akin.yml")))(t)
	a := c.Cluster.Auth
	check.That(t, a.Username == "env" && a.Password.Reveal() == "hunter2", "user %q, password %q", a.Username, a.Password.Reveal())
	check.Equal(t, "rediss://akin:hunter3@from-env/2?skip_verify=true", c.Redis.URL.Reveal())
}

func TestEnvironmentIsEnough(t *testing.T) {
	dir := write(t, map[string]string{"akin.yml": "matrices: [{name: main}]\n"})
	t.Setenv(EnvClusterAPIKey, "a2V5")
	t.Setenv(EnvRedisURL, "redis://127.0.0.1:6379")
	c := check.Got(Load(t.Context(), filepath.Join(dir, "akin.yml")))(t)
	check.Equal(t, "a2V5", c.Cluster.Auth.APIKey.Reveal())
}

func TestFileNamesAreTakenFromTheFolderOfTheFile(t *testing.T) {
	dir := write(t, map[string]string{
		"akin.yml": `
listen: {tls: {cert_file: crt.pem, key_file: key.pem}}
cluster: {tls: {ca_file: ca.pem}}
redis: {url: "rediss+cluster://a,b", tls: {ca_file: ca.pem, cert_file: crt.pem, key_file: key.pem}}
matrices:
  - {name: relative, file: later.akin}
  - {name: absolute, file: /srv/akin/main.akin}
vectors: [model.akin]
embeddings: {url: "https://model", fields: [body], key_file: key.txt, ca_file: ca.pem, file: vectors.db}
`,
		"crt.pem": "", "key.pem": "", "ca.pem": "", "key.txt": "secret",
	})
	c := check.Got(Load(t.Context(), filepath.Join(dir, "akin.yml")))(t)
	check.Equal(t, "secret", c.Embeddings.Key.Reveal())
	got := []string{
		c.Listen.TLS.CertFile, c.Listen.TLS.KeyFile, c.Cluster.TLS.CAFile, c.Redis.TLS.CAFile, c.Redis.TLS.CertFile, c.Redis.TLS.KeyFile,
		c.Matrices[0].File, c.Matrices[1].File, c.Vectors[0], c.Embeddings.CAFile, c.Embeddings.File,
	}
	want := []string{
		filepath.Join(dir, "crt.pem"), filepath.Join(dir, "key.pem"), filepath.Join(dir, "ca.pem"),
		filepath.Join(dir, "ca.pem"), filepath.Join(dir, "crt.pem"), filepath.Join(dir, "key.pem"),
		filepath.Join(dir, "later.akin"), "/srv/akin/main.akin", filepath.Join(dir, "model.akin"), filepath.Join(dir, "ca.pem"), filepath.Join(dir, "vectors.db"),
	}
	check.Equal(t, want, got)
}

func TestLoadListsEveryProblem(t *testing.T) {
	const credential = "the file must hold the credential and nothing else, on one line"
	for _, tc := range []struct {
		name  string
		files map[string]string
		env   map[string]string
		want  []string
	}{
		{
			name: "files and values together",
			files: map[string]string{"akin.yml": `
listen:
  tls: {cert_file: crt.pem, key_file: hunter2}
cluster:
  tls: {ca_file: ca.pem}
  auth: {username: akin, password_file: hunter2}
log: {level: loud}
`, "crt.pem": ""},
			want: []string{
				"akin.yml:3: listen.tls.key_file: the file cannot be read: no such file or directory",
				"akin.yml:5: cluster.tls.ca_file: the file cannot be read: no such file or directory",
				"akin.yml:6: cluster.auth.password_file: the file cannot be read: no such file or directory",
				"akin.yml:7: log.level: must be one of debug, info, warn, error",
			},
		},
		{
			name:  "a spool that is no folder, and secrets that can be guessed",
			files: map[string]string{"akin.yml": "listen: {auth: {api_key_file: key}}\ncluster: {urls: ['https://a'], aws: {region: eu-central-1, spool: key}}", "key": "fifteen letters\n"},
			want: []string{
				"akin.yml:1: listen.auth.api_key_file: has a secret of 15 bytes, or AKIN_LISTEN_API_KEY has; the least is 16: it could be guessed",
				"akin.yml:2: cluster.aws.spool: must be a folder that exists",
			},
		},
		{
			name:  "an environment for two ways to authenticate",
			files: map[string]string{"akin.yml": "cluster: {urls: ['https://a'], aws: {region: eu-central-1}}"},
			env:   map[string]string{EnvClusterAPIKey: "a2V5"},
			want:  []string{"akin.yml:1: cluster.aws: does not go with cluster.auth, AKIN_CLUSTER_USERNAME or AKIN_CLUSTER_API_KEY: a request has one Authorization"},
		},
		{
			name:  "empty credential",
			files: map[string]string{"akin.yml": "cluster: {auth: {api_key_file: key}}", "key": "\n"},
			want:  []string{"akin.yml:1: cluster.auth.api_key_file: " + credential},
		},
		{
			name:  "credential of two lines",
			files: map[string]string{"akin.yml": "cluster: {auth: {api_key_file: key}}", "key": "hunter2\nhunter3\n"},
			want:  []string{"akin.yml:1: cluster.auth.api_key_file: " + credential},
		},
		{
			name:  "credential of 9 KiB",
			files: map[string]string{"akin.yml": "cluster: {auth: {api_key_file: key}}", "key": strings.Repeat("x", 9<<10)},
			want:  []string{"akin.yml:1: cluster.auth.api_key_file: " + credential},
		},
		{
			name:  "token that can be guessed",
			files: map[string]string{"akin.yml": "admin: {token_file: token}", "token": "0123456789abcde\n"},
			want:  []string{"akin.yml:1: admin.token_file: has a secret of 15 bytes, or AKIN_ADMIN_TOKEN has; the least is 16: it could be guessed"},
		},
		{
			name:  "file too large",
			files: map[string]string{"akin.yml": "cluster: {tls: {ca_file: ca.pem}}", "ca.pem": strings.Repeat("x", 1<<20+1)},
			want:  []string{"akin.yml:1: cluster.tls.ca_file: the file is larger than 1MiB"},
		},
		{
			name:  "folder in place of a file",
			files: map[string]string{"akin.yml": "cluster: {tls: {ca_file: .}}"},
			want:  []string{"akin.yml:1: cluster.tls.ca_file: the file cannot be read: is a directory"},
		},
		{
			name:  "certificate that is none",
			files: map[string]string{"akin.yml": "cluster:\n  tls: {certificate: crt.pem, key: key.pem}", "crt.pem": "", "key.pem": "hunter2"},
			want:  []string{"akin.yml:2: cluster.tls.certificate: tls: failed to find any PEM data in certificate input"},
		},
		{
			name:  "environment",
			files: map[string]string{"akin.yml": "matrices:\n  - {name: main}\n"},
			env:   map[string]string{EnvClusterUsername: "akin", EnvRedisURL: "akin:hunter2@127.0.0.1"},
			want: []string{
				"akin.yml: AKIN_REDIS_URL: must be redis://host, rediss://host (TLS), unix:///socket, redis+sentinel://host,host/master or " +
					"redis+cluster://host,host; a host may have a :port, a number of a database follows a /, and user:password@ or :password@ " +
					"stands before the hosts, where @ / : ? # % are %40 %2F %3A %3F %23 %25",
				"akin.yml: cluster.auth.username: needs a password, from password_file or AKIN_CLUSTER_PASSWORD",
			},
		},
		{
			name:  "password without a user name",
			files: map[string]string{"akin.yml": ""},
			env:   map[string]string{EnvClusterPassword: "hunter2"},
			want: []string{"akin.yml: cluster.auth.password_file: needs a user name, from username or AKIN_CLUSTER_USERNAME, " +
				"for the password here or in AKIN_CLUSTER_PASSWORD"},
		},
		{
			name:  "API key with a user name",
			files: map[string]string{"akin.yml": "cluster:\n  auth:\n    username: akin\n"},
			env:   map[string]string{EnvClusterPassword: "hunter2", EnvClusterAPIKey: "hunter3"},
			want:  []string{"akin.yml:2: cluster.auth: must be a user name with a password or an API key, not both; the environment counts too"},
		},
		{
			name:  "matrix without a source",
			files: map[string]string{"akin.yml": "matrices:\n  - {name: main}\n"},
			want:  []string{"akin.yml:2: matrices[0].file: must be set where neither redis.url nor AKIN_REDIS_URL is"},
		},
		{name: "no configuration file", want: []string{"akin.yml: the file cannot be read: no such file or directory"}},
		{
			name:  "configuration file too large",
			files: map[string]string{"akin.yml": strings.Repeat("#", 1<<20+1)},
			want:  []string{"akin.yml: the file is larger than 1MiB"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := write(t, tc.files)
			for name, value := range tc.env {
				t.Setenv(name, value)
			}
			_, err := Load(t.Context(), filepath.Join(dir, "akin.yml"))
			check.Must(t, err != nil, "no error")
			got := strings.Split(strings.ReplaceAll(err.Error(), dir+string(filepath.Separator), ""), "\n")
			check.Equal(t, tc.want, got)
			if p := (*Error)(nil); !errors.As(err, &p) || errors.Is(err, fs.ErrNotExist) != strings.Contains(err.Error(), "no such file") {
				t.Error("the error holds no *Error, or not that a file is missing")
			}
		})
	}
}

func TestDeployedFilesLoad(t *testing.T) {
	dir := write(t, map[string]string{"token": "a-secret-of-another-service"})
	paths, err := filepath.Glob("../deploy/*.yml")
	check.Must(t, err == nil && len(paths) != 0, "no files: %v", err)
	for _, path := range append(paths, "../deploy/systemd/akin.yml") {
		text := strings.ReplaceAll(string(check.Got(os.ReadFile(path))(t)), "/token/admin", filepath.Join(dir, "token"))
		file := filepath.Join(dir, "akin.yml")
		check.OK(t, os.WriteFile(file, []byte(text), 0o600))
		_, err := Load(t.Context(), file)
		check.That(t, err == nil, "%s: %v", path, err)
	}
}

func TestAConfigurationFromAPipeIsReadAndOneThatNobodyWritesEndsWithTheContext(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no paths of pipes")
	}
	r, w, err := os.Pipe()
	check.OK(t, err)
	defer r.Close()
	fmt.Fprint(w, "log: {level: warn}\n")
	path := fmt.Sprintf("/dev/fd/%d", r.Fd())
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	check.Error(t, context.DeadlineExceeded, check.ErrOf(Load(ctx, path)))
	fmt.Fprint(w, "log: {level: warn}\n")
	w.Close()
	if c, err := Load(t.Context(), path); err != nil || c.Log.Level != "warn" {
		t.Errorf("%v", err)
	}
}

func TestAdminPortIsExposedUnlessOnThisMachineOnly(t *testing.T) {
	for address, exposed := range map[string]bool{
		"127.0.0.1:9281": false, "127.1.2.3:0": false, "[::1]:9281": false, "localhost:9281": false, "[::ffff:127.0.0.1]:1": false,
		":9281": true, "0.0.0.0:9281": true, "[::]:9281": true, "10.0.0.1:9281": true, "akin.example.org:9281": true, "localhost.example.org:1": true,
	} {
		a := (Admin{Address: address})
		check.That(t, a.Exposed() == exposed, "%s: exposed %v", address, a.Exposed())
	}
}
