package wire_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/cluster/trust"
	"github.com/gomem/gomem/distrib/cluster/wire"
	"github.com/gomem/gomem/distrib/transporttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// cluster is ports on loopback and their view.
type cluster struct {
	ports []*wire.Port
	nodes []distrib.Node
}

// listen opens n ports.
func listen(t *testing.T, n int, o wire.Options) *cluster {
	c := &cluster{}
	for i := range n {
		p, err := wire.Listen("127.0.0.1:0", o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.Close() })
		c.ports = append(c.ports, p)
		c.nodes = append(c.nodes, distrib.Node{ID: distrib.NodeID(i), Addr: p.Addr()})
	}
	return c
}

func (c *cluster) view(epoch int64, self int) distrib.View {
	return distrib.View{Epoch: epoch, Self: distrib.NodeID(self), Nodes: c.nodes}
}

func (c *cluster) open(t *testing.T, epoch int64) []distrib.Transport {
	var ts []distrib.Transport
	for i, p := range c.ports {
		tr, err := p.Open(c.view(epoch, i))
		if err != nil {
			t.Fatal(err)
		}
		ts = append(ts, tr)
	}
	return ts
}

func encrypted(t *testing.T) wire.Options {
	a, err := trust.New("test")
	if err != nil {
		t.Fatal(err)
	}
	id, err := a.Identity("node")
	if err != nil {
		t.Fatal(err)
	}
	return wire.Options{Server: id.Server(), Client: id.Client()}
}

// TestTransport: it is one, with and without encryption.
func TestTransport(t *testing.T) {
	for name, o := range map[string]wire.Options{"plain": {}, "TLS": encrypted(t)} {
		o.Window = 1 << 20
		t.Run(name, func(t *testing.T) {
			var c *cluster
			transporttest.Run(t, transporttest.Network{Window: o.Window,
				New: func(t *testing.T, n int) []distrib.Transport {
					c = listen(t, n, o)
					return c.open(t, 1)
				},
				Kill: func(_ *testing.T, node distrib.NodeID) { c.ports[node].Close() }})
		})
	}
}
