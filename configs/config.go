// Package configs has akin's configuration: the structs, their defaults, and a
// strict reader of the YAML file.
//
// A file has only what differs from [Default]. [Load] reports all errors at
// once, each with file, line and key. akin.yml lists every key with its meaning
// and range. Credentials come from the environment or from separate files, and
// are kept as a [Secret].
package configs

import (
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/expand/form"
)

// The environment variables that [Load] reads. A non-empty variable overrides
// the file.
const (
	EnvClusterUsername = "AKIN_CLUSTER_USERNAME"
	EnvClusterPassword = "AKIN_CLUSTER_PASSWORD" //nolint:gosec // The name of a variable, not a credential.
	EnvClusterAPIKey   = "AKIN_CLUSTER_API_KEY"  //nolint:gosec // The name of a variable, not a credential.
	EnvRedisURL        = "AKIN_REDIS_URL"
	EnvAdminToken      = "AKIN_ADMIN_TOKEN"
	EnvEmbeddingsKey   = "AKIN_EMBEDDINGS_KEY"
	EnvListenUsername  = "AKIN_LISTEN_USERNAME"
	EnvListenPassword  = "AKIN_LISTEN_PASSWORD"
	EnvListenAPIKey    = "AKIN_LISTEN_API_KEY" //nolint:gosec // The name of a variable, not a credential.
)

// A Config is a complete configuration. It is valid if it comes from [Default],
// [Load] or [Parse]. The tags are those of [expand.Profile]; of texts, is names
// an entry of rules. The comments here say only what akin.yml does not.
type Config struct {
	Listen    Listen    `yaml:"listen"`
	Admin     Admin     `yaml:"admin"`
	Shutdown  Shutdown  `yaml:"shutdown"`
	Cluster   Cluster   `yaml:"cluster"`
	Expansion Expansion `yaml:"expansion"`
	// Profiles default to the values of Expansion.
	Profiles map[string]Profile `yaml:"profiles"`
	// Matrices are the similarity matrices. Weights are matrices whose document
	// frequencies are term weights. The first entry that matches index and field
	// is used.
	Matrices []Matrix `yaml:"matrices"`
	Weights  []Matrix `yaml:"weights"`
	// Vectors are the model files of documents' vectors.
	Vectors    []string   `yaml:"vectors" is:"file"`
	Embeddings Embeddings `yaml:"embeddings"`
	Answers    Answers    `yaml:"answers"`
	Searches   Searches   `yaml:"searches"`
	Redis      Redis      `yaml:"redis"`
	Caches     Caches     `yaml:"caches"`
	Memory     Memory     `yaml:"memory"`
	Log        Log        `yaml:"log"`
}

// LendsRights reports whether whoever reaches the listener over the network
// acts with akin's rights in the cluster.
func (c *Config) LendsRights() bool {
	return c.Cluster.AWS.Signs() && exposed(c.Listen.Address) && !c.Listen.Auth.Given()
}

// Listen is the listener that clients connect to.
type Listen struct {
	Address          string    `yaml:"address" is:"address"` // host:port
	ForwardedHeaders bool      `yaml:"forwarded_headers"`
	TLS              ServerTLS `yaml:"tls"`
	Auth             Auth      `yaml:"auth"`
	MaxConnections   int       `yaml:"max_connections" allowed:"0 1000000"` // 0: derived from the limit of open files
	IdleTimeout      Duration  `yaml:"idle_timeout" allowed:"1s 1h"`
	BodyTimeout      Duration  `yaml:"body_timeout" allowed:"1s 1h"`
}

// ServerTLS has the PEM files of the certificate for clients. If both are
// empty, akin serves plain HTTP; otherwise both are required.
type ServerTLS struct {
	CertFile string `yaml:"cert_file"`
	KeyFile  string `yaml:"key_file"`
}

// Admin is the listener for operators.
type Admin struct {
	Address   string   `yaml:"address" is:"address"` // host:port
	Hosts     []string `yaml:"hosts" is:"host"`
	TokenFile string   `yaml:"token_file"`
	Token     Secret   `yaml:"-"` // set by Load; "" for none
}

// Exposed reports whether the listener is reachable from outside this machine.
func (a *Admin) Exposed() bool { return exposed(a.Address) }

func exposed(address string) bool {
	host, _, _ := net.SplitHostPort(address) // the address was checked
	return !isLocal(host)
}

