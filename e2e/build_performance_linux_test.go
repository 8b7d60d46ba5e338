package e2e

import (
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"
)

// BenchmarkBuild prints what building a matrix with the defaults costs, by the
// number of documents in the index. It does everything once: run it with
// -benchtime 1x.
func BenchmarkBuild(b *testing.B) {
	e := productionEngine(b, qualityEngine)
	fmt.Fprintf(os.Stdout, "\n| documents | read | terms | dimensions | wall time | processor time | memory |\n|---|---|---|---|---|---|---|\n")
	eachSize(b, func(b *testing.B, docs int) {
		b.Helper()
		loadForms(b, e, formsDefinition, docs, formsQueries+newTexts)
		for range b.N {
			out, start := newPath(b, "s.akin"), time.Now()
			r := runAkin(b, "matrix", "build", "--from-index", e.url, "--index", formsIndex, "--field", "body", "--out", out)
			wall := time.Since(start)
			if r.status != 0 {
				b.Fatal(r.stderr)
			}
			used, _ := r.process.SysUsage().(*syscall.Rusage)
			m := readMatrix(b, out)
			fmt.Fprintf(os.Stdout, "| %d | %d | %d | %s | %.0f s | %.0f s | %.2f GiB |\n", docs, m.Meta().Docs, m.Len(), m.Meta().Params["dimensions"],
				wall.Seconds(), (r.process.UserTime() + r.process.SystemTime()).Seconds(), float64(used.Maxrss)/(1<<20))
		}
	})
}
