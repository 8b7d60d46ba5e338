//go:build unix

package serve

import (
	"os"
	"os/signal"
	"syscall"
)

// onHangup returns where a SIGHUP arrives until stop is called. Several that
// nobody has received yet are one.
func onHangup() (hangup <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGHUP)
	return c, func() { signal.Stop(c) }
}

// openFiles returns how many files the process may have open, 0 where that is
// not known.
func openFiles() uint64 {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return uint64(limit.Cur) //nolint:unconvert // it is signed on some systems
}
