package collective_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/collective"
	"github.com/gomem/gomem/distrib/memnet"
)

// locked is a handler that needs what its owner holds while it calls Serve, as an engine does.
type locked struct {
	mu   *sync.Mutex
	down chan distrib.NodeID
}

// Receive takes nothing.
func (locked) Receive(distrib.NodeID, *distrib.Msg) {}

// Down waits for the owner.
func (l locked) Down(from distrib.NodeID, _ error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down <- from
}

// TestLostBeforeServe: a node that is lost before there is a handler is told of by nobody who waits
// for that handler's owner.
func TestLostBeforeServe(t *testing.T) {
	m, err := collective.NewMux(memnet.New(3, memnet.Options{})[0], collective.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rest := m.Transport()
	m.Down(1, errors.New("gone"))
	m.Down(2, errors.New("gone, too"))
	var mu sync.Mutex
	h := locked{&mu, make(chan distrib.NodeID, 2)}
	mu.Lock()
	served := make(chan struct{})
	go func() {
		rest.Serve(h)
		close(served)
	}()
	select {
	case <-served:
	case <-time.After(10 * time.Second):
		t.Fatal("Serve waits for its caller")
	}
	mu.Unlock()
	for _, want := range []distrib.NodeID{1, 2} {
		if got := <-h.down; got != want {
			t.Errorf("node %d is down, want %d", got, want)
		}
	}
	if err := errors.Join(rest.Close(), m.Close()); err != nil {
		t.Error(err)
	}
}
