package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/internal/budget"
	"github.com/akin-search/akin/internal/nodes"
	"github.com/akin-search/akin/internal/recovery"
	"github.com/akin-search/akin/proxy/explain"
	"github.com/akin-search/akin/proxy/health"
	"github.com/akin-search/akin/proxy/held"
	"github.com/akin-search/akin/proxy/shadow"
)

// Defaults of [Options].
const (
	// DefaultBudget is the time that akin takes for its own work on a search.
	DefaultBudget = 50 * time.Millisecond
	// DefaultRerankBudget is the time that reranking the hits of a request may
	// take, from when the whole of the cluster's answer is there.
	DefaultRerankBudget = 50 * time.Millisecond
	// DefaultMaxBody is the size of the largest search body that is read.
	DefaultMaxBody = 1 << 20
	// DefaultMaxHeader is the size of the largest headers of a request, what
	// OpenSearch and Elasticsearch 7 take.
	DefaultMaxHeader = 8 << 10
	// DefaultIdleTimeout is how long a connection waits for its next request.
	DefaultIdleTimeout = 2 * time.Minute
	// DefaultBodyTimeout bounds the time for which a client can keep memory, or a
	// connection, for a body.
	DefaultBodyTimeout = 30 * time.Second
	// DefaultShutdownTimeout is how long requests under way may take once no more
	// are accepted. It is below the 30 s that Kubernetes waits before it kills.
	DefaultShutdownTimeout = 20 * time.Second
)

// An Expander rewrites searches. The expand package implements it.
type Expander interface {
	// Expand returns what becomes of r, until ctx ends at the latest. An error
	// means that something failed: then the original goes to the cluster. It
	// must not keep or modify r.
	Expand(ctx context.Context, r *expand.Request) (*expand.Result, error)
}

// Options say what [New] builds a server from.
type Options struct {
	// Nodes sends requests to the cluster. The server closes it when it ends. With
	// nil it is made of Upstreams and TLS.
	Nodes *nodes.Pool
	// Upstreams are the base URLs of the cluster's nodes, at least one, http or
	// https, with or without a path prefix, without credentials: those of each
	// client are passed on.
	Upstreams []string
	// TLS is used towards https nodes; nil verifies against the system's roots.
	// It must not be modified afterwards.
	TLS *tls.Config
	// ForwardedHeaders adds X-Forwarded-For, -Host and -Proto to what is sent
	// to the cluster. Off, those that the client sent pass as they are.
	ForwardedHeaders bool

	// Secured says that the cluster has security, so that a search is expanded
	// only for a client that the cluster lets search. That is found out, too, by
	// the first search that is answered with 401 or 403.
	Secured bool
	// AdminHosts are the host names, besides localhost, by which the admin port
	// may be called to see the texts of searches. Any address will do.
	AdminHosts []string

	// Expander rewrites the searches; with nil their bodies pass unread.
	Expander Expander
	// Profiles rewrite the searches that ask for one by its name, in place of
	// Expander. A profile that is nil is switched off: its searches are
	// forwarded as they came, like those that ask for one that is not here.
	Profiles map[string]Expander
	// RankEval rewrites the searches of _rank_eval, too.
	RankEval bool
	// Templates has the cluster render search templates, so that the searches
	// that come out can be rewritten.
	Templates bool
	// Shadow in [0, 1], unless 0, answers every client with what the cluster
	// makes of the original search. This share of the plain searches is expanded
	// and sent once more after that, and metrics tell how the two differ.
	Shadow float64
	// Budget bounds the time of one call of Expander; 0 means [DefaultBudget].
	Budget time.Duration
	// MaxBody is the number of bytes, compressed and decompressed alike, up to
	// which a search body is read; 0 means [DefaultMaxBody]. Larger ones are
	// forwarded as they came.
	MaxBody int64
	// BodyTimeout is how long the body of a search that is read may take to come,
	// longer only where it comes at 8 KiB a second or more; 0 means
	// [DefaultBodyTimeout]. Then the search is answered with 408.
	BodyTimeout time.Duration
	// Memory bounds what is held for requests; nil means [budget.Default] for
	// this server only.
	Memory *budget.Budget
	// Cause names the cause of an error of Expander or Reranker in one or two
	// words, from a fixed small set: it labels metrics. With nil it is "budget" for an expired
	// deadline and "error" for all else.
	Cause func(error) string
	// Causes has every name that Cause gives, and says for the log what an
	// operator can do about it. Their metrics are there from the start.
	Causes map[string]string
	// Reranker scores the hits of searches that the expander wants to be
	// reranked; with nil they stay in the engine's order.
	Reranker Reranker
	// RerankBudget bounds the time that the calls of Reranker for one request may
	// take together; 0 means [DefaultRerankBudget]. When it is spent the engine's
	// order goes out.
	RerankBudget time.Duration
	// OnRefused, unless nil, is called each time the cluster answers a rewritten
	// search with an error, or says that it failed, and takes the original; not
	// where the cluster has too much to do, or the client may not search. It
	// reports whether akin has learnt something from it, so that the next search
	// like it is written in another way: else those are left alone for a while. Of
	// several searches in one request it is told of the first one refused; where
	// they have different index expressions and it cannot be seen which that was,
	// as in an answer cut by filter_path, it is told of "", all indices. OnRefused
	// must not keep the refusal, nor block.
	OnRefused func(*expand.Refusal) (news bool)

	// MaxHeader is the number of bytes that the headers of a request, and that its
	// first line, may have on their way to the cluster; 0 means
	// [DefaultMaxHeader]. Larger ones are answered with 431. At most 64 KiB.
	MaxHeader int
	// MaxConnections is how many clients may be connected to a [Front]; 0 is no
	// bound.
	MaxConnections int
	// IdleTimeout is how long a connection of a [Front] may wait for its next
	// request; 0 means [DefaultIdleTimeout].
	IdleTimeout time.Duration
	// ShutdownDelay is how long a [Front] that is to end takes requests all the
	// same, while /readyz answers 503.
	ShutdownDelay time.Duration
	// ShutdownTimeout is how long requests under way may take after that; 0 means
	// [DefaultShutdownTimeout].
	ShutdownTimeout time.Duration
	// Previous is the server that this one is to replace, if any. Its metrics and
	// explanations go on in the new one, which ignores Registry, and so does what
	// it found out of the cluster's security.
	Previous *Server

	// Check returns the state of the process, for /readyz, log and metrics, until
	// ctx ends at the latest. With nil all is well. It may be called at the same
	// time.
	Check func(ctx context.Context) health.Condition
	// Logger receives the log; nil discards it.
	Logger *slog.Logger
	// LogQueries allows query texts in the log.
	LogQueries bool
	// Registry receives the metrics and is what /metrics shows; nil means a
	// new one.
	Registry *prometheus.Registry
	// Guard recovers what panics; with nil the server has its own, which counts
	// in Registry.
	Guard *recovery.Guard
}

