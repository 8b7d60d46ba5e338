// Package configs holds akin's configuration: the structs, their defaults, and
// a strict reader of the YAML file.
//
// A file states what differs from [Default]. [Load] refuses a file that has
// anything wrong with it, and reports every problem at once, each with its
// file, line and key. configs/akin.yml lists every key with its meaning and its
// range.
//
// Credentials never stand in the file: they come from the environment or from
// files of their own, and are kept as a [Secret].
package configs

import (
	"slices"
	"time"
)

// A Config is a complete configuration. One that comes from [Default], [Load]
// or [Parse] is valid.
type Config struct {
	// Listen is where clients connect.
	Listen Listen `yaml:"listen"`
	// Admin is the listener of health, metrics and explanations.
	Admin Admin `yaml:"admin"`
	// Shutdown says how the process ends.
	Shutdown Shutdown `yaml:"shutdown"`
	// Cluster is the search cluster that requests are forwarded to.
	Cluster Cluster `yaml:"cluster"`
	// Expansion says which searches are rewritten, and how.
	Expansion Expansion `yaml:"expansion"`
	// Profiles are other ways of rewriting, by the names that clients use.
	// Their defaults are the values of Expansion.
	Profiles map[string]Profile `yaml:"profiles"`
	// Matrices are the similarity matrices. The first one that fits an index and
	// a field is used. None: every request is forwarded as it came.
	Matrices []Matrix `yaml:"matrices"`
	// Weights are matrices whose document frequencies are the term weights of
	// the modes hard and soft, chosen in the same way. None: there is no mode hard.
	Weights []Matrix `yaml:"weights"`
	// Redis is the store of the matrices and weights that have no file.
	Redis Redis `yaml:"redis"`
	// Caches bounds what akin remembers.
	Caches Caches `yaml:"caches"`
	// Memory bounds what akin keeps for requests in progress.
	Memory Memory `yaml:"memory"`
	// Log says what is logged, and how.
	Log Log `yaml:"log"`
	// Warnings say which keys have old names, with file and line.
	Warnings []string `yaml:"-"`
}

// Listen is the listener that clients connect to.
type Listen struct {
	// Address is host:port; port 0 takes a free one, no host is all interfaces.
	Address string `yaml:"address"`
	// ForwardedHeaders describes the client to the cluster, by X-Forwarded-For,
	// -Host and -Proto in place of those that the client sent.
	ForwardedHeaders bool `yaml:"forwarded_headers"`
	// TLS serves HTTPS where its files are set.
	TLS ServerTLS `yaml:"tls"`
	// MaxHeader bounds the headers of a request, and its first line.
	MaxHeader Bytes `yaml:"max_header"`
	// MaxConnections is how many clients may be connected; 0 derives it from
	// the limit of open files.
	MaxConnections int `yaml:"max_connections"`
	// IdleTimeout is how long a connection may wait for its next request.
	IdleTimeout Duration `yaml:"idle_timeout"`
	// BodyTimeout is how long the body of a search may take to arrive; longer
	// only at 8 KiB a second or more.
	BodyTimeout Duration `yaml:"body_timeout"`
}

// ServerTLS names the PEM files of the certificate that akin shows to its
// clients. Both are set or none; without them akin serves plain HTTP.
type ServerTLS struct {
	CertFile string `yaml:"cert_file"`
	KeyFile  string `yaml:"key_file"`
}

// Admin is the listener for operators. It has no access control of its own.
type Admin struct {
	// Address is host:port, as in [Listen].
	Address string `yaml:"address"`
	// Hosts are further names that requests for the texts of searches may be
	// addressed to.
	Hosts []string `yaml:"hosts"`
}

// Shutdown says how the process ends.
type Shutdown struct {
	// Delay is how long new requests are still accepted while /readyz asks load
	// balancers to send none.
	Delay Duration `yaml:"delay"`
	// Timeout is how long requests in progress may take after that.
	Timeout Duration `yaml:"timeout"`
}

// Cluster is the search cluster.
type Cluster struct {
	// URLs are the nodes, at least one.
	URLs []string `yaml:"urls"`
	// TLS says how https nodes are verified.
	TLS ClientTLS `yaml:"tls"`
	// Auth is for akin's own calls. Clients' requests carry the clients'
	// credentials.
	Auth Auth `yaml:"auth"`
}

// ClientTLS says how the nodes' certificates are verified.
type ClientTLS struct {
	// CAFile is a PEM file of the authorities to trust; "" trusts the system's.
	CAFile string `yaml:"ca_file"`
	// InsecureSkipVerify accepts any certificate.
	InsecureSkipVerify bool `yaml:"insecure_skip_verify"`
}

// Auth holds akin's own credentials: a user name with a password, or an API
// key, or nothing. The environment overrides the files.
type Auth struct {
	Username     string `yaml:"username"`
	PasswordFile string `yaml:"password_file"`
	APIKeyFile   string `yaml:"api_key_file"`
	// Password and APIKey are set by [Load].
	Password Secret `yaml:"-"`
	APIKey   Secret `yaml:"-"` // in the encoded form: base64 of id:key
}

