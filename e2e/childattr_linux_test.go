package e2e

import "syscall"

// childAttributes puts a child into a process group of its own and has the
// kernel end it when the test binary dies without cleaning up.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
