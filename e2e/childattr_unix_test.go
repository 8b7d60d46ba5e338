//go:build unix && !linux

package e2e

import "syscall"

// childAttributes puts a child into a process group of its own. Without a
// parent-death signal, engines still end when their stdin closes.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
