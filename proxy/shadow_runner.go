package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/akin-search/akin/internal/limits"
	"github.com/akin-search/akin/proxy/report"
)

const (
	// Slots bounds the searches with a shadow, and with MaxAnswer their memory.
	Slots = 32
	// Workers bounds the shadows that the cluster is asked for at a time.
	Workers = 4
	// timeout ends one that nobody would have waited for.
	timeout = 30 * time.Second
	// MaxAnswer is the longest answer that is compared: 1000 hits of 1 KiB.
	MaxAnswer = 1 << 20
)

// A shadowRunner owns goroutines that no client waits for, for concurrent use.
type shadowRunner struct {
	ctx     context.Context //nolint:containedctx // Ends with the server; the client's ends with its answer.
	cancel  context.CancelFunc
	slots   chan struct{}
	workers chan struct{}

	mu      sync.Mutex // held to start and to close
	running sync.WaitGroup
}

// newShadowRunner returns a runner.
func newShadowRunner() *shadowRunner {
	x := &shadowRunner{slots: make(chan struct{}, Slots), workers: make(chan struct{}, Workers)}
	x.ctx, x.cancel = context.WithCancel(context.Background())
	return x
}

// Context ends when the runner is closed.
func (x *shadowRunner) Context() context.Context { return x.ctx }

// Reserve takes a slot, if one is free.
func (x *shadowRunner) Reserve() bool {
	select {
	case x.slots <- struct{}{}:
		return true
	default:
		return false
	}
}

// Release gives a slot back in which nothing will run.
func (x *shadowRunner) Release() { <-x.slots }

// Start runs f, as soon as there is a worker, with the slot that was reserved
// for it, and calls done at the end, also where f does not run.
func (x *shadowRunner) Start(f func(ctx context.Context), done func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ctx.Err() != nil {
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
func (x *shadowRunner) Close() {
	x.mu.Lock()
	x.cancel()
	x.mu.Unlock()
	x.running.Wait()
}

// keepShadowed returns an answer that passes on when it is closed what was
// read of it, in memory of hold, or else the outcome that says why it
// cannot.
func keepShadowed(answer io.ReadCloser, hold *limits.Hold, closed func(answer []byte, outcome string)) io.ReadCloser {
	return &keeper{ReadCloser: answer, hold: hold, closed: closed, outcome: report.ShadowClientGone}
}

type keeper struct {
	io.ReadCloser

	hold    *limits.Hold
	kept    bytes.Buffer
	length  int
	full    bool // not all of it is kept
	outcome string
	closed  func(answer []byte, outcome string)
}

// Read reads from the answer.
func (k *keeper) Read(p []byte) (int, error) {
	n, err := k.ReadCloser.Read(p)
	k.length += n
	if k.full = k.full || k.length > MaxAnswer || !k.hold.Take(int64(n)); k.full {
		k.kept = bytes.Buffer{}
	} else {
		k.kept.Write(p[:n])
	}
	if errors.Is(err, io.EOF) {
		switch k.outcome = ""; {
		case k.length > MaxAnswer:
			k.outcome = report.ShadowUnreadable
		case k.full:
			k.outcome = report.ShadowDropped
		}
	}
	return n, err
}

// Close closes the answer.
func (k *keeper) Close() error {
	if closed := k.closed; closed != nil {
		k.closed = nil
		closed(k.kept.Bytes(), k.outcome)
	}
	return k.ReadCloser.Close()
}
