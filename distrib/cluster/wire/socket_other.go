//go:build !linux

package wire

import (
	"net"
	"syscall"
)

// count knows of nothing that sockets count here.
func count(syscall.RawConn) (arrivals, bool) { return arrivals{}, false }

// promptly is a listener as it is.
type promptly struct{ net.Listener }
