// Package parallel runs work on all processors.
package parallel

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/akin-search/akin/simmatrix"
)

// EachBlock processes [0, n) in blocks of size on all processors. It calls
// newWorker once per processor, sequentially, and each result with blocks [lo,
// hi), never concurrently. The result must not depend on which worker gets
// which block. If ctx ends, its error is returned after the last worker.
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

// Rows makes n rows in blocks of size on all processors and concatenates them.
// It calls newRow once per processor; the entries of a row that the result
// returns, in any order, are valid until its next call.
func Rows(ctx context.Context, n, size int, withOrigins bool, newRow func() func(i int) []simmatrix.Entry, st *simmatrix.Stage) (simmatrix.Entries, error) {
	parts := make([]simmatrix.Entries, (n+size-1)/size)
	err := EachBlock(ctx, n, size, func() func(lo, hi int) {
		row := newRow()
		return func(lo, hi int) {
			part := simmatrix.NewEntries(hi-lo, 0, withOrigins)
			for i := lo; i < hi && ctx.Err() == nil; i++ {
				part.AppendRow(row(i))
			}
			parts[lo/size] = part
			st.Add(hi - lo)
		}
	})
	if err != nil {
		return simmatrix.Entries{}, err
	}
	total := 0
	for k := range parts {
		total += len(parts[k].Cols)
	}
	all := simmatrix.NewEntries(n, total, withOrigins)
	for k := range parts {
		for _, offset := range parts[k].Offsets[1:] {
			all.Offsets = append(all.Offsets, len(all.Cols)+offset)
		}
		all.Cols, all.Sims = append(all.Cols, parts[k].Cols...), append(all.Sims, parts[k].Sims...)
		all.Origins = append(all.Origins, parts[k].Origins...)
		parts[k] = simmatrix.Entries{} // so that two whole matrices are never in memory
	}
	return all, nil
}
