//go:build !unix

package launch

import (
	"os"
	"syscall"
)

func attributes() *syscall.SysProcAttr { return nil }

// terminate is the one signal that can be sent here.
func terminate() os.Signal { return os.Kill }
