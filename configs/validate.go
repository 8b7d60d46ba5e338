package configs

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/expand/form"
	"github.com/akin-search/akin/internal/redisurl"
)

// check reports the values of c that are wrong in themselves.
func (d *decoder) check(c *Config) {
	d.address("listen.address", c.Listen.Address)
	d.address("admin.address", c.Admin.Address)
	d.each("admin.hosts", c.Admin.Hosts, func(s string) error {
		if s == "" || strings.ContainsAny(s, ":/*") || hasSpace(s) {
			return errors.New("must be the name of a host, without a port and wildcards")
		}
		return nil
	})
	d.nodes(c.Cluster.URLs)
	d.rewriting("expansion", &c.Expansion.Profile)
	d.matrices("matrices", c.Matrices)
	d.matrices("weights", c.Weights)
	d.each("vectors", c.Vectors, func(s string) error {
		if s == "" {
			return errors.New("must be a file")
		}
		return nil
	})
	d.checkProfiles(c)
	checkModes(d, c)
	d.trials(c)
	d.redisURL(c.Redis.URL.Reveal())
	if s := c.Tracing.Endpoint; s != "" {
		if err := wrongURL(s, "tracing.headers_file or in "+EnvTracingHeaders); err != nil {
			d.add("tracing.endpoint", "%w", err)
		}
	}
}

// rewriting reports what is wrong with the keys at key that expansion and
// profiles have in common, but for those that a profile inherits.
func (d *decoder) rewriting(key string, p *expand.Profile) {
	own := func(name string) bool { return d.lines[key+"."+name] > 0 }
	if own("default_fields") {
		d.each(key+".default_fields", p.DefaultFields, wrongField)
	}
	if own("segments") {
		d.segments(key+".segments", p.Segments)
	}
	if len(p.Segments) > 0 && p.Mode != expand.ModeBM25 && (own("segments") || own("mode")) {
		d.add(key+".segments", "must be empty in the mode %s, which scores whole documents", Keys(p)["mode"])
	}
}

func wrongField(s string) error {
	if strings.Contains("."+s+".", "..") || strings.ContainsAny(s, "*?^,") || hasSpace(s) {
		return errors.New("must be the full name of a field, without wildcards and boosts")
	}
	return nil
}

func (d *decoder) segments(list string, entries []form.Segments) {
	for i, s := range entries {
		key := fmt.Sprintf("%s[%d]", list, i)
		for _, f := range []struct{ name, value, under string }{
			{"field", s.Field, ""}, {"path", s.Path, ""},
			{"text", s.Text, s.Path + "."}, {"position", s.Position, s.Path + "."}, {"share", s.Share, s.Path + "."},
		} {
			if f.under != "" && d.has(key+".path") {
				continue
			}
			if err := wrongField(f.value); err != nil {
				d.add(key+"."+f.name, "%w", err)
			} else if !strings.HasPrefix(f.value, f.under) {
				d.add(key+"."+f.name, "must be the full name of a field below path, such as %s.%s", s.Path, f.name)
			}
		}
		if j := slices.IndexFunc(entries, func(other form.Segments) bool { return other.Field == s.Field }); j < i {
			d.add(key+".field", "%q is the field of %s[%d] already", s.Field, list, j)
		}
	}
}

func (d *decoder) checkProfiles(c *Config) {
	for _, name := range slices.Sorted(maps.Keys(c.Profiles)) {
		p, key := c.Profiles[name], join("profiles", name)
		if name == ArmOff {
			d.add(key, "must have another name: as an arm of a trial, off is to forward searches as they came")
		}
		d.rewriting(key, &p.Profile)
		d.each(key+".matrices", p.Matrices, func(s string) error {
			if !slices.ContainsFunc(c.Matrices, func(m Matrix) bool { return m.Name == s }) {
				return errors.New("must be the name of an entry of matrices")
			}
			return nil
		})
	}
}

func checkModes(d *decoder, c *Config) {
	if len(c.Vectors) > 0 {
		return
	}
	const wrong = "vectors needs model files, in the key vectors"
	if c.Expansion.Mode == expand.ModeVectors { // which profiles inherit
		d.add("expansion.mode", wrong)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(c.Profiles)) {
		if c.Profiles[name].Mode == expand.ModeVectors {
			d.add(join("profiles", name)+".mode", wrong)
		}
	}
}

