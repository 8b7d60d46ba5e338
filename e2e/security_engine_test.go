package e2e

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/akin-search/akin/e2e/check"
)

// securityPlugin is the security plugin for the OpenSearch of engines/opensearch2.
const securityPlugin = "org.opensearch.plugin:opensearch-security:2.19.1.0:zip"

// password is that of every user, and passwordHash its bcrypt at the lowest cost,
// for the plugin checks it again and again.
const (
	password     = "admin"
	passwordHash = "$2a$04$VcCDgh2NDk07JGN0rjGbM.dAuUrXQj2O7NFquMPWcjsyrl5uDfvkq"
)

// The users of the secured engine. All have the same password.
const (
	userAll     = "admin"   // all rights
	userAkin    = "akin"    // the role that docs/security.md gives to akin
	userReader  = "reader"  // searches the indices of the tests
	userOwn     = "own"     // document-level security
	userFields  = "fields"  // field-level security
	userMasked  = "masked"  // a masked field
	userAlias   = "alias"   // an alias with a filter
	userLacking = "lacking" // the role of userAkin without the rights that only building needs
)

// visibleToOwn is what a document query of the tests lets through.
const visibleToOwn = `{"bool":{"must_not":{"term":{"kind":"hidden"}}}}`

// securityConfig returns the files that say who may do what.
func securityConfig() (map[string]string, error) {
	role, err := documentedRole("OpenSearch")
	if err != nil {
		return nil, err
	}
	role = strings.ReplaceAll(role, `"products*"`, `"akin-e2e-*"`)
	lacking := strings.NewReplacer(`,"indices:data/read/scroll/clear"`, "", `,"indices:monitor/settings/get"`, "", `,"cluster:admin/search/pipeline/get"`, "").Replace(role)
	var users strings.Builder
	users.WriteString("_meta: {type: internalusers, config_version: 2}\n")
	for _, name := range []string{userAll, userAkin, userReader, userOwn, userFields, userMasked, userAlias, userLacking} {
		users.WriteString(name + `: {hash: "` + passwordHash + `"}` + "\n")
	}
	const search = `[cluster_composite_ops_ro, "indices:data/read/search/template", "indices:data/read/search/template/render", "indices:data/read/msearch/template", "indices:data/read/scroll/clear"]`
	const read = `[read, "indices:admin/validate/query*"]`
	return map[string]string{
		"internal_users.yml": users.String(),
		"roles.yml": `_meta: {type: roles, config_version: 2}
akin: ` + role + `
lacking: ` + lacking + `
reader:
  cluster_permissions: ` + search + `
  index_permissions:
  - {index_patterns: [akin-e2e-related, akin-e2e-secured], allowed_actions: ` + read + `}
own:
  cluster_permissions: ` + search + `
  index_permissions:
  - {index_patterns: [akin-e2e-related], allowed_actions: ` + read + `, dls: '{"match":{"body":"car"}}'}
  - {index_patterns: [akin-e2e-secured], allowed_actions: ` + read + `, dls: '` + visibleToOwn + `'}
fields:
  cluster_permissions: ` + search + `
  index_permissions:
  - {index_patterns: [akin-e2e-secured], allowed_actions: ` + read + `, fls: ["~notes"]}
masked:
  cluster_permissions: ` + search + `
  index_permissions:
  - {index_patterns: [akin-e2e-secured], allowed_actions: ` + read + `, masked_fields: [notes]}
alias:
  cluster_permissions: ` + search + `
  index_permissions:
  - {index_patterns: [akin-e2e-visible], allowed_actions: ` + read + `}
`,
		"roles_mapping.yml": `_meta: {type: rolesmapping, config_version: 2}
all_access: {users: [admin]}
akin: {users: [akin]}
lacking: {users: [lacking]}
reader: {users: [reader]}
own: {users: [own]}
fields: {users: [fields]}
masked: {users: [masked]}
alias: {users: [alias]}
`,
		"config.yml": `_meta: {type: config, config_version: 2}
config:
  dynamic:
    http: {anonymous_auth_enabled: false, xff: {enabled: false}}
    authc:
      basic:
        {order: 0, http_enabled: true, transport_enabled: true, authentication_backend: {type: intern}, http_authenticator: {type: basic, challenge: true}}
`,
	}, nil
}

// documentedRole returns the role of docs/security.md for a family of engines:
// the block of JSON that comes first after its name in the section on the role.
func documentedRole(family string) (string, error) {
	page, err := os.ReadFile(filepath.Join(repository, "docs", "security.md"))
	if err != nil {
		return "", err
	}
	_, section, _ := strings.Cut(string(page), "\n### akin's own role\n")
	_, section, _ = strings.Cut(section, "\n**"+family+"**")
	_, section, _ = strings.Cut(section, "\n```json\n")
	role, _, ends := strings.Cut(section, "```")
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(role)); err != nil || !ends {
		return "", fmt.Errorf("docs/security.md has no role for %s: %w", family, err)
	}
	return compact.String(), nil
}

// theSecuredEngine is an OpenSearch with its security plugin: TLS on both
// sides, and the users above. One serves the whole run.
var theSecuredEngine = sync.OnceValues(func() (*engine, error) {
	e := newEngine(engineKinds[0])
	e.before, e.start = "https://"+userAll+":"+password+"@", func() error { return nil }
	home, err := makeDir("secured")
	if err != nil {
		return nil, err
	}
	return e, e.launchSecured(home)
})

func securedEngine(t *testing.T) *engine {
	t.Helper()
	long(t)
	e, err := theSecuredEngine()
	if err != nil {
		check.Missing(t, "needs OpenSearch with %s: %v", securityPlugin, err)
	}
	e.proc.logOnFailure(t)
	return e
}

// as returns the same address for a user of the secured engine, "" for nobody.
// A password may stand behind a colon.
func (c cluster) as(user string) cluster {
	scheme, host, _ := strings.Cut(c.url, "//")
	if _, rest, known := strings.Cut(host, "@"); known {
		host = rest
	}
	if user != "" && !strings.Contains(user, ":") {
		user += ":" + password
	}
	if user != "" {
		host = user + "@" + host
	}
	return cluster{url: scheme + "//" + host}
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
	files, err := securityConfig()
	if err != nil {
		return err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(rules, name), []byte(content), 0o600); err != nil {
			return err
		}
	}
	if err := runAuthority.issue(config, "node"); err != nil {
		return err
	}
	settings := []string{
		"plugins.security.ssl.transport.enforce_hostname_verification=false", "plugins.security.authcz.admin_dn=CN=nobody",
		"plugins.security.ssl.http.enabled=true", "plugins.security.ssl.http.clientauth_mode=OPTIONAL",
		"plugins.security.allow_default_init_securityindex=true",
	}
	for _, side := range []string{"transport", "http"} {
		for key, file := range map[string]string{"pemcert": "node.crt", "pemkey": "node.key", "pemtrustedcas": "ca.crt"} {
			settings = append(settings, "plugins.security.ssl."+side+"."+key+"_filepath="+file)
		}
	}
	return e.launchIn(home, []string{"NODE_PLUGIN=org.opensearch.security.OpenSearchSecurityPlugin", "NODE_JARS=" + jars}, settings...)
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