// The values of [Rewriting.Mode].
const (
	ModeBM25 = "bm25" // the engine's BM25 with related terms added
	ModeHard = "hard" // the engine ranks by the hard-normalized soft cosine
	ModeSoft = "soft" // akin reranks the engine's first hits by the soft cosine measure
)

// The values of [Rewriting.Scoring], the forms of the added clauses.
const (
	ScoringAuto      = "auto"      // saturated where the cluster runs scripts, else grouped
	ScoringLinear    = "linear"    // one flat clause for each added term
	ScoringGrouped   = "grouped"   // the added terms under the term they belong to
	ScoringSaturated = "saturated" // added terms count as occurrences of the original one
)

// The values of [Rewriting.Matching].
const (
	MatchingWiden = "widen" // finds also documents with only related words
	MatchingSame  = "same"  // keeps the set of hits and changes only their order
)

// The values of [Rewriting.Phase].
const (
	PhaseAuto    = "auto"    // rescore for the saturated form where a search allows it, else query
	PhaseQuery   = "query"   // the form is the query
	PhaseRescore = "rescore" // the saturated form rescores the best hits of the linear one
)

// The values of [Rewriting.Highlight].
const (
	HighlightOriginal = "original" // the words that the original search marks
	HighlightRelated  = "related"  // the added words, too
)

// The values of [Expansion.HideFrom].
const (
	HideFromProfile  = "profile"  // a search with "profile"
	HideFromExplain  = "explain"  // a search with "explain", or _explain
	HideFromValidate = "validate" // _validate/query that asks for more than valid or not
)

// Expansion says which searches are rewritten, and how.
type Expansion struct {
	Rewriting `yaml:",inline"`

	// Budget is the time for akin's own work on one search. When it is spent the
	// original is sent.
	Budget Duration `yaml:"budget"`
	// MaxBody is the largest body that is read, decompressed. A larger one is
	// forwarded as it came.
	MaxBody Bytes `yaml:"max_body"`
	// RerankBudget is the time for reranking the hits of one request in the
	// mode soft. When it is spent the engine's order is returned.
	RerankBudget Duration `yaml:"rerank_budget"`
	// RankEval rewrites the searches of _rank_eval, too.
	RankEval bool `yaml:"rank_eval"`
	// Templates has the cluster render search templates, and rewrites the result.
	Templates bool `yaml:"templates"`
	// HideFrom lists requests that are forwarded as they came because their
	// answers show the added terms. On an alias with a filter they always are.
	HideFrom []string `yaml:"hide_from"`
	// Shadow in [0, 1], unless 0, answers clients with the original search and
	// also runs this share of the searches rewritten, for the metrics.
	Shadow float64 `yaml:"shadow"`
}

// A Profile is another way of rewriting searches.
type Profile struct {
	Rewriting `yaml:",inline"`

	// Matrices are the names of the matrices to use, tried in the order of the
	// configuration. None: all.
	Matrices []string `yaml:"matrices"`
}

// Rewriting says how searches are rewritten.
type Rewriting struct {
	// Enabled switches rewriting; false forwards every request as it came.
	Enabled bool   `yaml:"enabled"`
	Mode    string `yaml:"mode"`
	// RerankWindow is how many hits the mode soft reranks.
	RerankWindow int    `yaml:"rerank_window"`
	Scoring      string `yaml:"scoring"`
	Phase        string `yaml:"phase"`
	Matching     string `yaml:"matching"`
	// MaxAddedTerms is how many terms one search gets at most; 0 adds none.
	MaxAddedTerms int `yaml:"max_added_terms"`
	// MaxQueryTerms is how many terms a text may have to be expanded.
	MaxQueryTerms int `yaml:"max_query_terms"`
	// MaxDocShare is the largest share of the documents that an added term
	// may occur in, in (0, 1].
	MaxDocShare float64 `yaml:"max_doc_share"`
	// Strength is λ, the share of their score that added terms contribute.
	Strength Strength `yaml:"strength"`
	// DefaultFields are the fields of a `q` parameter without `df`. None:
	// such a search is forwarded as it came.
	DefaultFields []string `yaml:"default_fields"`
	Highlight     string   `yaml:"highlight"`
	// NormalizeScore keeps the largest score of a clause, so that searches with
	// min_score can be expanded.
	NormalizeScore bool `yaml:"normalize_score"`
	// Phrases ranks the hits of a phrase with words related to its own.
	Phrases bool `yaml:"phrases"`
	// RescoreQueries expands the searches' own rescore queries.
	RescoreQueries bool `yaml:"rescore_queries"`
}

// Strength is λ of each scoring form, in [0, 1]; with 0 added terms score
// nothing.
type Strength struct {
	Linear    float64 `yaml:"linear"`
	Grouped   float64 `yaml:"grouped"`
	Saturated float64 `yaml:"saturated"`
}

