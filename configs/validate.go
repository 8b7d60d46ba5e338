package configs

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/internal/redisurl"
)

// minToken is the length in bytes of the shortest token, password or API key
// that others give to akin. Only its length prevents guessing.
const minToken = 16

// check reports values of c that conflict with others.
func (d *decoder) check(c *Config) {
	if len(c.Cluster.URLs) == 0 {
		d.add("cluster.urls", "must name at least one node of the cluster")
	}
	d.rewriting("expansion", &c.Expansion.Profile)
	d.matrices("matrices", c.Matrices)
	d.matrices("weights", c.Weights)
	d.checkProfiles(c)
	checkModes(d, c)
	checkEmbeddings(d, c)
	d.trials(c)
	d.each("searches.exclude_indices", c.Searches.ExcludeIndices, func(s string) error {
		return unless(!strings.HasPrefix(s, "-"), "must have no leading -: the list has only what is left out")
	})
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
	d.guessable("admin.token_file", &c.Admin.Token, EnvAdminToken)
	d.auth("cluster.auth", &c.Cluster.Auth, clusterAuth)
	d.auth("listen.auth", &c.Listen.Auth, listenAuth)
	d.guessable("listen.auth.password_file", &c.Listen.Auth.Password, EnvListenPassword)
	d.guessable("listen.auth.api_key_file", &c.Listen.Auth.APIKey, EnvListenAPIKey)
	d.aws(&c.Cluster)
	d.redisTLS(&c.Redis)
	d.sources("matrices", c.Matrices, &c.Redis)
	d.sources("weights", c.Weights, &c.Redis)
	if most := c.Expansion.MaxBody; most > c.Memory.InFlight/2 && !d.has("memory.in_flight") {
		d.add("expansion.max_body", "%v is more than half of memory.in_flight, which is all that one client gets", most)
	}
}

