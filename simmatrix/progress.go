package simmatrix

import "sync"

// Progress receives the progress of a long computation: done of total units of
// a named stage. Calls are never concurrent; within a stage done ascends from 0
// to total. It may be nil.
type Progress func(stage string, done, total int)

// Report reports progress, unless p is nil.
func (p Progress) Report(stage string, done, total int) {
	if p != nil {
		p(stage, done, total)
	}
}

// A Stage counts the finished units of one stage for a [Progress].
type Stage struct {
	progress Progress
	name     string
	total    int

	mu   sync.Mutex
	done int
}

// NewStage begins a stage with nothing done.
func NewStage(progress Progress, name string, total int) *Stage {
	s := &Stage{progress: progress, name: name, total: total}
	s.Add(0)
	return s
}

// Add counts finished units and reports them. A nil Stage reports nothing.
func (s *Stage) Add(units int) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done += units
	s.progress.Report(s.name, s.done, s.total)
}
