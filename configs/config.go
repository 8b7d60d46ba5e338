// Package configs holds akin's configuration: the structs, their defaults, and
// a strict reader of the YAML file.
//
// A file states what differs from [Default]. [Load] reports all that is wrong
// with it at once, each with file, line and key. akin.yml lists every key with
// its meaning and range. Credentials come from the environment or from files of
// their own, and are kept as a [Secret].
package configs

import (
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/expand/form"
)

// The environment variables that [Load] reads. One that is set and not empty
// overrides the file.
const (
	EnvClusterUsername = "AKIN_CLUSTER_USERNAME"
	EnvClusterPassword = "AKIN_CLUSTER_PASSWORD" //nolint:gosec // The name of a variable, not a credential.
	EnvClusterAPIKey   = "AKIN_CLUSTER_API_KEY"  //nolint:gosec // The name of a variable, not a credential.
	EnvRedisURL        = "AKIN_REDIS_URL"
	EnvAdminToken      = "AKIN_ADMIN_TOKEN"
)

// A Config is a complete configuration. One that comes from [Default],
// [Load] or [Parse] is valid. The tags are those of [expand.Profile], with what
// a text is, which rules says; the comments say only what akin.yml does not.
type Config struct {
	Listen    Listen    `yaml:"listen"`
	Admin     Admin     `yaml:"admin"`
	Shutdown  Shutdown  `yaml:"shutdown"`
	Cluster   Cluster   `yaml:"cluster"`
	Expansion Expansion `yaml:"expansion"`
	// Profiles have the values of Expansion as their defaults.
	Profiles map[string]Profile `yaml:"profiles"`
	// Matrices are the similarity matrices, Weights those whose document
	// frequencies are term weights. The first that fits index and field is used.
	Matrices []Matrix `yaml:"matrices"`
	Weights  []Matrix `yaml:"weights"`
	// Vectors are the files of the models of documents' vectors.
	Vectors []string `yaml:"vectors" is:"file"`
	Redis   Redis    `yaml:"redis"`
	Caches  Caches   `yaml:"caches"`
	Memory  Memory   `yaml:"memory"`
	Log     Log      `yaml:"log"`
}

// Listen is the listener that clients connect to.
type Listen struct {
	Address          string    `yaml:"address" is:"address"` // host:port
	ForwardedHeaders bool      `yaml:"forwarded_headers"`
	TLS              ServerTLS `yaml:"tls"`
	MaxConnections   int       `yaml:"max_connections" allowed:"0 1000000"` // 0: what the limit of open files allows
	IdleTimeout      Duration  `yaml:"idle_timeout" allowed:"1s 1h"`
	BodyTimeout      Duration  `yaml:"body_timeout" allowed:"1s 1h"`
}

// ServerTLS names the PEM files of the certificate that clients are shown: both
// or none, which is plain HTTP.
type ServerTLS struct {
	CertFile string `yaml:"cert_file"`
	KeyFile  string `yaml:"key_file"`
}

// Admin is the listener for operators.
type Admin struct {
	Address   string   `yaml:"address" is:"address"` // host:port
	Hosts     []string `yaml:"hosts" is:"host"`
	TokenFile string   `yaml:"token_file"`
	Token     Secret   `yaml:"-"` // set by Load; "" is none
}

// Exposed reports whether others than programs on this machine may reach the
// listener.
func (a *Admin) Exposed() bool {
	host, _, _ := net.SplitHostPort(a.Address) // checked already
	ip, err := netip.ParseAddr(host)
	return host != "localhost" && (err != nil || !ip.Unmap().IsLoopback())
}

// ShutdownTimeout is how long requests in progress may take after the delay:
// both together should be less than Kubernetes waits, 30 s.
const ShutdownTimeout = 20 * time.Second

// Shutdown says how the process ends.
type Shutdown struct {
	Delay Duration `yaml:"delay" allowed:"0s 5m"`
}

// Cluster is the search cluster.
type Cluster struct {
	URLs []string  `yaml:"urls" is:"node"` // at least one
	TLS  ClientTLS `yaml:"tls"`
	Auth Auth      `yaml:"auth"`
}

// ClientTLS says how the nodes' certificates are verified, and which one akin's
// own calls show them.
type ClientTLS struct {
	CAFile             string `yaml:"ca_file"` // "" trusts the system's authorities
	InsecureSkipVerify bool   `yaml:"insecure_skip_verify"`
	Certificate        string `yaml:"certificate"` // a PEM file, "" for none
	Key                string `yaml:"key"`         // a PEM file
}

// Auth has the credentials of akin's own calls: a user name with a password, or
// an API key, or nothing. The environment overrides the files.
type Auth struct {
	Username     string `yaml:"username"`
	PasswordFile string `yaml:"password_file"`
	APIKeyFile   string `yaml:"api_key_file"`
	Password     Secret `yaml:"-"` // set by Load
	APIKey       Secret `yaml:"-"` // set by Load; in the encoded form: base64 of id:key
}

