//go:build unix

package softcosine

import (
	"syscall"
	"testing"
	"time"
)

// processorTime returns the time that the processors have spent on the
// process.
func processorTime(tb testing.TB) time.Duration {
	tb.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
