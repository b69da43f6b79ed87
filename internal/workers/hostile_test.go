package workers

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/train"
)

// hostile is a transport that sends its messages whole, but after some with other bytes in them
// than they should have.
type hostile struct {
	distrib.Transport
	mu   sync.Mutex
	rng  *rand.Rand
	left int
	how  func(rng *rand.Rand, m *distrib.Msg)
}

// Send sends a message. What desks say is left as it is: they take any bytes from each other.
func (h *hostile) Send(to distrib.NodeID, m *distrib.Msg) {
	h.mu.Lock()
	harm := m.Tag != deskTag && to != h.Self() && len(m.Head) > 0
	if h.left--; harm && h.left < 0 {
		c := *m
		h.how(h.rng, &c)
		m = &c
	}
	h.mu.Unlock()
	h.Transport.Send(to, m)
}

// Drop gives a node up.
func (h *hostile) Drop(node distrib.NodeID, why error) { distrib.Drop(h.Transport, node, why) }

// TestHostile: a member whose messages come whole and cannot be used is named by the others, who go
// on without it, under every scheme.
func TestHostile(t *testing.T) {
	garbage := func(rng *rand.Rand, n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		return b
	}
	harms := map[string]func(rng *rand.Rand, m *distrib.Msg){
		"head":      func(rng *rand.Rand, m *distrib.Msg) { m.Head = garbage(rng, len(m.Head)) },
		"cut short": func(_ *rand.Rand, m *distrib.Msg) { m.Head = m.Head[:len(m.Head)-1] },
		"varints": func(_ *rand.Rand, m *distrib.Msg) {
			m.Head = []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
		},
		"a longer body": func(rng *rand.Rand, m *distrib.Msg) {
			m.Body = append(slices.Clone(m.Body), garbage(rng, 1000))
		},
	}
	for _, scheme := range Schemes() {
		for name, how := range harms {
			t.Run(scheme+"/"+name, func(t *testing.T) {
				if scheme == "factors" {
					named(t, scheme, how)
					return
				}
				expelled(t, scheme, how)
			})
		}
	}
}

// named has workers who do not come and go end, and who has got nonsense names who has sent it; it
// may be that the other one hears first what that one says of the end.
func named(t *testing.T, scheme string, how func(rng *rand.Rand, m *distrib.Msg)) {
	c := against(scheme, how)
	names := 0
	for id, e := range c.all(t, 3)[:2] {
		left, ok := errors.AsType[*LeftError](e.err)
		if !ok {
			t.Errorf("worker %d: %v", id, e.err)
		} else if left.Rank == 2 {
			names++
		}
	}
	if names == 0 {
		t.Error("nobody names worker 2")
	}
}

// against is a course of three, of whom worker 2 is hostile.
func against(scheme string, how func(rng *rand.Rand, m *distrib.Msg)) *course {
	c := &course{site: newSite(3), scheme: scheme}
	c.expels = make(chan distrib.NodeID, 9)
	c.wraps = func(id distrib.NodeID) func(distrib.Transport) distrib.Transport {
		if id != 2 {
			return nil
		}
		return func(t distrib.Transport) distrib.Transport {
			return &hostile{Transport: t, rng: rand.New(rand.NewPCG(1, 2)), left: 40, how: how}
		}
	}
	c.own = func(_ distrib.NodeID, o *train.Options) { o.Steps = 30 }
	c.again = func(id distrib.NodeID) (Place, error) {
		return Place{}, fmt.Errorf("worker %d would come back", id)
	}
	return c
}

// expelled has workers go on without the one that sends nonsense.
func expelled(t *testing.T, scheme string, how func(rng *rand.Rand, m *distrib.Msg)) {
	c := against(scheme, how)
	c.least = 2
	out := c.all(t, 3)
	for id, e := range out[:2] {
		if e.err != nil || e.Steps != 30 || e.Workers != 2 {
			t.Errorf("worker %d: %v, %d steps, %v", id, e.err, e.Steps, e.changes())
		}
	}
	if err := out[2].err; err == nil || strings.Contains(err.Error(), "would come back") {
		t.Errorf("who is expelled ends with %v", err)
	}
	select {
	case id := <-c.expels:
		if id != 2 {
			t.Errorf("worker %d is expelled", id)
		}
	default:
		t.Errorf("nobody is expelled: %v", out[0].changes())
	}
}

// expel takes a node out that others of its view do not want.
func (s *site) expel(_ context.Context, id distrib.NodeID) error {
	s.mu.Lock()
	if p := s.here[id]; p != nil {
		p.end(distrib.ErrExpelled)
	}
	s.mu.Unlock()
	s.expels <- id
	s.leave(id)
	return nil
}
