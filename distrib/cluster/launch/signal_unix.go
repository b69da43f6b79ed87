//go:build unix

package launch

import (
	"os"
	"syscall"
)

func terminate() os.Signal { return syscall.SIGTERM }
