package wire_test

import (
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/cluster/wire"
)

// ends is a handler that hears of ends, and of messages.
type ends struct {
	downs chan error
	msgs  chan *distrib.Msg
}

func newEnds() *ends {
	return &ends{make(chan error, 16), make(chan *distrib.Msg, 1024)}
}

func (e *ends) Receive(_ distrib.NodeID, m *distrib.Msg) { e.msgs <- m }
func (e *ends) Down(_ distrib.NodeID, err error)         { e.downs <- err }

// down waits for the end of the other node.
func (e *ends) down(t *testing.T) error {
	t.Helper()
	select {
	case err := <-e.downs:
		return err
	case <-time.After(time.Minute):
		t.Fatal("nobody was told")
		return nil
	}
}

func (e *ends) message(t *testing.T) *distrib.Msg {
	t.Helper()
	select {
	case m := <-e.msgs:
		return m
	case err := <-e.downs:
		t.Fatal(err)
	case <-time.After(time.Minute):
		t.Fatal("no message came")
	}
	return nil
}

func open(t *testing.T, p *wire.Port, v distrib.View) (distrib.Transport, *ends) {
	t.Helper()
	tr, err := p.Open(v)
	if err != nil {
		t.Fatal(err)
	}
	e := newEnds()
	tr.Serve(e)
	return tr, e
}

// TestEpochs: a node of an earlier epoch is told which one it is now; one that is ahead
// waits for the others, for a while: for longer where the machine is so busy that it could
// not ask.
func TestEpochs(t *testing.T) {
	for wait := 200 * time.Millisecond; ; wait *= 5 {
		old, ahead := epochs(t, wait)
		var epoch *wire.EpochError
		told := errors.As(old, &epoch) && epoch.Its == 5 && epoch.Our == 4
		waited := strings.Contains(ahead.Error(), "node 0 is in epoch 4, this one in 5")
		if told && waited {
			return
		}
		if wait > 20*time.Second {
			t.Fatalf("the old one hears %v, the one ahead, after %v, %v", old, wait, ahead)
		}
	}
}

// epochs is what a node in epoch 4 hears of one in 5, and that, which waits for so long, of
// it.
func epochs(t *testing.T, wait time.Duration) (old, ahead error) {
	t.Helper()
	c := listen(t, 1, wire.Options{})
	second := listen(t, 1, wire.Options{Connect: wait})
	c.ports = append(c.ports, second.ports[0])
	c.nodes = append(c.nodes, distrib.Node{ID: 1, Addr: second.nodes[0].Addr})
	_, first := open(t, c.ports[0], c.view(4, 0))
	_, next := open(t, c.ports[1], c.view(5, 1))
	return first.down(t), next.down(t)
}

// TestAhead: a node that is ahead is joined by the other when it comes to the same epoch;
// messages go in both, one after the other, on the same ports.
func TestAhead(t *testing.T) {
	c := listen(t, 2, wire.Options{})
	for epoch := int64(1); epoch < 6; epoch++ {
		first, second := int(epoch%2), int(1-epoch%2)
		a, _ := open(t, c.ports[first], c.view(epoch, first))
		a.Send(distrib.NodeID(second), &distrib.Msg{Tag: uint64(epoch)})
		time.Sleep(time.Millisecond) // so that it has asked in vain
		b, got := open(t, c.ports[second], c.view(epoch, second))
		if m := got.message(t); m.Tag != uint64(epoch) {
			t.Errorf("epoch %d: tag %d", epoch, m.Tag)
		}
		for _, tr := range []distrib.Transport{a, b} {
			if err := tr.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestViews: the same epoch with other nodes in it is another view, and nobody talks.
func TestViews(t *testing.T) {
	c := listen(t, 2, wire.Options{})
	v := c.view(3, 0)
	_, a := open(t, c.ports[0], v)
	v = c.view(3, 1)
	v.Nodes = slices.Clone(v.Nodes)
	v.Nodes[1].Roles = []string{"server"}
	_, b := open(t, c.ports[1], v)
	for _, e := range []*ends{a, b} {
		var view *wire.ViewError
		if err := e.down(t); !errors.As(err, &view) || view.Its == view.Our {
			t.Error(err)
		}
	}
}

// TestWrongAddress: a node that answers for another one is not taken for it.
func TestWrongAddress(t *testing.T) {
	c := listen(t, 2, wire.Options{})
	c.nodes[0], c.nodes[1] = distrib.Node{ID: 0, Addr: c.nodes[1].Addr},
		distrib.Node{ID: 1, Addr: c.nodes[0].Addr}
	_, e := open(t, c.ports[0], c.view(1, 0))
	if err := e.down(t); !strings.Contains(err.Error(), "is an address wrong") {
		t.Error(err)
	}
}

// TestNobody: a node that does not come is down in time, and named with its address.
func TestNobody(t *testing.T) {
	c := listen(t, 1, wire.Options{Connect: 50 * time.Millisecond})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	c.nodes = append(c.nodes, distrib.Node{ID: 1, Addr: address})
	tr, e := open(t, c.ports[0], c.view(1, 0))
	if err := e.down(t); !strings.Contains(err.Error(), address) {
		t.Error(err)
	}
	done := make(chan error)
	tr.Send(1, &distrib.Msg{Done: func(err error) { done <- err }})
	if err := <-done; err == nil {
		t.Error("sent to nobody")
	}
}

// TestOpenRefuses: views that make no sense, and an epoch within another.
func TestOpenRefuses(t *testing.T) {
	c := listen(t, 2, wire.Options{})
	twice := c.view(1, 0)
	twice.Nodes = append(twice.Nodes[:2:2], twice.Nodes[1])
	for name, v := range map[string]distrib.View{"not in it": c.view(1, 7), "twice": twice,
		"before the first": c.view(-1, 0)} {
		if _, err := c.ports[0].Open(v); err == nil {
			t.Errorf("%s: opened", name)
		}
	}
	open(t, c.ports[0], c.view(1, 0))
	if _, err := c.ports[0].Open(c.view(2, 0)); err == nil ||
		!strings.Contains(err.Error(), "epoch 1 is open still") {
		t.Error(err)
	}
	if _, err := wire.Listen("0.0.0.0:0", wire.Options{}); err == nil {
		t.Error("plain, for everybody")
	}
	if _, err := wire.Listen("127.0.0.1:0", wire.Options{Server: encrypted(t).Server}); err == nil {
		t.Error("half of TLS")
	}
	for _, window := range []int{-1, 1, 1 << 30} {
		if _, err := wire.Listen("127.0.0.1:0", wire.Options{Window: window}); err == nil {
			t.Errorf("a window of %d", window)
		}
	}
}

// TestBytes: the bound is what windows and buffers add up to.
func TestBytes(t *testing.T) {
	one := wire.Options{}.Bytes(1)
	if one < 24<<20 || one > 26<<20 || (wire.Options{}).Bytes(7) != 7*one {
		t.Error(one)
	}
	if small := (wire.Options{Window: 1 << 20}).Bytes(1); small != one-4*3<<20 {
		t.Error(small)
	}
}
