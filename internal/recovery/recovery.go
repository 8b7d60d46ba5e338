// Package recovery turns panics into errors, so that a bug in the work for one
// request ends neither the process nor the request.
package recovery

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"golang.org/x/sync/errgroup"
)

// ErrPanic stands for a panic. The log has the details.
var ErrPanic = errors.New("panic")

// A Guard recovers, counts and logs panics. A nil Guard only recovers.
type Guard struct {
	panics *prometheus.CounterVec
	log    atomic.Pointer[slog.Logger]
}

// operations are the names that [Guard.Do] is called with. Their series exist
// from the start, so that an alert on panics sees the first one.
func operations() []string {
	return []string{
		"asking a language model", "asking for access", "asking for credentials", "asking for hits", "asking for the first hits", "asking for the state", "asking the cluster", "checking nodes",
		"clearing scrolls", "counting searches", "embedding documents", "expanding", "following versions", "keeping searches", "reading a body",
		"reading rows", "reading the terms of documents", "reloading", "remembering hits", "rendering", "reranking", "sending an answer", "shadowing", "warming up",
		"watching the state", "writing the access log",
	}
}

// New returns a guard that counts in registry.
func New(log *slog.Logger, registry prometheus.Registerer) *Guard {
	g := &Guard{panics: promauto.With(registry).NewCounterVec(prometheus.CounterOpts{
		Name: "akin_panics_total",
		Help: "Panics that were caught while something was done for a request. Each is a mistake in akin: please report it with its log line.",
	}, []string{"operation"})}
	g.log.Store(log)
	for _, what := range operations() {
		g.panics.WithLabelValues(what)
	}
	return g
}

// SetLogger sets the log for panics.
func (g *Guard) SetLogger(log *slog.Logger) { g.log.Store(log) }

// Do returns the error of f, or [ErrPanic] if it panics. what labels the
// metric: a fixed word or two. A goroutine that works for a request must run
// inside Do, because nobody above it could recover.
func (g *Guard) Do(what string, f func() error) (err error) {
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		err = ErrPanic
		if g == nil {
			return
		}
		g.panics.WithLabelValues(what).Inc()
		g.log.Load().Error("panic", "operation", what, "value", shown(v), "stack", string(debug.Stack()))
	}()
	return f()
}

// shown returns what the log may show of a panic: the value may hold text of a
// query or a document.
func shown(value any) string {
	if e, ok := value.(runtime.Error); ok {
		return e.Error()
	}
	return fmt.Sprintf("%T", value)
}

// InParallel calls f for 0 to n-1, at most limit at a time, and returns the
// first error. A single call runs in this goroutine. If a call panics, so does
// InParallel, so that a [Guard] above recovers it: in its own goroutine the
// panic would end the process. If only that call is to fail, f must be guarded
// itself.
func InParallel(n, limit int, f func(i int) error) error {
	if n == 1 {
		return f(0)
	}
	var group errgroup.Group
	group.SetLimit(limit)
	panics := make(chan panicError, n)
	for i := range n {
		group.Go(func() error {
			defer func() {
				if v := recover(); v != nil {
					panics <- panicError(shown(v) + "\n" + string(debug.Stack()))
				}
			}()
			return f(i)
		})
	}
	err := group.Wait()
	select {
	case p := <-panics:
		panic(p)
	default:
		return err
	}
}

// A panicError is a panic with the stack of its goroutine. It is a
// [runtime.Error] because it has no words of a search.
type panicError string

func (p panicError) Error() string { return string(p) }

// RuntimeError implements [runtime.Error].
func (panicError) RuntimeError() {}
