// Package placement decides in which space every node lives (J. Wei, thesis
// 2019, section 6.3.3).
//
// With host placement, variables and constants live in host memory, and an
// operation on the device that reads one gets a staged copy, shortly before it
// runs and freed after it, unless it is read again within the look-ahead. One copy
// shared by all readers would be held from the first of them, in the forward pass,
// to the last, in the backward pass. The updates of variables run where the variables are: the
// gradient moves to the host and is freed on the device. An update that is
// composed of several operations goes there as a whole: operations of the update
// phase that only updates on the host depend on.
//
// Without it, everything but the inputs lives on the device, as in the vanilla
// baseline. Inputs are always fed to the host. What workers exchange, and what
// depends on it, is on the host in any case, and so is what a device computes to
// other bits than the host: see [program.Program.Hosted].
package placement

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/program"
)

// Pass fills Place. With host, variables, constants and updates are on the
// host.
func Pass(host bool) program.Pass {
	return program.Pass{Name: "placement", Run: func(p *program.Program) error {
		p.Place = make([]space.ID, p.Graph.Len())
		for _, n := range p.Graph.Nodes() {
			switch n.Kind {
			case graph.KindInput:
				p.Place[n.ID] = space.Host
			case graph.KindVariable, graph.KindConstant, graph.KindUpdate:
				if host {
					p.Place[n.ID] = space.Host
				}
			}
		}
		if host {
			placeUpdates(p)
		}
		for id, hosted := range p.Hosted() {
			if hosted && p.Graph.Node(graph.NodeID(id)).Kind != graph.KindInput {
				p.Place[id] = space.Host
			}
		}
		return nil
	}}
}

// placeUpdates puts what leads to updates only on the host with them. Nodes are in
// topological order, so that who reads a node is known before it is reached.
func placeUpdates(p *program.Program) {
	kept := make([]bool, p.Graph.Len()) // needed on the device, or not needed at all
	read := make([]bool, p.Graph.Len())
	for _, v := range p.Fetches {
		kept[v.Node.ID] = true
	}
	nodes := p.Graph.Nodes()
	for i := len(nodes) - 1; i >= 0; i-- {
		n := nodes[i]
		if !p.Live[n.ID] {
			continue
		}
		if n.Kind == graph.KindCompute && n.Phase == graph.Update && read[n.ID] && !kept[n.ID] {
			p.Place[n.ID] = space.Host
		}
		for _, v := range n.In {
			read[v.Node.ID] = true
			if p.Place[n.ID] == space.Device {
				kept[v.Node.ID] = true
			}
		}
	}
}
