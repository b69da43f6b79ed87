//go:build unix && !linux

package launch

import "syscall"

// attributes put a process out of reach of a terminal's signals, which are passed on.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
