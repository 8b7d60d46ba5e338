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
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(tb, err)
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.Subject = pkix.Name{CommonName: name}
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	must(tb, err)
	cert, err := x509.ParseCertificate(der)
	must(tb, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	must(tb, err)
	for suffix, block := range map[string]*pem.Block{
		".crt": {Type: "CERTIFICATE", Bytes: der}, ".key": {Type: "PRIVATE KEY", Bytes: private},
	} {
		must(tb, os.WriteFile(filepath.Join(a.dir, name+suffix), pem.EncodeToMemory(block), 0o600))
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
	a.sign(tb, "client", &x509.Certificate{
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	shown, err := tls.LoadX509KeyPair(a.file("client.crt"), a.file("client.key"))
	must(tb, err)
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

// checkServes pushes a matrix and reads it back, by an Admin and by a Store.
func checkServes(t *testing.T, at Redis) {
	t.Helper()
	a := adminAt(t, at)
	id := publish(t, a, newMatrix(t, "one", 2000))
	s := open(t, Options{Redis: at})
	waitFor(t, 10*time.Second, "the version", func() bool { return served(s) == id })
	if rows, err := rowsOf(t, s, term(1), term(2)); err != nil || markOf(rows[1]) != "one" {
		t.Errorf("rows %v, %v", rows, err)
	}
	if _, _, err := a.Pull(t.Context(), "main", "", nil); err != nil {
		t.Error(err)
	}
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
		if _, err := adminAt(t, tt.at).Versions(t.Context(), "main"); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSentinelOverTLS(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	r := startTLS(t, ca.serverArgs(t)...)
	s := startSentinel(t, r.port, "port 0", "tls-port PORT", "tls-replication yes", "tls-ca-cert-file "+ca.file("ca.crt"),
		"tls-cert-file "+ca.file("server.crt"), "tls-key-file "+ca.file("server.key"))
	checkServes(t, Redis{URL: "rediss+sentinel://" + s.addr() + "/main", TLS: ca.client(t)})
}

func TestClusterOverTLS(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	node := nodes{}.startNodeWith(t, startTLS, append(ca.serverArgs(t), "--cluster-announce-ip", "127.0.0.1")...)
	must(t, node.client(t).Do(t.Context(), "cluster", "addslotsrange", 0, slots-1).Err())
	waitFor(t, 20*time.Second, "the slots", func() bool {
		return strings.Contains(node.client(t).ClusterInfo(t.Context()).Val(), "cluster_state:ok")
	})
	checkServes(t, Redis{URL: "rediss+cluster://" + node.addr(), TLS: ca.client(t)})
}

// documentedRights returns the commands of docs/config.md that make the users
// of proxies and pushers. Those that only a cluster needs have cluster.
func documentedRights(t *testing.T, cluster bool) [][]any {
	t.Helper()
	text, err := os.ReadFile("../../docs/config.md")
	must(t, err)
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
	if len(commands) == 0 {
		t.Fatal("docs/config.md has none")
	}
	return commands
}

// TestDocumentedRightsAreEnoughAndNotMore does everything there is to do with
// the users of docs/config.md, and what they may not.
func TestDocumentedRightsAreEnoughAndNotMore(t *testing.T) {
	t.Parallel()
	single := startOnPort(t)
	watcher := startSentinel(t, single.port)
	clustered := nodes{}.startNode(t)
	must(t, clustered.client(t).Do(t.Context(), "cluster", "addslotsrange", 0, slots-1).Err())
	waitFor(t, 20*time.Second, "the slots", func() bool {
		return strings.Contains(clustered.client(t).ClusterInfo(t.Context()).Val(), "cluster_state:ok")
	})
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
				must(t, tt.s.client(t).Do(t.Context(), command...).Err())
			}
			pusher, proxy := Redis{URL: tt.url("akin-push:secret")}, Redis{URL: tt.url("akin-proxy:secret")}
			useEverything(t, adminAt(t, pusher))
			s := open(t, Options{Redis: proxy})
			waitFor(t, 10*time.Second, "the version", func() bool { return served(s) != "" })
			if rows, err := rowsOf(t, s, term(1)); err != nil || markOf(rows[0]) == "" {
				t.Errorf("rows %v, %v", rows, err)
			}
			if states := s.State(); states[0].Problem != "" {
				t.Errorf("state %+v", states)
			}
			reader := adminAt(t, proxy)
			if forms, err := reader.AllForms(t.Context(), "main", served(s)); err != nil || len(forms) == 0 {
				t.Errorf("forms %v, %v", forms, err)
			}
			if _, err := reader.Push(t.Context(), "main", newMatrix(t, "x", 1), "", nil); err == nil || !strings.Contains(err.Error(), "NOPERM") {
				t.Errorf("a proxy pushes: %v", err)
			}
			if err := reader.Activate(t.Context(), "main", served(s)); !redis.HasErrorPrefix(err, "NOPERM") {
				t.Errorf("a proxy activates: %v", err)
			}
			if _, err := adminAt(t, Redis{URL: tt.url("akin-proxy:wrong")}).Versions(t.Context(), "main"); err == nil {
				t.Error("a wrong password")
			}
			for user, allowed := range map[string]bool{"akin-push": true, "akin-proxy": false} {
				got := tt.s.client(t).Do(t.Context(), "acl", "dryrun", user, "set", "akin:{main}:active", "x").Val() == "OK"
				other := tt.s.client(t).Do(t.Context(), "acl", "dryrun", user, "get", "other").Val() == "OK"
				if got != allowed || other {
					t.Errorf("%s: writes akin's keys %v, reads others %v", user, got, other)
				}
			}
		})
	}
}

// TestMissingRightIsReported refuses a call of the poll that is not its first.
func TestMissingRightIsReported(t *testing.T) {
	t.Parallel()
	r := startOnPort(t)
	id := publish(t, r.admin(t), newMatrix(t, "one", 10))
	user := func(rights ...any) {
		t.Helper()
		must(t, r.client(t).Do(t.Context(), append([]any{"acl", "setuser", "proxy"}, rights...)...).Err())
	}
	user("on", ">secret", "~akin:*", "-@all", "+get", "+hget", "+hmget")
	s := open(t, Options{Redis: Redis{URL: "redis://proxy:secret@" + r.addr()}})
	waitFor(t, 10*time.Second, "the refusal to be reported", func() bool { return strings.Contains(s.State()[0].Problem, "NOPERM") })
	if got := served(s); got != "" {
		t.Errorf("version %s without the right to it", got)
	}
	user("+hlen")
	waitFor(t, 10*time.Second, "the version", func() bool { return served(s) == id && s.State()[0].Problem == "" })
}

// useEverything calls all methods of an Admin.
func useEverything(t *testing.T, a *Admin) {
	t.Helper()
	for _, mark := range []string{"one", "two", "three"} {
		publish(t, a, newMatrix(t, mark, 100))
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if _, err := a.Push(ctx, "main", manyBatches(t, "four"), "", during(cancel)); !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "NOPERM") {
		t.Errorf("a push that is discarded: %v", err)
	}
	_, err := a.Rollback(t.Context(), "main")
	must(t, err)
	pruned, err := a.Prune(t.Context(), "main", 1)
	if err != nil || len(pruned) != 1 {
		t.Errorf("pruned %+v, %v", pruned, err)
	}
	if versions, err := a.Versions(t.Context(), "main"); err != nil || len(versions) != 2 {
		t.Errorf("versions %+v, %v", versions, err)
	}
	if _, rows, err := a.Rows(t.Context(), "main", "", []string{term(1)}); err != nil || markOf(rows[0]) != "two" {
		t.Errorf("rows %v, %v", rows, err)
	}
	if _, _, err := a.Pull(t.Context(), "main", "", nil); err != nil {
		t.Error(err)
	}
}
