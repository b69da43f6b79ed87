package main

import (
	"errors"

	"github.com/gomem/gomem/distrib"
)

// engine is a scheme that is a plan. Policies keep state, so each node makes its own.
func engine(name string, plan func() distrib.Plan) scheme {
	return scheme{name, func(n distrib.Transport, v distrib.View) (distrib.Synchronizer,
		func() error, error) {
		p := plan()
		if p.Topology == nil {
			p.Topology = even{distrib.NodeID(len(v.Nodes))}
		}
		e, err := distrib.New(distrib.Config{View: v, Transport: n, Plan: p})
		if err != nil {
			return nil, nil, err
		}
		return e.Worker(0), func() error {
			<-e.Done() // when nobody wants rows of this node any more
			return errors.Join(e.Close(), n.Close())
		}, nil
	}}
}

// ssp is the plain parameter server on package distrib, stale by s clocks: everything goes
// at the tick.
func ssp(name string, s int) scheme {
	return engine(name, func() distrib.Plan {
		return distrib.Plan{Consistency: distrib.SSP{S: s}}
	})
}

// even deals rows out in fours, so that models of a few kilobytes load all nodes alike, as
// large ones do: hashed blocks, the default, are coarse for them.
type even struct{ nodes distrib.NodeID }

// Owner has every so manyth four rows.
func (e even) Owner(r distrib.Ref) (distrib.NodeID, bool) {
	return (distrib.NodeID(r.Row) / 4) % e.nodes, true
}

// Dests is the owner.
func (e even) Dests(dst []distrib.NodeID, _ distrib.NodeID, r distrib.Ref,
	_ distrib.Clock) []distrib.NodeID {
	id, _ := e.Owner(r)
	return append(dst, id)
}
