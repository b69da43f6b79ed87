// Package placement decides in which space every node lives (J. Wei, thesis
// 2019, section 6.3.3).
//
// With host placement, variables and constants live in host memory, and every
// operation on the device that reads one gets a staged copy of its own, shortly
// before it runs and freed after it. One copy shared by all readers would be
// held from the first of them, in the forward pass, to the last, in the
// backward pass. The updates of variables run where the variables are: the
// gradient moves to the host and is freed on the device.
//
// Without it, everything but the inputs lives on the device, as in the vanilla
// baseline. Inputs are always fed to the host.
package placement

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/pass"
)

// Pass fills Place. With host, variables, constants and updates are on the
// host.
func Pass(host bool) pass.Pass {
	return pass.Pass{Name: "placement", Run: func(p *pass.Program) error {
		p.Place = make([]pass.SpaceID, p.Graph.Len())
		for _, n := range p.Graph.Nodes() {
			switch n.Kind {
			case graph.KindInput:
				p.Place[n.ID] = pass.Host
			case graph.KindVariable, graph.KindConstant, graph.KindUpdate:
				if host {
					p.Place[n.ID] = pass.Host
				}
			}
		}
		return nil
	}}
}
