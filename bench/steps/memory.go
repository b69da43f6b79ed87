package main

import (
	"context"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner"
)

// partition is the operations of a partition under the thesis policy.
const partition = 200

// footprint is what a training step needs, in bytes.
type footprint struct {
	variables    int64 // parameters and optimizer state
	resident     int64 // with everything on the device
	device, host int64 // under the thesis policy
}

func footprintOf(ctx context.Context, m *model) (f footprint, err error) {
	for _, n := range m.graph.Variables() {
		f.variables += n.Out[0].Bytes()
	}
	if f.resident, _, err = predicted(ctx, m, resident); err != nil {
		return f, err
	}
	f.device, f.host, err = predicted(ctx, m,
		planner.Options{Policy: planner.Thesis, Partition: partition})
	return f, err
}

// predicted are the bytes of a plan's device and host.
func predicted(ctx context.Context, m *model, o planner.Options) (device, host int64, err error) {
	p, err := gomem.Plan(ctx, m.graph, gomem.Options{}.With(o), m.target())
	if err != nil {
		return 0, 0, err
	}
	return p.Peak(space.Device), p.Peak(space.Host), nil
}

// peerMemory is the peer's answer to the command "memory": bytes of parameters,
// of the optimizer's state, and the most that a step allocates besides.
type peerMemory struct{ Parameters, State, Step int64 }

func (p *peer) memory() (m peerMemory, err error) {
	err = p.Ask("memory", &m)
	return m, err
}

func (m peerMemory) total() int64 { return m.Parameters + m.State + m.Step }
