//go:build !unix

package serve

import "os"

// onHangup returns a channel on which nothing arrives: there is no SIGHUP.
func onHangup() (hangup <-chan os.Signal, stop func()) { return nil, func() {} }

// openFiles returns 0: no limit is known.
func openFiles() uint64 { return 0 }
