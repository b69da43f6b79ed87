package cluster

import (
	"context"
	"sync"

	"github.com/gomem/gomem/distrib"
)

// relay hands views on, and knows how many nodes the newest has.
type relay struct {
	out chan distrib.View // has the newest that was not taken

	mu     sync.Mutex
	nodes  int
	change chan struct{} // closed when there is another
}

// relayed hands on what comes after a view of so many nodes, until there is no more.
func relayed(in <-chan distrib.View, nodes int) *relay {
	r := &relay{out: make(chan distrib.View, 1), nodes: nodes, change: make(chan struct{})}
	go func() {
		defer close(r.out)
		defer r.set(0)
		for v := range in {
			r.set(len(v.Nodes))
			select { // who takes views goes to the newest
			case <-r.out:
			default:
			}
			r.out <- v
		}
	}()
	return r
}

func (r *relay) set(nodes int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.nodes = nodes
	close(r.change)
	r.change = make(chan struct{})
}

// emptied waits until one node is left at most.
func (r *relay) emptied(ctx context.Context) {
	for {
		r.mu.Lock()
		nodes, change := r.nodes, r.change
		r.mu.Unlock()
		if nodes < 2 {
			return
		}
		select {
		case <-change:
		case <-ctx.Done():
			return
		}
	}
}