func (d *decoder) trials(c *Config) {
	const list = "expansion.trials"
	names := make([]string, len(c.Expansion.Trials))
	for i, t := range c.Expansion.Trials {
		key := fmt.Sprintf("%s[%d]", list, i)
		switch j := slices.Index(names[:i], t.Name); {
		case !isName(t.Name):
			d.add(key+".name", "must be "+nameRule)
		case j >= 0:
			d.add(key+".name", "%q is the name of %s[%d] already; every trial has a name of its own", t.Name, list, j)
		}
		names[i] = t.Name
		d.globs(key+".indices", t.Indices, "-", `must be an index name in which only * is a wildcard, such as "logs-*", or "-logs-*" to keep those out`)
		if len(t.Arms) != 2 {
			d.add(key+".arms", "must be two: the usual one and the new one")
		}
		d.each(key+".arms", t.Arms, func(s string) error {
			if _, known := c.Profiles[s]; s != ArmOff && !known {
				return errors.New("must be off or the name of a profile")
			}
			return nil
		})
		if strings.Trim(t.Header, nameChars) != "" {
			d.add(key+".header", "must be the name of a header")
		}
	}
	if len(names) > 0 && c.Expansion.Shadow > 0 {
		d.add(list, "must be empty where expansion.shadow is set, which gives every client the answer to its original search")
	}
}

func (d *decoder) nodes(urls []string) {
	const key = "cluster.urls"
	if len(urls) == 0 {
		d.add(key, "must name at least one node of the cluster")
	}
	d.each(key, urls, func(s string) error {
		return wrongURL(s, fmt.Sprintf("cluster.auth or in %s, %s and %s", EnvClusterUsername, EnvClusterPassword, EnvClusterAPIKey))
	})
}

// wrongURL returns what is wrong with the base URL of a server, nil for
// nothing. Credentials belong elsewhere.
func wrongURL(s, elsewhere string) error {
	u, err := url.Parse(s) // Its error quotes the URL, which may hold a password.
	switch {
	case err == nil && u.User != nil:
		return fmt.Errorf("must not hold credentials; give them in %s", elsewhere)
	case err != nil, u.Scheme != "http" && u.Scheme != "https", !isHost(u), u.RawQuery != "", u.ForceQuery, strings.Contains(s, "#"):
		return errors.New("must be http:// or https://, a host, and perhaps :port and /prefix")
	}
	return nil
}

// matrices reports what is wrong with each entry of the list at key and with
// the names together.
func (d *decoder) matrices(list string, entries []Matrix) {
	first := make(map[string]int, len(entries))
	for i, m := range entries {
		key := fmt.Sprintf("%s[%d]", list, i)
		j, twice := first[m.Name]
		switch {
		case !isName(m.Name):
			d.add(key+".name", "must be "+nameRule)
		case twice:
			d.add(key+".name", "%q is the name of %s[%d] already; every entry has a name of its own", m.Name, list, j)
		default:
			first[m.Name] = i
		}
		d.globs(key+".indices", m.Indices, "-", `must be an index name in which only * is a wildcard, such as "logs-*", or "-logs-*" to keep those out`)
		d.globs(key+".fields", m.Fields, "", `must be a field name in which only * is a wildcard, such as "title*"`)
	}
}

// globs reports what is wrong with the patterns at key, of which those that
// begin with out, unless that is "", exclude names.
func (d *decoder) globs(key string, globs []string, out, wrong string) {
	keepsOut := func(s string) bool { return out != "" && strings.HasPrefix(s, out) }
	if !slices.ContainsFunc(globs, func(s string) bool { return !keepsOut(s) }) {
		d.add(key, `must have at least one pattern of what it applies to; "*" is everything`)
	}
	d.each(key, globs, func(s string) error {
		if keepsOut(s) {
			s = s[len(out):]
		}
		// The characters that an index name may not have, and those that
		// other pattern languages give a meaning to.
		if s == "" || s[0] == '-' || strings.ContainsAny(s, `?^[]{}()!\/"<>|,#:`) || hasSpace(s) {
			return errors.New(wrong)
		}
		return nil
	})
}

// minToken is the length in bytes of the shortest token of the admin port:
// nothing else keeps anybody from guessing.
const minToken = 16

