package wire

import (
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/cluster/trust"
)

// Options is how nodes talk. The zero value, without encryption, is for loopback.
type Options struct {
	// Server and Client are the two sides of TLS, as of [trust.Identity]; both or neither.
	Server, Client *tls.Config
	// Name is what a node's certificate must have as its subject's common name: who connects says
	// which node it is, and is refused unless its certificate says so too, and who is connected to
	// likewise; nil: any certificate of the job will do. It has no effect without TLS.
	Name func(node distrib.NodeID) string
	// Insecure allows to go without TLS at addresses that others reach.
	Insecure bool
	// Gate bounds what those who have not authenticated can cost; nil: one with the
	// defaults.
	Gate *trust.Gate
	// Window is how many bytes of a stream may be under way or wait for a handler at the
	// receiver, which has that much memory for each of them; 0: 4 MiB.
	Window int
	// MaxMessage is the most bytes a message's body may have; 0: 1 GiB.
	MaxMessage int64
	// Connect is how long a node may take to come up before it is down; 0: 30 s.
	Connect time.Duration
	// Idle is after how much silence a node is asked whether it is there, 0: 1 s, which is the
	// least that there is; and Dead how long it has to answer, 0: 3.75 s. So who is silent is down
	// within the sum, and not before Dead.
	Idle, Dead time.Duration
	// Handshake is how long a connection may take until it has authenticated; 0: 5 s.
	Handshake time.Duration
	// Linger is how long Close waits for a node that reads nothing; 0: 10 s.
	Linger time.Duration
}

// withDefaults is the options with nothing left open.
func (o Options) withDefaults() (Options, error) {
	if (o.Server == nil) != (o.Client == nil) {
		return o, errors.New("one side of TLS is given, and not the other")
	}
	if o.Gate == nil {
		o.Gate = new(trust.Gate)
	}
	for _, d := range []struct {
		to        *time.Duration
		otherwise time.Duration
	}{{&o.Connect, 30 * time.Second}, {&o.Idle, time.Second}, {&o.Dead, 3750 * time.Millisecond},
		{&o.Linger, 10 * time.Second}, {&o.Handshake, 5 * time.Second}} {
		if *d.to == 0 {
			*d.to = d.otherwise
		}
	}
	if o.Window == 0 {
		o.Window = defaultWindow
	}
	if o.Window < minWindow || o.Window > maxWindow {
		return o, fmt.Errorf("a window of %d bytes: it is from %d to %d", o.Window, minWindow,
			maxWindow)
	}
	if o.MaxMessage == 0 {
		o.MaxMessage = 1 << 30
	}
	return o, nil
}

// A window is at least HTTP/2's own, and all of a connection's are counted in 31 bits.
const (
	minWindow     = 64 << 10
	maxWindow     = 256 << 20
	defaultWindow = 4 << 20
)

// Bytes bounds the memory that a transport to so many other nodes takes, besides the
// messages themselves and what encryption needs: of each node's streams what is under way
// or waits, a frame that is put together and one that the window was widened for, frames
// to send, and the buffers of two connections.
func (o Options) Bytes(peers int) int64 {
	window := int64(o.Window)
	if window == 0 {
		window = defaultWindow
	}
	stream := window + 2*maxFrame + keptFrames*inlineSize
	return int64(peers) * (stream*int64(distrib.Classes) + 4*bufferSize)
}
