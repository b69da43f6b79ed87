package memnet_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/memnet"
	"github.com/gomem/gomem/distrib/transporttest"
)

// TestTransport: it is one, as the network's is.
func TestTransport(t *testing.T) {
	var net *memnet.Network
	transporttest.Run(t, transporttest.Network{Window: 1 << 20, In: synctest.Test,
		New: func(t *testing.T, n int) []distrib.Transport {
			net = memnet.NewNetwork(n, memnet.Options{Window: 1 << 20, Bps: 1e9,
				Latency: time.Millisecond, Jitter: time.Millisecond, Overhead: 40})
			var ts []distrib.Transport
			for i := range n {
				ts = append(ts, net.Node(distrib.NodeID(i)))
			}
			return ts
		},
		Kill: func(_ *testing.T, node distrib.NodeID) { net.Kill(node) }})
}
