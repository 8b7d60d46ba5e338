package store

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/akin-search/akin/e2e/check"
)

// An authority signs certificates for 127.0.0.1.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(tb testing.TB) *authority {
	tb.Helper()
	a := &authority{dir: tb.TempDir()}
	a.cert, a.key = a.sign(tb, "ca", &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return a
}

// sign writes NAME.crt and NAME.key, signed by the authority, or by itself
// where there is none yet.
func (a *authority) sign(tb testing.TB, name string, template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	tb.Helper()
	key := check.Got(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(tb)
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.Subject = pkix.Name{CommonName: name}
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der := check.Got(x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer))(tb)
	cert := check.Got(x509.ParseCertificate(der))(tb)
	private := check.Got(x509.MarshalPKCS8PrivateKey(key))(tb)
	for suffix, block := range map[string]*pem.Block{
		".crt": {Type: "CERTIFICATE", Bytes: der}, ".key": {Type: "PRIVATE KEY", Bytes: private},
	} {
		check.OK(tb, os.WriteFile(filepath.Join(a.dir, name+suffix), pem.EncodeToMemory(block), 0o600))
	}
	return cert, key
}

func (a *authority) file(name string) string { return filepath.Join(a.dir, name) }

// serverArgs returns what a redis-server with TLS needs; it asks for
// certificates of clients, too.
func (a *authority) serverArgs(tb testing.TB) []string {
	tb.Helper()
	a.sign(tb, "server", &x509.Certificate{
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, // it is a client of other nodes
	})
	return []string{
		"--tls-ca-cert-file", a.file("ca.crt"), "--tls-cert-file", a.file("server.crt"), "--tls-key-file", a.file("server.key"),
		"--tls-replication", "yes", "--tls-cluster", "yes",
	}
}

