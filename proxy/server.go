package proxy

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/internal/limits"
	"github.com/akin-search/akin/internal/nodes"
	"github.com/akin-search/akin/internal/recovery"
	"github.com/akin-search/akin/proxy/playground"
	"github.com/akin-search/akin/proxy/report"
)

// An Expander rewrites searches. The expand package implements it.
type Expander interface {
	// Expand rewrites r, at the latest until ctx ends. If it returns an error, the
	// original is sent. It must not modify r.
	Expand(ctx context.Context, r *expand.Request) (*expand.Result, error)
	// WithFirstHits is [expand.Expander.WithFirstHits].
	WithFirstHits(ctx context.Context, first *expand.Result, hits [][]expand.FirstHit) (*expand.Result, error)
	// Below is [expand.Expander.Below].
	Below(r *expand.Request) []int
}

// Options configure the server that [New] returns.
type Options struct {
	// Nodes sends requests to the cluster. The server closes it.
	Nodes *nodes.Pool
	// ForwardedHeaders adds X-Forwarded-For, -Host and -Proto. If it is false, the
	// client's own pass.
	ForwardedHeaders bool

	// Secured says that the cluster has security: a search is expanded only for
	// clients that may search. A 401 or 403 sets it, too (not for blocked
	// indices).
	Secured bool
	// Signs says that Nodes signs requests: signatures of clients go no further.
	Signs bool
	// Clients are the credentials that clients must have.
	Clients Clients
	// Gate controls access to texts of searches on the admin port.
	Gate Gate
	// Matrices gives the playground matrices to show; nil shows none.
	Matrices playground.Matrices
	// Suggestions say what would help searches that find nothing; nil makes none.
	Suggestions playground.Suggestions

	// Expander rewrites searches. If it is nil, their bodies pass unread.
	Expander Expander
	// Profiles are the expanders that a search can ask for by name. A search that
	// asks for an unknown or nil one passes unchanged.
	Profiles map[string]Expander
	// ResultHeader adds X-Akin-Result to the answers to all searches, else only to
	// those that ask for an explanation. HideFrom is that of the expanders: where it
	// hides related words, no answer has the header.
	ResultHeader bool
	HideFrom     expand.Disclosure
	// Templates turns on rewriting of search templates, which the cluster renders.
	Templates bool
	// Shadow is a share in [0, 1]. If it is not 0, clients get the answers to
	// their original searches. After that, this share of the plain searches is
	// expanded and sent, too, and metrics compare the two answers.
	Shadow float64
	// Trials compare two arms, each [Off] or a name in Profiles. A search takes
	// part in the first trial that covers its index. Trials exclude Shadow.
	Trials []Trial
	// Budget is the time limit of one call of Expander. ColdStart, unless nil,
	// lengthens it while caches are cold.
	Budget    time.Duration
	ColdStart *ColdStart
	// MaxBody is the largest search body that is read, in bytes, compressed and
	// decompressed alike.
	MaxBody int64
	// BodyTimeout is how long a search body may take to arrive, unless it comes at
	// 8 KiB a second or more. A slower search gets 408.
	BodyTimeout time.Duration
	// Unbound returns a sentence for people on an index expression to which no
	// matrix is bound; it may be nil.
	Unbound func(ctx context.Context, index string) string
	// Memory limits the memory that requests use.
	Memory *limits.Budget
	// Cause names the cause of an error of Expander or Reranker for metrics.
	// Causes has every name that Cause returns, with advice to operators.
	Cause  func(error) string
	Causes map[string]string
	// Reranker scores hits for reranking; nil keeps the engine's order.
	Reranker Reranker
	// HitTerms returns the terms of the first hits for expanders that ask for
	// feedback; nil turns feedback off.
	HitTerms HitTerms
	// RerankBudget is the time limit of all calls of Reranker for one request,
	// from when the cluster's answer is complete. After it the order so far goes
	// out.
	RerankBudget time.Duration
	// OnRefused, unless nil, is called when a cluster that is not overloaded
	// rejects a rewritten search and accepts the original. It reports whether the
	// next such search will be written differently; if not, after several refusals
	// such searches are not rewritten for a while. Of several searches in one
	// request it gets the first one rejected, with the index "" (all indices) if
	// that is unknown. It must not block or keep its argument.
	OnRefused func(*expand.Refusal) (news bool)

	// Collect counts searches by what they find.
	Collect Collecting

	// MaxConnections limits client connections; 0 means no limit.
	MaxConnections int
	// IdleTimeout is how long a connection waits for a request.
	IdleTimeout time.Duration
	// ShutdownDelay is how long a [Front] that shuts down still accepts requests,
	// while /readyz answers 503. ShutdownTimeout is how long requests in flight
	// may take after that.
	ShutdownDelay, ShutdownTimeout time.Duration
	// Previous is the server that this one replaces, if any. Its metrics (in place
	// of Registry), explanations, health, pause and knowledge of the cluster's
	// security carry over.
	Previous *Server

	// Forms returns words to show for terms on the admin port; nil shows none.
	Forms report.Forms
	// Check returns the state of the process, at the latest when ctx ends; nil
	// means a good state. It may be called concurrently.
	Check func(ctx context.Context) report.Condition
	// Logger receives the log.
	Logger *slog.Logger
	// LogQueries allows query texts in the log.
	LogQueries bool
	// Registry has the metrics that /metrics shows.
	Registry *prometheus.Registry
	// Guard recovers panics.
	Guard *recovery.Guard
	// AccessLog gets a record per request, without the query string; nil turns it
	// off. It must not block.
	AccessLog *slog.Logger
	// Tracer traces requests; nil turns tracing off. It outlives the server.
	Tracer *sdktrace.TracerProvider
}

// A Server forwards requests to a cluster. [New] creates it. Its methods may be
// called concurrently.
type Server struct {
	opts      Options
	log       *slog.Logger
	guard     *recovery.Guard
	upstream  *nodes.Pool
	transport http.RoundTripper // the upstream, or a double in tests
	cause     func(error) string
	calls     *calls
	access    *access
	tokens    wrongTokens // sent to the admin port

	// The handlers of the two listeners, proxy around the router; the requests in
	// flight from a Front, and whether the server is shutting down.
	router       *gin.Engine
	proxy, admin http.Handler
	inFlight     atomic.Int64
	draining     atomic.Bool

	// What operators see, and the pause. They outlive a server that is replaced.
	registry     *prometheus.Registry
	metrics      *report.Metrics
	explanations *report.Ring
	health       *report.Health
	pause        *pause

	// Settings for reading bodies and copying answers: see package limits.
	gunzip                 limits.Gunzip
	bodyGrace, answerGrace time.Duration
	buffers                sync.Pool

	// What the cluster's answers have taught. unrerankable remembers searches
	// (endpoint, index expression, profile) whose answers could not be cut: their
	// hits stay in the engine's order. shapes remembers rejected searches.
	unrerankable, shapes *backoffs

	judge     judge
	feedback  feedback
	reranking reranking

	// Work that no client waits for: shadows, clearing scrolls, and follow-ups.
	shadows, clearing *background
	following         *follower
	collecting        *collecting // nil for none
}

// causeOf returns a function that names the cause of an error for metrics. It
// calls by for errors that are not the proxy's own.
func causeOf(by func(error) string) func(error) string {
	return func(err error) string {
		switch {
		case errors.Is(err, recovery.ErrPanic):
			return causePanic
		case errors.Is(err, limits.ErrNoRoom):
			return reasonMemory
		}
		return by(err)
	}
}
