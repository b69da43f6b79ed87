package trial

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
)

// Echo is a network that gives back what it is sent, as the value of every worker. Meanwhile
// it fills it with junk.
type Echo struct {
	mu     sync.Mutex
	flying map[string]func()
}

// Send fills what is sent with junk until it is awaited.
func (e *Echo) Send(_ context.Context, x gomem.Exchange) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.flying == nil {
		e.flying = map[string]func(){}
	}
	if e.flying[x.Name] != nil {
		return fmt.Errorf("%s is sent twice", x.Name)
	}
	kept := slices.Clone(x.Data)
	for i := range x.Data {
		x.Data[i] = 0xff
	}
	exchange := graph.Exchange{How: x.How, Parts: x.Parts}
	err := exchange.AloneSome(x.Type, kept, x.Going)
	e.flying[x.Name] = func() {
		copy(x.Data, kept)
		exchange.Alone(x.Data)
	}
	return err
}

// Await gives it back.
func (e *Echo) Await(_ context.Context, name string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	back := e.flying[name]
	if back == nil {
		return fmt.Errorf("nobody has sent %s", name)
	}
	delete(e.flying, name)
	back()
	return nil
}

// Exchange gives back what a worker has, as the value of every worker.
func (e *Echo) Exchange(_ context.Context, x gomem.Exchange, from, to gomem.Place) error {
	parts := int64(1)
	if x.How.Fold == graph.Gather {
		parts = int64(x.Parts)
	}
	part := x.Type.Bytes() / parts
	for i := range parts {
		if err := to.Pull(i*part, from, 0, part); err != nil {
			return err
		}
	}
	return nil
}

// Abandon forgets what was sent.
func (e *Echo) Abandon() { clear(e.flying) }

// Flying is how many values are sent and not awaited.
func (e *Echo) Flying() int { return len(e.flying) }
