package gomem

import (
	"context"
	"errors"
	"fmt"

	"github.com/gomem/gomem/executor"
)

// Network carries the exchanges of a job's steps between its workers: what ops.Send
// and ops.Await ask for.
type Network = executor.Network

// Meter knows how much memory exchanging takes.
type Meter interface {
	// Peak is the most bytes of host memory that exchanging has had at once beside what was
	// sent.
	Peak() int64
}

// Exchange is a value that a step gives to the network, and what it gets for it.
type Exchange = executor.Exchange

// Gatherer is a network of a job that goes on without a worker that is lost in a step.
type Gatherer = executor.Gatherer

// gathers says whether a network is a [Gatherer].
func gathers(n Network) bool {
	_, ok := n.(Gatherer)
	return ok
}

// Peer is a network of workers whose devices reach each other's memory.
type Peer = executor.Peer

// Place is bytes of a device's memory that other devices may copy.
type Place = executor.Place

// reached reports a mesh that exchanges from device to device over a network that does not.
func (o Options) reached() error {
	if _, reaches := o.Network.(Peer); reaches || o.Mesh == nil || !o.Mesh.Peers {
		return nil
	}
	return errors.New("the processes of the mesh exchange from device to device, and " +
		"Options.Network does not: leave Options.Mesh.Peers out")
}

// Agreer is a network whose workers find out before the first step that exchanges whether
// all have the same exchanges.
type Agreer = executor.Agreer

// Exchanges are those of a target.
type Exchanges = executor.Exchanges

// needed reports the first exchange that has no sense without a network.
func (s *Session) needed() error {
	for _, t := range s.targets {
		if x, joint := t.exec.Joint(); joint {
			among := "all workers"
			if x.How.Along != "" {
				among = "the axis " + x.How.Along + " of their mesh"
			}
			return fmt.Errorf("target %q: %q is exchanged by %d workers along %s: "+
				"there is no Options.Network that joins them", t.name, x.Name, x.Parts, among)
		}
	}
	return nil
}

// agree has all workers compare their exchanges, of all targets, before the first step that
// exchanges anything.
func (s *Session) agree(ctx context.Context, t *target) error {
	if s.agreer == nil || len(t.exec.Exchanges()) == 0 {
		return nil
	}
	var all []Exchanges
	for _, t := range s.targets {
		all = append(all, Exchanges{Target: t.name, List: t.exec.Exchanges()})
	}
	if err := s.agreer.Agree(ctx, all); err != nil {
		return err
	}
	s.agreer = nil
	return nil
}