// Expansion says which searches are rewritten, and how.
type Expansion struct {
	Enabled        bool `yaml:"enabled"`
	expand.Profile `yaml:",inline"`

	Budget       Duration          `yaml:"budget" allowed:"1ms 10s"`       // and as much for reranking
	MaxBody      Bytes             `yaml:"max_body" allowed:"1KiB 100MiB"` // decompressed; more than 100 MiB no engine takes by default
	RerankWarmUp bool              `yaml:"rerank_warm_up"`
	Templates    bool              `yaml:"templates"`
	HideFrom     expand.Disclosure `yaml:"hide_from"`            // in every profile: the clients choose it
	Shadow       float64           `yaml:"shadow" allowed:"0 1"` // a share
	Trials       []Trial           `yaml:"trials"`               // the first that fits the index is used
}

// ArmOff is the arm of a [Trial] whose searches go out as they came.
const ArmOff = "off"

// A Trial compares two ways of searching, its arms, on live searches.
type Trial struct {
	Name    string   `yaml:"name" is:"name"`     // unique, without a default
	Indices []string `yaml:"indices" is:"index"` // as in Matrix
	Arms    []string `yaml:"arms"`               // the usual one and the new one: names of profiles, or ArmOff
	Share   float64  `yaml:"share" allowed:"0 1"`
	Header  string   `yaml:"header" is:"header"` // "" is the client's address
}

// A Profile is another way of rewriting searches.
type Profile struct {
	Enabled        bool `yaml:"enabled"`
	expand.Profile `yaml:",inline"`

	Matrices []string `yaml:"matrices"` // their names; none is all
}

// A Matrix binds a similarity matrix, or one used for term weights, to indices
// and fields.
type Matrix struct {
	Name    string   `yaml:"name" is:"name"` // unique in its list, without a default
	Indices []string `yaml:"indices" is:"index"`
	Fields  []string `yaml:"fields" is:"pattern"`
	File    string   `yaml:"file"` // "" takes it from Redis by its name; need not exist yet
}

// Redis is the store of matrices and their versions.
type Redis struct {
	URL Secret   `yaml:"url"` // as in package redisurl; "" is no Redis
	TLS RedisTLS `yaml:"tls"`
}

// RedisTLS names the PEM files of the connections to Redis: the authorities to
// trust, "" for the system's, and the client certificate with its private key.
type RedisTLS struct {
	CAFile   string `yaml:"ca_file"`
	CertFile string `yaml:"cert_file"`
	KeyFile  string `yaml:"key_file"`
}

// Caches bounds what akin remembers.
type Caches struct {
	Size Bytes    `yaml:"size" allowed:"2560KiB 256GiB"` // of all together
	TTL  Duration `yaml:"ttl" allowed:"1s 24h"`
}

// Large returns the bytes of the cache of matrix rows, and of that of the terms
// of documents.
func (c *Caches) Large() uint64 { return 4 * c.Small() }

// Small returns the bytes of the cache of analyzed texts, and of that of
// document frequencies: a tenth of all.
func (c *Caches) Small() uint64 { return uint64(max(c.Size, 0)) / 10 }

// Memory bounds what akin keeps for requests in progress.
type Memory struct {
	InFlight Bytes `yaml:"in_flight" allowed:"16MiB 64GiB"` // of which one client gets at most half
}

// Log says what is logged, and how.
type Log struct {
	Level   string `yaml:"level" allowed:"debug info warn error"`
	Queries bool   `yaml:"queries"` // allows the text of searches
	Access  bool   `yaml:"access"`  // on standard output
}

// Default returns the configuration of an empty file. The caller owns it.
func Default() *Config {
	return &Config{
		Listen: Listen{
			Address:     "127.0.0.1:9280",
			IdleTimeout: Duration(2 * time.Minute), BodyTimeout: Duration(30 * time.Second),
		},
		Admin:    Admin{Address: "127.0.0.1:9281"},
		Shutdown: Shutdown{Delay: Duration(5 * time.Second)},
		Cluster:  Cluster{URLs: []string{"http://127.0.0.1:9200"}},
		Expansion: Expansion{
			Enabled: true, Profile: expand.DefaultProfile(),
			Budget: Duration(50 * time.Millisecond), MaxBody: mebibyte, HideFrom: expand.DiscloseSecured,
		},
		Profiles: map[string]Profile{},
		Caches:   Caches{Size: 160 * mebibyte, TTL: Duration(time.Minute)},
		Memory:   Memory{InFlight: 128 * mebibyte},
		Log:      Log{Level: "info"},
	}
}

// defaultMatrix returns the defaults of an entry of matrices or weights:
// everything, from Redis.
func defaultMatrix() Matrix {
	return Matrix{Indices: []string{"*"}, Fields: []string{"*"}}
}

func defaultSegments() form.Segments { return form.Segments{Path: "segments"} }

func defaultTrial() Trial { return Trial{Indices: []string{"*"}} }

// defaultProfile returns the defaults of an entry of profiles: the settings of
// c, and every matrix.
func defaultProfile(c *Config) Profile {
	p := Profile{Enabled: c.Expansion.Enabled, Profile: c.Expansion.Profile}
	p.DefaultFields, p.Segments = slices.Clone(p.DefaultFields), slices.Clone(p.Segments)
	return p
}