// A Matrix binds a similarity matrix, or one used for term weights, to indices
// and fields.
type Matrix struct {
	// Name is unique in its list: 1 to 64 letters (A to Z, a to z), digits,
	// dots, _ and -. It has no default.
	Name string `yaml:"name"`
	// Indices are names of indices, aliases and data streams; * stands for any
	// characters. At least one. Those with a leading - are excluded.
	Indices []string `yaml:"indices"`
	// Fields are full field names; * stands for any characters. At least one.
	Fields []string `yaml:"fields"`
	// File is a matrix file to serve from memory; "" takes the matrix from
	// Redis by its name. The file need not exist yet.
	File string `yaml:"file"`
}

// Redis is the store of matrices and their versions.
type Redis struct {
	// URL is as in package redisurl; "" is no Redis. [EnvRedisURL] replaces it
	// and may carry credentials and options.
	URL Secret `yaml:"url"`
	// TLS is for a URL that begins with rediss.
	TLS RedisTLS `yaml:"tls"`
	// Timeout bounds each exchange with Redis.
	Timeout Duration `yaml:"timeout"`
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
	// Rows bounds the cache of matrix rows read from Redis.
	Rows Bytes `yaml:"rows"`
	// Analysis bounds the cache of analyzed texts and of mappings.
	Analysis Bytes `yaml:"analysis"`
	// Statistics bounds the cache of document frequencies.
	Statistics Bytes `yaml:"statistics"`
	// Vectors bounds the cache of documents' terms for the mode soft.
	Vectors Bytes `yaml:"vectors"`
	// TTL is how long an answer of the cluster is valid.
	TTL Duration `yaml:"ttl"`
}

// Memory bounds what akin keeps for requests in progress.
type Memory struct {
	// InFlight bounds all of it together. One client gets at most half of it.
	InFlight Bytes `yaml:"in_flight"`
}

// The values of [Log.Level], which includes more severe ones, and of
// [Log.Format].
const (
	LevelDebug = "debug"
	LevelInfo  = "info"
	LevelWarn  = "warn"
	LevelError = "error"

	FormatJSON = "json"
	FormatText = "text"
)

// Log says what is logged on standard error, and how.
type Log struct {
	Level  string `yaml:"level"`
	Format string `yaml:"format"` // one record a line
	// Queries allows the text of searches in log records.
	Queries bool `yaml:"queries"`
}

// Default returns the configuration of an empty file. The caller owns it.
func Default() *Config {
	return &Config{
		Listen: Listen{
			Address:     "127.0.0.1:9280",
			MaxHeader:   8 * kibibyte,
			IdleTimeout: Duration(2 * time.Minute),
			BodyTimeout: Duration(30 * time.Second),
		},
		Admin:    Admin{Address: "127.0.0.1:9281", Hosts: []string{}},
		Shutdown: Shutdown{Delay: Duration(5 * time.Second), Timeout: Duration(20 * time.Second)},
		Cluster:  Cluster{URLs: []string{"http://127.0.0.1:9200"}},
		Expansion: Expansion{
			Rewriting: Rewriting{
				Enabled:       true,
				Mode:          ModeBM25,
				RerankWindow:  100,
				Scoring:       ScoringAuto,
				Phase:         PhaseAuto,
				Matching:      MatchingWiden,
				MaxAddedTerms: 30,
				MaxQueryTerms: 64,
				MaxDocShare:   0.1,
				Strength:      Strength{Linear: 0.2, Grouped: 0.5, Saturated: 0.25},
				DefaultFields: []string{},
				Highlight:     HighlightOriginal,
			},
			Budget:       Duration(50 * time.Millisecond),
			MaxBody:      1 * mebibyte,
			RerankBudget: Duration(50 * time.Millisecond),
			RankEval:     true,
			HideFrom:     []string{},
		},
		Profiles: map[string]Profile{},
		Matrices: []Matrix{},
		Weights:  []Matrix{},
		Redis:    Redis{Timeout: Duration(30 * time.Millisecond)},
		Caches: Caches{
			Rows:       64 * mebibyte,
			Analysis:   16 * mebibyte,
			Statistics: 16 * mebibyte,
			Vectors:    64 * mebibyte,
			TTL:        Duration(time.Minute),
		},
		Memory: Memory{InFlight: 128 * mebibyte},
		Log:    Log{Level: LevelInfo, Format: FormatJSON},
	}
}

// defaultMatrix returns the defaults of an entry of matrices or weights:
// everything, from Redis.
func defaultMatrix() Matrix {
	return Matrix{Indices: []string{"*"}, Fields: []string{"*"}}
}

// defaultProfile returns the defaults of an entry of profiles: the settings of
// c, and every matrix.
func defaultProfile(c *Config) Profile {
	p := Profile{Rewriting: c.Expansion.Rewriting, Matrices: []string{}}
	p.DefaultFields = slices.Clone(p.DefaultFields)
	return p
}
