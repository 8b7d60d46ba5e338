package proxy

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

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
	// Expand returns what becomes of r, until ctx ends at the latest. After an
	// error the original is sent. It must not keep or modify r.
	Expand(ctx context.Context, r *expand.Request) (*expand.Result, error)
	// Below is [expand.Expander.Below].
	Below(r *expand.Request) []int
}

// Options say what [New] builds a server from.
type Options struct {
	// Nodes sends requests to the cluster and is closed with the server.
	Nodes *nodes.Pool
	// ForwardedHeaders adds X-Forwarded-For, -Host and -Proto; off, the client's
	// pass.
	ForwardedHeaders bool

	// Secured says that the cluster has security, so that a search is expanded only
	// for a client that may search. The first 401 or 403 shows it, too.
	Secured bool
	// Gate says who may see texts of searches on the admin port.
	Gate Gate
	// Matrices are what the playground shows of matrices; nil shows none.
	Matrices playground.Matrices

	// Expander rewrites the searches; with nil their bodies pass unread.
	Expander Expander
	// Profiles rewrite the searches that ask for one by its name. Searches that ask
	// for a nil or unknown one pass.
	Profiles map[string]Expander
	// Templates rewrites search templates, too, which the cluster renders.
	Templates bool
	// Shadow is a share in [0, 1]. Unless it is 0, clients get the answers to their
	// original searches. This share of the plain ones is expanded and sent once more
	// after that, and metrics compare the two.
	Shadow float64
	// Trials try two arms, which are [Off] or names of Profiles; a search
	// takes part in the first that covers its index. They cannot be combined with Shadow.
	Trials []Trial
	// Budget bounds the time of one call of Expander.
	Budget time.Duration
	// MaxBody is the number of bytes, compressed and decompressed alike, up to
	// which a search body is read.
	MaxBody int64
	// BodyTimeout is how long the body of a search may take to come, longer only at
	// 8 KiB a second or more; then the search gets 408.
	BodyTimeout time.Duration
	// Memory bounds what requests keep in memory.
	Memory *limits.Budget
	// Cause names the cause of an error of Expander or Reranker, for metrics. Causes
	// has every name that Cause gives, and says for the log what an operator can do
	// about it.
	Cause  func(error) string
	Causes map[string]string
	// Reranker scores the hits to be reranked; nil keeps the engine's order.
	Reranker Reranker
	// HitTerms returns the terms of the first hits of searches to which the expander
	// wants to add some; nil returns none.
	HitTerms HitTerms
	// RerankBudget bounds the time of all calls of Reranker for one request, from
	// when the cluster's answer is complete; then the engine's order goes out.
	RerankBudget time.Duration
	// OnRefused, unless nil, is called when the cluster rejects a rewritten search
	// and accepts the original, and is not overloaded. It reports whether the next
	// search like it will be written in another way: else those are not rewritten
	// for a while. Of several searches in one request it gets the first one rejected,
	// with "" for all indices where that is unknown. It must not keep it, nor block.
	OnRefused func(*expand.Refusal) (news bool)

	// MaxConnections is how many clients may be connected; 0 is no bound.
	MaxConnections int
	// IdleTimeout is how long a connection waits for a request.
	IdleTimeout time.Duration
	// ShutdownDelay is how long a [Front] that is to end still takes requests,
	// while /readyz answers 503, and ShutdownTimeout how long those in flight may
	// take after that.
	ShutdownDelay, ShutdownTimeout time.Duration
	// Previous is the server that this one replaces, if any. Its metrics, in place of
	// Registry, explanations, and knowledge of the cluster's security go on.
	Previous *Server

	// Forms returns the words that the admin port shows for terms; nil shows none.
	Forms report.Forms
	// Check returns the state of the process, until ctx ends at the latest; nil is
	// a good one. It may be called concurrently.
	Check func(ctx context.Context) report.Condition
	// Logger receives the log.
	Logger *slog.Logger
	// LogQueries allows query texts in the log.
	LogQueries bool
	// Registry has the metrics and is what /metrics shows.
	Registry *prometheus.Registry
	// Guard recovers what panics.
	Guard *recovery.Guard
	// AccessLog gets a record of each request, without its query string; nil is
	// none. It must not block.
	AccessLog *slog.Logger
	// Tracer traces requests; nil traces none. It outlives the server.
	Tracer *sdktrace.TracerProvider
}

// A Server forwards requests to a cluster. [New] makes it; its methods may be
// called concurrently.
type Server struct {
	opts      Options
	log       *slog.Logger
	guard     *recovery.Guard
	upstream  *nodes.Pool
	transport http.RoundTripper // the upstream; another one in a test
	cause     func(error) string
	calls     *calls
	access    *access
	tokens    wrongTokens // that the admin port was sent

	// The handlers of the two listeners, how many requests a Front has handed over
	// and not got back, and whether the server ends.
	proxy, admin http.Handler
	inFlight     atomic.Int64
	draining     atomic.Bool

	// What operators see, and the pause. They outlive a server that is replaced.
	registry     *prometheus.Registry
	metrics      *report.Metrics
	explanations *report.Ring
	health       *report.Health
	pause        *pause

	// How bodies are read and answers copied: see package limits.
	gunzip                 limits.Gunzip
	bodyGrace, answerGrace time.Duration
	buffers                sync.Pool

	// What the answers of the cluster have shown. unrerankable are searches, by endpoint,
	// path and profile, whose answers could not be cut, so that their hits stay in
	// the engine's order; shapes those that were rejected.
	unrerankable, shapes *backoffs

	judge     judge
	feedback  feedback
	reranking reranking

	// What no client waits for: shadows, and ends of scrolls.
	shadows, clearing *background
}

// causeOf returns what names the cause of an error, for metrics; by names those
// that are not the proxy's own.
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
