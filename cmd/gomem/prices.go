package main

import (
	"context"
	"io"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/profile"
	"github.com/gomem/gomem/machine"
	"github.com/gomem/gomem/machine/calibrate"
	"github.com/gomem/gomem/simulate"
)

// profileInput is what is known of a plan before it runs: the plan, and its times by
// what this machine was measured to take.
func profileInput(ctx context.Context, w io.Writer, b *built, p planned,
	o gomem.Options) (profile.Input, error) {
	in := knownInput(b, p)
	nodes := executed(in)
	local, err := thisMachine(ctx, w, nodes, o)
	if err != nil {
		return in, err
	}
	in.Predicted = profile.Simulated(simulate.Simulate(in.Plan, in.Graph,
		local.For(in.Model, nodes)))
	rates := local.Profile
	in.Machine = profile.Machine{Name: rates.Name, PeakGFLOPS: rates.Device.FLOPs / 1e9,
		InGBps: rates.In / 1e9, OutGBps: rates.Out / 1e9}
	return in, nil
}

// executed are the nodes of a plan, in the order of its steps.
func executed(in profile.Input) []*graph.Node {
	var nodes []*graph.Node
	for _, s := range in.Plan.Steps {
		if n := in.Graph.Node(s.Node); n.Executes() {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// thisMachine is the machine at hand. What was not measured before is measured now,
// within a few seconds. Copies are no faster than the run's.
func thisMachine(ctx context.Context, w io.Writer, nodes []*graph.Node,
	o gomem.Options) (*machine.Local, error) {
	defer notice(w, "gomem: measuring this machine")()
	m, err := calibrate.Open(ctx, calibrate.Options{Threads: o.Threads})
	if err != nil {
		return nil, err
	}
	if err := m.Measure(ctx, nodes); err != nil {
		return nil, err
	}
	local := m.Local()
	if limit := float64(o.CopyBytesPerSecond); limit > 0 {
		local.Profile.In = min(local.Profile.In, limit)
		local.Profile.Out = min(local.Profile.Out, limit)
	}
	return local, nil
}
