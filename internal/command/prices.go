package command

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/precision"
	"github.com/gomem/gomem/internal/profile"
	"github.com/gomem/gomem/planner/machine"
	"github.com/gomem/gomem/planner/machine/calibrate"
	"github.com/gomem/gomem/planner/simulate"
)

// pricer is the machine of a device: a profile by its name, or else the machine at
// hand, on which what the plan does is measured.
func pricer(ctx context.Context, w io.Writer, device string, p planned,
	o gomem.Options) (machine.Machine, profile.Machine, error) {
	rates, err := profileOf(gomem.Options{Device: device, Precision: o.Precision})
	if err != nil {
		return nil, profile.Machine{}, err
	}
	var m machine.Machine = rates
	if rates == nil {
		local, err := thisMachine(ctx, w, executed(p), o)
		if err != nil {
			return nil, profile.Machine{}, err
		}
		m, rates = local, local.Profile
	}
	return m, profile.Machine{Name: rates.Name, PeakGFLOPS: rates.Device.FLOPs / 1e9,
		InGBps: rates.In / 1e9, OutGBps: rates.Out / 1e9}, nil
}

// executed are the nodes that a training step executes, in the order in which it
// first does.
func executed(p planned) []*graph.Node {
	var nodes []*graph.Node
	seen := make([]bool, p.Graph.Len())
	for _, s := range p.training().Steps {
		if n := p.Graph.Node(s.Node); n.Executes() && !seen[n.ID] {
			seen[n.ID] = true
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// simulated is when the steps of a plan are done on a machine.
func simulated(b *built, p planned, m machine.Machine) profile.Run {
	return profile.Simulated(simulate.Simulate(p.training(), p.Graph,
		m.For(b.model.Name, executed(p))))
}

// thisMachine is the machine at hand: its processor, or the GPU that the run is on beside it.
// What was not measured before is measured now, within a few seconds. Copies are no faster
// than the run's.
func thisMachine(ctx context.Context, w io.Writer, nodes []*graph.Node,
	o gomem.Options) (*machine.Local, error) {
	defer notice(w, "gomem: measuring this machine")()
	m, err := measuring(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := m.Measure(ctx, nodes); err != nil {
		return nil, err
	}
	if o.DiskBytes > 0 && o.Disk != "" {
		if err := m.Disk(ctx, o.Disk); err != nil {
			return nil, err
		}
	}
	local := m.Local()
	if limit := float64(o.CopyBytesPerSecond); limit > 0 {
		local.Slow(limit)
	}
	return local, nil
}

// compare compares what a step of a plan took with what was predicted by what this machine was
// measured to take. Where they are far apart, as when it was busy then, that is said, and what
// the prediction was made by is measured again at the next start.
func compare(ctx context.Context, w io.Writer, p planned, o gomem.Options, predicted,
	took time.Duration) error {
	m, err := measuring(ctx, o)
	if err != nil {
		return err
	}
	doubted, err := m.Doubt(executed(p), predicted, took)
	if doubted && err == nil {
		fmt.Fprintf(w, "gomem: a step took %.4g ms, and %.4g were predicted: this machine is "+
			"measured again at the next start\n", milliseconds(took), milliseconds(predicted))
	}
	return err
}

// measuring is what was measured of the machine that a run is on.
func measuring(ctx context.Context, o gomem.Options) (*calibrate.Machine, error) {
	c := calibrate.Options{Threads: o.Threads, TF32: o.Precision == precision.TF32}
	if n, ok := gomem.GPU(o.Device); ok {
		return calibrate.OpenGPU(ctx, n, c)
	}
	return calibrate.Open(ctx, c)
}
