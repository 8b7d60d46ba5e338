package proxy

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

const (
	// maxInBackground bounds the searches with a shadow, and with maxShadowed their
	// memory, and the scrolls to be cleared.
	maxInBackground = 32
	// backgroundWorkers bounds those that the cluster is asked for at a time.
	backgroundWorkers = 4
	// backgroundTimeout ends one that nobody would have waited for.
	backgroundTimeout = 30 * time.Second
)

// A background owns goroutines that no client waits for, for concurrent use.
type background struct {
	ctx            context.Context //nolint:containedctx // Ends with the server; the client's ends with its answer.
	cancel         context.CancelFunc
	slots, workers *semaphore.Weighted

	mu      sync.Mutex // held to start and to close
	running sync.WaitGroup
}

func newBackground() *background {
	b := &background{slots: semaphore.NewWeighted(maxInBackground), workers: semaphore.NewWeighted(backgroundWorkers)}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	return b
}

// reserve takes a slot, if one is free.
func (b *background) reserve() bool { return b.slots.TryAcquire(1) }

// release gives a slot back in which nothing will run.
func (b *background) release() { b.slots.Release(1) }

// start runs f, as soon as there is a worker, with the slot that was reserved
// for it, and calls done at the end, also where f does not run.
func (b *background) start(f func(ctx context.Context), done func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ctx.Err() != nil {
		b.release()
		done()
		return
	}
	b.running.Go(func() {
		defer done()
		defer b.release()
		if b.workers.Acquire(b.ctx, 1) != nil { // the server ends
			return
		}
		defer b.workers.Release(1)
		ctx, cancel := context.WithTimeout(b.ctx, backgroundTimeout)
		defer cancel()
		f(ctx)
	})
}

// close cuts off what runs and waits for its end.
func (b *background) close() {
	b.mu.Lock()
	b.cancel()
	b.mu.Unlock()
	b.running.Wait()
}
