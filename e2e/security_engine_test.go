package e2e

import (
	"archive/zip"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// securityPlugin is the security plugin for the OpenSearch of engines/opensearch2.
const securityPlugin = "org.opensearch.plugin:opensearch-security:2.19.1.0:zip"

// password is that of every user, and passwordHash its bcrypt at the lowest cost,
// for the plugin checks it again and again.
const (
	password     = "admin"
	passwordHash = "$2a$04$VcCDgh2NDk07JGN0rjGbM.dAuUrXQj2O7NFquMPWcjsyrl5uDfvkq"
)

// securityConfig are the files that say who may do what. "akin" has the role that
// docs/security.md recommends; "reader" may search the indices of the fixture,
// "own" only those documents of it that are about cars.
var securityConfig = map[string]string{
	"internal_users.yml": `_meta: {type: internalusers, config_version: 2}
admin: {hash: "` + passwordHash + `", backend_roles: [admin]}
akin: {hash: "` + passwordHash + `"}
reader: {hash: "` + passwordHash + `"}
own: {hash: "` + passwordHash + `"}
stranger: {hash: "` + passwordHash + `"}
`,
	"roles.yml": `_meta: {type: roles, config_version: 2}
akin:
  cluster_permissions: [cluster:monitor/main, cluster_composite_ops_ro]
  index_permissions:
  - {index_patterns: ["akin-e2e-*"], allowed_actions: [read, "indices:admin/get", "indices:admin/mappings/fields/get*", "indices:admin/analyze*", "indices:monitor/settings/get"]}
reader:
  cluster_permissions: [cluster_composite_ops_ro]
  index_permissions:
  - {index_patterns: ["akin-e2e-related"], allowed_actions: [read]}
own:
  index_permissions:
  - {index_patterns: ["akin-e2e-related"], allowed_actions: [read, "indices:admin/validate/query*"], dls: '{"match":{"body":"car"}}'}
`,
	"roles_mapping.yml": `_meta: {type: rolesmapping, config_version: 2}
all_access: {backend_roles: [admin]}
akin: {users: [akin]}
reader: {users: [reader]}
own: {users: [own]}
`,
}

// securedEngine starts an OpenSearch with its security plugin, which asks every
// client for a name and a password.
func securedEngine(t *testing.T) *engine {
	t.Helper()
	all, err := engines()
	if err != nil {
		t.Fatal(err)
	}
	k := slices.IndexFunc(all, func(e *engine) bool { return e.name == "opensearch2" && e.ours })
	if k < 0 {
		t.Skip("only OpenSearch 2 is started with security")
	}
	e := &engine{engineKind: all[k].engineKind, ours: true, user: "admin:" + password + "@"}
	e.start = func() error { return nil }
	if err := e.launchSecured(newDir(t, "secured")); err != nil {
		skipOrFail(t, "needs OpenSearch with %s: %v", securityPlugin, err)
	}
	e.proc.logOnFailure(t)
	t.Cleanup(func() { _ = e.proc.stop() })
	return e
}

func (e *engine) launchSecured(home string) error {
	jars, err := e.pluginJars(home, securityPlugin)
	if err != nil {
		return err
	}
	config := filepath.Join(home, "config")
	rules := filepath.Join(config, "opensearch-security")
	if err := os.MkdirAll(config, 0o700); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(jars, "config"), rules); err != nil {
		return err
	}
	for name, content := range securityConfig {
		if err := os.WriteFile(filepath.Join(rules, name), []byte(content), 0o600); err != nil {
			return err
		}
	}
	if err := writeNodeCertificate(config); err != nil {
		return err
	}
	const transport = "plugins.security.ssl.transport."
	return e.launchIn(home, []string{"NODE_PLUGIN=org.opensearch.security.OpenSearchSecurityPlugin", "NODE_JARS=" + jars},
		transport+"pemcert_filepath=node.pem", transport+"pemkey_filepath=node.key", transport+"pemtrustedcas_filepath=node.pem",
		transport+"enforce_hostname_verification=false", "plugins.security.authcz.admin_dn=CN=nobody",
		"plugins.security.ssl.http.enabled=false", "plugins.security.allow_default_init_securityindex=true")
}

// pluginJars unpacks a plugin of the engine, the coordinates of a zip file,
// into a folder of home. It is downloaded once.
func (e *engine) pluginJars(home, artifact string) (string, error) {
	parts := strings.Split(artifact, ":")
	name := parts[1] + "-" + parts[2] + "." + parts[3]
	jars := filepath.Join(home, "jars")
	plugin, err := filepath.Abs(filepath.Join("engines", e.name, "target", "plugins"))
	if err != nil {
		return "", err
	}
	archive := filepath.Join(plugin, name)
	if _, err := os.Stat(archive); err != nil { // once
		cmd := exec.Command("mvn", "-q", "-B", "dependency:copy", "-Dartifact="+artifact, "-DoutputDirectory="+plugin, "-Dmdep.useBaseVersion=true")
		cmd.Dir = home
		if output, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("%w\n%s", err, output)
		}
	}
	return jars, unzip(archive, jars)
}

// unzip unpacks what is in an archive of the plugin.
func unzip(archive, to string) error {
	z, err := zip.OpenReader(archive)
	if err != nil {
		return err
	}
	defer z.Close()
	for _, f := range z.File {
		target := filepath.Join(to, filepath.FromSlash(f.Name))
		if strings.HasSuffix(f.Name, "/") {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
			return err
		}
		in, err := f.Open()
		if err != nil {
			return err
		}
		content, err := io.ReadAll(in)
		in.Close()
		if err == nil {
			err = os.WriteFile(target, content, 0o600)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// writeNodeCertificate writes the certificate that the plugin wants for the
// traffic between nodes: one that is its own authority.
func writeNodeCertificate(folder string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "node"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	for name, block := range map[string]*pem.Block{
		"node.pem": {Type: "CERTIFICATE", Bytes: cert}, "node.key": {Type: "PRIVATE KEY", Bytes: private},
	} {
		if err := os.WriteFile(filepath.Join(folder, name), pem.EncodeToMemory(block), 0o600); err != nil {
			return err
		}
	}
	return nil
}