// crossCheck reports contradicting settings, after the credentials have been
// read.
func (d *decoder) crossCheck(c *Config) {
	d.together("listen.tls.cert_file", c.Listen.TLS.CertFile, "listen.tls.key_file", c.Listen.TLS.KeyFile)
	if c.Listen.Address == c.Admin.Address && !strings.HasSuffix(c.Admin.Address, ":0") {
		d.add("admin.address", "is the same as listen.address; the two need an address each")
	}
	for i, s := range c.Cluster.URLs {
		if u, err := url.Parse(s); err == nil && u.Host == c.Listen.Address {
			d.add(fmt.Sprintf("cluster.urls[%d]", i), "is akin's own listen.address; name a node of the cluster")
		}
	}
	d.together("cluster.tls.certificate", c.Cluster.TLS.Certificate, "cluster.tls.key", c.Cluster.TLS.Key)
	if c.Cluster.TLS.CAFile != "" && c.Cluster.TLS.InsecureSkipVerify {
		d.add("cluster.tls.insecure_skip_verify", "must be false where ca_file is set: it would leave that unused")
	}
	if n := len(c.Admin.Token.Reveal()); n > 0 && n < minToken {
		d.add("admin.token_file", "has a token of %d bytes, or %s has; the least is %d: it could be guessed", n, EnvAdminToken, minToken)
	}
	if _, err := c.Tracing.Header(); err != nil {
		d.add("tracing.headers_file", "%w; or %s has something else", err, EnvTracingHeaders)
	}
	d.auth(&c.Cluster.Auth)
	d.redisTLS(&c.Redis)
	d.sources("matrices", c.Matrices, &c.Redis)
	d.sources("weights", c.Weights, &c.Redis)
	if most := c.Expansion.MaxBody; most > c.Memory.InFlight/2 && !d.has("memory.in_flight") {
		d.add("expansion.max_body", "%v is more than half of memory.in_flight, which is all that one client gets", most)
	}
}

// sources reports the entries of the list at key that have no file, if there is
// no Redis.
func (d *decoder) sources(list string, entries []Matrix, redis *Redis) {
	for i, m := range entries {
		if m.File == "" && redis.URL.Reveal() == "" && !d.has("redis.url") {
			d.add(fmt.Sprintf("%s[%d].file", list, i), "must be set where neither redis.url nor %s is", EnvRedisURL)
		}
	}
}

// auth reports incomplete credentials, and more than one kind.
func (d *decoder) auth(a *Auth) {
	const key = "cluster.auth"
	name, password := a.Username != "", a.PasswordFile != "" || a.Password.Reveal() != ""
	apiKey := a.APIKeyFile != "" || a.APIKey.Reveal() != ""
	switch {
	case apiKey && (name || password):
		d.add(key, "must be a user name with a password or an API key, not both; the environment counts too")
	case name && !password:
		d.add(key+".username", "needs a password, from password_file or %s", EnvClusterPassword)
	case password && !name:
		d.add(key+".password_file", "needs a user name, from username or %s, for the password here or in %s",
			EnvClusterUsername, EnvClusterPassword)
	}
	if strings.Contains(a.Username, ":") { // RFC 7617, section 2.
		d.add(key+".username", "must not have a colon, which basic authentication cannot carry")
	}
}

// together reports the missing one of two values.
func (d *decoder) together(key1, value1, key2, value2 string) {
	if value1 != "" && value2 == "" {
		d.add(key2, "must be set together with %s", key1)
	} else if value2 != "" && value1 == "" {
		d.add(key1, "must be set together with %s", key2)
	}
}

func (d *decoder) address(key, s string) {
	host, port, err := net.SplitHostPort(s)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil || hasSpace(host) || strings.Contains(host, "/") {
		d.add(key, "must be host:port with a port of 0 to 65535, such as 127.0.0.1:9280")
	}
}

// isHost reports whether u has a host, and a port, if any, from 1 to 65535.
func isHost(u *url.URL) bool {
	if u.Hostname() == "" || hasSpace(u.Hostname()) || strings.HasSuffix(u.Host, ":") {
		return false
	}
	n, err := strconv.ParseUint(cmp.Or(u.Port(), "80"), 10, 16)
	return err == nil && n > 0
}

func (d *decoder) redisURL(s string) {
	const key = "redis.url"
	if strings.ContainsAny(s, "@?") { // its query can carry a password, too
		d.add(key, "must not hold credentials or options; give the whole URL in %s", EnvRedisURL)
	} else if _, err := redisurl.Parse(s); s != "" && err != nil {
		d.add(key, "%w", err)
	}
}

func (d *decoder) redisTLS(r *Redis) {
	d.together("redis.tls.cert_file", r.TLS.CertFile, "redis.tls.key_file", r.TLS.KeyFile)
	for _, file := range []struct{ key, name string }{{"redis.tls.ca_file", r.TLS.CAFile}, {"redis.tls.cert_file", r.TLS.CertFile}} {
		if file.name != "" && !strings.HasPrefix(strings.ToLower(r.URL.Reveal()), "rediss") {
			d.add(file.key, "is only for a URL of Redis that begins with rediss")
		}
	}
}
