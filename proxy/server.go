package proxy

import (
	"cmp"
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
	// DefaultRerankBudget is the time for reranking the hits of a request, from
	// when the whole of the cluster's answer is there.
	DefaultRerankBudget = 50 * time.Millisecond
	// DefaultMaxBody is the size of the largest search body that is read.
	DefaultMaxBody = 1 << 20
	// DefaultMaxHeader is what OpenSearch and Elasticsearch 7 take.
	DefaultMaxHeader = 8 << 10
	// DefaultIdleTimeout is how long a connection waits for its next request.
	DefaultIdleTimeout = 2 * time.Minute
	// DefaultBodyTimeout bounds the time for which a client can keep memory, or a
	// connection, for a body.
	DefaultBodyTimeout = 30 * time.Second
	// DefaultShutdownTimeout is below the 30 s that Kubernetes waits before it
	// kills.
	DefaultShutdownTimeout = 20 * time.Second
)

// An Expander rewrites searches. The expand package implements it.
type Expander interface {
	// Expand returns what becomes of r, until ctx ends at the latest. After an
	// error the original goes to the cluster. It must not keep or modify r.
	Expand(ctx context.Context, r *expand.Request) (*expand.Result, error)
}

// Options say what [New] builds a server from.
type Options struct {
	// Nodes sends requests to the cluster; the server closes it when it ends. With
	// nil it is made of Upstreams and TLS.
	Nodes *nodes.Pool
	// Upstreams and TLS are [nodes.Options.URLs] and [nodes.Options.TLS].
	Upstreams []string
	TLS       *tls.Config
	// ForwardedHeaders adds X-Forwarded-For, -Host and -Proto to requests. Off,
	// those that the client sent pass as they are.
	ForwardedHeaders bool

	// Secured says that the cluster has security, so that a search is expanded
	// only for a client that the cluster lets search. The first search that is
	// answered with 401 or 403 shows it, too.
	Secured bool
	// AdminHosts are the host names, with localhost and any address, by which the
	// admin port may be called to see the texts of searches.
	AdminHosts []string

	// Expander rewrites the searches; with nil their bodies pass unread.
	Expander Expander
	// Profiles rewrite the searches that ask for one by its name. One that is nil
	// is switched off: its searches pass, like those that ask for an unknown one.
	Profiles map[string]Expander
	// RankEval rewrites the searches of _rank_eval, too.
	RankEval bool
	// Templates has the cluster render search templates, so that the searches
	// that come out can be rewritten.
	Templates bool
	// Shadow is a share in [0, 1]. Unless it is 0, every client gets the answer to
	// the original search; this share of the plain searches is expanded and sent
	// once more after that, and metrics tell how the two differ.
	Shadow float64
	// Budget bounds the time of one call of Expander; 0 means [DefaultBudget].
	Budget time.Duration
	// MaxBody is the number of bytes, compressed and decompressed alike, up to
	// which a search body is read; 0 means [DefaultMaxBody].
	MaxBody int64
	// BodyTimeout is how long the body of a search may take to come, longer only
	// where it comes at 8 KiB a second or more; 0 means [DefaultBodyTimeout]. Then
	// the search is answered with 408.
	BodyTimeout time.Duration
	// Memory bounds what requests keep in memory; nil means [budget.Default] for
	// this server only.
	Memory *budget.Budget
	// Cause names the cause of an error of Expander or Reranker, from a fixed small
	// set: it labels metrics. With nil it is "budget" for an expired deadline and
	// "error" for all else.
	Cause func(error) string
	// Causes has every name that Cause gives, and says for the log what an
	// operator can do about it.
	Causes map[string]string
	// Reranker scores the hits that are to be reranked; with nil they stay in the
	// engine's order.
	Reranker Reranker
	// RerankBudget bounds the time of all calls of Reranker for one request; 0
	// means [DefaultRerankBudget]. After that the engine's order goes out.
	RerankBudget time.Duration
	// OnRefused, unless nil, is called each time the cluster rejects a rewritten
	// search and accepts the original; not where the cluster is overloaded, or the
	// client may not search. It reports whether akin has learned something, so that
	// the next search like it is written in another way: else those are not
	// rewritten for a while. Of several searches in one request it gets the first
	// one rejected, with "" for all indices where it cannot be seen which that was.
	// It must not keep the refusal, nor block.
	OnRefused func(*expand.Refusal) (news bool)

	// MaxHeader is the number of bytes that the headers of a request, and that its
	// first line, may have; 0 means [DefaultMaxHeader]. Larger ones are answered
	// with 431. At most 64 KiB.
	MaxHeader int
	// MaxConnections is how many clients may be connected to a [Front]; 0 is no
	// bound.
	MaxConnections int
	// IdleTimeout is how long a connection of a [Front] may wait for its next
	// request; 0 means [DefaultIdleTimeout].
	IdleTimeout time.Duration
	// ShutdownDelay is how long a [Front] that is to end still takes requests,
	// while /readyz answers 503, and ShutdownTimeout how long those in flight may
	// take after that; 0 means [DefaultShutdownTimeout].
	ShutdownDelay, ShutdownTimeout time.Duration
	// Previous is the server that this one replaces, if any. Its metrics and
	// explanations go on in the new one, which ignores Registry, and so does what
	// it found out of the cluster's security.
	Previous *Server

	// Check returns the state of the process, until ctx ends at the latest. With
	// nil all is well. It may be called concurrently.
	Check func(ctx context.Context) health.Condition
	// Logger receives the log; nil discards it.
	Logger *slog.Logger
	// LogQueries allows query texts in the log.
	LogQueries bool
	// Registry receives the metrics and is what /metrics shows; nil means a
	// new one.
	Registry *prometheus.Registry
	// Guard recovers what panics; nil means a new one, which counts in Registry.
	Guard *recovery.Guard
}

