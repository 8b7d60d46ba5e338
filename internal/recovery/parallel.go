package recovery

import (
	"runtime/debug"

	"golang.org/x/sync/errgroup"
)

// InParallel calls f for 0 to n-1, limit of them at the same time, and returns
// the first error. A single call is made in this goroutine. A panic of a call
// comes out of InParallel, so that a [Guard] above it meets it: in a goroutine
// of its own it would end the process. Where only that call is to fail, f is
// guarded itself.
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

// A panicError is a panic with the stack of the goroutine that it began in, and
// a [runtime.Error] because it is free of the search's words.
type panicError string

func (p panicError) Error() string { return string(p) }

// RuntimeError implements [runtime.Error].
func (panicError) RuntimeError() {}