// isLocal reports whether a host is this machine.
func isLocal(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// ShutdownTimeout is how long requests in progress may take after the delay.
// Both together should be less than the 30 s that Kubernetes waits.
const ShutdownTimeout = 20 * time.Second

// Shutdown configures the end of the process.
type Shutdown struct {
	Delay Duration `yaml:"delay" allowed:"0s 5m"`
}

// Cluster is the search cluster.
type Cluster struct {
	URLs    []string  `yaml:"urls" is:"node"` // at least one
	CloudID string    `yaml:"cloud_id"`       // read into URLs
	TLS     ClientTLS `yaml:"tls"`
	Auth    Auth      `yaml:"auth"`
	AWS     AWS       `yaml:"aws"`
}

// Secured reports whether akin has credentials for the cluster, which then asks
// for credentials.
func (c *Cluster) Secured() bool { return c.Auth.Given() || c.AWS.Signs() || c.TLS.Certificate != "" }

// AWS says how requests are signed for Amazon OpenSearch Service.
type AWS struct {
	Region  string `yaml:"region" is:"region"` // "" to sign nothing
	Service string `yaml:"service" allowed:"es aoss"`
	Profile string `yaml:"profile"`
	RoleARN string `yaml:"role_arn" is:"role"`
	Spool   string `yaml:"spool"`
}

// Signs reports whether requests are signed.
func (a *AWS) Signs() bool { return a.Region != "" }

// ClientTLS says how the nodes' certificates are verified, and which client
// certificate akin's own calls use.
type ClientTLS struct {
	CAFile             string `yaml:"ca_file"` // "" for the system's authorities
	InsecureSkipVerify bool   `yaml:"insecure_skip_verify"`
	Certificate        string `yaml:"certificate"` // a PEM file, "" for none
	Key                string `yaml:"key"`         // a PEM file
}

// Auth has credentials, of akin's own calls or of clients: a user name with a
// password, an API key, or nothing. The environment overrides the files.
type Auth struct {
	Username     string `yaml:"username"`
	PasswordFile string `yaml:"password_file"`
	APIKeyFile   string `yaml:"api_key_file"`
	Password     Secret `yaml:"-"` // set by Load
	APIKey       Secret `yaml:"-"` // set by Load; base64 of id:key
}

// Given reports whether there are credentials.
func (a *Auth) Given() bool { return a.Username != "" || a.APIKey.Reveal() != "" }

// Expansion says which searches are rewritten, and how.
type Expansion struct {
	Enabled        bool `yaml:"enabled"`
	expand.Profile `yaml:",inline"`

	Budget       Duration          `yaml:"budget" allowed:"1ms 10s"`       // reranking may take as long again
	MaxBody      Bytes             `yaml:"max_body" allowed:"1KiB 100MiB"` // decompressed; engines accept at most 100 MiB by default
	RerankWarmUp bool              `yaml:"rerank_warm_up"`
	Templates    bool              `yaml:"templates"`
	HideFrom     expand.Disclosure `yaml:"hide_from"`            // for every profile, because clients choose the profile
	Shadow       float64           `yaml:"shadow" allowed:"0 1"` // a share
	Trials       []Trial           `yaml:"trials"`               // the first that matches the index is used
}

// ArmOff is the arm of a [Trial] that forwards searches unchanged.
const ArmOff = "off"

// A Trial compares two ways to search, its arms, on live searches.
type Trial struct {
	Name    string   `yaml:"name" is:"name"`     // unique, without a default
	Indices []string `yaml:"indices" is:"index"` // as in Matrix
	Arms    []string `yaml:"arms"`               // the current and the new way: profile names or ArmOff
	Share   float64  `yaml:"share" allowed:"0 1"`
	Header  string   `yaml:"header" is:"header"` // "" for the client's address
}

// A Profile is an alternative way to rewrite searches.
type Profile struct {
	Enabled        bool `yaml:"enabled"`
	expand.Profile `yaml:",inline"`

	Matrices []string `yaml:"matrices"` // names; empty for all
}

// A Matrix binds a similarity matrix or term weights to indices and fields.
type Matrix struct {
	Name    string   `yaml:"name" is:"name"` // unique in its list, without a default
	Indices []string `yaml:"indices" is:"index"`
	Fields  []string `yaml:"fields" is:"pattern"`
	File    string   `yaml:"file"` // "" for Redis; need not exist yet
}

// Embeddings says which language model makes the vectors that
// [expand.ByEmbeddings] orders hits by, and what of documents it reads.
type Embeddings struct {
	URL            string   `yaml:"url"`   // "" for no model
	Model          string   `yaml:"model"` // "" if the URL names it
	SearchPrefix   string   `yaml:"search_prefix"`
	DocumentPrefix string   `yaml:"document_prefix"`
	KeyFile        string   `yaml:"key_file"`
	Key            Secret   `yaml:"-"`       // set by Load; "" for none
	CAFile         string   `yaml:"ca_file"` // "" for the system's authorities
	Fields         []string `yaml:"fields" is:"field"`
	Budget         Duration `yaml:"budget" allowed:"1ms 10s"`
	Size           Bytes    `yaml:"size" allowed:"1MiB 256GiB"`
	File           string   `yaml:"file"` // "" for Redis, or for no store without
}

// Redis is the store of matrices and their versions.
type Redis struct {
	URL Secret   `yaml:"url"` // as in package redisurl; "" for no Redis
	TLS RedisTLS `yaml:"tls"`
}

// RedisTLS has the PEM files for connections to Redis: the trusted authorities,
// "" for the system's, and the client certificate with its key.
type RedisTLS struct {
	CAFile   string `yaml:"ca_file"`
	CertFile string `yaml:"cert_file"`
	KeyFile  string `yaml:"key_file"`
}

// Caches limits what akin caches.
type Caches struct {
	Size Bytes    `yaml:"size" allowed:"2560KiB 256GiB"` // of all caches together
	TTL  Duration `yaml:"ttl" allowed:"1s 24h"`
}

// Large returns the bytes of the cache of matrix rows, and of the cache of
// documents' terms.
func (c *Caches) Large() uint64 { return 4 * c.Small() }

// Small returns the bytes of the cache of analyses, and of the cache of
// document frequencies: a tenth of the total.
func (c *Caches) Small() uint64 { return uint64(max(c.Size, 0)) / 10 }

// Memory limits what akin keeps for requests in progress.
type Memory struct {
	InFlight Bytes `yaml:"in_flight" allowed:"16MiB 64GiB"` // one client gets at most half
}

// Answers configures what answers get besides what the cluster says.
type Answers struct {
	Header bool `yaml:"header"` // X-Akin-Result
}

// Searches says whether texts of searches that find nothing or little are kept.
type Searches struct {
	Collect        bool     `yaml:"collect"`
	Below          int      `yaml:"below" allowed:"1 10000"`
	ExcludeIndices []string `yaml:"exclude_indices" is:"index"` // without a leading "-"
	Keep           Duration `yaml:"keep" allowed:"24h 744h"`    // whole days
	File           string   `yaml:"file"`                       // "" for Redis, or for memory alone without
	Clicks         string   `yaml:"clicks"`                     // log of clicks, "" for none
}

// Log configures the logs.
type Log struct {
	Level   string `yaml:"level" allowed:"debug info warn error"`
	Queries bool   `yaml:"queries"` // log the text of searches
	Access  bool   `yaml:"access"`  // write an access log to standard output
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
		Cluster:  Cluster{URLs: []string{"http://127.0.0.1:9200"}, AWS: AWS{Service: "es"}},
		Expansion: Expansion{
			Enabled: true, Profile: expand.DefaultProfile(),
			Budget: Duration(50 * time.Millisecond), MaxBody: mebibyte, RerankWarmUp: true, HideFrom: expand.DiscloseSecured,
		},
		Profiles:   map[string]Profile{},
		Embeddings: Embeddings{Budget: Duration(40 * time.Millisecond), Size: 100 * mebibyte},
		Searches:   Searches{Below: 5, Keep: Duration(720 * time.Hour)},
		Caches:     Caches{Size: 160 * mebibyte, TTL: Duration(time.Minute)},
		Memory:     Memory{InFlight: 128 * mebibyte},
		Log:        Log{Level: "info"},
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
// c, and all matrices.
func defaultProfile(c *Config) Profile {
	p := Profile{Enabled: c.Expansion.Enabled, Profile: c.Expansion.Profile}
	p.DefaultFields, p.Segments = slices.Clone(p.DefaultFields), slices.Clone(p.Segments)
	return p
}