// client returns what a client that has all certificates trusts and shows.
func (a *authority) client(tb testing.TB) *tls.Config {
	tb.Helper()
	a.sign(tb, "client", &x509.Certificate{KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	shown := check.Got(tls.LoadX509KeyPair(a.file("client.crt"), a.file("client.key")))(tb)
	c := &tls.Config{RootCAs: x509.NewCertPool(), Certificates: []tls.Certificate{shown}}
	c.RootCAs.AddCert(a.cert)
	return c
}

// startTLS starts a redis-server that has a port only for TLS.
func startTLS(tb testing.TB, args ...string) *server {
	tb.Helper()
	port := freePort(tb)
	s := newServer(tb, append([]string{"--port", "0", "--tls-port", port, "--bind", "127.0.0.1"}, args...)...)
	s.port = port
	s.start(tb)
	return s
}

// checkServes pushes a matrix and reads it back.
func checkServes(t *testing.T, at Redis) {
	t.Helper()
	id := publish(t, adminAt(t, at), "one", 2000)
	s := open(t, Options{Redis: at})
	awaitServed(t, s, id)
	wantMark(t, s, "one", term(1), term(2))
}

func TestRedisOverTLSIsVerified(t *testing.T) {
	t.Parallel()
	ca, stranger := newAuthority(t), newAuthority(t)
	r := startTLS(t, ca.serverArgs(t)...)
	all := ca.client(t)
	url := "rediss://" + r.addr()
	checkServes(t, Redis{URL: url, TLS: all})
	checkServes(t, Redis{URL: url + "?skip_verify=true", TLS: &tls.Config{Certificates: all.Certificates}})
	for name, tt := range map[string]struct {
		at   Redis
		want string
	}{
		"the authorities of the system": {Redis{URL: url, TLS: &tls.Config{Certificates: all.Certificates}}, "certificate"},
		"another authority":             {Redis{URL: url, TLS: stranger.client(t)}, "certificate"},
		"no certificate of the client":  {Redis{URL: url, TLS: &tls.Config{RootCAs: all.RootCAs}}, ""}, // Redis may hang up before it says why
		"another host's certificate":    {Redis{URL: "rediss://localhost:" + r.port, TLS: all}, "certificate"},
		"no TLS":                        {Redis{URL: "redis://" + r.addr()}, ""},
	} {
		check.Message(t, tt.want, check.ErrOf(adminAt(t, tt.at).Versions(t.Context(), "main")), name)
	}
}

func TestSentinelAndClusterOverTLS(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	args := ca.serverArgs(t)
	s := startSentinel(t, startTLS(t, args...).port, "port 0", "tls-port PORT", "tls-replication yes", "tls-ca-cert-file "+ca.file("ca.crt"),
		"tls-cert-file "+ca.file("server.crt"), "tls-key-file "+ca.file("server.key"))
	trusted := ca.client(t)
	checkServes(t, Redis{URL: "rediss+sentinel://" + s.addr() + "/main", TLS: trusted})
	checkServes(t, Redis{URL: "rediss+cluster://" + startOnlyNode(t, startTLS, args...).addr(), TLS: trusted})
}

// documentedRights returns the commands of docs/config.md that make the users
// of proxies and pushers. Those that only a cluster needs have cluster.
func documentedRights(t *testing.T, cluster bool) [][]any {
	t.Helper()
	text := check.Got(os.ReadFile("../../docs/config.md"))(t)
	var commands [][]any
	for _, line := range regexp.MustCompile(`(?m)^    ACL SETUSER .*$`).FindAllString(string(text), -1) {
		var command []any
		for word := range strings.FieldsSeq(line) {
			command = append(command, word)
		}
		if cluster || !strings.Contains(line, "cluster") {
			commands = append(commands, command)
		}
	}
	check.Must(t, len(commands) != 0, "docs/config.md has none")
	return commands
}

func TestDocumentedRightsAreEnoughAndNotMore(t *testing.T) {
	t.Parallel()
	single := startOnPort(t)
	watcher := startSentinel(t, single.port)
	clustered := startOnlyNode(t, startOnPort)
	for name, tt := range map[string]struct {
		s   *server
		url func(user string) string
	}{
		"single":   {single, func(user string) string { return "redis://" + user + "@" + single.addr() + "/3" }},
		"sentinel": {single, func(user string) string { return "redis+sentinel://" + user + "@" + watcher.addr() + "/main/4" }},
		"cluster":  {clustered, func(user string) string { return "redis+cluster://" + user + "@" + clustered.addr() }},
	} {
		t.Run(name, func(t *testing.T) {
			for _, command := range documentedRights(t, name == "cluster") {
				check.OK(t, tt.s.client(t).Do(t.Context(), command...).Err())
			}
			pusher, proxy := Redis{URL: tt.url("akin-push:secret")}, Redis{URL: tt.url("akin-proxy:secret")}
			id := useEverything(t, adminAt(t, pusher), "main")
			s := open(t, Options{Redis: proxy})
			awaitServed(t, s, id)
			awaitProblem(t, s, nil)
			wantMark(t, s, "two", term(1))
			reader := adminAt(t, proxy)
			forms, err := reader.AllForms(t.Context(), "main", served(s))
			check.That(t, err == nil && len(forms) != 0, "forms %v, %v", forms, err)
			check.Message(t, "NOPERM", check.ErrOf(reader.Push(t.Context(), "main", newMatrix(t, "x", 1), "", nil)))
			err = reader.Activate(t.Context(), "main", served(s))
			check.That(t, redis.HasErrorPrefix(err, "NOPERM"), "a proxy activates: %v", err)
			_, err = adminAt(t, Redis{URL: tt.url("akin-proxy:wrong")}).Versions(t.Context(), "main")
			check.That(t, err != nil, "a wrong password")
			for user, allowed := range map[string]bool{"akin-push": true, "akin-proxy": false} {
				got := tt.s.client(t).Do(t.Context(), "acl", "dryrun", user, "set", "akin:{main}:active", "x").Val() == "OK"
				other := tt.s.client(t).Do(t.Context(), "acl", "dryrun", user, "get", "other").Val() == "OK"
				check.That(t, got == allowed && !other, "%s: writes akin's keys %v, reads others %v", user, got, other)
			}
		})
	}
}

// useEverything calls all methods of an Admin and returns the version that is
// active then, of two: its mark is "two".
func useEverything(t *testing.T, a *Admin, name string) (active string) {
	t.Helper()
	for _, mark := range []string{"one", "two", "three"} {
		v := check.Got(a.Push(t.Context(), name, newMatrix(t, mark, 3000), "me", nil))(t)
		check.OK(t, a.Activate(t.Context(), name, v.ID))
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if _, err := a.Push(ctx, name, newMatrix(t, "four", many), "", during(cancel)); !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "NOPERM") {
		t.Errorf("a push that is discarded: %v", err)
	}
	active, err := a.Rollback(t.Context(), name)
	check.OK(t, err)
	pruned, err := a.Prune(t.Context(), name, 1)
	check.That(t, err == nil && len(pruned) == 1, "pruned %+v, %v", pruned, err)
	if versions, err := a.Versions(t.Context(), name); err != nil || len(versions) != 2 || !versions[1].Active || versions[1].ID != active {
		t.Errorf("versions %+v, %v", versions, err)
	}
	if _, rows, err := a.Rows(t.Context(), name, "", []string{term(1)}); err != nil || markOf(rows[0]) != "two" {
		t.Errorf("rows %v, %v", rows, err)
	}
	m, v, err := a.Pull(t.Context(), name, "", nil)
	check.That(t, err == nil && v.ID == active && m.Checksum() == newMatrix(t, "two", 3000).Checksum() && v.By == "me", "pulled %+v, %v", v, err)
	return active
}
