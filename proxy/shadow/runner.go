// Package shadow compares the answers to expanded searches, which nobody waits
// for, with those to the original ones that clients got. runner.go runs what
// runs after an answer, keep.go keeps that answer, compare.go compares two.
package shadow

import (
	"context"
	"sync"
	"time"
)

const (
	// Slots bounds the searches that wait for their shadow, from when they are
	// sent; with MaxAnswer, which bounds their bodies, too, it bounds the memory
	// for them.
	Slots = 32
	// Workers bounds the shadows that are expanded, and that the cluster is asked
	// for, at a time.
	Workers = 4
	// timeout ends one that nobody would have waited for.
	timeout = 30 * time.Second
)

// A Runner owns the goroutines in which something runs that no client waits
// for. Its methods may be called at the same time.
type Runner struct {
	ctx     context.Context //nolint:containedctx // Ends with the server; the client's ends with its answer.
	cancel  context.CancelFunc
	slots   chan struct{}
	workers chan struct{}

	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup
}

// NewRunner returns a runner.
func NewRunner() *Runner {
	x := &Runner{slots: make(chan struct{}, Slots), workers: make(chan struct{}, Workers)}
	x.ctx, x.cancel = context.WithCancel(context.Background())
	return x
}

// Context ends when the runner is closed.
func (x *Runner) Context() context.Context { return x.ctx }

// Reserve takes a slot, if one is free.
func (x *Runner) Reserve() bool {
	select {
	case x.slots <- struct{}{}:
		return true
	default:
		return false
	}
}

// Release gives a slot back in which nothing will run.
func (x *Runner) Release() { <-x.slots }

// Start runs f, as soon as there is a worker, with the slot that was reserved
// for it, and calls done at the end, also where f does not run.
func (x *Runner) Start(f func(ctx context.Context), done func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		x.Release()
		done()
		return
	}
	x.running.Go(func() {
		defer done()
		defer x.Release()
		select {
		case <-x.ctx.Done():
			return
		case x.workers <- struct{}{}:
		}
		defer func() { <-x.workers }()
		ctx, cancel := context.WithTimeout(x.ctx, timeout)
		defer cancel()
		f(ctx)
	})
}

// Close cuts off what runs and waits for its end.
func (x *Runner) Close() {
	x.mu.Lock()
	x.closed = true
	x.mu.Unlock()
	x.cancel()
	x.running.Wait()
}