// A Server forwards requests to a cluster. [New] makes it; its methods may be
// called concurrently.
type Server struct {
	opts     Options
	log      *slog.Logger
	guard    *recovery.Guard
	metrics  *metrics
	upstream *nodes.Pool
	types    atomic.Pointer[knownTypes]
	now      func() time.Time // replaced by tests
	forward  *httputil.ReverseProxy
	proxy    http.Handler
	admin    http.Handler
	gunzip   held.Gunzip
	// explanations are of the last searches.
	explanations *explain.Ring
	// unfit are the searches, by endpoint, path and profile, whose answers could
	// not be cut of late, so that their hits are left in the engine's order.
	unfit *marks
	// shapes are the searches that were refused of late.
	shapes *marks
	// clearing ends scrolls that nobody reads.
	clearing *shadow.Runner
	// access knows which clients may search.
	access *access
	// shadows are the searches that run after those of the clients.
	shadows *shadow.Runner
	// health knows what failed open of late.
	health *health.Health
	// bodyGrace and answerGrace are those of package held.
	bodyGrace, answerGrace time.Duration
	cutAnswers             prometheus.Counter
	// underWay is the number of requests that a Front has handed over.
	underWay atomic.Int64
	draining atomic.Bool
}

// New returns a server for o. It returns an error where o names no usable node
// or the metrics cannot be registered.
func New(o Options) (*Server, error) {
	o = withDefaults(o)
	s := &Server{
		opts: o, log: o.Logger, now: time.Now, upstream: o.Nodes,
		shadows: shadow.NewRunner(), clearing: shadow.NewRunner(),
		unfit: newMarks(), shapes: newMarks(),
		bodyGrace: held.BodyGrace, answerGrace: held.AnswerGrace,
	}
	var err error
	if p := o.Previous; p != nil {
		s.opts.Previous = nil // else no server would ever be freed
		s.opts.Registry, s.metrics, s.explanations, s.health = p.opts.Registry, p.metrics, p.explanations, p.health
	} else {
		hints := maps.Clone(ownHints)
		maps.Copy(hints, o.Causes)
		s.explanations, s.health = &explain.Ring{}, health.New(o.Logger, hints)
		if s.metrics, err = newMetrics(o.Registry, slices.Collect(maps.Keys(o.Causes))); err != nil {
			return nil, fmt.Errorf("proxy: metrics: %w", err)
		}
		if err := o.Registry.Register(s.health.Gauge); err != nil {
			return nil, fmt.Errorf("proxy: metrics: %w", err)
		}
	}
	if s.guard = o.Guard; s.guard == nil {
		if s.guard, err = recovery.New(o.Logger, o.Registry); err != nil {
			return nil, fmt.Errorf("proxy: metrics: %w", err)
		}
	}
	if s.upstream == nil {
		if s.upstream, err = nodes.New(nodes.Options{URLs: o.Upstreams, TLS: o.TLS, Logger: o.Logger, Guard: s.guard, Registerer: o.Registry}); err != nil {
			return nil, fmt.Errorf("proxy: %w", err)
		}
	}
	s.cutAnswers = s.metrics.cutOff.WithLabelValues(cutAnswer)
	s.access = newAccess(s, o.Secured || o.Previous != nil && o.Previous.access.secured.Load())
	s.forward = s.newForward()
	gin.SetMode(gin.ReleaseMode) // else gin prints its routes on stdout
	s.proxy = relayed(s.newProxyEngine(), s.guard)
	s.admin = s.newAdminEngine()
	return s, nil
}

