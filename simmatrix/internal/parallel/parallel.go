// Package parallel spreads work over all processors and reports how far it is.
package parallel

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/akin-search/akin/simmatrix"
)

// A Stage counts the finished units of one stage for a [simmatrix.Progress].
type Stage struct {
	report simmatrix.Progress
	name   string
	total  int

	mu   sync.Mutex
	done int
}

// NewStage begins a stage, of which none is done.
func NewStage(report simmatrix.Progress, name string, total int) *Stage {
	s := &Stage{report: report, name: name, total: total}
	s.Add(0)
	return s
}

// Add counts finished units and reports them.
func (s *Stage) Add(units int) {
	if s.report == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done += units
	s.report(s.name, s.done, s.total)
}

// EachBlock cuts [0, n) into blocks of size and works through them on all
// processors. newWorker is called once for each processor, one after the
// other; what it returns is called with blocks [lo, hi), never twice at once.
// Which worker gets which block is open, so the result must not depend on it.
// When ctx ends, no further block is begun, and its error is returned after
// the last worker has returned.
func EachBlock(ctx context.Context, n, size int, newWorker func() func(lo, hi int)) error {
	var next atomic.Int64
	var group sync.WaitGroup
	blocks := (n + size - 1) / size
	for range min(runtime.GOMAXPROCS(0), blocks) {
		work := newWorker()
		group.Go(func() {
			for ctx.Err() == nil {
				b := int(next.Add(1)) - 1
				if b >= blocks {
					return
				}
				work(b*size, min((b+1)*size, n))
			}
		})
	}
	group.Wait()
	return ctx.Err()
}
