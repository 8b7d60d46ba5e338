package simmatrix

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
)

// Progress is told how far a long computation is: done of total units of the
// named stage. It is never called by two goroutines at once, and within a stage
// done ascends from 0 to total. nil is allowed wherever one is taken.
type Progress func(stage string, done, total int)

// A stage counts the finished units of one stage for a [Progress].
type stage struct {
	report Progress
	name   string
	total  int

	mu   sync.Mutex
	done int
}

func newStage(report Progress, name string, total int) *stage {
	s := &stage{report: report, name: name, total: total}
	s.add(0)
	return s
}

func (s *stage) add(units int) {
	if s.report == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done += units
	s.report(s.name, s.done, s.total)
}

// eachBlock cuts [0, n) into blocks of size and works through them on all
// processors. newWorker is called once for each processor, one after the
// other; what it returns is called with blocks [lo, hi), never twice at once.
// Which worker gets which block is open, so the result must not depend on it.
// When ctx ends, no further block is begun, and its error is returned after
// the last worker has returned.
func eachBlock(ctx context.Context, n, size int, newWorker func() func(lo, hi int)) error {
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