// rewriting reports problems of the keys that expansion and profiles share,
// except those that a profile inherits.
func (d *decoder) rewriting(key string, p *expand.Profile) {
	list := key + ".segments"
	own := d.lines[list] > 0
	for i, s := range p.Segments {
		at := fmt.Sprintf("%s[%d]", list, i)
		for _, f := range []struct{ name, value string }{{"text", s.Text}, {"position", s.Position}, {"share", s.Share}, {"godwin", s.Godwin}} {
			if err := wrongField(f.value); !own || d.has(at+".path") {
				break
			} else if err != nil {
				d.add(at+"."+f.name, "%w", err)
			} else if !strings.HasPrefix(f.value, s.Path+".") {
				d.add(at+"."+f.name, "must be the full name of a field below path, such as %s.%s", s.Path, f.name)
			}
		}
	}
	if len(p.Segments) > 0 && p.Mode != expand.ModeBM25 && p.Mode != expand.ModeAuto && (own || d.lines[key+".mode"] > 0) {
		d.add(list, "must be empty in the mode %s, which scores whole documents", Keys(p)["mode"])
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
	if c.Expansion.Mode == expand.ModeVectors { // profiles inherit it
		d.add("expansion.mode", wrong)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(c.Profiles)) {
		if c.Profiles[name].Mode == expand.ModeVectors {
			d.add(join("profiles", name)+".mode", wrong)
		}
	}
}

// checkEmbeddings reports what does not go with hits that vectors of a language
// model order.
func checkEmbeddings(d *decoder, c *Config) {
	e := &c.Embeddings
	if e.URL != "" && len(e.Fields) == 0 && !d.has("embeddings.fields") {
		d.add("embeddings.fields", "must name the fields of documents that the model reads")
	}
	wrong := func(p *expand.Profile) string {
		switch {
		case p.Rerank != expand.ByEmbeddings:
		case e.URL == "":
			return "embeddings needs a language model, in embeddings.url"
		case p.Mode != expand.ModeBM25 && p.Mode != expand.ModeAuto:
			return fmt.Sprintf("must be none in the mode %s: embeddings go with bm25 and auto", Keys(p)["mode"])
		}
		return ""
	}
	if why := wrong(&c.Expansion.Profile); why != "" { // profiles inherit it
		d.add("expansion.rerank", "%s", why)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(c.Profiles)) {
		p := c.Profiles[name]
		if why := wrong(&p.Profile); why != "" {
			d.add(join("profiles", name)+".rerank", "%s", why)
		}
	}
}

func (d *decoder) trials(c *Config) {
	const list = "expansion.trials"
	for i, t := range c.Expansion.Trials {
		key := fmt.Sprintf("%s[%d]", list, i)
		d.some(key+".indices", t.Indices)
		if len(t.Arms) != 2 {
			d.add(key+".arms", "must be two: the usual one and the new one")
		}
		d.each(key+".arms", t.Arms, func(s string) error {
			if _, known := c.Profiles[s]; s != ArmOff && !known {
				return errors.New("must be off or the name of a profile")
			}
			return nil
		})
	}
	if len(c.Expansion.Trials) > 0 && c.Expansion.Shadow > 0 {
		d.add(list, "must be empty where expansion.shadow is set, which gives every client the answer to its original search")
	}
}

func (d *decoder) matrices(list string, entries []Matrix) {
	for i, m := range entries {
		key := fmt.Sprintf("%s[%d]", list, i)
		d.some(key+".indices", m.Indices)
		if len(m.Fields) == 0 {
			d.add(key+".fields", noPattern)
		}
	}
}

const noPattern = `must have at least one pattern of what it applies to; "*" is everything`

// some reports a list of only excluding patterns.
func (d *decoder) some(key string, patterns []string) {
	if !slices.ContainsFunc(patterns, func(s string) bool { return !strings.HasPrefix(s, "-") }) {
		d.add(key, noPattern)
	}
}

// sources reports entries of a list without a file, if there is no Redis.
func (d *decoder) sources(list string, entries []Matrix, redis *Redis) {
	for i, m := range entries {
		if m.File == "" && redis.URL.Reveal() == "" && !d.has("redis.url") {
			d.add(fmt.Sprintf("%s[%d].file", list, i), "must be set where neither redis.url nor %s is", EnvRedisURL)
		}
	}
}

// guessable reports a secret that is too short.
func (d *decoder) guessable(key string, s *Secret, variable string) {
	if n := len(s.Reveal()); n > 0 && n < minToken {
		d.add(key, "has a secret of %d bytes, or %s has; the least is %d: it could be guessed", n, variable, minToken)
	}
}

// aws reports what does not go together with signed requests.
func (d *decoder) aws(c *Cluster) {
	const key = "cluster.aws"
	a := &c.AWS
	if !a.Signs() {
		if !d.has(key+".region") && *a != (AWS{Service: "es"}) {
			d.add(key+".region", "must be set where other keys of %s are: without it no request is signed", key)
		}
		return
	}
	if c.Auth != (Auth{}) {
		d.add(key, "does not go with cluster.auth, %s or %s: a request has one Authorization", EnvClusterUsername, EnvClusterAPIKey)
	}
	for i, s := range c.URLs {
		u, err := url.Parse(s)
		if err != nil {
			continue // reported before
		}
		at := fmt.Sprintf("cluster.urls[%d]", i)
		if u.Scheme == "http" && !isLocal(u.Hostname()) {
			d.add(at, "must be https:// where %s is set, outside of this machine", key)
		}
		if region, service := endpoint(u.Hostname()); region != "" && (region != a.Region || service != a.Service) {
			d.add(at, "is an endpoint of the service %s in the region %s, but %s has %s in %s", service, region, key, a.Service, a.Region)
		}
	}
	if len(c.URLs) > 1 {
		d.add("cluster.urls", "must be one where %s is set: the endpoint of the domain or collection", key)
	}
}

// CheckAWS returns what is wrong with the signing of a cluster that comes from
// no file.
func (c *Cluster) CheckAWS() error {
	if !c.AWS.Signs() {
		return nil
	}
	d := newDecoder("")
	fields, _ := fieldsOf(reflect.ValueOf(&c.AWS).Elem())
	if err := fields["region"].check(); err != nil {
		d.add("region", "%w", err)
	}
	if allowed := fields["service"].allowed; !slices.Contains(allowed, c.AWS.Service) {
		d.add("service", "must be one of %s", strings.Join(allowed, ", "))
	}
	d.aws(c)
	return d.err()
}

// endpoint returns region and service of a host of Amazon, such as
// search-x.eu-central-1.es.amazonaws.com, or "".
func endpoint(host string) (region, service string) {
	parts := strings.Split(strings.TrimSuffix(host, ".cn"), ".")
	if n := len(parts); n >= 5 && parts[n-2] == "amazonaws" && parts[n-1] == "com" && (parts[n-3] == "es" || parts[n-3] == "aoss") {
		return parts[n-4], parts[n-3]
	}
	return "", ""
}

// authNames are the variables with the parts of an [Auth].
type authNames struct{ username, password, apiKey string }

var (
	clusterAuth = authNames{EnvClusterUsername, EnvClusterPassword, EnvClusterAPIKey}
	listenAuth  = authNames{EnvListenUsername, EnvListenPassword, EnvListenAPIKey}
)

// auth reports incomplete credentials, and more than one kind.
func (d *decoder) auth(key string, a *Auth, names authNames) {
	name, password := a.Username != "", a.PasswordFile != "" || a.Password.Reveal() != ""
	apiKey := a.APIKeyFile != "" || a.APIKey.Reveal() != ""
	switch {
	case apiKey && (name || password):
		d.add(key, "must be a user name with a password or an API key, not both; the environment counts too")
	case name && !password:
		d.add(key+".username", "needs a password, from password_file or %s", names.password)
	case password && !name:
		d.add(key+".password_file", "needs a user name, from username or %s, for the password here or in %s",
			names.username, names.password)
	}
	if strings.Contains(a.Username, ":") { // RFC 7617, section 2
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

func (d *decoder) redisURL(s string) {
	const key = "redis.url"
	if strings.ContainsAny(s, "@?") { // the query can contain a password, too
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