// A Server forwards requests to a cluster. [New] makes it; its methods may be
// called concurrently.
type Server struct {
	*observed
	learned
	background
	bodies
	traffic

	opts     Options
	log      *slog.Logger
	guard    *recovery.Guard
	upstream *nodes.Pool
	access   *access
	forward  *httputil.ReverseProxy
	// proxy and admin are the handlers of the two listeners.
	proxy, admin http.Handler
}

// observed is what operators see. It outlives a server that is replaced.
type observed struct {
	registry     *prometheus.Registry
	metrics      *metrics
	explanations *explain.Ring
	health       *health.Health
}

// learned is what the answers of the cluster have shown.
type learned struct {
	types atomic.Pointer[knownTypes]
	// unfit are the searches, by endpoint, path and profile, whose answers could
	// not be cut of late, so that their hits stay in the engine's order; shapes are
	// those that the cluster rejected.
	unfit, shapes *marks
	now           func() time.Time // replaced by tests
}

// background runs what no client waits for: shadows, and ending scrolls that
// nobody reads.
type background struct{ shadows, clearing *shadow.Runner }

// bodies is how bodies are read: see package held.
type bodies struct {
	gunzip                 held.Gunzip
	bodyGrace, answerGrace time.Duration
}

// traffic is what a Front has handed over and not got back, and whether it ends.
type traffic struct {
	inFlight atomic.Int64
	draining atomic.Bool
}

// New returns a server for o. It returns an error where o names no usable node
// or the metrics cannot be registered.
func New(o Options) (*Server, error) {
	o = withDefaults(o)
	s := &Server{
		opts: o, log: o.Logger, guard: o.Guard, upstream: o.Nodes,
		learned:    learned{unfit: newMarks(), shapes: newMarks(), now: time.Now},
		background: background{shadow.NewRunner(), shadow.NewRunner()},
		bodies:     bodies{bodyGrace: held.BodyGrace, answerGrace: held.AnswerGrace},
	}
	s.opts.Previous = nil // else no server would ever be freed
	var err error
	if o.Previous != nil {
		s.observed = o.Previous.observed
	} else if s.observed, err = newObserved(&o); err != nil {
		return nil, fmt.Errorf("proxy: metrics: %w", err)
	}
	if s.guard == nil {
		if s.guard, err = recovery.New(o.Logger, o.Registry); err != nil {
			return nil, fmt.Errorf("proxy: metrics: %w", err)
		}
	}
	if s.upstream == nil {
		if s.upstream, err = nodes.New(nodes.Options{URLs: o.Upstreams, TLS: o.TLS, Logger: o.Logger, Guard: s.guard, Registerer: o.Registry}); err != nil {
			return nil, fmt.Errorf("proxy: %w", err)
		}
	}
	s.access = newAccess(s, o.Secured || o.Previous != nil && o.Previous.access.secured.Load())
	s.forward = s.newForward()
	gin.SetMode(gin.ReleaseMode) // else gin prints its routes on stdout
	s.proxy = relayed(s.newProxyEngine(), s.guard)
	s.admin = s.newAdminEngine()
	return s, nil
}

func newObserved(o *Options) (*observed, error) {
	hints := maps.Clone(ownHints)
	maps.Copy(hints, o.Causes)
	shown := &observed{registry: o.Registry, explanations: &explain.Ring{}, health: health.New(o.Logger, hints)}
	var err error
	if shown.metrics, err = newMetrics(o.Registry, slices.Collect(maps.Keys(o.Causes))); err != nil {
		return nil, err
	}
	return shown, o.Registry.Register(shown.health.Gauge)
}

func withDefaults(o Options) Options {
	o.Budget = cmp.Or(o.Budget, DefaultBudget)
	o.RerankBudget = cmp.Or(o.RerankBudget, DefaultRerankBudget)
	o.MaxBody = cmp.Or(o.MaxBody, DefaultMaxBody)
	o.MaxHeader = cmp.Or(o.MaxHeader, DefaultMaxHeader)
	o.IdleTimeout = cmp.Or(o.IdleTimeout, DefaultIdleTimeout)
	o.ShutdownTimeout = cmp.Or(o.ShutdownTimeout, DefaultShutdownTimeout)
	o.BodyTimeout = cmp.Or(o.BodyTimeout, DefaultBodyTimeout)
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

// AdminHandler returns the handler of the admin listener. It shows the texts of
// searches.
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
	if m, ok := recognize(r.Method, r.URL.EscapedPath()); ok {
		s.search(w, r, m)
		return
	}
	s.metrics.passedThrough.Inc()
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
