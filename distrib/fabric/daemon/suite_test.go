package daemon_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/fabric/daemon"
	"github.com/gomem/gomem/distrib/memnet"
	"github.com/gomem/gomem/distrib/transporttest"
)

// TestTransport: a daemon is a transport for whoever sends no updates of an engine.
func TestTransport(t *testing.T) {
	transporttest.Run(t, transporttest.Network{Window: 1 << 20, In: synctest.Test,
		New: func(t *testing.T, n int) []distrib.Transport {
			ts := memnet.New(n, memnet.Options{Window: 1 << 20, Bps: 1e10,
				Latency: time.Millisecond})
			var o daemon.Options
			for i := range ts {
				o.Nodes = append(o.Nodes, distrib.NodeID(i))
			}
			for i := range ts {
				ts[i] = daemon.Wrap(ts[i], o)
			}
			return ts
		}})
}