func withDefaults(o Options) Options {
	if o.Budget == 0 {
		o.Budget = DefaultBudget
	}
	if o.RerankBudget == 0 {
		o.RerankBudget = DefaultRerankBudget
	}
	if o.MaxBody == 0 {
		o.MaxBody = DefaultMaxBody
	}
	if o.MaxHeader == 0 {
		o.MaxHeader = DefaultMaxHeader
	}
	if o.IdleTimeout == 0 {
		o.IdleTimeout = DefaultIdleTimeout
	}
	if o.ShutdownTimeout == 0 {
		o.ShutdownTimeout = DefaultShutdownTimeout
	}
	if o.BodyTimeout == 0 {
		o.BodyTimeout = DefaultBodyTimeout
	}
	if o.Memory == nil {
		o.Memory = budget.New(budget.Default)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Registry == nil {
		o.Registry = prometheus.NewRegistry()
	}
	if o.Cause == nil {
		o.Cause = defaultCause
	}
	return o
}

func defaultCause(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "budget"
	}
	return "error"
}

// Handler returns the handler of the proxy's listener.
func (s *Server) Handler() http.Handler { return s.proxy }

// AdminHandler returns the handler of the admin listener: /healthz, /readyz,
// /metrics, POST /_akin/expand/{index}, and GET /_akin/explanations with /{id}
// for one of them. It shows the texts of searches.
func (s *Server) AdminHandler() http.Handler { return s.admin }

// newProxyEngine returns a gin engine that knows no routes: gin matches and
// unescapes URL.Path, which loses %2F and with it date math in index names. So
// all requests meet in NoRoute and are told apart by their escaped path. There
// is no Recovery: [http.ErrAbortHandler] has to reach net/http, which cuts the
// client's connection, else a broken answer would look complete.
func (s *Server) newProxyEngine() *gin.Engine {
	e := gin.New()
	e.RedirectTrailingSlash = false
	e.RedirectFixedPath = false
	e.HandleMethodNotAllowed = false
	e.NoRoute(func(c *gin.Context) {
		s.serve(relayOf(c), c.Request)
		c.Writer.WriteHeaderNow() // tells gin that a 404 is not its to answer
	})
	return e
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if s.refuseHead(w, r) {
		return
	}
	m, ok := recognise(r.Method, r.URL.EscapedPath())
	if ok {
		s.search(w, r, m)
		return
	}
	s.metrics.passed.Inc()
	s.send(w, r)
}

// Serve answers on the two listeners until ctx ends, as [Front.Serve] does.
func (s *Server) Serve(ctx context.Context, proxy, admin net.Listener) error {
	return NewFront(s, nil).Serve(ctx, proxy, admin)
}

// Close ends what runs besides the requests of clients and waits for its end.
// Requests that are still under way are forwarded.
func (s *Server) Close() {
	s.shadows.Close()
	s.clearing.Close()
	s.access.close()
	s.upstream.Close()
}
