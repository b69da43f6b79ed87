package launch

import "syscall"

// attributes put a process out of reach of a terminal's signals, which are passed on, and
// end it with its parent.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
