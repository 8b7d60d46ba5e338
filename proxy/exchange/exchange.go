// Package exchange follows requests of clients from their arrival to the end of
// their answers, for traces.
package exchange

import (
	"context"
	"net/http"
	"sync"

	"github.com/akin-search/akin/internal/tracing"
	"github.com/akin-search/akin/proxy/explain"
)

// An Exchange is a request that is followed. A nil Exchange is one that is not.
type Exchange struct {
	http.ResponseWriter

	span   tracing.Span
	status int // 0 until the answer begins

	mu              sync.Mutex
	outcome, reason string
}

type key struct{}

// of returns the exchange of a context, nil for none.
func of(ctx context.Context) *Exchange {
	x, _ := ctx.Value(key{}).(*Exchange)
	return x
}

// Handler returns h, whose requests are followed: h itself without a tracer.
func Handler(h http.Handler, t *tracing.Tracer) http.Handler {
	if t == nil {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, span := t.Arrived(r)
		x := &Exchange{ResponseWriter: w, span: span}
		complete := false
		defer func() { x.end(complete) }()
		h.ServeHTTP(x, r.WithContext(context.WithValue(ctx, key{}, x)))
		complete = true
	})
}

// Unwrap is for [http.ResponseController].
func (x *Exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// WriteHeader notes the status.
func (x *Exchange) WriteHeader(status int) {
	if status >= http.StatusOK || status == http.StatusSwitchingProtocols {
		x.status = status
	}
	x.ResponseWriter.WriteHeader(status)
}

// Name names a request by the shape of its path.
func Name(ctx context.Context, method, shape string) {
	if x := of(ctx); x != nil {
		x.span.SetName(method + " " + shape)
		x.span.Set("http.route", shape)
	}
}

// Note notes what became of a search, and why. What failed stays failed.
func Note(ctx context.Context, outcome, reason string) {
	x := of(ctx)
	if x == nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.outcome != explain.FailedOpen {
		x.outcome, x.reason = outcome, reason
	}
}

// end ends the exchange. Without a complete answer it was cut off.
func (x *Exchange) end(complete bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.span.Set("akin.outcome", x.outcome)
	x.span.Set("akin.reason", x.reason)
	status := x.status
	switch {
	case !complete:
		status = 0
	case status == 0: // written by whoever took the connection over
		status = http.StatusSwitchingProtocols
	}
	x.span.EndStatus(status, http.StatusInternalServerError)
}
